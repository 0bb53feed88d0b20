"""The relative margin machine, an SVM with decision values in [-B, B] at the training rows.

    min over w, b   1/2 ||w||^2 + C sum_i xi_i
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,  -B <= f(x_i) <= B                   (7)

    max over alpha, lambda, lambda*   sum_i alpha_i - B sum_i (lambda_i + lambda*_i) - 1/2 u'Ku
    subject to      sum_i u_i = 0,  0 <= alpha_i <= C,  lambda_i, lambda*_i >= 0             (8)

Here ``u_i = y_i alpha_i - lambda_i + lambda*_i`` and ``f(z) = sum_i u_i k(x_i, z) + b``. If B >=
theta, the maximum of ``|f(x_i)|`` for the SVM with the same C, the RMM is the SVM. In the journal
paper, the bound is a variable t >= 1; (14) lets rows exceed it by tau_i, tau*_i >= 0:

    min over w, b, t   1/2 ||w||^2 + C sum_i xi_i + D t                                      (13)
    min over w, b, t   1/2 ||w||^2 + C sum_i xi_i + D (t + nu/n sum_i (tau_i + tau*_i))      (14)

The dual of (13) is (8) with B = 1, the constant D in the objective, and
``sum_i (lambda_i + lambda*_i) <= D``; in (14), each also has the upper bound ``D nu / n``, or
``D nu s_i / sum_j s_j`` with row weights. Both minimise ``v(t) + D t`` for the optimum v(t) of (8)
with B = t, whose derivative ``-sum_i (lambda_i + lambda*_i)`` is monotone and piecewise linear.

Rows without a label have alpha_i = 0 and no xi_i; they count for theta, and have the weight 1 in
(14). SMO then solves (7), also with a linear kernel.

    Fit.route        when                        cost
    as for the SVM   (7) with B >= theta         the SVM training
    as for the SVM   (7) with B < theta          1 to 13 SVM trainings
    SMO              all pairs of many classes   1.7 times all SVMs, `svm_dual.many_pairs`
    closed form      (7) with B up to 1e-10      none
    root search      (13) and (14)               10 RMM trainings with warm starts
    Clarabel         solver="reference"          n^3 operations per iteration

Times: rmm_table1_* and rmm_fig2 (start from the SVM's solution) in results/reference.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008; journal paper: JMLR 11, 2010.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from mmbench.allowance import time_is_up
from mmbench.errors import Status, worst
from mmbench.kernels.matrix import PRECOMPUTED, KernelMatrix
from mmbench.machines.base.estimator import WeightedClassifier, row_weights, slack_penalties
from mmbench.machines.base.one_vs_one import PairModels, PairPlan
from mmbench.machines.base.parameters import (
    Param,
    cache_size,
    choice,
    class_weight,
    kernel_scaling,
    parameter,
    positive,
)
from mmbench.machines.base.problem import BinaryModel, BinaryProblem, Fit, expand
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.voting import UNLABELLED
from mmbench.machines.svm import (
    GAP_TOLERANCE_FACTOR,
    SVM,
    are_solved_together,
    certified,
    in_features,
    kernel_values,
    rows_or_gram,
    solve_dual,
    svm_bytes,
    tolerance,
    train_svm,
    train_together,
)
from mmbench.memory import TrainingSize
from mmbench.solvers.features import solve_in_features
from mmbench.solvers.result import relative_gap
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import TOLERANCE_FACTORS, solve_smo

#: Upper bound on the tolerance of Clarabel, the reference solver.
REFERENCE_TOLERANCE = 1e-9

#: The root search first brackets the optimal bound t. The search tries ``t = 1 + fraction * (theta
#: - 1)`` for the fractions in BOUND_FRACTIONS in turn, until the sum of all lambda_i and lambda*_i
#: exceeds D.
BOUND_FRACTIONS = (0.4, 0.16, 0.06, 0.025, 0.0)

#: Maximum number of steps of the root search.
MAX_ROOT_STEPS = 50

#: For B up to TINY_BOUND, the solution is w = 0. Rounding errors of sums of kernel values may
#: exceed so small a bound, and a solver would end without a proof or only after 10^7 steps.
TINY_BOUND = 1e-10

#: Iterations and seconds in the certificate of a reused solution.
NO_WORK: Mapping[str, Any] = {"iterations": 0, "seconds": 0.0}


class RMM(WeightedClassifier):
    """Relative margin machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        Certificate of each pair of classes. `objective` is the value of (7) at the returned w and
        b. The returned w and b are feasible. `bound` is the value of (8) at a feasible u. For (13)
        and (14), `objective` is the value of the problem, and `bound` is the value of its dual. The
        optimum lies between `bound` and `objective`. `extra` contains the numbers `B` and `theta`.
        `B` is the bound of (7), or the optimal t of (13) and (14). `theta` is the maximum of
        ``|f|`` at the training rows for the SVM with the same C. `seconds` and `iterations` include
        the training of this SVM.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Dual variables u of each pair, for kernels other than ``linear``.

    Notes
    -----
    For (7), a solver returns w, b and u with ``|f| <= B + tol`` at the training rows. The solution
    (w, b, u) of the solver is multiplied by a factor of at most ``B / max |f|``. The returned w and
    b therefore satisfy (7) exactly, and `objective` is never below the optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mmbench.machines import RMM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = RMM(C=10, kernel="linear", B_fraction=0.25).fit(scale(X), y)
    >>> fit = machine.fits_[0]
    >>> bool(abs(machine.decision_function(scale(X))).max() <= fit.extra["B"] + 1e-9)
    True
    >>> str(fit.status), fit.extra["theta"] > 2 * fit.extra["B"]
    ('optimal', True)
    """

    search_space: ClassVar[SearchSpace] = SVM.search_space.extended(
        {
            "B": ("B_fraction", (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)),
            "D": ("D", tuple(10.0**k for k in range(-1, 4))),
            "nu": ("nu", (2.0, 10.0, 100.0)),
        },
        prefer={
            **SVM.search_space.prefer,
            **dict.fromkeys(("B", "B_fraction", "D", "nu"), "small"),
        },
    )
    sparse_input = translation_invariant = True
    version = SVM.version
    #: linear 7: version 6 of ``linear`` in `SVM`. poly 3, rbf 4: pairs of many classes are solved
    #: together.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 7, "poly": 3, "rbf": 4}
    gap_tolerance_factor = SVM.gap_tolerance_factor

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    B: float | None = parameter(
        None, Param(low=0, optional=True), "Bound on ``|f|`` at training rows; useful from 1 on."
    )
    B_fraction: float = parameter(
        0.5,
        Param(low=0, open_low=True, high=1),
        "If `B` is not given, ``B = 1 + B_fraction * (theta - 1)``, with theta the ``max |f|`` of "
        "the SVM with the same C on the same rows. With 1, the RMM is the SVM.",
    )
    form: str = parameter(
        "bound",
        choice("bound", "penalty", "relaxed"),
        'Optimisation problem: "bound" is (7). "penalty" is (13) of the journal paper, in which '
        "the bound is a variable t >= 1 with penalty D; (7) and (13) have the same solutions, "
        'with parameter B or D. "relaxed" is (14), in which some rows may exceed t.',
    )
    D: float | None = parameter(
        None, positive(optional=True), 'Penalty on t in "penalty" and "relaxed"; by default C.'
    )
    nu: float = parameter(
        10.0,
        positive(),
        'Parameter of "relaxed": at most the fraction ``1/nu`` of the training rows exceeds t, '
        "and each excess has the penalty ``D nu / n``. Values below 1 are not useful.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" is sequential minimal optimisation from the solution of the SVM. "auto" is "smo", '
        "except that with a linear kernel, many rows and few features, all forms but "
        '"relaxed" are solved by an interior-point method in the feature space. "reference" is '
        "libsvm for the SVM and Clarabel for (8).",
    )
    tol: float = SVM.parameters["tol"]
    cache_size: float | None = cache_size()
    timing: str = parameter(
        "none",
        choice("none", "warm", "cold"),
        'With "warm" or "cold", `extra` in `fits_` has the CPU seconds of the Gram matrix, of the '
        'SVM, and of the RMM that starts from the SVM\'s solution ("warm") or from zero '
        '("cold"), as in figure 2 of the paper. Grid points then share no computation.',
        after="n_jobs",
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        # problem (14) is solved by SMO, even if the kernel is linear
        linear = self.kernel == "linear" and self.form != "relaxed"
        return svm_bytes(size, linear, self.solver, self.cache_size)

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        unlabelled: ArrayLike | None = None,
    ) -> Self:
        """Train one binary machine per pair of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 is equivalent to two equal rows. Rows of weight 0
            are removed, and negative weights raise an error.
        unlabelled : array-like of shape (n_unlabelled, n_features), optional
            Rows without labels, for example the rows that will be predicted. The bounds on decision
            values also apply to these rows, in each pair of classes. In `support_`, their indices
            begin at n_samples.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        if unlabelled is not None and self.kernel == PRECOMPUTED:
            raise ValueError(
                "RMM: unlabelled rows need features; use a kernel function, not 'precomputed'"
            )
        rows, labels, weights, counted = self._weighted(X, y, sample_weight)
        if unlabelled is None:
            return self._fit(rows, labels, weights=weights)._renumbered(counted)
        more = self._validated(unlabelled, reset=False)
        if counted is not None:
            counted = np.append(counted, np.shape(X)[0] + np.arange(more.shape[0]))
        return self._fit(rows, labels, weights=weights, unlabelled=more)._renumbered(counted)

    def _train_all(
        self,
        plan: PairPlan,
        hooks: Callable[[int], AbstractContextManager],
        indefinite: NDArray | None,
    ) -> PairModels:
        one: Any = plan.machines[0]  # `fit_pairs` may give parameters that self has not
        plain = type(self).train is RMM.train and (one.form, one.timing) == ("bound", "none")
        plain = plain and (one.B is None or one.B >= 1) and UNLABELLED not in plan.labels
        if plain and are_solved_together(self, plan):
            bound = (1.0, one.B_fraction) if one.B is None else (one.B, 0.0)
            return train_together(self, plan, *bound)
        return super()._train_all(plan, hooks, indefinite)

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        if self.timing != "none":
            return self._train_timed(problem)
        before, key = None if warm is None else warm.state, (self.C, self.solver, self.tol)
        if before is not None and before.key == key:
            svm, points, spent = before.svm, [before.last], replace(before.svm.fit, **NO_WORK)
        else:
            svm = self._train_svm(problem, None if before is None else before.svm.state)
            points, spent = [svm.state], svm.fit
        bound = (self.form, self.B, self.B_fraction, self.nu, self.D)
        solved = {} if before is None else before.solved
        if bound in solved:
            points.append(solved[bound])
        model = _with_the_work_of(spent, self._train_from(problem, svm, points))
        last = model.state
        return replace(model, state=RMMState(key, svm, last, {**solved, bound: last}))

    def _train_timed(self, problem: BinaryProblem) -> BinaryModel:
        """Train from the SVM's solution or from zero, and report the CPU seconds of each stage."""
        _, gram_seconds = _timed(lambda: problem.gram)
        # the Gram matrix is stored, since the time of kernel values computed on demand cannot be
        # measured separately
        if self.kernel != "linear":
            problem.given_gram = problem.gram
        svm, svm_seconds = _timed(lambda: self._train_svm(problem))
        points = [svm.state] if self.timing == "warm" else []
        model, rmm_seconds = _timed(lambda: self._train_from(problem, svm, points))
        seconds = {
            "gram_cpu_seconds": gram_seconds,
            "svm_cpu_seconds": svm_seconds,
            "rmm_cpu_seconds": rmm_seconds,
        }
        model = _with_the_work_of(svm.fit, model)
        return replace(model, fit=replace(model.fit, extra={**model.fit.extra, **seconds}))

    def _train_svm(
        self, problem: BinaryProblem, start: PiecewiseSolution | None = None
    ) -> BinaryModel:
        """Train the SVM with the same C and the same row weights as the RMM.

        Rows without a label get the decision values of the SVM of all other rows.
        """
        known, part = np.flatnonzero(problem.y), problem
        begin: PiecewiseSolution | NDArray | None = start
        if len(known) < len(problem.y):
            part, begin = problem.part(known), None if start is None else start.u[known]
        C = slack_penalties(part, self.C, self.class_weight)
        tol = tolerance(self.tol, len(part.y))
        svm = train_svm(part, C, self.solver, tol, begin, self.cache_size)
        if self.solver == "reference" and not svm.fit.gap <= GAP_TOLERANCE_FACTOR * tol:
            # the SVM is trained again if libsvm ends far from the optimum, since B is computed from
            # the SVM's decision values
            svm = train_svm(part, C, "auto", tol, None, self.cache_size)
        return svm if part is problem else _extended(svm, problem, known)

    def _train_from(
        self, problem: BinaryProblem, svm: BinaryModel, points: list[PiecewiseSolution]
    ) -> BinaryModel:
        """Train the RMM, given the SVM with the same C, and dual solutions as warm starts."""
        theta, tol = _largest_decision(svm), tolerance(self.tol, len(problem.y))
        B = float(1 + self.B_fraction * (theta - 1) if self.B is None else self.B)
        if self.form != "bound":
            model, B = self._train_penalty(problem, svm, points[0] if points else None, tol)
        elif theta <= B:
            model = replace(svm, fit=replace(svm.fit, **NO_WORK))
        else:
            model = self._train_bound(problem, B, points, tol)
        return replace(model, fit=replace(model.fit, extra={"theta": theta, "B": B}))

    def _train_bound(
        self, problem: BinaryProblem, B: float, points: list[PiecewiseSolution], tol: float
    ) -> BinaryModel:
        """Train the RMM of problem (7) with the bound B, from the best of the dual solutions
        `points` at neighbouring grid points.

        The `state` of the model is the solution of problem (8). The `coef` of the model is the
        solution u of (8), multiplied by a factor such that the constraints of (7) hold exactly.
        """
        C, solver = slack_penalties(problem, self.C, self.class_weight), self.solver
        if not problem.y.all():
            C = C * np.abs(problem.y)
            solver = "smo" if solver == "auto" else solver
        dual = rmm_dual(rows_or_gram(problem, solver, self.cache_size), problem.y, C, B)
        started, gap = time.perf_counter(), GAP_TOLERANCE_FACTOR * tol
        if self.solver == "reference":
            found = solve_paper_dual(dual, problem.y, C, B, tol)
        elif B <= TINY_BOUND:
            found = solve_tiny_bound(dual, problem.y, C, B)
        else:
            values = [0.5 * (point.u @ point.decision) + dual.cost(point.u) for point in points]
            start = points[int(np.argmin(values))] if points else None
            size = self.cache_size
            found = solve_dual(problem, dual, C, solver, tol, gap, start, B, size)
        model = certified(dual, found, tol, time.perf_counter() - started)
        violation = max(model.fit.max_violation, _largest_decision(model) - B)
        return replace(model, fit=replace(model.fit, max_violation=violation))

    def _train_penalty(
        self, problem: BinaryProblem, svm: BinaryModel, start: PiecewiseSolution | None, tol: float
    ) -> tuple[BinaryModel, float]:
        """Train the RMM of problem (13) or (14), and return the model and the optimal bound t.

        `svm` is the SVM with the same C, and `start` is the solution at a neighbouring grid point.
        """
        D = self.C if self.D is None else self.D
        if svm.coef is not None and not svm.coef.any():  # if w = 0, then |f| <= 1 and t = 1
            objective, bound = svm.fit.objective + D, svm.fit.bound + D
            return replace(
                svm, fit=replace(svm.fit, objective=objective, bound=bound, **NO_WORK)
            ), 1.0
        started, reference = time.perf_counter(), self.solver == "reference"
        nu = self.nu if self.form == "relaxed" else None  # t = 1 is optimal for nu < 1
        inside = nu is None and in_features(problem, self.solver) and bool(problem.y.all())
        gram = (rows_or_gram if inside else kernel_values)(problem, self.solver, self.cache_size)
        search = PenaltySearch(
            *(gram, problem.y, inside, self.C, D, nu, row_weights(problem, self.class_weight))
        )
        if reference:
            dual = search.dual(1.0)
            found = solve_paper_dual(dual, problem.y, search.C, 1.0, tol, search.cap, D)
            points = [search.point(found)]
        else:
            points = search.to_gap(svm, start, tol)
        best, objective, t, bound = search.best(points)
        work = search.iterations, worst(search.statuses)
        state = search.dual(1.0).solution(
            *(best.u, best.decision, best.bias, *work), weights=best.w
        )
        fit = Fit.of(
            state,
            objective=objective,
            bound=bound,
            seconds=time.perf_counter() - started,
            n_support=int(np.count_nonzero(best.u)),
            route="Clarabel" if reference else "root search",
        )
        return BinaryModel(best.bias, fit, coef=best.u, w=best.w, state=state), t

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Return the sort key of a grid point: ascending C, descending B, ascending nu and D."""
        bound = (-(point.get("B") or 0), -point.get("B_fraction", 0))
        return (point.get("C", 0), *bound, point.get("nu", 0), point.get("D") or 0)


@dataclass(frozen=True)
class RMMState:
    """Warm start for the next grid point of a path."""

    #: Parameters C, solver and tol of the SVM.
    key: tuple
    #: SVM with the parameters `key`.
    svm: BinaryModel
    #: Dual solution of the previous RMM.
    last: PiecewiseSolution
    #: Last dual solution per (form, B, B_fraction, nu, D). If no alpha_i reaches C, the RMM is the
    #: same for every larger C, and the training ends at once.
    solved: Mapping[tuple, PiecewiseSolution]


def _largest_decision(model: BinaryModel) -> float:
    """Return the largest ``|f|`` at the training rows, which is ``|b|`` if w = 0."""
    if model.coef is not None and not model.coef.any():
        return abs(float(model.intercept))
    return float(np.abs(model.state.f).max())


def _extended(svm: BinaryModel, problem: BinaryProblem, known: NDArray) -> BinaryModel:
    """Return the SVM of the rows `known` as a model of all rows of a problem."""
    state, n = svm.state, len(problem.y)
    u, coef = np.zeros(n), np.zeros(n)
    u[known], coef[known] = state.u, svm.coef
    decision, others = np.empty(n), np.flatnonzero(problem.y == 0)
    decision[known] = state.decision
    if state.weights is not None:
        decision[others] = problem.X[others] @ state.weights
    elif problem.given_gram is not None:
        decision[others] = problem.given_gram[np.ix_(others, known)] @ state.u
    else:
        values = expand(problem.kernel, problem.X[others], problem.X[known], state.u[None])
        decision[others] = values[:, 0]
    return replace(svm, coef=coef, state=replace(state, u=u, decision=decision))


def _with_the_work_of(svm: Fit, model: BinaryModel) -> BinaryModel:
    """Return the model with the iterations and seconds of the SVM added to its certificate."""
    iterations, seconds = model.fit.iterations + svm.iterations, model.fit.seconds + svm.seconds
    return replace(model, fit=replace(model.fit, iterations=iterations, seconds=seconds))


def _timed(compute: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a computation, and its CPU seconds in this thread."""
    started = time.thread_time()
    result = compute()
    return result, time.thread_time() - started


