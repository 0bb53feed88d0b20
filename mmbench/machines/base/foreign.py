"""A classifier of scikit-learn, or one that behaves like it, beside the machines of this package.

It is selected on the same inner folds and tested on the same rows, but solves no problem that is
stated here: its fits have no certificate.
"""

import math
import sys
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from time import perf_counter
from types import FunctionType, MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from mmbench.errors import Status, UserError
from mmbench.machines.base.problem import Fit
from mmbench.machines.base.search_space import MemoryNeeds, SearchSpace
from mmbench.machines.base.voting import class_pairs


class AnyValue:
    """The declaration of a parameter of which nothing is known; the estimator judges its values."""

    numeric = False

    def problem(self, value: object) -> str | None:
        """Return None: every value may be valid."""
        return None


class ForeignClassifier:
    """Adapter of a classifier with ``fit``, ``predict`` and parameters.

    Parameters
    ----------
    **params
        Of the estimator.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        One, with the status "uncertified".
    """

    make: ClassVar[Callable[[], Any]]
    parameters: ClassVar[dict[str, Any]]
    kernels: ClassVar[tuple[str, ...]] = ("linear", "poly", "rbf")
    search_space: ClassVar[SearchSpace] = SearchSpace()
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=0)
    version: ClassVar[int] = 1
    kernel_versions: ClassVar[Mapping[str, int]] = MappingProxyType({})
    gap_tolerance: ClassVar[float] = float("inf")

    def __init__(self, **params: Any):
        self.estimator = type(self).make().set_params(**params)

    def __sklearn_clone__(self) -> Self:
        other = object.__new__(type(self))
        other.estimator = clone(self.estimator)
        return other

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator."""
        self.estimator.set_params(**params)
        return self

    def fit(self, X: NDArray, y: NDArray) -> Self:
        """Fit the estimator."""
        started = perf_counter()
        with warnings.catch_warnings():
            # the runner sets n_jobs wherever an estimator still has it
            warnings.filterwarnings("ignore", "'n_jobs' has no effect", FutureWarning)
            self.estimator.fit(X, y)
        self.classes_ = self.estimator.classes_
        self.fits_ = [
            Fit(
                Status.UNCERTIFIED,
                objective=math.nan,
                bound=math.nan,
                max_violation=math.nan,
                iterations=0,
                seconds=perf_counter() - started,
                n_support=0,
                pair=tuple(self.classes_[[0, -1]]),
                route=type(self.estimator).__name__,
            )
        ]
        return self

    @classmethod
    def needs_at(cls, params: Mapping[str, Any]) -> MemoryNeeds:
        """Return what is known of the memory of a training: nothing, whatever its parameters."""
        return cls.memory_needs

    def predict(self, X: NDArray) -> NDArray:
        """Return the predictions of the estimator."""
        return self.estimator.predict(X)

    def class_probabilities(self, X: NDArray) -> NDArray | None:
        """Return the probability of each class, (n_samples, n_classes); None without such."""
        if not hasattr(self.estimator, "predict_proba"):
            return None
        return _finite(self.estimator.predict_proba(X))

    def class_scores(self, X: NDArray) -> NDArray | None:
        """Return a value that rises with the chance of each class, (n_samples, n_classes).

        The decision function of the estimator, else its probabilities; None where it has neither,
        or decides between pairs of classes.
        """
        if not hasattr(self.estimator, "decision_function"):
            return self.class_probabilities(X)
        params = self.estimator.get_params().items()
        if any(n.endswith("decision_function_shape") and v == "ovo" for n, v in params):
            return None
        values = self.estimator.decision_function(X)
        return _finite(np.column_stack([-values, values]) if values.ndim == 1 else values)

    def pairwise_decision_function(self, X: NDArray) -> NDArray:
        """Return values by whose votes the class that the estimator predicts wins.

        Of two classes the magnitude is that of the estimator's decision value, or the distance of
        its probability to 1/2, where it has them; else 1.

        Returns
        -------
        ndarray of shape (n_samples, n_pairs)
        """
        predicted = np.searchsorted(self.classes_, self.estimator.predict(X))
        if len(self.classes_) == 2:
            return np.where(predicted == 1, 1.0, -1.0)[:, None] * self._magnitude(X)[:, None]
        # in a pair without the predicted class the later one gets the vote
        pairs = class_pairs(len(self.classes_))
        return np.column_stack([np.where(predicted == low, -1.0, 1.0) for low, _ in pairs])

    def _magnitude(self, X: NDArray) -> NDArray:
        if hasattr(self.estimator, "decision_function"):
            values = self.estimator.decision_function(X)
        elif hasattr(self.estimator, "predict_proba"):
            values = self.estimator.predict_proba(X)[:, 1] - 0.5
        else:
            values = np.ones(len(X))
        return np.maximum(np.abs(values), np.finfo(np.float32).tiny)


def _finite(values: NDArray) -> NDArray | None:
    return values if np.isfinite(values).all() else None


@cache
def foreign_class(path: str) -> type[ForeignClassifier]:
    """Return the adapter class of what ``module:name`` names, a class or a function that makes one.

    Raises
    ------
    UserError
        If it cannot be imported, cannot be made without arguments, or is no classifier.
    """
    name = path.partition(":")[2]
    make = imported(path)
    # what is called runs: nothing but a class of estimators or a function of a module of one's own
    library = str(getattr(make, "__module__", "")).partition(".")[0] in sys.stdlib_module_names
    estimators = isinstance(make, type) and hasattr(make, "fit") and hasattr(make, "get_params")
    if library or not (estimators or isinstance(make, FunctionType)):
        raise UserError(f"{path!r} is no estimator: neither its class nor a function that makes it")
    try:
        parameters = dict.fromkeys(make().get_params(), AnyValue())
        good = is_classifier(make())
    except (Exception, SystemExit) as error:
        raise UserError(f"{path!r} makes no estimator without arguments: {error}") from None
    if not good:
        raise UserError(f"{path!r} is no classifier")
    return type(name, (ForeignClassifier,), {"make": staticmethod(make), "parameters": parameters})


def imported(path: str) -> Any:
    """Return what ``module:name`` names.

    Raises
    ------
    UserError
    """
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise UserError(f"{path!r} cannot be imported: {error}") from None
