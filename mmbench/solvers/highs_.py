"""HiGHS: linear programs, alone or as a model that grows and is solved again from its last basis.

    min c'x   s.t.  row_lower <= A x <= row_upper,  col_lower <= x <= col_upper

HiGHS lets go of the interpreter while it runs, so several models may be solved in threads.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mmbench.allowance import time_is_up, time_left
from mmbench.errors import Status, memory_of
from mmbench.solvers.result import Result

Matrix: TypeAlias = NDArray | sparse.csr_array | sparse.csc_array

#: Names of HighsModelStatus to ours; a name that is not listed is a failure.
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

#: Values of HighsBasisStatus.
AT_LOWER, BASIC = 0, 1

#: simplex_strategy of HiGHS by the word used here.
SIMPLEX = {"dual": 1, "primal": 4}


@dataclass(frozen=True)
class Basis:
    """A simplex basis: for each column and each row whether it is basic, else at which bound.

    The values are those of HighsBasisStatus: 0 at lower, 1 basic, 2 at upper, 3 free at zero.
    """

    columns: NDArray
    rows: NDArray


@dataclass(frozen=True, kw_only=True)
class LpSolution(Result):
    """The solution of a linear program.

    `bound` (the value of the dual at `row_dual`) and `violation` (of a primal bound or of a sign
    of the dual) are recomputed by `solve_lp`. A model that grows leaves nan, because it is a part
    of a problem that only its caller knows.
    """

    #: Shape (n_columns,).
    x: NDArray
    #: Positive for a row that holds at its lower bound. Shape (n_rows,).
    row_dual: NDArray
    #: For a hot start; None when the method leaves none.
    basis: Basis | None = None
    bound: float = np.nan
    violation: float = np.nan


@cache
def _quiet_highs() -> Any:
    """Return a HiGHS that prints nothing, not even its name while one is made."""
    import highspy

    class QuietHighs(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)  # before the first call that prints
            super().enableCallbacks()

    return QuietHighs


class LpModel:
    """A linear program that HiGHS keeps, so that changes are solved from the last basis.

    Parameters
    ----------
    method : {"choose", "simplex", "ipm"}, default="simplex"
    presolve : bool, default=False
        Presolve throws a hot start away.
    iteration_limit : int, optional
        For one call of `solve`.
    tol : float, default=1e-7
        Primal and dual feasibility tolerance.
    """

    def __init__(
        self,
        *,
        method: str = "simplex",
        presolve: bool = False,
        iteration_limit: int | None = None,
        tol: float = 1e-7,
    ) -> None:
        self._highs = _quiet_highs()()
        self._set("output_flag", False)
        self._set("threads", 1)
        self._set("solver", method)
        self._set("presolve", "on" if presolve else "off")
        self.set_tol(tol)
        if iteration_limit is not None:
            self._set("simplex_iteration_limit", iteration_limit)
            self._set("ipm_iteration_limit", iteration_limit)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self._highs.getNumRow(), self._highs.getNumCol()

    @memory_of("HiGHS")
    def add_columns(
        self,
        cost: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        block: Matrix | None = None,
    ) -> None:
        """Append columns; `block`, shape (n_rows, n_new), holds their entries in existing rows."""
        cost = np.atleast_1d(np.asarray(cost, dtype=np.float64))
        start, index, value = _compressed(sparse.csc_array, block, len(cost))
        lower, upper = _spread(lower, len(cost)), _spread(upper, len(cost))
        self._check(
            self._highs.addCols(len(cost), cost, lower, upper, len(value), start[:-1], index, value)
        )

    @memory_of("HiGHS")
    def add_rows(self, lower: ArrayLike, upper: ArrayLike, block: Matrix) -> None:
        """Append rows; `block` has shape (n_new, n_columns)."""
        count = block.shape[0]
        start, index, value = _compressed(sparse.csr_array, block, count)
        lower, upper = _spread(lower, count), _spread(upper, count)
        self._check(self._highs.addRows(count, lower, upper, len(value), start[:-1], index, value))

    def set_tol(self, tol: float) -> None:
        """Set the primal and dual feasibility tolerance, which HiGHS has from 1e-10 on."""
        self._set("primal_feasibility_tolerance", tol)
        self._set("dual_feasibility_tolerance", tol)

    def set_basis(self, basis: Basis) -> None:
        """Start the next solve from a basis; one that does not fit the model is refused."""
        import highspy

        if (len(basis.rows), len(basis.columns)) != self.shape:
            raise ValueError("the basis has another shape than the model")
        native = highspy.HighsBasis()
        native.valid = True
        native.col_status = [highspy.HighsBasisStatus(int(s)) for s in basis.columns]
        native.row_status = [highspy.HighsBasisStatus(int(s)) for s in basis.rows]
        self._check(self._highs.setBasis(native))

    @memory_of("HiGHS")
    def solve(self, simplex: str = "dual") -> LpSolution:
        """Solve from the last basis, if there is one.

        Parameters
        ----------
        simplex : {"dual", "primal"}, default="dual"
            Dual after new rows, primal after new columns.
        """
        self._set("simplex_strategy", SIMPLEX[simplex])
        # HiGHS compares its limit with the time of all runs of this model together.
        self._set("time_limit", self._highs.getRunTime() + time_left())
        self._highs.run()
        status = _status(self._highs)
        if status is None:
            self._set("presolve", "off")
            self._highs.run()
            status = _status(self._highs) or Status.FAILED
        if status is Status.MEMORY_LIMIT:
            raise MemoryError
        if status is Status.TIME_LIMIT:
            time_is_up()  # so that it is known why the training ends
        return _solution(self._highs, status)

    def primal_ray(self) -> NDArray | None:
        """Return a direction of unlimited descent found by the last solve, or None."""
        _, exists, *ray = self._highs.getPrimalRay()
        return np.asarray(ray[0]) if exists and ray else None

    def _set(self, option: str, value: Any) -> None:
        self._check(self._highs.setOptionValue(option, value))

    def _check(self, native_status: Any) -> None:
        if native_status.name == "kError":
            raise ValueError("HiGHS refused a model, a basis or an option")


def solve_lp(
    c: NDArray,
    A: Matrix,
    row_lower: ArrayLike = -np.inf,
    row_upper: ArrayLike = np.inf,
    col_lower: ArrayLike = 0.0,
    col_upper: ArrayLike = np.inf,
    *,
    method: str = "choose",
    presolve: bool | None = None,
    basis: Basis | None = None,
    iteration_limit: int | None = None,
    tol: float = 1e-7,
) -> LpSolution:
    """Solve one linear program and recompute its feasibility and dual bound.

    Parameters
    ----------
    c : ndarray of shape (n_columns,)
    A : ndarray or sparse array of shape (n_rows, n_columns)
    row_lower, row_upper, col_lower, col_upper : float or ndarray
        Bounds; infinite where there is none.
    method : {"choose", "simplex", "ipm"}, default="choose"
    presolve : bool, optional
        By default on, unless a basis is given.
    basis : Basis, optional
        Of a neighbouring solution, for a hot start.
    iteration_limit : int, optional
    tol : float, default=1e-7
        Feasibility tolerance.

    Examples
    --------
    >>> solution = solve_lp(np.array([1.0, 2.0]), np.array([[1.0, 1.0]]), row_lower=1.0)
    >>> str(solution.status), solution.value, solution.row_dual
    ('optimal', 1.0, array([1.]))
    """
    model = LpModel(
        method=method,
        presolve=basis is None if presolve is None else presolve,
        iteration_limit=iteration_limit,
        tol=tol,
    )
    model.add_columns(c, col_lower, col_upper)
    model.add_rows(row_lower, row_upper, A)
    if basis is not None:
        model.set_basis(basis)
    solution = model.solve()
    bounds = [
        _spread(b, size)
        for b, size in zip(
            (row_lower, row_upper, col_lower, col_upper), np.repeat(A.shape, 2), strict=True
        )
    ]
    return _recomputed(solution, np.asarray(c, dtype=np.float64), A, *bounds)


def _recomputed(
    solution: LpSolution,
    c: NDArray,
    A: Matrix,
    row_lower: NDArray,
    row_upper: NDArray,
    col_lower: NDArray,
    col_upper: NDArray,
) -> LpSolution:
    """Fill in what follows from the arrays of the problem rather than from the solver's word."""
    x, dual = solution.x, solution.row_dual
    reduced = c - A.T @ dual
    activity = A @ x
    row_part, row_sign = _dual_value(dual, row_lower, row_upper)
    col_part, col_sign = _dual_value(reduced, col_lower, col_upper)
    distances = [
        row_lower - activity,
        activity - row_upper,
        col_lower - x,
        x - col_upper,
        row_sign,
        col_sign,
    ]
    return replace(
        solution,
        value=float(c @ x),
        bound=row_part + col_part,
        violation=max(float(d.max(initial=0.0)) for d in distances),
    )


