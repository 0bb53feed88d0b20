"""One-vs-one classification: the order of the pairs of classes, votes, and tie rules.

A positive decision value of the pair i < j is a vote for class j, as in scikit-learn for two
classes. Arrays over pairs have shape (n_samples, n_pairs), over classes (n_samples, n_classes).
"""

from functools import cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

#: Class index of rows without a label.
UNLABELLED = -1


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes (i, j) with i < j, in the column order of arrays over pairs.

    Examples
    --------
    >>> class_pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return list(combinations(range(n_classes), 2))


def votes(decisions: NDArray, n_classes: int) -> NDArray:
    """Count the votes for each class.

    A decision value of zero is a vote for the second class of the pair.
    """
    signs = _voters(n_classes)
    for_first = np.arange(n_classes - 1, -1, -1)  # votes if all decision values are negative
    return (for_first + (signs @ (decisions >= 0).T.astype(float)).T).astype(np.int64)


@cache
def _voters(n_classes: int) -> csr_array:
    """Return the transpose of `_signs` as a sparse array."""
    return csr_array(_signs(n_classes).T)


def _signs(n_classes: int) -> NDArray:
    """Return an array with one row per pair of classes and one column per class.

    The two classes of a pair have the entries -1.0 and +1.0, and the other classes have 0.0.
    """
    low, high = np.transpose(class_pairs(n_classes))
    return np.eye(n_classes)[high] - np.eye(n_classes)[low]


def resolve_votes(counts: NDArray, rng: np.random.RandomState | None = None) -> NDArray:
    """Return, for each row, the index of the class with most votes.

    If several classes have most votes and `rng` is None, the first of these classes is returned, as
    in libsvm. If `rng` is given, one of these classes is drawn uniformly.
    """
    if rng is None:
        return counts.argmax(axis=1)
    tied = counts == counts.max(axis=1, keepdims=True)
    return np.where(tied, rng.random_sample(counts.shape), -1.0).argmax(axis=1)


def expected_errors(counts: NDArray, truth: NDArray) -> float:
    """Return the expected number of prediction errors if tied votes are resolved at random.

    Examples
    --------
    >>> expected_errors(np.array([[2, 2, 0], [0, 1, 3]]), np.array([0, 2]))
    0.5
    """
    tied = counts == counts.max(axis=1, keepdims=True)
    hit = tied[np.arange(len(counts)), truth]
    return float(np.sum(1.0 - hit / tied.sum(axis=1)))


def n_ties(counts: NDArray) -> int:
    """Return the number of rows in which several classes have the maximum number of votes."""
    return int(((counts == counts.max(axis=1, keepdims=True)).sum(axis=1) > 1).sum())


def ovr_scores(decisions: NDArray, n_classes: int, break_ties: bool = False) -> NDArray:
    """Return class scores: the votes, plus a term in (-1/3, 1/3) that depends on decision values.

    If `break_ties` is false, the class selected by `resolve_votes` has the largest score.
    """
    counts = votes(decisions, n_classes)
    return scores_of_votes(counts, summed_decisions(decisions, n_classes), break_ties)


def summed_decisions(decisions: NDArray, n_classes: int) -> NDArray:
    """Sum, for each class, the decision values of the pairs that contain this class.

    The sign of a decision value is changed if the class is the first class of the pair.
    """
    return decisions @ _signs(n_classes)


def scores_of_votes(counts: NDArray, confidence: NDArray, break_ties: bool = False) -> NDArray:
    """Return class scores from votes (`counts`) and summed decision values (`confidence`).

    For two classes, the scores are the summed decision values. If there are more than two classes
    and `break_ties` is true, the summed decision values rank the classes with equal votes. If
    `break_ties` is false, the class selected by `resolve_votes` has the largest score.
    """
    if counts.shape[1] == 2:
        return confidence
    scores = counts + confidence / (3 * (np.abs(confidence) + 1))
    if not break_ties:
        scores[np.arange(len(scores)), resolve_votes(counts)] = scores.max(axis=1)
    return scores


def pair_rows(labels: NDArray, negative: int, positive: int) -> tuple[NDArray, NDArray]:
    """Return the ascending indices of the rows of two classes, and their labels (-1.0, +1.0).

    Rows with the class index `UNLABELLED` are included, with the label 0.0.
    """
    rows = np.flatnonzero((labels == negative) | (labels == positive) | (labels == UNLABELLED))
    own = labels[rows]
    return rows, (own == positive).astype(float) - (own == negative)


def encode_labels(y: NDArray) -> tuple[NDArray, NDArray]:
    """Return the sorted classes and the class index of each row.

    Raises ValueError if the labels are not discrete, cannot be sorted, or are all equal.
    """
    kinds = sorted({type(label).__name__ for label in y}) if y.dtype == object else []
    if len(kinds) > 1:
        raise ValueError(f"y mixes labels of kinds {' and '.join(kinds)}; use one kind")
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(y)
    classes = np.unique(y)
    labels = np.searchsorted(classes, y)  # faster than return_inverse, which sorts all rows
    if len(classes) < 2:
        raise ValueError("The number of classes has to be greater than one; got 1 class")
    return classes, labels
