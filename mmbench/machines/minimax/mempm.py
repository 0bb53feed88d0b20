"""The minimum error minimax probability machine: guaranteed accuracies weighted by class size.

    max over alpha, beta, w, b'   theta alpha + (1 - theta) beta,      theta = n_x / n
    subject to   w'xm - b' >= kap(alpha) sqrt(w'Sx w),   b' - w'ym >= kap(beta) sqrt(w'Sy w),
                 w'(xm - ym) = 1,      kap(u) = sqrt(u / (1 - u))

alpha and beta are the accuracies that the two classes have at least, whatever their distributions;
the MPM forces them to be equal. At the optimum ``kap(alpha) sx + kap(beta) sy = 1``, so for a given
beta the best alpha comes from ``max (1 - kap(beta) sy) / sx``, a ratio of a concave and a convex
function, and beta is searched for. Decision: ``f(z) = w'z - b'``.

References
----------
K. Huang, H. Yang, I. King, M. Lyu, L. Chan: The minimum error minimax probability machine. JMLR 5,
2004.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.minimax.base import CovarianceMachine, certificate, majority_model
from mmbench.machines.minimax.coordinates import Pencil
from mmbench.machines.minimax.direction import Direction
from mmbench.machines.minimax.line_search import interpolate, maximise
from mmbench.machines.minimax.mpm import direction
from mmbench.machines.parameter import choice, parameter, positive
from mmbench.machines.problem import BinaryModel
from mmbench.solvers.result import Result

#: Points of the grid over beta.
N_BETA = 50

#: Rounds of the ratio's iteration; it converges quadratically.
MAX_RATIO_ROUNDS = 60

#: kap(alpha) of a class that has no spread; alpha is 1 then.
MAX_KAPPA = 1e12


class MEMPM(CovarianceMachine):
    """Minimum error minimax probability machine, one-vs-one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        One a pair. `objective` is ``1 - (theta alpha + (1 - theta) beta)``, the error that cannot
        be exceeded; ``extra`` has "alpha" and "beta". `bound` is that of the problem at the beta
        found: no bound over all beta is known.
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    dual_coef_, support_, support_vectors_ : ndarray
        Expansion over the training rows (``rbf``, ``poly``).
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

    solver: str = parameter(
        "auto",
        choice("auto", "reference", "clarabel", "ecos"),
        '"auto" searches beta on a grid and refines; the inner problems are solved as the MPM\'s. '
        '"reference" is the authors\' search by quadratic interpolation, with cone programs. The '
        "names of cone solvers keep the grid.",
    )
    tol: float = parameter(
        1e-6, positive(), "Accuracy of the search for beta, and relative gap of the inner problem."
    )

    def solve(self, pencil: Pencil, state: Any) -> BinaryModel:
        if pencil.equal_means:
            reason = "the class means are equal"
            return majority_model(pencil, Status.INFEASIBLE, reason, objective=1.0, bound=1.0)
        search = _Search(pencil, self.solver)
        beta = search.best_beta(self.solver, self.tol)
        biased = search.biased(beta)
        w, theta = biased.w, search.theta
        alpha, most = accuracy(biased.kappa), accuracy(search.kappa_bound(biased))
        found = Result(
            value=1.0 - theta * alpha - (1.0 - theta) * beta,
            bound=1.0 - theta * most - (1.0 - theta) * beta,
            violation=abs(float(pencil.delta @ w) - 1.0),
            iterations=search.iterations,
            status=Status.OPTIMAL,
        )
        fit = certificate(found, self.tol, len(pencil.y), alpha=alpha, beta=beta)
        return BinaryModel(biased.kappa * biased.spread_x - float(w @ pencil.mean_x), fit, w=w)


