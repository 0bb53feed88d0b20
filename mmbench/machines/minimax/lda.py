"""Linear discriminant analysis as a classifier, with a linear or another kernel.

    max over w != 0   w'(xm - ym) / sqrt(w'(Sx + Sy)w),      w = (Sx + Sy)^-1 (xm - ym)

(Fukunaga: Introduction to statistical pattern recognition, 1990.) The parameter `bias` decides the
intercept: the midpoint of the means, or the fewest training errors. Class weights c_x and c_y, the
costs of errors, shift the midpoint as in Bayes' rule for normal distributions with equal
probabilities and the covariance (Sx + Sy)/2; so balanced weights do not shift b:

    v log(c_x / c_y),      v = w'(Sx + Sy)w / 2,      w'(xm - ym) = 1

    Fit.route      when                               cost for n rows in k coordinates
    closed form    "auto", equal means, no variance   n k^2
    cone program   other solvers                      one cone program of k + 2 variables
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import choice, class_weight, parameter
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.threshold import optimal_bias
from mmbench.machines.minimax.coordinates import DiagonalData
from mmbench.machines.minimax.covariance import CovarianceMachine, certificate, majority_model
from mmbench.machines.minimax.mpm import direction
from mmbench.solvers.result import Result


class LDA(WeightedClassifier, CovarianceMachine):
    """Linear discriminant analysis, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One certificate per class pair. `objective` is ``sqrt(w'(Sx + Sy)w)`` for w scaled to
        ``w'(xm - ym) = 1``, the reciprocal of the LDA criterion. `bound` is a lower bound on
        `objective` from a dual solution. If the class means are equal, the status is ``trivial``
        and the class with the larger sum of row weights times class weights is predicted.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> round(LDA().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.96
    """

    bias: str = parameter(
        "midpoint",
        choice("midpoint", "optimized"),
        'Rule for b: "midpoint" of the projected class means; "optimized" (MAMC paper) has the '
        "fewest training errors among midpoints between neighbouring rows of different classes.",
        after="scatter",
    )
    class_weight: dict | str | None = class_weight(after="scatter")
    solver: str = parameter(
        "auto",
        choice("auto", "reference", "clarabel", "ecos"),
        '"auto" is a closed form; "clarabel" (or "reference") and "ecos" solve a cone program.',
    )

    @property
    def total_only(self) -> bool:
        return self.scatter == "mean"

    def solve(self, data: DiagonalData) -> BinaryModel:
        if data.equal_means:
            weighted = replace(data, weights=data.costs(self.class_weight))
            return majority_model(weighted, Status.TRIVIAL, "the class means are equal")
        total, delta = data.var_x + data.var_y, data.delta
        if self.solver == "auto":
            w = delta / total
            w /= float(delta @ w)
            found: Result = Result(
                value=float(np.sqrt(total @ (w * w))),
                bound=1.0 / float(np.sqrt(delta @ (delta / total))),
                violation=abs(float(delta @ w) - 1.0),
                iterations=0,
                status=Status.OPTIMAL,
                route="closed form",
            )
        else:
            found = along = direction(delta, total, np.zeros(len(total)), self.solver)
            w = along.w
        fit = certificate(found, self.tol, len(data.y))
        return BinaryModel(self._intercept(data, w), fit, w=w)

    def _intercept(self, data: DiagonalData, w: NDArray) -> float:
        y, costs = data.y, data.costs(self.class_weight)
        if self.bias == "optimized":
            return optimal_bias(data.rows @ w, y, weights=costs).b
        middle = -0.5 * float(w @ (data.mean_x + data.mean_y))
        if costs is None or not isinstance(self.class_weight, Mapping):
            return middle
        sums = [float(costs[y > 0].sum()), float(costs[y < 0].sum())]
        odds = np.divide(sums, data.totals)
        count = 2.0 if self.scatter == "mean" else sum(data.totals)
        variance = float((data.var_x + data.var_y) @ (w * w)) / count
        return middle + variance * float(np.log(odds[0] / odds[1]))
