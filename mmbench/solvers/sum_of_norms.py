"""The linear SVM's interior point with a sum of norms in place of ``||w||^2 / 2``: the soft M4.

    min over w, b, xi   sum_j ||D_j w|| + C sum_i xi_i
    subject to          y_i (z_i'w + b) >= 1 - xi_i,  xi_i >= 0,       D_j diagonal

As ``||D w|| = min over e > 0 of (||D w||^2 / e + e) / 2``, each norm adds a number e to the
unknowns, and ``Q = sum_j D_j^2 / e_j`` stands where the SVM has the identity: ``Q w = v`` at the
optimum. On the way there ``e - ||D w||^2 / e`` falls to zero with the products of the rows. Were it
zero from the start, e could fall to nothing long before w is known, and no step would lead back.

Multipliers a prove ``sum_i a_i`` if ``v = sum_j D_j p_j`` with all ``||p_j|| <= 1``. With
``p_j = D_j Q^-1 v / e_j`` they do after division by the largest length.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.interior_point import HingeInteriorPoint, Values
from mmbench.solvers.rows import Rows

#: What e exceeds its norm by, as a share of the sum of the rows' products.
EXCESS_SHARE = 0.5

#: Largest share of e that a step takes away.
LARGEST_FALL = 0.7

#: Share of what they may be, by the norms and by C, that multipliers start from.
FIRST_SHARE = 0.5


class SumOfNorms(HingeInteriorPoint):
    """A point inside all inequalities.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
    y : ndarray of shape (n,)
    C : float
    squares : ndarray of shape (n_norms, k)
        Diagonals of the ``D_j^2``; their sum is positive.
    """

    def __init__(self, rows: Rows, y: NDArray, C: float, squares: NDArray):
        self.squares, self.C = squares, C
        sizes = (y < 0).sum(), (y > 0).sum()
        self.trivial = 2.0 * C * min(sizes)
        a = 1.0 / np.where(y > 0, sizes[1], sizes[0])
        delta = rows.T @ (y * a)
        w = delta / squares.sum(axis=0)
        w *= 2.0 / max(float(w @ delta), 1e-300)  # the means' decisions then are 1 and -1
        e = np.sqrt(squares @ (w * w))
        self.at = {"e": np.maximum(e, 1e-3 * e.sum()) if e.any() else np.ones(len(squares))}
        a *= FIRST_SHARE * min(1.0 / max(self._longest(delta), 1e-300), C / float(a.max()))
        super().__init__(rows, y, C, a, given=self.at)

    def _Q(self) -> NDArray:
        return self.squares.T @ (1.0 / self.at["e"])

    def _longest(self, v: NDArray) -> float:
        """Return the largest length of a p_j."""
        w = v / self._Q()
        return float((np.sqrt(self.squares @ (w * w)) / self.at["e"]).max())

    def _norm(self, v: NDArray) -> float:
        return float(v @ (v / self._Q())) - float(self.at["e"].sum())

    def _begin(self) -> float:
        self.at["w"] = self.at["v"] / self._Q()
        return 0.0

    def _follow(self) -> tuple[NDArray, NDArray]:
        Q = self._Q()
        return Q * self.at["w"] - self.at["v"], 1.0 / Q

    def _relative_gap(self, excess: float) -> float:
        a, longest = self.at["a"], max(self._longest(self.at["v"]), 1e-300)
        room = max(1.0, self.C / float(a.max()))  # up, too, where norms and C leave it
        bound = float(a.sum()) * min(1.0 / longest, room)
        value = min(excess + self._dual_value(), self.trivial)
        return (value - bound) / max(bound, 1e-300)

    def _ratios(self) -> NDArray:
        """Return ``||D w||^2 / e^2``."""
        return self.squares @ self.at["w"] ** 2 / self.at["e"] ** 2

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        e = self.at["e"]
        between = -(self.squares * self.at["w"]).T / e**2
        return self._Q(), between, np.diag(0.5 * (1.0 + self._ratios()) / e)

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        excess = EXCESS_SHARE * 2.0 * len(self.y) * target
        return -self.miss, -0.5 * (1.0 - self._ratios() - excess / self.at["e"])

    def _complete(self, step: Values, added: NDArray) -> None:
        step["e"] = added

    def _length(self, step: Values, share: float) -> float:
        fall = float((-step["e"] / self.at["e"]).max())
        return min(super()._length(step, share), LARGEST_FALL / max(fall, LARGEST_FALL))
