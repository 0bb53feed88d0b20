"""Minimum error minimax probability machine: the largest weighted mean of worst-case accuracies.

    max over alpha, beta, w, b'   theta alpha + (1 - theta) beta,      theta = n_x / n
    subject to   w'xm - b' >= kappa(alpha) sqrt(w'Sx w),   b' - w'ym >= kappa(beta) sqrt(w'Sy w),
                 w'(xm - ym) = 1,      kappa(u) = sqrt(u / (1 - u))

(Huang et al., JMLR 5, 2004), with ``f(z) = w'z - b'``. The robust MEMPM has ``kappa(alpha) +
robust_mean`` and ``kappa(beta) + robust_mean`` in the constraints.

At the optimum, ``kappa(alpha) sx + kappa(beta) sy = 1`` with the spreads sx and sy. For a given
beta, the largest kappa(alpha) is the maximum over w of ``(1 - kappa(beta) sy) / sx``, and convex in
kappa(beta). It lies below its chords, which bound a branch and bound over beta: there may be
several local optima.

    Fit.route          when                 cost
    branch and bound   every solver         per beta a few MPMs: route "secant" of `mpm`, or cone
                                            programs for "reference", "clarabel" and "ecos"
    closed form        equal class means    none

Times: ``results/reference/solvers/table.csv``.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import choice, parameter
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.minimax.branch_and_bound import minimise
from mmbench.machines.minimax.coordinates import DiagonalData
from mmbench.machines.minimax.covariance import WorstCaseMachine, certificate, majority_model
from mmbench.machines.minimax.mpm import direction
from mmbench.machines.minimax.spread import Direction, accuracy, inner, spreads
from mmbench.solvers.result import Result

#: Maximum number of iterations of Dinkelbach's algorithm, which converges quadratically.
MAX_RATIO_ROUNDS = 60

#: Upper bound on the computed values of kappa(alpha) and kappa(beta). If a class has zero spread,
#: the exact value is infinite.
MAX_KAPPA = 1e12

#: `least_error` bounds the error on a chord of the graph of kappa(alpha) over kappa(beta). It is
#: used only if the larger value K of kappa(alpha) at the ends is at most MAX_CHORD_RATIO times
#: max(k, 1) for the smaller value k, and kappa(beta) satisfies the same condition. It then agrees
#: with a fine grid to 1e-13 on random chords; at 100 times this limit, the polynomial roots are
#: inaccurate, and it is up to 1e-4 too high.
MAX_CHORD_RATIO = 1e3


class MEMPM(WeightedClassifier, WorstCaseMachine):
    """Minimum error minimax probability machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One certificate per class pair. `objective` is the worst-case error
        ``1 - (theta alpha + (1 - theta) beta)``. `bound` is a lower bound on the smallest
        worst-case error. ``extra`` has the keys "alpha" and "beta".
    intercept_ : ndarray of shape (n_pairs,)
        Intercept -b' of each class pair, for the decision function ``w'z - b'``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mmbench.machines import MEMPM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = MEMPM().fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.94
    >>> {name: round(machine.fits_[0].extra[name], 2) for name in ("alpha", "beta")}
    {'alpha': 0.88, 'beta': 0.69}
    """

    version: ClassVar[int] = 3

    solver: str = parameter(
        "auto",
        choice("auto", "reference", "clarabel", "ecos"),
        'Solver of the problems with fixed beta: "auto" is the algorithm of the MPM, "reference" '
        'is Clarabel; "clarabel" and "ecos" solve cone programs.',
    )

    def solve(self, data: DiagonalData) -> BinaryModel:
        if data.equal_means:
            reason = "the class means are equal"
            return majority_model(data, Status.INFEASIBLE, reason, objective=1.0, bound=1.0)
        search = _BetaSearch(data, self.solver, self.robust_mean)
        # the solutions for the smallest and the largest beta
        ends = search.evaluate(0.0), search.evaluate(float(np.arctan(search.limit)))
        best, bound = minimise(search.evaluate, search.lower, ends, 0.5 * self.tol)
        alpha, beta = (accuracy(k - self.robust_mean) for k in (best.kappa_x, best.kappa_y))
        found = replace(best, bound=bound, iterations=search.iterations)
        fit = certificate(found, self.tol, len(data.y), alpha=alpha, beta=beta)
        b = inner(best.kappa_x * best.spread_x) - float(best.w @ data.mean_x)
        return BinaryModel(b, fit, w=best.w)


@dataclass(frozen=True)
class _BetaSolution(Result):
    """The direction w with the largest kappa(alpha), thus the largest alpha, for a fixed beta."""

    #: ``arctan(kappa(beta))``.
    at: float
    #: Weights, shape (k,).
    w: NDArray
    #: Spread of the positive class along w.
    spread_x: float
    #: Values of kappa(alpha) and kappa(beta), plus the radius `robust_mean`.
    kappa_x: float
    kappa_y: float
    #: Upper bound on kappa(alpha) over all directions w, for the fixed beta.
    most_x: float


class _BetaSearch:
    """Solutions for fixed values of beta, and lower bounds on the error over intervals of beta."""

    def __init__(self, data: DiagonalData, solver: str, radius: float = 0.0):
        self.data, self.solver, self.radius = data, solver, radius
        positive, negative = data.totals
        self.theta = positive / (positive + negative)
        self.iterations = 0
        # with kappa(alpha) = 0, the largest feasible kappa(beta) is 1/sy for the w with the
        # smallest spread sy
        self.narrowest = self._weighted(0.0, 1.0).w
        _, spread = self._spreads(self.narrowest)
        self.limit = min(1.0 / spread, MAX_KAPPA) if spread > 0 else MAX_KAPPA

    def evaluate(self, angle: float) -> _BetaSolution:
        """Maximise ``kappa(alpha) = (1 - kappa(beta) sy)/sx`` over w by Dinkelbach's algorithm."""
        kappa_y = float(np.tan(angle))
        best, kappa_x = self.narrowest, self._ratio(self.narrowest, kappa_y)
        for _ in range(MAX_RATIO_ROUNDS):
            w = self._weighted(kappa_x, kappa_y).w
            ratio = self._ratio(w, kappa_y)
            if not ratio > kappa_x * (1.0 + 1e-13):
                break
            best, kappa_x = w, ratio
            if kappa_x == MAX_KAPPA or time_is_up():
                break
        return _BetaSolution(
            angle,
            best,
            self._spreads(best)[0],
            kappa_x,
            kappa_y,
            self._refuted(kappa_x, kappa_y),
            value=self._error(kappa_x, kappa_y),
            bound=0.0,
            violation=abs(float(self.data.delta @ best) - 1.0),
            iterations=0,
            status=Status.OPTIMAL,
            route="branch and bound",
        )

    def lower(self, left: _BetaSolution, right: _BetaSolution) -> float:
        """Return a lower bound on the worst-case error over all beta in an interval.

        The largest kappa(alpha) lies below its chord as a function of kappa(beta). It does not
        increase with beta, so that an upper bound at the smallest beta holds on the interval. If
        `robust_mean` exceeds kappa(alpha) or kappa(beta) on a part of the chord, one accuracy is 0
        there, and the error is smallest at an end.
        """
        monotone = self._error(left.most_x, right.kappa_y)
        x = np.array([left.most_x, right.most_x]) - self.radius
        y = np.array([left.kappa_y, right.kappa_y]) - self.radius
        outside = min(self._error(p.most_x, p.kappa_y) for p in (left, right))
        first = y[0] / (y[0] - y[1]) if y[0] < 0 else 0.0
        last = x[0] / (x[0] - x[1]) if x[1] < 0 else 1.0
        if self.radius and not (x[0] > 0 and y[1] > 0 and first < last):
            return max(monotone, outside)
        shares = np.array([first, last])
        x, y = (ends[0] + shares * (ends[1] - ends[0]) for ends in (x, y))
        if any(max(kappas) > MAX_CHORD_RATIO * max(min(kappas), 1.0) for kappas in (x, y)):
            return monotone
        return max(monotone, min(outside, least_error(self.theta, tuple(x), tuple(y))))

    def _error(self, kappa_x: float, kappa_y: float) -> float:
        """Return the worst-case error over the set of class means with the radius `robust_mean`."""
        kappas = (max(0.0, kappa - self.radius) for kappa in (kappa_x, kappa_y))
        return error(self.theta, *kappas)

    def _refuted(self, kappa_x: float, kappa_y: float) -> float:
        """Return an upper bound on kappa(alpha) over all directions w, by trying increasing values.

        A trial value k is an upper bound on kappa(alpha) if a dual objective value proves that ``k
        sx + kappa(beta) sy >= 1`` for all w.
        """
        step = 1e-10 * max(1.0, kappa_x)
        while kappa_x + step < MAX_KAPPA:
            if self._weighted(kappa_x + step, kappa_y).bound >= 1.0:
                return kappa_x + step
            step *= 4.0
        return MAX_KAPPA

    def _ratio(self, w: NDArray, kappa_y: float) -> float:
        """Return ``(1 - kappa(beta) sy)/sx``, the largest kappa(alpha) for a given w."""
        spread_x, spread_y = self._spreads(w)
        room = max(0.0, 1.0 - kappa_y * spread_y)
        return min(room / spread_x, MAX_KAPPA) if spread_x > 0 else MAX_KAPPA

    def _spreads(self, w: NDArray) -> list[float]:
        return spreads(w, self.data.var_x, self.data.var_y).tolist()

    def _weighted(self, weight_x: float, weight_y: float) -> Direction:
        data = self.data
        found = direction(
            data.delta,
            np.maximum(weight_x**2 * data.var_x, 1e-30),
            np.maximum(weight_y**2 * data.var_y, 1e-30),
            self.solver,
        )
        self.iterations += found.iterations
        return found


