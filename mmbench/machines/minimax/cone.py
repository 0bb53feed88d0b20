"""Spread programs through general cone solvers: the reference for the dense interior point.

The paper's (2), (3), (21) and (22) give every training point a cone of its own. Two cones suffice,
because only two spreads occur; ``cone_a_row=True`` keeps the printed form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.machines.minimax.spread_program import SpreadProgram, SpreadSolution
from mmbench.solvers.cone_program import ConeProgram, solve_socp


def solve_spread(
    program: SpreadProgram,
    solver: str = "clarabel",
    tol: float = 1e-9,
    cone_a_row: bool = False,
    time_limit: float = np.inf,
) -> SpreadSolution:
    """Solve a spread program with a general cone solver.

    Parameters
    ----------
    program : SpreadProgram
    solver : {"clarabel", "ecos"}, default="clarabel"
    tol : float, default=1e-9
    cone_a_row : bool, default=False
        Whether a row that takes away a multiple of one spread has a cone of its own.
    time_limit : float, default=inf
        Seconds.

    Returns
    -------
    SpreadSolution
    """
    layout = _Layout(program, cone_a_row)
    found = solve_socp(layout.cone_program(), solver, tol, time_limit=time_limit)
    return SpreadSolution(
        x=layout.point(found.x),
        multipliers=layout.multipliers(found.z),
        price_of_equation=-float(found.y[0]) if len(found.y) else 0.0,
        iterations=found.iterations,
        status=found.status,
    )


@dataclass(frozen=True)
class _Cone:
    """``head x >= side + ||root * w||``, with head a row vector over (x, xi)."""

    head: sparse.sparray
    side: float
    root: NDArray


class _Layout:
    """Where rows, slacks and cones of a spread program are in its cone program.

    The variables are x and the slacks of the rows that have a price. A spread that no row and no
    cost refers to, because all its rows have cones of their own, is left out.
    """

    def __init__(self, program: SpreadProgram, cone_a_row: bool):
        self.program = program
        m, n = program.rows.shape
        self.priced = np.flatnonzero(program.priced)
        self.width = n + len(self.priced)
        slack = sparse.csr_array(
            (np.ones(len(self.priced)), (self.priced, np.arange(len(self.priced)))),
            shape=(m, len(self.priced)),
        )
        self.left = sparse.csr_array(sparse.hstack([sparse.csr_array(program.rows), slack]))
        self.owners = self._owners() if cone_a_row else {}
        self.shared = np.array([i for i in range(m) if i not in self.owners], dtype=int)
        self.columns = np.arange(self.width)

    def cone_program(self) -> ConeProgram:
        """Return the cone program; sets `columns`, the variables that occur in it."""
        program, n_slack = self.program, len(self.priced)
        n = len(program.cost)
        cones = [self._own_cone(i) for i in self.owners] + self._shared_cones()
        slack = sparse.hstack([sparse.csr_array((n_slack, n)), sparse.eye_array(n_slack)])
        blocks: list[Any] = [self.left[self.shared], slack, *(self._block(cone) for cone in cones)]
        sides = [program.sides[self.shared], np.zeros(n_slack)]
        sides += [np.append(cone.side, np.zeros(len(cone.root))) for cone in cones]
        G = sparse.csc_array(-sparse.vstack(blocks))
        equation = np.zeros((0 if program.equation is None else 1, self.width))
        if program.equation is not None:
            equation[0, :n] = program.equation
        self.columns = np.flatnonzero((np.diff(G.indptr) > 0) | equation.any(axis=0))
        return ConeProgram(
            c=np.append(program.cost, program.price[self.priced])[self.columns],
            A=sparse.csc_array(equation[:, self.columns]),
            b=np.ones(len(equation)),
            G=G[:, self.columns],
            h=-np.concatenate(sides),
            n_linear=len(self.shared) + n_slack,
            cones=tuple(1 + len(cone.root) for cone in cones),
        )

    def point(self, found: NDArray) -> NDArray:
        """Return x; spreads that were left out, or bound nothing in common, get their size."""
        x = np.zeros(self.width)
        x[self.columns] = found
        for column, root in zip(self.program.scales, self.program.roots, strict=True):
            if self.owners or column not in self.columns:
                x[column] = np.linalg.norm(root * x[: len(root)])
        return x[: len(self.program.cost)]

    def multipliers(self, z: NDArray) -> NDArray:
        """Return those of the program's rows."""
        out = np.empty(len(self.program.rows))
        out[self.shared] = z[: len(self.shared)]
        height = len(self.shared) + len(self.priced)
        for i, spread in self.owners.items():
            out[i] = z[height] / -self._rate(i, spread)
            height += 1 + len(self.program.roots[spread])
        return out

    def _rate(self, i: int, spread: int) -> float:
        return float(self.program.rows[i, self.program.scales[spread]])

    def _owners(self) -> dict[int, int]:
        """Return the rows that take away a multiple of one spread, with the spread."""
        taken = self.program.rows[:, list(self.program.scales)] < 0
        single = np.flatnonzero(taken.sum(axis=1) == 1)
        return {int(i): int(taken[i].argmax()) for i in single}

    def _own_cone(self, i: int) -> _Cone:
        """Return ``(R_i x + xi_i - h_i)/rho >= ||D_j w||``, the spread's column left out."""
        spread = self.owners[i]
        rho = -self._rate(i, spread)
        head = self.left[[i]].tolil()
        head[0, self.program.scales[spread]] = 0.0
        return _Cone(
            sparse.csr_array(head) / rho, self.program.sides[i] / rho, self.program.roots[spread]
        )

    def _shared_cones(self) -> list[_Cone]:
        program, cones = self.program, []
        for column, root in zip(program.scales, program.roots, strict=True):
            uses = [program.cost[column] != 0, program.rows[self.shared, column].any()]
            uses.append(program.equation is not None and program.equation[column] != 0)
            if any(uses):
                head = sparse.csr_array(([1.0], ([0], [column])), shape=(1, self.width))
                cones.append(_Cone(head, 0.0, root))
        return cones

    def _block(self, cone: _Cone) -> sparse.sparray:
        k = len(cone.root)
        image = sparse.csr_array((cone.root, (np.arange(k), np.arange(k))), shape=(k, self.width))
        return sparse.vstack([cone.head, image])
