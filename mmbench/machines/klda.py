"""Kernel Fisher discriminant analysis with a ridge (Mika et al., IEEE NNSP, 1999).

    min over w   1/2 w'Nw + eta/2 ||w||^2 - w'(m+ - m-)

In feature space, m+ and m- are the class means, and N is the scatter matrix within the classes,
without a factor 1/n. The eta here is the parameter `eta` times ``tr(K)/n``. The optimal w is
``sum_i a_i phi(x_i)`` with the n_c columns K_c of the Gram matrix K of class c in

    a = (N_K + eta K)^-1 (m_+ - m_-),    N_K = sum_c K_c (I - 11'/n_c) K_c',   m_c = K_c 1 / n_c

Class weights change only b: in N, they would shrink the scatter of training rows, not of new ones.
The least squares SVM with C = 1/eta has N plus ``(n+ n- / n) (m+ - m-)(m+ - m-)'``, so its w is a
multiple of this w, and both use one solver.

    Fit.route              condition                             cost per eta: n rows, d features
    Cholesky in features   linear or poly of degree 1, two rows  d^3 + n d
                           per feature
    Cholesky               otherwise                             n^3 / 3, less from 2000 rows on
                                                                 (`mmbench.solvers.ridge`)
    printed system         solver="reference"                    n^3
    equal means            the class means are equal: w = 0

Times: `benchmarks/peers.py`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from mmbench.errors import Status
from mmbench.kernels import row_squares
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import (
    choice,
    class_weight,
    kernel_scaling,
    parameter,
    positive,
)
from mmbench.machines.base.problem import (
    BinaryModel,
    BinaryProblem,
    Fit,
    around,
    far_origin,
    linear_weights,
    refused,
)
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.threshold import optimal_bias
from mmbench.machines.kernel_pca import ROWS_PER_FEATURE, gram_by_features
from mmbench.memory import TrainingSize
from mmbench.solvers.ridge import FeatureGram, Gram, scaled, solve_path, solve_weights


class KLDA(WeightedClassifier):
    """Regularised kernel Fisher discriminant, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of ``1/2 w'Nw + eta/2 ||w||^2
        - w'(m+ - m-)``. Let r be the gradient of the objective at the returned w. `bound` is
        ``objective - ||r||^2 / (2 eta)``, a lower bound on the minimum of the objective.
        `max_violation` is ``||r|| / ||m+ - m-||``. If the class means are equal, w = 0 and the
        status is ``trivial``.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients a of each pair, for kernels other than ``linear``.
    support_, support_vectors_ : ndarray
        Indices and features of the training rows with a non-zero coefficient, for kernels other
        than ``linear``. Usually, all training rows have non-zero coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import KLDA
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = KLDA(gamma=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.96
    """

    search_space: ClassVar[SearchSpace] = WeightedClassifier.search_space.extended(
        {"eta": ("eta", tuple(10.0**k for k in range(-6, 2)))},
        prefer={"eta": "large", **WeightedClassifier.search_space.prefer},
        tol=1e-3,
        single_precision=False,  # a ridge of 1e-6 is below the rounding errors of float32
    )

    eta: float = parameter(
        1e-3, positive(), "Ridge, relative to the mean diagonal entry ``tr(K)/n`` of the matrix."
    )
    class_weight: dict | str | None = class_weight(after="eta")
    bias: str = parameter(
        "optimized",
        choice("optimized", "midpoint"),
        'Rule for b: "midpoint" of the projected class means; "optimized" (MAMC paper) has the '
        "fewest training errors among midpoints between neighbouring rows of different classes.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        '"auto" computes a Cholesky factorisation per eta; "reference" solves the paper\'s system.',
    )
    tol: float = parameter(
        1e-6, positive(), "Maximum relative gap and residual of an optimal solution."
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        weighted = size.weighted or self.class_weight is not None  # needs a weighted copy
        if self._in_features(size, ROWS_PER_FEATURE):
            return size.rows(1 + weighted) + size.covariances(3)
        return self._gram_bytes(size, 2 + weighted)  # the Gram matrix and its Cholesky factor

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at all grid points, with the ridge ``eta tr(K)/n``."""
        if any(set(point) - {"eta"} for point in points):
            return super().train_path(problem, points)
        etas = [point.get("eta", self.eta) for point in points]
        origin, stated = None, problem
        if type(problem) is BinaryProblem and self.kernel == "linear":
            # only the ridge depends on the origin, and far from it a Gram matrix loses digits
            origin = far_origin(problem.X)
            problem = replace(problem, X=around(problem.X, origin))
        errors, reference = row_weights(problem, self.class_weight), self.solver == "reference"
        gram = problem.copied_gram() if reference else gram_by_features(problem)
        started = time.perf_counter()
        rows = _Rows(gram, problem.y, problem.weights)
        gram, delta = rows.gram, rows.delta
        # `level` is 1 if all rows are 0, since w is then 0 for any ridge
        level = float(gram.trace()) / sum(rows.totals) or 1.0
        ridges = level * np.array(etas)
        if origin is not None:
            squares = stated.kernel.apply(row_squares(stated.X)[None])[0]
            ridges *= float(np.average(squares, weights=stated.weights)) / level
        status, route, features = Status.OPTIMAL, "Cholesky", None
        if isinstance(gram, FeatureGram):
            route, features = "Cholesky in features", gram.features
        if delta @ (gram @ delta) <= len(rows.y) * np.finfo(float).eps * level:
            status, route, features = Status.TRIVIAL, "equal means", None
            coef = np.zeros((len(rows.y), len(etas)))
        elif reference:
            # The solved system is (P K + eta I) a = delta, where P subtracts the mean of each
            # class. The paper prints it multiplied by K, with no unique solution if K is singular.
            route, eye = "printed system", np.eye(len(rows.y))
            printed = rows.centred(np.asarray(gram))
            coef = np.column_stack([np.linalg.solve(printed + eta * eye, delta) for eta in ridges])
        elif (mapped := _features_of_degree_one(problem)) is not None:
            # the constant feature has no influence, since each class has the same mean of it; the
            # first equation of the printed system gives the coefficients of the rows
            route, mapped = "Cholesky in features", rows.root[:, None] * mapped
            image = mapped @ _solve_by_least_squares(rows, mapped, ridges, self.tol)
            coef = (delta[:, None] - rows.centred(image)) / ridges
        else:
            coef = _solve_by_least_squares(rows, features, ridges, self.tol)
        models = _certified(rows, ridges, coef, self.bias, errors, features)
        seconds = (time.perf_counter() - started) / len(etas)
        for model in models:
            model.fit = replace(model.fit, seconds=seconds, status=status, route=route)
            if origin is not None:
                model.w = linear_weights(problem.X, model)
                model.intercept -= float(model.w @ origin)
            if model.fit.objective > 0:  # the objective value at w = 0 is 0
                model.fit = refused(model.fit, "by rounding the solution is worse than w = 0")
        return models

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.class_weight is not None and self.bias != "optimized":
            raise ValueError('KLDA: class_weight needs bias="optimized", which counts errors')


class _Rows:
    """The training rows multiplied by the square roots of their weights."""

    def __init__(self, gram: Gram, y: NDArray, weights: NDArray | None):
        # `root` replaces the vector of ones in all formulas
        self.y, self.root = y, np.ones(len(y)) if weights is None else np.sqrt(weights)
        self.gram = gram if weights is None else scaled(gram, self.root)
        # `sides` contains, for the positive and the negative class, `root` with zeros at the rows
        # of the other class; `totals` contains the total weights of the two classes
        self.sides = self.root * (y > 0), self.root * (y < 0)
        self.totals = [float(side @ side) for side in self.sides]
        #: Coefficients of the rows in the difference ``m+ - m-`` of the class means, shape
        #: (n_samples,).
        self.delta = self.sides[0] / self.totals[0] - self.sides[1] / self.totals[1]

    def centred(self, columns: NDArray) -> NDArray:
        """Subtract the class means from the columns of an array.

        A column ``root v`` becomes ``root (v - m)``, with the weighted mean m_i of v over the class
        of row i.
        """
        out = columns.copy()
        for side, total in zip(self.sides, self.totals, strict=True):
            out -= np.outer(side, side @ columns / total)
        return out


def _features_of_degree_one(problem: BinaryProblem) -> NDArray | None:
    """Return centred features whose inner products give a centred ``poly`` kernel of degree 1.

    Returns None for another kernel, sparse rows, or fewer than ROWS_PER_FEATURE rows per feature.
    """
    (n, d), kernel = problem.X.shape, problem.kernel
    of_degree_one = kernel.name == "poly" and kernel.degree == 1 and not issparse(problem.X)
    if not of_degree_one or n < ROWS_PER_FEATURE * d:
        return None
    return (problem.X - np.average(problem.X, axis=0, weights=problem.weights)) / np.sqrt(
        kernel.divisor
    )


def _solve_by_least_squares(rows: _Rows, features: Any, etas: NDArray, tol: float) -> NDArray:
    """Return the weights w if features are given, else the coefficients a, for each value of eta.

    Let w be the weights of the least squares SVM, and ``c = 2 n+ n- / n``. The Sherman-Morrison
    formula gives the weights of the KLDA as ``w / (c - w'(m+ - m-) c/2)``.
    """
    # the least squares SVM has ``w = c (T + eta I)^-1 (m+ - m-)`` with the total scatter T
    y, costs = rows.root * rows.y, (1 / etas).tolist()
    half = rows.totals[0] * rows.totals[1] / sum(rows.totals)
    if features is None:
        # the dual variables a of the least squares SVM have ``w'(m+ - m-) = 2 - eta delta'a``
        a = solve_path(rows.gram, y, costs, border=rows.root, tol=tol).a
        return a / (half * etas * (rows.delta @ a))
    w, _ = solve_weights(features, y, costs, rows.root)
    return w / (half * (2.0 - (features.T @ rows.delta) @ w))


def _certified(
    rows: _Rows, etas: NDArray, coef: NDArray, bias: str, errors: NDArray | None, features: Any
) -> list[BinaryModel]:
    """Return the models for all values of eta, with certificates computed by matrix products.

    `coef` contains the weights w if features are given, else the coefficients a.
    """
    delta, of_weights = rows.delta, features is not None
    scores = (features if of_weights else rows.gram) @ coef
    centred = rows.centred(scores)
    if of_weights:
        ahead = features.T @ delta
        residual = features.T @ centred + etas * coef - ahead[:, None]
        squares, norms = np.square(residual).sum(axis=0), np.square(coef).sum(axis=0)
        distance = ahead @ ahead
    else:
        residual = centred + etas * coef - delta[:, None]
        squares = np.maximum(np.einsum("ij,ij->j", residual, rows.gram @ residual), 0.0)
        norms = np.einsum("ij,ij->j", coef, scores)
        distance = delta @ (rows.gram @ delta)
    objective = 0.5 * (centred**2).sum(axis=0) + 0.5 * etas * norms - delta @ scores
    distance = max(float(distance), np.finfo(float).tiny)
    return [
        BinaryModel(
            intercept=_intercept(rows, scores[:, k], bias, errors),
            fit=Fit(
                status=Status.OPTIMAL,
                objective=float(objective[k]),
                bound=float(objective[k] - squares[k] / (2 * etas[k])),
                max_violation=float(np.sqrt(squares[k] / distance)) if coef[:, k].any() else 0.0,
                n_support=len(rows.y) if of_weights else int(np.count_nonzero(coef[:, k])),
            ),
            **({"w": coef[:, k]} if of_weights else {"coef": rows.root * coef[:, k]}),
        )
        for k in range(len(etas))
    ]


def _intercept(rows: _Rows, scores: NDArray, bias: str, errors: NDArray | None) -> float:
    """Return the intercept b of the decision function.

    `scores` contains decision values without b, multiplied by the square roots of the row weights,
    and `errors` contains the weight of a training error at each row (None for equal weights).
    """
    if bias == "midpoint":
        means = (s @ scores / n for s, n in zip(rows.sides, rows.totals, strict=True))
        return -0.5 * float(sum(means))
    return optimal_bias(scores / rows.root, rows.y, weights=errors).b
