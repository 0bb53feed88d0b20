"""Dual coordinate descent for a `PiecewiseQP` with a linear kernel (Hsieh et al., ICML 2008).

Here, `gram` of the problem is the data matrix Z. For a fixed intercept b, the dual has no equality
constraint, and a step minimises over one u_i, at the cost of one product of a row with ``w = Z'u``
and one update of w:

    1/2 u'Ku + sum_i phi_i(u_i) + b sum_i u_i

The sum s(b) of the minimiser decreases with b and is zero at the optimal b, which the secant method
finds. With the rows Z_F of the free support vectors, the slope of s is ``-e' K_FF^-1 e``, at most
``-|F|^2 / ||Z_F' e||^2``: the slope of the first update, and a bound for the later ones.

    rows, of more than 64 features                   cost
    sparse                                           20 to 100 passes over the rows
    dense, with small C or no stored Gram matrix     5 to 20 passes, and SMO on some hundred rows

On dense rows, ``t/2 (sum_i u_i)^2`` with their mean squared norm t is added, as in the method of
multipliers: the intercept of a step, ``b + t sum_i u_i``, is nearly optimal after the first b. Once
all conditions hold to twice the tolerance, SMO solves the problem in the free and the violating
rows. The passes grow with C and the norms of the rows; after too many, `mmbench.machines.svm`
continues with another solver. Times: `benchmarks/peers.py`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.allowance import time_is_up
from mmbench.compiled import compiled
from mmbench.errors import Status
from mmbench.solvers.rows import MappedRows
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution, gains, optimality
from mmbench.solvers.svm_dual.smo import solve_smo

#: Maximum number of passes over the rows for the first value of the intercept b, and in total.
FIRST_PASSES, MOST_PASSES = 40, 400

#: FIRST_TOLERANCE is the KKT tolerance for the first intercept b. For each later b, the KKT
#: tolerance is the smaller of two numbers: TOLERANCE_SHARE times the previous tolerance, and
#: STEP_SHARE times the last change of b.
FIRST_TOLERANCE, TOLERANCE_SHARE, STEP_SHARE = 0.1, 0.5, 0.3

#: Maximum change of the intercept b by the secant method. If a secant step is longer or leaves the
#: interval that contains the optimal b, the middle of the interval is the next b. If the interval
#: is unbounded, b is changed by MOST_STEP.
MOST_STEP = 1.0

#: LAST_SHARE is the KKT tolerance for the last intercept b, as a fraction of `tol`. The correction
#: of the sum by `balanced` changes the decisions by at most SUM_SHARE times `tol`.
LAST_SHARE, SUM_SHARE = 0.5, 0.1

#: Dense rows are solved by SMO if at most MOST_PART rows are free or violate a condition, and if
#: their Gram matrix has no more values than the data; in at most MOST_ROUNDS rounds, each with at
#: most STEPS_PER_ROW steps per row. On generated rows, two to four rounds are enough
#: (`benchmarks/peers.py`).
MOST_PART, MOST_ROUNDS, STEPS_PER_ROW = 2000, 10, 50


@dataclass
class CoordinateDescent:
    """State of coordinate descent; the rows are stored in compressed sparse row format.

    Row i has ``starts[i + 1] - starts[i]`` values, which begin at index ``starts[i]`` of `values`
    and of the column indices `columns`. For dense rows, `columns` is None. `unit` is the factor t
    in the docstring of the module, and 0 for sparse rows.
    """

    problem: PiecewiseQP
    u: NDArray
    b: float

    def __post_init__(self) -> None:
        assert isinstance(self.problem.gram, MappedRows)
        self.rows, X = self.problem.gram, self.problem.gram.X
        n, d = X.shape
        if isinstance(X, np.ndarray):
            self.values, self.columns = np.ascontiguousarray(X).ravel(), None
            self.starts = np.arange(n + 1) * d
        else:
            self.values, self.columns = X.data, X.indices.astype(np.int32, copy=False)
            self.starts = X.indptr.astype(np.int64, copy=False)
        # a row of zeros gets a positive squared norm, so that its dual variable moves to the knot
        # with the smallest cost
        self.squares = np.maximum(self.rows.squares, np.finfo(float).tiny)
        self.unit = float(self.squares.mean()) if self.columns is None else 0.0
        self.w = self.rows.T @ self.u if self.u.any() else np.zeros(d)
        self.passes, self.most = 0.0, FIRST_PASSES
        self.random = np.random.RandomState(0)

    def ended(self) -> bool:
        """Whether coordinate descent has reached the maximum number of passes or the time limit."""
        return self.passes >= self.most or time_is_up()

    def minimise(self, tol: float) -> None:
        """Take coordinate steps for a fixed intercept until all KKT conditions hold up to `tol`.

        Rows with dual variables that stay at knots are skipped until all other rows have converged.
        """
        n, problem = len(self.u), self.problem
        order, margin = np.arange(n), np.inf
        while not self.ended():
            whole = len(order) == n
            self.passes += len(order) / n
            self.random.shuffle(order)
            kept, worst = _pass(
                *(self.values, self.columns, self.starts, self.squares),
                *(problem.knots, problem.slopes, self.u, self.w, self.b, self.unit, order, margin),
            )
            if worst > tol:
                order, margin = order[:kept].copy(), worst
            elif whole:
                return
            else:
                order, margin = np.arange(n), np.inf

    def run(self, tol: float) -> None:
        """Update the intercept b until the sum of the dual variables u_i is nearly zero.

        The method `balanced`, which makes the sum zero, then changes the decisions by at most
        ``SUM_SHARE * tol``.
        """
        last, accuracy = LAST_SHARE * tol, FIRST_TOLERANCE
        low, high, secant, before = -np.inf, np.inf, 0.0, (np.inf, np.inf)
        while not self.ended():
            self.minimise(accuracy)
            near = self.unit * abs(self.u.sum()) <= accuracy
            if self.columns is None and near and self.finish(tol, accuracy):
                return
            self.most = self.most if self.ended() else MOST_PASSES
            free, total = self.free(), float(self.u.sum())
            sums = self.rows.T @ free.astype(float)
            slope = free.sum() ** 2 / max(sums @ sums, np.finfo(float).tiny)
            if accuracy <= last and abs(total) <= SUM_SHARE * tol * slope:
                return
            # the computed sum `total` lies between ``s(b + accuracy)`` and ``s(b - accuracy)``,
            # with the sum s of the optimal dual variables
            low = max(low, self.b - accuracy) if total > 0 else min(low, self.b - accuracy)
            high = min(high, self.b + accuracy) if total < 0 else max(high, self.b + accuracy)
            moved, changed = self.b - before[0], total - before[1]
            if accuracy < abs(moved) * STEP_SHARE and changed * moved < 0:
                secant = -changed / moved
            before = self.b, total
            slope = float(max(slope / (1 + self.unit * slope), secant, np.finfo(float).tiny))
            step = total / slope  # the step is very large if no u_i is strictly between knots
            if not max(low, self.b - MOST_STEP) < self.b + step < min(high, self.b + MOST_STEP):
                ends = np.isfinite(low) and np.isfinite(high)
                step = 0.5 * (low + high) - self.b if ends else np.copysign(MOST_STEP, total)
            self.b += step
            accuracy = max(last, min(TOLERANCE_SHARE * accuracy, STEP_SHARE * abs(step)))

    def finish(self, tol: float, accuracy: float) -> bool:
        """Solve by SMO for the free and the violating rows, until all rows satisfy the conditions.

        Returns False, and changes nothing, if these rows are too many or SMO does not converge.
        """
        problem, X, used = self.problem, self.rows.X, np.zeros(len(self.u), bool)
        u, b = self.balanced(), self.b + self.unit * self.u.sum()
        for k in range(MOST_ROUNDS):
            decision = X @ (X.T @ u)
            rise, fall = gains(u, problem.knots, problem.slopes)
            violation = optimality(decision, rise, fall)[1]
            if violation <= tol:
                self.u = u
                return True
            f = decision + b
            used |= (rise == fall) | (rise - f > 0.5 * tol) | (fall - f < -0.5 * tol)
            part = np.flatnonzero(used)
            if len(part) > min(MOST_PART, X.size**0.5) or (k == 0 and violation > 2 * accuracy):
                return False
            Z, own = X[part], u[part]
            gram = np.zeros((len(part) + 1,) * 2)
            gram[:-1, :-1] = Z @ Z.T
            slopes = problem.slopes[part] + (decision[part] - gram[:-1, :-1] @ own)[:, None]
            # the last row holds the constant sum of all other dual variables
            own = np.append(own, -own.sum())
            small = PiecewiseQP(
                gram,
                np.vstack([problem.knots[part], np.full(problem.knots.shape[1], own[-1])]),
                np.vstack([slopes, np.zeros(slopes.shape[1])]),
            )
            found = solve_smo(small, own, 0.5 * tol, STEPS_PER_ROW * len(own))
            if found.status is not Status.OPTIMAL:
                return False
            u[part], b = found.u[:-1], found.bias
        return False

    def free(self) -> NDArray:
        """Return the mask of dual variables strictly inside a linear piece of their cost."""
        return np.equal(*gains(self.u, self.problem.knots, self.problem.slopes))

    def balanced(self) -> NDArray:
        """Return feasible dual variables; all free u_i are changed equally to make the sum zero."""
        free, u = self.free(), self.u.copy()
        u[free] -= u.sum() / max(free.sum(), 1)
        return self.problem.feasible(u)


def solve_by_coordinates(
    problem: PiecewiseQP, start: PiecewiseSolution | NDArray | None, tol: float
) -> PiecewiseSolution:
    """Solve by coordinate descent to the tolerance `tol` of the KKT conditions.

    The attribute ``gram`` of `problem` contains the data matrix in place of the Gram matrix. The
    starting point `start` (a solution or dual variables u) need not be feasible.
    """
    u, b = (start.u, start.bias) if isinstance(start, PiecewiseSolution) else (start, 0.0)
    u = np.zeros(len(problem.knots)) if u is None else problem.feasible(u)
    steps = CoordinateDescent(problem, u, b)
    steps.run(tol)
    u = steps.balanced()
    w = steps.rows.T @ u
    decision = steps.rows @ w
    bias, violation = optimality(decision, *gains(u, problem.knots, problem.slopes))
    status = Status.OPTIMAL if violation <= tol else Status.INACCURATE
    return problem.solution(
        *(u, decision, bias, int(np.ceil(steps.passes)), status),
        weights=w,
        route="coordinate descent",
    )


@compiled()
def _pass(
    values, columns, starts, squares, knots, slopes, u, w, b, unit, order, margin
):  # fmt: skip
    """Take one coordinate step per row in `order`, and move active rows to the front of `order`.

    Returns the number of active rows, and the largest violation of the optimality conditions of a
    row, measured before the step of the row.
    """
    # A row is inactive if its dual variable leaves its knot only after the decision of the row
    # changes by `margin` or more.
    kept, worst, total = 0, 0.0, u.sum()
    for p in range(order.shape[0]):
        i = order[p]
        start, old, f = starts[i], u[i], b + unit * total
        if columns is None:  # a row of dense values; Numba compiles this case separately
            for k in range(w.shape[0]):
                f += w[k] * values[start + k]
        else:
            for k in range(start, starts[i + 1]):
                f += w[columns[k]] * values[k]
        new, room, missed = knots[i, slopes.shape[1]], np.inf, 0.0
        found = False
        for s in range(slopes.shape[1]):
            slope = slopes[i, s] + f
            if knots[i, s] <= old < knots[i, s + 1]:  # the linear piece to the right of u_i
                room, missed = min(room, slope), max(missed, -slope)
            if knots[i, s] < old <= knots[i, s + 1]:  # the linear piece to the left of u_i
                room, missed = min(room, -slope), max(missed, slope)
            goal = old - slope / (squares[i] + unit)
            if not found and goal < knots[i, s + 1]:
                new, found = max(goal, knots[i, s]), True
        if new != old:
            u[i] = new
            total += new - old
            worst = max(worst, missed)
            if columns is None:
                for k in range(w.shape[0]):
                    w[k] += (new - old) * values[start + k]
            else:
                for k in range(start, starts[i + 1]):
                    w[columns[k]] += (new - old) * values[k]
        if new != old or room < margin:
            order[p], order[kept] = order[kept], i
            kept += 1
    return kept, worst
