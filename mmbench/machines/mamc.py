"""Maximal average margin classifiers, whose scores are differences of two sums of kernel values.

    max over w, b   (1/M) sum_i y_i (w'phi(x_i) + b) - 1/2 (w'w + b^2)                  (11)
    w = (1/M) sum_i y_i phi(x_i),   b = (1/M) sum_i y_i                           (12), (13)
    f(x) = (1/M) sum_{y_i=+1} k(x, x_i) - (Cm/M) sum_{y_i=-1} k(x, x_i) + b             (29)

(Abe, ANNPR 2016; Pelckmans et al., NIPS 20, 2008.) M is the number of rows, and Cm = 1 in (11). The
MAMC has ``bias="prior"``, the MAMC_b ``bias="optimized"``: the fewest training errors, (14)-(25) in
`mmbench.machines.base.threshold`. The MAMC_bs then selects Cm after gamma, the MAMC_bsg jointly.

    Fit.route                       when                    cost: n rows, d features
    closed form                     default                 n d if linear, else n^2 d;
                                                            n log n for "optimized"
    closed form, bias pair by pair  "optimized",            in addition n^2
                                    solver="reference"
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier, row_weights
from mmbench.machines.base.parameters import choice, class_weight, parameter, positive
from mmbench.machines.base.problem import (
    BLOCK_BYTES,
    BinaryModel,
    BinaryProblem,
    Fit,
    PartProblem,
    expand,
)
from mmbench.machines.base.search_space import GAMMA_GRID, SearchSpace
from mmbench.machines.base.threshold import given_bias, optimal_bias, reference_bias
from mmbench.memory import TrainingSize

_BELOW_ONE = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
#: The paper's grid of Cm: 0.05, 0.1, 0.2, ..., 0.9, 1, and their reciprocals up to 20.
SLOPES = (*_BELOW_ONE, 1.0, *(1 / slope for slope in reversed(_BELOW_ONE)))


class MAMC(WeightedClassifier):
    """Maximal average margin classifier, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the negated objective of (11), with the
        factor Cm for the rows of class 2. Class 1 has the label y = +1, and class 2 the label y =
        -1. With ``bias="optimized"``, `objective` does not contain the terms with b. Since the
        solution is in closed form, `bound` is equal to `objective`, and `max_violation` is zero.
        `extra` has the entries "errors" (14), "slack" (16) and "rho" (15) for the returned b; see
        `mmbench.machines.base.threshold`. With ``bias="optimized"``, the status is "trivial" if
        every score of class 1 is at most every score of class 2.
    dual_coef_, support_, support_vectors_ : ndarray
        Coefficients of the kernel expansion (29), and indices and features of all training rows,
        for kernels other than ``linear``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import MAMC
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MAMC(gamma=1.0, bias="optimized").fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    """

    search_space: ClassVar[SearchSpace] = SearchSpace(
        {**GAMMA_GRID, "Cm": ("Cm", SLOPES)},
        # "near_one" prefers a small |log Cm|; exchanging the two classes replaces Cm by 1/Cm, and
        # does not change |log Cm|
        prefer={"gamma": "small", "Cm": "near_one", "degree": "small"},
        # at a small gamma all kernel values are near 1, and scores differ only in their last digits
        single_precision=False,
    )
    sparse_input = True
    version: ClassVar[int] = 2

    bias: str = parameter(
        "prior",
        choice("prior", "optimized"),
        'Rule for b: "prior" is (13); "optimized" minimises errors, then slacks, (14)-(16).',
        after="degree",
    )
    Cm: float = parameter(
        1.0, positive(), "Weight in (28) of class 2, the first of `classes_`.", after="degree"
    )
    class_weight: dict | str | None = class_weight(after="degree")
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        'The optimized bias: "auto" sorts the scores; "reference" enumerates pairs of rows.',
    )
    tol: float = parameter(
        1e-10,
        positive(),
        "Training scores count as equal if they differ by less than this fraction of the class "
        "sums: scores of repeated rows differ by rounding errors; no threshold may separate them.",
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        # training needs only products with the Gram matrix, which is computed in blocks
        blocks = 0.0 if self.kernel == "linear" else min(size.grams(1.5), 2 * BLOCK_BYTES)
        return self._gram_bytes(size, 0) + blocks

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at all grid points, and compute the class sums only once."""
        if any("class_weight" in point for point in points):  # class weights change the class sums
            return [self.with_params(point).train(problem) for point in points]
        started = time.perf_counter()
        s = row_weights(problem, self.class_weight)
        sums = class_sums(problem, s)
        seconds = (time.perf_counter() - started) / len(points)
        y, models = problem.y, []
        for machine in map(self.with_params, points):
            started, both = time.perf_counter(), np.array([1.0, -machine.Cm])
            coef, scores = _shares(y, s) @ both, sums.own @ both
            resolution = machine.tol * float(np.abs(sums.own).max() * np.abs(both).max())
            value = -0.5 * float(coef @ scores)
            reference = machine.bias == "optimized" and machine.solver == "reference"
            if machine.bias == "prior":
                b = float(np.average(y, weights=s))
                value -= 0.5 * b**2
                found = given_bias(b, scores, y, s)
            else:
                find = reference_bias if reference else optimal_bias
                found = find(scores, y, resolution, s)
            fit = Fit(
                status=Status.TRIVIAL if found.one_class else Status.OPTIMAL,
                objective=value,
                bound=value,
                max_violation=0.0,
                seconds=seconds + time.perf_counter() - started,
                n_support=len(y),
                route="closed form, bias pair by pair" if reference else "closed form",
                extra={"errors": found.errors, "slack": found.slack, "rho": found.rho},
            )
            everywhere = None if sums.whole is None else sums.whole @ both
            models.append(BinaryModel(intercept=found.b, fit=fit, coef=coef, scores=everywhere))
        return models


class ClassSums(NamedTuple):
    """The sums of ``k(x, x_i)`` over the rows x_i of each class, divided by M as in (29)."""

    #: Class sums at the training rows, shape (n_samples, 2).
    own: NDArray
    #: Class sums at all rows of the kernel matrix `PartProblem.whole`, shape (n_all, 2). `whole` is
    #: None if the training problem is not a `PartProblem`.
    whole: NDArray | None = None


def class_sums(problem: BinaryProblem, weights: NDArray | None = None) -> ClassSums:
    """Return the sums of ``k(x, x_i)`` over the rows x_i of each class, divided by M as in (29).

    `weights` are the row weights s_i. The sums are a product with a stored or given kernel matrix,
    or computed from the features: two products if linear, temporary blocks of kernel values
    otherwise.
    """
    shares = _shares(problem.y, weights)
    if isinstance(problem, PartProblem):
        columns = np.zeros((len(problem.whole), 2), dtype=problem.whole.dtype)
        columns[problem.rows] = shares
        sums = problem.whole @ columns
        return ClassSums(sums[problem.rows], sums)
    if problem.given_gram is not None:
        return ClassSums(problem.given_gram @ shares)
    if problem.kernel.name == "linear":
        return ClassSums(problem.X @ (problem.X.T @ shares))
    columns = np.ascontiguousarray(shares.T)
    return ClassSums(expand(problem.kernel, problem.X, problem.X, columns))


def _shares(y: NDArray, weights: NDArray | None) -> NDArray:
    """Return one column per class, with s_i/M for each row i of the class and 0 for other rows."""
    sides = np.column_stack([y > 0, y < 0])
    return sides / len(y) if weights is None else sides * (weights / weights.sum())[:, None]