def rmm_dual(
    gram: NDArray | KernelMatrix,
    y: NDArray,
    C: float | NDArray,
    B: float,
    cap: float | NDArray = np.inf,
) -> PiecewiseQP:
    """Return the dual (8) as a minimisation over u, with a piecewise linear cost of each u_i.

    Between 0 and ``y_i C``, u_i is ``y_i alpha_i`` and the slope is -y_i. Below, lambda_i is
    positive and the slope is -B; above, lambda*_i is positive and the slope is B. `cap` is the
    upper bound of lambda_i and lambda*_i in (14). If B < 1, ``alpha_i = C`` is optimal between 0
    and ``y_i C``, and the slope is ``-y_i B``.
    """
    ends = np.sort(np.column_stack([0 * y, C * y]), axis=1)
    slope = np.full(len(y), B)
    return PiecewiseQP(
        gram,
        knots=np.column_stack([ends[:, 0] - cap, ends, ends[:, 1] + cap]),
        slopes=np.column_stack([-slope, -min(1, B) * y, slope]),
        constant=-float(np.sum(C + 0 * y)) * max(0.0, 1 - B),
    )


def solve_tiny_bound(
    dual: PiecewiseQP, y: NDArray, C: float | NDArray, B: float
) -> PiecewiseSolution:
    """Return w = 0 and the best b in [-B, B], the solution of (7) up to a relative gap of 2 B.

    The slack of each row is between 1 - B and 1 + B.
    """
    none, side = np.zeros(len(y)), float(np.sign(np.sum(C * y)))
    return dual.solution(none, none, side * B, 0, Status.OPTIMAL, route="closed form")


