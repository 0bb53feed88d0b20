"""F-SVM: a linear transformation of the data and an SVM, learned together by a convex relaxation.

    min over M > 0, w, b   1/2 w'M^{-1}w + rho tr(MS) + C sum_i xi_i
    subject to             t_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0                           (12)

S is the total scatter with 1/n, ``M = A'A`` the transformation; ``tr(MS)`` stands for the radius of
the smallest ball around the points A x_i. With several classes all one-vs-one pairs share M. With a
kernel the rows are given by the first components of kernel PCA.

What (12) amounts to. Minimised over M it is

    F* = min over w, b   sqrt(2 rho) ||S^{1/2}w|| + C sum_i xi_i

the SVM on whitened data but for the square of the norm, attained at ``M ~ ww'``, on the edge of the
cone. Only C / sqrt(rho) matters. For pairs that share M, ``||S^{1/2}W||_*``, the sum of singular
values. The paper alternates SVMs and gradient steps in M from the semi-whitening ``M ~ S^{-1/2}``
(17); that stalls inside the cone, and how far from F* is in every fit's `gap`. Variants:

    semi   no round at all: the SVM on semi-whitened data
    pg     the paper's algorithm 1: projected gradient steps in M, at most `rounds` rounds
    eps    ww' + eps I in place of ww', which has an optimum inside the cone, and closed M-steps
    opt    the optimum of (12)

References
----------
X. Wu, W. Zuo, Y. Zhu, L. Lin: F-SVM: Combination of feature transformation and SVM learning via
convex relaxation. arXiv:1504.05035, 2015.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.base import common_parameters
from mmbench.machines.fsvm.alternation import Alternation, Image, Rows, alternate, lower_bound_eps
from mmbench.machines.fsvm.optimum import Optimum, solve_pair
from mmbench.machines.fsvm.shared import solve_pairs
from mmbench.machines.joint_training import JointClassifier, JointProblem
from mmbench.machines.kernel_pca import Spectrum, spectrum
from mmbench.machines.parameter import Param, choice, positive
from mmbench.machines.problem import BinaryModel, Fit
from mmbench.machines.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.svm import SVM
from mmbench.machines.voting import pair_rows

#: Share of the variance that the components of a kernel keep: that of the authors' code.
KERNEL_SHARE = 0.9
#: A gap of pairs that share M is small enough at this multiple of `tol`.
GOAL = 10


class FSVM(JointClassifier):
    """F-SVM, one-vs-one with one transformation for all pairs.

    Parameters
    ----------
    C : float, default=1.0
        Price of one unit of slack.
    rho : float, default=1.0
        Price of the scatter of the transformed data. Only ``C / sqrt(rho)`` matters: searching C
        with rho = 1 searches both, and equal ratios in a grid are trained once.
    variant : {"pg", "semi", "eps", "opt"}, default="pg"
        See above.
    eps : float, default=0.01
        Of ``variant="eps"``: small is near the whitening, large the semi-whitening.
    rounds : int, default=15
        Most rounds of "pg" and "eps".
    decrease : float, default=1e-3
        "pg" and "eps" end when a round lowers the objective by less than this share; 0: never.
    n_components : int, float, "auto" or None, default="auto"
        How many components of the data are kept; below 1 the share of the variance that they
        reach; None for all. "auto" is all of a linear machine and 0.9 with a kernel, where all of
        them would make whitened training rows equidistant.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    ridge : float, default=1e-8
        S + ridge tr(S)/d I in the d components kept. Directions in which no training row varies
        are not among them.
    solver : {"auto", "reference"}, default="auto"
        "reference": libsvm for the SVMs of the alternation, one cone program for "opt".
    tol : float, default=1e-5
        Largest violation of the optimality conditions of each SVM.
    ties : {"lowest", "random"}, default="lowest"
        Which of several classes with most votes is predicted.
    random_state : int, optional
        Seed of ``ties="random"``.
    n_jobs : int, optional
        Without effect: the pairs are trained together.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        One a pair; what concerns all pairs is the same in each. `objective` is (12) summed over the
        pairs (with ``eps tr(M^{-1})/2`` for "eps") and `bound` a dual value, so that the optimum
        lies between them. `status` is that of the SVMs; for "opt" and "eps" also of the gap.
        `extra` has "rounds", "objectives" (after 0, 1, ... rounds) and "eigenvalues", the smallest
        and the largest of M.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients over the training rows (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient: all (``rbf``, ``poly``).
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

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

    # The matrix, its components and their vectors, and of components five in transformed spaces and
    # the SVM's Gram matrix there. Linear, the components are as wide as the rows.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=11, linear_gram_copies=3)
    parameters: ClassVar[dict[str, Param]] = common_parameters() | {
        "C": positive(),
        "rho": positive(),
        "variant": choice("pg", "semi", "eps", "opt"),
        "eps": positive(),
        "rounds": Param(low=0, integer=True),
        "decrease": Param(low=0),
        "n_components": positive(choices=("auto",), optional=True),
        "ridge": Param(low=0),
        "solver": choice("auto", "reference"),
    }
    search_space: ClassVar[SearchSpace] = JointClassifier.search_space.extended(
        {"C": ("C", tuple(10.0 ** (k / 2) for k in range(-6, 7)))},
        prefer={
            **JointClassifier.search_space.prefer,
            "rho": "large",
            "n_components": "small",
            "eps": "large",
        },
        tol=1e-3,
        single_precision=False,  # small components of float32 values are their noise
    )

    def __init__(
        self,
        C=1.0,
        rho=1.0,
        variant="pg",
        eps=0.01,
        rounds=15,
        decrease=1e-3,
        n_components="auto",
        kernel="linear",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        ridge=1e-8,
        solver="auto",
        tol=1e-5,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.rho = rho
        self.variant = variant
        self.eps = eps
        self.rounds = rounds
        self.decrease = decrease
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.ridge = ridge
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_parameters(self) -> None:
        super()._check_parameters()
        wanted = self.n_components
        if isinstance(wanted, float) and wanted > 1 and not wanted.is_integer():
            raise ValueError(
                f"{type(self).__name__}: n_components above 1 must be a whole number, got {wanted}"
            )

    @property
    def gap_tolerance(self) -> float:
        """Largest relative gap at the optimum; the paper's rules of stopping know no gap."""
        return SVM.gap_tolerance_factor * self.tol if self.variant == "opt" else math.inf

    def train_jointly(
        self, problem: JointProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[list[BinaryModel]]:
        """Train along C / sqrt(rho); one decomposition serves every point."""
        machines = [self.with_params(point) for point in points]
        wanted = [one._components or 0 for one in machines]
        whole = spectrum(problem.data, int(max(wanted)) if min(wanted) >= 1 else None)
        spaces: dict[Any, Space] = {}
        trained: dict[tuple, Trained] = {}
        models: list[list[BinaryModel]] = [[] for _ in points]
        for k in sorted(range(len(points)), key=lambda k: machines[k]._ratio):
            one = machines[k]
            place = (one._components, one.ridge)
            if place not in spaces:
                spaces[place] = Space(problem, whole.first(one._components), one.ridge)
            rule = one.variant, one.eps, one.rounds, one.decrease, one.solver, one.tol
            key = (*place, one._ratio, *rule)
            if key not in trained:
                trained[key] = one._train_in(spaces[place])
            models[k] = trained[key].models(spaces[place], one.rho)
        return models

    @property
    def _ratio(self) -> float:
        """The one number that C and rho amount to; rounded, for equal ratios in a grid."""
        return float(f"{self.C / np.sqrt(self.rho):.12g}")

    @property
    def _components(self) -> float | None:
        if self.n_components == "auto":
            return None if self.kernel == "linear" else KERNEL_SHARE
        return self.n_components

    def _train_in(self, space: Space) -> Trained:
        """Train in units in which rho = 1."""
        started = time.perf_counter()
        train = self._optimum if self.variant == "opt" else self._alternation
        found = train(space)
        found.seconds = (time.perf_counter() - started) / len(space.rows.pairs)
        return found

    def _optimum(self, space: Space) -> Trained:
        rows, C = space.rows, self._ratio
        if self.solver == "reference":
            from mmbench.machines.fsvm.reference import solve_cone

            found = solve_cone(rows, C)
        else:
            images, start = space.images("white"), space.starts.get("opt")
            found = (
                solve_pair(rows, images[0], C, self.tol, start=start)
                if len(images) == 1
                else solve_pairs(rows, images, C, self.tol, GOAL * self.tol, start)
            )
            space.starts["opt"] = found.state
        return _trained_optimum(rows, found, C, self.tol)

    def _alternation(self, space: Space) -> Trained:
        eps = self.eps if self.variant == "eps" else 0.0
        found = alternate(
            space.rows,
            space.images("semi"),
            self._ratio,
            self.tol,
            rounds=0 if self.variant == "semi" else self.rounds,
            decrease=self.decrease,
            eps=eps,
            solver=self.solver,
            starts=space.starts_at("semi", self._ratio),
        )
        space.starts["semi"] = (self._ratio, found.start)
        return _trained_alternation(space.rows, found, eps, self.tol)


class Space:
    """Coordinates of the rows, and what all hyper-parameters share in them.

    Parameters
    ----------
    problem : JointProblem
    of : Spectrum
    ridge : float
    """

    def __init__(self, problem: JointProblem, of: Spectrum, ridge: float):
        s = of.variances + ridge * of.variances.mean()
        pairs = [pair_rows(problem.labels, i, j) for i, j in problem.pairs]
        self.rows = Rows(of.rows, np.where(s > 0, s, 1.0), pairs)
        self.spectrum = of
        self.starts: dict[str, Any] = {}
        self._images: dict[str, list[Image]] = {}

    def images(self, name: str) -> list[Image]:
        """Return the rows of each pair, whitened ("white") or semi-whitened ("semi")."""
        if name not in self._images:
            root = self.rows.s ** {"white": -0.5, "semi": -0.25}[name]
            self._images[name] = self.rows.images(root)
        return self._images[name]

    def starts_at(self, name: str, C: float) -> list[NDArray] | None:
        """Return multipliers of the last C, scaled: those at their bound stay there."""
        if name not in self.starts:
            return None
        last, multipliers = self.starts[name]
        return [C / last * u for u in multipliers]


@dataclass
class Trained:
    """A training in units in which rho = 1, from which the models for every rho follow."""

    W: NDArray
    b: NDArray
    objective: float
    bound: float
    eigenvalues: Callable[[], tuple[float, float]]
    status: Status
    violation: float
    iterations: list[int]
    n_support: list[int]
    values: list[float] = field(default_factory=list)
    rounds: int = 0
    seconds: float = 0.0

    def models(self, space: Space, rho: float) -> list[BinaryModel]:
        """Return one model a pair; (12) grows with sqrt(rho), M shrinks with it."""
        root = float(np.sqrt(rho))
        smallest, largest = self.eigenvalues()
        extra = {
            "rounds": self.rounds,
            "objectives": [root * value for value in self.values],
            "eigenvalues": [smallest / root, largest / root],
        }
        out = []
        for p, b in enumerate(self.b):
            weights, intercept = space.spectrum.original(self.W[:, p], float(b))
            fit = Fit(
                status=self.status,
                objective=float(root * self.objective),
                bound=float(root * self.bound),
                max_violation=root * self.violation,
                iterations=self.iterations[p],
                seconds=self.seconds,
                n_support=self.n_support[p],
                extra=extra,
            )
            given = {"w": weights} if space.spectrum.linear else {"coef": weights}
            out.append(BinaryModel(intercept=intercept, fit=fit, **given))
        return out


def _trained_optimum(rows: Rows, found: Optimum, C: float, tol: float) -> Trained:
    """Return an optimum, whose M is ``W (W'S W)^{-1/2} W' / sqrt(2)`` on the edge of the cone."""

    def eigenvalues() -> tuple[float, float]:
        left, sizes, _ = np.linalg.svd(np.sqrt(rows.s)[:, None] * found.W, full_matrices=False)
        root = left * np.sqrt(sizes / np.sqrt(2.0)) / np.sqrt(rows.s)[:, None]
        largest = float(np.linalg.norm(root, 2)) ** 2
        smallest = float(np.linalg.norm(root, -2)) ** 2 if len(rows.s) <= root.shape[1] else 0.0
        return smallest, largest

    allowed = 2 * tol * (C * sum(len(y) for _, y in rows.pairs) + found.bound)
    accurate = found.value - found.bound <= max(allowed, GOAL * tol * found.value)
    harmless = found.status in (Status.OPTIMAL, Status.TRIVIAL)
    return Trained(
        found.W,
        found.b,
        found.value,
        found.bound,
        eigenvalues,
        Status.INACCURATE if harmless and not accurate else found.status,
        found.violation,
        found.iterations,
        [int(np.count_nonzero(u)) for u in found.u],
        [found.value],
        found.rounds,
    )


def _trained_alternation(rows: Rows, found: Alternation, eps: float, tol: float) -> Trained:
    def eigenvalues() -> tuple[float, float]:
        values = np.linalg.eigvalsh(found.M)
        return float(values[0]), float(values[-1])

    bound, status = found.bound, found.planes.status
    if eps:  # this variant has an optimum inside the cone, and should be there
        bound = lower_bound_eps(found.planes, rows.s, eps)
        if status is Status.OPTIMAL and found.values[-1] - bound > GOAL * tol * found.values[-1]:
            status = Status.INACCURATE
    return Trained(
        found.W,
        found.planes.b,
        found.values[-1],
        bound,
        eigenvalues,
        status,
        found.planes.violation,
        found.iterations,
        [int(np.count_nonzero(u)) for u in found.planes.u],
        found.values,
        len(found.values) - 1,
    )
