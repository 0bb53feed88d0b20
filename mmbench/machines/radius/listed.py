"""Solvers of the restricted problems of R-SVM+ and R-SVMμ+, which have few pairs of rows.

Clarabel solves the cone program, in which e_k = w_k^2 at the optimum makes (9) linear:

    min   1/2 sum_k e_k + lam r + C sum_i xi_i      subject to the SVM's constraints and
                 R-SVM+      e_k >= w_k^2,        1/2 sum_k e_k  (z_ik - z_jk)^2 <= r
                 R-SVMμ+     e_k mu_k >= w_k^2,   1/2 sum_k mu_k (z_ik - z_jk)^2 <= r,  sum mu = 1

The interior-point method solves primal and dual (module `pairs`) together. With the multipliers u
of the rows and theta of the pairs, the squared differences D_pk of pair p in feature k,
``v = Z'u`` and ``q = D'theta``, the conditions, besides the ones of `HingeInteriorPoint`, are

    pairs        e = r - D s / 2,                 theta e = 0,                 sum theta = lam
    R-SVM+       s = w^2,    v = (1 + q) w
    R-SVMμ+      s = mu,     w = mu v,      g = t - v^2 + q,     mu g = 0,        sum mu = 1

Here e are slacks of the pairs, and t/2 is the multiplier of ``sum mu = 1``. Rows and pairs are
eliminated from the Newton equations; R-SVM+ with more features than rows and pairs keeps one
unknown per row and pair instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from mmbench.kernels import row_squares
from mmbench.machines.radius.pairs import PairProblem
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.interior_point import HingeInteriorPoint, Values, solve_growing
from mmbench.solvers.rows import weighted_product

#: Feature weights mu_k of at most ZERO_WEIGHT are considered zero. The sum of all feature weights
#: is 1.
ZERO_WEIGHT = 1e-10

#: Number of iterative refinement steps for Newton equations with one unknown per row and one per
#: pair. Without refinement, features with large values would cause large rounding errors.
REFINEMENTS = 2

#: Tuple of the coefficients w, the feature weights mu (None for R-SVM+), the signed multipliers u
#: of the rows, the multipliers theta of the listed pairs, and the number of iterations.
RestrictedSolution = tuple[NDArray, NDArray | None, NDArray, NDArray, int]


def product_cones(d: int) -> list[sparse.sparray]:
    """Return the coefficients of e, mu and w in the cone constraints ``e_k mu_k >= w_k^2``.

    The constraint ``e_k mu_k >= w_k^2`` holds if ``((e_k + mu_k)/2, (e_k - mu_k)/2, w_k)`` is in a
    second-order cone.
    """
    parts = [-0.5, -0.5, 0.0], [-0.5, 0.5, 0.0], [0.0, 0.0, -1.0]
    return [sparse.kron(sparse.eye_array(d), np.array(part)[:, None]) for part in parts]


def solve_cone(problem: PairProblem, squares: NDArray, tol: float) -> RestrictedSolution:
    """Solve the cone program by Clarabel; if Clarabel fails, w and all multipliers are 0.

    Since Clarabel's tolerances are absolute, variables are scaled to magnitudes near 1. In R-SVM+,
    w_k is divided by an upper bound on the optimal ``|w_k|``: the objective is
    ``2 * PairProblem.smaller`` at w = 0, and at least ``(1 + lam D_k) w_k^2 / 2``, where D_k is the
    largest squared difference of a listed pair in feature k. In R-SVMμ+, the objective is divided
    by its value at w = 0 and equal mu_k, and w by the square root of this value. The scale of e_k
    is the square of the scale of w_k.
    """
    (n, d), m, simplex, y = problem.rows.shape, len(squares), problem.simplex, problem.y
    of_e, of_mu, of_w = product_cones(d)
    of_r, eye, signs = np.full((m, 1), -1.0), sparse.eye_array(n), -y[:, None]
    if simplex:
        unit = 2.0 * problem.smaller + 0.5 * problem.lam * float(squares.mean(axis=1).max())
        scale, lengths = np.full(d, np.sqrt(unit)), [None, 0.5 * squares]
    else:
        unit = max(1.0, problem.lam, float(problem.C.max()))
        scale = np.sqrt(4.0 * problem.smaller / (1.0 + problem.lam * squares.max(axis=0)))
        lengths = [0.5 * scale**2 * squares, None]
    blocks: list[list[Any]] = [  # columns of the variables w, b, xi, e, mu and r
        [signs * (problem.rows * scale), signs, -eye, None, None, None],
        [None, None, -eye, None, None, None],
        [None, None, None, *lengths, of_r],
        [of_w, None, None, of_e, of_mu, None],
    ]
    sides = np.zeros(3 * d)
    if not simplex:  # R-SVM+ has mu_k = 1
        blocks, sides = [row[:4] + row[5:] for row in blocks], np.tile([0.5, -0.5, 0.0], d)
    of_mu_and_r = np.append(np.zeros(d * simplex), problem.lam)
    cost = np.concatenate([np.zeros(d + 1), problem.C, 0.5 * scale**2, of_mu_and_r])
    of_sum = np.zeros((int(simplex), len(cost)))
    of_sum[:, -1 - d : -1] = 1.0
    program = ConeProgram(
        c=cost / unit,
        A=sparse.csc_array(of_sum),
        b=np.ones(int(simplex)),
        G=sparse.csc_array(sparse.block_array(blocks)),
        h=np.concatenate([-np.ones(n), np.zeros(n + m), sides]),
        n_linear=2 * n + m,
        cones=(3,) * d,
    )
    found = solve_socp(program, tol=tol)
    given = bool(np.isfinite(found.x).all() and np.isfinite(found.z).all())
    if not given or (simplex and found.x[-1 - d : -1].max() <= ZERO_WEIGHT):
        mu = np.full(d, 1.0 / d) if simplex else None
        return np.zeros(d), mu, np.zeros(n), np.zeros(m), found.iterations
    u, theta = unit * y * found.z[:n], unit * found.z[2 * n : 2 * n + m]
    w, mu = found.x[:d] * scale, None
    if simplex:
        w, mu = without_zeros(w, found.x[-1 - d : -1])
    return w, mu, u, theta, found.iterations


def without_zeros(w: NDArray, mu: NDArray, part: NDArray | None = None) -> tuple[NDArray, NDArray]:
    """Return w and mu after tiny feature weights mu_k are set to zero.

    Entry k of `part` is the magnitude of the term of feature k in the decision values. If this term
    is large, mu_k is not set to zero: a feature with large values may have a tiny mu_k and a large
    term.
    """
    kept = mu > ZERO_WEIGHT
    if part is not None:
        kept |= part > ZERO_WEIGHT * part.max()
    mu = np.where(kept, mu, 0.0)
    return np.where(mu > 0, w, 0.0), mu / mu.sum()


def solve_interior(problem: PairProblem, squares: NDArray, tol: float) -> RestrictedSolution:
    """Solve a restricted problem by the interior-point method, and return the last iterate."""
    listed = squares if problem.lam > 0 else squares[:0]
    kind = MuPlusInteriorPoint if problem.simplex else PlusInteriorPoint
    point = solve_growing(lambda C, a: kind(problem, listed, C, a), problem.C, tol)
    w, mu = point.at["w"], None
    if problem.simplex:
        w, mu = without_zeros(w, point.at["mu"], np.abs(w) * np.sqrt(row_squares(problem.rows.T)))
    theta = np.append(point.at["theta"], np.zeros(len(squares) - len(listed)))
    return w, mu, problem.y * point.at["a"], theta, point.iterations


class PairInteriorPoint(HingeInteriorPoint, ABC):
    """Base class of the interior-point methods of R-SVM+ and R-SVMμ+."""

    positive = (*HingeInteriorPoint.positive, "theta")
    products = (*HingeInteriorPoint.products, ("e", "theta", 1.0))

    def __init__(
        self, problem: PairProblem, squares: NDArray, C: float | NDArray, a: NDArray | None = None
    ):
        self.D = squares
        theta = np.full(len(squares), problem.lam / max(len(squares), 1))
        given = {"theta": theta, **self._weights(problem.rows)}
        super().__init__(problem.rows, problem.y, C, a, given=given)

    def _weights(self, rows: NDArray) -> Values:
        """Return a dict with the initial feature weights mu of R-SVMμ+ (empty for R-SVM+)."""
        return {}

    @abstractmethod
    def _lengths(self) -> NDArray:
        """Return half the weighted squared distances of the pairs, ``D s / 2``."""

    def _begin_pairs(self) -> float:
        """Set the initial radius r and slacks e, and return the mean of the products ``theta e``.

        For R-SVMμ+, the larger of the means of ``theta e`` and of ``mu g`` is returned.
        """
        self.at["r"] = np.array(1.5 * float(self._lengths().max(initial=0.0)) + 1e-6)
        self._follow()
        added = [self.at[x] * self.at[z] for x, z, _ in self.products[2:]]
        return max((float(part.mean()) for part in added if len(part)), default=0.0)

    def _rates(self) -> tuple[NDArray, NDArray]:
        """Store ``theta / e`` of all pairs in `rates`, and return `rates` and ``D' rates``."""
        self.rates = self.at["theta"] / self.at["e"]
        return self.rates, self.D.T @ self.rates

    def _follow_theta(self, target: float, ahead: Values | None, bend: NDArray | float) -> None:
        """Store the part of the Newton step of theta that does not depend on the step of e."""
        lacks = self._open("theta", "e", target, ahead) / self.at["theta"]
        self.free_theta = self.rates * (lacks + bend)

    def _complete_theta(self, step: Values, r: NDArray, lengths: NDArray) -> None:
        """Add the changes of the radius r, the slacks e and the multipliers theta to a Newton step.

        `lengths` contains the changes of half the weighted squared distances of the pairs.
        """
        step["r"], step["e"] = r, r - lengths
        step["theta"] = self.free_theta - self.rates * step["e"]


