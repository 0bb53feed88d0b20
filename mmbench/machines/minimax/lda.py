"""Linear discriminant analysis, as a classifier, and with kernels.

    max over w != 0   w'(xm - ym) / sqrt(w'(Sx + Sy)w),      w = (Sx + Sy)^-1 (xm - ym)

with xm and ym the means of the positive and the negative class and Sx and Sy their covariances. The
criterion leaves b open: here it puts the boundary in the middle between the means, or where the
training errors are fewest.

References
----------
K. Fukunaga: Introduction to statistical pattern recognition, 2nd edition. Academic Press, 1990.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mmbench.errors import Status
from mmbench.machines.minimax.base import CovarianceMachine, certificate, majority_model
from mmbench.machines.minimax.coordinates import Pencil
from mmbench.machines.minimax.direction import Direction
from mmbench.machines.minimax.mpm import direction
from mmbench.machines.parameter import choice, parameter
from mmbench.machines.problem import BinaryModel
from mmbench.machines.threshold import optimal_bias


class LDA(CovarianceMachine):
    """Linear discriminant analysis, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One a pair. `objective` is ``sqrt(w'(Sx + Sy)w)`` at ``w'(xm - ym) = 1``, the reciprocal of
        the criterion, and `bound` its dual value. Equal class means: status ``trivial``.

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
        "b in the middle between the projected means, or with the fewest training errors.",
        after="scatter",
    )
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        "A closed form, or the same criterion as a cone program by Clarabel.",
    )

    def solve(self, pencil: Pencil, state: Any) -> BinaryModel:
        if pencil.equal_means:
            return majority_model(pencil, Status.TRIVIAL, "the class means are equal")
        total, delta = pencil.var_x + pencil.var_y, pencil.delta
        if self.solver == "auto":
            w = delta / total
            spread = float(np.sqrt(delta @ w))
            found = Direction.along(w, delta, (spread, 0.0), 1.0 / spread, 0)
        else:
            found = direction(delta, total, np.zeros(len(total)), self.solver)
        b = -0.5 * float(found.w @ (pencil.mean_x + pencil.mean_y))
        if self.bias == "optimized":
            b = optimal_bias(pencil.rows @ found.w, pencil.y).b
        return BinaryModel(b, certificate(found, self.tol, len(pencil.y)), w=found.w)
