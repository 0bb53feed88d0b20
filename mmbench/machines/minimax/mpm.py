"""The minimax probability machine: the largest accuracy that means and covariances guarantee.

    min over w   sqrt(w'Sx w) + sqrt(w'Sy w)   subject to   w'(xm - ym) = 1           (4), (12)

The minimum is 1/kappa. Whatever the distributions, each class is classified correctly with a
probability of at least alpha = kappa^2 / (1 + kappa^2) by

    f(z) = w'z + b,    b = -(w'xm - kappa sqrt(w'Sx w)) = -(w'ym + kappa sqrt(w'Sy w)).

(4) is the equation's number in the MMRM paper, (12) in the M4 paper.

References
----------
G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. Jordan: A robust minimax approach to
classification. JMLR 3, 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.minimax.base import (
    ROUGH,
    Answer,
    CovarianceMachine,
    constant,
    covariance_parameters,
)
from mmbench.machines.minimax.coordinates import Pencil
from mmbench.machines.minimax.direction import Direction, minimax_direction
from mmbench.machines.minimax.factor import SpreadFactor, minimax_factor
from mmbench.machines.minimax.gram import SpreadGram, minimax_gram
from mmbench.machines.parameter import Param, choice
from mmbench.machines.problem import Fit
from mmbench.machines.search_space import SearchSpace


class MPM(CovarianceMachine):
    """Minimax probability machine, one-vs-one.

    Parameters
    ----------
    ridge : float, default=1e-8
        Relative ridge: ``Sc + ridge tr(Sc)/d I``, with a kernel ``ridge tr(K)/n``. A kernel needs a
        larger one, chosen like its width.
    scatter : {"mean", "sum"}, default="mean"
        Covariances with 1/n_c, or sums of squares, as the MMRM paper writes them.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "reference", "clarabel", "ecos"}, default="auto"
        "auto" solves the equation of the reweighted iteration, for more than 1000 rows on a kernel
        over the whole Gram matrix, "reference" the cone program with Clarabel.
    tol : float, default=1e-6
        Relative gap up to which a solution counts as optimal.
    ties : {"lowest", "random"}, default="lowest"
        Which of several classes with most votes is predicted.
    random_state : int, optional
        Seed of ``ties="random"``.
    n_jobs : int, optional
        Threads over pairs of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        One a pair. `objective` is (12), `bound` its dual value; ``extra`` has "kappa" and "alpha".
        Equal class means: no w exists, status ``infeasible``, and the larger class is predicted.
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    dual_coef_, support_, support_vectors_ : ndarray
        Expansion over the training rows (``rbf``, ``poly``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mmbench.machines import MPM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = MPM().fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2), round(machine.fits_[0].extra["alpha"], 2)
    (0.96, 0.79)
    """

    parameters: ClassVar[dict[str, Param]] = covariance_parameters() | {
        "solver": choice("auto", "reference", "clarabel", "ecos")
    }
    search_space: ClassVar[SearchSpace] = CovarianceMachine.search_space.extended(tol=1e-3)

    def __init__(
        self,
        ridge=1e-8,
        scatter="mean",
        kernel="linear",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        solver="auto",
        tol=1e-6,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.ridge = ridge
        self.scatter = scatter
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _answer(self, pencil: Pencil, warm: Any) -> Answer:
        if pencil.equal_means:
            return constant(
                pencil,
                Status.INFEASIBLE,
                "the class means are equal",
                objective=np.inf,
                bound=np.inf,
                extra={"kappa": 0.0, "alpha": 0.0},
            )
        found = direction(pencil.delta, pencil.var_x, pencil.var_y, self.solver)
        kappa = 1.0 / found.value
        fit = self._fit_of(pencil, found.value, found.bound, found.w, found.iterations)
        fit.extra.update(kappa=kappa, alpha=kappa**2 / (1.0 + kappa**2))
        b = -float(found.w @ pencil.mean_x) + kappa * found.spread_x
        return Answer(found.w, b, fit)

    @property
    def _searches_by_factor(self) -> bool:
        return self.solver == "auto" and self.scatter == "mean" and self.tol >= ROUGH

    def _search(
        self, machines: Sequence[MPM], factor: SpreadFactor, theta: float
    ) -> tuple[list[Answer], float]:
        found, metric = minimax_factor(factor, theta, self.tol)
        kappa = 1.0 / found.value
        fit = self._fit_of(factor, found.value, found.bound, found.w, found.iterations)
        fit.extra.update(kappa=kappa, alpha=kappa**2 / (1.0 + kappa**2))
        mean_x = float((factor.rows[factor.y > 0] @ found.w).mean())
        answer = Answer(found.w, kappa * found.spread_x - mean_x, fit)
        return [answer] * len(machines), metric.theta

    def _large_answer(self, problem: SpreadGram) -> Answer | None:
        answer = minimax_gram(problem, self.tol)
        if answer is None:
            return None
        found, _ = answer
        kappa = 1.0 / found.value
        fit = Fit(
            Status.OPTIMAL if found.closed(self.tol) else Status.INACCURATE,
            objective=found.value,
            bound=found.bound,
            max_violation=abs(float(problem.means @ found.decision) - 1.0),
            iterations=found.iterations,
            seconds=0.0,
            n_support=len(problem.y),
            extra={"kappa": kappa, "alpha": kappa**2 / (1.0 + kappa**2)},
        )
        mean_x = float(found.decision[problem.y > 0].mean())
        return Answer(found.c, kappa * found.spread_x - mean_x, fit)


def direction(target: NDArray, var_x: NDArray, var_y: NDArray, solver: str = "auto") -> Direction:
    """Return the w of smallest total spread with ``target'w = 1``, by the route of a solver's name.

    Parameters
    ----------
    target, var_x, var_y : ndarray of shape (k,)
        As for `mmbench.machines.minimax.direction.minimax_direction`.
    solver : {"auto", "reference", "clarabel", "ecos"}, default="auto"
    """
    if solver == "auto":
        return minimax_direction(target, var_x, var_y)
    from mmbench.machines.minimax.cone import solve_spread
    from mmbench.machines.minimax.spread_program import SpreadProgram

    k = len(target)
    program = SpreadProgram(
        cost=np.append(np.zeros(k), [1.0, 1.0]),
        rows=np.zeros((0, k + 2)),
        sides=np.zeros(0),
        price=np.zeros(0),
        roots=(np.sqrt(var_x), np.sqrt(var_y)),
        scales=(k, k + 1),
        equation=np.append(target, [0.0, 0.0]),
    )
    found = solve_spread(program, "clarabel" if solver == "reference" else solver)
    w = found.x[:k] / (target @ found.x[:k])
    spread_x, spread_y = (float(np.sqrt(variance @ (w * w))) for variance in (var_x, var_y))
    return Direction(w, spread_x, spread_y, found.price_of_equation, found.iterations)
