"""The estimator that all machines share.

A machine adds one method, `train`: a `BinaryProblem` in, a `BinaryModel` out (see `trainer` and
`problem`). Everything a user of scikit-learn expects (validation, one-vs-one, prediction, tie
rules) is here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_random_state,
    validate_data,
)

from mmbench.allowance import Allowance, allowed, delayed, time_is_up, within
from mmbench.kernels import Kernel
from mmbench.kernels.given import PRECOMPUTED, given_gram, given_values, is_given, part_of
from mmbench.machines.expansion import around, expand, far_origin, is_finite, linear_weights
from mmbench.machines.parameter import choice, parameter
from mmbench.machines.problem import (
    BinaryModel,
    BinaryProblem,
    judged,
    not_begun,
    out_of_time,
    warn_unless_solved,
    without_false_bounds,
)
from mmbench.machines.trainer import PairwiseTrainer
from mmbench.machines.voting import (
    class_pairs,
    encode_labels,
    ovr_scores,
    pair_rows,
    resolve_votes,
    votes,
)
from mmbench.solvers.blas_threads import blas_threads_for


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
