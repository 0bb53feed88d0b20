"""Margins against a radius: the programs of R-SVM+ and R-SVM_mu+, their pairs and their duals.

    min over w, b, s   1/2 |w|_s + lam r(s) + C sum_i max(0, 1 - y_i (w'z_i + b))
    r(s) = max over pairs of 1/2 sum_k s_k (z_ik - z_jk)^2

    R-SVM+      |w|_s = ||w||^2             s_k = w_k^2
    R-SVM_mu+   |w|_s = sum_k w_k^2 / s_k   s = mu >= 0, sum_k mu_k = 1

With multipliers ``u_i = y_i a_i`` of the margins, ``sum u = 0``, ``0 <= a <= C``, and theta >= 0 of
the pairs, ``sum theta = lam``, let ``v = Z'u`` and ``q_k = sum_p theta_p (z_ik - z_jk)^2``:

    R-SVM+      max   sum_i a_i - 1/2 sum_k v_k^2 / (1 + q_k)
    R-SVM_mu+   max   sum_i a_i + 1/2 min_k (q_k - v_k^2)

Any such u and theta give a lower bound of the optimum, however few pairs have a multiplier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.hinge import balanced, best_bias

#: Rows whose distances to all others are held at once.
CHUNK = 256

#: A distance is left out only if it is shorter by more than rounding.
ALMOST = 1 - 1e-12


@dataclass(frozen=True)
class RadiusPoint:
    """A point of the primal, one of the dual, and where a neighbouring problem may start.

    Attributes
    ----------
    w : ndarray of shape (k,)
    b : float
    mu : ndarray of shape (k,) or None
        Weights of the columns; None for R-SVM+.
    value, bound : float
        The primal at the smallest feasible r and slack, and the dual.
    r : float
        The largest scaled half squared distance, over all pairs.
    violation : float
        By how much a pair that has no constraint of its own exceeds those that have one.
    u : ndarray of shape (n,)
        Signed multipliers of the rows.
    pairs : ndarray of int of shape (m, 2)
        The pairs that have a constraint.
    theta : ndarray of shape (m,)
        Their multipliers.
    columns : ndarray of int
        Columns that the last program had.
    rounds, iterations : int
        Programs solved, and the solver's iterations in them.
    status : Status
    """

    w: NDArray
    b: float
    mu: NDArray | None
    value: float
    bound: float
    r: float
    violation: float
    u: NDArray
    pairs: NDArray
    theta: NDArray
    columns: NDArray
    rounds: int = 0
    iterations: int = 0
    status: Status = Status.OPTIMAL

    @property
    def gap(self) -> float:
        """Distance of value and bound, relative to the value."""
        return (self.value - self.bound) / max(abs(self.value), 1e-300)

    def closed(self, tol: float) -> bool:
        """Whether value and bound agree, and no pair is violated, up to a relative tolerance."""
        return self.gap <= tol and self.violation <= tol * max(1.0, self.r)


@dataclass(frozen=True)
class RadiusProblem:
    """Rows, labels and prices.

    Parameters
    ----------
    rows : ndarray of shape (n, k)
        Z, centred: b takes what that moves.
    y : ndarray of shape (n,)
        -1.0 or +1.0.
    C : float
        Price of one unit of slack.
    lam : float
        Price of one unit of r.
    simplex : bool
        Whether s = mu, as in R-SVM_mu+, and not w^2.
    """

    rows: NDArray
    y: NDArray
    C: float
    lam: float
    simplex: bool

    def squares(self, pairs: NDArray) -> NDArray:
        """Return ``(z_ik - z_jk)^2`` of some pairs, shape (m, k)."""
        return (self.rows[pairs[:, 0]] - self.rows[pairs[:, 1]]) ** 2

    def far_pairs(self, weights: NDArray, above: float, most: int) -> tuple[NDArray, NDArray]:
        """Return the pairs with the largest scaled half squared distances; see `far_pairs`."""
        return far_pairs(self.rows * np.sqrt(weights), above, most)

    def point(
        self,
        w: NDArray,
        mu: NDArray | None,
        u: NDArray,
        pairs: NDArray,
        theta: NDArray,
        most: int,
    ) -> tuple[RadiusPoint, NDArray]:
        """Evaluate both programs; return also the pairs that are violated most.

        Parameters
        ----------
        w : ndarray of shape (k,)
        mu : ndarray of shape (k,) or None
        u : ndarray of shape (n,)
            Clipped and balanced.
        pairs, theta : ndarray
            theta is scaled to its sum.
        most : int
            Of violated pairs.
        """
        weights = w * w if mu is None else mu
        own = 0.5 * self.squares(pairs) @ weights
        listed = float(own.max(initial=0.0))
        far, lengths = self.far_pairs(weights, listed, most)
        r = float(lengths.max(initial=listed))
        decision = self.rows @ w
        b = best_bias(decision, self.y)
        slack = float(np.maximum(0.0, 1.0 - self.y * (decision + b)).sum())
        norm = float(w @ w) if mu is None else quotient(w, mu)
        u = balanced(self.y * u, self.y, self.C) * self.y
        theta = np.maximum(theta, 0.0)
        theta = theta * (self.lam / theta.sum()) if theta.any() else theta
        found = RadiusPoint(
            *(w, b, mu),
            value=0.5 * norm + self.lam * r + self.C * slack,
            bound=self.bound(u, pairs, theta),
            r=r,
            violation=r - listed if self.lam > 0 else 0.0,
            u=u,
            pairs=pairs,
            theta=theta,
            columns=np.arange(len(w)),
        )
        return found, far

    def bound(self, u: NDArray, pairs: NDArray, theta: NDArray) -> float:
        """Return the dual at feasible multipliers."""
        v, q = self.rows.T @ u, self.squares(pairs).T @ theta
        total = float(self.y @ u)
        if self.simplex:
            return total + 0.5 * float((q - v * v).min())
        return total - 0.5 * float(np.sum(v * v / (1.0 + q)))


def quotient(w: NDArray, mu: NDArray) -> float:
    """Return ``sum_k w_k^2 / mu_k``, where 0/0 is 0.

    Examples
    --------
    >>> quotient(np.array([1.0, 0.0]), np.array([0.5, 0.0]))
    2.0
    """
    used = w != 0
    return float(np.sum(w[used] ** 2 / mu[used]))


def far_pairs(points: NDArray, above: float, most: int) -> tuple[NDArray, NDArray]:
    """Return the largest half squared distances between points, of each point at most one.

    Points are taken from the outermost inwards, some at a time, with their distances to all that
    are further in. Where the distances of two points from the centre do not add up to what the
    pairs found so far have reached, they are not compared.

    Parameters
    ----------
    points : ndarray of shape (n, k)
    above : float
        Only pairs that exceed it are returned.
    most : int
        Of pairs.

    Returns
    -------
    pairs : ndarray of int of shape (m, 2)
        The first index of each is the smaller one; the largest distance comes first.
    values : ndarray of shape (m,)

    Examples
    --------
    >>> pairs, values = far_pairs(np.array([[0.0], [1.0], [4.0]]), 1.0, most=5)
    >>> pairs.tolist(), values.tolist()
    ([[0, 2], [1, 2]], [8.0, 4.5])
    """
    points = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    lengths = np.sqrt(np.einsum("ij,ij->i", points, points))
    reach = np.sqrt(2.0 * max(above, 0.0)) * ALMOST
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] + lengths[order[0]] > reach]
    near, lengths = points[order], lengths[order]
    squares = 0.5 * lengths**2
    values, partners = np.full(len(order), -np.inf), np.zeros(len(order), dtype=np.intp)
    for start in range(0, len(order), CHUNK):
        if 2.0 * lengths[start] <= reach:
            break
        stop = min(start + CHUNK, len(order))
        last = max(stop, np.searchsorted(-lengths, lengths[start] - reach))
        half = near[start:stop] @ near[start:last].T
        np.subtract(squares[start:stop, None] + squares[start:last], half, out=half)
        best = half.argmax(axis=1)
        partners[start:stop] = order[start + best]
        values[start:stop] = half[np.arange(stop - start), best]
        if stop > most:
            enough = max(np.partition(values[:stop], -most)[-most], 0.0)
            reach = max(reach, np.sqrt(2.0 * enough) * ALMOST)
    chosen = np.flatnonzero(values > above)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    pairs = np.sort(np.column_stack([order[chosen], partners[chosen]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    ranked = np.argsort(first)[:most]
    return pairs[ranked], values[chosen][first[ranked]]
