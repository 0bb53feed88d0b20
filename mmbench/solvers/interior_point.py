"""Primal-dual interior-point method for the linear SVM, optionally with bounds on its decisions.

    min over w, b, xi   1/2 ||w||^2 + C sum_i xi_i
    subject to          y_i f(z_i) >= 1 - xi_i,  xi_i >= 0,  [-B <= f(z_i) <= B,]  f(z) = w'z + b

The slack is xi, the surplus ``y f - 1 + xi``. With the multipliers a of the margins, and p and q of
the bounds B and -B, the optimality conditions are

    surplus a = 0,   slack (C - a) = 0,   (B - y f) p = 0,   (B + y f) q = 0,
    y'(a - p + q) = 0,   w = v = Z' y (a - p + q)

Mehrotra's predictor and corrector steps (SIAM J. Optim. 2, 1992) keep the products near a common
value that decreases to 0; iterates violate only these products and ``w = v``. The unknowns of the
rows are eliminated, so an iteration is one product ``Z' diag(weights) Z``. It serves linear SVM,
RMM and MMRM and the soft-margin M4 (n k^2 for n rows and k features, 10 to 30 iterations), and
R-SVM+ and R-SVMμ+ ((n + m) k^2 + k^3 with m pairs of rows). Times: `benchmarks/peers.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, lapack

from mmbench.allowance import no_time_for, time_is_up
from mmbench.solvers.rows import Rows, weighted_product

#: Step as a share of the way to the boundary, and its factor if it violates a constraint.
BOUNDARY_SHARE, BACKTRACK_FACTOR = 0.99, 0.8

#: Least initial product of the rows, relative to the largest that a subclass adds.
FIRST_PRODUCT_SHARE = 0.1

#: Maximum absolute value of the initial decisions, as a fraction of the bound B.
FIRST_DECISION_SHARE = 0.5

#: A shorter Newton step is replaced by a centring step, or ends the iterations.
CENTRING_LENGTH, SHORTEST_LENGTH = 0.1, 1e-8

#: Ratios of `solve_growing`'s first C to the largest initial multiplier; the smaller fails less.
LARGEST_FIRST_RATIOS = (1e6, 1e3)

#: Relative gap above which `solve_growing` tries the next of LARGEST_FIRST_RATIOS.
STALLED_GAP = 1e-3

#: If all multipliers are below ``FREE_SHARE * C``, the solution is the same for every larger C.
FREE_SHARE = 0.5

#: Values or changes of the variables, by the name of the variable.
Values = dict[str, NDArray]


def solve_growing(
    start: Callable[[Any, NDArray | None], HingeInteriorPoint], C: float | NDArray, tol: float
) -> HingeInteriorPoint:
    """Solve the problem for a penalty C that may be far larger than the optimal multipliers.

    The first penalty is a ratio (10^6) times the largest multiplier of the initial point, and each
    later one the ratio times the previous, up to C. The sequence ends early if the solution is the
    same for every larger penalty, and restarts with the next of LARGEST_FIRST_RATIOS if iterations
    stall. `start` returns the initial point for a penalty and the previous multipliers (None at
    first).
    """
    iterations, largest = 0, float(np.max(C))
    for ratio in LARGEST_FIRST_RATIOS:
        point, a = start(C, None), None
        smaller, ended = ratio * float(point.at["a"].max()), False
        while not ended:
            last = smaller >= largest
            point = start(C if last else smaller * (C / largest), a)
            point.run(tol)
            iterations += point.iterations
            a = point.at["a"]
            free = bool((a < FREE_SHARE * (a + point.at["rest"])).all())
            # `not smaller > 0` ends the loop if the penalty underflows to 0
            ended = last or not smaller > 0 or time_is_up() or (point.gap <= tol and free)
            smaller *= ratio
        if point.gap <= STALLED_GAP or time_is_up():
            break
    point.iterations = iterations
    return point


class HingeInteriorPoint:
    """A primal-dual point that strictly satisfies all inequalities, and its Newton steps.

    Subclasses may override `dual_variables` and the methods from `_norm` to `_curved`.

    Parameters
    ----------
    rows : ndarray or MappedRows of shape (n, k)
        Data matrix Z.
    y : ndarray of shape (n,)
        Labels -1.0 and +1.0; both must occur.
    C : float or ndarray of shape (n,)
        Penalty on the slack variables: one number, or one number per row.
    a : ndarray of shape (n,), optional
        Initial multipliers, positive and less than C, with ``y'a = 0``.
    offset : ndarray of shape (n,), default=0.0
        Constants added to the decisions ``Zw + b``.
    B : float, optional
        Bound on the decisions.
    given : dict of str to ndarray, optional
        Initial values of a subclass's variables, if the method `_norm` uses these variables.

    Attributes
    ----------
    at : dict of str to ndarray
        Current values of the variables by name; the name of ``C - a`` is "rest".
    gap : float
        Objective minus dual objective, relative to the dual objective.
    iterations : int
    """

    #: Names of the variables that must stay positive.
    positive: tuple[str, ...] = ("surplus", "slack", "a", "rest")
    #: (factor, other factor, weight in the duality gap) of each complementarity product.
    products: tuple[tuple[str, str, float], ...] = (("surplus", "a", 1.0), ("slack", "rest", 1.0))
    #: (multiplier, slack, sign of the multiplier in the dual variables) of each bound on decisions.
    bounds: tuple[tuple[str, str, float], ...] = ()

    def __init__(
        self,
        rows: Rows,
        y: NDArray,
        C: float | NDArray,
        a: NDArray | None = None,
        offset: NDArray | float = 0.0,
        B: float | None = None,
        given: Values | None = None,
    ):
        self.Z, self.y, self.at, self.iterations = rows, y, dict(given or {}), 0
        self.margin_cost = 1.0 - y * offset
        n_positive, s = int((y > 0).sum()), C / np.max(C) * np.ones(len(y))
        # The initial w is a multiple of the difference of the class means, with the decisions 1 and
        # -1 at the means, or closer to 0 to keep all multipliers at most C / 2.
        if a is None:
            a = s / np.where(y > 0, s[y > 0].sum(), s[y < 0].sum())
            norm = max(self._norm(rows.T @ (y * a)), 1e-300)
            a = min(2.0 / norm, 0.5 * float(np.min(C / a))) * a
        self.at |= {"a": a, "v": rows.T @ (y * a), "rest": C - a}
        largest = self._begin()
        decision = rows @ self.at["w"] + offset
        # for these weights w, the intercept b minimises the sum of the slacks xi
        b = np.sort(y - decision)[n_positive - 1 : n_positive + 1].mean()
        margin, share = y * (decision + b), 1.0
        if B is not None:
            share = min(1.0, FIRST_DECISION_SHARE * B / max(float(np.abs(margin).max()), 1e-300))
            self.at["w"] = share * self.at["w"]
        self.at["b"], margin = share * b, share * margin - 1.0
        # the surplus and the slack have the lower bound `room`: Newton steps are short if the
        # complementarity products of the rows are far smaller than the products that a subclass
        # adds
        room = max(
            float(np.abs(margin).mean()), 0.1, FIRST_PRODUCT_SHARE * largest / float(np.max(C))
        )
        surplus, slack = np.maximum(margin, 0.0) + room, np.maximum(-margin, 0.0) + room
        self.at |= {"surplus": surplus, "slack": slack}
        if B is not None:
            self.B = B
            self.bounds = (("p", "above", -1.0), ("q", "below", 1.0))
            n, multiplier = len(y), float((surplus * a).mean()) / B
            margin = surplus - slack + 1.0
            self.at |= {"p": np.full(n, multiplier), "q": np.full(n, multiplier)}
            self.at |= {"above": B - margin, "below": B + margin}
            self.positive = (*self.positive, "above", "below", "p", "q")
            self.products = (*self.products, ("above", "p", 1.0), ("below", "q", 1.0))
        self._evaluate()

    def run(self, tol: float, max_iter: int = 100) -> None:
        """Take Newton steps until the relative duality gap is at most `tol`.

        The method ends earlier after a step shorter than SHORTEST_LENGTH, after `max_iter`
        iterations, at the time limit, or if a Newton system is singular.
        """
        n, k = self.Z.shape
        operations = n * k * min(n, k) / 2 + min(n, k) ** 3 / 3
        while self.gap > tol and self.iterations < max_iter:
            if time_is_up(iterations=self.iterations, gap=self.gap) or no_time_for(operations):
                break
            self.iterations += 1
            try:
                if self._advance() < SHORTEST_LENGTH:
                    break
            except LinAlgError:
                break

    def dual_variables(self) -> NDArray:
        """Return the dual variables u, one per row; the dual weights are ``v = Z'u``."""
        a = self.at["a"]
        return self.y * sum((sign * self.at[z] for z, _, sign in self.bounds), start=a)

    # -- methods that a subclass may override ---------------------------------------------------

    def _norm(self, v: NDArray) -> float:
        """Return ``||v||^2``; the dual objective contains the term ``-||v||^2 / 2``."""
        return float(v @ v)

    def _begin(self) -> float:
        """Set the initial weights w and the variables that a subclass adds.

        Returns the largest complementarity product that a subclass adds; 0 in this class.
        """
        # The mean absolute decision is scaled to at most 1. With a large C and larger decisions,
        # the rounding errors of ``y f - 1`` would double the number of iterations.
        size = float(np.abs(self.Z @ self.at["v"]).mean())
        self.at["w"] = self.at["v"] / max(1.0, size)
        return 0.0

    def _follow(self) -> tuple[NDArray, NDArray | float]:
        """Update the variables that are functions of other variables.

        Returns the residual ``w - v`` of the primal and the dual weights, and the factor h of the
        term ``1/2 sum_k h (w_k - v_k)^2`` of the duality gap.
        """
        return self.at["w"] - self.at["v"], 1.0

    def _dual_value(self) -> float:
        value = float(self.at["a"] @ self.margin_cost) - 0.5 * self._norm(self.at["v"])
        return value - sum(self.B * float(self.at[z].sum()) for z, _, _ in self.bounds)

    def _relative_gap(self, excess: float) -> float:
        """Return the relative gap; `excess` is the objective minus the dual objective."""
        return excess / max(abs(self._dual_value()), 1e-300)

    def _system(self) -> tuple[NDArray | float, NDArray, NDArray]:
        """Return three blocks of the Newton matrix, without the terms of the training rows.

        The blocks are (w, w), as a vector or number if it is diagonal, (w, e) and (e, e), for the
        weights w and the unknowns e that a subclass adds.
        """
        return 1.0, np.empty((self.Z.shape[1], 0)), np.empty((0, 0))

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        """Return the right-hand sides of the Newton system, without the terms of the training rows.

        The first is for w, the second for the unknowns that a subclass adds; for the arguments see
        `_step`.
        """
        return -self.miss, np.empty(0)

    def _complete(self, step: Values, added: NDArray) -> None:
        """Store in `step` the changes of the variables that only a subclass has."""

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        """Return (value before, value after the step) for each function that must stay positive."""
        return []

    # -- Newton steps ---------------------------------------------------------------------------

    def _evaluate(self) -> None:
        at = self.at
        at["v"] = self.Z.T @ self.dual_variables()
        self.miss, weight = self._follow()
        self.open = sum(part * float(at[x] @ at[z]) for x, z, part in self.products)
        self.gap = self._relative_gap(self.open + 0.5 * float(np.sum(weight * self.miss**2)))

    def _advance(self) -> float:
        """Take one predictor-corrector step; return the step length."""
        at = self.at
        self.weight = 1.0 / (at["surplus"] / at["a"] + at["slack"] / at["rest"])
        of_bounds = sum(at[z] / at[x] for z, x, _ in self.bounds)
        self.solve = self._factored(self.weight + of_bounds)
        ahead = self._step(0.0, None)
        length = self._length(ahead, 1.0)
        left = sum(
            part * float((at[x] + length * ahead[x]) @ (at[z] + length * ahead[z]))
            for x, z, part in self.products
        )
        share = min(max(left / self.open, 0.0), 1.0) ** 3
        mean = self.open / sum(len(at[x]) for x, _, _ in self.products)
        step = self._step(share * mean, ahead)
        length = self._length(step, BOUNDARY_SHARE)
        # A corrector step is short if its second-order terms are inaccurate, or if complementarity
        # products differ by orders of magnitude. A centring step replaces the short step.
        if length < CENTRING_LENGTH:
            step = self._step(0.5 * mean, None)
            length = self._length(step, BOUNDARY_SHARE)
        for name, change in step.items():
            at[name] = at[name] + length * change
        self._evaluate()
        return length

    def _length(self, step: Values, share: float) -> float:
        """Return the step length, at most 1 and at most `share` of the distance to the boundary."""
        length = 1.0
        for name in self.positive:
            fall = float(np.max(-step[name] / self.at[name], initial=0.0))
            length = min(length, share / max(fall, share))
        while length >= SHORTEST_LENGTH:
            curved = self._curved(step, length)
            if all((there >= (1.0 - share) * here).all() for here, there in curved):
                break
            length *= BACKTRACK_FACTOR
        return length

    def _factored(self, weight: NDArray) -> Callable[[NDArray], NDArray]:
        """Return a function that solves the Newton system in w, b and the added unknowns.

        `weight` contains the weights of the rows in ``Z' diag(weights) Z``.
        """
        k = self.Z.shape[1]
        of_w, between, added = self._system()
        matrix = np.zeros((k + 1 + len(added),) * 2)
        matrix[:k, :k] = weighted_product(self.Z, weight)
        if np.ndim(of_w) == 2:
            matrix[:k, :k] += of_w
        else:
            matrix[np.arange(k), np.arange(k)] += of_w
        matrix[:k, k] = matrix[k, :k] = self.Z.T @ weight
        matrix[k, k] = weight.sum()
        matrix[:k, k + 1 :], matrix[k + 1 :, :k] = between, between.T
        matrix[k + 1 :, k + 1 :] = added
        size = np.sqrt(np.abs(np.diagonal(matrix)))
        scale = 1.0 / np.where(size > 0, size, 1.0)
        matrix *= scale * scale[:, None]
        lu, pivots, info = lapack.dgetrf(matrix, overwrite_a=True)
        if info:
            raise LinAlgError("the system is singular")
        return lambda right: scale * lapack.dgetrs(lu, pivots, scale * right)[0]

    def _open(self, x: str, z: str, target: float, ahead: Values | None) -> NDArray:
        """Return the right-hand side ``target - x z`` of a linearised complementarity condition.

        If the predictor step `ahead` is given, the product of its changes of x and z is subtracted
        as a second-order correction.
        """
        residual = target - self.at[x] * self.at[z]
        return residual if ahead is None else residual - ahead[x] * ahead[z]

    def _step(self, target: float, ahead: Values | None) -> Values:
        """Return the Newton step towards complementarity products equal to `target`.

        If the predictor step `ahead` is given, the Newton step contains a second-order correction.
        """
        at, k = self.at, self.Z.shape[1]
        to_surplus = self._open("surplus", "a", target, ahead)
        to_slack = self._open("slack", "rest", target, ahead)
        # changes of the multipliers p and q for constant decisions
        to = {z: self._open(x, z, target, ahead) / at[x] for z, x, _ in self.bounds}
        of_w, of_added = self._sides(target, ahead)
        free = self.weight * (to_surplus / at["a"] - to_slack / at["rest"])
        signed = self.y * sum((sign * to[z] for z, _, sign in self.bounds), start=free)
        right = np.concatenate([self.Z.T @ signed + of_w, [signed.sum()], of_added])
        found = self.solve(right)
        if not np.isfinite(found).all():
            raise LinAlgError("the system is singular")
        step: Values = {"w": found[:k], "b": found[k]}
        margin = self.y * (self.Z @ step["w"] + step["b"])
        step["a"] = free - self.weight * margin
        step["rest"] = -step["a"]
        step["surplus"] = (to_surplus - at["surplus"] * step["a"]) / at["a"]
        step["slack"] = (to_slack + at["slack"] * step["a"]) / at["rest"]
        for z, x, sign in self.bounds:
            step[x] = sign * margin
            step[z] = to[z] - at[z] / at[x] * step[x]
        self._complete(step, found[k + 1 :])
        return step
