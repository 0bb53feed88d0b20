"""Duals of the SVM's kind with a linear kernel: in the space of the features where rows are many.

A Gram matrix of many rows of few features holds nothing that the rows do not. Where there are at
least `ROWS_PER_FEATURE` times as many rows as features, no matrix of rows by rows is formed.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.problem import BinaryProblem
from mmbench.solvers.in_features import solve_in_features
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_to_gap

#: Rows, and rows a feature, from which an interior point in the features solves a path over C: 1
#: to 3 times as fast as pairwise steps on 200 rows of eight of nine sets (Flare-Solar: 0.7), 4 to
#: 10 times on 400, 7 to 180 times on 800. Searches of SVM and RMM up to C = 2^15 on 400 rows take
#: 0.1 to 0.7 times as long (RMM on Banana 1.5); where classes overlap and C stays small, as in the
#: RMM's search on Pima up to 2^9, pairwise steps would take a third: a second.
LEAST_ROWS, ROWS_PER_FEATURE = 200, 4

#: Features, at most: an iteration factors a dense matrix of as many rows and columns.
MOST_FEATURES = 5000

#: Rows up to which pairwise steps on a Gram matrix go on where the interior point ends too early.
MOST_GRAM_ROWS = 5000


def in_features(problem: BinaryProblem, solver: str = "auto") -> bool:
    """Whether a problem is solved in the space of its features; its dual then is stated by them."""
    n, d = problem.X.shape
    linear = problem.kernel.name == "linear" and problem.given_gram is None
    few = d <= MOST_FEATURES and n >= max(LEAST_ROWS, ROWS_PER_FEATURE * d)
    return solver == "auto" and linear and few


def rows_or_gram(problem: BinaryProblem, solver: str, cache_size: float | None = None) -> Any:
    """Return what the dual of a problem is stated with: rows stand in for their Gram matrix."""
    if not in_features(problem, solver):
        return kernel_values(problem, solver, cache_size)
    sparse: Any = MappedRows(problem.X)
    return problem.X if isinstance(problem.X, np.ndarray | MappedRows) else sparse


def kernel_values(
    problem: BinaryProblem, solver: str, cache_size: float | None
) -> NDArray | KernelMatrix:
    """Return the kernel matrix of a problem; a reference solver takes whole ones only."""
    return problem.gram if solver == "reference" else problem.matrix(cache_size)


def solve_dual(
    problem: BinaryProblem,
    dual: PiecewiseQP,
    C: float | NDArray,
    solver: str,
    tol: float,
    gap_tolerance: float,
    start: PiecewiseSolution | NDArray | None = None,
    B: float | None = None,
) -> PiecewiseSolution:
    """Solve the dual of an SVM or an RMM, in its features or by pairwise steps.

    Parameters
    ----------
    problem : BinaryProblem
    dual : PiecewiseQP
        Stated with `rows_or_gram`.
    C, tol, gap_tolerance, B
        As for `solve_in_features`.
    solver : {"auto", "smo"}
    start : PiecewiseSolution or ndarray of shape (n_samples,), optional
        The solution of a neighbouring problem, or its u.

    Returns
    -------
    PiecewiseSolution
        The one with the smaller gap, where pairwise steps went on from the features' solution.
    """
    if not in_features(problem, solver):
        return solve_to_gap(dual, tol, gap_tolerance, start)
    u = start.u if isinstance(start, PiecewiseSolution) else start
    found = solve_in_features(dual, problem.y, C, tol, gap_tolerance, B, u)
    enough = found.gap <= gap_tolerance  # then only rounding keeps a decision from its slope
    if enough or len(problem.y) > MOST_GRAM_ROWS or time_is_up():
        return found
    more = solve_to_gap(replace(dual, gram=problem.gram), tol, gap_tolerance, found)
    return min(found, more, key=lambda one: one.gap)
