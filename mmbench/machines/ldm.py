"""The large margin distribution machine (LDM; Zhang and Zhou, KDD 2014).

    min over w      1/2 ||w||^2 + lambda_1 V(w) - lambda_2 M(w) + C sum_i xi_i               (P)
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,   f(x) = w'phi(x)

M(w) is the mean of the margins ``y_i f(x_i)``, V(w) twice their variance (divisor n), as in the
program of the authors. A constant feature takes the place of the bias. With the mean zbar and the
covariance S of ``z_i = y_i phi(x_i)``, and ``M = I + 4 lambda_1 S``, the dual problem is

    max over beta   sum_i beta_i - 1/2 v'Hv   subject to  0 <= beta_i <= C                   (D)
    H_ij = z_i' M^-1 z_j,   v_i = beta_i + lambda_2 / n,   w = M^-1 sum_i v_i z_i

With row weights, ``lambda_2 s_i / sum_j s_j`` replaces ``lambda_2 / n``. (D) is the dual of an SVM
without bias on ``M^(-1/2) z_i``, with the constant ``lambda_2 zbar' M^-1 z_i`` in the decision of
row i; `Fit.route` is its algorithm. Two rows of zeros with labels 1 and -1, and the sum of all
penalties as their penalty, take up the sum of the dual variables, which an SVM requires to be zero.
One eigendecomposition of S serves the grid.

    Fit.route                      when, for n rows, k coordinates        cost
    active set, interior point     k < n, and k <= 64 or n >= 4 k         n k^2 per iteration
    SMO, SMO on working sets       otherwise, or after the others failed  n^2 k for H, n per step
    Clarabel                       solver="reference"                     n^3 per iteration

With a nonlinear kernel, k is about n. The paper's coordinate descent on (D) converges slowly for
large C, and takes two to three times as long as SMO at C = 0.1 (German).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import Param, choice, class_weight, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.variance import dual_bound, primal_objective
from mmbench.machines.kernel_pca import NO_VARIANCE, spectrum
from mmbench.machines.svm import (
    GAP_TOLERANCE_FACTOR,
    ROWS_PER_FEATURE,
    SVM,
    in_features,
    rows_or_gram,
    solve_dual,
    svm_dual,
    tolerance,
)
from mmbench.memory import TrainingSize

#: The grid of lambda_1 and lambda_2: every second power of two in the range of the paper.
LAMBDAS = tuple(2.0**k for k in range(-8, -1, 2))

#: Upper bound on the tolerance of Clarabel, the reference solver.
REFERENCE_TOLERANCE = 1e-9


class LDM(WeightedClassifier):
    """Large margin distribution machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of (P) at the returned w, and
        `bound` is the value of (D) at a feasible point. The optimum lies between `bound` and
        `objective`. `n_support` is the number of rows with a non-zero dual variable beta_i.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of w over the training rows, for kernels other than ``linear``.
    support_, support_vectors_ : ndarray
        Indices and features of the rows with a non-zero coefficient, for kernels other than
        ``linear``. Usually, all training rows have non-zero coefficients, since each row
        contributes to the mean and the variance of the margins.
    intercept_ : ndarray of shape (n_pairs,)
        Product of the constant feature and its weight; 0 without a constant feature.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import LDM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LDM(C=10, lambda_1=0.1, lambda_2=0.1, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    #: linear 1: version 6 of ``linear`` in `SVM`.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 1}
    search_space: ClassVar[SearchSpace] = SVM.search_space.extended(
        {"lambda_1": ("lambda_1", LAMBDAS), "lambda_2": ("lambda_2", LAMBDAS)},
        prefer={**SVM.search_space.prefer, "lambda_1": "small", "lambda_2": "small"},
        single_precision=False,
    )
    gap_tolerance_factor = SVM.gap_tolerance_factor

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    lambda_1: float = parameter(
        0.0625, Param(low=0), "Penalty on the variance of the margins in (P); 0 for no penalty."
    )
    lambda_2: float = parameter(
        0.0625, Param(low=0), "Reward for the mean of the margins in (P); 0 for no reward."
    )
    constant: float = parameter(
        0.0,
        Param(low=0),
        "Constant feature in place of a bias term. With 0, as in the paper, the hyperplane "
        "contains the origin of the feature space.",
    )
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" is sequential minimal optimisation on the matrix H of (D). "auto" is "smo", or an '
        "interior-point method without this matrix for many rows with few coordinates. "
        '"reference" is Clarabel for (D).',
    )
    tol: float = SVM.parameters["tol"]

    def bytes_needed(self, size: TrainingSize) -> float:
        if self._in_features(size, ROWS_PER_FEATURE):
            return size.rows(6) + size.covariances(3)
        # the Gram matrix, the Gram matrix of the z_i, its centred copy, its eigenvectors, two
        # copies of the coordinates, H, and the linear system of Newton steps
        return self._gram_bytes(size, 4 if self.kernel == "linear" else 8) + size.rows(3)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every grid point, with one eigendecomposition for all grid points.

        Trainings are in ascending order of lambda_1, lambda_2 and C, and each training starts at
        the previous solution.
        """
        if any(set(point) - set(Penalties._fields) for point in points):
            return super().train_path(problem, points)
        own = {name: getattr(self, name) for name in Penalties._fields}
        values = [Penalties(**{**own, **point}) for point in points]
        tol, started = tolerance(self.tol, len(problem.y)), time.perf_counter()
        weights = row_weights(problem, self.class_weight)
        margins = Margins.of(problem, weights, self.constant)
        if self.solver != "reference":
            _ = margins.coordinates
        shared = (time.perf_counter() - started) / len(points)
        models: dict[int, BinaryModel] = {}
        start = None
        for k in sorted(range(len(points)), key=values.__getitem__):
            started = time.perf_counter()
            if self.solver == "reference":
                found = solve_by_clarabel(margins, values[k], tol)
            else:
                found = solve(margins, values[k], self.solver, tol, start)
                start = found.beta
            model = certified(problem, margins, values[k], found)
            seconds = time.perf_counter() - started + shared
            models[k] = replace(model, fit=replace(model.fit, seconds=seconds))
        return [models[k] for k in range(len(points))]


class Penalties(NamedTuple):
    """The penalties of (P), in the order in which trainings take place."""

    lambda_1: float
    lambda_2: float
    C: float


@dataclass(frozen=True)
class Margins:
    """The vectors ``z_i = y_i phi(x_i)``, whose products with w are the margins."""

    #: The vectors z_i with the labels 1: their features for a linear kernel, else their Gram
    #: matrix.
    problem: BinaryProblem
    #: Row weights s_i; None if all are 1.
    weights: NDArray | None
    #: Row weights divided by their sum, shape (n,).
    shares: NDArray
    #: Constant feature, or 0.
    constant: float

    @classmethod
    def of(cls, problem: BinaryProblem, weights: NDArray | None, constant: float) -> Margins:
        """Return the vectors z_i of a training problem."""
        y, ones = problem.y, np.ones(len(problem.y))
        shares = ones / len(y) if weights is None else weights / weights.sum()
        if problem.kernel.name == "linear":
            X = np.column_stack([problem.X, constant * ones]) if constant else problem.X
            own = BinaryProblem(y[:, None] * X, ones, problem.kernel)
            return cls(own, weights, shares, constant)
        gram = problem.copied_gram()
        gram += constant**2
        gram *= y
        gram *= y[:, None]
        own = BinaryProblem(problem.X, ones, problem.kernel, gram)
        return cls(own, weights, shares, constant)

    @property
    def factors(self) -> NDArray:
        """Row weights s_i, also if all are 1. Shape (n,)."""
        return np.ones(len(self.shares)) if self.weights is None else self.weights

    @cached_property
    def coordinates(self) -> Coordinates:
        """Coordinates in which the covariance S of the vectors z_i is diagonal."""
        scatter = spectrum(self.problem, weights=self.weights)
        mean = scatter.origin @ scatter.basis  # coordinates of zbar in the principal directions
        # zbar has a part that is orthogonal to the principal directions. In the direction of this
        # part, all vectors z_i have the same coordinate, and their variance is zero.
        rows, variances, basis = scatter.rows + mean, scatter.variances, None
        if scatter.linear:
            rest, basis = scatter.origin - scatter.basis @ mean, scatter.basis
            square, total = float(rest @ rest), float(scatter.origin @ scatter.origin)
        else:
            total = float(self.shares @ scatter.origin)
            square = total - float(mean @ mean)
        if square > NO_VARIANCE * max(total, float(variances[0])):
            length = np.sqrt(square)
            rows = np.column_stack([rows, np.full(len(rows), length)])
            variances = np.append(variances, 0.0)
            basis = None if basis is None else np.column_stack([basis, rest / length])
        return Coordinates(rows, variances, basis)


@dataclass(frozen=True)
class Coordinates:
    """The vectors z_i in orthonormal coordinates, in which their covariance S is diagonal."""

    #: Coordinates, shape (n, k).
    rows: NDArray
    #: Diagonal of S, shape (k,).
    variances: NDArray
    #: Directions of the coordinates for a linear kernel, shape (n_features, k); else None.
    basis: NDArray | None


@dataclass(frozen=True)
class Solution:
    """A solution of (D): the dual variables beta, and the weights w or their coefficients."""

    #: Dual variables; each beta_i is between 0 and ``C s_i``. Shape (n,).
    beta: NDArray
    #: Weights w of a linear machine, or coefficients of the vectors z_i, as a field of a model.
    own: dict[str, NDArray]
    iterations: int
    status: Status
    route: str


def solve(
    margins: Margins, penalties: Penalties, solver: str, tol: float, start: NDArray | None
) -> Solution:
    """Solve (D) as the dual of an SVM without bias term, from the dual variables `start`."""
    lambda_1, lambda_2, C = penalties
    at, s, p = margins.coordinates, margins.factors, margins.shares
    metric = 1.0 / (1.0 + 4.0 * lambda_1 * at.variances)  # diagonal of M^-1
    rows = np.sqrt(metric) * at.rows
    fixed = rows.T @ (lambda_2 * p)
    total = C * float(s.sum())
    y = np.append(np.ones(len(s) + 1), -1.0)
    twin = BinaryProblem(np.vstack([rows, np.zeros((2, rows.shape[1]))]), y, Kernel("linear"))
    solver = solver if in_features(twin, solver) else "smo"
    upper = np.append(C * s, [total, total])
    dual = svm_dual(rows_or_gram(twin, solver), y, upper)
    dual = replace(dual, slopes=np.append(rows @ fixed - 1.0, [0.0, 0.0])[:, None])
    u = None if start is None else np.append(np.minimum(start, C * s), [0.0, 0.0])
    if u is not None:
        u[-1] = -u.sum()
    found = solve_dual(twin, dual, upper, solver, tol, GAP_TOLERANCE_FACTOR * tol, u)
    beta = found.u[:-2]
    v = beta + lambda_2 * p
    if at.basis is not None:
        scaled = rows.T @ beta if found.weights is None else found.weights
        own = {"w": at.basis @ (np.sqrt(metric) * (scaled + fixed))}
    else:
        # M w = sum_i v_i z_i gives the coefficients of w without a division by small variances
        m = found.decision[:-2] + rows @ fixed
        own = {"coef": v - 4.0 * lambda_1 * p * (m - p @ m)}
    return Solution(beta, own, found.iterations, found.status, found.route)


def solve_by_clarabel(margins: Margins, penalties: Penalties, tol: float) -> Solution:
    """Solve (D) by the solver Clarabel, with H from a linear system with the Gram matrix."""
    from mmbench.solvers.clarabel_ import solve_qp

    lambda_1, lambda_2, C = penalties
    gram, p, n = margins.problem.gram, margins.shares, len(margins.shares)
    # with the Gram matrix G of the z_i, their covariance has the coefficients A = diag(p) - pp'
    system = np.eye(n) + 4.0 * lambda_1 * (p[:, None] * gram - np.outer(p, p @ gram))
    H = np.linalg.solve(system.T, gram)
    H = 0.5 * (H + H.T)
    found = solve_qp(
        P=sparse.csc_array(H),
        q=lambda_2 * (H @ p) - 1.0,
        A=sparse.csc_array((0, n)),
        b=np.zeros(0),
        lower=np.zeros(n),
        upper=C * margins.factors,
        tol=min(tol, REFERENCE_TOLERANCE),
    )
    beta = np.clip(found.x, 0.0, C * margins.factors)
    coef = np.linalg.solve(system, beta + lambda_2 * p)
    return Solution(beta, {"coef": coef}, found.iterations, found.status, "Clarabel")


def certified(
    problem: BinaryProblem, margins: Margins, penalties: Penalties, found: Solution
) -> BinaryModel:
    """Return the model of a solution of (D), with its certificate."""
    lambda_1, lambda_2, C = penalties
    p, weights, c = margins.shares, margins.weights, 4.0 * lambda_1
    none = Fit(Status.OPTIMAL, 0.0, 0.0, 0.0)
    own = BinaryModel(0.0, none, **found.own)
    m = margins.problem.X @ own.w if own.w is not None else margins.problem.gram @ own.coef
    objective = primal_objective(margins.problem, own, 1.0, c, C, weights)
    objective -= lambda_2 * float(p @ m)
    v = found.beta + lambda_2 * p
    bound = dual_bound(margins.problem, v, own, 1.0, c, weights) - lambda_2
    n_support = int(np.count_nonzero(found.beta))
    numbers = objective, bound, 0.0, found.iterations
    fit = Fit(found.status, *numbers, n_support=n_support, route=found.route)
    if own.w is not None and margins.constant:
        return BinaryModel(margins.constant * float(own.w[-1]), fit, w=own.w[:-1])
    coef = None if own.coef is None else problem.y * own.coef
    intercept = 0.0 if coef is None else margins.constant**2 * float(coef.sum())
    return BinaryModel(intercept, fit, coef=coef, w=own.w)