def solve_paper_dual(
    dual: PiecewiseQP,
    y: NDArray,
    C: float | NDArray,
    B: float,
    tol: float,
    cap: float | NDArray = np.inf,
    total: float | None = None,
) -> PiecewiseSolution:
    """Solve the dual (8) in the paper's variables alpha, lambda, lambda* by the solver Clarabel.

    `dual` is problem (8) as a `PiecewiseQP`. The certificate is computed from `dual`. For (13) and
    (14), `cap` is the upper bound of each lambda_i and lambda*_i, and `total` is the upper bound of
    the sum of all lambda_i and lambda*_i.
    """
    from mmbench.solvers.clarabel_ import solve_qp

    n, limited = len(y), int(total is not None)
    none, ones, eye = np.zeros(n), np.ones((1, n)), sparse.eye_array(n)
    rows = [[ones, None, None, None, None], [eye, -sparse.diags_array(y), eye, -eye, None]]
    if limited:
        rows.append([None, None, ones, ones, np.ones((1, 1))])
    multipliers = sparse.coo_array((3 * n + limited, 3 * n + limited))
    # without a label, alpha_i is not a part of u_i; a positive upper bound of alpha_i leaves the
    # interior-point method room
    most = np.where(y == 0, 1.0, C)
    found = solve_qp(
        P=sparse.csc_array(sparse.block_diag([dual.gram, multipliers])),
        q=np.repeat([0.0, -1.0, B, 0.0], [n, n, 2 * n, limited]),
        A=sparse.csc_array(sparse.block_array([row[: 4 + limited] for row in rows])),
        b=np.concatenate([[0.0], none, [total] * limited]),
        lower=np.repeat([-np.inf, 0.0], [n, 3 * n + limited]),
        upper=np.concatenate([none + np.inf, most, none + cap, none + cap, [np.inf] * limited]),
        tol=min(tol, REFERENCE_TOLERANCE),
    )
    u = dual.feasible(found.x[:n])
    bias = float(found.multipliers[0])
    return dual.solution(u, dual.gram @ u, bias, found.iterations, found.status, route="Clarabel")


