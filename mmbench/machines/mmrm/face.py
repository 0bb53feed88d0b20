"""The solution of smallest norm among all solutions of a max-margin ratio program.

A linear program may have a face of solutions, and which of them a solver returns is its own affair.
By complementary slackness with one dual solution the face is

    y_i f(x_i) >= 1 where lam_i = 0,   = 1 where 0 < lam_i < cost_i,   <= 1 where lam_i = cost_i,
    u_k = 0 where the reduced cost is positive,

and the smallest ``||w||^2`` on it is a quadratic program.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.mmrm.certificate import Answer, certify
from mmbench.machines.mmrm.program import Program
from mmbench.solvers.highs_ import solve_qp

#: Relative to the largest: multipliers and reduced costs below this are zero.
ZERO = 1e-9


def smallest_norm(program: Program, answer: Answer, tol: float) -> Answer:
    """Return the solution of smallest norm, with the fact "norm_difference" = ||w - w_given||.

    Parameters
    ----------
    program : Program
    answer : Answer
        A solution; anything that is not optimal comes back as it is.
    tol : float
        For the certificate.

    Returns
    -------
    Answer
    """
    if answer.status is not Status.OPTIMAL:
        return answer
    columns = _face_columns(program, answer)
    rows = program.rows
    gram = program.norm_matrix(columns)
    lower, upper = _row_bounds(program, answer)
    A = np.column_stack([program.block(rows, columns), program.y[rows]])
    hessian = np.pad(gram, (0, 1))
    solution = solve_qp(
        hessian,
        np.zeros(len(columns) + 1),
        A,
        row_lower=lower[rows],
        row_upper=upper[rows],
        col_lower=np.append(
            np.full(len(columns), 0.0 if program.nonnegative else -np.inf), -np.inf
        ),
    )
    u = np.zeros(program.n_columns)
    u[columns] = solution.x[:-1]
    found = certify(
        program,
        u,
        float(solution.x[-1]),
        answer.lam,
        tol,
        iterations=answer.iterations + solution.iterations,
        route=answer.route,
    )
    if found.status is not Status.OPTIMAL:
        return answer
    change = found.u[columns] - answer.u[columns]
    distance = float(np.sqrt(max(change @ gram @ change, 0.0)))
    return replace(found, basis=answer.basis, facts={**answer.facts, "norm_difference": distance})


def _face_columns(program: Program, answer: Answer) -> NDArray:
    columns = program.columns
    if not program.nonnegative:
        return columns
    reduced = (program.c - program.adjoint(answer.lam))[columns]
    return columns[(reduced <= ZERO * np.abs(program.c).max()) | (answer.u[columns] > 0)]


def _row_bounds(program: Program, answer: Answer) -> tuple[NDArray, NDArray]:
    small = ZERO * answer.lam.max(initial=0.0)
    at_cost = answer.lam >= program.cost * (1 - ZERO)
    lower = np.where(at_cost, -np.inf, 1.0)
    upper = np.where(answer.lam > small, 1.0, np.inf)
    return lower, upper