def error(theta: float, kappa_x: float, kappa_y: float) -> float:
    """Return the worst-case error ``1 - (theta alpha + (1 - theta) beta)``.

    Examples
    --------
    >>> error(0.5, 2.0, 2.0)
    0.2
    """
    return float(theta / (1.0 + kappa_x**2) + (1.0 - theta) / (1.0 + kappa_y**2))


def least_error(theta: float, x: tuple[float, float], y: tuple[float, float]) -> float:
    """Return the minimum of `error` on the segment between two points (kappa(alpha), kappa(beta)).

    `x` contains kappa(alpha) of both points, and `y` contains kappa(beta) of both points.

    Examples
    --------
    >>> least_error(0.5, (2.0, 0.0), (0.0, 2.0))
    0.5
    """
    most_x, most_y = x[0], y[1]
    u, v = (  # u and v have the maximum 1, so that powers of u and v do not overflow
        Polynomial([a, b - a]) / most for (a, b), most in ((x, most_x), (y, most_y))
    )
    slope = theta / most_x**2 * u.deriv() * u * (most_y**-2 + v**2) ** 2
    slope += (1.0 - theta) / most_y**2 * v.deriv() * v * (most_x**-2 + u**2) ** 2
    shares = [0.0, 1.0, *np.clip(slope.roots().real, 0.0, 1.0)]
    return min(error(theta, most_x * u(share), most_y * v(share)) for share in shares)
