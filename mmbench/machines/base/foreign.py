"""Adapter for classifiers of other packages, for example of scikit-learn.

They have the same test rows and inner folds as the machines, but no certificate.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from time import perf_counter
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from mmbench.errors import Status, UserError, listed
from mmbench.machines.base.parameters import Param
from mmbench.machines.base.problem import Fit
from mmbench.machines.base.search_space import SearchSpace
from mmbench.machines.base.voting import class_pairs
from mmbench.memory import TrainingSize
from mmbench.plugins import estimator_maker, in_declared_types


class _AnyValue(Param):
    """Declaration of a parameter of a foreign classifier, which checks its parameters itself."""

    def problem(self, value: object) -> None:
        """Return no error message: every value is valid here."""


ANY_VALUE = _AnyValue(numeric=False)


@cache
def foreign_class(path: str) -> type["ForeignClassifier"]:
    """Return an adapter class for the classifier class or factory function ``module:name``.

    Raises UserError if the import fails, if a call without arguments fails, or if the call returns
    no classifier.
    """
    name = path.partition(":")[2]
    make = estimator_maker(path, ("fit", "get_params"), "classifier")
    try:
        known = make().get_params()
        good = is_classifier(make())
    except (Exception, SystemExit) as error:
        raise UserError(f"{path!r} returns no estimator without arguments: {error}") from None
    if not good:
        raise UserError(f"{path!r} is no classifier")
    known_and_any = {"parameters": dict.fromkeys(known, ANY_VALUE), "defaults": known}
    return type(name, (ForeignClassifier,), {"make": staticmethod(make), **known_and_any})


class ForeignClassifier:
    """Adapter of a classifier with ``fit``, ``predict``, ``get_params`` and ``set_params``.

    Parameters
    ----------
    **params
        Parameters of the foreign classifier.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels of the training rows.
    fits_ : list of Fit
        A single `Fit`, with the status "uncertified".
    """

    make: ClassVar[Callable[[], Any]]
    parameters: ClassVar[dict[str, Any]]
    defaults: ClassVar[dict[str, Any]]
    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf")
    search_space: ClassVar[SearchSpace] = SearchSpace()
    version: ClassVar[int] = 1
    kernel_versions: ClassVar[Mapping[str, int]] = MappingProxyType({})
    gap_tolerance: ClassVar[float] = float("inf")

    def __init__(self, **params: Any):
        self.estimator = type(self).make()
        self.set_params(**params)

    def __sklearn_clone__(self) -> Self:
        other = object.__new__(type(self))
        other.estimator = clone(self.estimator)
        return other

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the foreign classifier."""
        self.estimator.set_params(**in_declared_types(params, self.defaults))
        return self

    def bytes_needed(self, size: TrainingSize) -> float:
        """Return 0, since the memory of a foreign classifier is unknown."""
        return 0.0

    def fit(self, X: NDArray, y: NDArray) -> Self:
        """Fit the foreign classifier."""
        started = perf_counter()
        with warnings.catch_warnings():
            # the experiment runner sets `n_jobs`, even for estimators that have deprecated `n_jobs`
            warnings.filterwarnings("ignore", "'n_jobs' has no effect", FutureWarning)
            self.estimator.fit(X, y)
        self.classes_ = np.unique(y)
        seconds, unknown = perf_counter() - started, math.nan
        pair, route = tuple(self.classes_[[0, -1]]), type(self.estimator).__name__
        fit = Fit(Status.UNCERTIFIED, unknown, unknown, unknown, 0, seconds, 0, pair, route)
        self.fits_ = [fit]
        return self

    def predict(self, X: NDArray) -> NDArray:
        """Return the predicted labels, or raise ValueError if a prediction is not in `classes_`."""
        return self.classes_[self._predicted(X)]

    def pairwise_decision_function(self, X: NDArray) -> NDArray:
        """Return decision values of all pairs of classes; the predicted class has most votes.

        For two classes, the sign is the sign of the prediction, and the magnitude is from the
        classifier's decision value, or the distance of the predicted probability from 1/2. For more
        classes, or without both, the values are -1 and 1.

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
        """
        predicted = self._predicted(X)
        if len(self.classes_) == 2:
            signs, scores = np.where(predicted == 1, 1.0, -1.0), self.class_scores(X)
            if scores is None:
                return signs[:, None]
            magnitude = np.abs(scores[:, 1] - scores[:, 0]) / 2
            return (signs * np.maximum(magnitude, np.finfo(np.float32).tiny))[:, None]
        # in each pair, the first class gets the vote if it is predicted; otherwise the second class
        # gets the vote
        pairs = class_pairs(len(self.classes_))
        return np.column_stack([np.where(predicted == low, -1.0, 1.0) for low, _ in pairs])

    def _predicted(self, X: NDArray) -> NDArray:
        """Return the index in `classes_` of the predicted label of each row.

        Raises ValueError if a prediction is not a label, or is a code of a label, for example 0 for
        the first label.
        """
        name, given = type(self.estimator).__name__, np.asarray(self.estimator.predict(X))
        if given.shape not in [(X.shape[0],), (X.shape[0], 1)]:
            shape = " x ".join(map(str, given.shape))
            raise ValueError(f"{name} predicts an array of {shape}, not a label per row")
        hits = given.reshape(-1, 1) == self.classes_
        wrong = ~hits.any(axis=1)
        if wrong.any():
            labels = listed([repr(label) for label in self.classes_.tolist()])
            label = given.ravel()[wrong].tolist()[0]
            raise ValueError(f"{name} predicts {label!r}, which is no label: {labels}")
        theirs = np.ravel(getattr(self.estimator, "classes_", self.classes_))
        # the predictions are codes if all predictions are in the estimator's `classes_`, and this
        # array also contains values that are no labels
        if not np.isin(theirs, self.classes_).all() and np.isin(given, theirs).all():
            raise ValueError(f"{name} predicts its own classes {theirs.tolist()}, not the labels")
        return hits.argmax(axis=1)

    def class_scores(self, X: NDArray) -> NDArray | None:
        """Return class scores of shape (n_samples, n_classes); more probable classes have larger
        scores.

        For two classes, the scores are decision values or, without a decision function,
        probabilities. For more classes, probabilities take precedence, since a constant may be
        added to the decision values of a row (logits), so that the values of a class do not rank
        the rows. Returns None if there are neither, or one decision value per pair of classes.
        """
        probabilities = self.class_probabilities(X)
        given = hasattr(self.estimator, "decision_function")
        if not given or (len(self.classes_) > 2 and probabilities is not None):
            return probabilities
        params = self.estimator.get_params().items()
        if any(n.endswith("decision_function_shape") and v == "ovo" for n, v in params):
            return None
        return self._by_class(self.estimator.decision_function(X), lambda second: -second)

    def class_probabilities(self, X: NDArray) -> NDArray | None:
        """Return class probabilities of shape (n_samples, n_classes), or None if not available."""
        if not hasattr(self.estimator, "predict_proba"):
            return None
        return self._by_class(self.estimator.predict_proba(X), lambda second: 1 - second)

    def _by_class(self, values: NDArray, first: Callable[[NDArray], NDArray]) -> NDArray | None:
        """Return the columns of `values` in the order of `classes_`, or None for invalid columns.

        If `values` has only the column of the second of two classes, the function `first` computes
        the column of the first class.
        """
        values = np.atleast_2d(np.asarray(values).T).T
        if values.shape[1] == 1:
            values = np.hstack([first(values), values])
        theirs = np.asarray(getattr(self.estimator, "classes_", self.classes_))
        hits = self.classes_[:, None] == theirs
        # the columns are valid if each class has a column, and all values are finite
        known = hits.shape == (len(self.classes_), values.shape[1]) and hits.any(axis=1).all()
        return values[:, hits.argmax(axis=1)] if known and np.isfinite(values).all() else None
