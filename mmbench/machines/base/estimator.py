"""Base classes of the machines, as scikit-learn estimators.

A machine implements `train` or `train_path`; the base classes validate, train one-vs-one, predict
and certify (see `Fit`). The weight of a row is its sample weight times its class weight. A row of
weight s is equivalent to s copies: ``C s_i`` is the penalty on its slack, sums and means over rows
are weighted, and sums of weights replace numbers of rows. Modules of machines only state
exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from functools import partial
from importlib.metadata import PackageNotFoundError, metadata
from itertools import combinations, pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from mmbench.allowance import blas_threads_for
from mmbench.kernels import Kernel, variance
from mmbench.kernels.matrix import (
    PRECOMPUTED,
    KernelLike,
    given_gram,
    given_values,
    is_given,
)
from mmbench.machines.base.callbacks import CallbackSupportMixin, hooks_called, with_callbacks
from mmbench.machines.base.one_vs_one import (
    PairModels,
    PairPlan,
    failures_named,
    rows_at,
    train_pairs,
    without_false_bounds,
)
from mmbench.machines.base.parameters import (
    Declared,
    Param,
    choice,
    kernel_parameter,
    parameter,
    positive,
)
from mmbench.machines.base.problem import (
    FEW_ROWS,
    SPARSE_SHARE,
    BinaryModel,
    BinaryProblem,
    Fit,
    around,
    expand,
    far_origin,
    judged,
    linear_weights,
    warn_unless_solved,
)
from mmbench.machines.base.search_space import GAMMA_GRID, SearchSpace
from mmbench.machines.base.voting import (
    UNLABELLED,
    class_pairs,
    encode_labels,
    ovr_scores,
    pair_rows,
    resolve_votes,
    votes,
)
from mmbench.memory import REFERENCE_GRAMS, TrainingSize, check_free_memory

#: Largest valid sample weight. Products of weights above LARGEST_WEIGHT may overflow in double
#: precision.
LARGEST_WEIGHT = 1e100

#: `predict` computes decision values in blocks of at least DECISION_BYTES bytes. With 100 classes,
#: this takes half the time of one array for 10,000 rows.
DECISION_BYTES = 2**22

#: With a linear kernel, an error is raised if the largest magnitude of a feature value is positive
#: and below LEAST_FEATURE. Products of smaller values underflow in double precision.
LEAST_FEATURE = 1e-150


if TYPE_CHECKING:

    class Estimator:
        """Type annotations of methods that scikit-learn's base classes do not annotate."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def score(self, X: ArrayLike, y: ArrayLike, sample_weight: Any = None) -> float: ...
        def set_callbacks(self, *callbacks: Any) -> Self: ...
        def _init_callback_context(self, **task: Any) -> Any: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def __sklearn_tags__(self) -> Tags: ...

        n_features_in_: int
        feature_names_in_: NDArray

