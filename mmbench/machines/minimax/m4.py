"""The maxi-min margin machine: the largest margin in units of each class's own spread.

    max over rho, w, b   rho    subject to   w'x_i + b >= rho sx,   -(w'y_j + b) >= rho sy   (1)-(3)
    sx = sqrt(w'Sx w),  sy = sqrt(w'Sy w)

With slack the paper subtracts xi_i >= 0 on the right of (2), (3) and maximises ``rho - C sum xi``
(20)-(22). (1)-(3) do not know the length of w, so as printed the slacks, and w with them, can
shrink to nothing. Two normalisations make the program well posed:

    margin   rho (sx + sy) = 2:  min sx + sy + C sum xi,  y_i (w'z_i + b) >= 1 - xi_i
    mean     w'(xm - ym) = 1:    max rho - C sum xi over rho, (21), (22)

Without slack both are (1)-(3). "margin" is one convex program, for Sx = Sy the SVM with the
Mahalanobis norm; its b, with margins of 1 on both sides, becomes that of (2), (3) by adding
``(sx - sy)/(sx + sy)``. "mean" is not convex in rho and has to be searched.

References
----------
K. Huang, H. Yang, I. King, M. Lyu: Maxi-min margin machine: learning large margin classifiers
locally and globally. IEEE Trans. Neural Networks 19(2), 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mmbench.errors import Status
from mmbench.machines.minimax.base import (
    ROUGH,
    Answer,
    CovarianceMachine,
    constant,
    covariance_parameters,
)
from mmbench.machines.minimax.coordinates import Pencil, n_smaller
from mmbench.machines.minimax.direction import minimax_direction
from mmbench.machines.minimax.factor import SpreadFactor
from mmbench.machines.minimax.gram import SpreadGram, minimax_gram
from mmbench.machines.minimax.m4_problem import LineSolution, MarginProblem, MarginSolution
from mmbench.machines.parameter import Param, choice, positive
from mmbench.machines.problem import Fit
from mmbench.machines.search_space import SearchSpace

#: Rows with a multiplier above this share of the largest are support vectors.
SUPPORT = 1e-6


class M4(CovarianceMachine):
    """Maxi-min margin machine, one-vs-one.

    Parameters
    ----------
    C : float, optional
        Price of one unit of slack.
    C_factor : float, default=10.0
        Where C is not given: C in units of the least useful one, ``1/(n_min kappa)`` in the
        normalisation "margin" and ``kappa/n_min`` in "mean", with n_min the size of the smaller
        class and kappa the MPM's. For classes of one size there is nothing to be had below 1.
    margin : {"soft", "hard"}, default="soft"
        "hard" admits no slack; where classes are not separable the fit says ``infeasible`` and the
        classifier is the soft one.
    normalization : {"margin", "mean"}, default="margin"
        Of the soft margin; see Notes.
    nu : float, default=0.0
        Reduction: only points with ``d^2/(1 + d^2) >= nu`` keep a constraint of their own, d being
        the Mahalanobis distance to their class mean; the others share one. With 1 the MPM remains.
    variant : {"m4", "lda"}, default="m4"
        "lda" measures both classes by ``sqrt(sx^2 + sy^2)`` (16)-(18).
    ridge : float, default=1e-8
        Relative ridge: ``Sc + ridge tr(Sc)/d I``, with a kernel ``ridge tr(K)/n``. A kernel needs a
        larger one, chosen like its width.
    scatter : {"mean", "sum"}, default="mean"
        Covariances with 1/n_c, or sums of squares, as the MMRM paper writes them.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "reweighted", "interior", "reference", "clarabel", "ecos"}, default="auto"
        "auto" takes a few reweighted SVMs for many coordinates a row, with a kernel and more than
        1000 rows over the whole Gram matrix, and a dense interior point for few coordinates and for
        all but the soft margin without reduction. Clarabel and ECOS solve the same cone programs.
        "reference" fixes rho, solves one cone program and searches rho as the paper does, by
        quadratic interpolation (soft) or bisection (hard).
    tol : float, default=1e-6
        Relative gap of an optimal solution.
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
        The certificate of each pair. `objective` is ``sx + sy + C sum xi`` for "margin" and the
        hard margin, and ``C sum xi - rho`` for "mean"; `bound` is a dual value, for "mean" at the
        rho that was found. ``extra`` has "rho", "kappa" (the MPM's; rho of a hard margin is never
        larger), "C", and with a reduction "kept". `n_support` counts the rows whose constraint is
        active.
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    dual_coef_, support_, support_vectors_ : ndarray
        Expansion over the training rows (``rbf``, ``poly``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

    Notes
    -----
    Status ``trivial``: C is so small that w = 0 is optimal ("margin"). Status ``unbounded``: it is
    so small that rho grows without end ("mean"), or the classes differ along a direction in which
    neither varies. In the first two cases the larger class is predicted.

    The useful range of C in "mean" is narrow on overlapping classes, a factor of 3 to 5 from its
    least value on; in "margin" it is as wide as the SVM's.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from mmbench.machines import M4
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> machine = M4().fit(scale(X)[::2], y[::2])
    >>> round(machine.score(scale(X)[1::2], y[1::2]), 2)
    0.94
    >>> fit = machine.fits_[0]
    >>> str(fit.status), fit.objective - fit.bound < 1e-6 * fit.objective
    ('optimal', True)
    """

    parameters: ClassVar[dict[str, Param]] = covariance_parameters() | {
        "C": positive(optional=True),
        "C_factor": positive(),
        "margin": choice("soft", "hard"),
        "normalization": choice("margin", "mean"),
        "nu": Param(low=0, high=1),
        "variant": choice("m4", "lda"),
        "solver": choice("auto", "reweighted", "interior", "reference", "clarabel", "ecos"),
    }
    search_space: ClassVar[SearchSpace] = CovarianceMachine.search_space.extended(
        {"C": ("C_factor", (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0))},
        prefer={"C": "small", "C_factor": "small", **CovarianceMachine.search_space.prefer},
        tol=1e-3,
    )

    def __init__(
        self,
        C=None,
        C_factor=10.0,
        margin="soft",
        normalization="margin",
        nu=0.0,
        variant="m4",
        ridge=1e-8,
        scatter="mean",
        kernel="linear",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        solver="auto",
        tol=1e-6,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.C_factor = C_factor
        self.margin = margin
        self.normalization = normalization
        self.nu = nu
        self.variant = variant
        self.ridge = ridge
        self.scatter = scatter
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        return (point.get("C", point.get("C_factor", 0)),)

    def _answer(self, pencil: Pencil, warm: Any) -> Answer:
        if self.variant == "lda":
            total = pencil.var_x + pencil.var_y
            pencil = replace(pencil, var_x=total, var_y=total)
        if not pencil.rows.shape[1]:
            return constant(pencil, Status.TRIVIAL, "all rows are equal")
        if pencil.equal_means:
            kappa = 0.0
        else:
            kappa = 1.0 / minimax_direction(pencil.delta, pencil.var_x, pencil.var_y).value
        problem = self._problem(pencil, kappa)
        facts = {"kappa": kappa, "C": problem.C}
        if self.nu > 0:
            facts["kept"] = len(problem.y)
        if self.margin == "hard":
            answer = self._hard(pencil, problem, warm)
        elif self.normalization == "mean":
            answer = self._mean(pencil, problem, kappa)
        else:
            answer = self._soft(pencil, problem, warm)
        return replace(answer, fit=replace(answer.fit, extra={**facts, **answer.fit.extra}))

    @property
    def _is_plain(self) -> bool:
        """Whether the program is the soft one of "margin", without reduction."""
        soft = self.margin == "soft" and self.normalization == "margin"
        return self.variant == "m4" and soft and self.nu == 0

    @property
    def _searches_by_factor(self) -> bool:
        rough = self.solver == "auto" and self.scatter == "mean" and self.tol >= ROUGH
        return rough and self._is_plain

    def _search(
        self, machines: Sequence[M4], factor: SpreadFactor, theta: float
    ) -> tuple[list[Answer], float]:
        from mmbench.machines.minimax.m4_path import solve_path

        def prices_at(mpm: float) -> list[float]:
            return [machine._price(n_smaller(factor.y), 1.0 / mpm) for machine in machines]

        lines, mpm, theta = solve_path(factor, prices_at, theta, self.tol)
        return [self._line_answer(line, mpm) for line in lines], theta

    def _large_answer(self, problem: SpreadGram) -> Answer | None:
        found = minimax_gram(problem, self.tol) if self._is_plain else None
        if found is None:
            return None
        start, metric = found
        from mmbench.machines.minimax.m4_gram import solve_gram

        C = self._price(n_smaller(problem.y), 1.0 / start.value)
        return self._line_answer(solve_gram(problem, C, start, metric, self.tol), start.value)

    def _line_answer(self, found: LineSolution, mpm: float) -> Answer:
        """Return the answer of a solution along a direction, given the MPM's total spread."""
        answer = self._margin_answer(found.line, found.solution)
        facts = {"kappa": 1.0 / mpm, "C": found.line.C}
        fit = replace(answer.fit, extra={**facts, **answer.fit.extra})
        return Answer(float(answer.w[0]) * found.direction, answer.b, fit)

    def _problem(self, pencil: Pencil, kappa: float) -> MarginProblem:
        """Return the points that keep a constraint of their own, and the price of slack."""
        kept = np.ones(len(pencil.y), dtype=bool)
        if self.nu > 0:
            squares = pencil.distances()
            kept = squares / (1.0 + squares) >= self.nu
        return MarginProblem(
            rows=pencil.rows if kept.all() else pencil.rows[kept],
            y=pencil.y[kept],
            delta=pencil.delta,
            var_x=pencil.var_x,
            var_y=pencil.var_y,
            C=self._price(n_smaller(pencil.y), kappa),
            removed=int((~kept).sum()),
        )

    def _price(self, n_smaller: int, kappa: float) -> float:
        if self.C is not None:
            return float(self.C)
        scale = kappa if self.normalization == "mean" else 1.0 / kappa if kappa else 1.0
        return float(self.C_factor * scale / n_smaller)

    # -- the three programs ----------------------------------------------------------------------

    def _soft(self, pencil: Pencil, problem: MarginProblem, warm: Any) -> Answer:
        from mmbench.machines.minimax.m4_margin import solve_soft

        if len(set(problem.y)) < 2:
            return self._reduced_to_means(pencil, problem)
        start = warm if isinstance(warm, MarginSolution) else None
        found = solve_soft(problem, self.solver, self.tol, start)
        return self._margin_answer(problem, found)

    def _hard(self, pencil: Pencil, problem: MarginProblem, warm: Any) -> Answer:
        from mmbench.machines.minimax.m4_margin import solve_hard

        if len(set(problem.y)) < 2 and not pencil.equal_means:
            return self._reduced_to_means(pencil, problem)
        hard = replace(problem, C=np.inf)
        found = None if pencil.equal_means else solve_hard(hard, self.solver, self.tol)
        if found is not None:
            return self._margin_answer(hard, found)
        soft = self._soft(pencil, problem, warm)
        fit = replace(soft.fit, status=Status.INFEASIBLE, objective=np.inf, bound=np.inf)
        reason = "the classes are not separable; the soft margin stands in"
        return replace(soft, fit=replace(fit, extra={**fit.extra, "reason": reason}))

    def _mean(self, pencil: Pencil, problem: MarginProblem, kappa: float) -> Answer:
        from mmbench.machines.minimax.m4_mean import critical_price, solve_mean

        if pencil.equal_means:
            return constant(pencil, Status.INFEASIBLE, "the class means are equal")
        if critical_price(problem) >= problem.C:
            reason = "C is so small that rho grows without end"
            return constant(pencil, Status.UNBOUNDED, reason, objective=-np.inf, bound=-np.inf)
        if len(set(problem.y)) < 2:
            return self._reduced_to_means(pencil, problem)
        found = solve_mean(problem, self.solver, self.tol)
        value, bound = (problem.C * slack - found.rho for slack in (found.slack, found.slack_bound))
        closed = value - bound <= 100 * self.tol * max(1.0, abs(value))
        fit = Fit(
            Status.OPTIMAL if closed else Status.INACCURATE,
            objective=value,
            bound=bound,
            max_violation=abs(float(problem.delta @ found.w) - 1.0),
            iterations=found.iterations,
            seconds=0.0,
            n_support=_n_support(found.multipliers),
            extra={"rho": found.rho, "slack": found.slack},
        )
        return Answer(found.w, found.b, fit)

    def _margin_answer(self, problem: MarginProblem, found: MarginSolution) -> Answer:
        """Return the answer of the normalisation "margin", its b moved to that of (2), (3)."""
        status = Status.OPTIMAL if found.closed(self.tol) else Status.INACCURATE
        if status == Status.OPTIMAL and found.is_trivial:
            status = Status.TRIVIAL
        spreads = problem.spreads(found.w)
        total = float(spreads.sum())
        hard = np.isinf(problem.C)
        margins = problem.y * (problem.rows @ found.w + found.b)
        fit = Fit(
            status,
            objective=found.value,
            bound=found.bound,
            max_violation=float(np.maximum(0.0, 1.0 - margins).max()) if hard else 0.0,
            iterations=found.iterations,
            seconds=0.0,
            n_support=0 if found.is_trivial else _n_support(found.multipliers),
            extra={"rho": 2.0 / total if total else np.inf},
        )
        shift = (spreads[0] - spreads[1]) / total if total else 0.0
        return Answer(found.w, found.b + float(shift), fit, state=found)

    def _reduced_to_means(self, pencil: Pencil, problem: MarginProblem) -> Answer:
        """Return the solution when the points of a class have no constraints left: the MPM's.

        b satisfies the other class for nothing, and what remains is the row of the means. Its slack
        is paid for as soon as that is worth it. b is not determined: the MPM's is taken.
        """
        price = problem.C * problem.removed
        if pencil.equal_means:
            value = 2.0 * price
            reason = "the class means are equal"
            return constant(pencil, Status.TRIVIAL, reason, objective=value, bound=value)
        found = minimax_direction(pencil.delta, problem.var_x, problem.var_y)
        kappa = 1.0 / found.value
        b = -float(found.w @ pencil.mean_x) + kappa * found.spread_x
        fit = Fit(
            Status.OPTIMAL,
            objective=-kappa,
            bound=-1.0 / found.bound,
            max_violation=abs(float(pencil.delta @ found.w) - 1.0),
            iterations=found.iterations,
            seconds=0.0,
            n_support=0,
            extra={"rho": kappa},
        )
        if self.normalization == "mean" and self.margin == "soft":
            return Answer(found.w, b, fit)
        if price < found.value:
            reason = "C is so small that w = 0 is optimal"
            value = 2.0 * price
            return constant(pencil, Status.TRIVIAL, reason, objective=value, bound=value)
        fit = replace(fit, objective=2.0 * found.value, bound=2.0 * found.bound)
        return Answer(2.0 * found.w, 2.0 * b, fit)


def _n_support(multipliers: np.ndarray) -> int:
    return int((multipliers > SUPPORT * multipliers.max(initial=0.0)).sum())
