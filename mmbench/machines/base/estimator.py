"""What a machine implements, and what selection uses of it: the training of one pair of classes.

The estimator that all machines share.

A machine adds one method, `train`: a `BinaryProblem` in, a `BinaryModel` out (see `trainer` and
`problem`). Everything a user of scikit-learn expects (validation, one-vs-one, prediction, tie
rules) is here.

Weights of rows and of classes: a row of weight s counts as s rows that are all equal to it.

The two multiply. Wherever a machine sums or averages over training rows, the terms have these
factors s_i, and a count of rows is a sum of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray
from scipy.linalg import eigvalsh
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from mmbench.allowance import Allowance, allowed, blas_threads_for, delayed, time_is_up, within
from mmbench.errors import NotEnoughMemory
from mmbench.kernels import KERNELS, Kernel, row_squares
from mmbench.kernels.matrix import (
    PRECOMPUTED,
    given_gram,
    given_values,
    is_given,
    is_semidefinite,
    part_of,
)
from mmbench.machines.base.parameter import Declared, Param, choice, parameter, positive
from mmbench.machines.base.problem import (
    BinaryModel,
    BinaryProblem,
    around,
    expand,
    far_origin,
    is_finite,
    judged,
    linear_weights,
    not_begun,
    out_of_time,
    warn_unless_solved,
    without_false_bounds,
)
from mmbench.machines.base.search_space import (
    LEAST_CHECKED_BYTES,
    MemoryNeeds,
    SearchSpace,
    cache_bytes,
    refuse_what_does_not_fit,
)
from mmbench.machines.base.voting import (
    class_pairs,
    encode_labels,
    ovr_scores,
    pair_rows,
    resolve_votes,
    votes,
)


def kernel_parameter(default: str = "rbf", more: str = "") -> Any:
    """Declare the kernel of a machine; `more` is what it says of its own."""
    return parameter(
        default,
        Param(numeric=False, choices=(*KERNELS, PRECOMPUTED), function=True),
        "``u'v``, ``(1 + u'v)**degree`` or ``exp(-gamma ||u - v||^2)``; \"precomputed\": X is the "
        "kernel matrix, (n_samples, n_samples) in `fit` and (n_rows, n_samples) in `predict`; or a "
        f"function that takes X and Z and returns their kernel matrix.{more}",
    )


class PairwiseTrainer(Declared):
    """The trainer of a two-class machine, with its parameters.

    A subclass declares its parameters (see `parameter`) and implements `train`. Selection
    calls `with_params`, `kernel_for`, `train_path` and `train_folds`, which a machine may override
    where it shares work between grid points or folds, and reads these class attributes:

    - ``kernels``: names of the kernels for which the machine is defined; with one that is not
      linear it also takes kernel matrices and functions;
    - ``parameters``: the declared parameters by name;
    - ``search_space``: how its parameters are searched, a `SearchSpace`;
    - ``memory_needs``: what a training holds at once, a `MemoryNeeds`;
    - ``sparse_input``: whether rows may be sparse; they are then never made dense;
    - ``translation_invariant``: whether a linear machine is the same for rows that are all moved;
    - ``convex_on_any_matrix``: whether its problem is convex on a kernel matrix with negative
      eigenvalues too; its bounds then hold;
    - ``gap_tolerance_factor``: largest relative gap of an optimal solution, in units of ``tol``;
    - ``version``: raised whenever a change may alter results; part of every record's key;
    - ``kernel_versions``: the same for what alters those of one kernel only, by its name.
    """

    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf")
    search_space: ClassVar[SearchSpace] = SearchSpace(
        {"gamma": ("gamma", tuple(2.0**k for k in range(-15, 4, 2)))},  # libsvm's guide
        prefer={"C": "small", "gamma": "small", "degree": "small"},
    )
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds()
    sparse_input: ClassVar[bool] = False
    translation_invariant: ClassVar[bool] = False
    convex_on_any_matrix: ClassVar[bool] = False
    gap_tolerance_factor: ClassVar[float] = 1.0
    version: ClassVar[int] = 1
    kernel_versions: ClassVar[Mapping[str, int]] = MappingProxyType({})

    kernel: Any = kernel_parameter()
    gamma: float | str = parameter(
        "scale",
        Param(low=0, open_low=True, choices=("scale", "auto")),
        'Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``, "auto" ``1 / n_features``.',
    )
    gamma_scaling: str = parameter(
        "none",
        choice("none", "per_feature"),
        '"per_feature" divides gamma by the number of features.',
    )
    degree: int = parameter(3, Param(low=1, integer=True), "Degree of ``poly``.")
    solver: str = parameter(
        "auto", choice("auto", "reference"), "Which route solves the optimisation problem."
    )
    tol: float = parameter(1e-6, positive(), "Tolerance of the solver.")
    ties: str = parameter(
        "lowest",
        choice("lowest", "random"),
        "Which of several classes with most votes is predicted.",
    )
    random_state: int | None = parameter(
        None, Param(low=0, integer=True, optional=True), 'Seed of ``ties="random"``.'
    )
    n_jobs: int | None = parameter(
        None, Param(integer=True, optional=True), "Threads over pairs of classes."
    )
    time_limit: float | None = parameter(
        None,
        positive(optional=True),
        "Seconds for `fit`, of which the pairs of classes that are left share what is left. A "
        "solver that reaches it ends with the best that it has, some steps later: see `status` and "
        "`gap` in `fits_`. What has a closed form does not ask. Pairs for which nothing is left "
        "are not begun, and predict the larger class.",
    )

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        """Solve one binary problem: the method that a machine has to implement.

        Parameters
        ----------
        problem : BinaryProblem
        warm : BinaryModel, optional
            The solution of a neighbouring problem on the same rows, to start from.

        Returns
        -------
        BinaryModel
            With its certificate, whose `pair` the caller sets.
        """
        raise TypeError(f"{type(self).__name__} does not implement train")

    def path_key(self, point: Mapping[str, Any]) -> tuple:
        """Return the sort key of a grid point on a warm-started path: C ascending by default."""
        return (point.get("C", 0),)

    def train_path(
        self, problem: BinaryProblem, points: Sequence[Mapping[str, Any]]
    ) -> list[BinaryModel]:
        """Train at every grid point of one kernel; the models come back in the order of `points`.

        Each training starts from the one before it on the path. A machine that shares more than
        that between points (an eigendecomposition, class sums) overrides this.
        """
        models: list[BinaryModel | None] = [None] * len(points)
        model = None
        for k in sorted(range(len(points)), key=lambda k: self.path_key(points[k])):
            model = models[k] = self.with_params(points[k]).train(problem, model)
        return models  # type: ignore[return-value]

    def train_folds(
        self, problems: Iterable[BinaryProblem], points: Sequence[Mapping[str, Any]]
    ) -> Iterator[list[BinaryModel]]:
        """Train a path on every fold of a cross-validation, one fold's matrix alive at a time.

        A machine that shares work between folds overrides this.
        """
        for problem in problems:
            yield self.train_path(problem, points)

    def with_params(self, params: Mapping[str, Any]) -> Self:
        """Return an unfitted copy with other parameters, at a fraction of the cost of `clone`.

        `clone` inspects signatures and copies deeply: on a path of a thousand small problems that
        takes longer than the training.
        """
        other = copy(self)
        other.__dict__.update(params)
        return other

    def kernel_for(self, X: NDArray, weights: NDArray | None = None) -> Kernel:
        """Return the kernel with the width and scaling that follow from the training rows.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        weights : ndarray of shape (n_samples,), optional
            How often a row counts in the variance by which ``gamma="scale"`` is set.

        Raises
        ------
        ValueError
            If it has values on these rows that are not finite.
        """
        if is_given(self.kernel):
            return Kernel(PRECOMPUTED)
        gamma = self.gamma if self.kernel == "rbf" else 1.0
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        if gamma == "scale":
            with np.errstate(over="ignore", invalid="ignore"):  # refused below
                variance = X.shape[1] * _variance(X, weights)
            gamma = 1.0 / variance if variance > np.finfo(float).tiny else 1.0
        if self.gamma_scaling == "per_feature":
            gamma = gamma / X.shape[1]
        kernel = Kernel(self.kernel, gamma=float(gamma), degree=self.degree)
        # a parameter of the machines that were published with it
        trace = getattr(self, "kernel_scaling", "none") == "trace"
        kernel = kernel.trace_normalised(X, weights) if trace else kernel
        if not kernel.is_finite(X):
            raise ValueError("the kernel matrix has values that are not finite; scale the data")
        return kernel

    @classmethod
    def needs_at(cls, params: Mapping[str, Any]) -> MemoryNeeds:
        """Return what a training with some parameters holds, where these change it."""
        return cls.memory_needs

    def check_memory(self, n_rows: int, n_features: int, weighted: bool = False) -> None:
        """Refuse a training that needs more memory than is free, before anything is computed.

        Parameters
        ----------
        n_rows : int
            Of the pair of classes.
        n_features : int
        weighted : bool, default=False
            Whether rows have weights.
        """
        needs, shape = self.needs_at(vars(self)), (n_rows, n_features)
        needs = needs.with_weights() if weighted else needs
        by_reference = self.solver == "reference"
        if needs.training_bytes(self.kernel, shape, by_reference) > LEAST_CHECKED_BYTES:
            most = cache_bytes(getattr(self, "cache_size", None))
            needed = needs.training_bytes(self.kernel, shape, by_reference, most)
            task = f"{type(self).__name__} on {n_rows} rows with kernel {self.kernel!r}"
            refuse_what_does_not_fit(task, needed)

    @contextmanager
    def indefinite_named(self, gram: NDArray | None) -> Iterator[NDArray | None]:
        """Warn of a given matrix that makes a problem nonconvex, and name it where training fails.

        Duals are unbounded then, and factors empty: what solvers say of that names no cause.

        Parameters
        ----------
        gram : ndarray of shape (n_samples, n_samples) or None

        Yields
        ------
        ndarray of shape (n_samples, n_samples) or None
            The matrix if it makes the problem nonconvex.
        """
        if gram is None or self.convex_on_any_matrix or is_semidefinite(gram):
            yield None
            return
        machine, least = type(self).__name__, float(eigvalsh(gram, subset_by_index=[0, 0])[0])
        flaw = f"kernel matrix is not positive semidefinite: its least eigenvalue is {least:.3g}"
        remedy = f"add at least {-least:.3g} to its diagonal, or set negative eigenvalues to 0"
        warnings.warn(
            f"the {flaw}; {machine} solves no convex problem then, and has no bound in `fits_`; "
            f"{remedy}",
            stacklevel=5,  # the caller of `fit`
        )
        try:
            with np.errstate(all="ignore"):  # roots of negative squares: it has been said why
                yield gram
        except NotEnoughMemory:
            raise
        except (ArithmeticError, ValueError) as error:
            raise ValueError(f"the {flaw}; {machine} has no solution on it; {remedy}") from error

    @property
    def gap_tolerance(self) -> float:
        """Largest relative gap of a solution that counts as optimal."""
        return self.gap_tolerance_factor * self.tol

    @property
    def violation_tolerance(self) -> float:
        """Largest violation of a constraint by a solution that counts as optimal."""
        return self.tol


def _variance(X: Any, weights: NDArray | None = None) -> float:
    """Return the variance of all entries, those that a sparse array does not hold included."""
    if weights is not None:
        share = weights / (weights.sum() * X.shape[1])
        mean = float(share @ np.asarray(X.sum(axis=1)).ravel())
        return float(share @ row_squares(X)) - mean**2
    if isinstance(X, np.ndarray):
        return float(X.var())
    return float(row_squares(X).sum()) / np.prod(X.shape) - float(X.mean()) ** 2


def kernel_scaling() -> Any:
    """Declare the scaling of polynomial kernels, which some of the papers have."""
    return parameter(
        "none",
        choice("none", "trace"),
        '"trace" divides ``poly`` by the mean of k(x, x) over the training rows.',
        after="degree",
    )


class PairwiseClassifier(PairwiseTrainer, ClassifierMixin, BaseEstimator):
    """Base of the machines: a two-class trainer, extended to many classes one-vs-one.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    fits_ : list of Fit
        The certificate of each pair of classes.
    kernels_ : list of Kernel
        The kernel of each pair, with the gamma that "scale" came to.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        Expansion of w over the training rows (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows with a non-zero coefficient in some pair (``rbf``, ``poly``).
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.
    """

    #: What rows were counted from in training a linear machine; with its intercept from there, no
    #: digit of a decision is lost far from zero.
    _origin: NDArray | None = None
    _intercept_there: NDArray

    def fit(self, X: NDArray, y: NDArray) -> PairwiseClassifier:
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
        return self._fit(X, y, None)

    def fit_pairs(
        self, X: NDArray, y: NDArray, pair_params: Sequence[Mapping[str, Any]]
    ) -> PairwiseClassifier:
        """Train one binary machine per pair of classes, each with parameters of its own.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        pair_params : sequence of dict
            Parameters that differ from those of this estimator, one dict a pair in the order of
            `class_pairs`.

        Returns
        -------
        self
        """
        return self._fit(X, y, pair_params)

    def pairwise_decision_function(self, X: NDArray) -> NDArray:
        """Return the decision value of every binary machine.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
            Column k belongs to `fits_[k].pair`; positive values speak for its second class.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        if hasattr(self, "coef_"):
            if self._origin is None:
                return X @ self.coef_.T + self.intercept_
            return around(X, self._origin) @ self.coef_.T + self._intercept_there
        if is_given(self.kernel):
            values = given_values(self.kernel, X, self.support_vectors_, self.support_)
            return values @ self.dual_coef_.T + self.intercept_
        out = np.tile(self.intercept_, (X.shape[0], 1))
        for kernel in dict.fromkeys(self.kernels_):
            pairs = np.array([k for k, other in enumerate(self.kernels_) if other == kernel])
            support = np.flatnonzero(self.dual_coef_[pairs].any(axis=0))
            out[:, pairs] += expand(
                kernel, X, self.support_vectors_[support], self.dual_coef_[np.ix_(pairs, support)]
            )
        return out

    def decision_function(self, X: NDArray) -> NDArray:
        """Return decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: ``f(x)``, positive for ``classes_[1]``. More: the votes of each class,
            moved by less than half a vote by the summed decision values.
        """
        decisions = self.pairwise_decision_function(X)
        if len(self.classes_) == 2:
            return decisions[:, 0]
        return ovr_scores(decisions, len(self.classes_))

    def predict(self, X: NDArray) -> NDArray:
        """Return the class with most votes; `ties` says which of several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decisions = self.pairwise_decision_function(X)
        counts = votes(decisions, len(self.classes_))
        rng = check_random_state(self.random_state) if self.ties == "random" else None
        return self.classes_[resolve_votes(counts, rng)]

    # -- inside ----------------------------------------------------------------------------

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == PRECOMPUTED
        tags.input_tags.sparse = self.sparse_input and not tags.input_tags.pairwise
        return tags

    def _validated(self, X: Any, *y: NDArray, reset: bool = True) -> Any:
        """Return rows, and labels if they are given, as all machines take them."""
        accepted = "csr" if self.__sklearn_tags__().input_tags.sparse else False
        data = validate_data(self, X, *y, dtype=np.float64, accept_sparse=accepted, reset=reset)
        if reset and self.kernel == PRECOMPUTED and data[0].shape[0] != data[0].shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix. "
                f"Input is a {data[0].shape[0]}x{data[0].shape[1]} matrix."
            )
        return data

    def _check_parameters(self) -> None:
        for name, value in self.get_params(deep=False).items():
            problem = self.parameters[name].problem(value)
            if problem:
                raise ValueError(f"{type(self).__name__}: {name} {problem}")
        if is_given(self.kernel):
            if set(self.kernels) <= {"linear"}:
                raise ValueError(
                    f"{type(self).__name__} needs features: it has no kernel but 'linear'"
                )
        elif self.kernel not in self.kernels:
            raise ValueError(
                f"{type(self).__name__} has no kernel {self.kernel!r}, only {self.kernels}"
            )

    def _fit(
        self,
        X: NDArray,
        y: NDArray,
        pair_params: Sequence[Mapping[str, Any]] | None,
        weights: NDArray | None = None,
    ) -> PairwiseClassifier:
        self._check_parameters()
        X, y = self._validated(X, y)
        X, y, weights, counted = self._counted(X, y, weights)
        self.classes_, labels = encode_labels(y)
        gram = given_gram(self.kernel, X)
        self.__dict__.pop("coef_", None)  # a refit with another kernel leaves nothing behind
        pairs = class_pairs(len(self.classes_))
        machines = [clone(self).set_params(**params) for params in pair_params or [{}] * len(pairs)]
        for machine in machines:
            machine._check_parameters()
        self.kernels_ = [machine.kernel_for(X, weights) for machine in machines]
        moves = self.kernel == "linear" and self.translation_invariant
        self._origin = far_origin(X) if moves else None
        X = around(X, self._origin)
        rows = [pair_rows(labels, i, j) for i, j in pairs]
        largest = max(len(index) for index, _ in rows)
        machines[0].check_memory(largest, X.shape[1], weights is not None)
        named = [tuple(self.classes_[list(pair)]) for pair in pairs]
        own = [None if weights is None else weights[index] for index, _ in rows]
        with blas_threads_for(largest), self.indefinite_named(gram) as indefinite:
            shares = self._shares_of_time(len(pairs))
            models = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                delayed(_train_pair)(machine, *_data_of(X, gram, index), signs, kernel, *rest)
                for machine, kernel, (index, signs), *rest in zip(
                    machines, self.kernels_, rows, named, own, shares, strict=True
                )
            )
        of_pairs = [index for index, _ in rows]
        self._store(X, of_pairs, without_false_bounds(models, indefinite, of_pairs))
        self._renumber(counted)
        return self

    def _counted(
        self, X: Any, y: NDArray, weights: NDArray | None
    ) -> tuple[Any, NDArray, NDArray | None, NDArray | None]:
        """Return the rows with a weight above zero, their labels and weights, and where they are.

        Without weights all rows count, and the last two are None.
        """
        if weights is None:
            return X, y, None, None
        weights = _check_sample_weight(weights, X, dtype=float, ensure_non_negative=True)
        counted = np.flatnonzero(weights)
        X = X[counted][:, counted] if self.kernel == PRECOMPUTED else X[counted]
        return X, y[counted], weights[counted], counted

    def _shares_of_time(self, n_pairs: int) -> list[tuple[Allowance, int]] | list[None]:
        """Return the time of all pairs, and how many trainings are left when each one starts."""
        if self.time_limit is None:
            return [None] * n_pairs
        time, at_a_time = allowed(self.time_limit), effective_n_jobs(self.n_jobs)
        return [(time, -(-left // at_a_time)) for left in range(n_pairs, 0, -1)]

    def _renumber(self, counted: NDArray | None) -> None:
        """Number support vectors among all rows, those of weight 0 too."""
        if counted is not None and self.kernel != "linear":
            self.support_: NDArray = counted[self.support_]

    def _store(self, X: NDArray, rows: list[NDArray], models: Sequence[BinaryModel]) -> None:
        """Set the fitted attributes; expansions of all pairs share one set of support vectors."""
        pairs = [(self.classes_[i], self.classes_[j]) for i, j in class_pairs(len(self.classes_))]
        for model, (low, high) in zip(models, pairs, strict=True):
            if not is_finite(model):
                raise ValueError(f"the solution of {low!s}/{high!s} is not finite; scale the data")
        self.fits_ = [
            judged(replace(model.fit, pair=pair), self.gap_tolerance, self.violation_tolerance)
            for model, pair in zip(models, pairs, strict=True)
        ]
        for fit in self.fits_:
            warn_unless_solved(fit, type(self).__name__, self.gap_tolerance)
        self.intercept_ = np.array([m.intercept for m in models])
        if self.kernel == "linear":
            self.coef_ = np.array(
                [linear_weights(_rows(X, r), m) for r, m in zip(rows, models, strict=True)]
            )
            if self._origin is not None:
                self._intercept_there = self.intercept_
                self.intercept_ = self.intercept_ - self.coef_ @ self._origin
            return
        dual_coef = np.zeros((len(models), X.shape[0]))
        for k, model in enumerate(models):
            dual_coef[k, rows[k]] = model.coef
        self.support_ = np.flatnonzero(dual_coef.any(axis=0))
        self.support_vectors_ = np.empty((0, 0)) if self.kernel == PRECOMPUTED else X[self.support_]
        self.dual_coef_ = dual_coef[:, self.support_]


def _rows(X: NDArray, index: NDArray) -> NDArray:
    """Return some rows, in ascending order: without a copy if they are all."""
    return X if len(index) == X.shape[0] else X[index]


def _data_of(X: NDArray, gram: NDArray | None, index: NDArray) -> tuple[NDArray, NDArray | None]:
    """Return some rows and their kernel matrix; where that is given, its rows stand for them."""
    if gram is None:
        return _rows(X, index), None
    part = part_of(gram, index)
    return part, part


def _train_pair(
    machine: PairwiseClassifier,
    X: NDArray,
    gram: NDArray | None,
    signs: NDArray,
    kernel: Kernel,
    classes: tuple,
    weights: NDArray | None,
    share: tuple[Allowance, int] | None,
) -> BinaryModel:
    """Train on two classes; one problem at a time, as its kernel values go with it."""
    problem = BinaryProblem(X, signs, kernel, gram, classes, weights)
    with within(allowed(share and share[0].seconds / share[1])) as time:
        model = not_begun(problem) if time_is_up() else machine.train(problem)
    return out_of_time(model) if time.exceeded else model


def class_weight(after: str = "C") -> Any:
    """Declare the weights of classes."""
    return parameter(
        None,
        Param(numeric=False, choices=("balanced",), optional=True, mapping=True),
        'Factor of the weights of rows: a dict by class; "balanced", for each pair, is '
        "``n / (2 n_class)``.",
        after=after,
    )


def row_weights(problem: BinaryProblem, class_weight: Any) -> NDArray | None:
    """Return the weights s of the rows, those of their classes included; None where all are 1.

    Parameters
    ----------
    problem : BinaryProblem
        Its weights are factors of `s`. Rows with ``y = 0``, which are none of the problem, have 0.
    class_weight : dict, "balanced" or None

    Raises
    ------
    ValueError
        If weights by label are asked for where labels are not known: in a grid search.
    """
    if class_weight is None and problem.weights is None:
        return None
    y, s = problem.y, np.ones(len(problem.y)) if problem.weights is None else problem.weights
    if class_weight == "balanced":
        sums = [float(s[y == sign].sum()) for sign in (-1.0, 1.0)]
        negative, positive = (sum(sums) / (2.0 * own) for own in sums)
    elif isinstance(class_weight, Mapping):
        if not problem.classes:
            raise ValueError("class_weight by label has no grid search, only 'balanced' has")
        negative, positive = (float(class_weight.get(label, 1.0)) for label in problem.classes)
    else:
        negative = positive = 1.0
    return s * np.where(y > 0, positive, np.where(y < 0, negative, 0.0))


class WeightedClassifier(PairwiseClassifier):
    """Base of the machines whose `fit` takes weights of rows.

    `train` finds them as ``problem.weights``, rows of weight 0 left out; see `row_weights`.
    """

    def fit(self, X: NDArray, y: NDArray, sample_weight: NDArray | None = None) -> Self:
        """Train one binary machine per pair of classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows: one of weight 2 counts as two that are equal, rows of weight 0
            are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter or the data are invalid.
        """
        self._fit(X, y, None, sample_weight)
        return self

    def _validated(self, X: Any, *y: NDArray, reset: bool = True) -> Any:
        data = super()._validated(X, *y, reset=reset)
        weights = getattr(self, "class_weight", None)
        if y and isinstance(weights, Mapping):
            _check_labels(weights, np.unique(data[1]).tolist())
        return data


def _check_labels(class_weight: Mapping[Any, float], classes: list) -> None:
    """Refuse weights of labels that do not occur, where a class has none: as scikit-learn does.

    Its `compute_class_weight` would take the label "1" for the number 1.
    """
    without = [label for label in classes if label not in class_weight]
    unknown = [label for label in class_weight if label not in classes]
    if without and unknown:
        raise ValueError(
            f"The classes, {without}, are not in class_weight, "
            f"and {unknown}, which are, do not occur in y"
        )
