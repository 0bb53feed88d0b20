"""A fixed point of positive numbers, sought by secant steps on their logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Largest change of a logarithm in one round.
LONGEST = 1.5


class Secant:
    """Secant steps on a fixed point in log e, with the plain step where they do not help."""

    def __init__(self) -> None:
        self._last: tuple[NDArray, NDArray] | None = None

    def next(self, weights: NDArray, image: NDArray) -> NDArray:
        """Return the next point, given a point and its image under the plain iteration."""
        at, residual = np.log(weights), np.log(image / weights)
        step = residual
        if self._last is not None:
            before, last_residual = self._last
            change = residual - last_residual
            helped = np.linalg.norm(residual) < np.linalg.norm(last_residual)
            if helped and change.any():
                share = (change @ residual) / (change @ change)
                step = residual - share * (at - before + change)
        self._last = at, residual
        return np.exp(at + np.clip(step, -LONGEST, LONGEST))

    def next_share(self, theta: float, image: float) -> float:
        """Return the next point of a share in (0, 1), sought by its odds."""
        odds = self.next(*(np.array([share / (1.0 - share)]) for share in (theta, image)))
        return float(odds[0] / (1.0 + odds[0]))
