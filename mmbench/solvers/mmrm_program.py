"""The linear program of the max-margin ratio machine, and the certificate of any answer to it.

    min_{u,b,xi}  c'u + sum_i cost_i xi_i   s.t.  A u + y b + xi >= 1,  xi >= 0      (28), (30)
    max_lam       sum_i lam_i               s.t.  0 <= lam <= cost,  y'lam = 0,  A'lam <= c

Kernel machine (30): A = diag(y) K diag(y) and u = (alpha, beta) >= 0. Linear machine (28):
A = diag(y) Z with the standardised data Z and u = w free, so that A'lam = c. In both, c is the
difference of the class means of the decision: with s_q the sum of the rows of class q in A,
c = s_+/n_+ + s_-/n_-. Hence lam_i = 1/n_class is dual feasible as soon as every cost is at least
that: the program is then bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.solvers.highs_ import Basis
from mmbench.solvers.status import Status

#: Rows of a Gram matrix turned to float64 at a time, in bytes.
CHUNK_BYTES = 32 * 2**20

#: Decisions that differ by no more than this over all training rows are constant: w = 0.
FLAT = 1e-6

#: An answer whose relative gap or violation is above `tol` but below this is "inaccurate".
USABLE = 1e-3


class Program:
    """What the two machines share; a subclass knows the matrix A.

    Attributes
    ----------
    y : ndarray of shape (n_rows,)
        -1.0 or +1.0.
    cost : ndarray of shape (n_rows,)
        Cost of a unit of slack. Zero for a row that repeats another, which carries its cost:
        within a class the costs are proportional to the number of such repeats.
    columns : ndarray of int
        The columns that may be used; one of each set of equal ones.
    class_sums : ndarray of shape (2, n_columns)
        s_- and s_+.
    nonnegative : bool
        Whether u >= 0; else u is free.
    """

    nonnegative: ClassVar[bool]

    def __init__(self, y: NDArray, cost: NDArray, n_columns: int, class_sums: NDArray) -> None:
        self.y = y
        self.cost = cost
        self.n_columns = n_columns
        self.columns = np.arange(n_columns)
        self.class_sums = class_sums

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a part of A in float64, shape (len(rows), len(columns))."""
        raise NotImplementedError

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        raise NotImplementedError

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam."""
        raise NotImplementedError

    def norm_matrix(self, columns: NDArray) -> NDArray:
        """Return the matrix H of ``||w||^2 = u'Hu`` for some columns."""
        raise NotImplementedError

    @cached_property
    def class_rows(self) -> tuple[NDArray, NDArray]:
        """Rows that have a cost, of the negative and of the positive class."""
        used = self.cost > 0
        return np.flatnonzero(used & (self.y < 0)), np.flatnonzero(used & (self.y > 0))

    @cached_property
    def rows(self) -> NDArray:
        """Rows that have a cost, in their order."""
        return np.flatnonzero(self.cost > 0)

    @cached_property
    def class_cost(self) -> NDArray:
        """Sum of the costs of each class (negative, positive)."""
        return np.array([self.cost[rows].sum() for rows in self.class_rows])

    @cached_property
    def class_sizes(self) -> NDArray:
        """Number of samples of each class (negative, positive)."""
        return np.array([np.sum(self.y < 0), np.sum(self.y > 0)])

    @cached_property
    def c(self) -> NDArray:
        """The cost of u: difference of the class means of the decision."""
        return (self.class_sums / self.class_sizes[:, None]).sum(axis=0)

    @property
    def surely_bounded(self) -> bool:
        """Whether the costs are at least 1/n_class, which makes lam_i = 1/n_class feasible."""
        return bool(np.all(self.class_cost >= 1 - 1e-12))


