"""A primal-dual interior point for `SpreadProgram` in dense linear algebra.

General cone solvers factorise one sparse matrix over all rows and columns. Here the slacks and the
rows are eliminated by hand, which leaves a matrix of the size of x, formed by one product of R with
itself; for few columns an iteration costs no more than reading R. Predictor and corrector after
Mehrotra, Nesterov-Todd scaling of the cones.

    rows     z = R x + xi - h >= 0 with a,   xi >= 0 with price - a
    cones    s_j = (x[s_j], D_j x[:k]) with their multipliers

x starts inside the cones and xi above its rows, so these hold with equality throughout; what has to
vanish besides the products are the dual residual, and the residual of rows without slack.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM J. Optim. 2, 1992.
L. Vandenberghe: The CVXOPT linear and quadratic cone program solvers. 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.solvers.spread_program import SpreadProgram, SpreadSolution
from mmbench.solvers.status import Status

#: Fraction of the way to the boundary that a step goes.
STEP = 0.99


def solve_interior(
    program: SpreadProgram,
    tol: float = 1e-9,
    max_iter: int = 100,
    start: NDArray | None = None,
) -> SpreadSolution:
    """Solve a program.

    Parameters
    ----------
    program : SpreadProgram
        With points that satisfy all its inequalities strictly, and the same for its dual.
    tol : float, default=1e-9
        Relative gap, and a tenth of the residuals relative to the cost: rounding leaves more of
        them, and they move the value by less.
    max_iter : int, default=100
    start : ndarray of shape (n_columns,), optional
        x to start from; need not satisfy anything.

    Returns
    -------
    SpreadSolution
        Status ``optimal``, ``iteration_limit``, or ``inaccurate`` where rounding allows no further
        step: the point is the best that was reached.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        point = _Point.first(program, start)
        best, status, iteration = point.copy(), Status.ITERATION_LIMIT, 0
        for iteration in range(max_iter):  # noqa: B007 - how many were taken is returned
            if point.error <= tol:
                status = Status.OPTIMAL
                break
            try:
                point.advance()
            except LinAlgError:
                status = Status.INACCURATE
                break
            if point.error < best.error:
                best = point.copy()
            elif not np.isfinite(point.error) or point.error > 1e3 * best.error:
                status = Status.INACCURATE
                break
    best = point if point.error <= best.error else best
    return SpreadSolution(best.x, best.a, best.equation_price, iteration, status)


@dataclass
class _Cone:
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


@dataclass
class _Point:
    """The variables of the interior point, all strictly inside, and the steps between them."""

    program: SpreadProgram
    x: NDArray
    xi: NDArray
    z: NDArray
    a: NDArray
    rest: NDArray  # price - a, kept apart: the difference loses all digits near the bound
    cones: list[_Cone]
    equation_price: float = 0.0

    @classmethod
    def first(cls, program: SpreadProgram, start: NDArray | None) -> _Point:
        x = np.zeros(len(program.cost)) if start is None else start.copy()
        if program.equation is not None:
            q = program.equation
            x += q * (1.0 - q @ x) / (q @ q)
        for root, column in zip(program.roots, program.scales, strict=True):
            x[column] = 1.5 * np.linalg.norm(root * x[: len(root)]) + 1.0
        priced = program.priced
        over = program.rows @ x - program.sides
        z = np.maximum(over, 0.0) + 1.0
        a = np.where(priced, 0.5 * program.price, 1.0)
        cones = []
        for root, column in zip(program.roots, program.scales, strict=True):
            dual = np.zeros(len(root) + 1)
            dual[0] = max(abs(program.cost[column]), 0.1)
            cones.append(_Cone(root, column, dual))
        point = cls(program, x, np.where(priced, z - over, 0.0), z, a, a.copy(), cones)
        point._measure()
        return point

    def copy(self) -> _Point:
        names = ("x", "xi", "z", "a", "equation_price", "error")
        other = object.__new__(_Point)
        for name in names:
            value = getattr(self, name)
            setattr(other, name, value.copy() if isinstance(value, np.ndarray) else value)
        return other

    def _measure(self) -> None:
        """Compute the residuals, the mean product mu and the relative error."""
        program, priced = self.program, self.program.priced
        for cone in self.cones:
            cone.s = cone.image(self.x)
        residual = program.cost - program.rows.T @ self.a
        for cone in self.cones:
            cone.add_transposed(-cone.dual, residual)
        self.equation_residual = 0.0
        if program.equation is not None:
            residual -= self.equation_price * program.equation
            self.equation_residual = 1.0 - float(program.equation @ self.x)
        self.dual_residual = residual
        over = program.rows @ self.x + self.xi - program.sides
        self.row_residual = np.where(priced, 0.0, self.z - over)
        products = self.z @ self.a + self.xi[priced] @ self.rest[priced]
        products += sum(cone.s @ cone.dual for cone in self.cones)
        self.mu = products / (len(self.a) + priced.sum() + len(self.cones))
        value = abs(program.cost @ self.x + program.price[priced] @ self.xi[priced])
        scale = max(1.0, float(np.abs(program.cost).max()))
        residuals = max(
            float(np.abs(residual).max()) / scale,
            float(np.abs(self.row_residual).max(initial=0.0)),
            abs(self.equation_residual),
        )
        self.error = max(products / max(value, 1e-12), 0.1 * residuals)

    def advance(self) -> None:
        """Take one predictor and corrector step."""
        for cone in self.cones:
            cone.rescale()
        system = _System(self)
        centres = [cone.centre for cone in self.cones]
        guess = system.solve(
            -self.z * self.a, -self.xi * self.rest, [-centre for centre in centres]
        )
        reach = min(1.0, self._reach(guess))
        target = (1.0 - reach) ** 3 * self.mu
        corrected = []
        for cone, ds, dual in zip(self.cones, guess.s, guess.dual, strict=True):
            right = -_product(cone.centre, cone.centre)
            right -= _product(cone.unscale(ds), cone.scale(dual))
            right[0] += target
            corrected.append(_divide(cone.centre, right))
        step = system.solve(
            target - self.z * self.a - guess.z * guess.a,
            target - self.xi * self.rest + guess.xi * guess.a,
            corrected,
        )
        self._move(step, min(1.0, STEP * self._reach(step)))
        self._measure()

    def _reach(self, step: _Step) -> float:
        priced = self.program.priced
        reach = [
            _to_zero(self.z, step.z),
            _to_zero(self.a, step.a),
            _to_zero(self.xi[priced], step.xi[priced]),
            _to_zero(self.rest[priced], -step.a[priced]),
        ]
        for cone, ds, dual in zip(self.cones, step.s, step.dual, strict=True):
            reach.append(cone.longest(ds, dual))
        return min(reach)

    def _move(self, step: _Step, length: float) -> None:
        self.x += length * step.x
        self.xi += length * step.xi
        self.z += length * step.z
        self.a += length * step.a
        self.rest -= length * step.a
        self.equation_price += length * step.equation_price
        for cone, dual in zip(self.cones, step.dual, strict=True):
            cone.dual = cone.dual + length * dual


