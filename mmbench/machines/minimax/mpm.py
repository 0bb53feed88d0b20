"""The minimax probability machine: the largest accuracy that means and covariances guarantee.

    min over w   sqrt(w'Sx w) + sqrt(w'Sy w)   subject to   w'(xm - ym) = 1           (4), (12)

The minimum is 1/kappa. Whatever the distributions, each class is classified correctly with a
probability of at least alpha = kappa^2 / (1 + kappa^2) by

    f(z) = w'z + b,    b = -(w'xm - kappa sqrt(w'Sx w)) = -(w'ym + kappa sqrt(w'Sy w)).

With weights of the rows (`sample_weight`) means and covariances are weighted. There is no
`class_weight`: each class has a mean and a covariance of its own, in which it cancels.

(4) is the equation's number in the MMRM paper, (12) in the M4 paper.

References
----------
G. Lanckriet, L. El Ghaoui, C. Bhattacharyya, M. Jordan: A robust minimax approach to
classification. JMLR 3, 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import choice, parameter
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.minimax.base import SpreadMachine, certificate, majority_model
from mmbench.machines.minimax.coordinates import Pencil
from mmbench.machines.minimax.spread import (
    Direction,
    SpreadFactor,
    SpreadGram,
    minimax_direction,
    minimax_factor,
    minimax_gram,
)


class MPM(WeightedClassifier, SpreadMachine):
    """Minimax probability machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One a pair. `objective` is (12), `bound` its dual value; ``extra`` has "kappa" and "alpha".
        Equal class means: no w exists, status ``infeasible``, and the larger class is predicted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mmbench.machines import MPM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = MPM().fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2), round(machine.fits_[0].extra["alpha"], 2)
    (0.96, 0.79)
    """

    search_space: ClassVar[SearchSpace] = SpreadMachine.search_space.extended(tol=1e-3)

    solver: str = parameter(
        "auto",
        choice("auto", "gram", "reference", "clarabel", "ecos"),
        '"auto" solves the equation of the reweighted iteration, with a kernel and more than 1000 '
        'rows over the whole Gram matrix ("gram"). "reference" is the cone program by Clarabel.',
    )

    def solve(self, pencil: Pencil, state: Any) -> BinaryModel:
        if pencil.equal_means:
            return majority_model(
                pencil,
                Status.INFEASIBLE,
                "the class means are equal",
                objective=np.inf,
                bound=np.inf,
                extra={"kappa": 0.0, "alpha": 0.0},
            )
        found = direction(pencil.delta, pencil.var_x, pencil.var_y, self._solver_in_coordinates)
        return self._model(found, float(found.w @ pencil.mean_x), len(pencil.y))

    def solve_factor(
        self, machines: Sequence[MPM], factor: SpreadFactor, theta: float
    ) -> tuple[list[BinaryModel], float]:
        found, _, theta = minimax_factor(factor, theta, self.tol)
        mean_x = float((factor.rows[factor.y > 0] @ found.w).mean())
        model = self._model(found, mean_x, len(factor.y))
        return [model] * len(machines), theta

    def solve_gram(self, problem: SpreadGram) -> BinaryModel | None:
        solution = minimax_gram(problem, self.tol)
        if solution is None:
            return None
        found, decision, _ = solution
        model = self._model(found, float(decision[problem.y > 0].mean()), len(problem.y))
        return replace(model, w=None, coef=model.w)

    def _model(self, found: Direction, mean_x: float, n: int) -> BinaryModel:
        """Return the model of a direction, given its decision at the mean of the positive class."""
        kappa = 1.0 / found.value
        fit = certificate(found, self.tol, n, kappa=kappa, alpha=kappa**2 / (1.0 + kappa**2))
        return BinaryModel(kappa * found.spread_x - mean_x, fit, w=found.w)


def direction(target: NDArray, var_x: NDArray, var_y: NDArray, solver: str = "auto") -> Direction:
    """Return the w of smallest total spread with ``target'w = 1``, by the route of a solver's name.

    Parameters
    ----------
    target, var_x, var_y : ndarray of shape (k,)
        As for `mmbench.machines.minimax.spread.minimax_direction`.
    solver : {"auto", "reference", "clarabel", "ecos"}, default="auto"
    """
    if solver == "auto":
        return minimax_direction(target, var_x, var_y)
    from mmbench.machines.minimax.cones import SpreadProgram, solve_spread

    k = len(target)
    program = SpreadProgram(
        cost=np.append(np.zeros(k), [1.0, 1.0]),
        rows=np.zeros((0, k + 2)),
        sides=np.zeros(0),
        penalties=np.zeros(0),
        roots=(np.sqrt(var_x), np.sqrt(var_y)),
        scales=(k, k + 1),
        equation=np.append(target, [0.0, 0.0]),
    )
    found = solve_spread(program, solver)
    w = found.x[:k]
    spreads = [float(np.sqrt(variance @ (w * w))) for variance in (var_x, var_y)]
    return Direction.along(w, target, spreads, found.equation_multiplier, found.iterations)
