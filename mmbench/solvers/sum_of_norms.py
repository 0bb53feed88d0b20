"""Interior point for the soft M4: a sum of norms replaces ``||w||^2 / 2`` of the linear SVM.

    min over w, b, xi   sum_j ||D_j w|| + C sum_i xi_i
    subject to          y_i (z_i'w + b) >= 1 - xi_i,  xi_i >= 0,       D_j diagonal

Since ``||D w|| = min over e > 0 of (||D w||^2 / e + e) / 2``, each norm adds an unknown e_j. The
matrix ``Q = sum_j D_j^2 / e_j`` replaces the identity of the SVM, and ``Q w = v`` at the optimum.
During the iterations ``e - ||D w||^2 / e`` decreases to zero together with the complementarity
products of the rows. If this difference were zero from the start, e could become zero long before w
converges, and could not increase again.

If ``v = sum_j D_j p_j`` and all ``||p_j|| <= 1``, then ``sum_i a_i`` is a lower bound on the
optimal value. The choice ``p_j = D_j Q^-1 v / e_j`` satisfies these conditions after a and all p_j
are divided by the largest ``||p_j||``.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.interior_point import HingeInteriorPoint, Values
from mmbench.solvers.rows import Rows

#: Target of ``e - ||D w||^2 / e``, as a fraction of the sum of the rows' complementarity products.
EXCESS_SHARE = 0.5

#: Maximum decrease of an e_j per step, as a fraction of e_j.
LARGEST_FALL = 0.7

#: Initial multipliers, as a fraction of their upper bounds by the norms and by C.
FIRST_SHARE = 0.5


class SumOfNorms(HingeInteriorPoint):
    """A primal-dual point of the soft M4, strictly inside all inequalities.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
        Rows Z.
    y : ndarray of shape (n,)
        Labels -1.0 and +1.0.
    C : float
        Penalty on slack.
    squares : ndarray of shape (n_norms, k)
        Diagonals of all ``D_j^2``; the sum over j is positive.
    """

    def __init__(self, rows: Rows, y: NDArray, C: float, squares: NDArray):
        self.squares, self.C = squares, C
        sizes = (y < 0).sum(), (y > 0).sum()
        self.trivial = 2.0 * C * min(sizes)
        a = 1.0 / np.where(y > 0, sizes[1], sizes[0])
        delta = rows.T @ (y * a)
        w = delta / squares.sum(axis=0)
        w *= 2.0 / max(float(w @ delta), 1e-300)  # the decisions at the class means are 1 and -1
        e = np.sqrt(squares @ (w * w))
        self.at = {"e": np.maximum(e, 1e-3 * e.sum()) if e.any() else np.ones(len(squares))}
        a *= FIRST_SHARE * min(1.0 / max(self._longest(delta), 1e-300), C / float(a.max()))
        super().__init__(rows, y, C, a, given=self.at)

    def _Q(self) -> NDArray:
        return self.squares.T @ (1.0 / self.at["e"])

    def _longest(self, v: NDArray) -> float:
        """Return the largest ``||p_j||``."""
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
        room = max(1.0, self.C / float(a.max()))  # a may also be scaled up, within norms and C
        bound = float(a.sum()) * min(1.0 / longest, room)
        value = min(excess + self._dual_value(), self.trivial)
        return (value - bound) / max(bound, 1e-300)

    def _ratios(self) -> NDArray:
        """Return ``||D_j w||^2 / e_j^2`` for each j."""
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
