"""The linear RMM whose bound is a variable: the interior point of its form (13).

    min over w, b, t, xi   1/2 ||w||^2 + sum_i C_i xi_i + D t
    subject to             y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  -t <= f(z_i) <= t,  t >= 1,
                           f(z) = w'z + b

Beside the products of a given bound there is ``(t - 1) m``, ``m = D - sum_i (p_i + q_i)`` being the
multiplier of ``t >= 1``. t is one more unknown of the system.
"""

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.bounded_decisions import BoundedDecisions
from mmbench.solvers.interior_point import InteriorPoint, Values
from mmbench.solvers.rows import Rows

#: Share of what they may be, by C and by D, at which multipliers start.
FIRST_SHARE = 0.25


class FreeBound(BoundedDecisions):
    """A point inside all inequalities.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
    y : ndarray of shape (n,)
    C : float or ndarray of shape (n,)
    D : float
    """

    positive = (*BoundedDecisions.positive, "r", "m")
    products = (*BoundedDecisions.products, ("r", "m", 1.0))

    def __init__(self, rows: Rows, y: NDArray, C: float | NDArray, D: float):
        self.D, s = D, C * np.ones(len(y))
        lighter = np.where(y > 0, s[y < 0].sum(), s[y > 0].sum())
        InteriorPoint.__init__(self, rows, y, C, FIRST_SHARE * s * lighter / lighter.max())

    @property
    def t(self) -> float:
        """The bound."""
        return 1.0 + float(self.at["r"][0])

    def _inside(self, margin: NDArray) -> NDArray:
        return margin

    def _begin_rows(self) -> None:
        at, n = self.at, len(self.y)
        margin = at["surplus"] - at["slack"] + 1.0
        size = FIRST_SHARE * self.D / n
        room = float(np.abs(margin).max()) + float((at["surplus"] * at["a"]).mean()) / size
        at |= {"p": np.full(n, size), "q": np.full(n, size), "r": np.array([room])}
        at |= {"m": np.array([(1.0 - 2.0 * FIRST_SHARE) * self.D])}
        at |= {"above": self.t - margin, "below": self.t + margin}

    def _dual_value(self) -> float:
        return InteriorPoint._dual_value(self) + float(self.at["m"][0])

    def _system(self) -> tuple[float, NDArray, NDArray]:
        at = self.at
        of_p, of_q = at["p"] / at["above"], at["q"] / at["below"]
        signed = self.y * (of_q - of_p)
        between = np.append(self.Z.T @ signed, signed.sum())[:, None]
        of_t = of_p.sum() + of_q.sum() + at["m"] / at["r"]
        return 1.0, between, of_t[:, None]

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        self._added_free(target, ahead)
        self.to_m = self._open("r", "m", target, ahead) / self.at["r"]
        return -self.miss, self.to_above.sum() + self.to_below.sum() + self.to_m

    def _complete(self, step: Values, added: NDArray) -> None:
        at = self.at
        step["r"], step["m"] = added, self.to_m - at["m"] / at["r"] * added
        for room, multiplier in (("above", "p"), ("below", "q")):
            step[room] = step[room] + added
            step[multiplier] = step[multiplier] - at[multiplier] / at[room] * added
