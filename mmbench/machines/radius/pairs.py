"""The duals of R-SVM+ and R-SVMμ+, and the most distant pairs of rows.

With ``s_k = w_k^2`` in R-SVM+ (9) and ``s = mu`` in R-SVMμ+ (7), see `rsvm`, the radius term is
``r(s) = max over pairs of 1/2 sum_k s_k (z_ik - z_jk)^2``. The dual problems are

    R-SVM+      max   sum_i a_i - 1/2 sum_k v_k^2 / (1 + q_k)
    R-SVMμ+     max   sum_i a_i + 1/2 min_k (q_k - v_k^2)

over ``u_i = y_i a_i`` with ``sum u = 0`` and ``0 <= a <= C``, and theta_p >= 0 of the pairs
``p = (i, j)`` with the sum lam, where ``v = Z'u`` and ``q_k = sum_p theta_p (z_ik - z_jk)^2``.
Feasible u and theta give a lower bound; w and mu, with the best b, an upper bound, or w = 0 if it
is better.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import check_time
from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.svm import svm_dual
from mmbench.solvers.result import Result

#: Number of rows whose distances to all other rows are computed at once. The distances of CHUNK
#: rows to all other rows fit into the processor cache.
CHUNK = 32

#: Relative rounding error of a distance, by which the threshold for skipped points is reduced.
ROUNDING = 1e-9

#: A warm start for other penalties has the active pairs of the last restricted problem and, if that
#: has all rows, its FEWEST_PAIRS most distant pairs. With fewer pairs, steps may be short: a search
#: on Abalone (class 3 against 11) took 50 times as long with the active pairs only.
FEWEST_PAIRS = 100

#: A warm start of R-SVMμ+ contains the features whose weight mu_k exceeds SMALLEST_SHARE. The sum
#: of all feature weights is 1.
SMALLEST_SHARE = 1e-9


class Listed(NamedTuple):
    """Constraints and variables of a restricted problem."""

    #: Row indices i and j of each pair. Shape (m, 2).
    pairs: NDArray
    #: Indices of the rows with a margin constraint in the restricted problem.
    rows: NDArray
    #: Indices of the features in the restricted problem.
    features: NDArray


@dataclass(frozen=True, kw_only=True)
class PairSolution(Result):
    """A primal and a dual feasible point of R-SVM+ or R-SVMμ+."""

    #: Coefficients of the features. Shape (k,).
    w: NDArray
    b: float
    #: Weights mu_k of the features, or None for R-SVM+. Shape (k,).
    mu: NDArray | None
    #: Half the largest squared distance of two rows, weighted by mu or w^2.
    r: float
    #: Feasible signed multipliers of the margin constraints. Shape (n,).
    u: NDArray
    #: Feasible multipliers of the listed pairs. Shape (m,).
    theta: NDArray
    listed: Listed
    #: Subset of `listed` that is the warm start for training with other penalties.
    active: Listed
    #: Number of restricted problems solved.
    rounds: int = 1

    @property
    def gap(self) -> float:
        """Difference of objective value and lower bound, relative to the objective value."""
        return (self.value - self.bound) / max(abs(self.value), 1e-300)


@dataclass(frozen=True)
class PairProblem:
    """Features, labels and penalties of R-SVM+ or R-SVMμ+."""

    #: Centred features, multiplied by `roots`. Centring changes only the intercept. Shape (n, k).
    rows: NDArray
    #: Labels -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: Penalties on the slacks of the rows. Shape (n,).
    C: NDArray
    #: Penalty on r.
    lam: float
    #: True if distances of rows are weighted by mu (R-SVMμ+), False if by w^2 (R-SVM+).
    simplex: bool
    #: Factors of the features, one number or shape (k,): in R-SVM+ with a kernel, the square roots
    #: of the row weights. Distances of rows are computed without `roots`.
    roots: float | NDArray = 1.0

    @property
    def smaller(self) -> float:
        """Minimum over the two classes of the sum of the slack penalties C.

        If w = 0, each row of the class with the smaller sum has slack 2.
        """
        return float(min(self.C[self.y > 0].sum(), self.C[self.y < 0].sum()))

    def squares(self, pairs: NDArray) -> NDArray:
        """Return ``(z_ik - z_jk)^2`` for the given pairs (i, j) of rows, shape (m, k)."""
        apart = self.rows[pairs[:, 0]]
        apart -= self.rows[pairs[:, 1]]
        apart /= self.roots
        return np.square(apart, out=apart)

    def restricted(self, listed: Listed) -> tuple["PairProblem", NDArray]:
        """Return the restricted problem, and the array of `squares` for its pairs and features."""
        (pairs, rows, features), y, C = listed, self.y, self.C
        part = replace(self, rows=self.rows[np.ix_(rows, features)], y=y[rows], C=C[rows])
        return part, self.squares(pairs)[:, features]

    def certified(
        self,
        found: tuple[NDArray, NDArray | None, NDArray, NDArray, int],
        listed: Listed,
        most: int,
    ) -> tuple[PairSolution, NDArray]:
        """Certify a solution of a restricted problem for the whole problem.

        `found` is the `RestrictedSolution` of the restricted problem `listed`. The second returned
        value contains at most `most` pairs that are violated and not in `listed`, in decreasing
        order of distance. A pair is violated if its weighted squared distance exceeds the weighted
        squared distances of all listed pairs.
        """
        (n, k), (w, mu, u, theta, iterations) = self.rows.shape, found
        (pairs, rows, features), squares = listed, self.squares(listed.pairs)
        if len(features) < k:  # only restricted problems of R-SVMμ+ omit features
            whole = np.zeros((2, k))
            whole[:, features] = w, mu
            w, mu = whole
        weights = w * w if mu is None else mu
        lengths = 0.5 * squares @ weights
        listed_r = float(lengths.max(initial=0.0))
        scaled = self.rows * (np.sqrt(weights) / self.roots)
        far, far_lengths = far_pairs(scaled, listed_r, most)
        r = float(far_lengths.max(initial=listed_r))
        theta = np.maximum(theta, 0.0)
        theta = theta * (self.lam / theta.sum()) if theta.any() else theta
        # a pair with the multiplier theta and the slack e is considered active if theta / lam
        # exceeds e / r, with the r of the restricted problem
        held = theta * listed_r > self.lam * (listed_r - lengths)
        if len(rows) == n:
            held[np.argsort(-lengths, kind="stable")[:FEWEST_PAIRS]] = True
        active = Listed(pairs[held] if held.any() else pairs, rows, features)
        if mu is not None:
            active = active._replace(features=features[mu[features] > SMALLEST_SHARE])
        norm = quotient(w, mu) if mu is not None else float(w @ w) + 2.0 * self.lam * r
        decision = self.rows @ w
        b = best_bias(decision, self.y, self.C)
        decision += b
        # if C is large, a margin that rounding errors reduce below 1 has a large penalty; therefore
        # `best_scale` increases the length of w slightly
        scale = svm_dual(self.rows, self.y, self.C).best_scale(decision, norm)
        slack = np.maximum(0.0, 1.0 - self.y * scale * decision)
        value = 0.5 * scale**2 * norm + float(np.sum(self.C * slack))
        # w is replaced by 0 if the objective value at w is not below the objective value at 0; the
        # direction of w then consists of rounding errors
        if value >= 2.0 * self.smaller:
            value, w = 2.0 * self.smaller, np.zeros(k)
            b = best_bias(self.rows @ w, self.y, self.C)
        a = np.zeros(n)
        a[rows] = self.y[rows] * u
        u = balanced(a, self.y, self.C) * self.y
        v, q = self.rows.T @ u, squares.T @ theta
        if self.simplex:
            value += self.lam * r
            dual_norm = float((v * v - q).max())
        else:
            r *= scale**2 * w.any()
            dual_norm = float(np.sum(v * v / (1.0 + q)))
        point = PairSolution(
            value=value,
            bound=float(self.y @ u) - 0.5 * dual_norm,
            violation=abs(float(u.sum())),
            iterations=iterations,
            status=Status.INACCURATE,
            w=scale * w,
            b=scale * b,
            mu=mu,
            r=r,
            u=u,
            theta=theta,
            listed=listed,
            active=active,
        )
        return point, far


def quotient(w: NDArray, mu: NDArray) -> float:
    """Return ``sum_k w_k^2 / mu_k`` with 0/0 = 0.

    Examples
    --------
    >>> quotient(np.array([1.0, 0.0]), np.array([0.5, 0.0]))
    2.0
    """
    used = w != 0
    return float(np.sum(w[used] ** 2 / mu[used]))


def far_pairs(
    points: NDArray, above: float, most: int, rows: int | None = None
) -> tuple[NDArray, NDArray]:
    """Return distant pairs of points and half their squared distances.

    Half the squared distance of each returned pair exceeds `above`. The pairs (i, j) with i < j are
    in decreasing order of distance. Each point is compared at least with all points that are nearer
    to the centre, and forms one pair with the most distant of the compared points. Therefore at
    most one pair per point is returned. The distance of two points is at most the sum of their
    distances from the centre. Points with too small a sum are skipped, which reduces the CPU time
    of the R-SVM+ to 0.3 on 20,000 generated rows (`benchmarks/peers.py`, task `growth`). With
    `rows`, only that many points, the farthest from the centre, are compared with the others.

    Examples
    --------
    >>> pairs, values = far_pairs(np.array([[0.0], [1.0], [4.0]]), 1.0, most=5)
    >>> pairs.tolist(), values.tolist()
    ([[0, 2], [1, 2]], [8.0, 4.5])
    """
    points = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    squares = 0.5 * np.einsum("ij,ij->i", points, points)
    order = np.argsort(-squares, kind="stable")
    points, squares = points[order], squares[order]
    values, partners, least = np.zeros(len(order)), order.copy(), above
    radii = np.sqrt(2.0 * squares)
    for start in range(0, len(order[:rows]), CHUNK):
        # pairs of more distant points have all been compared
        end = np.searchsorted(
            -radii, radii[start] - (1.0 - ROUNDING) * np.sqrt(2.0 * least), "right"
        )
        if end <= start:
            break
        check_time(float(end - start) ** 2 * points.shape[1])
        stop = min(start + CHUNK, len(order))
        half = squares[start:stop, None] + squares[start:end]
        half -= points[start:stop] @ points[start:end].T
        best = half.argmax(axis=1)
        partners[start:stop] = order[start + best]
        values[start:stop] = half[np.arange(stop - start), best]
        if stop > 2 * most:  # a pair may be found from both of its points
            least = max(above, float(np.partition(values[:stop], -2 * most)[-2 * most]))
    chosen = np.flatnonzero(values > above)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    pairs = np.sort(np.column_stack([order[chosen], partners[chosen]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    ranked = np.argsort(first)[:most]
    return pairs[ranked], values[chosen][first[ranked]]
