"""Solution of R-SVM+ and R-SVMμ+ by a sequence of restricted problems.

A restricted problem has the listed rows, pairs of rows and features. Each round adds the pairs
whose half squared distance, weighted by w^2 (R-SVM+) or mu (R-SVMμ+), exceeds the radius variable r
most, at most one per row.

R-SVM+ omits rows if there are at least 200, and at least as many features as rows, as always with a
kernel: it begins with the rows near or inside the margin of an SVM, adds rows inside the margin,
and removes inactive pairs and rows far outside. R-SVMμ+ omits features: feature k is added if
``q_k - v_k^2`` (module `pairs`) is smaller than for all listed features.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import NoTimeLeft, check_time, time_is_up
from mmbench.errors import Status
from mmbench.machines.radius.listed import solve_cone, solve_interior
from mmbench.machines.radius.pairs import Listed, PairProblem, PairSolution, far_pairs
from mmbench.machines.svm import svm_dual
from mmbench.solvers.svm_dual.smo import solve_smo

#: Pairs in the first restricted problem, and most pairs added per round. If rows are omitted, at
#: most max(FIRST_PAIRS, m) pairs are added to the last m. On 650 rows of Image, R-SVM+ with lambda
#: from 0.1 to 1000 has 2 to 48 active pairs.
FIRST_PAIRS, PAIRS_PER_ROUND = 100, 1000

#: Each of the FIRST_PAIRS contains one of the FIRST_ROWS most distant rows, since a search among
#: all pairs grows with the square of the number of rows: 1.5 of 2.5 CPU seconds with 40,000 rows
#: (`benchmarks/peers.py`, task `growth`).
FIRST_ROWS = 2000

#: Number of features in the first restricted problem, and maximum number of features added per
#: round.
FIRST_FEATURES, FEATURES_PER_ROUND = 60, 40

#: The restricted problems of R-SVM+ omit rows only if there are at least FEWEST_ROWS training rows.
#: In the first round and after each removal of rows, only the rows with a margin below
#: LISTED_MARGIN are listed.
FEWEST_ROWS, LISTED_MARGIN = 200, 1.1

#: Maximum number of SMO steps per row for the first rows. With large features and a ``poly``
#: kernel, C is so large in the scaled features that SMO does not converge, but the rows near the
#: margin are known long before.
STEPS_PER_ROW = 200

#: If R-SVM+ omits rows, inactive pairs, and rows with margins of at least LISTED_MARGIN, are
#: removed if the gap is at most REMOVAL_FACTOR times the gap at the last removal: removal in each
#: round would take many rounds if all pairs of rows have the same distance.
REMOVAL_FACTOR = 0.5

#: If the interior-point method ends with a relative gap above STALLED_GAP, Clarabel is used. The
#: interior-point method may take short steps if one class is rare and overlaps the other class.
STALLED_GAP = 1e-3


def solve_generating(
    problem: PairProblem,
    tol: float = 1e-6,
    start: Listed | None = None,
    max_rounds: int = 60,
    cone: bool = False,
) -> PairSolution:
    """Solve restricted problems until the relative gap is at most `tol`.

    The rounds also end if no constraint of the whole problem is violated, after `max_rounds`
    rounds, or at the time limit. The warm start `start` is the attribute `PairSolution.active` of a
    solution with the same rows and other penalties. Clarabel solves the restricted problems if
    `cone` is true or if the interior-point method stalls.
    """
    n, k = problem.rows.shape
    by_rows = FEWEST_ROWS <= n <= k and not problem.simplex
    listed = start or _first_listed(problem, by_rows)
    iterations, rounds, least = 0, 0, 1.0
    while rounds < max_rounds:
        rounds += 1
        most = max(FIRST_PAIRS, len(listed.pairs)) if by_rows else PAIRS_PER_ROUND
        try:
            found, far = _solve_restricted(problem, listed, tol, cone, most)
        except NoTimeLeft:
            if rounds == 1:
                raise
            break  # the solution of the last round is returned
        iterations += found.iterations
        more = _violated_features(problem, found)
        margins = problem.y * (problem.rows @ found.w + found.b)
        violated = np.setdiff1d(np.flatnonzero(margins < 1.0), listed.rows)
        pairs, rows = _joined(listed.pairs, far), np.union1d(listed.rows, violated)
        complete = len(pairs) == len(listed.pairs) and not (len(violated) or len(more))
        if found.gap <= tol or complete or time_is_up(rounds=rounds, gap=found.gap):
            break
        if by_rows:
            near = margins < LISTED_MARGIN
            if found.gap <= REMOVAL_FACTOR * least and np.ptp(problem.y[near]) > 0:
                pairs, rows = _joined(found.active.pairs, far), np.flatnonzero(near)
                least = found.gap
        listed = Listed(pairs, rows, np.union1d(listed.features, more))
    status = Status.OPTIMAL if found.gap <= tol else found.status
    found = replace(found, rounds=rounds, iterations=iterations, status=status)
    if cone or found.gap <= STALLED_GAP or time_is_up():
        return found
    again = solve_generating(problem, tol, start, max_rounds, cone=True)
    return min(found, again, key=lambda point: point.gap)


def solve_all_pairs(problem: PairProblem, tol: float = 1e-6) -> PairSolution:
    """Solve one cone program with all pairs of rows by Clarabel, for the solver "reference"."""
    n, k = problem.rows.shape
    pairs = np.column_stack(np.triu_indices(n, 1))
    listed = Listed(pairs, np.arange(n), np.arange(k))
    found, _ = _solve_restricted(problem, listed, tol, cone=True, most=0)
    status = Status.OPTIMAL if found.gap <= tol else found.status
    return replace(found, route="reference", status=status)


def _first_listed(problem: PairProblem, by_rows: bool) -> Listed:
    (n, k), y = problem.rows.shape, problem.y
    check_time(100.0 * n * k)
    rows, features, weights = np.arange(n), np.arange(k), np.ones(k)
    if problem.simplex and k > FIRST_FEATURES:
        # the first listed features have the largest differences between the class means
        means = [problem.rows[y == sign].mean(axis=0) for sign in (1.0, -1.0)]
        apart = np.abs(means[0] - means[1])
        features = np.sort(np.argsort(-apart, kind="stable")[:FIRST_FEATURES])
    if by_rows:
        check_time(float(n) ** 2 * k)
        dual = svm_dual(problem.rows @ problem.rows.T, y, problem.C)
        svm = solve_smo(dual, tol=0.01, max_iter=STEPS_PER_ROW * n)
        rows, weights = np.flatnonzero(y * svm.f < LISTED_MARGIN), problem.rows.T @ svm.u
    pairs, _ = far_pairs(problem.rows * (weights / problem.roots), 0.0, FIRST_PAIRS, FIRST_ROWS)
    return Listed(pairs if len(pairs) else np.array([[0, 1]]), rows, features)


def _joined(pairs: NDArray, more: NDArray) -> NDArray:
    """Return `pairs`, followed by the pairs of `more` that are not in `pairs`."""
    both = np.concatenate([pairs, more])
    return both[np.sort(np.unique(both, axis=0, return_index=True)[1])]


def _solve_restricted(
    problem: PairProblem, listed: Listed, tol: float, cone: bool, most: int
) -> tuple[PairSolution, NDArray]:
    """Return the solution of a restricted problem, and the most violated pairs outside it."""
    part, squares = problem.restricted(listed)
    accuracy = float(np.clip(0.1 * tol, 1e-10, 1e-4))
    solved = (solve_cone if cone else solve_interior)(part, squares, accuracy)
    found, far = problem.certified(solved, listed, most)
    return replace(found, route="clarabel" if cone else "interior"), far


def _violated_features(problem: PairProblem, found: PairSolution) -> NDArray:
    """Return the features outside the restricted problem with the largest dual violations."""
    features = found.listed.features
    if not problem.simplex or len(features) == problem.rows.shape[1]:
        return np.empty(0, dtype=np.intp)
    v = problem.rows.T @ found.u
    cost = problem.squares(found.listed.pairs).T @ found.theta - v * v
    below = np.argsort(cost, kind="stable")[:FEATURES_PER_ROUND]
    return np.setdiff1d(below[cost[below] < cost[features].min()], features)
