"""The maxi-min margin machine (M4; Huang et al., IEEE Trans. Neural Networks 19(2), 2008).

    max over rho, w, b   rho    subject to   w'x_i + b >= rho sx,   -(w'y_j + b) >= rho sy   (1)-(3)
    sx = sqrt(w'Sx w),  sy = sqrt(w'Sy w)

The positive rows x_i have the mean xm and the covariance Sx, the negative rows y_j have ym and Sy;
z_i are the rows of both, with labels y_i. The soft margin (20)-(22) is unbounded as printed. Two
normalizations make it well posed:

    margin   rho (sx + sy) = 2:  min sx + sy + C sum xi,  y_i (w'z_i + b) >= 1 - xi_i
    mean     w'(xm - ym) = 1:    max rho - C sum xi over rho, (21), (22)

"margin" is convex; its b plus ``(sx - sy)/(sx + sy)`` is the b of (2), (3). "mean" is not convex in
rho. The Ivanov form (27)-(29) of "margin", with the parameter A, minimises ``sum xi`` subject to
``sx + sy <= 2/A``; if a hard margin reaches rho >= A, the hard-margin solution is returned. The
reduction (`nu`), `theta`, the precise form (23)-(26), weights, and why (34)-(37) have no maximum:
docs/machines/minimax.md.

    Fit.route          when                              cost for n rows in k coordinates
    interior point     "margin", linear or low rank      n k^2 per step
    gram               "margin", kernel of high rank     n^3/3 and a few SVMs
    cone program       hard, reduction, Ivanov form, or  Clarabel, with up to 30 copies
                       after "interior point" failed     of the rows in memory
    branch and bound   "mean"                            one cone program per rho
    closed form        zero variance, "mean" with equal  none
                       means, or all points of a class removed
    rho search         "reference", "margin" or hard     one cone program per rho

Times: `benchmarks/peers.py`, `benchmarks/m4_complexity.py`. The paper's line search, quadratic
interpolation, is not used, since it gives no bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.parameters import Param, choice, class_weight, parameter, positive
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.minimax.coordinates import DiagonalData
from mmbench.machines.minimax.covariance import SpreadMachine, certificate, majority_model
from mmbench.machines.minimax.margin_problem import MarginProblem, MarginSolution
from mmbench.machines.minimax.spread import LEAST_SHARE, GramSpread, inner, minimax_direction
from mmbench.memory import TrainingSize

#: Lower bound on the multiplier of a support vector, relative to the largest multiplier.
SUPPORT_SHARE = 1e-6

#: Largest valid C and C_factor. Products of larger penalties and row weights may overflow.
LARGEST_PENALTY = 1e100

#: Peak memory of Clarabel for a cone program, in copies of the training rows.
CONE_ROW_COPIES = 42


class M4(WeightedClassifier, SpreadMachine):
    """Maxi-min margin machine, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One certificate per class pair. `objective` is ``sx + sy + C sum xi`` in the normalization
        "margin" and for the hard margin, ``C sum xi - rho`` in "mean", and ``sum xi`` if A is
        given. `bound` is a lower bound on `objective` from a dual solution. ``extra`` contains
        "rho", "kappa", and "C" or "A". "kappa" is the reciprocal of the optimal value of the MPM,
        and an upper bound on "rho" if the margin is hard. If ``nu > 0``, ``extra`` also contains
        "kept", the number of points that the reduction does not remove. `n_support` is the number
        of rows with an active constraint.

    Notes
    -----
    In the normalization "margin", the status is ``trivial`` if C is so small that w = 0 is optimal.
    In the normalization "mean", the status is ``unbounded`` if C is so small that rho is unbounded.
    In both cases, the larger class is predicted. The status is also ``unbounded`` if the class
    means differ along a direction in which both classes have zero variance.

    If the classes overlap, useful values of C in the normalization "mean" are at most 3 to 5 times
    the value below which rho is unbounded. In the normalization "margin", the range of useful
    values of C is as wide as for an SVM.

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

    search_space: ClassVar[SearchSpace] = SpreadMachine.search_space.extended(
        {"C": ("C_factor", (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0))},
        prefer={"C": "small", "C_factor": "small", **SpreadMachine.search_space.prefer},
        tol=1e-3,
    )
    version: ClassVar[int] = 9
    #: 4, 5: a coarser tolerance in a grid search and secant steps on the kernel matrix, which may
    #: select other parameters in a near tie.
    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 5, "poly": 5}

    C: float | None = parameter(
        None, Param(low=0, open_low=True, high=LARGEST_PENALTY, optional=True), "Penalty on slack."
    )
    C_factor: float = parameter(
        10.0,
        positive(high=LARGEST_PENALTY, useless_to=1.0),
        "If C is not given, C is `C_factor` times the smallest useful penalty: ``1/(n_min "
        'kappa)`` in the normalization "margin" and ``kappa/n_min`` in "mean", with the weight '
        "n_min of the smaller class and kappa of the MPM. If both classes have the same weight, w "
        "= 0 is optimal for factors below 1.",
    )
    class_weight: dict | str | None = class_weight(after="C_factor")
    theta: float | str = parameter(
        0.5,
        Param(low=1e-3, high=1 - 1e-3, choices=("prior",)),
        "Weight of the margin of the positive class, the second class of a pair: the margins are "
        '``2 theta rho sx`` and ``2 (1 - theta) rho sy``. "prior" is the share of the positive '
        "class in the sum of the row weights.",
        after="C_factor",
    )
    A: float | None = parameter(
        None,
        Param(low=0, open_low=True, optional=True),
        "Least margin rho, in class spreads: the Ivanov form (27)-(29), which replaces the penalty "
        'C. Only for the soft margin without reduction in the normalization "margin".',
        after="C_factor",
    )
    margin: str = parameter(
        "soft",
        choice("soft", "hard"),
        '"hard" allows no slack. If the classes are not separable, the status is ``infeasible``, '
        "and the classifier has a soft margin.",
    )
    normalization: str = parameter(
        "margin",
        choice("margin", "mean"),
        'Soft margin: ``rho (sx + sy) = 2`` ("margin") or ``w\'(xm - ym) = 1`` ("mean").',
    )
    nu: float = parameter(
        0.0,
        Param(low=0, high=1),
        "Threshold of the reduction: points with ``d^2/(1 + d^2) >= nu`` have individual "
        "constraints, with the Mahalanobis distance d to their class mean; one constraint on the "
        "class means replaces the constraints of all other points. With nu = 1 the M4 is the MPM.",
    )
    variant: str = parameter(
        "m4", choice("m4", "lda"), '"lda": both spreads are ``sqrt(sx^2 + sy^2)``, (16)-(18).'
    )
    solver: str = parameter(
        "auto",
        choice("auto", "gram", "reference", "clarabel", "ecos"),
        '"auto" solves the soft margin without reduction by an interior point in the features or, '
        'if the kernel matrix has a high rank, on the kernel matrix ("gram"); all other problems '
        'are cone programs, solved by Clarabel. "reference" solves one cone program per value of '
        "rho; its search is not the quadratic interpolation of the paper.",
    )

    def bytes_needed(self, size: TrainingSize) -> float:
        forms = self.solver, self.margin, self.normalization, self.A
        if forms not in (("auto", "soft", "margin", None), ("gram", "soft", "margin", None)):
            linear = self.kernel == "linear"  # the columns of other kernels' rows are n coordinates
            return size.rows(CONE_ROW_COPIES) if linear else size.grams(CONE_ROW_COPIES)
        if self._in_features(size):
            return super().bytes_needed(size)
        if self._has_gram_route() and not size.weighted:
            return self._gram_bytes(size, 6)  # multipliers on most rows
        return self._gram_bytes(size, 10 if self.nu > 0 else 8)  # diagonal coordinates of all rows

    def solve(self, data: DiagonalData) -> BinaryModel:
        data = replace(data, weights=data.costs(self.class_weight))
        if self.variant == "lda":
            total = data.var_x + data.var_y
            data = replace(data, var_x=total, var_y=total)
        if not data.rows.shape[1]:
            return majority_model(data, Status.TRIVIAL, "all rows are equal")
        squares = data.distances() if self.nu > 0 else np.zeros(len(data.y))
        theta = data.totals[0] / sum(data.totals) if self.theta == "prior" else float(self.theta)
        x, y = 2.0 * theta, 2.0 * (1.0 - theta)
        data = replace(data, var_x=x * x * data.var_x, var_y=y * y * data.var_y)
        kappa = 0.0
        if not data.equal_means:
            kappa = 1.0 / minimax_direction(data.delta, data.var_x, data.var_y).value
        problem = self._problem(data, kappa, squares / (1.0 + squares) >= self.nu)
        if self.A is not None:
            from mmbench.machines.minimax.soft import solve_ivanov

            found = solve_ivanov(problem, self.A, self.solver, self.tol)
            model = self._margin_model(problem, found)
        elif self.margin == "hard":
            model = self._hard(data, problem)
        elif self.normalization == "mean":
            model = self._mean(data, problem)
        else:
            model = self._soft(data, problem)
        kept = {"kept": len(problem.y)} if self.nu > 0 else {}
        penalty = {"C": problem.C} if self.A is None else {"A": self.A}
        return _with_facts(model, kappa=kappa, **penalty, **kept)

    def _has_gram_route(self) -> bool:
        soft = self.margin == "soft" and self.normalization == "margin"
        plain = soft and self.variant == "m4" and self.nu == 0 and self.class_weight is None
        unweighted = self.theta == 0.5 and self.A is None
        return super()._has_gram_route() and plain and unweighted

    def _check_parameters(self) -> None:
        super()._check_parameters()
        forms = (self.margin, self.normalization, self.nu)
        if self.A is not None and forms != ("soft", "margin", 0):
            raise ValueError(
                "M4: A needs margin='soft', normalization='margin' and nu=0, got "
                f"{self.margin!r}, {self.normalization!r} and {self.nu:g}; leave A out"
            )

    def solve_gram(self, machines: Sequence[M4], spread: GramSpread) -> list[BinaryModel]:
        from mmbench.machines.minimax.gram import solve_gram

        mpm = spread.minimax(self.tol)
        smaller = min((spread.y > 0).sum(), (spread.y < 0).sum())
        penalties = [machine._penalty(smaller, 1.0 / mpm.value) for machine in machines]
        out = []
        for c, line, found in solve_gram(spread, mpm, penalties, self.tol):
            model = replace(self._margin_model(line, found), w=float(found.w[0]) * c)
            out.append(_with_facts(model, kappa=1.0 / mpm.value, C=line.C))
        return out

    def _problem(self, data: DiagonalData, kappa: float, kept: NDArray) -> MarginProblem:
        """Return the `MarginProblem` with C and the points that the reduction does not remove."""
        weights = np.ones(len(data.y)) if data.weights is None else data.weights
        return MarginProblem(
            rows=data.rows if kept.all() else data.rows[kept],
            y=data.y[kept],
            delta=data.delta,
            var_x=data.var_x,
            var_y=data.var_y,
            C=self._penalty(min(data.totals), kappa),
            removed=float(weights[~kept].sum()),
            weights=weights[kept],
        )

    def _penalty(self, n_smaller: float, kappa: float) -> float:
        """Return the penalty on the slacks, either C or `C_factor` times the smallest useful C."""
        scale = kappa if self.normalization == "mean" else 1.0 / kappa if kappa else 1.0
        return float(self.C_factor * scale / n_smaller if self.C is None else self.C)

    # -- soft margin, hard margin, and normalization "mean" ---------------------------------------

    def _soft(self, data: DiagonalData, problem: MarginProblem) -> BinaryModel:
        from mmbench.machines.minimax.soft import solve_soft

        if len(set(problem.y)) < 2:
            return self._reduced_to_means(data, problem)
        return self._margin_model(problem, solve_soft(problem, self.solver, self.tol))

    def _hard(self, data: DiagonalData, problem: MarginProblem) -> BinaryModel:
        from mmbench.machines.minimax.soft import solve_hard

        if len(set(problem.y)) < 2 and not data.equal_means:
            return self._reduced_to_means(data, problem)
        hard = replace(problem, C=np.inf)
        found = Status.INFEASIBLE if data.equal_means else solve_hard(hard, self.solver, self.tol)
        if isinstance(found, MarginSolution):
            return self._margin_model(hard, found)
        soft = self._soft(data, problem)
        bound = np.inf if found is Status.INFEASIBLE else -np.inf
        fit = replace(soft.fit, status=found, objective=np.inf, bound=bound)
        known = "not" if found is Status.INFEASIBLE else "not known to be"
        reason = f"the classes are {known} separable; the classifier has a soft margin"
        return _with_facts(replace(soft, fit=fit), reason=reason)

    def _mean(self, data: DiagonalData, problem: MarginProblem) -> BinaryModel:
        from mmbench.machines.minimax.mean import least_penalty, solve_mean

        if data.equal_means:
            return majority_model(data, Status.INFEASIBLE, "the class means are equal")
        if least_penalty(problem) >= problem.C:
            reason = "C is so small that rho is unbounded"
            return majority_model(data, Status.UNBOUNDED, reason, objective=-np.inf, bound=-np.inf)
        if len(set(problem.y)) < 2:
            return self._reduced_to_means(data, problem)
        found = solve_mean(problem, self.solver, self.tol)
        n_support = _n_support(found.multipliers)
        fit = certificate(found, self.tol, n_support, rho=found.rho, slack=found.slack)
        shares = found.rho * problem.spreads(found.w)
        shift = np.maximum(LEAST_SHARE, shares) - shares
        return BinaryModel(found.b + float(shift[0] - shift[1]), fit, w=found.w)

    def _margin_model(self, problem: MarginProblem, found: MarginSolution) -> BinaryModel:
        """Convert a solution of the program "margin" to a model with the intercept of (2), (3)."""
        spreads = problem.spreads(found.w)
        total = float(spreads.sum())
        n_support = 0 if found.is_trivial else _n_support(found.multipliers)
        fit = certificate(found, self.tol, n_support, rho=2.0 / total if total else np.inf)
        shift = 2.0 * inner(float(spreads[0]) / total) - 1.0 if total else 0.0
        return BinaryModel(found.b + shift, fit, w=found.w)

    def _reduced_to_means(self, data: DiagonalData, problem: MarginProblem) -> BinaryModel:
        """Return the solution if the reduction has removed all points of at least one class.

        In this case, only the constraint on the class means restricts w, and the optimal w is zero
        or a multiple of the MPM's solution.
        """
        value = 2.0 * problem.C * problem.removed
        trivial = partial(majority_model, data, Status.TRIVIAL, objective=value, bound=value)
        if data.equal_means:
            return trivial("the class means are equal")
        found = minimax_direction(data.delta, problem.var_x, problem.var_y)
        kappa = 1.0 / found.value
        # The remaining points, if any, belong to one class, and their constraints bound b on one
        # side. The feasible b nearest to the intercept of the MPM is returned.
        b = -float(found.w @ data.mean_x) + inner(kappa * found.spread_x)
        decision = problem.rows @ found.w
        if (problem.y > 0).any():
            b = max(b, float((kappa * found.spread_x - decision).max()))
        elif len(decision):
            b = min(b, float((-kappa * found.spread_y - decision).min()))
        fit = certificate(found, self.tol, 0, rho=kappa)
        fit = replace(fit, route="closed form", objective=-kappa, bound=-1.0 / found.bound)
        if self.normalization == "mean" and self.margin == "soft":
            return BinaryModel(b, fit, w=found.w)
        if value < 2.0 * found.value:
            return trivial("C is so small that w = 0 is optimal")
        fit = replace(fit, objective=2.0 * found.value, bound=2.0 * found.bound)
        return BinaryModel(2.0 * b, fit, w=2.0 * found.w)


def _with_facts(model: BinaryModel, **facts: Any) -> BinaryModel:
    """Add entries to `Fit.extra` of a model without overwriting existing entries."""
    return replace(model, fit=replace(model.fit, extra={**facts, **model.fit.extra}))


def _n_support(multipliers: NDArray) -> int:
    return int((multipliers > SUPPORT_SHARE * multipliers.max(initial=0.0)).sum())
