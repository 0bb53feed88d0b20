"""HiGHS, a solver of linear programs.

    min c'x   s.t.  row_lower <= A x <= row_upper,  col_lower <= x <= col_upper

The default is presolve and the dual simplex method; ``interior=True`` is the interior-point method
with a crossover to a vertex. HiGHS releases the interpreter lock, so threads run at the same time.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mmbench.allowance import time_is_up, time_left
from mmbench.errors import Status, memory_of
from mmbench.solvers.result import Result, note_status

Matrix: TypeAlias = NDArray | sparse.csr_array | sparse.csc_array

#: Lower and upper bounds.
Bounds: TypeAlias = tuple[NDArray, NDArray]

#: Status for each name of HiGHS's ``HighsModelStatus``. Names without an entry mean FAILED.
STATUS = {
    "kOptimal": Status.OPTIMAL,
    "kModelEmpty": Status.OPTIMAL,
    "kInfeasible": Status.INFEASIBLE,
    "kUnbounded": Status.UNBOUNDED,
    "kUnknown": Status.INACCURATE,
    "kIterationLimit": Status.ITERATION_LIMIT,
    "kTimeLimit": Status.TIME_LIMIT,
    "kMemoryLimit": Status.MEMORY_LIMIT,
}


@dataclass(frozen=True, kw_only=True)
class LpSolution(Result):
    """The solution of a linear program.

    `bound` is the dual objective of the multipliers `row_dual`. `violation` is the largest
    violation of a primal bound or of the sign condition of a multiplier.
    """

    #: Shape (n_columns,).
    x: NDArray
    #: Multipliers of the bounds of ``A x``; positive if the lower bound is active. Shape (n_rows,).
    row_dual: NDArray
    #: Boolean masks of the basic columns and of the basic rows; None if HiGHS has no valid basis.
    basic: tuple[NDArray, NDArray] | None


@cache
def _quiet_highs() -> Any:
    """Return a subclass of `highspy.Highs` that prints nothing, not even the banner."""
    import highspy

    class QuietHighs(highspy.Highs):
        def enableCallbacks(self) -> None:
            # the option `output_flag` must be set before HiGHS prints the banner
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return QuietHighs


@memory_of("HiGHS")
def solve_lp(
    c: NDArray,
    A: Matrix,
    row_lower: ArrayLike = -np.inf,
    row_upper: ArrayLike = np.inf,
    col_lower: ArrayLike = 0.0,
    col_upper: ArrayLike = np.inf,
    *,
    iteration_limit: int | None = None,
    tol: float = 1e-7,
    interior: bool = False,
) -> LpSolution:
    """Solve a linear program.

    The violation and the dual bound of the solution are computed from the arguments of this
    function; the values that HiGHS reports are not used.

    Parameters
    ----------
    c : ndarray of shape (n_columns,)
    A : ndarray or sparse array of shape (n_rows, n_columns)
    row_lower, row_upper, col_lower, col_upper : float or ndarray
        Bounds of ``A x`` and of x; may be infinite.
    iteration_limit : int, optional
        Maximum number of pivots.
    tol : float, default=1e-7
        Primal and dual feasibility tolerance, at least 1e-10.
    interior : bool, default=False
        Whether to use the interior-point method in place of the simplex method.

    Examples
    --------
    >>> solution = solve_lp(np.array([1.0, 2.0]), np.array([[1.0, 1.0]]), row_lower=1.0)
    >>> str(solution.status), solution.value, solution.row_dual
    ('optimal', 1.0, array([1.]))
    """
    m, n = A.shape
    rows = _spread(row_lower, m), _spread(row_upper, m)
    columns = _spread(col_lower, n), _spread(col_upper, n)
    c = np.ascontiguousarray(c, dtype=np.float64)
    highs = _quiet_highs()()
    options = {
        "output_flag": False,
        "threads": 1,
        "primal_feasibility_tolerance": tol,
        "dual_feasibility_tolerance": tol,
        "time_limit": time_left(),
        "solver": "ipm" if interior else "choose",
    }
    if iteration_limit is not None:
        options["simplex_iteration_limit"] = iteration_limit
    for option, value in options.items():
        _check(highs.setOptionValue(option, value))
    none = np.zeros(0, np.int32)
    _check(highs.addCols(n, c, *columns, 0, np.zeros(n, np.int32), none, np.zeros(0)))
    matrix = sparse.csr_array(A)
    index = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    data = matrix.data.astype(np.float64)
    _check(highs.addRows(m, *rows, len(data), index[0][:-1], index[1], data))
    highs.run()
    name = highs.getModelStatus().name
    if name == "kUnboundedOrInfeasible":
        _check(highs.setOptionValue("presolve", "off"))
        highs.run()
        name = highs.getModelStatus().name
    status = STATUS.get(name, Status.FAILED)
    note_status(status)
    if status is Status.MEMORY_LIMIT:
        raise MemoryError
    if status is Status.TIME_LIMIT:
        time_is_up()  # called only to record that the time limit ended the training
    return _solution(highs, status, c, A, rows, columns)


def _check(native_status: Any) -> None:
    if native_status.name == "kError":
        raise ValueError("HiGHS refused a model or an option")


def _solution(
    highs: Any, status: Status, c: NDArray, A: Matrix, rows: Bounds, columns: Bounds
) -> LpSolution:
    """Return the solution, with value, bound and violation recomputed from the problem's arrays."""
    native, info, basis = highs.getSolution(), highs.getInfo(), highs.getBasis()
    x, dual = _vector(native.col_value, len(c)), _vector(native.row_dual, A.shape[0])
    activity = A @ x
    row_part, row_sign = _dual_value(dual, *rows)
    col_part, col_sign = _dual_value(c - A.T @ dual, *columns)
    violations = [rows[0] - activity, activity - rows[1], columns[0] - x, x - columns[1]]
    violations += [row_sign, col_sign]
    return LpSolution(
        status=status,
        x=x,
        row_dual=dual,
        value=float(c @ x),
        bound=row_part + col_part,
        violation=max(float(v.max(initial=0.0)) for v in violations),
        iterations=max(0, info.simplex_iteration_count) + max(0, info.ipm_iteration_count),
        basic=(_is_basic(basis.col_status), _is_basic(basis.row_status)) if basis.valid else None,
    )


def _dual_value(dual: NDArray, lower: NDArray, upper: NDArray) -> tuple[float, NDArray]:
    """Return a term of the dual objective, and the violation of each multiplier's sign condition.

    The term is the inner product of the multipliers `dual` with the bounds: with the lower bound
    for a positive multiplier, and with the upper bound for a negative multiplier.
    """
    # the multiplier of an infinite bound must be zero
    bound = np.where(dual > 0, lower, upper)
    finite = np.isfinite(bound)
    return float(dual[finite] @ bound[finite]), np.where(finite, 0.0, np.abs(dual))


def _is_basic(native: Any) -> NDArray:
    return np.array([status.name == "kBasic" for status in native], dtype=bool)


def _vector(values: Any, size: int) -> NDArray:
    """Return values from HiGHS as an array, or zeros if HiGHS returns no values."""
    out = np.asarray(values, dtype=np.float64)
    return out if len(out) == size else np.zeros(size)


def _spread(bound: ArrayLike, size: int) -> NDArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(bound, dtype=np.float64), size))
