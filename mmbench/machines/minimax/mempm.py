"""The minimum error minimax probability machine: guaranteed accuracies weighted by class size.

    max over alpha, beta, w, b'   theta alpha + (1 - theta) beta,      theta = n_x / n
    subject to   w'xm - b' >= kap(alpha) sqrt(w'Sx w),   b' - w'ym >= kap(beta) sqrt(w'Sy w),
                 w'(xm - ym) = 1,      kap(u) = sqrt(u / (1 - u))

alpha and beta are the accuracies that the two classes have at least, whatever their distributions;
the MPM forces them to be equal. At the optimum ``kap(alpha) sx + kap(beta) sy = 1``, so for a given
beta the best alpha comes from ``max (1 - kap(beta) sy) / sx``, a ratio of a concave and a convex
function. Decision: ``f(z) = w'z - b'``.

With `sample_weight` means and covariances are weighted, and theta is the share of the weight.

Beta is found by branch and bound, since there may be several local optima. The least of
``kap(alpha) sx + kap(beta) sy`` over w is concave in (kap(alpha), kap(beta)), so the largest
kap(alpha) is a convex function of kap(beta): between two of its points it lies below their chord.

References
----------
K. Huang, H. Yang, I. King, M. Lyu, L. Chan: The minimum error minimax probability machine. JMLR 5,
2004.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import choice, parameter
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.minimax.base import CovarianceMachine, certificate, majority_model
from mmbench.machines.minimax.branch_and_bound import minimise
from mmbench.machines.minimax.coordinates import DiagonalData
from mmbench.machines.minimax.mpm import direction
from mmbench.machines.minimax.spread import Direction
from mmbench.solvers.result import Result

#: Largest number of Dinkelbach iterations; they converge quadratically.
MAX_RATIO_ROUNDS = 60

#: kap(alpha) of a class without spread, for which alpha is 1.
MAX_KAPPA = 1e12

#: Largest ratio of kap, or of kap to 1, between the ends of a chord for which the roots of its
#: polynomial are accurate. Up to it the least error of random chords agrees with a fine grid to
#: 1e-13; at a hundred times this ratio it is up to 1e-4 too high, and no bound.
MAX_CHORD_RATIO = 1e3


class MEMPM(WeightedClassifier, CovarianceMachine):
    """Minimum error minimax probability machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One per pair. `objective` is ``1 - (theta alpha + (1 - theta) beta)``, the largest
        possible error, `bound` a lower bound of it over all beta; ``extra`` has "alpha" and "beta".
    intercept_ : ndarray of shape (n_pairs,)
        -b' of each pair.

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
        "The problems for a given beta are solved as the MPM's, or as cone programs by Clarabel "
        '("reference") or the solver named.',
    )

    def solve(self, data: DiagonalData, state: Any) -> BinaryModel:
        if data.equal_means:
            reason = "the class means are equal"
            return majority_model(data, Status.INFEASIBLE, reason, objective=1.0, bound=1.0)
        search = _BetaSearch(data, self.solver)
        best, bound = minimise(search.evaluate, search.lower, search.ends(), 0.5 * self.tol)
        alpha, beta = accuracy(best.kappa_x), accuracy(best.kappa_y)
        found = Result(
            value=best.value,
            bound=bound,
            violation=abs(float(data.delta @ best.w) - 1.0),
            iterations=search.iterations,
            status=Status.OPTIMAL,
            route="branch and bound",
        )
        fit = certificate(found, self.tol, len(data.y), alpha=alpha, beta=beta)
        b = best.kappa_x * best.spread_x - float(best.w @ data.mean_x)
        return BinaryModel(b, fit, w=best.w)


@dataclass(frozen=True)
class _BetaSolution:
    """The best direction for a given beta."""

    #: ``arctan(kap(beta))`` and the objective.
    at: float
    value: float
    #: Shape (k,).
    w: NDArray
    #: Spread of w in the positive class, kap(alpha) and kap(beta).
    spread_x: float
    kappa_x: float
    kappa_y: float
    #: Upper bound of kap(alpha) over all directions at this beta.
    most_x: float