class KernelProgram(Program):
    """Program (30) of a Gram matrix.

    The Gram matrix is divided by the mean of its diagonal, so that tolerances mean the same for
    every kernel; `coefficients` undoes that.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        float32 or float64; the program is that of the stored values, computed with in float64.
    y, cost : ndarray of shape (n_samples,)
    """

    nonnegative = True

    def __init__(self, gram: NDArray, y: NDArray, cost: NDArray) -> None:
        self.gram = gram
        self.scale = float(np.mean(np.diagonal(gram), dtype=np.float64)) or 1.0
        super().__init__(y, cost, len(y), self._class_sums(y))
        self.columns = self.rows

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a part of A in float64, shape (len(rows), len(columns))."""
        out = self.gram[np.ix_(rows, columns)].astype(np.float64)
        out *= self.y[columns] / self.scale
        out *= self.y[rows][:, None]
        return out

    def forward(self, u: NDArray) -> NDArray:
        """Return A u; only the rows of the Gram matrix where u is not zero are read."""
        return self.y * self._product(self.y * u, np.flatnonzero(u))

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam; A is symmetric."""
        return self.forward(lam)

    def norm_matrix(self, columns: NDArray) -> NDArray:
        """Return ``A / scale``, as ``w = sum_k y_k u_k phi(x_k) / scale``."""
        return self.block(columns, columns) / self.scale

    def coefficients(self, u: NDArray) -> NDArray:
        """Return the expansion over the training rows: alpha for positives, -beta for negatives."""
        return self.y * u / self.scale

    def _class_sums(self, y: NDArray) -> NDArray:
        members = np.where(y[:, None] == (-1.0, 1.0), y[:, None], 0.0)
        step = max(1, CHUNK_BYTES // (8 * len(y)))
        parts = [
            self.gram[start : start + step].astype(np.float64, copy=False) @ members
            for start in range(0, len(y), step)
        ]
        return y * np.concatenate(parts).T / self.scale

    def _product(self, v: NDArray, support: NDArray) -> NDArray:
        """Return K v / scale for a v that is zero outside `support`."""
        out = np.zeros(len(self.gram))
        step = max(1, CHUNK_BYTES // (8 * len(self.gram)))
        for start in range(0, len(support), step):
            part = support[start : start + step]
            out += v[part] @ self.gram[part].astype(np.float64, copy=False)
        return out / self.scale


class LinearProgram(Program):
    """Program (28) of data, whose features are standardised: the machine is affine invariant.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    y, cost : ndarray of shape (n_samples,)
    """

    nonnegative = False

    def __init__(self, X: NDArray, y: NDArray, cost: NDArray) -> None:
        self.centre = X.mean(axis=0)
        spread = X.std(axis=0)
        self.scale = np.where(spread > 0, spread, 1.0)
        self.A = (X - self.centre) / self.scale * y[:, None]
        sums = [self.A[y == sign].sum(axis=0) for sign in (-1.0, 1.0)]
        super().__init__(y, cost, X.shape[1], np.array(sums))

    def block(self, rows: NDArray, columns: NDArray) -> NDArray:
        """Return a part of A, shape (len(rows), len(columns))."""
        return self.A[np.ix_(rows, columns)]

    def forward(self, u: NDArray) -> NDArray:
        """Return A u."""
        return self.A @ u

    def adjoint(self, lam: NDArray) -> NDArray:
        """Return A'lam."""
        return lam @ self.A

    def norm_matrix(self, columns: NDArray) -> NDArray:
        """Return the diagonal matrix that undoes the standardisation."""
        return np.diag(1 / self.scale[columns] ** 2)

    def weights(self, u: NDArray, b: float) -> tuple[NDArray, float]:
        """Return w and b for the features as they were given."""
        w = u / self.scale
        return w, b - float(w @ self.centre)


@dataclass(frozen=True)
class Answer:
    """A primal and a dual vector of a program, with what they prove.

    Attributes
    ----------
    u, b : ndarray of shape (n_columns,), float
        Primal variables; u is never negative where the program forbids it.
    lam : ndarray of shape (n_rows,)
        Dual variables, within [0, cost].
    margins : ndarray of shape (n_rows,)
        y f(x), recomputed.
    objective : float
        Primal value, with the slacks that `margins` need.
    bound : float
        No feasible point whose coefficients sum (in absolute value) to no more than those of `u`
        has a lower value: ``sum(lam)`` less the violations times that sum.
    max_violation : float
        Largest violation of the dual constraints over all columns; the primal point has none.
    status : Status
    iterations : int
    route : str
        How the answer was found.
    basis : Basis or None
        For a hot start of the same program with other costs.
    facts : dict
        What only one kind of program reports, by name.
    """

    u: NDArray
    b: float
    lam: NDArray
    margins: NDArray
    objective: float
    bound: float
    max_violation: float
    status: Status
    iterations: int = 0
    route: str = ""
    basis: Basis | None = None
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """Distance of `objective` to `bound`, relative to ``max(1, |objective|)``."""
        return (self.objective - self.bound) / max(1.0, abs(self.objective))


def certify(
    program: Program, u: NDArray, b: float, lam: NDArray, tol: float, **facts: Any
) -> Answer:
    """Recompute what a primal and a dual vector prove, from the problem alone.

    Parameters
    ----------
    program : Program
    u, b, lam : ndarray, float, ndarray
        As a solver returned them; they are first clipped to their bounds.
    tol : float
        An answer is optimal if relative gap and violation are at most this.
    **facts
        Further fields of the answer.
    """
    u = np.maximum(u, 0.0) if program.nonnegative else u
    lam = np.clip(lam, 0.0, program.cost)
    margins = program.forward(u) + program.y * b
    objective = float(program.c @ u + program.cost @ np.maximum(1 - margins, 0))
    reduced = program.c - program.adjoint(lam)
    violation = np.maximum(-reduced, 0) if program.nonnegative else np.abs(reduced)
    worst, imbalance = float(violation.max(initial=0.0)), abs(float(program.y @ lam))
    bound = float(lam.sum()) - worst * float(np.abs(u).sum()) - imbalance * abs(b)
    answer = Answer(u, b, lam, margins, objective, bound, max(worst, imbalance), Status.FAILED)
    return replace(answer, status=_judge(answer, tol), **facts)


def _judge(answer: Answer, tol: float) -> Status:
    error = max(abs(answer.gap), answer.max_violation)
    if not np.isfinite(error):
        return Status.FAILED
    if error <= tol:
        return Status.OPTIMAL
    return Status.INACCURATE if error <= USABLE else Status.FAILED


def best(program: Program, answers: Sequence[Answer], tol: float) -> Answer:
    """Join the lowest objective with the highest bound among some answers to one program."""
    lowest = min(answers, key=lambda answer: answer.objective)
    highest = max(answers, key=lambda answer: answer.bound)
    if lowest is highest:
        return lowest
    joined = certify(program, lowest.u, lowest.b, highest.lam, tol)
    facts: dict[str, Any] = {
        "iterations": lowest.iterations,
        "route": lowest.route,
        "basis": lowest.basis,
    }
    return replace(joined, **facts)


def failed(program: Program, status: Status, route: str, iterations: int = 0) -> Answer:
    """Return the constant answer of a program that was not solved.

    It decides for the class whose errors cost more, which is the larger one unless they are
    weighted; then size breaks the tie. It proves no bound.
    """
    ranks = [
        tuple(pair) for pair in zip(program.class_cost.round(9), program.class_sizes, strict=True)
    ]
    b = 1.0 if ranks[1] >= ranks[0] else -1.0
    margins = program.y * b
    return Answer(
        u=np.zeros(program.n_columns),
        b=b,
        lam=np.zeros(len(program.y)),
        margins=margins,
        objective=float(program.cost @ np.maximum(1 - margins, 0)),
        bound=-np.inf,
        max_violation=0.0,
        status=status,
        iterations=iterations,
        route=route,
    )


def settled(program: Program, answer: Answer) -> Answer:
    """Return the majority class's constant decision for an answer with w = 0, status trivial."""
    solved = answer.status in (Status.OPTIMAL, Status.INACCURATE)
    if not solved or np.ptp(program.y * answer.margins) > FLAT:
        return answer
    constant = failed(program, Status.TRIVIAL, answer.route, answer.iterations)
    return replace(
        constant,
        lam=answer.lam,
        bound=answer.bound,
        max_violation=answer.max_violation,
        facts=answer.facts,
    )


def reused(program: Program, answer: Answer, tol: float) -> Answer | None:
    """Return a solution of the same program at other costs if it is one here too, else None.

    Costs do not matter to a solution without slack as long as no multiplier exceeds them.
    """
    same = len(answer.lam) == len(program.y) and len(answer.u) == program.n_columns
    if not same or answer.margins.min() < 1 - 1e-9 or np.any(answer.lam > program.cost):
        return None
    again = certify(program, answer.u, answer.b, answer.lam, tol, route="reused")
    return replace(again, basis=answer.basis) if again.status is Status.OPTIMAL else None


def without_repeats(X: NDArray, y: NDArray, cost: NDArray) -> NDArray:
    """Return the costs with those of repeated samples moved to the first of them.

    Equal samples of one class have equal rows and columns, which would make the vertex degenerate.
    """
    _, first, member = np.unique(
        np.column_stack([X, y]), axis=0, return_index=True, return_inverse=True
    )
    merged = np.zeros_like(cost)
    np.add.at(merged, first[member.ravel()], cost)
    return merged
