"""The least squares SVM, with the equality-constrained MAMC (EMAMC) as a special case.

    min over w, b   1/2 w'w + C/2 sum_i xi_i^2    subject to   y_i f(x_i) = 1 - xi_i    (30), (31)

(Suykens, Vandewalle 1999; Abe, ANNPR 2016.) The average margin in Abe's objective only rescales
(w, b), and is omitted. With the matrix Phi of the M rows phi(x_i)', the Gram matrix G = Phi Phi',
and dual variables a, the systems (36), (37) and its dual are

    (I/C + Phi'Phi) w + Phi'1 b = Phi'y,    1'Phi w + M b = 1'y
    (I/C + G) a + 1 b = y,                  1'a = 0,          w = Phi'a

where ``reading="gram"`` (LS-SVM) has the feature map of the kernel, G = K, and "empirical" (EMAMC)
has ``phi(x) = (k(x, x_1), ..., k(x, x_M))'`` as printed in (32), G = K K'. Row weights s replace
I/C by ``diag(1/(C s))`` and, in (32), ``k(x, x_m)`` by ``sqrt(s_m) k(x, x_m)``.

    Fit.route              condition                              cost per C: n rows, d features
    Cholesky in features   linear, two rows per feature           d^3 + n d
    conjugate gradients    linear, sparse rows, n and d > 5000    10 to 1000 products
    Cholesky               otherwise; eigenvectors of K for (32)  n^3 / 3
                           and 1/C below rounding errors
    printed system         solver="reference"                     n^3

Times: `benchmarks/peers.py`. On dense rows, the time of conjugate gradients relative to "Cholesky"
depends on C, from 0.3 (C <= 1) to 6 (C = 100) on MNIST.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import choice, class_weight, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit, refused
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.kernel_pca import ROWS_PER_FEATURE, gram_by_features
from mmbench.memory import TrainingSize
from mmbench.solvers.ridge import (
    FeatureGram,
    Gram,
    scaled,
    solve_by_products,
    solve_path,
    solve_printed,
    solve_weights,
)

#: For sparse rows with a linear kernel, conjugate gradients are used if the numbers of rows and of
#: features exceed MOST_FEATURES. They need only products with the rows.
MOST_FEATURES = 5000

#: The paper's grid of C.
COSTS = (0.1, 1, 10, 50, 100, 500, 1000, 2000)

#: A solution has the status "failed" if its objective exceeds the objective at w = 0 by more than
#: the fraction ROUNDING.
ROUNDING = 1e-9


class LSSVM(WeightedClassifier):
    """Least squares support vector machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of (30) at the returned w and
        b, without the average margin. `bound` is the dual objective ``y'a - 1/2 a'(G + I/C)a`` at
        the dual variables a, which are first centred to ``1'a = 0``. `max_violation` is the largest
        residual of the dual system. With ``reading="empirical"``, or with a linear kernel and few
        features, `max_violation` is the larger of two residuals: the residual of (36), relative to
        the largest entry of Phi'y, and the residual of ``1'a = 0``. If rows have weights,
        `max_violation` is computed for rows multiplied by the square roots of their weights.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of each pair, for kernels other than ``linear``. The coefficients are the dual
        variables a if ``reading="gram"``, and the weights w if ``reading="empirical"``. If
        ``reading="empirical"`` and rows have weights, each w_i is multiplied by the square root of
        the weight of row i.
    support_, support_vectors_ : ndarray
        Indices and features of the training rows with a non-zero coefficient, for kernels other
        than ``linear``. Usually, all training rows have non-zero coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import LSSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = LSSVM(C=10, gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"C": ("C", COSTS)},
        tol=1e-3,
        # with kernel values in float32, decision values on the data sets German and Image change by
        # 0.007 at C = 2000
        single_precision=False,
    )
    sparse_input = True
    #: 3: the reference solver of the EMAMC solves a least squares problem.
    version: ClassVar[int] = 3

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on squared errors.")
    class_weight: dict | str | None = class_weight()
    reading: str = parameter(
        "gram",
        choice("gram", "empirical"),
        'Interpretation of the feature map: "gram" is the usual LS-SVM with kernel k; "empirical" '
        "is the EMAMC with the feature map (32), whose kernel is ``sum_m k(x, x_m) k(z, x_m)``.",
    )
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        '"auto" computes one Cholesky factorisation per C; "reference" solves the printed '
        "system, with (32) as the least squares problem whose normal equations it contains.",
    )
    tol: float = parameter(
        1e-6, positive(), "Maximum relative gap and violation of an optimal solution."
    )

    @property
    def translation_invariant(self) -> bool:  # type: ignore[override]
        """Whether a linear machine makes the same predictions after a translation of all rows."""
        return self.reading == "gram"

    def bytes_needed(self, size: TrainingSize) -> float:
        weighted = size.weighted or self.class_weight is not None  # needs a weighted copy
        plain = self.reading != "empirical" and self.solver != "reference"
        if self.kernel == "linear" and plain and size.is_sparse(MOST_FEATURES):
            return size.products()
        if self._in_features(size, ROWS_PER_FEATURE):
            return size.rows(weighted if plain else 2 + weighted) + size.covariances(3)
        # K and a Cholesky factor, and the product K K if reading="empirical"
        return self._gram_bytes(size, 3 + weighted - plain)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at all grid points, and compute the Gram matrix and its square only once."""
        if any(set(point) - {"C"} for point in points):
            return super().train_path(problem, points)
        costs = [point.get("C", self.C) for point in points]
        weights = row_weights(problem, self.class_weight)
        reference, squared = self.solver == "reference", self.reading == "empirical"
        # of many sparse rows, no n x n or d x d array is stored
        large = issparse(problem.X) and min(problem.X.shape) > MOST_FEATURES
        iterative = large and not (reference or squared) and problem.is_linear
        gram: Gram
        if iterative:
            gram = FeatureGram(problem.X)
        else:
            gram = problem.copied_gram() if reference else gram_by_features(problem)
        started = time.perf_counter()
        root = np.ones(len(problem.y)) if weights is None else np.sqrt(weights)
        gram, y = gram if weights is None else scaled(gram, root), root * problem.y
        route = "Cholesky in features" if isinstance(gram, FeatureGram) else "Cholesky"
        rows: Any = gram
        if isinstance(gram, FeatureGram) and not squared:
            rows, a = gram.features, None
            if iterative:
                route, (coef, b) = "conjugate gradients", solve_by_products(rows, y, costs, root)
            else:
                coef, b = solve_weights(rows, y, costs, root)
            given = [{"w": w} for w in coef.T]
        else:
            if reference:
                route, found = "printed system", solve_printed(gram, y, costs, squared, root)
            else:
                found = solve_path(gram, y, costs, squared, root, self.tol)
            coef, b, a = found.coef, found.b, found.a
            given = [{"coef": root * own} for own in coef.T]
            if problem.kernel.name == "linear" and not squared:
                # a'Ka loses the digits of the weights w, with which the machine predicts
                rows = problem.X
                rows = rows if weights is None else scaled(FeatureGram(rows), root).features  # type: ignore[union-attr]
                a = None
                coef = rows.T @ coef
                given = [{**own, "w": w} for own, w in zip(given, coef.T, strict=True)]
        fits = _certificates(rows, y, root, np.array(costs), coef, b, a, squared or a is None)
        seconds = (time.perf_counter() - started) / len(costs)
        return [
            BinaryModel(intercept=float(one), fit=replace(fit, seconds=seconds, route=route), **own)
            for one, fit, own in zip(b, fits, given, strict=True)
        ]


def _certificates(
    rows: Any,
    y: NDArray,
    root: NDArray,
    costs: NDArray,
    coef: NDArray,
    b: NDArray,
    a: NDArray | None,
    of_weights: bool,
) -> list[Fit]:
    """Return the certificates for all values of C, computed together by matrix products.

    `rows` and `y` are multiplied by the square roots `root` of the row weights, and `coef` contains
    the weights w if `of_weights` is true, else the dual variables a.
    """
    image = rows @ coef
    errors = y[:, None] - image - np.outer(root, b)  # `root` replaces the vector of ones in (37)
    # with F = `rows`, ``a = C (y - F w - b)`` satisfies the first equation of the dual system
    # exactly, and the residual of ``w = F'a`` is C times the residual of (36)
    given, a = a is not None, costs * errors if a is None else a
    shares = (root @ a) / (root @ root)
    centred = a - np.outer(root, shares)  # `centred` satisfies the dual constraint root'a = 0
    if of_weights:
        columns = [centred, errors, y[:, None]]
        if given:  # of K K', a product of several columns has larger rounding errors
            back, gradient, target = (rows.T @ own for own in columns)
        else:  # one pass over the rows
            ends = [len(costs), 2 * len(costs)]
            back, gradient, target = np.split(rows.T @ np.hstack(columns), ends, axis=1)
        norms, dual_norms = _inner(coef, coef), _inner(back, back)
        residual = gradient - coef / costs  # residual of (36)
        residual /= np.abs(target).max() or 1.0
    else:
        norms = _inner(coef, image)
        dual_norms = _inner(centred, image - np.outer(rows @ root, shares))
        residual = errors - a / costs
    objective = 0.5 * norms + 0.5 * costs * _inner(errors, errors)
    bound = y @ centred - 0.5 * dual_norms - 0.5 * _inner(centred, centred) / costs
    balance = np.abs(root @ a) / np.maximum(1.0, root @ np.abs(a))
    violation = np.maximum(np.abs(residual).max(axis=0), balance)
    # objective values at w = 0 with the optimal b
    at_zero = 0.5 * costs * (y @ y - (root @ y) ** 2 / (root @ root))
    fits = []
    for k in range(len(costs)):
        fit = Fit(
            status=Status.OPTIMAL,
            objective=float(objective[k]),
            bound=float(bound[k]),
            max_violation=float(violation[k]),
            n_support=int(np.count_nonzero(a[:, k])),
        )
        worse = fit.objective > at_zero[k] * (1 + ROUNDING)
        reason = "by rounding the solution is worse than w = 0"
        fits.append(refused(fit, reason) if worse else fit)
    return fits


def _inner(left: NDArray, right: NDArray) -> NDArray:
    """Return the inner products of the corresponding columns of two arrays."""
    return np.einsum("ij,ij->j", left, right)