class PlusInteriorPoint(PairInteriorPoint):
    """Interior-point method of R-SVM+; the Newton equations have the additional unknown r."""

    def _Q(self) -> NDArray:
        return 1.0 + self.D.T @ self.at["theta"]

    def _begin(self) -> float:
        self.at["w"] = self.at["v"] / self._Q()
        return self._begin_pairs()

    def _norm(self, v: NDArray) -> float:
        return float(np.sum(v * v / self._Q()))

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["w"] ** 2

    def _follow(self) -> tuple[NDArray, NDArray]:
        self.at["e"], Q = self.at["r"] - self._lengths(), self._Q()
        return Q * self.at["w"] - self.at["v"], 1.0 / Q

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        w, (rates, total) = self.at["w"], self._rates()
        of_w = weighted_product(self.D, rates) * np.outer(w, w)
        of_w[np.diag_indices_from(of_w)] += self._Q()
        return of_w, -(w * total)[:, None], np.array([[rates.sum() if len(rates) else 1.0]])

    def _factored(self, weight: NDArray) -> Callable[[NDArray], NDArray]:
        """Return a solver of the Newton equations.

        If there are more features than rows and pairs together, the Newton equations are reduced to
        one unknown per row and one per pair.
        """
        (n, k), m = self.Z.shape, len(self.D)
        if n + m >= k:
            return super()._factored(weight)
        # Newton matrix: diag(Q, 0, 0) + [A, G]' diag(omega) [A, G] with Q = 1 + q, a number omega >
        # 0 per row and pair, and [A, G] = [Z, 1, 0] for rows, [D diag(w), 0, -1] for pairs. The
        # right-hand side is f for the features and g for (b, r), the solution x and x_br, and p =
        # diag(omega) (A x + G x_br) satisfies (A diag(Q)^{-1} A' + diag(omega)^{-1}) p - G x_br = A
        # diag(Q)^{-1} f and G'p = g.
        root = np.sqrt(self._Q())
        A = np.empty((n + m, k))  # the matrix A above times diag(Q)^{-1/2}
        np.divide(self.Z, root, out=A[:n])
        np.multiply(self.D, self.at["w"] / root, out=A[n:])
        G = np.zeros((n + m, 2))
        G[:n, 0], G[n:, 1] = 1.0, -1.0
        omega = np.append(weight, self._rates()[0])
        matrix = A @ A.T
        matrix[np.diag_indices_from(matrix)] += 1.0 / omega
        scale = 1.0 / np.sqrt(np.diagonal(matrix))
        factor = cho_factor(matrix * scale * scale[:, None], check_finite=False)

        def inverse(right: NDArray) -> NDArray:
            return (scale * cho_solve(factor, (scale * right.T).T, check_finite=False).T).T

        of_G = inverse(G)
        of_br = G.T @ of_G
        of_br[1, 1] += not m  # without pairs, r occurs in no equation; 1 makes the matrix regular

        def once(f: NDArray, g: NDArray) -> tuple[NDArray, NDArray]:
            p = inverse(A @ f)
            x_br = np.linalg.solve(of_br, g - G.T @ p)
            return f - A.T @ (p + of_G @ x_br), x_br

        def solve(right: NDArray) -> NDArray:
            f, g = right[:k] / root, right[k:]
            x, x_br = once(f, g)
            for _ in range(REFINEMENTS):
                p = omega * (A @ x + G @ x_br)
                more, more_br = once(f - x - A.T @ p, g - G.T @ p - [0.0, (not m) * x_br[1]])
                x, x_br = x + more, x_br + more_br
            return np.concatenate([x / root, x_br])

        return solve

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        of_w, bend = -self.miss, np.zeros(len(self.D))
        if ahead is not None:
            of_w = of_w - ahead["w"] * (self.D.T @ ahead["theta"])
            bend = 0.5 * self.D @ ahead["w"] ** 2
        self._follow_theta(target, ahead, bend)
        of_w = of_w - self.at["w"] * (self.D.T @ self.free_theta)
        return of_w, np.array([self.free_theta.sum()])

    def _complete(self, step: Values, added: NDArray) -> None:
        self._complete_theta(step, added[0], self.D @ (self.at["w"] * step["w"]))

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = 0.5 * self.D @ (length * step["w"]) ** 2
        return [(self.at["e"], self.at["e"] + length * step["e"] - bend)]


