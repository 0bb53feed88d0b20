"""The F-SVM, which learns a linear transformation and an SVM jointly (Wu et al., arXiv:1504.05035).

    min over M > 0, w, b   1/2 w'M^{-1}w + rho tr(MS) + C sum_i xi_i
    subject to             t_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0                           (12)

The labels t_i are -1 and +1, ``M = A'A`` for the transformation A, and S is the total scatter
matrix divided by n, or the matrix `within_scatter`. All pairs share M and S, so class weights
change only the penalty. With a kernel, x_i are the first components of kernel PCA. Minimised over
M, (12) has the optimal value

    F* = min over w, b   sqrt(2 rho) ||S^{1/2}w|| + C sum_i xi_i

at an M on the boundary of the cone. Algorithm 1 of the paper starts at ``M ~ S^{-1/2}`` (17) and
ends inside the cone; `Fit.gap` measures its distance from F*. All variants are computed for rho = 1
(module `pair_svms`).

    variant  Fit.route           when                   cost, for k components
    semi     semi-whitened SVM   always                 one SVM per pair
    pg       gradient M-steps    default                per round (`rounds`) one SVM per pair, and
                                                        at most 50 steps of k^3
    eps      closed M-steps      WW' + eps I for WW'    per round one SVM per pair, and k^3
    opt      secant              one pair               4 to 10 SVMs with warm starts
    opt      ADMM                several pairs          up to 500 rounds of SVMs with warm starts
    opt      reference           solver="reference"     one cone program

SVMs without a warm start are solved by SMO, or by an interior-point method above 1000 rows (2000 in
a grid search) and 4 rows per component. Times: `benchmarks/peers.py`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.kernels.matrix import KernelLike
from mmbench.machines.base.estimator import WeightedClassifier
from mmbench.machines.base.joint_training import JointClassifier, JointProblem
from mmbench.machines.base.parameters import (
    Param,
    choice,
    class_weight,
    kernel_parameter,
    parameter,
    positive,
)
from mmbench.machines.base.problem import BinaryModel, Fit
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.voting import pair_rows
from mmbench.machines.fsvm.alternation import alternate
from mmbench.machines.fsvm.optimum import solve_pair, solve_pairs
from mmbench.machines.fsvm.pair_svms import (
    SEARCH_TOL,
    JointRows,
    JointSolution,
    PairRows,
    constant_if_unresolved,
)
from mmbench.machines.kernel_pca import NO_VARIANCE, Spectrum, spectrum
from mmbench.machines.svm import FEW_ROWS, SVM
from mmbench.memory import TrainingSize

#: Default fraction of the variance explained by the principal components of a kernel machine, as in
#: the authors' code.
KERNEL_SHARE = 0.9
#: Tolerance of the relative duality gap in the alternating direction method of multipliers (ADMM),
#: as a multiple of `tol`.
SHARED_GAP_TOLERANCE_FACTOR = 10
#: If no pair has more than FEW_ROWS rows, `tol` is multiplied by this factor outside a grid search,
#: so that a row of weight 2 and two equal rows give decision values that agree to seven digits.
FEW_ROWS_FACTOR = 1e-3
#: The ratio C / sqrt(rho) must lie between 1 / LARGEST_RATIO and LARGEST_RATIO. For other ratios,
#: products and powers of C / sqrt(rho) may overflow or underflow.
LARGEST_RATIO = 1e50


class FSVM(WeightedClassifier, JointClassifier):
    """F-SVM: SVM learned with a linear transformation that all pairs share, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        One certificate per pair of classes. `objective` is the objective of (12), in which the
        terms with w and xi are summed over all pairs. For the variant "eps", the term
        ``eps tr(M^{-1})/2`` is added. `bound` is a dual objective value. Therefore the optimum lies
        between `bound` and `objective`. All pairs have the same `objective` and `bound`. `status`
        is "optimal" if objective and bound agree within the tolerance. `status` is
        "stopped_by_rule" if the alternation ended, for example after `rounds` rounds, before
        objective and bound agreed within the tolerance. If the training of an SVM failed, `status`
        is the status of this SVM. `extra` contains "rounds", "objectives" (after 0, 1, ... rounds)
        and "eigenvalues" (smallest and largest eigenvalue of M). The features should be
        standardised, for two reasons. If the variances of the features are large, the gradient
        steps may fail to decrease the objective. Then "rounds" is 0, and the objective of the
        variant "pg" may exceed the objective at w = 0. In every variant, principal components with
        a variance below 1e-12 times the largest variance are omitted; `objective` and `bound` are
        for the problem without these components.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of the training rows, for kernels other than ``linear``.
    support_, support_vectors_ : ndarray
        All training rows, for kernels other than ``linear``. In general, all training rows have
        non-zero coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import FSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = FSVM(C=10).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.96
    >>> machine.fits_[0].gap > FSVM(C=10, variant="opt").fit(X[::2], y[::2]).fits_[0].gap
    True
    """

    search_space: ClassVar[SearchSpace] = JointClassifier.search_space.extended(
        {"C": ("C", tuple(10.0 ** (k / 2) for k in range(-6, 7)))},
        prefer={
            **JointClassifier.search_space.prefer,
            "rho": "large",
            "n_components": "small",
            "eps": "large",
        },
        tol=1e-3,
        # in float32, components with a small variance consist of rounding errors
        single_precision=False,
    )
    version: ClassVar[int] = 3
    #: 2: components of equal variance are kept together.
    kernel_versions: ClassVar[Mapping[str, int]] = {"rbf": 2, "poly": 2}

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")
    class_weight: dict | str | None = class_weight()
    rho: float = parameter(
        1.0,
        positive(),
        "Penalty on the scatter of the transformed data. The optimum depends on C and rho only "
        "through ``C / sqrt(rho)``, and all variants are computed in units with rho = 1. "
        "Therefore, a search over C with rho = 1 is sufficient, and grid points with equal ratios "
        "are trained once. The paper's algorithm 1, with steps in units of M, also depends on rho.",
    )
    variant: str = parameter(
        "pg",
        choice("pg", "semi", "eps", "opt"),
        'Algorithm: "pg" alternates SVMs and gradient steps, "semi" is the semi-whitened SVM, '
        '"eps" alternates SVMs and closed M-steps, and "opt" computes the optimum.',
    )
    eps: float = parameter(
        0.01,
        positive(),
        'Regularization of ``variant="eps"``, from whitening (small) to semi-whitening (large).',
    )
    rounds: int = parameter(
        15, Param(low=0, integer=True), 'Maximum number of rounds of "pg" and "eps".'
    )
    decrease: float = parameter(
        1e-3, Param(low=0), 'Minimum relative decrease of the objective per round ("pg", "eps").'
    )
    n_components: int | float | str | None = parameter(
        "auto",
        positive(choices=("auto",), optional=True),
        "Number of principal components, or (below 1) the fraction of the variance that they "
        "keep; None for all. Components of equal variance are kept together. "
        '"auto" is None for a linear machine and 0.9 with a kernel: with all '
        "components, the whitened training rows of a kernel machine would be equidistant.",
    )
    scatter: str = parameter(
        "total",
        choice("total", "within"),
        'Scatter matrix S: "total" is the covariance matrix of all rows, as in the paper; "within" '
        "is the sum of the scatter matrices of the classes around their means, with rows weighted "
        "by their distances to the means, as in the code that the authors released in 2018.",
    )
    kernel: KernelLike = kernel_parameter("linear")
    ridge: float = parameter(
        1e-8,
        Param(low=0),
        "Relative ridge: ``ridge tr(S)/d I`` is added to S in d directions of positive variance.",
        after="degree",
    )
    solver: str = parameter(
        "auto",
        choice("auto", "reference"),
        '"reference" solves the SVMs of the alternation by libsvm, and "opt" as one cone program.',
    )
    tol: float = parameter(1e-5, positive(), "Tolerance of the KKT conditions of each SVM.")
    n_jobs: int | None = parameter(
        None, Param(integer=True, optional=True), "No effect: all pairs are trained together."
    )

    @property
    def gap_tolerance(self) -> float:
        """Maximum relative gap of an optimal solution; infinite for the alternating variants."""
        return SVM.gap_tolerance_factor * self.tol if self.variant == "opt" else math.inf

    def _check_parameters(self) -> None:
        super()._check_parameters()
        wanted = self.n_components
        if isinstance(wanted, float) and wanted > 1 and not wanted.is_integer():
            raise ValueError(
                f"{type(self).__name__}: n_components above 1 must be a whole number, got {wanted}"
            )

    def bytes_needed(self, size: TrainingSize) -> float:
        # the kernel matrix, its components and eigenvectors, transformed copies of the components,
        # and the Gram matrix of an SVM; with a linear kernel, there are at most as many components
        # as features; "within" rotates the components
        more = int(self.scatter == "within")
        if self.kernel == "linear":
            return self._gram_bytes(size, 3) + size.rows(7 + more)
        return self._gram_bytes(size, 9 + more)

    def train_jointly(
        self, problem: JointProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[list[BinaryModel]]:
        """Train at all grid points, in increasing order of C / sqrt(rho).

        All grid points share one principal component analysis.
        """
        machines = [self.with_params(point) for point in points]
        for one in machines:
            one._refuse_large(problem.data.weights)
        wanted = [one._components or 0 for one in machines]
        most = int(max(wanted)) if min(wanted) >= 1 else None
        whole = spectrum(problem.data, most, problem.data.weights)
        spaces: dict[Any, ComponentSpace] = {}
        trained: dict[tuple, tuple[JointSolution, float]] = {}
        models: list[list[BinaryModel]] = [[] for _ in points]
        for k in sorted(range(len(points)), key=lambda k: machines[k]._ratio):
            one = machines[k]
            place = (one._components, one.scatter, one.ridge, repr(one.class_weight))
            if place not in spaces:
                weights, kept = problem.weights(one.class_weight), whole.first(one._components)
                if one.scatter == "within":
                    kept = _diagonalised(kept, problem)
                spaces[place] = ComponentSpace(problem, kept, one.ridge, weights)
            key = (*place, one._ratio, *one._rule)
            if key not in trained:
                started = time.perf_counter()
                found = one._train_in(spaces[place])
                trained[key] = found, time.perf_counter() - started
            models[k] = spaces[place].models(*trained[key], one)
        return models

    @property
    def _rule(self) -> tuple:
        """Parameters that must be equal if one solution is the warm start of another."""
        return self.variant, self.eps, self.rounds, self.decrease, self.solver, self.tol

    @property
    def _ratio(self) -> float:
        """The ratio C / sqrt(rho), rounded so that equal ratios in a grid are equal floats."""
        with np.errstate(over="ignore"):  # `_refuse_large` reports an overflow
            return float(f"{self.C / np.sqrt(self.rho):.12g}")

    def _refuse_large(self, weights: NDArray | None) -> None:
        """Raise ValueError if C / sqrt(rho) is too large or too small; see `LARGEST_RATIO`."""
        ratio, limits = self._ratio, f"{1 / LARGEST_RATIO:g} and {LARGEST_RATIO:g}"
        heaviest = 1.0 if weights is None else max(1.0, float(np.max(weights)))
        if isinstance(self.class_weight, Mapping):
            heaviest *= max([1.0, *map(float, self.class_weight.values())])
        if not 1.0 / LARGEST_RATIO <= ratio <= LARGEST_RATIO / heaviest:
            text = f"C / sqrt(rho) must lie between {limits}, got {ratio:g}"
            if heaviest > 1:
                text += f" times the weight {heaviest:g}; divide the weights by a constant"
            raise ValueError(f"{type(self).__name__}: {text}")

    @property
    def _components(self) -> float | None:
        if self.n_components == "auto":
            return None if self.kernel == "linear" else KERNEL_SHARE
        return self.n_components  # type: ignore[return-value]

    def _train_in(self, space: ComponentSpace) -> JointSolution:
        """Solve the equivalent problem with rho = 1 and ``C / sqrt(rho)`` in place of C."""
        by_rule, tol = self.variant != "opt", self.tol
        if tol < SEARCH_TOL and max(len(y) for _, y in space.rows.pairs) <= FEW_ROWS:
            tol *= FEW_ROWS_FACTOR
        try:
            found = self._alternation(space, tol) if by_rule else self._optimum(space, tol)
            eps = (self.eps if self.variant == "eps" else 0.0) if by_rule else None
            found = constant_if_unresolved(space.rows, found, self._ratio, self.tol, eps)
        except np.linalg.LinAlgError as error:
            raise ValueError(
                f"{type(self).__name__}: the transformation of the data leaves the range of double "
                f"precision ({error}); scale the data"
            ) from error
        solved = found.status in (Status.OPTIMAL, Status.TRIVIAL)
        if not solved or found.closed(SVM.gap_tolerance_factor * self.tol):
            return found
        return replace(found, status=Status.STOPPED_BY_RULE if by_rule else Status.INACCURATE)

    def _optimum(self, space: ComponentSpace, tol: float) -> JointSolution:
        rows, C = space.rows, self._ratio
        if self.solver == "reference":
            from mmbench.machines.fsvm.reference import solve_reference

            return solve_reference(rows, C)
        whitened, start = space.transformed("white"), space.states.get("opt")
        if len(whitened) == 1:
            gap = SVM.gap_tolerance_factor * tol
            found = solve_pair(rows, whitened[0], C, tol, gap, start)
        else:
            gap = SHARED_GAP_TOLERANCE_FACTOR * tol
            found = solve_pairs(rows, whitened, C, tol, gap, start)
        space.states["opt"] = found.state
        return found

    def _alternation(self, space: ComponentSpace, tol: float) -> JointSolution:
        C, starts = self._ratio, None
        if self._rule in space.states:
            last, before = space.states[self._rule]
            # the dual variables of the warm start are multiplied by the ratio of the new C to the
            # old C
            starts = [C / last * u for u in before]
        found = alternate(
            space.rows,
            space.transformed("semi"),
            C,
            tol,
            rounds=0 if self.variant == "semi" else self.rounds,
            decrease=self.decrease,
            eps=self.eps if self.variant == "eps" else 0.0,
            solver=self.solver,
            starts=starts,
        )
        space.states[self._rule] = C, found.state
        return found


def within_scatter(X: NDArray, labels: NDArray, weights: NDArray | None = None) -> NDArray:
    """Return the sum over classes of the weighted scatter matrices around the class means.

    The weights of the rows of a class are proportional to their distances to the class mean, times
    the sample weights, and sum to one.
    """
    S = np.zeros((X.shape[1], X.shape[1]))
    for label in np.unique(labels):
        own = labels == label
        s = None if weights is None else weights[own]
        centred = X[own] - np.average(X[own], axis=0, weights=s)
        shares = np.linalg.norm(centred, axis=1) * (1.0 if s is None else s)
        shares /= max(shares.sum(), 1e-300)
        S += (centred * shares[:, None]).T @ centred
    return S


def _diagonalised(components: Spectrum, problem: JointProblem) -> Spectrum:
    """Return the components rotated so that the scatter matrix within the classes is diagonal."""
    S = within_scatter(components.rows, problem.labels, problem.data.weights)
    values, Q = np.linalg.eigh(S)
    values, Q = values[::-1], Q[:, ::-1]
    # the objective has no minimum if the class means differ in a direction without scatter
    return replace(
        components,
        rows=components.rows @ Q,
        variances=np.maximum(values, NO_VARIANCE * values[0]),
        basis=components.basis @ Q,
    )


class ComponentSpace:
    """Principal components of the training rows, slack weights and warm starts of grid points.

    `weights` contains one array per pair of classes. Each array contains the factors that multiply
    C in the penalties on the slacks of the rows. `states` contains one warm start for each value of
    `FSVM._rule`, and one for the variant "opt".
    """

    def __init__(
        self,
        problem: JointProblem,
        components: Spectrum,
        ridge: float,
        weights: list[NDArray] | None = None,
    ):
        s = components.variances + ridge * components.variances.mean()
        pairs = [pair_rows(problem.labels, i, j) for i, j in problem.pairs]
        ones: Sequence[NDArray | float] = [1.0] * len(pairs)
        factors = ones if weights is None else weights
        self.rows = JointRows(components.rows, np.where(s > 0, s, 1.0), pairs, factors)
        self.components = components
        self.states: dict[Any, Any] = {}
        self._transformed: dict[str, list[PairRows]] = {}

    def transformed(self, name: str) -> list[PairRows]:
        """Return the rows of each pair of classes, whitened ("white") or semi-whitened ("semi")."""
        if name not in self._transformed:
            root = self.rows.s ** {"white": -0.5, "semi": -0.25}[name]
            self._transformed[name] = self.rows.transformed(root)
        return self._transformed[name]

    def models(self, found: JointSolution, seconds: float, machine: FSVM) -> list[BinaryModel]:
        """Return one model per pair of classes, converted from rho = 1 to the machine's rho.

        The conversion multiplies the objective by sqrt(rho) and divides M by sqrt(rho).
        """
        C, scale = machine.C, float(np.sqrt(machine.rho))
        pairs = zip(self.rows.pairs, self.rows.weights, strict=True)
        # `at_zero` is the objective at w = 0, where the rows of the smaller class have slack 2, and
        # ``tr(MS)`` can be arbitrarily small
        at_zero = 2 * C * sum(min(np.sum(s * (y > 0)), np.sum(s * (y < 0))) for (_, y), s in pairs)
        extra: dict[str, Any] = {
            "rounds": found.rounds,
            "objectives": [scale * value for value in found.values],
        }
        if not machine._searching:
            extra["eigenvalues"] = [value / scale for value in found.extreme_eigenvalues()]
        if found.status is Status.STOPPED_BY_RULE and scale * found.value > at_zero:
            values = f"{scale * found.value:.2g} exceeds its value {at_zero:.2g} at w = 0"
            extra["reason"] = f'the objective {values}; set variant="opt", or scale the data'
        models = []
        for p, b in enumerate(found.b):
            weights, intercept = self.components.original(found.W[:, p], float(b))
            fit = Fit(
                status=found.status,
                objective=float(scale * found.value),
                bound=float(scale * found.bound),
                max_violation=scale * found.violation,
                iterations=found.pair_iterations[p],
                seconds=seconds / len(found.b),
                n_support=int(np.count_nonzero(found.u[p])) if found.W[:, p].any() else 0,
                route=found.route,
                extra=extra,
            )
            given = {"w" if self.components.linear else "coef": weights}
            models.append(BinaryModel(intercept=intercept, fit=fit, **given))
        return models
