"""The second-order cone of a spread, and what an interior point asks of it.

A vector (s0, s1) is in the cone if ``||s1|| <= s0``. The Nesterov-Todd scaling W of a pair (s, z)
inside maps one onto the other, ``W z = W^-1 s``; both are products with a hyperbolic reflection.

References
----------
L. Vandenberghe: The CVXOPT linear and quadratic cone program solvers. 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError


@dataclass
class SpreadCone:
    """One spread: the pair (s, zeta) of cone vectors and its scaling."""

    root: NDArray
    column: int
    dual: NDArray
    s: NDArray = field(default_factory=lambda: np.zeros(0))

    def image(self, x: NDArray) -> NDArray:
        """Return ``(x[s_j], D_j x[:k])``."""
        return np.concatenate([[x[self.column]], self.root * x[: len(self.root)]])

    def add_transposed(self, vector: NDArray, out: NDArray) -> None:
        """Add the transposed image of a cone vector to `out`."""
        out[: len(self.root)] += self.root * vector[1:]
        out[self.column] += vector[0]

    def rescale(self) -> None:
        """Compute the Nesterov-Todd point: ``W dual = W^-1 s``."""
        size_s, size_dual = _size(self.s), _size(self.dual)
        if not (size_s > 0 and size_dual > 0):
            raise LinAlgError("rounding has moved a cone vector onto its boundary")
        s, dual = self.s / size_s, self.dual / size_dual
        half = np.sqrt(0.5 * (1.0 + s @ dual))
        self.point = (s + _mirror(dual)) / (2.0 * half)
        self.point[0] = np.sqrt(1.0 + self.point[1:] @ self.point[1:])
        self.factor = np.sqrt(size_s / size_dual)
        self.centre = self.scale(self.dual)

    def scale(self, vector: NDArray) -> NDArray:
        """Return ``W v``."""
        return self.factor * _hyperbolic(self.point, vector)

    def unscale(self, vector: NDArray) -> NDArray:
        """Return ``W^-1 v``."""
        return _hyperbolic(_mirror(self.point), vector) / self.factor

    def add_curvature(self, matrix: NDArray) -> None:
        """Add ``G'W^-2 G``, with G the map `image`, to a matrix over x."""
        head, tail = self.point[0], self.root * self.point[1:]
        weight = 1.0 / self.factor**2
        k = len(self.root)
        matrix[:k, :k] += (2.0 * weight) * np.outer(tail, tail)
        matrix[np.arange(k), np.arange(k)] += weight * self.root**2
        cross = -2.0 * weight * head * tail
        matrix[self.column, :k] += cross
        matrix[:k, self.column] += cross
        # 2 head^2 - 1, without the difference
        matrix[self.column, self.column] += weight * (1.0 + 2.0 * (head - 1.0) * (head + 1.0))

    def longest(self, ds: NDArray, dual_step: NDArray) -> float:
        """Return how far s and its multiplier may go before one of them leaves the cone."""
        return min(
            _to_boundary(self.centre, self.unscale(ds)),
            _to_boundary(self.centre, self.scale(dual_step)),
        )


def _mirror(v: NDArray) -> NDArray:
    return np.concatenate([v[:1], -v[1:]])


def _size(v: NDArray) -> float:
    """Return ``sqrt(v0^2 - ||v1||^2)``."""
    length = np.linalg.norm(v[1:])
    return float(np.sqrt((v[0] - length) * (v[0] + length)))


def _hyperbolic(point: NDArray, v: NDArray) -> NDArray:
    """Return the product of v with the square root of the reflection that `point` defines."""
    inner = point[1:] @ v[1:]
    out = v + ((v[0] + inner / (1.0 + point[0])) * point)
    out[0] = point[0] * v[0] + inner
    return out


def product(u: NDArray, v: NDArray) -> NDArray:
    """Return the Jordan product of two cone vectors."""
    out = u[0] * v + v[0] * u
    out[0] = u @ v
    return out


def divide(u: NDArray, v: NDArray) -> NDArray:
    """Return the w whose Jordan product with u is v."""
    head = (u[0] * v[0] - u[1:] @ v[1:]) / _size(u) ** 2
    out = (v - head * u) / u[0]
    out[0] = head
    return out


def _to_boundary(u: NDArray, change: NDArray) -> float:
    """Return how many times `change` may be added to u before it leaves the cone."""
    square = change[0] ** 2 - change[1:] @ change[1:]
    linear = u[0] * change[0] - u[1:] @ change[1:]
    constant = _size(u) ** 2
    discriminant = linear**2 - square * constant
    reach = np.inf if change[0] >= 0 else -u[0] / change[0]
    if discriminant < 0:
        return float(reach)
    root = -(linear + np.copysign(np.sqrt(discriminant), linear))
    candidates = (root / square, constant / root)
    return float(min([reach, *(t for t in candidates if t > 0)]))