class MuPlusInteriorPoint(PairInteriorPoint):
    """Interior-point method of R-SVMμ+.

    The Newton equations have the additional unknowns mu, t and r, where t/2 is the multiplier of
    the constraint ``sum mu = 1``.
    """

    positive = (*PairInteriorPoint.positive, "mu", "e")
    products = (*PairInteriorPoint.products, ("mu", "g", 0.5))

    def _weights(self, rows: NDArray) -> Values:
        """Return initial feature weights mu_k, inversely proportional to the feature magnitudes.

        If all initial mu_k were equal, features with large values would dominate the initial values
        of the other variables.
        """
        squares = row_squares(rows.T)
        largest = squares.max() or 1.0  # 1.0 if all listed features are constant
        # a constant feature starts with the smallest mu_k, since its optimal mu_k is 0 if the
        # penalty lam on the radius is not large
        varies = squares > np.finfo(float).eps * largest
        mu = 1.0 / np.sqrt(np.where(varies, squares, largest))
        return {"mu": mu / mu.sum()}

    def _begin(self) -> float:
        v, mu = self.at["v"], self.at["mu"]
        self.at["w"] = mu * v
        cost = v * v - self.D.T @ self.at["theta"]
        room = max(float(mu @ (cost.max() - cost)), float(mu @ np.abs(cost)), 1e-6)
        self.at["t"] = np.array(float(cost.max()) + room)
        return self._begin_pairs()

    def _norm(self, v: NDArray) -> float:
        return float(self.at["mu"] @ (v * v))

    def _dual_value(self) -> float:
        return float(self.at["a"].sum()) - 0.5 * float(self.at["t"])

    def _lengths(self) -> NDArray:
        return 0.5 * self.D @ self.at["mu"]

    def _follow(self) -> tuple[NDArray, NDArray]:
        at = self.at
        at["e"] = at["r"] - self._lengths()
        at["g"] = at["t"] - at["v"] ** 2 + self.D.T @ at["theta"]
        return at["w"] - at["mu"] * at["v"], 1.0 / at["mu"]

    def _system(self) -> tuple[NDArray, NDArray, NDArray]:
        at, k, (rates, total) = self.at, len(self.at["v"]), self._rates()
        added = np.zeros((k + 2, k + 2))
        added[:k, :k] = 0.25 * weighted_product(self.D, rates)
        added[np.arange(k), np.arange(k)] += 0.5 * at["g"] / at["mu"] + at["v"] ** 2 / at["mu"]
        added[:k, k] = added[k, :k] = 0.5
        added[:k, k + 1] = added[k + 1, :k] = -0.5 * total
        # without pairs, r occurs in no equation; 1 makes the matrix regular
        added[k + 1, k + 1] = rates.sum() if len(rates) else 1.0
        between = np.zeros((k, k + 2))
        between[np.arange(k), np.arange(k)] = -at["v"] / at["mu"]
        return 1.0 / at["mu"], between, added

    def _sides(self, target: float, ahead: Values | None) -> tuple[NDArray, NDArray]:
        at, miss = self.at, self.miss
        to_mu = 2.0 * target - at["mu"] * at["g"]
        if ahead is not None:
            miss = miss - ahead["mu"] * ahead["v"]
            to_mu = to_mu - ahead["mu"] * ahead["g"] + at["mu"] * ahead["v"] ** 2
        self._follow_theta(target, ahead, 0.0)
        of_mu = (0.5 * to_mu + at["v"] * miss) / at["mu"] - 0.5 * self.D.T @ self.free_theta
        return -miss / at["mu"], np.concatenate([of_mu, [0.0, self.free_theta.sum()]])

    def _complete(self, step: Values, added: NDArray) -> None:
        step["v"] = self.Z.T @ (self.y * step["a"])
        step["mu"], (step["t"], r) = added[:-2], added[-2:]
        self._complete_theta(step, r, 0.5 * self.D @ step["mu"])
        change = step["t"] + self.D.T @ step["theta"]
        step["g"] = change - 2.0 * self.at["v"] * step["v"]

    def _curved(self, step: Values, length: float) -> list[tuple[NDArray, NDArray]]:
        bend = (length * step["v"]) ** 2
        return [(self.at["g"], self.at["g"] + length * step["g"] - bend)]
