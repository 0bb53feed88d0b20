"""Second-order cone programs: one verb, several solvers.

    min c'x   subject to   A x = b,   h - G x in K,   K = R^l_+ x Q^{m_1} x ... x Q^{m_p}

with Q^m the vectors whose first entry is no smaller than the length of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status

#: Solver by name: the package that it needs, and the module of its adapter.
SOLVERS = {
    "clarabel": ("clarabel", "mmbench.solvers.clarabel_socp"),
    "ecos": ("ecos", "mmbench.solvers.ecos_"),
}


@dataclass(frozen=True)
class ConeProgram:
    """One program of the class above.

    Parameters
    ----------
    c : ndarray of shape (n,)
    A : csc_array of shape (p, n)
    b : ndarray of shape (p,)
    G : csc_array of shape (m, n)
    h : ndarray of shape (m,)
    n_linear : int
        l.
    cones : tuple of int
        m_1, ..., m_p.
    """

    c: NDArray
    A: sparse.csc_array
    b: NDArray
    G: sparse.csc_array
    h: NDArray
    n_linear: int
    cones: tuple[int, ...]

    def outside(self, vector: NDArray) -> float:
        """Return how far a vector is from K, in its worst part."""
        worst = float((-vector[: self.n_linear]).max(initial=0.0))
        for end, size in zip(np.cumsum(self.cones) + self.n_linear, self.cones, strict=True):
            part = vector[end - size : end]
            worst = max(worst, float(np.linalg.norm(part[1:]) - part[0]))
        return worst


@dataclass(frozen=True)
class ConeSolution:
    """What a solver returned, and what was recomputed from it.

    Attributes
    ----------
    x : ndarray of shape (n,)
    y : ndarray of shape (p,)
        Multipliers of the equations: ``c + A'y + G'z = 0``.
    z : ndarray of shape (m,)
        Multipliers of the cone, in K.
    iterations : int
    status : Status
    objective, bound : float
        ``c'x`` and the dual value ``-b'y - h'z``.
    max_violation : float
        Largest violation of a primal or a dual constraint.
    """

    x: NDArray
    y: NDArray
    z: NDArray
    iterations: int
    status: Status
    objective: float = np.nan
    bound: float = np.nan
    max_violation: float = np.nan


def is_available(solver: str) -> bool:
    """Return whether the package of a solver is installed; it is not imported."""
    return find_spec(SOLVERS[solver][0]) is not None


def solve_socp(
    program: ConeProgram,
    solver: str = "clarabel",
    tol: float = 1e-9,
    max_iter: int = 200,
    time_limit: float = np.inf,
) -> ConeSolution:
    """Solve a cone program; recompute objective, bound and violation from its arrays.

    Parameters
    ----------
    program : ConeProgram
    solver : {"clarabel", "ecos"}, default="clarabel"
        ECOS is an optional extra: ``pip install mmbench[ecos]``.
    tol : float, default=1e-9
        For feasibility and gap, absolute and relative.
    max_iter : int, default=200
    time_limit : float, default=inf
        Seconds; ECOS has no such limit.

    Returns
    -------
    ConeSolution

    Raises
    ------
    ModuleNotFoundError
        If the solver is not installed.
    """
    package, module = SOLVERS[solver]
    if not is_available(solver):
        raise ModuleNotFoundError(
            f"solver {solver!r} needs the package {package}: pip install 'mmbench[{solver}]'"
        )
    found: ConeSolution = import_module(module).solve(program, tol, max_iter, time_limit)
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
        found.iterations,
        found.status,
        float(program.c @ found.x),
        float(-program.b @ found.y - program.h @ found.z),
        violation,
    )
