"""Errors of stored decision values, under every rule for ties."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.machines.voting import expected_errors, n_ties, resolve_votes, votes


def evaluate(
    decisions: NDArray, classes: NDArray, y_test: NDArray, ties: str, seed: int
) -> tuple[dict[str, Any], NDArray]:
    """Return the metrics of a one-vs-one machine on test rows, and its predictions.

    Parameters
    ----------
    decisions : ndarray of shape (n_test, n_pairs)
    classes : ndarray of shape (n_classes,)
        Classes of the training rows.
    y_test : ndarray of shape (n_test,)
        A class that was not trained is always an error.
    ties : {"lowest", "random", "expected"}
        Rule by which ``errors_count`` and ``accuracy_pct`` are counted; the predictions of
        "expected" are those of "lowest".
    seed : int
        Of the random rule.

    Returns
    -------
    metrics : dict
    predicted : ndarray of shape (n_test,)
    """
    counts = votes(decisions, len(classes))
    lowest = classes[resolve_votes(counts)]
    drawn = classes[resolve_votes(counts, np.random.RandomState(seed))]
    known = np.isin(y_test, classes)
    truth = np.searchsorted(classes, y_test[known])
    errors = {
        "lowest": int((lowest != y_test).sum()),
        "random": int((drawn != y_test).sum()),
        "expected": expected_errors(counts[known], truth) + int((~known).sum()),
    }
    metrics = {
        "accuracy_pct": 100 * (1 - errors[ties] / len(y_test)),
        "errors_count": errors[ties],
        **{f"errors_{rule}": count for rule, count in errors.items()},
        "n_ties": n_ties(counts),
        "n_test": len(y_test),
    }
    return metrics, drawn if ties == "random" else lowest
