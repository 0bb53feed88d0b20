"""Duals of the SVM's kind with a linear kernel: in the space of the features where rows are many.

A Gram matrix of many rows of few features holds nothing that the rows do not. Where there are at
least `ROWS_PER_FEATURE` times as many rows as features, no matrix of rows by rows is formed. Each
way is the other's rescue: where one ends without a certificate, the other goes on.

The support vector machine with linear slack, as libsvm defines it.

    min over w, b   1/2 ||w||^2 + C sum_i xi_i
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,   f(x) = w'phi(x) + b            (1)

Its dual, with ``u_i = y_i alpha_i`` and K the Gram matrix:

    max over u      sum_i y_i u_i - 1/2 u'Ku   subject to  sum_i u_i = 0,  0 <= y_i u_i <= C   (2)

and ``f(z) = sum_i u_i k(x_i, z) + b``. With weights s of the rows, or of their classes, the penalty
on a slack is ``C s_i`` in (1), the bound of ``y_i u_i`` in (2): a row of weight 2 is a row twice.
Equation numbers are those of the RMM paper.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
C.-C. Chang, C.-J. Lin: LIBSVM, a library for support vector machines. ACM TIST 2(3), 2011.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.base.estimator import WeightedClassifier, class_weight, kernel_scaling
from mmbench.machines.base.parameters import choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit, PartProblem
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace, cache_size
from mmbench.machines.base.threshold import slack_penalties
from mmbench.solvers.features import solve_in_features
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution, solve_to_gap
from mmbench.solvers.svm_dual.smo import TOLERANCE_FACTORS

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


#: Largest relative gap of a solution, in units of `tol`: what each row and slack misses adds to it.
GAP_TOLERANCE_FACTOR = 100

#: Of up to so many rows more digits cost nothing: decisions by integer weights and by repeated rows
#: agree to 1e-7, as scikit-learn's checks ask.
FEW_ROWS, FEW_ROWS_FACTOR = 100, 0.01

#: Share of the rows of a stored matrix from which a fold is trained in place.
IN_PLACE_SHARE = 0.7


class SVM(WeightedClassifier):
    """Support vector machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair. `objective` is (1) at the returned w and b, `bound` is (2) at
        a feasible u, so the optimum lies between them.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        u of each pair (``rbf``, ``poly``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import SVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = SVM(C=10, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"C": ("C", tuple(2.0**k for k in range(-5, 16, 2)))},  # libsvm's guide
        tol=1e-3,  # libsvm's own: a search ranks accuracies, the final training is certified
    )
    #: The matrix, and the system of a series of Newton steps.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(
        gram_copies=2, linear_row_copies=2, rows_per_feature=ROWS_PER_FEATURE, in_parts=True
    )
    sparse_input = translation_invariant = True
    #: Version 2: pairwise steps among all rows, without shrinking. Linear 1: many rows are solved
    #: exactly, so ties in a grid search may differ; 2: so are few rows, and degenerate ones.
    version: ClassVar[int] = 2
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 2}
    gap_tolerance_factor = GAP_TOLERANCE_FACTOR

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" takes pairwise steps on parts of the kernel matrix; "auto" does too, but for a '
        "linear kernel and many rows of few features, which an interior point solves in the "
        'features; "reference" is libsvm, with weights as scikit-learn has it.',
    )
    tol: float = parameter(
        1e-5,
        positive(),
        "Tolerance of the KKT conditions, in units of the decision function. If the relative "
        "duality gap exceeds 100 tol, it is tightened in steps, down to tol / 8**7.",
    )
    cache_size: float | None = cache_size()

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        start = None if warm is None else warm.state
        C = slack_penalties(problem, self.C, self.class_weight)
        tol = tolerance(self.tol, len(problem.y))
        return train_svm(problem, C, self.solver, tol, start, self.cache_size)

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold; one with most rows of a stored matrix reads that matrix."""
        for problem in problems:
            if self.solver == "auto" and has_most_rows(problem):
                yield self._train_in_place(problem, points)
            else:
                yield self.train_path(problem, points)

    def _train_in_place(
        self, part: PartProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train on a part of a matrix without a copy: y = 0 leaves no room for u of other rows.

        Their decisions come with those of the part.
        """
        gram, y = part.whole.values, np.zeros(part.whole.n)
        y[part.rows] = part.y
        models = self.train_path(BinaryProblem(gram, y, part.kernel, gram), points)
        return [
            BinaryModel(
                intercept=model.intercept,
                fit=model.fit,
                coef=model.coef[part.rows],  # type: ignore[index]
                scores=model.state.scale * model.state.decision,
            )
            for model in models
        ]


