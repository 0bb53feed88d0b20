"""Duals of the SVM's kind with a linear kernel: in the space of the features where rows are many.

A Gram matrix of many rows of few features holds nothing that the rows do not. Where there are at
least `ROWS_PER_FEATURE` times as many rows as features, no matrix of rows by rows is formed. Each
way is the other's rescue: where one ends without a certificate, the other goes on.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.problem import BinaryProblem
from mmbench.solvers.in_features import solve_in_features
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_to_gap

#: Rows a feature from which an interior point in the features solves: on 200 rows a path over C
#: takes a third of the time of pairwise steps to as long (Flare-Solar: 1.4 times), on 800 a seventh
#: to 1/180. Of the 256 pixels of a pair of digits the times cross at four rows a feature.
ROWS_PER_FEATURE = 4

#: Features up to which more rows than features are enough: a fit takes some ms, and columns in
#: units of their own, which cost pairwise steps seconds and leave a gap, are as easy as others.
FEW_FEATURES = 64

#: Features, at most: an iteration factors a dense matrix of as many rows and columns.
MOST_FEATURES = 5000

#: Rows up to which pairwise steps on a Gram matrix go on where the interior point ends too early.
MOST_GRAM_ROWS = 5000

#: Rows up to which they do so, in a ms, where the gap is closed but a decision misses its slope, as
#: where more rows are free than a system in the features settles.
FEW_GRAM_ROWS = 100


def in_features(problem: BinaryProblem, solver: str = "auto") -> bool:
    """Whether a problem is solved in the space of its features; its dual then is stated by them."""
    n, d = problem.X.shape
    many = d <= FEW_FEATURES or n >= ROWS_PER_FEATURE * d
    return many and _may_be_in_features(problem, solver)


def _may_be_in_features(problem: BinaryProblem, solver: str) -> bool:
    """Whether a problem has more rows than features, and can be stated by them."""
    n, d = problem.X.shape
    linear = problem.kernel.name == "linear" and problem.given_gram is None
    return solver == "auto" and linear and d < n and d <= MOST_FEATURES


def rows_or_gram(problem: BinaryProblem, solver: str, cache_size: float | None = None) -> Any:
    """Return what the dual of a problem is stated with: rows stand in for their Gram matrix."""
    if in_features(problem, solver):
        return _rows(problem)
    return kernel_values(problem, solver, cache_size)


def _rows(problem: BinaryProblem) -> Any:
    """Return the rows of a problem; of sparse ones what multiplies as an array does."""
    X = problem.X
    return X if isinstance(X, np.ndarray | MappedRows) else MappedRows(X)


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
        Where one way went on from what the other found, the optimal one, or that with the smaller
        gap.
    """
    u = start.u if isinstance(start, PiecewiseSolution) else start
    first = in_features(problem, solver)
    if first:
        found = solve_in_features(dual, problem.y, C, tol, gap_tolerance, B, u)
        enough = found.status is Status.OPTIMAL
        if found.gap <= gap_tolerance:  # then only rounding keeps a decision from its slope
            enough = enough or len(problem.y) > FEW_GRAM_ROWS
        other = len(problem.y) <= MOST_GRAM_ROWS
    else:
        found = solve_to_gap(dual, tol, gap_tolerance, start)
        enough, other = found.status is Status.OPTIMAL, _may_be_in_features(problem, solver)
    if enough or not other or time_is_up():
        return found
    if first:
        more = solve_to_gap(replace(dual, gram=problem.gram), tol, gap_tolerance, found)
    else:
        by_rows = replace(dual, gram=_rows(problem))
        more = solve_in_features(by_rows, problem.y, C, tol, gap_tolerance, B, found.u)
    return min(found, more, key=lambda one: (one.status is not Status.OPTIMAL, one.gap))
