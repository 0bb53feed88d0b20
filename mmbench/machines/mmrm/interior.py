"""A primal-dual interior point for a dense part of the max-margin ratio machine's program.

    min c'u + cost'xi   s.t.  A u + y b + xi - z = right,   u, xi, z >= 0,  b free

where the last row is the limit of the coefficients, ``-sum(u)/limit >= -1``, and right is 1 in all
others. With the multipliers lam of the rows, ``s = c - A'lam >= 0`` and ``cost - lam >= 0``, the
products ``u s``, ``xi (cost - lam)`` and ``z lam`` go to zero together. Mehrotra's predictor and
corrector with Gondzio's further correctors, on the Newton equations of `newton` with

    Theta = u/s,   D = xi/(cost - lam) + z/lam.

References
----------
S. Mehrotra: On the implementation of a primal-dual interior point method. SIAM J. Optim. 2, 1992.
J. Gondzio: Multiple centrality corrections in a primal-dual method for linear programming.
Comput. Optim. Appl. 6, 1996.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.machines.base.search_space import (
    LEAST_CHECKED_BYTES,
    PART_GRAMS,
    SMALL_PART_ROWS,
    refuse_what_does_not_fit,
)
from mmbench.machines.mmrm.guess import Iterate
from mmbench.machines.mmrm.low_rank import LowRank, OfLowRank
from mmbench.machines.mmrm.newton import (
    MAX_CG_STEPS,
    MAX_CG_STEPS_OF_LARGE,
    NotSolved,
    Reduced,
    System,
    Whole,
    Workspace,
)

#: Fraction of the way to the boundary that a step goes.
BOUNDARY_FRACTION = 0.995

#: Gondzio's correctors per iteration.
MAX_CORRECTORS = 2

#: The band, relative to mu, in which the correctors keep the products.
PRODUCT_BAND = (0.1, 10.0)

#: A primal residual may not grow beyond this while the reduced equations are in use.
REDUCED_RESIDUAL_LIMIT = 1e-6

#: The first iterate of smaller relative complementarity and residuals is `central`.
CENTRAL_ERROR = 0.1

#: Largest order for which the whole system is factorised.
MAX_WHOLE_ORDER = 2 * SMALL_PART_ROWS + 1


class InteriorPoint:
    """An iterate that can be carried on to a smaller tolerance.

    Parameters
    ----------
    A : ndarray or LowRank of shape (n_rows, n_columns)
    y, cost : ndarray of shape (n_rows,)
    c : ndarray of shape (n_columns,)
    point : Iterate
        Where to start; lam below cost.
    limit : float
        Largest sum of u.
    multiplier : float, optional
        Where to start the multiplier of the limit; by default as far from binding as the rows.

    Attributes
    ----------
    A, y, cost : ndarray
        With the row of the limit last.
    central : Iterate or None
        An iterate that is far enough from the boundary for another part to start from.
    """

    def __init__(
        self,
        A: NDArray | LowRank,
        y: NDArray,
        c: NDArray,
        cost: NDArray,
        point: Iterate,
        limit: float,
        multiplier: float | None = None,
    ) -> None:
        _check_memory(A)
        self.limit = limit
        last = np.full(len(c), -1 / limit)
        self.A: Any = A.with_row(last) if isinstance(A, LowRank) else np.vstack([A, last])
        self.y, self.c, self.right = np.append(y, 0.0), c, np.append(np.ones(len(y)), -1.0)
        # the limit's multiplier is at most what its slack would cost: the row is never violated
        penalty = 2 * cost.sum() + limit * max(0.0, -c.min())
        self.cost = np.append(cost, penalty)
        mu = float(np.mean(point.z * point.lam))
        paid = min(mu if multiplier is None else limit * multiplier, penalty / 2)
        self.point = replace(
            point,
            xi=np.append(point.xi, mu / (penalty - paid)),
            z=np.append(point.z, mu / paid),
            lam=np.append(point.lam, paid),
        )
        self.iterations = 0
        self.threshold = 100.0
        self.ill_conditioned = isinstance(A, LowRank)
        self.complementarity = np.inf
        self.central: Iterate | None = None

    @property
    def slack(self) -> NDArray:
        """``cost - lam``, the multiplier of xi."""
        return self.cost - self.point.lam

    def run(self, tol: float, max_iter: int = 100) -> bool:
        """Iterate until the sum of the products is below `tol`, relative to ``1 + objective``.

        Returns
        -------
        bool
            False when steps vanish, values are not finite, `max_iter` is reached or time is up.
        """
        for k in range(max_iter):
            size = 1 + abs(self.objective)
            residuals = self._residuals()
            self.complementarity = self._products_sum(self.point) / size
            error = max(np.abs(r).max(initial=0.0) for r in residuals)
            if not np.isfinite(self.complementarity + error):
                return False
            if self.central is None and max(self.complementarity, error) < CENTRAL_ERROR:
                self.central = self.point
            if self.complementarity < tol and error < max(tol, 1e-9) * 10:
                return True
            if time_is_up():
                return False
            lengths = self._iterate(residuals, 0.02 * tol * size)
            self.iterations += 1
            if lengths is None or (k > 8 and max(lengths) < 1e-3):
                return False
        return False

    def restore_dual(self) -> None:
        """Take a step in lam and s alone, which leaves ``A'lam + s = c`` and ``y'lam = 0``.

        What `run` leaves of these the limit multiplies, in the bound that lam proves.
        """
        system, (rows, columns, balance) = self._system(), self._residuals()
        if system is None:
            return
        zeros = [np.zeros_like(product) for product in (self.point.u, rows, rows)]
        try:
            step = self._direction(system, (np.zeros_like(rows), columns, balance), zeros)
        except NotSolved:
            return
        self.point = self.point.moved(step, 0.0, self._lengths(step, BOUNDARY_FRACTION)[1])

    @property
    def multiplier(self) -> float:
        """What the limit adds to the cost of each coefficient."""
        return float(self.point.lam[-1]) / self.limit

    @property
    def objective(self) -> float:
        """Value of the primal at the present point."""
        return float(self.c @ self.point.u + self.cost @ self.point.xi)

    def _residuals(self) -> tuple[NDArray, NDArray, NDArray]:
        p = self.point
        return (
            self._row_residual(p),
            self.c - p.lam @ self.A - p.s,
            np.atleast_1d(-self.y @ p.lam),
        )

    def _row_residual(self, p: Iterate) -> NDArray:
        return self.right - (self.A @ p.u + self.y * p.b + p.xi - p.z)

    def _products_sum(self, p: Iterate) -> float:
        return float(p.u @ p.s + p.xi @ (self.cost - p.lam) + p.z @ p.lam)

    def _iterate(
        self, residuals: tuple[NDArray, NDArray, NDArray], target: float
    ) -> tuple[float, float] | None:
        """Take one step in place; return its primal and dual length, None without one."""
        system = self._system()
        if system is None:
            return None
        try:
            step = self._refined(system, residuals, self._step(system, residuals, target))
        except NotSolved:
            self.ill_conditioned = True
            return self._iterate(residuals, target)
        lengths = self._lengths(step, BOUNDARY_FRACTION)
        moved = self.point.moved(step, *lengths)
        drift = np.abs(self._row_residual(moved)).max()
        if not self.ill_conditioned and drift > max(
            REDUCED_RESIDUAL_LIMIT, np.abs(residuals[0]).max()
        ):
            self.ill_conditioned = True
            return self._iterate(residuals, target)
        self.point = moved
        return lengths

    def _step(
        self, system: System, residuals: tuple[NDArray, NDArray, NDArray], target: float
    ) -> Iterate:
        """Return Mehrotra's step: a predictor, then a corrector towards equal products."""
        p, count = self.point, len(self.c) + 2 * len(self.y)
        products = (p.u * p.s, p.xi * self.slack, p.z * p.lam)
        mu = sum(float(q.sum()) for q in products) / count
        affine = self._direction(system, residuals, [-q for q in products])
        after = p.moved(affine, *self._lengths(affine, 1.0))
        sigma = (max(self._products_sum(after), 0.0) / count / mu) ** 3
        goal = max(sigma * mu, target / count)
        second = (affine.u * affine.s, -affine.xi * affine.lam, affine.z * affine.lam)
        wanted = [goal - q - d for q, d in zip(products, second, strict=True)]
        step = self._direction(system, residuals, wanted)
        return self._corrected(system, residuals, wanted, step, goal)

    def _corrected(
        self,
        system: System,
        residuals: tuple[NDArray, NDArray, NDArray],
        wanted: list[NDArray],
        step: Iterate,
        goal: float,
    ) -> Iterate:
        """Add Gondzio's correctors while each makes the step clearly longer."""
        for _ in range(MAX_CORRECTORS):
            lengths = self._lengths(step, 1.0)
            if min(lengths) > 0.9:
                return step
            longer = [min(1.0, length + 0.1) for length in lengths]
            trial = self.point.moved(step, *longer)
            pulls = [
                np.clip(q, PRODUCT_BAND[0] * goal, PRODUCT_BAND[1] * goal) - q
                for q in (
                    trial.u * trial.s,
                    trial.xi * (self.cost - trial.lam),
                    trial.z * trial.lam,
                )
            ]
            wanted = [
                w + np.maximum(q, -PRODUCT_BAND[1] * goal)
                for w, q in zip(wanted, pulls, strict=True)
            ]
            corrected = self._direction(system, residuals, wanted)
            gained = sum(self._lengths(corrected, 1.0)) - sum(lengths)
            if gained < 0.01:
                return step
            step = corrected
        return step

    def _direction(
        self,
        system: System,
        residuals: tuple[NDArray, NDArray, NDArray],
        wanted: list[NDArray],
    ) -> Iterate:
        """Return the Newton direction for wanted changes of the three products."""
        p, slack = self.point, self.slack
        rp, rd, rb = residuals
        cu, cx, cz = wanted
        u, lam, b = system(rp - cx / slack + cz / p.lam, rd - cu / p.u, float(rb[0]))
        return Iterate(
            u=u,
            b=b,
            xi=(cx + p.xi * lam) / slack,
            z=(cz - p.z * lam) / p.lam,
            lam=lam,
            s=rd - lam @ self.A,
        )

    def _refined(
        self, system: System, residuals: tuple[NDArray, NDArray, NDArray], step: Iterate
    ) -> Iterate:
        """Solve once more for what a step of the reduced equations leaves of the rows' residual."""
        left = residuals[0] - (self.A @ step.u + self.y * step.b + step.xi - step.z)
        if self.ill_conditioned or np.abs(left).max() < 0.1 * REDUCED_RESIDUAL_LIMIT:
            return step
        zeros = [np.zeros_like(product) for product in (step.u, step.xi, step.z)]
        rest = (left, zeros[0], residuals[2] - self.y @ step.lam)
        return step.moved(self._direction(system, rest, zeros), 1.0, 1.0)

    def _lengths(self, step: Iterate, fraction: float) -> tuple[float, float]:
        """Return the longest primal and dual steps that keep the variables positive."""
        p = self.point
        primal = min(_reach(p.u, step.u), _reach(p.xi, step.xi), _reach(p.z, step.z))
        dual = min(_reach(p.lam, step.lam), _reach(self.slack, -step.lam), _reach(p.s, step.s))
        return min(1.0, fraction * primal), min(1.0, fraction * dual)

    @cached_property
    def _workspace(self) -> Workspace:
        return Workspace(self.A)

    def _system(self) -> System | None:
        """Return the solver of the Newton equations at this point."""
        p = self.point
        weight = p.u / p.s
        diagonal = p.xi / self.slack + p.z / p.lam
        large = sum(self.A.shape) > MAX_WHOLE_ORDER
        if not self.ill_conditioned:
            most = MAX_CG_STEPS_OF_LARGE if large else MAX_CG_STEPS
            equations = self._workspace, self.y, diagonal, weight
            try:
                reduced = Reduced(*equations, self.threshold, most)
            except NotSolved:
                self.ill_conditioned = True
            else:
                self._adapt(reduced.steps)
                return reduced
        if isinstance(self.A, LowRank):
            return OfLowRank(self.A, self.y, diagonal, weight)
        if large:
            return None
        return Whole(self.A, self.y, diagonal, weight)

    def _adapt(self, steps: int) -> None:
        """Keep more or less in the factor of the next iteration, by what this one cost."""
        if steps > 12:
            self.threshold = min(self.threshold * 3, 1e6)
        elif steps < 4:
            self.threshold = max(self.threshold / 1.3, 1.0)


def _check_memory(A: NDArray | LowRank) -> None:
    """Refuse a part that does not fit: how large one gets follows from the data alone."""
    needed = (PART_GRAMS - 1) * A.nbytes
    if needed > LEAST_CHECKED_BYTES:
        task = f"MMRM, an interior point of {A.shape[0]} rows and {A.shape[1]} coefficients,"
        refuse_what_does_not_fit(task, needed)


def _reach(value: NDArray, step: NDArray) -> float:
    """Return how far `value` may move along `step` before an entry is zero."""
    down = step < 0
    return float(np.min(value[down] / -step[down], initial=np.inf))
