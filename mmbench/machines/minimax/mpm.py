"""The minimax probability machine: the largest worst-case accuracy for given means and covariances.

    min over w   sqrt(w'Sx w) + sqrt(w'Sy w)   subject to   w'(xm - ym) = 1

(Lanckriet et al., JMLR 3, 2002; (4) in the MMRM paper, (12) in the M4 paper.) With the minimum
1/kappa,

    f(z) = w'z + b,    b = -(w'xm - kappa sqrt(w'Sx w)) = -(w'ym + kappa sqrt(w'Sy w)).

Both classes have the guaranteed accuracy alpha = kappa^2 / (1 + kappa^2); in the robust MPM (module
`covariance`), alpha has ``kappa - robust_mean``, and w and b are the same.

    Fit.route      when                                       cost: n rows, d features, rank r
    secant         linear kernel, low rank or row weights     n d^2 or n r^2 (module `spread`)
    gram           kernel matrix of high rank                 n^3/3, then conjugate gradients
    cone program   "reference", "clarabel" or "ecos"          one cone program
    closed form    equal means, or different without variance none

Times of "secant" and "gram": `benchmarks/peers.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import choice, parameter
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.minimax.coordinates import DiagonalData
from mmbench.machines.minimax.covariance import SpreadMachine, certificate, majority_model
from mmbench.machines.minimax.spread import (
    Direction,
    GramSpread,
    accuracy,
    inner,
    minimax_direction,
    spreads,
)


class MPM(WeightedClassifier, SpreadMachine):
    """Minimax probability machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One certificate per class pair. `objective` is the sum of class spreads in (12) of the M4
        paper. `bound` is a lower bound on the minimum of this sum, from a dual solution. ``extra``
        has the keys "kappa" and "alpha". If the class means are equal, the status is ``infeasible``
        and the larger class is predicted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from mmbench.machines import MPM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = MPM().fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2), machine.worst_case_accuracy_.round(2)
    (0.96, array([0.79]))
    """

    search_space: ClassVar[SearchSpace] = SpreadMachine.search_space.extended(tol=1e-3)

    solver: str = parameter(
        "auto",
        choice("auto", "gram", "reference", "clarabel", "ecos"),
        '"auto" solves one equation in theta, in diagonal coordinates or, if the kernel matrix '
        'has a high rank, on this matrix ("gram"). "reference" is a cone program by Clarabel.',
    )

    def solve(self, data: DiagonalData) -> BinaryModel:
        if data.equal_means:
            reason, extra = "the class means are equal", {"kappa": 0.0, "alpha": 0.0}
            return majority_model(
                data, Status.INFEASIBLE, reason, objective=np.inf, bound=np.inf, extra=extra
            )
        found = direction(data.delta, data.var_x, data.var_y, self.solver)
        return self._model(found, float(found.w @ data.mean_x), len(data.y))

    def solve_gram(self, machines: Sequence[MPM], spread: GramSpread) -> list[BinaryModel]:
        found = spread.minimax(self.tol)
        decision = spread.gram @ found.w
        mean_x = float(decision[spread.y > 0].mean())
        return [self._model(found, mean_x, len(spread.y))] * len(machines)

    def _model(self, found: Direction, mean_x: float, n: int) -> BinaryModel:
        """Convert a direction w to a model, given the projected mean w'xm of the positive class."""
        kappa = 1.0 / found.value
        alpha = accuracy(kappa - self.robust_mean)
        fit = certificate(found, self.tol, n, kappa=kappa, alpha=alpha)
        return BinaryModel(inner(kappa * found.spread_x) - mean_x, fit, w=found.w)


def direction(target: NDArray, var_x: NDArray, var_y: NDArray, solver: str = "auto") -> Direction:
    """Minimise the sum of class spreads over all w with ``target'w = 1``, for diagonal covariances.

    Solvers "auto" and "gram" use `minimax_direction`; all other solvers solve a cone program.
    """
    if solver in ("auto", "gram"):
        return minimax_direction(target, var_x, var_y)
    from mmbench.machines.minimax.spread_program import SpreadProgram, solve_spread

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
    w = found.x[:k] / float(target @ found.x[:k])
    spread_x, spread_y = spreads(w, var_x, var_y).tolist()
    return Direction(
        w,
        spread_x,
        spread_y,
        value=spread_x + spread_y,
        bound=found.equation_multiplier,
        violation=abs(float(target @ w) - 1.0),
        iterations=found.iterations,
        status=Status.OPTIMAL,
        route="cone program",
    )