class _BetaSearch:
    """The problems for all beta, and lower bounds between two of them."""

    def __init__(self, data: DiagonalData, solver: str):
        self.data, self.solver = data, solver
        positive, negative = data.totals
        self.theta = positive / (positive + negative)
        self.iterations = 0
        # At the largest kap(beta) class y has the whole distance of the means.
        self.narrowest = self._weighted(0.0, 1.0).w
        _, spread = self._spreads(self.narrowest)
        self.limit = min(1.0 / spread, MAX_KAPPA) if spread > 0 else MAX_KAPPA

    def ends(self) -> tuple[_BetaSolution, _BetaSolution]:
        """Return the points of the least and the largest beta."""
        return self.evaluate(0.0), self.evaluate(float(np.arctan(self.limit)))

    def evaluate(self, angle: float) -> _BetaSolution:
        """Maximise ``(1 - kap(beta) sy)/sx`` by Dinkelbach's iteration, which never falls."""
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
            error(self.theta, kappa_x, kappa_y),
            best,
            self._spreads(best)[0],
            kappa_x,
            kappa_y,
            self._refuted(kappa_x, kappa_y),
        )

    def lower(self, left: _BetaSolution, right: _BetaSolution) -> float:
        """Return the least error with kap(alpha) on the chord between two points."""
        monotone = error(self.theta, left.most_x, right.kappa_y)
        ends = (left.most_x, right.most_x), (left.kappa_y, right.kappa_y)
        if any(max(kappas) > MAX_CHORD_RATIO * max(min(kappas), 1.0) for kappas in ends):
            return monotone
        return max(monotone, least_error(self.theta, *ends))

    def _refuted(self, kappa_x: float, kappa_y: float) -> float:
        """Return a kap(alpha) that no direction reaches, by steps of growing size.

        It is refuted by a dual value of ``kap(alpha) sx + kap(beta) sy`` above 1.
        """
        step = 1e-10 * max(1.0, kappa_x)
        while kappa_x + step < MAX_KAPPA:
            if self._weighted(kappa_x + step, kappa_y).bound >= 1.0:
                return kappa_x + step
            step *= 4.0
        return MAX_KAPPA

    def _ratio(self, w: NDArray, kappa_y: float) -> float:
        """Return the largest kap(alpha) of a direction."""
        spread_x, spread_y = self._spreads(w)
        room = max(0.0, 1.0 - kappa_y * spread_y)
        return min(room / spread_x, MAX_KAPPA) if spread_x > 0 else MAX_KAPPA

    def _spreads(self, w: NDArray) -> tuple[float, float]:
        x, y = (
            float(np.sqrt(variance @ (w * w))) for variance in (self.data.var_x, self.data.var_y)
        )
        return x, y

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
    """Return ``1 - (theta alpha + (1 - theta) beta)``.

    Examples
    --------
    >>> error(0.5, 2.0, 2.0)
    0.2
    """
    return float(theta / (1.0 + kappa_x**2) + (1.0 - theta) / (1.0 + kappa_y**2))


def least_error(theta: float, x: tuple[float, float], y: tuple[float, float]) -> float:
    """Return the least error on the chord between two points, given by kap(alpha) and kap(beta).

    Examples
    --------
    >>> least_error(0.5, (2.0, 0.0), (0.0, 2.0))
    0.5
    """
    most_x, most_y = x[0], y[1]
    u, v = (  # of order 1, as their powers are then
        Polynomial([a, b - a]) / most for (a, b), most in ((x, most_x), (y, most_y))
    )
    slope = theta / most_x**2 * u.deriv() * u * (most_y**-2 + v**2) ** 2
    slope += (1.0 - theta) / most_y**2 * v.deriv() * v * (most_x**-2 + u**2) ** 2
    shares = [0.0, 1.0, *np.clip(slope.roots().real, 0.0, 1.0)]
    return min(error(theta, most_x * u(share), most_y * v(share)) for share in shares)


def accuracy(kappa: float) -> float:
    """Return ``kappa^2 / (1 + kappa^2)``, the inverse of kap.

    Examples
    --------
    >>> accuracy(2.0)
    0.8
    """
    return kappa**2 / (1.0 + kappa**2)