def has_most_rows(problem: BinaryProblem) -> TypeGuard[PartProblem]:
    """Whether a problem is on so many rows of a stored matrix that its own would save little."""
    return (
        isinstance(problem, PartProblem) and len(problem.rows) >= IN_PLACE_SHARE * problem.whole.n
    )


def tolerance(tol: float, n_rows: int) -> float:
    """Return the tolerance to which a problem is solved: of few rows a smaller one."""
    return tol * (FEW_ROWS_FACTOR if n_rows <= FEW_ROWS else 1.0)


def train_svm(
    problem: BinaryProblem,
    C: float | NDArray,
    solver: str = "auto",
    tol: float = 1e-5,
    start: PiecewiseSolution | NDArray | None = None,
    cache_size: float | None = None,
) -> BinaryModel:
    """Train one binary SVM.

    Parameters
    ----------
    problem : BinaryProblem
    C : float or ndarray of shape (n_samples,)
        The penalty on slack, or that of each row.
    solver : {"auto", "smo", "reference"}, default="auto"
    tol : float, default=1e-5
    start : PiecewiseSolution or ndarray of shape (n_samples,), optional
        The solution of a neighbouring problem on the same rows, or its u. The solution at a smaller
        C that none of its u reaches is the solution at this C too, and ends at once.
    cache_size : float, optional
        Memory for kernel values in MB.

    Returns
    -------
    BinaryModel
        Its `state` is the solution of (2).
    """
    y, gap_tolerance = problem.y, GAP_TOLERANCE_FACTOR * tol
    dual = svm_dual(rows_or_gram(problem, solver, cache_size), y, C)
    started = time.perf_counter()
    if solver == "reference":
        from mmbench.solvers.libsvm_ import solve_libsvm

        found = solve_to_gap(
            dual,
            tol,
            gap_tolerance,
            solve=lambda dual, _, tol: solve_libsvm(dual, y, C, tol),
            factors=TOLERANCE_FACTORS[:3],  # libsvm's kernel values have the digits of float32
        )
    else:
        found = solve_dual(problem, dual, C, solver, tol, gap_tolerance, start)
    return certified(found, time.perf_counter() - started)


def certified(found: PiecewiseSolution, seconds: float) -> BinaryModel:
    """Return the model of a solution of the dual, which is its state, with the certificate."""
    fit = Fit(
        status=found.status,
        objective=-found.bound,
        bound=-found.value,
        max_violation=found.violation,
        iterations=found.iterations,
        seconds=seconds,
        n_support=int(np.count_nonzero(found.u)),
    )
    w = None if found.weights is None else found.scale * found.weights
    return BinaryModel(
        intercept=found.scale * found.bias, fit=fit, coef=found.scale * found.u, w=w, state=found
    )


def svm_dual(gram: NDArray | KernelMatrix, y: NDArray, C: float | NDArray) -> PiecewiseQP:
    """Return (2), its sign changed: u_i costs ``-y_i u_i`` and lies between 0 and ``y_i C``."""
    ends = np.sort(np.column_stack([0 * y, C * y]), axis=1)
    return PiecewiseQP(gram, ends, -y[:, None])
