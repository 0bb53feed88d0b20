"""Kernel discriminant analysis with a ridge: Fisher's direction in the feature space of a kernel.

    min over w   1/2 w'Nw + eta/2 ||w||^2 - w'(m+ - m-)

with m+ and m- the class means and N the scatter within the classes, a sum over all rows. Expanded
over the rows, ``w = sum_i a_i phi(x_i)``, the optimum is

    a = (N_K + eta K)^-1 (m_+ - m_-),    N_K = sum_c K_c (I - 11'/n_c) K_c',   m_c = K_c 1 / n_c

with K_c the columns of the Gram matrix K that belong to class c. The papers leave b open.

With weights s of the rows (`sample_weight`) class means are weighted, N sums ``s_i (x_i - m)(x_i -
m)'`` and ``tr(K)/n`` is the weighted mean of k(x_i, x_i). Weights of classes say what errors cost:
they multiply s in the training errors, on which b alone depends. In N they would draw together the
rows of the class whose errors cost most, and its new rows would fall on the other side.

The total scatter is ``N + (n+ n- / n) (m+ - m-)(m+ - m-)'``, so w is a multiple of that of the
least squares SVM with C = 1/eta.

References
----------
S. Mika, G. Raetsch, J. Weston, B. Schoelkopf, K.-R. Mueller: Fisher discriminant analysis with
kernels. IEEE Neural Networks for Signal Processing, 1999.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import (
    WeightedClassifier,
    class_weight,
    kernel_scaling,
    row_weights,
)
from mmbench.machines.base.parameters import choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.base.threshold import optimal_bias
from mmbench.machines.kernel_pca import ROWS_PER_FEATURE, gram_by_features
from mmbench.solvers.ridge import FeatureGram, Gram, scaled, solve_path, solve_weights

#: Scores that differ by less than this share of the largest are equal: repeated rows.
SCORE_RESOLUTION = 1e-12


class KLDA(WeightedClassifier):
    """Regularised kernel Fisher discriminant, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One a pair. `objective` is that of the first formula, `bound` what it cannot fall below by
        the residual r of its optimality condition: ``objective - ||r||^2 / (2 eta)``.
        `max_violation` is ``||r|| / ||m+ - m-||``. Equal class means: status ``trivial`` and w = 0.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        a of each pair (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient: all (``rbf``, ``poly``).

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
        single_precision=False,  # a ridge of 1e-6 is below the rounding of float32
    )
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(
        gram_copies=2,  # the matrix and its factor
        linear_row_copies=1,
        weight_copies=1,  # the matrix, or the rows, are kept beside a copy with weights
        rows_per_feature=ROWS_PER_FEATURE,
    )

    eta: float = parameter(
        1e-3,
        positive(),
        "Ridge, as a multiple of the mean diagonal ``tr(K)/n`` of the Gram matrix.",
    )
    class_weight: dict | str | None = class_weight(after="eta")
    bias: str = parameter(
        "optimized",
        choice("optimized", "midpoint"),
        "b with the fewest training errors, or in the middle between the projected class means.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        '"auto" takes a Cholesky factorisation for each eta; "reference" solves the printed '
        "system.",
    )
    tol: float = parameter(
        1e-6, positive(), "Largest relative gap and residual of an optimal solution."
    )

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return self._train(problem, [self.eta])[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every point from one Gram matrix."""
        if any(set(point) - {"eta"} for point in points):
            return super().train_path(problem, points)
        return self._train(problem, [point.get("eta", self.eta) for point in points])

    def _train(self, problem: BinaryProblem, etas: Sequence[float]) -> list[BinaryModel]:
        return train_klda(problem, etas, self.bias, self.solver, self.class_weight)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.class_weight is not None and self.bias != "optimized":
            raise ValueError('KLDA: class_weight needs bias="optimized", which counts errors')


def train_klda(
    problem: BinaryProblem,
    etas: Sequence[float],
    bias: str = "optimized",
    solver: str = "auto",
    class_weight: Any = None,
) -> list[BinaryModel]:
    """Train a binary machine at several eta.

    Parameters
    ----------
    problem : BinaryProblem
    etas : sequence of float
        Multiples of ``tr(K)/n``.
    bias : {"optimized", "midpoint"}, default="optimized"
    solver : {"auto", "reference"}, default="auto"
    class_weight : dict or "balanced", optional

    Returns
    -------
    list of BinaryModel
        One a value of eta, in their order.
    """
    reference, errors = solver == "reference", row_weights(problem, class_weight)
    gram = problem.copied_gram() if reference else gram_by_features(problem)
    started = time.perf_counter()
    rows = _Rows.of(gram, problem.y, problem.weights)
    level = float(rows.gram.trace()) / rows.total or 1.0  # rows that are all zero: any will do
    ridges, delta = level * np.array(etas), rows.delta
    features = None
    if delta @ (rows.gram @ delta) <= len(rows.y) * np.finfo(float).eps * level:
        coef, status = np.zeros((len(rows.y), len(etas))), Status.TRIVIAL
    elif isinstance(rows.gram, FeatureGram) and problem.kernel.name == "linear":
        features = rows.gram.features
        coef, status = _solve_for_weights(rows, features, ridges), Status.OPTIMAL
    elif isinstance(rows.gram, np.ndarray) and reference:
        coef, status = _solve_printed(rows, rows.gram, ridges), Status.OPTIMAL
    else:
        coef, status = _solve_by_least_squares(rows, ridges), Status.OPTIMAL
    models = _certified(rows, ridges, coef, bias, errors, features)
    seconds = (time.perf_counter() - started) / len(etas)
    for model in models:
        model.fit = replace(model.fit, seconds=seconds, status=status)
    return models


@dataclass(frozen=True)
class _Rows:
    """The training rows times the roots of their weights."""

    #: Shape (n_samples, n_samples).
    gram: Gram
    #: -1.0 or +1.0. Shape (n_samples,).
    y: NDArray
    #: The roots; also what stands in the place of the ones. Shape (n_samples,).
    root: NDArray

    @classmethod
    def of(cls, gram: Gram, y: NDArray, weights: NDArray | None) -> _Rows:
        """Return rows with weights, by default 1."""
        if weights is None:
            return cls(gram, y, np.ones(len(y)))
        return cls(scaled(gram, np.sqrt(weights)), y, np.sqrt(weights))

    @cached_property
    def sides(self) -> tuple[NDArray, NDArray]:
        """The roots of either class, zero in the other: the positive class first."""
        return self.root * (self.y > 0), self.root * (self.y < 0)

    @cached_property
    def totals(self) -> tuple[float, float]:
        """The weight of the positive and of the negative class."""
        positive, negative = self.sides
        return float(positive @ positive), float(negative @ negative)

    @property
    def total(self) -> float:
        """The weight of all rows."""
        return sum(self.totals)

    @cached_property
    def delta(self) -> NDArray:
        """Coefficients over the rows of ``m+ - m-``."""
        (positive, negative), (n_positive, n_negative) = self.sides, self.totals
        return positive / n_positive - negative / n_negative

    def centred(self, columns: NDArray) -> NDArray:
        """Return values at the rows less their class means, both times the roots."""
        out = columns.copy()
        for side, total in zip(self.sides, self.totals, strict=True):
            out -= np.outer(side, side @ columns / total)
        return out


def _solve_by_least_squares(rows: _Rows, etas: NDArray) -> NDArray:
    """Return a for every eta, one a column, from the least squares SVM's a.

    Its w is ``c (T + eta I)^-1 (m+ - m-)`` with the total scatter T and c = 2 n+ n- / n. By the
    formula of Sherman and Morrison ``(N + eta I)^-1 (m+ - m-)`` is that over ``c - w'(m+ - m-)
    c/2``, and the projected means of the least squares SVM are ``2 - eta delta'a`` apart.
    """
    a = solve_path(rows.gram, rows.root * rows.y, (1 / etas).tolist(), border=rows.root).a
    n_positive, n_negative = rows.totals
    half = n_positive * n_negative / rows.total
    return a / (half * etas * (rows.delta @ a))


def _solve_for_weights(rows: _Rows, features: Any, etas: NDArray) -> NDArray:
    """Return w for every eta, one a column, as `_solve_by_least_squares` returns a."""
    w, _ = solve_weights(features, rows.root * rows.y, (1 / etas).tolist(), rows.root)
    n_positive, n_negative = rows.totals
    half = n_positive * n_negative / rows.total
    return w / (half * (2.0 - (features.T @ rows.delta) @ w))


def _solve_printed(rows: _Rows, gram: NDArray, etas: NDArray) -> NDArray:
    """Return a for every eta from the printed system, which is K times ``(P K + eta I) a = d``.

    P subtracts the mean of each class and d holds 1/n+ and -1/n-. Without the factor K the system
    has a solution that is unique, K singular or not.
    """
    centred, unit = rows.centred(gram), np.eye(len(gram))
    return np.column_stack([np.linalg.solve(centred + eta * unit, rows.delta) for eta in etas])


def _certified(
    rows: _Rows,
    etas: NDArray,
    coef: NDArray,
    bias: str,
    errors: NDArray | None = None,
    features: Any = None,
) -> list[BinaryModel]:
    """Return the models of all eta, of w where features are given, else of a.

    Every product with the Gram matrix, or the features, is one of matrices.
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
                iterations=0,
                seconds=0.0,
                n_support=len(rows.y) if of_weights else int(np.count_nonzero(coef[:, k])),
            ),
            **({"w": coef[:, k]} if of_weights else {"coef": rows.root * coef[:, k]}),
        )
        for k in range(len(etas))
    ]


def _intercept(rows: _Rows, scores: NDArray, bias: str, errors: NDArray | None) -> float:
    """Return b, given scores times the roots, and what each training error costs."""
    if bias == "midpoint":
        means = (s @ scores / n for s, n in zip(rows.sides, rows.totals, strict=True))
        return -0.5 * float(sum(means))
    scores = scores / rows.root
    resolution = SCORE_RESOLUTION * float(np.abs(scores).max())
    return optimal_bias(scores, rows.y, resolution, errors).b
