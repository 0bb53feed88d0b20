"""Metrics of a classification, by scikit-learn: of predictions, of class scores, of probabilities.

A choice of parameters goes by one of them, and tables show them of stored predictions. One-vs-one
machines have as class scores what their `decision_function` returns: of two classes the decision
value, of more the votes, moved by less than half a vote by the summed decision values. Where a
metric is of one class, it is of the second of two, and of more than two the mean over classes of
each against the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError, did_you_mean
from mmbench.machines.base.voting import resolve_votes, scores_of_votes


@dataclass(frozen=True)
class Metric:
    """A number that says how good a classification is."""

    #: How tables call it.
    label: str
    #: What it is computed from: "predictions", "scores" or "probabilities".
    source: str
    #: Takes true classes of shape (n_samples,), what `source` says (predicted classes, or values of
    #: shape (n_samples, n_classes)) and the classes of its columns; NaN where it has no value.
    compute: Callable[[NDArray, NDArray, NDArray], float]
    #: What it is, for the notes of a table.
    about: str = ""
    smaller_is_better: bool = False

    def of_votes(
        self, truth: NDArray, counts: NDArray, confidence: NDArray, classes: NDArray
    ) -> float:
        """Return its value by votes and summed decision values, (n_samples, n_classes) each."""
        if self.source == "predictions":
            return self.compute(truth, classes[resolve_votes(counts)], classes)
        return self.compute(truth, scores_of_votes(counts, confidence), classes)


def _accuracy(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    return float(np.mean(predicted == truth))


def _balanced_accuracy(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import recall_score

    # balanced_accuracy_score is the same but for a warning where a class occurs in predictions only
    return float(recall_score(truth, predicted, labels=np.unique(truth), average="macro"))


def _f1_macro(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import f1_score

    return float(f1_score(truth, predicted, average="macro", zero_division=0))


def _mcc(truth: NDArray, predicted: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(truth, predicted))


def _auc(truth: NDArray, scores: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import roc_auc_score

    return _mean([roc_auc_score(own, values) for own, values in _one_class(truth, scores, classes)])


def _average_precision(truth: NDArray, scores: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import average_precision_score

    return _mean(
        [average_precision_score(own, values) for own, values in _one_class(truth, scores, classes)]
    )


def _one_class(
    truth: NDArray, scores: NDArray, classes: NDArray
) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield membership and scores of every class of which there are members and others."""
    for k in [1] if len(classes) == 2 else range(len(classes)):
        own = truth == classes[k]
        if own.any() and not own.all():
            yield own, scores[:, k]


def _mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def _log_loss(truth: NDArray, probabilities: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import log_loss

    own = truth[:, None] == classes
    if not own.any(axis=1).all():
        return float("nan")
    # rows as scikit-learn checks them: what float32 estimators return sums to 1 within 1e-7
    rows = probabilities / probabilities.sum(axis=1, keepdims=True)
    # by numbers: scikit-learn sorts labels, and "10" before "2"
    return float(log_loss(own.argmax(axis=1), rows, labels=np.arange(len(classes))))


def _brier(truth: NDArray, probabilities: NDArray, classes: NDArray) -> float:
    from sklearn.metrics import mean_squared_error

    # brier_score_loss knows two classes only before scikit-learn 1.7
    squares = len(classes) * mean_squared_error(truth[:, None] == classes, probabilities)
    return float(squares / 2 if len(classes) == 2 else squares)


METRICS = {
    "accuracy": Metric("Accuracy", "predictions", _accuracy),
    "balanced_accuracy": Metric(
        "Balanced accuracy",
        "predictions",
        _balanced_accuracy,
        "the mean over classes of the share of their test rows that are recognised",
    ),
    "f1_macro": Metric(
        "Macro F1",
        "predictions",
        _f1_macro,
        "the mean over classes of the harmonic mean of precision and recall",
    ),
    "mcc": Metric("MCC", "predictions", _mcc, "Matthews' correlation coefficient, from -1 to 1"),
    "auc": Metric(
        "AUC",
        "scores",
        _auc,
        "area under the ROC curve; of more than two classes the mean over classes of each against "
        "the rest. One-vs-one machines rank rows by the decision value of two classes, and of more "
        "by the votes of the class, moved by less than half a vote by the summed decision values",
    ),
    "average_precision": Metric(
        "Average precision",
        "scores",
        _average_precision,
        "of the second of two classes, of more the mean over classes of each against the rest; "
        "rows are ranked by decision values, of more than two classes by votes moved by less than "
        "half a vote by the summed decision values",
    ),
    "log_loss": Metric(
        "Log loss",
        "probabilities",
        _log_loss,
        "mean of -log of the probability of the true class; smaller is better",
        smaller_is_better=True,
    ),
    "brier": Metric(
        "Brier score",
        "probabilities",
        _brier,
        "mean squared distance of the probabilities to 0 and 1, summed over classes (of two "
        "classes: of the second one); smaller is better",
        smaller_is_better=True,
    ),
}

#: Metrics by which parameters may be chosen: no probabilities are made inside a search.
SELECTABLE = tuple(name for name, metric in METRICS.items() if metric.source != "probabilities")


def check_selectable(name: str) -> None:
    """Refuse a metric by which no parameters can be chosen.

    Raises
    ------
    UserError
    """
    if name in SELECTABLE:
        return
    if name in METRICS:
        raise UserError(f"parameters cannot be chosen by {name}: a search makes no probabilities")
    raise UserError(f"unknown metric {name!r}{did_you_mean(name, SELECTABLE)}")
