"""MPM and M4 at every point of a grid, to the accuracy of a search.

A search ranks accuracies; the training that follows it is certified. So the coordinates of
`coordinates`, which serve every theta, give way to a Cholesky factor for each theta
that is needed, see `factor`, and with a kernel the factor ``K = F F'`` stops
where what is left of K cannot be seen beside the ridge. F, the covariances, a factor, and a kernel
in single precision with what it is made of are alive at once: four arrays of the size of K.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mmbench.machines.minimax.base import (
    Answer,
    CovarianceMachine,
    LinearCoordinates,
    pivoted_cholesky,
)
from mmbench.machines.minimax.factor import SpreadFactor
from mmbench.machines.problem import BinaryModel, BinaryProblem

#: Class means are equal if their squared distance is below this share of the rows' mean square.
EQUAL_MEANS = 1e-13


class LinearRows:
    """The features, or coordinates of the span of the rows."""

    def __init__(self, problem: BinaryProblem):
        self._coordinates = LinearCoordinates(problem)
        self.whole = SpreadFactor.of(self._coordinates.rows, problem.y)

    def at(self, ridge: float) -> SpreadFactor:
        """Return the problem at a ridge."""
        return self.whole.first(self.whole.rows.shape[1], self._coordinates.ridges(ridge))

    def expanded(self, W: NDArray) -> tuple[list[dict[str, Any]], NDArray]:
        """Return weights of directions, columns of W, and what to take from b."""
        weights = self._coordinates.basis @ W
        return [{"w": w} for w in weights.T], self._coordinates.origin @ weights


class KernelRows:
    """A pivoted Cholesky factor ``K = F F'``, as far as each ridge sees it.

    Notes
    -----
    A row whose distance from the span of F is ``e`` moves a decision by at most ``e^2 sum|c|``, c
    being the expansion of w over the rows, and ``ridge sum|c|`` is a small number in units of the
    margin, as c is a multiplier or a residual divided by the ridge. With ``e^2 <= tol ridge/10`` a
    decision moves by less than `tol`.
    """

    def __init__(self, problem: BinaryProblem, least_ridge: float, tol: float):
        gram = problem.copied_gram()
        self._unit, self._unseen = float(np.trace(gram)) / len(gram), 0.1 * tol
        rows, self._pivots = pivoted_cholesky(gram, self._unseen * least_ridge * self._unit)
        del gram
        self._lengths = rows[self._pivots, np.arange(rows.shape[1])] ** 2
        self._origin = rows.mean(axis=0)
        rows -= self._origin
        self.whole = SpreadFactor.of(rows, problem.y)

    def at(self, ridge: float) -> SpreadFactor:
        """Return the problem at a ridge, in the coordinates that it sees."""
        amount = ridge * self._unit
        seen = int((self._lengths > self._unseen * amount).sum())
        return self.whole.first(max(1, seen), (amount, amount))

    def expanded(self, W: NDArray) -> tuple[list[dict[str, Any]], NDArray]:
        """Return expansions of directions, columns of W, over the rows, and what to take from b."""
        coef = np.zeros((W.shape[1], len(self.whole.y)))
        triangle = self.whole.rows[self._pivots]
        triangle += self._origin
        solved = solve_triangular(triangle.T, W, lower=False, check_finite=False)
        coef[:, self._pivots] = solved.T
        return [{"coef": c} for c in coef], self._origin @ W


def train_for_search(
    machines: Sequence[CovarianceMachine], problem: BinaryProblem
) -> list[BinaryModel] | None:
    """Train machines of one kernel that differ in ridge and price of slack alone.

    Parameters
    ----------
    machines : sequence of CovarianceMachine
        Their prices ascend.
    problem : BinaryProblem

    Returns
    -------
    list of BinaryModel or None
        In the order of `machines`; None where the class means are equal.

    Raises
    ------
    scipy.linalg.LinAlgError
        If rounding makes a covariance singular.
    """
    started = time.perf_counter()
    ridges = list(dict.fromkeys(machine.ridge for machine in machines))
    linear = problem.kernel.name == "linear"
    rows = LinearRows(problem) if linear else KernelRows(problem, min(ridges), machines[0].tol)
    whole = rows.whole
    if whole.delta @ whole.delta <= EQUAL_MEANS * np.mean(whole.rows**2) * whole.rows.shape[1]:
        return None
    W, theta = np.zeros((whole.rows.shape[1], len(machines))), 0.5
    answers: dict[int, Answer] = {}
    for ridge in ridges:
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        factor = rows.at(ridge)
        found, theta = machines[0]._search([machines[k] for k in members], factor, theta)
        for k, answer in zip(members, found, strict=True):
            W[: len(answer.w), k], answers[k] = answer.w, answer
    weights, shifts = rows.expanded(W)
    seconds = (time.perf_counter() - started) / len(machines)
    return [
        BinaryModel(
            answers[k].b - float(shifts[k]), replace(answers[k].fit, seconds=seconds), **weights[k]
        )
        for k in range(len(machines))
    ]