else:

    class Estimator(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
        """scikit-learn's base classes for classifiers and callbacks, combined."""


class PairwiseClassifier(Declared, Estimator):
    """Base class of the machines: binary training, extended to several classes by one-vs-one.

    A subclass declares its parameters (see `parameter`) and implements `train` or `train_path`. A
    subclass may override `train_path` to share computations between grid points, `train_folds` to
    share computations between cross-validation folds, and `bytes_needed`, which states the memory
    of a training. A subclass may override the following class attributes:

    - ``kernels``: names of the kernels for which the machine is defined. If `kernels` contains a
      nonlinear kernel, the machine also accepts kernel matrices and kernel functions.

    - ``search_space``: default grid search of the machine, a `SearchSpace`.

    - ``sparse_input``: whether sparse features are accepted. Sparse features are never converted to
      a dense array.

    - ``translation_invariant``: whether the machine with a linear kernel makes the same predictions
      if a constant vector is added to all rows.

    - ``convex_on_any_matrix``: whether the optimisation problem is convex even if the kernel matrix
      has negative eigenvalues.

    - ``gap_tolerance_factor``: the relative duality gap of a solution with the status ``optimal``
      is at most ``gap_tolerance_factor`` times ``tol``.

    - ``version``: version number, increased by each change of the code that may alter results. The
      key of each stored result of an experiment contains `version`, so that results of older code
      are not reused.

    - ``kernel_versions``: version number of each kernel. If a change of the code may alter only the
      results with one kernel, only the number of this kernel is increased.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    n_features_in_ : int
        Number of features.
    fits_ : list of Fit
        Certificate of each pair of classes.
    kernels_ : list of Kernel
        Kernel of each pair, with the numerical value of gamma.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Coefficients of the support vectors in the decision function, one row per pair. `dual_coef_`
        is a read-only array, which each access creates from a sparse array. A linear machine has
        `dual_coef_` and `support_` only if the solver computes coefficients of the training rows.
    support_ : ndarray of shape (n_support,)
        Ascending indices of the training rows with a non-zero coefficient in at least one pair.
    n_support_ : ndarray of shape (n_classes,)
        Number of support vectors of each class.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Features of the support vectors, for kernels other than ``linear``. A linear machine does
        not store its support vectors ``X[support_]``.
    n_iter_ : ndarray of shape (n_pairs,)
        Number of solver iterations of each pair.
    coef_ : ndarray of shape (n_pairs, n_features)
        Weights w of each pair, for a linear kernel.
    intercept_ : ndarray of shape (n_pairs,)
        Bias b of each pair.
    """

    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf")
    search_space: ClassVar[SearchSpace] = SearchSpace(
        GAMMA_GRID,
        prefer={"C": "small", "gamma": "small", "degree": "small"},
    )
    sparse_input: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = False
    convex_on_any_matrix: ClassVar[bool] = False
    gap_tolerance_factor: ClassVar[float] = 1.0
    version: ClassVar[int] = 1
    kernel_versions: ClassVar[Mapping[str, int]] = MappingProxyType({})

    kernel: KernelLike = kernel_parameter()
    gamma: float | str = parameter(
        "scale",
        Param(low=0, open_low=True, choices=("scale", "auto")),
        'Coefficient of the squared distance in ``rbf``: "scale" is '
        '``1 / (n_features * X.var())``, "auto" is ``1 / n_features``.',
    )
    gamma_scaling: str = parameter(
        "none",
        choice("none", "per_feature", "variance"),
        '"per_feature" divides gamma by ``n_features``, "variance" by ``n_features * X.var()``.',
    )
    degree: int = parameter(3, Param(low=1, integer=True), "Degree of ``poly``.")
    solver: str = parameter(
        "auto", choice("auto", "reference"), "Algorithm that solves the optimisation problem."
    )
    tol: float = parameter(1e-6, positive(), "Tolerance of the solver.")
    ties: str = parameter(
        "lowest", choice("lowest", "random"), "Rule that selects among classes with equal votes."
    )
    random_state: int | RandomState | None = parameter(
        None,
        Param(low=0, high=2**32 - 1, integer=True, optional=True, kinds=(RandomState,)),
        'Seed or random number generator of ``ties="random"``.',
    )
    decision_function_shape: str = parameter(
        "ovr",
        choice("ovr", "ovo"),
        'Columns of `decision_function` for more than two classes: "ovr", one per class; "ovo", '
        "one per pair, with the signs of `coef_`, opposite to the signs of scikit-learn's SVC.",
        after="time_limit",
    )
    break_ties: bool = parameter(
        False,
        Param(boolean=True),
        "Whether decision values, and not `ties`, select one of several classes with most votes.",
        after="time_limit",
    )
    n_jobs: int | None = parameter(
        None, Param(integer=True, optional=True), "Number of threads that train pairs of classes."
    )
    time_limit: float | None = parameter(
        None,
        positive(optional=True),
        "Time limit of `fit` in seconds. Before each training, the remaining time is divided "
        "equally among the remaining pairs of classes. A solver returns its best solution at the "
        "end of its time (see `status` and `gap` in `fits_`). If a matrix of all rows of a pair of "
        "classes takes more time, the pair is trained on a sample of its rows, see `route` in "
        "`fits_`. If no time remains, the larger class is predicted.",
    )

    _doc_link_module: ClassVar[str] = "mmbench"

    #: Whether a grid search trains the machine. It reads only decision values, and a machine may
    #: then omit certificates.
    _searching: ClassVar[bool] = False

    #: Offset subtracted from the features before a linear machine is trained, to avoid cancellation
    #: if the data lie far from the origin. Shape (n_features,); None without an offset.
    _origin: ClassVar[NDArray | None] = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train one binary machine per pair of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        return self._fit(*self._validated(X, y))

    def fit_pairs(
        self, X: ArrayLike, y: ArrayLike, pair_params: Sequence[Mapping[str, Any]]
    ) -> Self:
        """Train one binary machine per pair of classes, with different parameters for each pair.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        pair_params : sequence of dict
            The parameters that are changed: one dict per pair of classes, in the order of
            `class_pairs`, or a single dict for all pairs.

        Returns
        -------
        self
        """
        rows, labels = self._validated(X, y)
        return self._fit(rows, labels, pair_params)

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the class with most votes for each row.

        If several classes have most votes, one of them is selected: by the largest sum of decision
        values if `break_ties` is true, else by the rule `ties`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        check_is_fitted(self)
        rows, n_classes = self._validated(X, reset=False), len(self.classes_)
        rng = check_random_state(self.random_state) if self.ties == "random" else None
        # decision values of a block of rows fit in the cache
        blocks = max(1, 8 * rows.shape[0] * len(self.fits_) // DECISION_BYTES)
        ends, found = np.linspace(0, rows.shape[0], blocks + 1).astype(int), []
        for start, end in pairwise(ends.tolist()):
            decisions = self._finite_decisions(rows if blocks == 1 else rows[start:end])
            if self.break_ties and n_classes > 2:
                found.append(ovr_scores(decisions, n_classes, break_ties=True).argmax(axis=1))
            else:
                found.append(resolve_votes(votes(decisions, n_classes), rng))
        return self.classes_[np.concatenate(found)]

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Return decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            For two classes, the decision value ``f(x)``. Zero and positive decision values predict
            ``classes_[1]``. For more than two classes, the parameter `decision_function_shape`
            selects the columns. For "ovo", the columns are the decision values of the pairs of
            classes. For "ovr", each column contains the number of votes for a class, plus a term
            between -1/3 and 1/3 that depends on the decision values.
        """
        decisions = self.pairwise_decision_function(X)
        if len(self.classes_) == 2:
            return decisions[:, 0]
        if self.decision_function_shape == "ovo":
            return decisions
        return ovr_scores(decisions, len(self.classes_), self.break_ties)

    def pairwise_decision_function(self, X: ArrayLike) -> NDArray:
        """Return the decision values of the binary machines of all pairs of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
            Column k belongs to the pair of classes `fits_[k].pair`. A positive value or zero is a
            vote for the second class of the pair.
        """
        check_is_fitted(self)
        return self._finite_decisions(self._validated(X, reset=False))

    def _finite_decisions(self, rows: NDArray) -> NDArray:
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values raise ValueError below
            decisions = self._decisions(rows)
        wrong = ~np.isfinite(decisions).all(axis=0)
        if wrong.any():
            low, high = self.fits_[int(wrong.argmax())].pair
            text = f"decision values of the pair {low!s}/{high!s} are not numbers or not finite"
            raise ValueError(f"{text}; scale the data")
        return decisions

    @property
    def dual_coef_(self) -> NDArray:
        """Coefficients of the support vectors, one row per pair of classes."""
        # the memory order is fixed, since rounding errors of sums depend on the memory order
        dense = self._sparse_coef.toarray(order="F")
        # the array is read-only, since changes of the array would not change predictions
        dense.flags.writeable = False
        return dense

    @property
    def n_iter_(self) -> NDArray:
        """Number of solver iterations of each pair."""
        return np.array([fit.iterations for fit in self.fits_])

    def _decisions(self, rows: NDArray) -> NDArray:
        if hasattr(self, "coef_"):
            if self._origin is None:
                return rows @ self.coef_.T + self.intercept_
            return around(rows, self._origin) @ self.coef_.T + self._moved_intercept
        if is_given(self.kernel):
            values = given_values(self.kernel, rows, self.support_vectors_, self.support_)
            return values @ self.dual_coef_.T + self.intercept_
        kernels = list(dict.fromkeys(self.kernels_))
        if len(kernels) == 1:
            stored, shape = self._sparse_coef.nnz, self._sparse_coef.shape
            few = rows.shape[0] <= FEW_ROWS or stored < SPARSE_SHARE * shape[0] * shape[1]
            coef = self._sparse_coef if few else self.dual_coef_
            return expand(kernels[0], rows, self.support_vectors_, coef) + self.intercept_
        out, dual_coef = np.tile(self.intercept_, (rows.shape[0], 1)), self.dual_coef_
        for kernel in kernels:
            pairs = np.array([k for k, other in enumerate(self.kernels_) if other == kernel])
            support = np.flatnonzero(dual_coef[pairs].any(axis=0))
            coef = dual_coef[np.ix_(pairs, support)]
            out[:, pairs] += expand(kernel, rows, self.support_vectors_[support], coef)
        return out

    # -- methods that a machine implements or overrides --------------------------------------

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        """Train one binary machine, by default by `train_path` with a single grid point.

        Parameters
        ----------
        problem : BinaryProblem
        warm : instance of BinaryModel, optional
            Model trained on the same rows at a neighbouring grid point, used as the warm start.

        Returns
        -------
        BinaryModel
            The model with its certificate. The caller of `train` sets `Fit.pair`.
        """
        if type(self).train_path is PairwiseClassifier.train_path:
            raise TypeError(f"{type(self).__name__} does not implement train")
        return self.train_path(problem, [{}])[0]

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train one model per grid point, for grid points with the same kernel.

        The models are trained in the order of `path_key`, and returned in the order of `points`.
        Each training starts from the solution at the previous grid point. A machine overrides
        `train_path` if its grid points can share computations, for example an eigendecomposition.
        """
        models: list[BinaryModel | None] = [None] * len(points)
        model = None
        for k in sorted(range(len(points)), key=lambda k: self.path_key(points[k])):
            model = models[k] = self.with_params(points[k]).train(problem, model)
        return models  # type: ignore[return-value]

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Return the sort key of a grid point in `train_path`, by default C or `C_factor`."""
        return (point.get("C") or point.get("C_factor", 0),)

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Run `train_path` on each fold of a cross-validation, one fold after the other.

        A machine overrides `train_folds` if its folds can share computations.
        """
        for problem in problems:
            yield self.train_path(problem, points)

    def bytes_needed(self, size: TrainingSize) -> float:
        """Return an upper bound on the memory of a training in bytes, beside the data.

        The default is the memory of one Gram matrix and of vectors of its length.

        Parameters
        ----------
        size : TrainingSize
            Numbers of rows and features; ``size.grams(2)`` is the memory of two Gram matrices.

        Returns
        -------
        float
        """
        return self._gram_bytes(size, 1)

    @property
    def gap_tolerance(self) -> float:
        """Maximum relative duality gap of a solution with the status ``optimal``."""
        return self.gap_tolerance_factor * self.tol

    @property
    def violation_tolerance(self) -> float:
        """Maximum constraint violation of a solution with the status ``optimal``."""
        return self.tol

    # -- methods that parameter selection calls ----------------------------------------------

    def with_params(self, params: Mapping[str, Any]) -> Self:
        """Return a shallow copy with changed parameters.

        scikit-learn's `clone` inspects signatures and makes deep copies. For a thousand small
        problems, `clone` would take longer than the training.
        """
        other = copy(self)
        other.__dict__.update(params)
        return other

    def kernel_for(self, X: NDArray, weights: NDArray | None = None) -> Kernel:
        """Return the kernel, with gamma and scaling computed from the training rows.

        Raises ValueError if kernel values of the training rows are not finite, or if they
        underflow.
        """
        if is_given(self.kernel):
            return Kernel(PRECOMPUTED)
        gamma = self.gamma if self.kernel == "rbf" else 1.0
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        if gamma == "scale" or (self.kernel == "rbf" and self.gamma_scaling == "variance"):
            # if the variance is infinite, kernel values are not finite and raise ValueError below
            with np.errstate(over="ignore", invalid="ignore"):
                total = X.shape[1] * variance(X, weights)
            scale = 1.0 / total if total > np.finfo(float).tiny else 1.0
            gamma = scale if gamma == "scale" else float(gamma) * scale
        if self.gamma_scaling == "per_feature":
            gamma = gamma / X.shape[1]
        kernel = Kernel(str(self.kernel), gamma=float(gamma), degree=self.degree)
        # only some machines have the parameter `kernel_scaling`
        trace = getattr(self, "kernel_scaling", "none") == "trace"
        kernel = kernel.trace_normalised(X, weights) if trace else kernel
        if not kernel.is_finite(X):
            raise ValueError("the kernel matrix has values that are not finite; scale the data")
        # the maximum is compared first, since the absolute values need a copy of X
        small = self.kernel == "linear" and X.max() < LEAST_FEATURE
        if small and 0 < abs(X).max() < LEAST_FEATURE:
            raise ValueError("products of the features underflow; scale the data")
        return kernel

    # -- internal methods --------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.input_tags.sparse = self.sparse_input and not tags.input_tags.pairwise
        return tags

    @property
    def _doc_link_template(self) -> str:
        """URL of the machine's documentation page, or empty if the package metadata have no URL."""
        try:
            addresses = metadata("mmbench").get_all("Project-URL") or []
        except PackageNotFoundError:
            return ""
        site = dict(address.split(", ", 1) for address in addresses).get("Documentation")
        page = "generated/mmbench.machines.{estimator_name}.html"
        return f"{site.rstrip('/')}/{page}" if site else ""

    def _validated(self, X: Any, *y: ArrayLike, reset: bool = True) -> Any:
        """Return the validated features in float64, and the validated labels if `y` is given.

        If the machine accepts sparse features, sparse features are returned in CSR format.
        """
        if reset:
            self._check_parameters()
        if self.kernel == PRECOMPUTED and issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported; pass a dense matrix")
        refuse_masks(X, *y)
        accepted = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        try:
            data = validate_data(self, X, *y, dtype=np.float64, accept_sparse=accepted, reset=reset)
        except ValueError as error:
            select = getattr(X, "select_dtypes", None)  # X may be a data frame with text columns
            words = [*select(exclude=["number", "bool"])] if select else []
            if "could not convert" not in str(error) or not words:
                raise
            hint = "encode words as numbers, for example by OneHotEncoder"
            raise ValueError(f"column {words[0]!r}: {error}; {hint}") from error
        if reset and self.kernel == PRECOMPUTED and data[0].shape[0] != data[0].shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {data[0].shape[0]}x{data[0].shape[1]} matrix."
            )
        return data

    def _check_parameters(self) -> None:
        machine = type(self).__name__
        for name, value in self.get_params(deep=False).items():
            problem = self.parameters[name].problem(value)
            if problem:
                raise ValueError(f"{machine}: {name} {problem}")
        if is_given(self.kernel):
            if set(self.kernels) <= {"linear"}:
                raise ValueError(f"{machine} needs the features, since its only kernel is 'linear'")
        elif self.kernel not in self.kernels:
            raise ValueError(f"{machine} has no kernel {self.kernel!r}, only {self.kernels}")

    @with_callbacks
    def _fit(
        self,
        X: NDArray,
        y: NDArray,
        pair_params: Sequence[Mapping[str, Any]] = ({},),
        weights: NDArray | None = None,
        unlabelled: NDArray | None = None,
    ) -> Self:
        """Train all pairs of classes on validated rows with positive weights.

        `pair_params` contains one dict for all pairs of classes, or one dict per pair. Each pair of
        classes also gets the rows `unlabelled`, after its own rows.
        """
        self.classes_, labels = encode_labels(y)
        n_pairs = len(class_pairs(len(self.classes_)))
        task = self._init_callback_context(max_subtasks=n_pairs, sequential_subtasks=False)
        metadata = weights if weights is None else {"sample_weight": weights}
        data = {"X": X, "y": y, "metadata": metadata}
        if unlabelled is not None:
            more = unlabelled.shape[0]
            X, labels = _stacked(X, unlabelled), np.append(labels, np.full(more, UNLABELLED))
            weights = weights if weights is None else np.append(weights, np.ones(more))
        with hooks_called(self, task, dict, data):
            plan = self._plan(X, labels, pair_params, weights)
            plan.machines[0].check_memory(plan.size)
            with blas_threads_for(plan.size.n), failures_named(self, plan.gram) as indefinite:
                hooks_of_pair = partial(self._pair_hooks, task, X, plan)
                self._store(plan, self._train_all(plan, hooks_of_pair, indefinite))
        return self

    def _plan(
        self,
        X: NDArray,
        labels: NDArray,
        pair_params: Sequence[Mapping[str, Any]],
        weights: NDArray | None,
    ) -> PairPlan:
        """Return the plan of all trainings; set the kernel of each pair and the offset of X."""
        known, n_pairs = labels != UNLABELLED, len(class_pairs(len(self.classes_)))
        machines = [clone(self).set_params(**params) for params in pair_params]
        for machine in machines:
            machine._check_parameters()
        own = rows_at(X, np.flatnonzero(known)), None if weights is None else weights[known]
        kernels = [machine.kernel_for(*own) for machine in machines]
        machines = [machine.with_params({}) for machine in machines]
        if len(machines) == 1:
            machines, kernels = machines * n_pairs, kernels * n_pairs
        self.kernels_ = kernels
        moves = self.kernel == "linear" and self.translation_invariant
        self._origin = far_origin(X) if moves else None  # type: ignore[misc]
        return PairPlan(
            machines=machines,
            kernels=kernels,
            X=around(X, self._origin),
            gram=given_gram(self.kernel, X),
            classes=self.classes_,
            labels=labels,
            weights=weights,
        )

    #: Function that returns the indices and the labels -1.0 and +1.0 of the rows of a pair.
    rows_of_pair: ClassVar[Callable[..., tuple[NDArray, NDArray]]] = staticmethod(pair_rows)

    def _train_all(
        self,
        plan: PairPlan,
        hooks: Callable[[int], AbstractContextManager],
        indefinite: NDArray | None,
    ) -> PairModels:
        """Train all pairs of classes; `indefinite` is an indefinite kernel matrix, or None."""
        return self._joined(plan, train_pairs(self, plan, hooks), indefinite)

    def _joined(
        self, plan: PairPlan, models: Sequence[BinaryModel], indefinite: NDArray | None
    ) -> PairModels:
        """Return the models with judged certificates, as arrays over pairs."""
        models = without_false_bounds(models, indefinite, plan.rows)
        pairs = combinations(self.classes_, 2)
        fits = [self._judged(m.fit, pair) for m, pair in zip(models, pairs, strict=True)]
        weights = coefs = None
        if self.kernel == "linear":
            parts = zip(plan.rows, models, strict=True)
            weights = np.array([linear_weights(rows_at(plan.X, r), m) for r, m in parts])
        if all(model.coef is not None for model in models):
            values = [np.asarray(model.coef) for model in models]
            used = [np.flatnonzero(coef) for coef in values]
            values = [coef[own] for coef, own in zip(values, used, strict=True)]
            columns = [index[own] for index, own in zip(plan.rows, used, strict=True)]
            ends, shape = np.cumsum([0, *map(len, used)]), (len(models), len(plan.labels))
            coefs = csr_array((np.concatenate(values), np.concatenate(columns), ends), shape=shape)
        return PairModels(fits, np.array([m.intercept for m in models]), weights, coefs)

    def _judged(self, fit: Fit, pair: tuple) -> Fit:
        fit = fit if fit.pair else replace(fit, pair=pair)
        return judged(fit, self.gap_tolerance, self.violation_tolerance)

    def _pair_hooks(self, task: Any, X: NDArray, plan: PairPlan, k: int) -> AbstractContextManager:
        """Return a context manager that calls the callback hooks of the training of pair k."""
        low, high = self.classes_[list(class_pairs(len(self.classes_))[k])]
        subtask = task if task is None else task.subcontext(f"{low!s}/{high!s}", task_id=k)
        own = plan.rows[k][plan.labels[plan.rows[k]] != UNLABELLED]
        data = {"X": lambda: X[own], "y": lambda: self.classes_[plan.labels[own]]}
        return hooks_called(self, subtask, None, data)

    def check_memory(self, size: TrainingSize) -> None:
        """Raise NotEnoughMemory if training a pair of classes needs more memory than is free."""
        task = f"{type(self).__name__} on {size.n} rows with kernel {self.kernel!r}"
        task += f" and solver {self.solver!r}" if self.solver != "auto" else ""
        check_free_memory(task, self.bytes_needed(size))

    def _in_features(self, size: TrainingSize, rows_per_feature: int = 0) -> bool:
        """Return whether a training uses the features in place of the Gram matrix."""
        linear = self.kernel == "linear" and self.solver != "reference"
        return linear and size.n >= rows_per_feature * size.d

    def _gram_bytes(self, size: TrainingSize, copies: int) -> float:
        """Return the memory of n x n arrays and of vectors of length n.

        Reference solvers need at least REFERENCE_GRAMS arrays.
        """
        least = REFERENCE_GRAMS if self.solver == "reference" else 0
        return size.grams(max(copies, least)) + size.rows(0)

    def _store(self, plan: PairPlan, models: PairModels) -> None:
        """Set the fitted attributes, with one array of support vectors for all pairs of classes."""
        finite = np.isfinite(models.intercepts)
        if models.weights is not None:
            finite &= np.isfinite(models.weights).all(axis=1)
        if models.coefs is not None:
            finite &= np.isfinite(abs(models.coefs).max(axis=1).toarray())
        if not finite.all():
            low, high = models.fits[int(finite.argmin())].pair
            raise ValueError(f"the solution of {low!s}/{high!s} is not finite; scale the data")
        self.fits_ = models.fits
        warn_unless_solved(self.fits_, type(self).__name__, self.gap_tolerance)
        for name in ("coef_", "support_", "support_vectors_", "n_support_", "_sparse_coef"):
            self.__dict__.pop(name, None)  # attributes of an earlier fit are removed
        self.intercept_ = models.intercepts
        if models.weights is not None:
            self.coef_ = models.weights
            if self._origin is not None:
                self._moved_intercept = self.intercept_
                self.intercept_ = self.intercept_ - self.coef_ @ self._origin
        coefs = models.coefs
        if coefs is None:
            return
        used = np.zeros(len(plan.labels), dtype=bool)
        used[coefs.indices] = True
        self.support_ = np.flatnonzero(used)
        classes = plan.labels[self.support_]
        classes = classes[classes != UNLABELLED]
        self.n_support_ = np.bincount(classes, minlength=len(self.classes_))
        places, shape = (np.cumsum(used) - 1)[coefs.indices], (len(models.fits), len(self.support_))
        self._sparse_coef = csr_array((coefs.data, places, coefs.indptr), shape=shape)
        if self.kernel != "linear":
            given = self.kernel == PRECOMPUTED
            self.support_vectors_ = np.empty((0, 0)) if given else plan.X[self.support_]


def refuse_masks(*arrays: Any) -> None:
    """Raise ValueError if an array has masked values, since scikit-learn would ignore the mask."""
    if any(isinstance(array, np.ma.MaskedArray) and array.mask.any() for array in arrays):
        raise ValueError("masked values in X, y or sample_weight; fill them or leave out the rows")


def _stacked(X: Any, more: Any) -> Any:
    """Return the rows of two arrays, as a sparse array if one of them is sparse."""
    if issparse(X) or issparse(more):
        return csr_array(vstack([csr_array(X), csr_array(more)]))
    return np.vstack([X, more])


class WeightedClassifier(PairwiseClassifier):
    """Base class of the machines whose `fit` accepts sample weights.

    `fit` removes rows of weight 0, and passes the other sample weights to `train` as
    ``problem.weights``. See also `row_weights`.
    """

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train one binary machine per pair of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 is equivalent to two equal rows. Rows of weight 0
            are removed, and negative weights raise an error.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        rows, labels, weights, counted = self._weighted(X, y, sample_weight)
        return self._fit(rows, labels, weights=weights)._renumbered(counted)

    def _weighted(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, NDArray, NDArray | None, NDArray | None]:
        """Return the validated rows, labels and weights without the rows of weight 0.

        The last returned array contains the indices of the returned rows; it is None if no weights
        are given.
        """
        rows, labels = self._validated(X, y)
        if sample_weight is None:
            return rows, labels, None, None
        refuse_masks(sample_weight)
        weights = _check_sample_weight(sample_weight, rows, dtype=float, ensure_non_negative=True)
        if weights.max() > LARGEST_WEIGHT:
            problem = f"sample_weight has values above {LARGEST_WEIGHT:.0e}"
            raise ValueError(f"{problem}, whose products are not finite; scale the weights")
        counted = np.flatnonzero(weights)
        rows = rows[counted][:, counted] if self.kernel == PRECOMPUTED else rows[counted]
        return rows, labels[counted], weights[counted], counted

    def _renumbered(self, counted: NDArray | None) -> Self:
        """Convert the indices in `support_` of the returned rows of `_weighted` to rows of X."""
        if counted is not None and hasattr(self, "support_"):
            self.support_ = counted[self.support_]
        return self

    def _validated(self, X: Any, *y: ArrayLike, reset: bool = True) -> Any:
        data = super()._validated(X, *y, reset=reset)
        weights = getattr(self, "class_weight", None)
        if y and isinstance(weights, Mapping):
            # the labels are checked here, since scikit-learn's compute_class_weight would treat the
            # labels "1" and 1 as equal
            classes = np.unique(data[1]).tolist()
            without = [label for label in classes if label not in weights]
            unknown = [label for label in weights if label not in classes]
            if without and unknown:
                raise ValueError(
                    f"The classes, {without}, are not in class_weight, "
                    f"and {unknown}, which are, do not occur in y"
                )
        return data


def row_weights(problem: BinaryProblem, class_weight: Any) -> NDArray | None:
    """Return the sample weight times the class weight of each row, or None if there are no weights.

    Rows with the label ``y = 0`` are not used in the training, and get the weight 0. A dict of
    class weights raises a ValueError if the problem does not state the labels of its classes.
    """
    if class_weight is None and problem.weights is None:
        return None
    y, s = problem.y, np.ones(len(problem.y)) if problem.weights is None else problem.weights
    if class_weight == "balanced":
        sums = [float(s[y == sign].sum()) for sign in (-1.0, 1.0)]
        negative, positive = (sum(sums) / (2.0 * own) for own in sums)
    elif isinstance(class_weight, Mapping):
        if not problem.classes:
            raise ValueError(
                "a grid search allows class_weight='balanced', but no class weights by label"
            )
        negative, positive = (float(class_weight.get(label, 1.0)) for label in problem.classes)
    else:
        negative = positive = 1.0
    return s * np.where(y > 0, positive, np.where(y < 0, negative, 0.0))


def slack_penalties(problem: BinaryProblem, C: float, class_weight: Any) -> float | NDArray:
    """Return the penalty ``C s_i`` on the slack of each row i, or C if no weights are given.

    The weights s_i are computed by `row_weights`.
    """
    s = row_weights(problem, class_weight)
    return C if s is None else C * s
