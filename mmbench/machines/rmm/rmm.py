"""The relative margin machine: an SVM whose decisions on the training rows stay within [-B, B].

    min over w, b   1/2 ||w||^2 + C sum_i xi_i
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,  -B <= f(x_i) <= B                   (7)

Its dual, with ``u_i = y_i alpha_i - lambda_i + lambda*_i`` and K the Gram matrix:

    max over alpha, lambda, lambda*   sum_i alpha_i - B sum_i (lambda_i + lambda*_i) - 1/2 u'Ku
    subject to      sum_i u_i = 0,  0 <= alpha_i <= C,  lambda_i, lambda*_i >= 0             (8)

and ``f(z) = sum_i u_i k(x_i, z) + b``. B is chosen between 1 and ``theta = max_i |f(x_i)|`` of the
SVM at the same C; from theta on the RMM is the SVM. With weights s_i of the rows the penalty on
xi_i is ``C s_i`` in (7), the bound of alpha_i in (8). The journal paper's two other forms, in which
the bound is a variable with the penalty D, are in `mmbench.machines.rmm.penalty`.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
P. K. Shivaswamy, T. Jebara: Maximum relative margin and data-dependent regularization. JMLR 11,
2010.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.base import kernel_scaling
from mmbench.machines.free_memory import cache_size
from mmbench.machines.hinge import slack_penalties
from mmbench.machines.linear_route import rows_or_gram, solve_dual
from mmbench.machines.parameter import Param, choice, parameter, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.rmm.dual import rmm_dual, solve_paper_dual
from mmbench.machines.rmm.penalty import train_penalty
from mmbench.machines.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.svm import GAP_TOLERANCE_FACTOR, SVM, certified, tolerance, train_svm
from mmbench.machines.weights import WeightedClassifier, class_weight, row_weights
from mmbench.solvers.svm_dual import PiecewiseQP, PiecewiseSolution

Computed = TypeVar("Computed")


class RMM(WeightedClassifier):
    """Relative margin machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair. `objective` is (7) at the returned w and b, which are
        feasible; `bound` is (8) at a feasible u; the optimum lies between them. `extra` holds
        `theta` and `B`, which is t where that is a variable; the programs are then (13) and (14).
        `seconds` and `iterations` include the SVM that gives theta.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        u of each pair (``rbf``, ``poly``).

    Notes
    -----
    A solver ends with ``|f| <= B + tol``. The returned w and b are then multiplied by
    ``B / max |f|``, so that they satisfy (7) exactly and `objective` is never below the optimum.

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
            "B": "small",
            "B_fraction": "small",
            "D": "small",
            "nu": "small",
        },
    )
    memory_needs: ClassVar[MemoryNeeds] = SVM.memory_needs
    sparse_input = translation_invariant = True
    #: Many rows are solved exactly, in a search too, where a tie may then fall otherwise.
    kernel_versions: ClassVar[Mapping[str, int]] = {"linear": 1}
    gap_tolerance_factor = SVM.gap_tolerance_factor

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    B: float | None = parameter(
        None,
        Param(low=0, optional=True),
        "Bound of ``|f|`` on the training rows; at least 1 to be of use.",
    )
    B_fraction: float = parameter(
        0.5,
        Param(low=0, open_low=True, high=1),
        "Where `B` is not given, ``B = 1 + B_fraction * (theta - 1)``, theta being the SVM's "
        "``max |f|`` on the same rows at the same C. 1 is the SVM.",
    )
    form: str = parameter(
        "bound",
        choice("bound", "penalty", "relaxed"),
        '"bound" is (7). In the journal\'s (13), "penalty", the bound is a variable t >= 1 with '
        'the penalty D: the same machines, by D instead of B. In its (14), "relaxed", rows may '
        "exceed t.",
    )
    D: float | None = parameter(
        None, positive(optional=True), 'Penalty on t; C where it is not given. Not for "bound".'
    )
    nu: float = parameter(
        10.0,
        positive(),
        'For "relaxed": at most a share ``1/nu`` of the training rows exceeds t, with the penalty '
        "``D nu / n`` on each excess. Of no use below 1.",
    )
    kernel_scaling: str = kernel_scaling()
    solver: str = parameter(
        "auto",
        choice("auto", "smo", "reference"),
        '"smo" takes pairwise steps from the SVM\'s solution on parts of the kernel matrix; "auto" '
        "does too, but for a linear kernel and many rows of few features, which an interior point "
        'solves in the features, all forms but "relaxed"; "reference" is libsvm for the SVM and '
        "Clarabel on (8).",
    )
    tol: float = SVM.parameters["tol"]
    cache_size: float | None = cache_size()
    timing: str = parameter(
        "none",
        choice("none", "warm", "cold"),
        "Whether `extra` in `fits_` tells the CPU seconds of the Gram matrix, then stored, of "
        "the SVM and of the RMM after it, for figure 2 of the paper: from the SVM's solution, "
        '"warm", or from zero, "cold". A grid search then shares nothing between its points.',
        after="n_jobs",
    )

    @classmethod
    def needs_at(cls, params: Mapping[str, Any]) -> MemoryNeeds:
        parts = params.get("form") == "relaxed"  # of a kernel matrix, even of a linear kernel
        return replace(cls.memory_needs, linear_row_copies=None) if parts else cls.memory_needs

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
        """Train from the SVM's solution or from zero, and tell the CPU seconds of each part."""
        _, gram_seconds = _timed(lambda: problem.gram)
        if self.kernel != "linear":  # values computed when they are needed could not be told apart
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
        """Return the SVM at the same C and weights."""
        C = slack_penalties(problem, self.C, self.class_weight)
        tol = tolerance(self.tol, len(problem.y))
        return train_svm(problem, C, self.solver, tol, start, self.cache_size)

    def _train_from(
        self, problem: BinaryProblem, svm: BinaryModel, points: list[PiecewiseSolution]
    ) -> BinaryModel:
        """Return the machine, from the SVM at the same C and neighbouring solutions of the dual."""
        theta, tol = float(np.abs(svm.state.f).max()), tolerance(self.tol, len(problem.y))
        if self.form != "bound":
            D, nu = self.C if self.D is None else self.D, self.nu
            relaxed = nu if self.form == "relaxed" else None
            start = points[0] if points else None
            weights = row_weights(problem, self.class_weight)
            model = train_penalty(
                *(problem, self.C, D, relaxed, self.solver, tol),
                *(svm, start, self.cache_size, weights),
            )
            return replace(model, fit=replace(model.fit, extra={"theta": theta, **model.fit.extra}))
        B = float(1 + self.B_fraction * (theta - 1) if self.B is None else self.B)
        if theta <= B:
            model = replace(svm, fit=replace(svm.fit, **NO_WORK))
        else:
            C = slack_penalties(problem, self.C, self.class_weight)
            model = train_rmm(problem, C, B, self.solver, tol, points, self.cache_size)
        return replace(model, fit=replace(model.fit, extra={"theta": theta, "B": B}))

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Order a path by C, then from the SVM away: each C trains its SVM once, and starts there.

        That is B descending, or D ascending.
        """
        bound = (-(point.get("B") or 0), -point.get("B_fraction", 0))
        return (point.get("C", 0), *bound, point.get("nu", 0), point.get("D") or 0)


#: What a certificate says of a training that was done before.
NO_WORK: Mapping[str, Any] = {"iterations": 0, "seconds": 0.0}


@dataclass(frozen=True)
class RMMState:
    """Where the next training on a path starts."""

    #: What the SVM was trained with: C, solver and tol.
    key: tuple
    #: The SVM at this C.
    svm: BinaryModel
    #: That of the RMM trained last.
    last: PiecewiseSolution
    #: The last solution of each bound, by its parameters. Where the classes are separable no alpha
    #: reaches C from some C on. The SVM, theta and the RMMs are then those of the C before, and a
    #: training from there ends at once.
    solved: Mapping[tuple, PiecewiseSolution]


def _with_the_work_of(svm: Fit, model: BinaryModel) -> BinaryModel:
    """Return the model with the SVM's iterations and seconds added to its own."""
    iterations, seconds = model.fit.iterations + svm.iterations, model.fit.seconds + svm.seconds
    return replace(model, fit=replace(model.fit, iterations=iterations, seconds=seconds))


