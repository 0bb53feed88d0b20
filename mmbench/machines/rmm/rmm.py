"""The relative margin machine: an SVM whose decisions on the training rows stay within [-B, B].

    min over w, b   1/2 ||w||^2 + C sum_i xi_i
    subject to      y_i f(x_i) >= 1 - xi_i,  xi_i >= 0,  -B <= f(x_i) <= B                   (7)

Its dual, with ``u_i = y_i alpha_i - lambda_i + lambda*_i`` and K the Gram matrix:

    max over alpha, lambda, lambda*   sum_i alpha_i - B sum_i (lambda_i + lambda*_i) - 1/2 u'Ku
    subject to      sum_i u_i = 0,  0 <= alpha_i <= C,  lambda_i, lambda*_i >= 0             (8)

and ``f(z) = sum_i u_i k(x_i, z) + b``. B is chosen between 1 and ``theta = max_i |f(x_i)|`` of the
SVM at the same C; from theta on the RMM is the SVM. The journal paper's two other forms, in which
the bound has a price D, are in `mmbench.machines.rmm.penalty`.

References
----------
P. K. Shivaswamy, T. Jebara: Relative margin machines. NIPS 21, 2008.
P. K. Shivaswamy, T. Jebara: Maximum relative margin and data-dependent regularization. JMLR 11,
2010.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.machines.base import PairwiseClassifier, common_parameters
from mmbench.machines.parameter import Param, choice, positive
from mmbench.machines.problem import BinaryModel, BinaryProblem, Fit
from mmbench.machines.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.svm import SVM, hinge_objective, solve_to_gap, train_svm
from mmbench.solvers.svm_dual.problem import PiecewiseQP, PiecewiseSolution


class RMM(PairwiseClassifier):
    """Relative margin machine, one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Price of one unit of slack.
    B : float, optional
        Bound of ``|f|`` on the training rows; at least 1 to be of use.
    B_fraction : float, default=0.5
        Where `B` is not given, ``B = 1 + B_fraction * (theta - 1)``, theta being the SVM's
        ``max |f|`` on the same rows at the same C. 1 is the SVM.
    form : {"bound", "penalty", "relaxed"}, default="bound"
        "bound" is (7). In the journal's (13), "penalty", the bound is a variable t >= 1 at the
        price D: the same machines, by D instead of B. In its (14), "relaxed", rows may exceed t.
    D : float, optional
        Price of t; C where it is not given. Not for "bound".
    nu : float, default=10.0
        For "relaxed": at most a share ``1/nu`` of the training rows exceeds t, at the price
        ``D nu / n`` a unit. Of no use below 1.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        ``exp(-gamma ||u - v||^2)``, ``u'v`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    kernel_scaling : {"none", "trace"}, default="none"
        "trace" divides ``poly`` by the mean of k(x, x) over the training rows.
    solver : {"auto", "smo", "reference"}, default="auto"
        "auto" is "smo", pairwise steps from the SVM's solution on the stored Gram matrix;
        "reference" is libsvm for the SVM and an interior point (Clarabel) on (8).
    tol : float, default=1e-5
        Largest violation of the optimality conditions, in units of f. Where that leaves a relative
        gap of more than a hundred times this, down to a 512th of it is asked of the rows.
    ties : {"lowest", "random"}, default="lowest"
        Which of several classes with most votes is predicted.
    random_state : int, optional
        Seed of ``ties="random"``.
    n_jobs : int, optional
        Threads over pairs of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        The certificate of each pair. `objective` is (7) at the returned w and b, which are
        feasible; `bound` is (8) at a feasible u; the optimum lies between them. `extra` holds
        `theta` and `B`, which is t where that is a variable; the programs are then (13) and (14).
        `seconds` and `iterations` include the SVM that gives theta.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        u of each pair (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero u in some pair (``rbf``, ``poly``).
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

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

    parameters: ClassVar[dict[str, Param]] = common_parameters() | {
        "kernel_scaling": choice("none", "trace"),
        "C": positive(),
        "B": Param(low=0, optional=True),
        "B_fraction": Param(low=0, open_low=True, high=1),
        "form": choice("bound", "penalty", "relaxed"),
        "D": positive(optional=True),
        "nu": positive(),
        "solver": choice("auto", "smo", "reference"),
    }
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
    gap_tolerance_factor = SVM.gap_tolerance_factor

    def __init__(
        self,
        C=1.0,
        B=None,
        B_fraction=0.5,
        form="bound",
        D=None,
        nu=10.0,
        kernel="rbf",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        kernel_scaling="none",
        solver="auto",
        tol=1e-5,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.B = B
        self.B_fraction = B_fraction
        self.form = form
        self.D = D
        self.nu = nu
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.kernel_scaling = kernel_scaling
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        before, key = None if warm is None else warm.state, (self.C, self.solver, self.tol)
        if before is not None and before.key == key:
            svm, points, spent = before.svm, [before.last], (0, 0.0)
        else:
            start = None if before is None else before.svm
            start, product = (None, None) if start is None else (start.coef, start.state)
            svm = train_svm(problem, self.C, self.solver, self.tol, start, product)
            assert svm.coef is not None
            points, spent = [Point(svm.coef, svm.state)], (svm.fit.iterations, svm.fit.seconds)
        bound = (self.form, self.B, self.B_fraction, self.nu, self.D)
        solved = {} if before is None else before.solved
        if bound in solved:
            points.append(solved[bound])
        theta = float(np.abs(svm.state + svm.intercept).max())
        model, last = self._train_from(problem, svm, points, theta)
        return replace(
            model,
            fit=replace(
                model.fit,
                iterations=model.fit.iterations + spent[0],
                seconds=model.fit.seconds + spent[1],
                extra={"theta": theta, **model.fit.extra},
            ),
            state=RMMState(key, svm, last, {**solved, bound: last}),
        )

    def _train_from(
        self, problem: BinaryProblem, svm: BinaryModel, points: list[Point], theta: float
    ) -> tuple[BinaryModel, Point]:
        """Return the machine, from the SVM at the same C and neighbouring points, and its own."""
        if self.form != "bound":
            from mmbench.machines.rmm.penalty import train_priced

            D, nu = self.C if self.D is None else self.D, self.nu
            relaxed, start = nu if self.form == "relaxed" else None, points[0].u
            model = train_priced(problem, self.C, D, relaxed, self.solver, self.tol, svm, start)
            return model, Point(model.state)
        B = 1 + self.B_fraction * (theta - 1) if self.B is None else self.B
        extra = {"B": float(B)}
        if theta <= B:
            assert svm.coef is not None  # an SVM trained here has it, with a linear kernel too
            fit = replace(svm.fit, iterations=0, seconds=0.0, extra=extra)
            return replace(svm, fit=fit), Point(svm.coef, svm.state)
        model = train_rmm(problem, self.C, B, self.solver, self.tol, points)
        return replace(model, fit=replace(model.fit, extra=extra)), model.state

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Order a path by C, then from the SVM away: each C trains its SVM once, and starts there.

        That is B descending, or D ascending.
        """
        bound = (-(point.get("B") or 0), -point.get("B_fraction", 0))
        return (point.get("C", 0), *bound, point.get("nu", 0), point.get("D") or 0)


@dataclass(frozen=True)
class Point:
    """A point of (8): u, and ``Ku`` where it is known."""

    u: NDArray
    product: NDArray | None = None


@dataclass(frozen=True)
class RMMState:
    """Where the next training on a path starts.

    Attributes
    ----------
    key : tuple
        What the SVM was trained with: C, solver and tol.
    svm : BinaryModel
        The SVM at this C.
    last : Point
        The RMM trained last.
    solved : mapping
        The last RMM of each bound, by its parameters. Where the classes are separable no alpha
        reaches C from some C on. The SVM, theta and the RMMs are then those of the C before, and a
        training from there ends at once.
    """

    key: tuple
    svm: BinaryModel
    last: Point
    solved: Mapping[tuple, Point]


def train_rmm(
    problem: BinaryProblem,
    C: float,
    B: float,
    solver: str = "auto",
    tol: float = 1e-5,
    start: NDArray | Sequence[Point] | None = None,
) -> BinaryModel:
    """Train one binary RMM.

    Parameters
    ----------
    problem : BinaryProblem
    C : float
    B : float
    solver : {"auto", "smo", "reference"}, default="auto"
    tol : float, default=1e-5
    start : ndarray of shape (n_samples,) or sequence of Point, optional
        u of neighbouring problems on the same rows: the SVM's, the RMM's at a larger B or another
        C. Of several points, all with their products, the best in (8) is taken.

    Returns
    -------
    BinaryModel
        `coef` is u times the factor that makes (7) hold; `state` is the `Point` of u itself.
    """
    gram, y = problem.gram, problem.y
    started = time.perf_counter()
    dual = rmm_dual(gram, y, C, B)
    if solver == "reference":
        found = solve_paper_dual(dual, y, C, B, tol)
        model = _pulled_back(dual, found, y, C, B, tol)
    else:
        certify = partial(_pulled_back, dual, y=y, C=C, B=B, tol=tol)
        model = solve_to_gap(dual, certify, tol, *_best_start(dual, start))
    return replace(model, fit=replace(model.fit, seconds=time.perf_counter() - started))


def _best_start(
    dual: PiecewiseQP, start: NDArray | Sequence[Point] | None
) -> tuple[NDArray | None, NDArray | None]:
    """Return u and ``Ku`` of the best point to start from."""
    if start is None or isinstance(start, np.ndarray):
        return start, None
    points = list(start)
    if len(points) > 1:
        values = [0.5 * (point.u @ point.product) + dual.cost(point.u) for point in points]
        points = [points[int(np.argmin(values))]]
    return points[0].u, points[0].product


def _pulled_back(
    dual: PiecewiseQP, found: PiecewiseSolution, y: NDArray, C: float, B: float, tol: float
) -> BinaryModel:
    """Return the model of a solution of (8), scaled so that (7) holds, with its certificate."""
    shrink = B / max(B, np.abs(found.decision + found.bias).max()) if B > 0 else 0.0
    u, decision, bias = shrink * found.u, shrink * found.decision, shrink * found.bias
    objective = hinge_objective(u, decision, bias, y, C)
    # at u = 0 the best alpha is 0 for B >= 1; for a smaller B it pays to have alpha = lambda = C
    bound = -dual.value(found) + len(y) * C * max(0.0, 1 - B)
    fit = Fit(
        status=found.status,
        objective=objective,
        bound=bound,
        max_violation=max(dual.violation(found.u), np.abs(decision + bias).max() - B),
        iterations=found.iterations,
        seconds=0.0,
        n_support=int(np.count_nonzero(u)),
    )
    return BinaryModel(intercept=bias, fit=fit, coef=u, state=Point(found.u, found.decision))


def rmm_dual(gram: NDArray, y: NDArray, C: float, B: float, cap: float = np.inf) -> PiecewiseQP:
    """Return (8), its sign changed, with alpha, lambda and lambda* at their best for a given u.

    Between 0 and ``y_i C`` it is alpha that moves and u_i costs ``-y_i u_i``; below, lambda moves
    at a price of B; above, lambda*. For B < 1 the middle price is B too: see `train_rmm`. `cap` is
    an upper bound of each lambda and lambda*, which (14) has.
    """
    ends = np.sort(np.column_stack([0 * y, C * y]), axis=1)
    price = np.full(len(y), B)
    return PiecewiseQP(
        gram,
        knots=np.column_stack([ends[:, 0] - cap, ends, ends[:, 1] + cap]),
        slopes=np.column_stack([-price, -min(1, B) * y, price]),
    )


def solve_paper_dual(
    dual: PiecewiseQP, y: NDArray, C: float, B: float, tol: float
) -> PiecewiseSolution:
    """Solve (8) as it stands by an interior point, in the variables (u, alpha, lambda, lambda*)."""
    from mmbench.solvers.clarabel_ import solve_qp

    n = len(y)
    none, endless, ones = np.zeros(n), np.full(n, np.inf), np.ones(n)
    eye, empty = sparse.eye_array(n), sparse.coo_array((3 * n, 3 * n))
    definition = sparse.hstack([eye, -sparse.diags_array(y), eye, -eye])
    total = sparse.coo_array(np.concatenate([ones, none, none, none])[None, :])
    found = solve_qp(
        P=sparse.csc_array(sparse.block_diag([dual.gram, empty])),
        q=np.concatenate([none, -ones, B * ones, B * ones]),
        A=sparse.csc_array(sparse.vstack([total, definition])),
        b=np.zeros(n + 1),
        lower=np.concatenate([-endless, none, none, none]),
        upper=np.concatenate([endless, C * ones, endless, endless]),
        tol=min(tol, 1e-8),
    )
    u = dual.feasible(found.x[:n])
    bias = float(found.multipliers[0])
    return PiecewiseSolution(u, dual.gram @ u, bias, found.iterations, found.status)
