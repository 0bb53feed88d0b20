"""Which class was taken for which, all splits together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmbench.jobs.record import Record
from mmbench.jobs.store import RecordStore

#: Classes of which a matrix can still be read.
MOST_CLASSES = 60


@dataclass(frozen=True)
class Confusion:
    """Counts of test rows.

    Attributes
    ----------
    classes : list of str
    counts : list of list of int
        By true class, then by predicted class.
    heats : list of list of float
        Share of the errors of the row's class, 0 on the diagonal.
    right : list of float or None
        Per cent of each class that is predicted as such; None where it has no test rows.
    n : int
        Splits.
    """

    classes: list[str]
    counts: list[list[int]]
    heats: list[list[float]]
    right: list[float | None]
    n: int


def confusion(store: RecordStore, records: Sequence[Record]) -> Confusion | None:
    """Return the confusions of a cell; None without stored predictions, or of many classes."""
    stored = [store.arrays(record.key) for record in records if record.arrays]
    found = [one for one in stored if {"y_test", "predicted"} <= one.keys()]
    if not found:
        return None
    truth = np.concatenate([one["y_test"].astype(str) for one in found])
    predicted = np.concatenate([one["predicted"].astype(str) for one in found])
    classes = sorted({*truth.tolist(), *predicted.tolist()}, key=_order)
    if len(classes) > MOST_CLASSES:
        return None
    counts = _count(truth, predicted, classes)
    wrong = counts - np.diag(np.diag(counts))
    totals = counts.sum(axis=1)
    shares = wrong / np.maximum(wrong.max(initial=1), 1)
    right = [
        100 * float(hits) / int(total) if total else None
        for hits, total in zip(np.diag(counts), totals, strict=True)
    ]
    return Confusion(classes, counts.tolist(), shares.round(3).tolist(), right, len(found))


def _count(truth: NDArray, predicted: NDArray, classes: Sequence[str]) -> NDArray:
    place = {name: k for k, name in enumerate(classes)}
    at = np.array([[place[t], place[p]] for t, p in zip(truth, predicted, strict=True)])
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    np.add.at(counts, (at[:, 0], at[:, 1]), 1)
    return counts


def _order(label: str) -> tuple[bool, float, str]:
    """Sort numbers as numbers, before words."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
