"""Cone programs, solved by Clarabel or ECOS.

    min c'x   subject to   A x = b,   h - G x in K,   K = R^l_+ x Q^{m_1} x ... x Q^{m_p} x S^k_+

In Q^m, the first entry is at least the norm of the others. S^k_+ has the positive semidefinite
matrices, stored as the columns of the upper triangle with off-diagonal entries times sqrt(2). ECOS
is an optional check: its licence is the GPL, and it has no wheels from Python 3.13 on.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status, memory_of
from mmbench.solvers.clarabel_ import solve_conic
from mmbench.solvers.result import Result, note_status

#: Status by exit flag of ECOS, which adds 10 if the solution meets only a looser tolerance.
ECOS_STATUS = {
    0: Status.OPTIMAL,
    10: Status.INACCURATE,
    1: Status.INFEASIBLE,
    11: Status.INFEASIBLE,
    2: Status.UNBOUNDED,
    12: Status.UNBOUNDED,
    -1: Status.ITERATION_LIMIT,
    -2: Status.INACCURATE,
}

#: Return value of an adapter: x, y and z of `ConeSolution`, number of iterations, and status.
Solved = tuple[NDArray, NDArray, NDArray, int, Status]


@dataclass(frozen=True)
class ConeProgram:
    """The cone program ``min c'x`` subject to ``A x = b`` and ``h - G x in K``."""

    #: Shape (n,).
    c: NDArray
    #: Shape (n_equalities, n).
    A: sparse.csc_array
    #: Shape (n_equalities,).
    b: NDArray
    #: Shape (m, n).
    G: sparse.csc_array
    #: Shape (m,).
    h: NDArray
    #: Number l of linear inequalities.
    n_linear: int
    #: Sizes m_1, ..., m_p of the second-order cones.
    cones: tuple[int, ...]
    #: Order k of the semidefinite matrix; only Clarabel supports k > 0.
    matrix_order: int = 0

    def outside(self, vector: NDArray) -> float:
        """Return the largest violation of a cone constraint by `vector`, 0 if `vector` is in K."""
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


@dataclass(frozen=True)
class ConeSolution(Result):
    """The solution of a cone program.

    `violation` is the largest violation of the primal and the dual constraints.
    """

    #: Shape (n,).
    x: NDArray
    #: Multipliers of ``A x = b``: ``c + A'y + G'z = 0`` at the optimum; shape (n_equalities,).
    y: NDArray
    #: Multipliers z of ``h - G x in K``; the vector z is in the cone K as well. Shape (m,).
    z: NDArray


def _by_clarabel(program: ConeProgram, tol: float, max_iter: int) -> Solved:
    n, m = len(program.c), len(program.b)
    kinds = [("ZeroConeT", m), ("NonnegativeConeT", program.n_linear)]
    kinds += [("SecondOrderConeT", size) for size in program.cones]
    if program.matrix_order:
        kinds.append(("PSDTriangleConeT", program.matrix_order))
    rows = sparse.vstack([program.A, program.G])
    sides = np.concatenate([program.b, program.h])
    nothing = sparse.csc_array((n, n))
    x, z, iterations, status = solve_conic(nothing, program.c, rows, sides, kinds, tol, max_iter)
    return x, z[:m], z[m:], iterations, status


@memory_of("ECOS")
def _by_ecos(program: ConeProgram, tol: float, max_iter: int) -> Solved:
    """Solve a cone program by ECOS, which supports neither semidefinite cones nor a time limit."""
    import ecos

    equal = len(program.b) > 0
    found = ecos.solve(
        program.c,
        sparse.csc_matrix(program.G),
        program.h,
        {"l": program.n_linear, "q": list(program.cones)},
        **({"A": sparse.csc_matrix(program.A), "b": program.b} if equal else {}),
        verbose=False,
        feastol=tol,
        abstol=tol,
        reltol=tol,
        max_iters=max_iter,
    )
    info = found["info"]
    status = ECOS_STATUS.get(info["exitFlag"], Status.FAILED)
    note_status(status)
    y = np.asarray(found["y"]) if equal else np.zeros(0)
    return np.asarray(found["x"]), y, np.asarray(found["z"]), int(info["iter"]), status


#: Adapter of each solver, by the name of the solver's Python package.
SOLVERS = {"clarabel": _by_clarabel, "ecos": _by_ecos}


def is_available(solver: str) -> bool:
    """Return whether the package of a solver is installed, without importing the package."""
    return find_spec(solver) is not None


def solve_socp(
    program: ConeProgram, solver: str = "clarabel", tol: float = 1e-9, max_iter: int = 200
) -> ConeSolution:
    """Solve a cone program; value, bound and violation are recomputed from the program's arrays.

    Parameters
    ----------
    program : ConeProgram
    solver : {"clarabel", "ecos"}, default="clarabel"
        ECOS must be installed by ``pip install 'mmbench[ecos]'``.
    tol : float, default=1e-9
        Absolute and relative tolerance of feasibility and of the duality gap.
    max_iter : int, default=200

    Raises
    ------
    ModuleNotFoundError
        If the solver is not installed.
    """
    if not is_available(solver):
        raise ModuleNotFoundError(
            f"solver {solver!r} needs the package {solver}: pip install {solver}"
        )
    x, y, z, iterations, status = SOLVERS[solver](program, tol, max_iter)
    residual = program.c + program.A.T @ y + program.G.T @ z
    violation = max(
        program.outside(program.h - program.G @ x),
        program.outside(z),
        float(np.abs(program.A @ x - program.b).max(initial=0.0)),
        float(np.abs(residual).max(initial=0.0)),
    )
    return ConeSolution(
        x,
        y,
        z,
        value=float(program.c @ x),
        bound=float(-program.b @ y - program.h @ z),
        violation=violation,
        iterations=iterations,
        status=status,
    )
