"""The linear SVM's interior point with bounds of its decisions at the rows: the linear RMM.

    min over w, b, xi   1/2 ||w||^2 + C sum_i xi_i
    subject to          y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  -B <= f(z_i) <= B,  f(z) = w'z + b

The bounds add to a row the products ``p (B - y f)`` and ``q (B + y f)`` and one number to its
weight in the system, so that an iteration costs what the SVM's does. Then ``v = Z' y (a - p + q)``.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.interior_point import InteriorPoint, Values
from mmbench.solvers.rows import Rows

#: Share of B that the first decisions do not exceed.
FIRST_SHARE = 0.5


class BoundedDecisions(InteriorPoint):
    """A point inside all inequalities, bounds included; parameters are those of the base, and B.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
    y : ndarray of shape (n,)
    C : float or ndarray of shape (n,)
    B : float
    a : ndarray of shape (n,)
    """

    positive = (*InteriorPoint.positive, "above", "below", "p", "q")
    products = (*InteriorPoint.products, ("above", "p", 1.0), ("below", "q", 1.0))
    bounds = (("p", "above", -1.0), ("q", "below", 1.0))

    def __init__(self, rows: Rows, y: NDArray, C: float | NDArray, B: float, a: NDArray):
        self.B = B
        super().__init__(rows, y, C, a)

    def _inside(self, margin: NDArray) -> NDArray:
        share = min(1.0, FIRST_SHARE * self.B / max(float(np.abs(margin).max()), 1e-300))
        self.at["w"], self.at["b"] = share * self.at["w"], share * self.at["b"]
        return share * margin

    def _begin_rows(self) -> None:
        at = self.at
        margin = at["surplus"] - at["slack"] + 1.0
        size = np.full(len(margin), float((at["surplus"] * at["a"]).mean()) / self.B)
        at |= {"above": self.B - margin, "below": self.B + margin, "p": size, "q": size.copy()}

    def _multipliers(self, values: Values) -> NDArray:
        return values["a"] - values["p"] + values["q"]

    def _dual_value(self) -> float:
        spent = self.B * float(self.at["p"].sum() + self.at["q"].sum())
        return super()._dual_value() - spent

    def _added_weight(self) -> NDArray:
        return self.at["p"] / self.at["above"] + self.at["q"] / self.at["below"]

    def _added_free(self, target: float, ahead: Values | None) -> NDArray:
        self.to_above = self._open("above", "p", target, ahead) / self.at["above"]
        self.to_below = self._open("below", "q", target, ahead) / self.at["below"]
        return self.to_below - self.to_above

    def _complete_rows(self, step: Values, margin: NDArray) -> None:
        at = self.at
        step["above"], step["below"] = -margin, margin
        step["p"] = self.to_above + at["p"] / at["above"] * margin
        step["q"] = self.to_below - at["q"] / at["below"] * margin
