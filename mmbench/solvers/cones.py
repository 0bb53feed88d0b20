"""Cone programs: one verb, several solvers.

    min c'x   subject to   A x = b,   h - G x in K,   K = R^l_+ x Q^{m_1} x ... x Q^{m_p} x S^k_+

with Q^m the vectors whose first entry is no smaller than the length of the others, and S^k_+ the
positive semidefinite matrices, their upper triangle by columns, off the diagonal times sqrt(2).
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status
from mmbench.solvers.result import Result

#: Solver by name: the package that it needs, and the module of its adapter.
SOLVERS = {
    "clarabel": ("clarabel", "mmbench.solvers.clarabel_"),
    "ecos": ("ecos", "mmbench.solvers.ecos_"),
}


@dataclass(frozen=True)
class ConeProgram:
    """One program of the class above."""

    #: Shape (n,).
    c: NDArray
    #: Shape (p, n).
    A: sparse.csc_array
    #: Shape (p,).
    b: NDArray
    #: Shape (m, n).
    G: sparse.csc_array
    #: Shape (m,).
    h: NDArray
    #: l.
    n_linear: int
    #: m_1, ..., m_p.
    cones: tuple[int, ...]
    #: k; Clarabel alone takes semidefinite matrices.
    matrix_order: int = 0

    def outside(self, vector: NDArray) -> float:
        """Return how far a vector is from K, in its worst part."""
        worst = float((-vector[: self.n_linear]).max(initial=0.0))
        start = self.n_linear
        for size in self.cones:
            part = vector[start : start + size]
            worst = max(worst, float(np.linalg.norm(part[1:]) - part[0]))
            start += size
        if self.matrix_order:
            matrix = np.zeros((self.matrix_order, self.matrix_order))
            columns, rows = np.tril_indices(self.matrix_order)
            matrix[columns, rows] = vector[start:] / np.where(columns == rows, 1.0, np.sqrt(2.0))
            worst = max(worst, float(-np.linalg.eigvalsh(matrix, UPLO="L")[0]))
        return worst


class RawSolution(NamedTuple):
    """What the adapter of a solver returns, as the solver says it."""

    x: NDArray
    y: NDArray
    z: NDArray
    iterations: int
    status: Status


@dataclass(frozen=True)
class ConeSolution(Result):
    """The solution of a cone program; its violation is that of a primal or a dual constraint."""

    #: Shape (n,).
    x: NDArray
    #: Multipliers of the equations: ``c + A'y + G'z = 0``. Shape (p,).
    y: NDArray
    #: Multipliers of the cone, in K. Shape (m,).
    z: NDArray


def is_available(solver: str) -> bool:
    """Return whether the package of a solver is installed; it is not imported."""
    return find_spec(SOLVERS[solver][0]) is not None


def solve_socp(
    program: ConeProgram, solver: str = "clarabel", tol: float = 1e-9, max_iter: int = 200
) -> ConeSolution:
    """Solve a cone program; recompute value, bound and violation from its arrays.

    Parameters
    ----------
    program : ConeProgram
    solver : {"clarabel", "ecos"}, default="clarabel"
        ECOS is an optional extra: ``pip install 'mmbench[solvers]'``.
    tol : float, default=1e-9
        For feasibility and gap, absolute and relative.
    max_iter : int, default=200

    Raises
    ------
    ModuleNotFoundError
        If the solver is not installed.
    """
    package, module = SOLVERS[solver]
    if not is_available(solver):
        raise ModuleNotFoundError(
            f"solver {solver!r} needs the package {package}: pip install 'mmbench[solvers]'"
        )
    found: RawSolution = import_module(module).solve(program, tol, max_iter)
    residual = program.c + program.A.T @ found.y + program.G.T @ found.z
    violation = max(
        program.outside(program.h - program.G @ found.x),
        program.outside(found.z),
        float(np.abs(program.A @ found.x - program.b).max(initial=0.0)),
        float(np.abs(residual).max(initial=0.0)),
    )
    return ConeSolution(
        found.x,
        found.y,
        found.z,
        value=float(program.c @ found.x),
        bound=float(-program.b @ found.y - program.h @ found.z),
        violation=violation,
        iterations=found.iterations,
        status=found.status,
    )
