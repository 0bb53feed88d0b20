"""MPM and M4 on a kernel at every point of a grid, to the accuracy of a search.

A search ranks accuracies; the training that follows it is certified. So the coordinates of
`mmbench.machines.pencil`, which serve every theta, give way to a Cholesky factor for each theta
that is needed, see `mmbench.solvers.spread_factor`, and the factor ``K = F F'`` stops where what is
left of K cannot be seen beside the ridge. Up to five arrays of the size of K are alive at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular

from mmbench.machines.base import BinaryModel, BinaryProblem
from mmbench.machines.covariance import Answer, CovarianceMachine, pivoted_cholesky
from mmbench.solvers.spread_factor import SpreadFactor

#: Class means are equal if their squared distance is below this share of the rows' mean square.
EQUAL_MEANS = 1e-13


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

    Notes
    -----
    A row whose distance from the span of F is ``e`` moves a decision by at most ``e^2 sum|c|``, c
    being the expansion of w over the rows, and ``ridge sum|c|`` is a small number in units of the
    margin, as c is a multiplier or a residual divided by the ridge. With ``e^2 <= tol ridge/10`` a
    decision moves by less than `tol`.
    """
    started = time.perf_counter()
    gram = problem.given_gram
    gram = problem.kernel(problem.X, problem.X) if gram is None else np.array(gram, dtype=float)
    unit, tol = float(np.trace(gram)) / len(gram), machines[0].tol
    ridges = {machine.ridge: 0.1 * tol * machine.ridge * unit for machine in machines}
    rows, pivots = pivoted_cholesky(gram, min(ridges.values()))
    del gram
    origin = rows.mean(axis=0)
    triangle = rows[pivots]
    left = np.diagonal(triangle) ** 2
    rows -= origin
    whole = SpreadFactor.of(rows, problem.y)
    if whole.delta @ whole.delta <= EQUAL_MEANS * unit:
        return None
    W, theta = np.zeros((len(pivots), len(machines))), 0.5
    found: dict[int, Answer] = {}
    for ridge, unseen in ridges.items():
        members = [k for k, machine in enumerate(machines) if machine.ridge == ridge]
        seen = max(1, int((left > unseen).sum()))
        factor = whole.first(seen, ridge * unit)
        answers, theta = machines[0]._search([machines[k] for k in members], factor, theta)
        for k, answer in zip(members, answers, strict=True):
            W[:seen, k], found[k] = answer.w, answer
    coef = np.zeros((len(machines), len(rows)))
    coef[:, pivots] = solve_triangular(triangle, W, lower=True, trans=1, check_finite=False).T
    seconds = (time.perf_counter() - started) / len(machines)
    return [
        BinaryModel(
            found[k].b - float(origin @ W[:, k]), replace(found[k].fit, seconds=seconds), coef[k]
        )
        for k in range(len(machines))
    ]