def _timed(compute: Callable[[], Computed]) -> tuple[Computed, float]:
    """Return what a computation yields, and the CPU seconds of this thread that it took."""
    started = time.thread_time()
    result = compute()
    return result, time.thread_time() - started


def train_rmm(
    problem: BinaryProblem,
    C: float | NDArray,
    B: float,
    solver: str = "auto",
    tol: float = 1e-5,
    points: Sequence[PiecewiseSolution] = (),
    cache_size: float | None = None,
) -> BinaryModel:
    """Train one binary RMM.

    Parameters
    ----------
    problem : BinaryProblem
    C : float or ndarray of shape (n_samples,)
        The penalty on slack, or that of each row.
    B : float
    solver : {"auto", "smo", "reference"}, default="auto"
    tol : float, default=1e-5
    points : sequence of PiecewiseSolution, optional
        Solutions of neighbouring problems on the same rows: the SVM's, the RMM's at a larger B or
        another C. The training starts from the best of them in (8).
    cache_size : float, optional
        Memory for kernel values in MB.

    Returns
    -------
    BinaryModel
        `coef` is u times the factor that makes (7) hold; `state` is the solution of (8) itself.
    """
    dual = rmm_dual(rows_or_gram(problem, solver, cache_size), problem.y, C, B)
    started = time.perf_counter()
    if solver == "reference":
        found = solve_paper_dual(dual, problem.y, C, B, tol)
    else:
        start, gap_tolerance = _best(dual, points), GAP_TOLERANCE_FACTOR * tol
        found = solve_dual(problem, dual, C, solver, tol, gap_tolerance, start, B)
    model = certified(found, time.perf_counter() - started)
    violation = max(model.fit.max_violation, float(np.abs(found.f).max()) - B)
    return replace(model, fit=replace(model.fit, max_violation=violation))


def _best(dual: PiecewiseQP, points: Sequence[PiecewiseSolution]) -> PiecewiseSolution | None:
    """Return the point with the smallest objective."""
    if len(points) < 2:
        return points[0] if points else None
    values = [0.5 * (point.u @ point.decision) + dual.cost(point.u) for point in points]
    return points[int(np.argmin(values))]
