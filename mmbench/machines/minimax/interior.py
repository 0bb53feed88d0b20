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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.errors import Status
from mmbench.machines.minimax.spread_cone import SpreadCone, divide, product
from mmbench.machines.minimax.spread_program import SpreadProgram, SpreadSolution

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
class _Point:
    """The variables of the interior point, all strictly inside, and the steps between them."""

    program: SpreadProgram
    x: NDArray
    xi: NDArray
    z: NDArray
    a: NDArray
    rest: NDArray  # price - a, kept apart: the difference loses all digits near the bound
    cones: list[SpreadCone]
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
        z, a = np.maximum(over, 0.0) + 1.0, np.where(priced, 0.5 * program.price, 1.0)
        if not priced.all() and over[~priced].min() > 0:
            # A start that satisfies the rows without slack is worth keeping, however narrowly.
            z[~priced] = over[~priced]
            a[~priced] = 1.0 / (len(a) * z[~priced])
        cones = []
        for root, column in zip(program.roots, program.scales, strict=True):
            dual = np.zeros(len(root) + 1)
            dual[0] = max(abs(program.cost[column]), 0.1)
            cones.append(SpreadCone(root, column, dual))
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
            right = -product(cone.centre, cone.centre)
            right -= product(cone.unscale(ds), cone.scale(dual))
            right[0] += target
            corrected.append(divide(cone.centre, right))
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


def _to_zero(value: NDArray, change: NDArray) -> float:
    """Return how many times `change` may be added before a value is zero."""
    falling = change < 0
    return float((value[falling] / -change[falling]).min(initial=np.inf))
