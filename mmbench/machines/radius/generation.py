"""Constraint and column generation for R-SVM+ and R-SVM_mu+.

Each round solves the restricted problem with the listed pairs of rows. Then the pairs whose
weighted half squared distances exceed r most are added, at most one per row. R-SVM_mu+ also
restricts the features: feature k is added if ``q_k - v_k^2`` is below the minimum over the listed
features, which is a violation of the dual.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.radius.listed import solve_cone, solve_interior
from mmbench.machines.radius.pairs import PairProblem, PairSolution, far_pairs

#: Number of pairs in the first restricted problem, and maximum number of pairs added per round.
#: With a large radius penalty and a kernel, thousands of pairs are active.
FIRST_PAIRS, PAIRS_PER_ROUND = 100, 1000

#: Number of features in the first restricted problem of R-SVM_mu+, and maximum number of features
#: added per round.
FIRST_FEATURES, FEATURES_PER_ROUND = 60, 40

#: Relative gap above which the interior point counts as stalled. Its steps are short if one class
#: is rare and overlaps the other.
STALLED_GAP = 1e-3


def solve_generating(
    problem: PairProblem,
    tol: float = 1e-6,
    start: tuple[NDArray, NDArray] | None = None,
    max_rounds: int = 60,
    cone: bool = False,
) -> PairSolution:
    """Solve restricted problems until the relative gap is at most `tol`.

    The rounds also end if no further pair or feature is violated. `start`, a warm start, is
    `PairSolution.active` of a problem with the same rows and other penalties. Clarabel solves the
    restricted problems if `cone` is true or the interior point stalls.
    """
    if start is not None:
        pairs, features = start
    else:
        pairs, _ = far_pairs(problem.rows, 0.0, FIRST_PAIRS)
        pairs = pairs if len(pairs) else np.array([[0, 1]])
        features = np.arange(problem.rows.shape[1])
        # features with the largest differences of the class means
        if problem.simplex and len(features) > FIRST_FEATURES:
            means = [problem.rows[problem.y == sign].mean(axis=0) for sign in (1.0, -1.0)]
            apart = np.abs(means[0] - means[1])
            features = np.sort(np.argsort(-apart, kind="stable")[:FIRST_FEATURES])
    iterations, rounds = 0, 0
    while rounds < max_rounds:
        rounds += 1
        found, far = _solve_restricted(problem, pairs, features, tol, cone)
        iterations += found.iterations
        more = _violated_features(problem, found)
        both = np.concatenate([pairs, far])
        listed = both[np.sort(np.unique(both, axis=0, return_index=True)[1])]
        if found.gap <= tol or (len(listed) == len(pairs) and not len(more)) or time_is_up():
            break
        pairs, features = listed, np.union1d(features, more)
    found = replace(found, rounds=rounds, iterations=iterations)
    if cone or found.gap <= STALLED_GAP or time_is_up():
        return found
    again = solve_generating(problem, tol, start, max_rounds, cone=True)
    return min(found, again, key=lambda point: point.gap)


def solve_all_pairs(problem: PairProblem, tol: float = 1e-6) -> PairSolution:
    """Solve one cone program (Clarabel) with all pairs of rows, as the reference."""
    n, k = problem.rows.shape
    pairs = np.column_stack(np.triu_indices(n, 1))
    found, _ = _solve_restricted(problem, pairs, np.arange(k), tol, cone=True)
    return replace(found, route="reference")


def _solve_restricted(
    problem: PairProblem, pairs: NDArray, features: NDArray, tol: float, cone: bool
) -> tuple[PairSolution, NDArray]:
    """Solve the restricted problem; return the solution and the unlisted pairs violated most."""
    part = problem
    if len(features) < problem.rows.shape[1]:
        part = replace(problem, rows=problem.rows[:, features])
    accuracy = float(np.clip(0.1 * tol, 1e-10, 1e-4))
    solved = (solve_cone if cone else solve_interior)(part, pairs, accuracy)
    found, far = problem.certified(solved, pairs, features, PAIRS_PER_ROUND)
    status = Status.OPTIMAL if found.gap <= tol else found.status
    return replace(found, status=status, route="clarabel" if cone else "interior"), far


def _violated_features(problem: PairProblem, found: PairSolution) -> NDArray:
    """Return the unlisted features with the largest violations of the dual constraints."""
    if not problem.simplex or len(found.features) == problem.rows.shape[1]:
        return np.empty(0, dtype=np.intp)
    v = problem.rows.T @ found.u
    cost = problem.squares(found.pairs).T @ found.theta - v * v
    below = np.argsort(cost, kind="stable")[:FEATURES_PER_ROUND]
    return np.setdiff1d(below[cost[below] < cost[found.features].min()], found.features)