def _dual_value(dual: NDArray, lower: NDArray, upper: NDArray) -> tuple[float, NDArray]:
    """Return a dual vector's part of the dual objective, and how far its signs are wrong.

    A positive value belongs to the lower bound, a negative one to the upper; where that bound is
    infinite the value should have been zero, and it is left out of the objective.
    """
    bound = np.where(dual > 0, lower, upper)
    finite = np.isfinite(bound)
    return float(dual[finite] @ bound[finite]), np.where(finite, 0.0, np.abs(dual))


def _status(highs: Any) -> Status | None:
    """Translate the native status; None when presolve could not tell unbounded from infeasible."""
    name = highs.getModelStatus().name
    return None if name == "kUnboundedOrInfeasible" else STATUS.get(name, Status.FAILED)


def _solution(highs: Any, status: Status) -> LpSolution:
    native, info, basis = highs.getSolution(), highs.getInfo(), highs.getBasis()
    iterations = info.simplex_iteration_count, info.ipm_iteration_count
    return LpSolution(
        status=status,
        x=_vector(native.col_value, highs.getNumCol()),
        row_dual=_vector(native.row_dual, highs.getNumRow()),
        value=info.objective_function_value,
        iterations=sum(max(0, count) for count in iterations),
        basis=_basis(basis) if basis.valid else None,
    )


def _basis(native: Any) -> Basis:
    return Basis(
        np.array([int(s) for s in native.col_status], dtype=np.int8),
        np.array([int(s) for s in native.row_status], dtype=np.int8),
    )


def _vector(values: Any, size: int) -> NDArray:
    """Return the values as an array, zeros where the solver has none."""
    out = np.asarray(values, dtype=np.float64)
    return out if len(out) == size else np.zeros(size)


def _spread(bound: ArrayLike, size: int) -> NDArray:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(bound, dtype=np.float64), size))


def _compressed(layout: Any, block: Matrix | None, count: int) -> tuple[NDArray, NDArray, NDArray]:
    """Return start, index and value of a block by columns or rows, as HiGHS takes them."""
    if block is None:
        return np.zeros(count + 1, np.int32), np.zeros(0, np.int32), np.zeros(0)
    matrix = layout(block)
    return (
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
    )