@dataclass
class _Step:
    x: NDArray
    equation_price: float
    a: NDArray
    z: NDArray
    xi: NDArray
    s: list[NDArray]
    dual: list[NDArray]


class _System:
    """The Newton equations at a point, factorised once for predictor and corrector."""

    def __init__(self, point: _Point):
        self.point, program = point, point.program
        self.spare = np.where(program.priced, point.xi / point.rest, 0.0)
        self.theta = 1.0 / (point.z / point.a + self.spare)
        scaled = program.rows * np.sqrt(self.theta)[:, None]
        matrix = scaled.T @ scaled
        for cone in point.cones:
            cone.add_curvature(matrix)
        # The scale of each column decides what rounding may add to it.
        diagonal = np.arange(len(matrix))
        matrix[diagonal, diagonal] *= 1.0 + 1e-14
        if not np.isfinite(matrix).all():
            raise LinAlgError("rounding has moved a variable onto its bound")
        self.factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        if program.equation is not None:
            self.along = cho_solve(self.factor, program.equation, check_finite=False)

    def solve(self, right_z: NDArray, right_xi: NDArray, right_cones: list[NDArray]) -> _Step:
        """Return the step for which the products change by the given right hand sides."""
        point, program = self.point, self.point.program
        lack = np.where(program.priced, right_xi / point.rest, 0.0)
        offset = right_z / point.a - lack + point.row_residual
        right = -point.dual_residual + program.rows.T @ (self.theta * offset)
        for cone, vector in zip(point.cones, right_cones, strict=True):
            cone.add_transposed(cone.unscale(vector), right)
        x, price = self._eliminate(right)
        a = self.theta * (offset - program.rows @ x)
        xi = np.where(program.priced, lack + self.spare * a, 0.0)
        z = (right_z - point.z * a) / point.a
        images = [cone.image(x) for cone in point.cones]
        duals = [
            cone.unscale(vector - cone.unscale(image))
            for cone, vector, image in zip(point.cones, right_cones, images, strict=True)
        ]
        return _Step(x, price, a, z, xi, images, duals)

    def _eliminate(self, right: NDArray) -> tuple[NDArray, float]:
        x = cho_solve(self.factor, right, check_finite=False)
        if not np.isfinite(x).all():
            raise LinAlgError("a step is not finite")
        q = self.point.program.equation
        if q is None:
            return x, 0.0
        price = float((self.point.equation_residual - q @ x) / (q @ self.along))
        return x + price * self.along, price


# -- the second-order cone -----------------------------------------------------------------------


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


def _product(u: NDArray, v: NDArray) -> NDArray:
    """Return the Jordan product of two cone vectors."""
    out = u[0] * v + v[0] * u
    out[0] = u @ v
    return out


def _divide(u: NDArray, v: NDArray) -> NDArray:
    """Return the w whose Jordan product with u is v."""
    head = (u[0] * v[0] - u[1:] @ v[1:]) / _size(u) ** 2
    out = (v - head * u) / u[0]
    out[0] = head
    return out


def _to_zero(value: NDArray, change: NDArray) -> float:
    """Return how many times `change` may be added before a value is zero."""
    falling = change < 0
    return float((value[falling] / -change[falling]).min(initial=np.inf))


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