class DualPoint(NamedTuple):
    """A feasible point of the dual of problem (13) or (14)."""

    #: Dual variables u, shape (n,).
    u: NDArray
    #: Decision values without the intercept b, shape (n,): ``Zw`` with the feature matrix Z if w is
    #: given, else ``Ku``.
    decision: NDArray
    #: Intercept b.
    bias: float
    #: Sum of all alpha_i.
    alpha: float
    #: Sum of all dual variables lambda_i and lambda*_i.
    total: float
    #: Upper bound on the rounding error of ``1/2 u'Ku``.
    rounding: float
    #: Primal weights w of shape (k,), or None if the solver does not work in the feature space.
    w: NDArray | None

    def mixed(self, other: DualPoint, total: float) -> DualPoint:
        """Return the convex combination of two dual points whose field `total` has the given value.

        The field `rounding` is combined like all other fields. For a Gram matrix, the combined
        value is an upper bound on the rounding error, since the square root of `rounding` is a
        convex function of u.
        """
        share = (total - other.total) / (self.total - other.total)
        mix: list[Any] = [
            None if a is None or b is None else share * a + (1 - share) * b
            for a, b in zip(self, other, strict=True)
        ]
        return DualPoint(*mix)


class PenaltySearch:
    """The search for the optimal bound t of problem (13), or of problem (14) if `nu` is given.

    If `inside` is true, the RMMs are solved in the feature space, and `gram` contains the training
    rows. Otherwise `gram` is the kernel matrix. `weights` are the row weights s, by default 1. Each
    RMM of the search starts from the solution for the previous t.
    """

    def __init__(
        self,
        gram: Any,
        y: NDArray,
        inside: bool,
        C: float,
        D: float,
        nu: float | None,
        weights: NDArray | None,
    ):
        s = np.ones(len(y)) if weights is None else np.where(y == 0, 1.0, weights)
        self.gram, self.y, self.inside, self.D, self.weights = gram, y, inside, D, s
        self.C = C if weights is None and y.all() else C * s * np.abs(y)
        # `cap` is the upper bound of each lambda_i and lambda*_i. `exceptions` is the upper bound
        # of the total weight of the rows with decision values |f| > t.
        self.cap = np.full(len(y), np.inf) if nu is None else D * nu / s.sum() * s
        self.exceptions = 0.0 if nu is None else s.sum() / nu
        self.last: PiecewiseSolution | NDArray | None = None
        self.statuses: list[Status] = []
        self.inaccurate: list[DualPoint] = []
        self.iterations, self.max_iter = 0, max(10**7, 100 * len(y))

    def dual(self, t: float) -> PiecewiseQP:
        """Return the dual of the RMM with bound t."""
        return rmm_dual(self.gram, self.y, self.C, t, self.cap)

    def to_gap(
        self, svm: BinaryModel, start: PiecewiseSolution | None, tol: float
    ) -> list[DualPoint]:
        """Call `around` with decreasing tolerances until the duality gap is within its tolerance.

        Returns the dual points of all calls. The tolerances are `tol` times TOLERANCE_FACTORS, as
        in `solve_to_gap`.
        """
        high = self.point(svm.state)
        # the iterations of the SVM are not counted here, since the caller adds them
        self.iterations, self.last = 0, start
        points: list[DualPoint] = []
        for factor in TOLERANCE_FACTORS:
            points += self.around(high, factor * tol, GAP_TOLERANCE_FACTOR * tol)
            accurate = self.gap(points) <= GAP_TOLERANCE_FACTOR * tol
            if accurate or self.statuses[-1] is not Status.OPTIMAL:
                break
            self.last = self.best(points)[0].u
        return points

    def around(self, high: DualPoint, tol: float, gap_tolerance: float) -> list[DualPoint]:
        """Bracket the optimal bound t, and return the dual points at both ends of the bracket.

        The first point is the convex combination of both ends with the sum D of all lambda_i and
        lambda*_i; points without the status ``optimal`` follow. If t = 1 is optimal, only its point
        is returned. `high` is the dual point of the SVM; `tol` is the relative width of the bracket
        and the tolerance of the RMMs.
        """
        D, theta, low = self.D, float(np.abs(high.decision + high.bias).max()), high
        t_low = t_high = theta
        for fraction in BOUND_FRACTIONS if theta > 1 else ():
            t_low = 1 + fraction * (theta - 1)
            low = self.solve(t_low, tol)
            if low.total > D:
                break
            t_high, high = t_low, low
        # t = 1 is optimal if ``v(t) + D t`` has a derivative ``D - total >= 0`` at t = 1
        if low.total <= D:
            return [low]
        gain_low, gain_high, side = low.total - D, high.total - D, 0
        for _ in range(MAX_ROOT_STEPS):
            if t_high - t_low <= tol * t_high or gain_high == 0:
                break
            t = t_low + (t_high - t_low) * gain_low / (gain_low - gain_high)
            if not t_low < t < t_high or self.exhausted(low, high, gap_tolerance):
                break
            point = self.solve(t, tol)
            # Illinois method: if one end of the bracket is unchanged twice in a row, its stored
            # function value is halved
            if point.total > D:
                t_low, low, gain_low = t, point, point.total - D
                gain_high *= 0.5 if side < 0 else 1.0
                side = -1
            else:
                t_high, high, gain_high = t, point, point.total - D
                gain_low *= 0.5 if side > 0 else 1.0
                side = 1
        return [low.mixed(high, D), low, high, *self.inaccurate]

    def solve(self, t: float, tol: float) -> DualPoint:
        """Return the dual solution of the RMM with bound t."""
        dual = self.dual(t)
        if self.inside:
            found = solve_in_features(dual, self.y, self.C, tol, GAP_TOLERANCE_FACTOR * tol, t)
        else:
            found = solve_smo(dual, self.last, tol, self.max_iter // 10)
        self.last, point = found, self.point(found)
        # The sum of all lambda_i and lambda*_i of an inaccurate RMM is inaccurate, so that the
        # optimal t may lie outside the bracket. Therefore `around` also returns the points of
        # inaccurate RMMs.
        if found.status is not Status.OPTIMAL:
            self.inaccurate.append(point)
        return point

    def exhausted(self, low: DualPoint, high: DualPoint, gap_tolerance: float) -> bool:
        """Whether the search ends before the bracket is narrow.

        The search ends at the iteration limit or at the time limit. After an inaccurate RMM,
        further steps are unreliable, so that the search ends if the duality gap of the bracket's
        dual points is at most `gap_tolerance`.
        """
        if self.iterations >= self.max_iter or time_is_up():
            return True
        if self.statuses[-1] is Status.OPTIMAL:
            return False
        return self.gap([low.mixed(high, self.D), low, high]) <= gap_tolerance

    def point(self, found: PiecewiseSolution) -> DualPoint:
        """Return the `DualPoint` of a solution, and record its iterations and its status."""
        self.iterations += found.iterations
        self.statuses.append(found.status)
        alpha = np.clip(self.y * found.u, 0, self.C)
        total = float(np.abs(found.u - self.y * alpha).sum())
        return DualPoint(
            *(found.u, found.decision, found.bias, float(alpha.sum()), total),
            *(found.rounding, found.weights),
        )

    def best(self, points: list[DualPoint]) -> tuple[DualPoint, float, float, float]:
        """Return the best point, its primal objective, its bound t, and the largest lower bound.

        The best point has the smallest primal objective, and the bound t is optimal for the w and b
        of this point. The largest lower bound may belong to another point.
        """
        best = min(points, key=lambda point: self.primal(point)[0])
        return best, *self.primal(best), max(map(self.bound, points))

    def gap(self, points: list[DualPoint]) -> float:
        """Return the relative gap between the smallest objective and the largest lower bound."""
        _, objective, _, bound = self.best(points)
        return relative_gap(objective, bound)

    def primal(self, point: DualPoint) -> tuple[float, float]:
        """Return the objective of (13) or (14) and the optimal t, given the w and b of a point."""
        f = point.decision + point.bias
        size, order = np.abs(f), np.argsort(-np.abs(f))
        larger = np.count_nonzero(np.cumsum(self.weights[order]) <= self.exceptions)
        t = max(1.0, float(size[order[larger]])) if larger < len(f) else 1.0
        beyond = size > t
        penalty = float(np.sum(self.C * np.maximum(0, 1 - self.y * f))) + self.D * t
        penalty += float(self.cap[beyond] @ (size[beyond] - t))
        value = 0.5 * max(0.0, float(point.u @ point.decision)) + penalty
        return value if np.isfinite(value) else np.inf, t

    def bound(self, point: DualPoint) -> float:
        """Return a lower bound on the optimum: the dual objective minus the point's rounding error.

        The lower bound is at least D, which is the dual objective at u = 0. If the sum of all
        lambda_i and lambda*_i exceeds D, all dual variables are first scaled such that this sum is
        D.
        """
        scale = 1.0 if point.total <= self.D else self.D / point.total
        norm = 0.5 * max(0.0, float(point.u @ point.decision)) + point.rounding
        value = self.D + scale * (point.alpha - point.total) - scale**2 * norm
        return max(self.D, value) if np.isfinite(value) else self.D
