"""Constraint generation for R-SVM+ and R-SVM_mu+: few of the n (n - 1)/2 pairs hold with equality.

Start with a few pairs, solve the program with those, add the pairs that violate their constraint
most, one a row at most, until the duality gap is closed. R-SVM_mu+ uses few columns as well, so
that with many (a kernel's) these are generated, too: a column is added if it violates the dual,
``q_k - v_k^2 < min over those in use``. Every round has a point that satisfies all pairs and a
bound that holds for all columns.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.radius.cone import solve_cone
from mmbench.machines.radius.interior import solve_interior
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem, far_pairs

#: Pairs to begin with, and which a round adds at most. A dear radius in a kernel's features needs
#: thousands; where few pairs are violated a round ends with few.
FIRST_PAIRS, PAIRS_PER_ROUND = 100, 1000

#: Columns with which R-SVM_mu+ begins, and which it adds in a round at most.
FIRST_COLUMNS, COLUMNS_PER_ROUND = 60, 40

#: A pair, or a column, whose share of its sum is below this is not passed on to the next problem.
SMALLEST_SHARE = 1e-9

#: A gap that rounding does not explain: the interior point takes short steps where one class is
#: rare and overlaps the other.
MISLED_GAP = 1e-3


def first_pairs(problem: RadiusProblem) -> NDArray:
    """Return pairs to begin with: those furthest apart, all columns weighted alike."""
    pairs, _ = far_pairs(problem.rows, 0.0, FIRST_PAIRS)
    return pairs if len(pairs) else np.array([[0, 1]])


def first_columns(problem: RadiusProblem) -> NDArray:
    """Return columns to begin with: those in which the classes' means differ most."""
    k = problem.rows.shape[1]
    if not problem.simplex or k <= FIRST_COLUMNS:
        return np.arange(k)
    positive = problem.y > 0
    apart = problem.rows[positive].mean(axis=0) - problem.rows[~positive].mean(axis=0)
    return np.sort(np.argsort(-np.abs(apart), kind="stable")[:FIRST_COLUMNS])


def passed_on(found: RadiusPoint) -> RadiusPoint:
    """Return the point with only the pairs and columns that matter, to start a neighbour from."""
    if found.mu is not None:
        found = replace(found, columns=found.columns[found.mu[found.columns] > SMALLEST_SHARE])
    kept = found.theta > SMALLEST_SHARE * found.theta.sum()
    if not kept.any():
        return found
    return replace(found, pairs=found.pairs[kept], theta=found.theta[kept])


def union(pairs: NDArray, more: NDArray) -> NDArray:
    """Return the pairs of both, without repetition; the first ones keep their places."""
    both = np.concatenate([pairs, more])
    _, first = np.unique(both, axis=0, return_index=True)
    return both[np.sort(first)]


def solve_generating(
    problem: RadiusProblem,
    tol: float = 1e-6,
    start: RadiusPoint | None = None,
    max_rounds: int = 60,
    cone: bool = False,
) -> RadiusPoint:
    """Minimise by programs with few pairs and, for R-SVM_mu+, few columns.

    Parameters
    ----------
    problem : RadiusProblem
    tol : float, default=1e-6
        Relative gap.
    start : RadiusPoint, optional
        Of a neighbouring problem on the same rows; its pairs and columns are kept.
    max_rounds : int, default=60
    cone : bool, default=False
        Whether Clarabel solves the programs, not the interior point of this family. It does in any
        case where that ends far from the optimum.

    Returns
    -------
    RadiusPoint
        Of the last round; status ``inaccurate`` where the gap is larger than `tol`.
    """
    pairs = first_pairs(problem) if start is None else start.pairs
    columns = first_columns(problem) if start is None else start.columns
    iterations, rounds = 0, 0
    while rounds < max_rounds:
        rounds += 1
        found, far = _round(problem, pairs, columns, tol, cone)
        iterations += found.iterations
        more = _violated_columns(problem, found, columns)
        listed = union(pairs, far)
        if found.gap <= tol or (len(listed) == len(pairs) and not len(more)) or time_is_up():
            break
        pairs, columns = listed, np.union1d(columns, more)
    found = replace(found, rounds=rounds, iterations=iterations)
    if cone or found.gap <= MISLED_GAP or time_is_up():
        return found
    again = solve_generating(problem, tol, start, max_rounds, cone=True)
    return min(found, again, key=lambda point: point.gap)


def solve_all_pairs(problem: RadiusProblem, tol: float = 1e-6) -> RadiusPoint:
    """Minimise by one cone program (Clarabel) in which all pairs are listed: the reference."""
    n, k = problem.rows.shape
    pairs = np.column_stack(np.triu_indices(n, 1))
    return _round(problem, pairs, np.arange(k), tol, cone=True)[0]


def _round(
    problem: RadiusProblem, pairs: NDArray, columns: NDArray, tol: float, cone: bool
) -> tuple[RadiusPoint, NDArray]:
    """Solve one program; return its point, and the pairs that it violates most."""
    k = problem.rows.shape[1]
    part = problem if len(columns) == k else replace(problem, rows=problem.rows[:, columns])
    accuracy = float(np.clip(0.1 * tol, 1e-10, 1e-4))
    restricted = (solve_cone if cone else solve_interior)(part, pairs, accuracy)
    found, far = problem.point(restricted, pairs, columns, PAIRS_PER_ROUND)
    return replace(found, status=Status.OPTIMAL) if found.gap <= tol else found, far


def _violated_columns(problem: RadiusProblem, found: RadiusPoint, columns: NDArray) -> NDArray:
    """Return the columns that violate the dual most."""
    if not problem.simplex or len(columns) == problem.rows.shape[1]:
        return np.empty(0, dtype=np.intp)
    v = problem.rows.T @ found.u
    cost = problem.squares(found.pairs).T @ found.theta - v * v
    below = np.argsort(cost, kind="stable")[:COLUMNS_PER_ROUND]
    return np.setdiff1d(below[cost[below] < cost[columns].min()], columns)