@dataclass(frozen=True)
class Biased:
    """The best direction for a given beta, with its spreads.

    Attributes
    ----------
    w : ndarray of shape (k,)
    spread_x, spread_y : float
    kappa : float
        kap(alpha), the largest for kap(beta).
    kappa_y : float
        kap(beta).
    """

    w: NDArray
    spread_x: float
    spread_y: float
    kappa: float
    kappa_y: float


class _Search:
    """The problem for a given beta, and the search over beta."""

    def __init__(self, pencil: Pencil, solver: str):
        self.pencil, self.solver = pencil, solver
        self.theta = float((pencil.y > 0).mean())
        self.iterations = 0
        # The largest kap(beta): all the distance of the means is given to class y.
        self.narrowest = self._weighted(0.0, 1.0).w
        _, spread = self._spreads(self.narrowest)
        self.limit = min(1.0 / spread, MAX_KAPPA) if spread > 0 else MAX_KAPPA

    def best_beta(self, solver: str, tol: float) -> float:
        """Return the best beta: of a grid, refined, or by the authors' interpolation."""
        highest = accuracy(self.limit) * (1.0 - 1e-9)
        if solver == "reference":
            return interpolate(self.value, (0.0, 0.5 * highest, highest), tol)[0]
        return maximise(self.value, list(np.linspace(0.0, highest, N_BETA)), tol)[0]

    def value(self, beta: float) -> float:
        """Return the criterion at the best direction for beta; nothing beyond the feasible ones."""
        if not 0.0 <= beta < accuracy(self.limit):
            return -np.inf
        return self.theta * accuracy(self.biased(beta).kappa) + (1.0 - self.theta) * beta

    def biased(self, beta: float) -> Biased:
        """Maximise ``(1 - kap(beta) sy)/sx`` by Dinkelbach's iteration, which only rises."""
        kappa_y = float(np.sqrt(beta / (1.0 - beta)))
        best = self._along(self.narrowest, kappa_y)
        for _ in range(MAX_RATIO_ROUNDS):
            found = self._along(self._weighted(best.kappa, kappa_y).w, kappa_y)
            if not found.kappa > best.kappa * (1.0 + 1e-13):
                break
            best = found
            if best.kappa == MAX_KAPPA:
                break
        return best

    def kappa_bound(self, biased: Biased) -> float:
        """Return a kappa that no direction reaches.

        ``kappa sx + kappa_y sy <= 1`` must hold; a dual value of its left hand side above 1 refutes
        a kappa. The step is doubled until it does.
        """
        step = 1e-10
        while step < 1.0:
            kappa = biased.kappa * (1.0 + step)
            if self._weighted(kappa, biased.kappa_y).bound >= 1.0:
                return kappa
            step *= 4.0
        return MAX_KAPPA

    def _along(self, w: NDArray, kappa_y: float) -> Biased:
        """Return the largest kap(alpha) of a direction."""
        spread_x, spread_y = self._spreads(w)
        room = max(0.0, 1.0 - kappa_y * spread_y)
        kappa = min(room / spread_x, MAX_KAPPA) if spread_x > 0 else MAX_KAPPA
        return Biased(w, spread_x, spread_y, kappa, kappa_y)

    def _spreads(self, w: NDArray) -> tuple[float, float]:
        x, y = (
            float(np.sqrt(variance @ (w * w)))
            for variance in (self.pencil.var_x, self.pencil.var_y)
        )
        return x, y

    def _weighted(self, weight_x: float, weight_y: float) -> Direction:
        pencil = self.pencil
        found = direction(
            pencil.delta,
            np.maximum(weight_x**2 * pencil.var_x, 1e-30),
            np.maximum(weight_y**2 * pencil.var_y, 1e-30),
            self.solver,
        )
        self.iterations += found.iterations
        return found


def accuracy(kappa: float) -> float:
    """Return ``kappa^2 / (1 + kappa^2)``, the inverse of kap.

    Examples
    --------
    >>> accuracy(2.0)
    0.8
    """
    return kappa**2 / (1.0 + kappa**2)
