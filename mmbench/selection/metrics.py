"""Classification metrics of predictions, class scores or probabilities, mostly from scikit-learn.

Class scores are values of `decision_function`: for two classes the decision value, otherwise the
number of votes plus a term below 1/2 that increases with the sum of the class's decision values.
One-vs-rest metrics, such as the area under the ROC curve, are of the second of two classes, or
averaged over the classes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError, did_you_mean
from mmbench.machines.base.voting import resolve_votes, scores_of_votes

Compute = Callable[[NDArray, NDArray, NDArray], float]


@dataclass(frozen=True)
class Metric:
    """A classification metric."""

    #: Name in tables.
    label: str
    #: Input of the metric: "predictions", "scores" or "probabilities".
    source: str
    #: Function of (truth, given, classes): the metric, or NaN if it is not defined. ``truth`` has
    #: the true classes, shape (n_samples,). ``given`` has the predictions, shape (n_samples,), or
    #: the scores or probabilities (see `source`), shape (n_samples, n_classes), with the columns
    #: ``classes``.
    compute: Compute
    #: Definition of the metric, for the notes of a table.
    about: str = ""
    smaller_is_better: bool = False
    #: Condition under which the metric is defined, for the notes of a table.
    needs: str = "test rows of two trained classes"

    def of_votes(
        self, truth: NDArray, counts: NDArray, confidence: NDArray, classes: NDArray
    ) -> float:
        """Return the metric, given votes and summed decision values per test row and class.

        The shape of `counts` (the votes) and of `confidence` is (n_samples, n_classes).
        """
        if self.source == "predictions":
            return self.compute(truth, classes[resolve_votes(counts)], classes)
        return self.compute(truth, scores_of_votes(counts, confidence), classes)


def _accuracy(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    return float(np.mean(predicted == truth))


def _balanced_accuracy(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import recall_score

    # scikit-learn's balanced_accuracy_score would warn if a class occurs in the predictions only
    return float(recall_score(truth, predicted, labels=np.unique(truth), average="macro"))


def _of_predictions(name: str, **options: Any) -> Compute:
    """Return a function that computes scikit-learn's metric `name` from predictions.

    scikit-learn is imported when the function is called.
    """

    def compute(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
        return float(getattr(import_module("sklearn.metrics"), name)(truth, predicted, **options))

    return compute


def _of_ranks(name: str) -> Compute:
    """Return a function that computes scikit-learn's metric `name` from class scores.

    For more than two classes, the metric is averaged over the classes that contain at least one
    test row, but not all test rows.
    """

    def compute(truth: NDArray, scores: NDArray, classes: NDArray) -> float:
        values, score = [], getattr(import_module("sklearn.metrics"), name)
        for k in [1] if len(classes) == 2 else range(len(classes)):
            own = truth == classes[k]
            if own.any() and not own.all():
                values.append(score(own, scores[:, k]))
        return float(np.mean(values)) if values else float("nan")

    return compute


def _log_loss(truth: NDArray, probabilities: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import log_loss

    own = truth[:, None] == classes
    if not own.any(axis=1).all():
        return float("nan")
    # scikit-learn requires row sums of 1, from which float32 probabilities deviate by up to 1e-7
    rows = probabilities / probabilities.sum(axis=1, keepdims=True)
    # `log_loss` would sort labels of type str ("10" before "2"), so it is called with class indices
    return float(log_loss(own.argmax(axis=1), rows, labels=np.arange(len(classes))))


def _brier(truth: NDArray, probabilities: NDArray, classes: NDArray) -> float:
    own = truth[:, None] == classes
    # for a test row of a class without training rows, (1 - 0)^2 is added, since the true class has
    # the probability 0
    squares = np.square(own - probabilities).sum(axis=1) + ~own.any(axis=1)
    return float(squares.mean() / (2 if len(np.union1d(truth, classes)) == 2 else 1))


#: Explanation in table legends: how one-vs-one machines rank the test rows.
RANKED = (
    "One-vs-one machines rank the test rows by the decision value (two classes), or by the votes "
    "for the class and, among equal votes, by the sum of the decision values for the class. In a "
    "tied vote, the first of the tied classes has the largest score of the row"
)

METRICS = {
    "accuracy": Metric("Accuracy", "predictions", _accuracy),
    "balanced_accuracy": Metric(
        "Balanced accuracy",
        "predictions",
        _balanced_accuracy,
        "the mean over classes of the fraction of their test rows that are classified correctly",
    ),
    "f1_macro": Metric(
        "Macro F1",
        "predictions",
        _of_predictions("f1_score", average="macro", zero_division=0),
        "the mean over classes of the harmonic mean of precision and recall",
    ),
    "mcc": Metric(
        "MCC",
        "predictions",
        _of_predictions("matthews_corrcoef"),
        "Matthews' correlation coefficient, from -1 to 1",
    ),
    "auc": Metric(
        "AUC",
        "scores",
        _of_ranks("roc_auc_score"),
        "area under the ROC curve; with more than two classes, the mean over classes of the area "
        f"of the class against all others. {RANKED}",
    ),
    "average_precision": Metric(
        "Average precision",
        "scores",
        _of_ranks("average_precision_score"),
        "for the second of two classes; with more classes, the mean over classes of the value of "
        f"the class against all others. {RANKED}",
    ),
    "log_loss": Metric(
        "Log loss",
        "probabilities",
        _log_loss,
        "mean of -log of the probability of the true class; smaller is better",
        smaller_is_better=True,
        needs="training rows of every class in the test rows",
    ),
    "brier": Metric(
        "Brier score",
        "probabilities",
        _brier,
        "squared difference of probability and 1 (true class) or 0 (other class), summed over the "
        "classes, averaged over the test rows; with two classes, half of it; smaller is better",
        smaller_is_better=True,
    ),
}

#: Metrics by which a grid search can select parameters: all metrics that need no probabilities.
SELECTABLE = tuple(name for name, metric in METRICS.items() if metric.source != "probabilities")


def check_selectable(name: str) -> None:
    """Raise UserError if the metric `name` is unknown or cannot be used to select parameters."""
    if name not in METRICS:
        raise UserError(f"unknown metric {name!r}{did_you_mean(name, SELECTABLE)}")
    if name not in SELECTABLE:
        raise UserError(f"parameters cannot be selected by {name}, which needs probabilities")
