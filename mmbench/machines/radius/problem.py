"""Margins against a radius: the programs of R-SVM+ and R-SVM_mu+, their pairs and their duals.

    min over w, b, s   1/2 |w|_s + lam r(s) + C sum_i max(0, 1 - y_i (w'z_i + b))
    r(s) = max over pairs of 1/2 sum_k s_k (z_ik - z_jk)^2

    R-SVM+      |w|_s = ||w||^2             s_k = w_k^2
    R-SVM_mu+   |w|_s = sum_k w_k^2 / s_k   s = mu >= 0, sum_k mu_k = 1

With multipliers ``u_i = y_i a_i`` of the margins, ``sum u = 0``, ``0 <= a <= C``, and theta >= 0 of
the pairs, ``sum theta = lam``, let ``v = Z'u`` and ``q_k = sum_p theta_p (z_ik - z_jk)^2``:

    R-SVM+      max   sum_i a_i - 1/2 sum_k v_k^2 / (1 + q_k)
    R-SVM_mu+   max   sum_i a_i + 1/2 min_k (q_k - v_k^2)

With weights s_i of the rows C is ``C s_i`` in these, one a row. Pairs know no weights: a largest
distance does not count rows. With a kernel, whose features stand for training rows, R-SVM+ has
``w_k^2 / s_k`` in place of ``w_k^2``, which is how two equal features share a weight w; features
are then multiplied by ``sqrt(s_k)``, but for the pairs. The mu of R-SVM_mu+ share without that.

Any such u and theta give a lower bound of the optimum, however few pairs have a multiplier; any w
and mu give an upper bound, with b of the least slack and r of all pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.threshold import balanced, best_bias
from mmbench.machines.svm import svm_dual
from mmbench.solvers.result import Result

#: Rows whose distances to all others are held at once: few stay in a processor's cache.
CHUNK = 32


@dataclass(frozen=True, kw_only=True)
class RestrictedSolution:
    """The solution of a program with some pairs and columns."""

    #: Shape (k,).
    w: NDArray
    #: Shape (k,).
    mu: NDArray | None
    #: Signed multipliers of the rows. Shape (n,).
    u: NDArray
    #: Multipliers of the pairs. Shape (m,).
    theta: NDArray
    iterations: int


@dataclass(frozen=True, kw_only=True)
class RadiusPoint(Result):
    """A point of the primal, one of the dual, and where a neighbouring problem may start."""

    #: Shape (k,).
    w: NDArray
    b: float
    #: Weights of the columns; None for R-SVM+. Shape (k,).
    mu: NDArray | None
    #: The largest scaled half squared distance, over all pairs.
    r: float
    #: Signed multipliers of the rows, feasible. Shape (n,).
    u: NDArray
    #: The pairs that have a constraint. Shape (m, 2), of int.
    pairs: NDArray
    #: Their multipliers, feasible. Shape (m,).
    theta: NDArray
    #: Columns that the last program had.
    columns: NDArray
    #: Programs solved.
    rounds: int = 1

    @property
    def gap(self) -> float:
        """Distance of value and bound, relative to the value."""
        return (self.value - self.bound) / max(abs(self.value), 1e-300)


@dataclass(frozen=True)
class RadiusProblem:
    """Rows, labels and penalties."""

    #: Z, centred: b takes what that moves. Shape (n, k).
    rows: NDArray
    #: -1.0 or +1.0. Shape (n,).
    y: NDArray
    #: Penalty on slack, or that on the slack of each row. Shape (n,).
    C: float | NDArray
    #: Penalty on r.
    lam: float
    #: Whether s = mu, as in R-SVM_mu+, and not w^2.
    simplex: bool
    #: What the columns have been multiplied by, where pairs know nothing of it. Shape (k,).
    roots: float | NDArray = 1.0

    def squares(self, pairs: NDArray) -> NDArray:
        """Return ``(z_ik - z_jk)^2`` of some pairs, shape (m, k)."""
        apart = self.rows[pairs[:, 0]]
        apart -= self.rows[pairs[:, 1]]
        apart /= self.roots
        return np.square(apart, out=apart)

    def point(
        self, found: RestrictedSolution, pairs: NDArray, columns: NDArray, n_far: int
    ) -> tuple[RadiusPoint, NDArray]:
        """Evaluate both programs; return also the pairs that exceed the listed ones most.

        Parameters
        ----------
        found : RestrictedSolution
            Of the program with these pairs and columns.
        pairs : ndarray of int of shape (m, 2)
        columns : ndarray of int
        n_far : int
            Number of pairs to return.
        """
        k = self.rows.shape[1]
        w, mu = _spread(found.w, columns, k), found.mu
        mu = None if mu is None else _spread(mu, columns, k)
        weights = w * w if mu is None else mu
        listed = float((0.5 * self.squares(pairs) @ weights).max(initial=0.0))
        far, lengths = far_pairs(self.rows * (np.sqrt(weights) / self.roots), listed, n_far)
        r = float(lengths.max(initial=listed))
        norm = quotient(w, mu) if mu is not None else float(w @ w) + 2.0 * self.lam * r
        b, scale, penalty = self._threshold(w, norm)
        w = scale * w
        value = 0.5 * scale**2 * norm + penalty
        if mu is None:
            r *= scale**2
        else:
            value += self.lam * r
        u = balanced(self.y * found.u, self.y, self.C) * self.y
        theta = np.maximum(found.theta, 0.0)
        theta = theta * (self.lam / theta.sum()) if theta.any() else theta
        point = RadiusPoint(
            value=value,
            bound=self.bound(u, pairs, theta),
            violation=abs(float(u.sum())),
            iterations=found.iterations,
            status=Status.INACCURATE,
            w=w,
            b=b,
            mu=mu,
            r=r,
            u=u,
            pairs=pairs,
            theta=theta,
            columns=columns,
        )
        return point, far

    def _threshold(self, w: NDArray, norm: float) -> tuple[float, float, float]:
        """Return b of the least penalty, the best factor for w, and the penalty with both.

        Where a margin is missed by rounding and C is large, a longer w has no slack. `norm` is
        twice what grows with the square of the factor.
        """
        decision = self.rows @ w
        b = best_bias(decision, self.y, self.C)
        decision += b
        scale = svm_dual(self.rows, self.y, self.C).best_scale(decision, norm)
        slack = np.maximum(0.0, 1.0 - self.y * scale * decision)
        return scale * b, scale, float(np.sum(self.C * slack))

    def bound(self, u: NDArray, pairs: NDArray, theta: NDArray) -> float:
        """Return the dual at feasible multipliers."""
        v, q = self.rows.T @ u, self.squares(pairs).T @ theta
        total = float(self.y @ u)
        if self.simplex:
            return total + 0.5 * float((q - v * v).min())
        return total - 0.5 * float(np.sum(v * v / (1.0 + q)))


def _spread(part: NDArray, columns: NDArray, k: int) -> NDArray:
    """Return values of all columns, zero where none is given."""
    whole = np.zeros(k)
    whole[columns] = part
    return whole


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

    Each point is compared with those that are further in than itself. (SciPy's `pdist` takes seven
    times as long: 0.73 s against 0.11 s on 5400 points of 80 features.)

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
    squares = 0.5 * np.einsum("ij,ij->i", points, points)
    order = np.argsort(-squares, kind="stable")
    points, squares = points[order], squares[order]
    values, partners = np.empty(len(order)), np.empty(len(order), dtype=np.intp)
    for start in range(0, len(order), CHUNK):
        stop = min(start + CHUNK, len(order))
        half = squares[start:stop, None] + squares[start:]
        half -= points[start:stop] @ points[start:].T
        best = half.argmax(axis=1)
        partners[start:stop] = order[start + best]
        values[start:stop] = half[np.arange(stop - start), best]
    chosen = np.flatnonzero(values > above)
    chosen = chosen[np.argsort(-values[chosen], kind="stable")]
    pairs = np.sort(np.column_stack([order[chosen], partners[chosen]]), axis=1)
    pairs, first = np.unique(pairs, axis=0, return_index=True)
    ranked = np.argsort(first)[:most]
    return pairs[ranked], values[chosen][first[ranked]]
