"""The support vector machine with a linear penalty on slack, as in libsvm.

    min over w, b   1/2 ||w||^2 + C sum_i xi_i
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,   f(x) = w'phi(x) + b            (1)
    max over u      sum_i y_i u_i - 1/2 u'Ku   subject to  sum_i u_i = 0,  0 <= y_i u_i <= C   (2)

K is the Gram matrix, and ``f(z) = sum_i u_i k(x_i, z) + b``. Equation numbers are of the paper on
relative margin machines. With ``C=inf``, all slacks are zero (hard margin).

    Fit.route             used by "auto", for n rows and d features      in mmbench.solvers
    SMO                   nonlinear kernel, or few rows per feature      svm_dual.smo
    SMO on working sets   as SMO, with many rows                         svm_dual.smo
    SMO                   all pairs of many classes in one call          svm_dual.many_pairs
    active set,           linear, n > d, and d <= 64 or n >= 4 d         features
    interior point
    coordinate descent    linear, d > 64, sparse or many rows            svm_dual.coordinate_descent
    warm start            linear, solution at another grid point         features
    libsvm                solver="reference", "libsvm" or "sklearn"      libsvm_
    liblinear, Clarabel   solver="liblinear", "clarabel"                 libsvm_, clarabel_

With a linear kernel, SMO and `features` continue each other's failures, and both continue
coordinate descent: SMO alone leaves a relative gap of up to 0.7 on unscaled features, and the
interior-point method stalls if there are many rows and one class is rare.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import combinations, repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csr_array, issparse

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.kernels import row_squares
from mmbench.kernels.matrix import KernelMatrix
from mmbench.machines.base.estimator import WeightedClassifier, slack_penalties
from mmbench.machines.base.one_vs_one import PairModels, PairPlan, train_pair
from mmbench.machines.base.parameters import (
    Param,
    cache_size,
    choice,
    class_weight,
    kernel_scaling,
    parameter,
    positive,
)
from mmbench.machines.base.problem import (
    LAZY_FEATURES,
    STORED_ROWS,
    UNPROVEN,
    BinaryModel,
    BinaryProblem,
    Fit,
)
from mmbench.machines.base.search_space import SearchSpace
from mmbench.memory import REFERENCE_GRAMS, TrainingSize, cache_bytes
from mmbench.solvers.features import solve_in_features
from mmbench.solvers.result import relative_gap
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.svm_dual.coordinate_descent import solve_by_coordinates
from mmbench.solvers.svm_dual.many_pairs import solve_pairs
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import TOLERANCE_FACTORS, solve_smo, solve_to_gap

#: For more than FEW_FEATURES features, the solvers in the feature space need at least
#: ROWS_PER_FEATURE rows per feature. With ascending C, their CPU time relative to SMO is 1/3 to 1
#: on 200 rows (1.4 on Flare-Solar), 1/180 to 1/7 on 800 rows, and 1 on a pair of digits at four
#: rows per feature.
ROWS_PER_FEATURE = 4

#: For at most FEW_FEATURES features, the interior-point method is used whenever there are more rows
#: than features. The interior-point method is insensitive to feature scaling. On unscaled features,
#: SMO takes seconds and stops with a duality gap above the tolerance.
FEW_FEATURES = 64

#: Above this number of features, coordinate descent is tried before the interior-point method for
#: every C, on many dense rows. On 10,000 rows of 500, 1000 and 2000 features, its relative CPU time
#: is 1.2, 0.55 and 0.23 with C = 1, and 0.3, 0.15 and 0.05 with C = 0.01.
MANY_FEATURES = 1000

#: On at least COORDINATE_ROWS dense rows of more than FEW_FEATURES features, coordinate descent is
#: tried first if C times the mean squared norm of the rows is at most ``d / FEW_FEATURES``. Its
#: relative CPU time is then 0.2 to 0.9 (`benchmarks/peers.py`, task `linear`), but up to 5 for 16
#: to 64 features and a larger C.
COORDINATE_ROWS = 1000

#: Maximum number of features d for the interior-point method, which factors a d x d matrix per
#: iteration.
MOST_FEATURES = 5000

#: Solvers that store the whole Gram matrix; other solvers can compute it in blocks.
WHOLE_GRAM = ("reference", "libsvm", "sklearn", "highs_ipm", "clarabel", "ecos")

#: Tolerance of the relative duality gap, in units of `tol`. The factor is large, since `tol` bounds
#: the KKT violation of each row, whereas the duality gap contains the violations of all rows.
GAP_TOLERANCE_FACTOR = 100

#: For at most FEW_ROWS rows, the tolerance is multiplied by FEW_ROWS_FACTOR, and SMO continues each
#: solution in the feature space that violates a KKT condition: an estimator check of scikit-learn
#: requires decision values with integer row weights and with repeated rows to agree to 1e-7.
FEW_ROWS, FEW_ROWS_FACTOR = 100, 0.01

#: With at least MANY_CLASSES classes, one compiled call per class solves all pairs, in 1/7 of the
#: CPU time for 40 rows per pair; with fewer classes, compiling takes longer. A pair has at most
#: MOST_PAIR_ROWS rows if its rows of the kernel matrix would be computed at their first use,
#: otherwise MOST_SHARED_ROWS: the call computes the kernel values within a class only once, and
#: takes half the CPU time on 2000 rows of USPS. It stores 32 bytes per row of a pair, for at most
#: MOST_ROWS_OF_PAIRS rows, and at most MOST_VALUES kernel values of a class.
MANY_CLASSES, MOST_PAIR_ROWS, MOST_SHARED_ROWS = 10, 400, 1500
MOST_ROWS_OF_PAIRS, MOST_VALUES = 10**7, 10**7

#: For a hard margin, finite values of C are tried in ascending order: HARD_MARGIN_PENALTIES divided
#: by the largest k(x, x) of the training rows.
HARD_MARGIN_PENALTIES = tuple(1e3**k for k in range(6))

#: Two classes are regarded as not separable if their margin is at most LEAST_MARGIN_SHARE times the
#: largest norm ``k(x, x)**0.5`` of a row.
LEAST_MARGIN_SHARE = 1e-6


#: Solvers of other packages; "reference" is the package libsvm-official if it is installed and rows
#: have no weights, otherwise scikit-learn's copy of libsvm.
NATIVE = ("reference", "libsvm", "sklearn", "clarabel", "liblinear")


class SVM(WeightedClassifier):
    """Support vector machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of (1) at the returned w and
        b, and `bound` is the value of (2) at a feasible u. The optimum lies between `bound` and
        `objective`.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Dual variables u of each pair, for kernels other than ``linear``.

    Notes
    -----
    This class differs from scikit-learn's SVC. With more than two classes, `coef_`,
    `intercept_`, `dual_coef_` and decision values of pairs have signs opposite to the signs in SVC.
    `dual_coef_` has one row per pair of classes, whereas `dual_coef_` of SVC has ``n_classes - 1``
    rows. Negative sample weights raise an error, whereas SVC removes rows with negative weights.
    For probabilities, use scikit-learn's CalibratedClassifierCV, since there is no parameter
    `probability`.

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
        # The grid of C is taken from libsvm's guide. The tolerance in a grid search is libsvm's
        # default, which is accurate enough to rank grid points.
        {"C": ("C", tuple(2.0**k for k in range(-5, 16, 2)))},
        tol=1e-3,
    )
    sparse_input = translation_invariant = True
    #: 4: before w = 0 is returned, smaller tolerances are tried.
    version: ClassVar[int] = 4
    #: linear 6: coordinate descent ends by SMO, and is tried first for small C.
    #: poly 2, rbf 3: other working sets for more than 3000 rows.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 6, "poly": 2, "rbf": 3}
    gap_tolerance_factor = GAP_TOLERANCE_FACTOR

    C: float = parameter(
        1.0,
        positive(infinite=True),
        "Regularization parameter: penalty on slack. With infinity the margin is hard, and weights "
        "other than 0 have no effect; if no margin above 1e-6 times the largest norm of a row "
        'separates the classes, the status in `fits_` is "infeasible", and C is large and finite.',
    )
    class_weight: dict | str | None = class_weight()
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", *NATIVE),
        '"smo" is sequential minimal optimisation on the kernel matrix. "auto" is "smo", except '
        "that problems with a linear kernel, many rows and few features are solved by an "
        'interior-point method in the feature space. "libsvm" is libsvm-official, "sklearn" is '
        'its copy in scikit-learn, and "reference" is the first of the two that is installed and '
        'supports row weights. "clarabel" solves (2). "liblinear" adds b^2/2 to (1) (LinearSVC).',
    )
    tol: float = parameter(
        1e-5,
        positive(),
        "Tolerance of the KKT conditions, in units of the decision function. If the relative "
        "duality gap exceeds 100 tol, the tolerance is decreased in steps, down to tol / 8**7.",
    )
    cache_size: float | None = cache_size()
    max_iter: int = parameter(
        -1,
        Param(low=-1, integer=True),
        'Maximum number of SMO steps per pair of classes; -1 is no limit. A limit implies "smo".',
        after="tol",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.solver == "liblinear" and self.kernel != "linear":
            raise ValueError(f"SVM: solver 'liblinear' needs kernel 'linear', not {self.kernel!r}")

    def bytes_needed(self, size: TrainingSize) -> float:
        return svm_bytes(size, self.kernel == "linear", self.solver, self.cache_size)

    def _train_all(
        self,
        plan: PairPlan,
        hooks: Callable[[int], AbstractContextManager],
        indefinite: NDArray | None,
    ) -> PairModels:
        one: Any = plan.machines[0]  # `fit_pairs` may give parameters that self has not
        plain = type(self).train is SVM.train and one.max_iter < 0 and math.isfinite(one.C)
        if plain and are_solved_together(self, plan):
            return train_together(self, plan)
        return super()._train_all(plan, hooks, indefinite)

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        start = None if warm is None else warm.state
        tol = tolerance(self.tol, len(problem.y))
        if math.isinf(self.C):
            return train_hard_margin(problem, self.solver, tol, self.cache_size, self.max_iter)
        C = slack_penalties(problem, self.C, self.class_weight)
        return train_svm(problem, C, self.solver, tol, start, self.cache_size, self.max_iter)


def are_solved_together(machine: WeightedClassifier, plan: PairPlan) -> bool:
    """Whether all pairs are solved in one call: many small pairs with equal parameters."""
    one: Any = plan.machines[0]
    plain = plan.weights is None and one.class_weight is None and one.cache_size is None
    limited = machine.time_limit is not None or one.tol > machine.tol
    named = one.solver in ("auto", "smo") and machine.kernel in ("rbf", "poly")
    watched = getattr(machine, "_skl_callbacks", ())
    at_first_use = machine.kernel == "rbf" and plan.X.shape[1] <= LAZY_FEATURES
    return (
        (plain and named and not (limited or watched) and isinstance(plan.X, np.ndarray))
        and len(plan.classes) >= MANY_CLASSES
        and plan.size.n <= (MOST_PAIR_ROWS if at_first_use else MOST_SHARED_ROWS)
        and len(plan.labels) * (len(plan.classes) - 1) <= MOST_ROWS_OF_PAIRS
        and len(plan.labels) * plan.size.n / 2 <= MOST_VALUES
        and all(each is one or vars(each) == vars(one) for each in plan.machines)
    )


def train_together(
    machine: WeightedClassifier, plan: PairPlan, B: float = math.inf, fraction: float = 0.0
) -> PairModels:
    """Train the SVMs, or the RMMs with the bound `B` or `fraction`, of all pairs in one call."""
    one: Any = plan.machines[0]
    started, data = time.perf_counter(), (plan.kernels[0], plan.X, plan.labels)
    counts = np.bincount(plan.labels)
    sizes = np.add.outer(counts, counts)[np.triu_indices(len(counts), 1)]
    tol = np.where(sizes <= FEW_ROWS, tolerance(one.tol, 0), one.tol)
    found = solve_pairs(*data, one.C, tol, GAP_TOLERANCE_FACTOR, B, fraction)
    seconds = (time.perf_counter() - started) / len(plan.pairs)
    numbers = (found.objective, found.bound, found.violation, found.steps.astype(int))
    support = found.support.astype(int).tolist()
    columns = *map(np.ndarray.tolist, numbers), repeat(seconds), support
    rows = zip(*columns, combinations(plan.classes, 2), repeat("SMO"), strict=False)
    fits = [Fit(Status.OPTIMAL, *row) for row in rows]
    if fraction > 0 or math.isfinite(B):
        for fit, theta, bound in zip(fits, found.theta.tolist(), found.B.tolist(), strict=True):
            fit.extra.update(theta=theta, B=bound)
    for k in np.flatnonzero(~found.solved).tolist():
        part = slice(*found.starts[k : k + 2])
        model = train_pair(one, plan.problem(k), None)
        found.u[part], found.rows[part] = model.coef, plan.rows[k]
        fits[k], found.bias[k] = machine._judged(model.fit, fits[k].pair), model.intercept
    used = np.flatnonzero(found.u)
    ends = np.searchsorted(used, found.starts)
    shape = (len(fits), len(plan.labels))
    coefs = csr_array((found.u[used], found.rows[used], ends), shape=shape)
    coefs.sort_indices()  # rounding errors of sums depend on the order
    return PairModels(fits, found.bias, None, coefs)


def svm_bytes(size: TrainingSize, linear: bool, solver: str, cache_size: float | None) -> float:
    """Return an upper bound on the memory of `train_svm` in bytes, beside the data."""
    if solver in WHOLE_GRAM:
        return size.grams(REFERENCE_GRAMS)
    if linear and size.is_sparse(MOST_FEATURES):  # coordinate descent
        return size.products() + cache_bytes(cache_size)
    if linear and size.n >= ROWS_PER_FEATURE * size.d:
        return size.rows(2) + size.covariances(3)
    # the Gram matrix, and the linear system of Newton steps on all rows
    return size.in_parts(size.grams(3.5), cache_size)


def in_features(problem: BinaryProblem, solver: str = "auto") -> bool:
    """Whether a problem is solved in the primal feature space."""
    n, d = problem.X.shape
    many = d <= FEW_FEATURES or n >= ROWS_PER_FEATURE * d
    return many and _may_be_in_features(problem, solver)


def _may_be_in_features(problem: BinaryProblem, solver: str) -> bool:
    n, d = problem.X.shape
    return solver == "auto" and problem.is_linear and d < n and d <= MOST_FEATURES


def by_coordinates(problem: BinaryProblem, solver: str, C: float | NDArray = math.inf) -> bool:
    """Whether coordinate descent is the first solver that is tried."""
    n, d = problem.X.shape
    dense, auto = isinstance(problem.X, np.ndarray), solver == "auto" and problem.is_linear
    if not auto or d <= FEW_FEATURES or not (dense or issparse(problem.X)):
        return False
    if not dense or (n > STORED_ROWS and (n < ROWS_PER_FEATURE * d or d > MANY_FEATURES)):
        return True
    if n < COORDINATE_ROWS:
        return False
    size = row_squares(problem.X[:: n // COORDINATE_ROWS]).mean()
    return bool(FEW_FEATURES * np.max(C) * size <= d)


def rows_or_gram(
    problem: BinaryProblem,
    solver: str,
    cache_size: float | None = None,
    C: float | NDArray = math.inf,
) -> Any:
    """Return the rows if the problem is solved without a Gram matrix, else the kernel matrix."""
    if by_coordinates(problem, solver, C) or solver == "liblinear":
        return MappedRows(problem.X)
    if in_features(problem, solver):
        return _rows(problem)
    return kernel_values(problem, solver, cache_size)


def _rows(problem: BinaryProblem) -> Any:
    """Return the rows of a problem as an array, or as a linear operator if the rows are sparse."""
    X = problem.X
    return X if isinstance(X, np.ndarray | MappedRows) else MappedRows(X)


def kernel_values(
    problem: BinaryProblem, solver: str, cache_size: float | None
) -> NDArray | KernelMatrix:
    """Return the kernel matrix of a problem, as an array for solvers of other packages."""
    return problem.gram if solver in NATIVE else problem.matrix(cache_size)


def solve_dual(
    problem: BinaryProblem,
    dual: PiecewiseQP,
    C: float | NDArray,
    solver: str,
    tol: float,
    gap_tolerance: float,
    start: PiecewiseSolution | NDArray | None = None,
    B: float | None = None,
    cache_size: float | None = None,
) -> PiecewiseSolution:
    """Solve the dual of an SVM or an RMM, by a solver that depends on the kernel and the data.

    `dual` contains the rows or the Gram matrix of `rows_or_gram`, and `start` the solution, or the
    dual variables u, at a neighbouring grid point. For a small C, a solution within the gap
    tolerance may be no better than w = 0; smaller tolerances are then tried.
    """
    y, inside = problem.y, in_features(problem, solver)
    by_steps = isinstance(dual.gram, MappedRows) and isinstance(problem.X, np.ndarray)
    by_steps = by_steps or by_coordinates(problem, solver)

    def solve(tol: float, start: PiecewiseSolution | NDArray | None) -> PiecewiseSolution:
        # if the first solver finds no optimal solution, another solver continues
        first = dual
        if by_steps:
            found = solve_to_gap(dual, tol, gap_tolerance, start, solve_by_coordinates)
            if found.status is Status.OPTIMAL or time_is_up():
                return found
            first = replace(dual, gram=_rows(problem) if inside else problem.matrix(cache_size))
            start = found
        if inside:
            u = start.u if isinstance(start, PiecewiseSolution) else start
            found = solve_in_features(first, y, C, tol, gap_tolerance, B, u)
            # with many rows, a duality gap within its tolerance is enough: KKT violations are then
            # due to rounding errors
            enough = len(y) > FEW_ROWS and found.gap <= gap_tolerance
        else:
            found = solve_to_gap(first, tol, gap_tolerance, start)
            enough = not _may_be_in_features(problem, solver)
        if found.status is Status.OPTIMAL or enough or time_is_up():
            return found
        if inside:
            second = replace(dual, gram=problem.matrix(cache_size))
            other = solve_to_gap(second, tol, gap_tolerance, found)
        else:
            second = replace(dual, gram=_rows(problem))
            other = solve_in_features(second, y, C, tol, gap_tolerance, B, found.u)
        return min(found, other, key=lambda each: (each.status is not Status.OPTIMAL, each.gap))

    found = solve(tol, start)
    for factor in TOLERANCE_FACTORS[3::3]:
        closed = found.gap <= gap_tolerance and not time_is_up()
        if not (closed and dual.no_better_than_zero(found)):
            break
        last = found
        found = solve(factor * tol, last)
        found = replace(found, iterations=last.iterations + found.iterations)
    return found


def tolerance(tol: float, n_rows: int) -> float:
    """Return the KKT tolerance of a problem: `tol`, or a smaller tolerance for few rows."""
    return tol * (FEW_ROWS_FACTOR if n_rows <= FEW_ROWS else 1.0)


def train_svm(
    problem: BinaryProblem,
    C: float | NDArray,
    solver: str = "auto",
    tol: float = 1e-5,
    start: PiecewiseSolution | NDArray | None = None,
    cache_size: float | None = None,
    max_iter: int = -1,
) -> BinaryModel:
    """Train one binary SVM, and store the solution of the dual (2) as `state` of the model.

    `C` is a number or an array with one value per row. `start` is the solution for another C, or
    its dual variables u; for a smaller C, it is also optimal if all ``|u_i|`` are below that C.
    `max_iter` limits the SMO steps; -1 means no limit.
    """
    y, gap_tolerance = problem.y, GAP_TOLERANCE_FACTOR * tol
    solver = solver if max_iter < 0 else "smo"
    dual = svm_dual(rows_or_gram(problem, solver, cache_size, C), y, C)
    started = time.perf_counter()
    if max_iter >= 0:
        left = max_iter

        def limited(dual: PiecewiseQP, start: Any, tol: float) -> PiecewiseSolution:
            nonlocal left
            found = solve_smo(dual, start, tol, left)
            left -= found.iterations
            return found

        found = solve_to_gap(dual, tol, gap_tolerance, start, limited)
    elif solver == "clarabel":
        found = solve_by_clarabel(dual)
    elif solver == "liblinear":
        from mmbench.solvers.libsvm_ import solve_liblinear

        found = solve_liblinear(dual, problem.X, y, C, tol)
    elif solver in NATIVE:
        from mmbench.solvers.libsvm_ import solve_libsvm

        found = solve_to_gap(
            dual,
            tol,
            gap_tolerance,
            solve=lambda dual, _, tol: solve_libsvm(dual, y, C, tol, solver),
            # smaller tolerances are out of reach, since libsvm stores kernel values in float32
            factors=TOLERANCE_FACTORS[:3],
        )
    else:
        found = solve_dual(
            problem, dual, C, solver, tol, gap_tolerance, start, cache_size=cache_size
        )
    return certified(dual, found, tol, time.perf_counter() - started)


def solve_by_clarabel(dual: PiecewiseQP) -> PiecewiseSolution:
    """Solve the dual (2) by the solver Clarabel, on the dense kernel matrix."""
    from mmbench.solvers.clarabel_ import solve_qp

    found = solve_qp(
        P=sparse.csc_array(dual.gram),
        q=dual.slopes[:, 0],
        A=sparse.csc_array(np.ones((1, len(dual.knots)))),
        b=np.zeros(1),
        lower=dual.knots[:, 0],
        upper=dual.knots[:, 1],
    )
    u, bias = dual.feasible(found.x), float(found.multipliers[0])
    # a status such as "infeasible" is replaced, since the dual is feasible and bounded
    status = found.status if found.status in (Status.OPTIMAL, *UNPROVEN) else Status.INACCURATE
    return dual.solution(u, dual.gram @ u, bias, found.iterations, status, route="Clarabel")


def train_hard_margin(
    problem: BinaryProblem, solver: str, tol: float, cache_size: float | None, max_iter: int
) -> BinaryModel:
    """Train one binary SVM without slack, by trainings with increasing finite values of C.

    A solution with all ``|u_i|`` below C is optimal for all larger C. Every feasible u of (2)
    defines a point in the convex hull of each class; half their distance, ``||w|| / sum_i |u_i|``,
    is an upper bound on the margin.
    """
    y, model, iterations = problem.y, None, 0
    diagonal = svm_dual(rows_or_gram(problem, solver, cache_size), y, 1.0).diagonal()
    radius = float(np.sqrt(diagonal.max())) or 1.0
    for C in HARD_MARGIN_PENALTIES:
        C = C / radius**2
        start = None if model is None else model.state
        model = train_svm(problem, C, solver, tol, start, cache_size, max_iter)
        iterations += model.fit.iterations
        u, f = model.state.u, model.state.f
        norm, least = float(np.sqrt(max(0.0, u @ model.state.decision))), float((y * f).min())
        if least > 0 and np.abs(u).max() < C:
            factor = 1.0 / least  # w and b times `factor` have margins y_i f(x_i) >= 1
            objective = 0.5 * (factor * model.state.scale * norm) ** 2
            fit = replace(model.fit, objective=objective, iterations=iterations)
            w = None if model.w is None else factor * model.w
            coef, intercept = factor * np.asarray(model.coef), factor * model.intercept
            return replace(model, intercept=intercept, fit=fit, coef=coef, w=w)
        margin = norm / float(np.abs(u).sum())
        limited = model.fit.status is Status.ITERATION_LIMIT or time_is_up()
        if margin <= LEAST_MARGIN_SHARE * radius or limited:
            break
    assert model is not None
    fit = replace(model.fit, objective=math.inf, iterations=iterations)
    if margin <= LEAST_MARGIN_SHARE * radius:
        reason = f"no margin above {margin:.0e} separates the classes"
        fit = replace(fit, status=Status.INFEASIBLE, extra={"reason": reason})
    return replace(model, fit=fit)


def certified(
    dual: PiecewiseQP, state: PiecewiseSolution, tol: float, seconds: float
) -> BinaryModel:
    """Return the model of a solution of the dual, with its certificate.

    If large terms of ``u'Ku`` cancel, the duality gap of an optimal solution may exceed its
    tolerance because of rounding errors. In this case, ``extra["reason"]`` states the size of the
    rounding errors.
    """
    gap_tolerance = GAP_TOLERANCE_FACTOR * tol
    found = dual.constant_if_unresolved(state, tol, gap_tolerance)
    # if u is not zero, an objective of 0 is a rounding error, and is replaced by the bound on the
    # rounding error
    objective = -found.bound or (found.rounding if found.u.any() else 0.0)
    open_gap = relative_gap(objective, -found.value) > gap_tolerance
    unproven = open_gap and found.rounding > gap_tolerance * objective
    reason = f"rounding errors of the dual value are up to {found.rounding:.0e}; scale the data"
    fit = Fit(
        status=found.status,
        objective=objective,
        bound=0.0 - found.value,
        max_violation=found.violation,
        iterations=found.iterations,
        seconds=seconds,
        n_support=int(np.count_nonzero(found.u)),
        route=found.route,
        extra={"reason": reason} if unproven else {},
    )
    w = None if found.weights is None else found.scale * found.weights
    return BinaryModel(
        intercept=found.scale * found.bias, fit=fit, coef=found.scale * found.u, w=w, state=state
    )


def svm_dual(gram: NDArray | KernelMatrix, y: NDArray, C: float | NDArray) -> PiecewiseQP:
    """Return the dual (2) as a minimisation.

    The dual variable u_i has the cost ``-y_i u_i`` between 0 and ``y_i C``.
    """
    ends = np.sort(np.column_stack([0 * y, C * y]), axis=1)
    return PiecewiseQP(gram, ends, -y[:, None])
