"""Metrics of stored predictions, computed from records of any age without retraining.

If a record lacks an array, for example probabilities, the metric is left out and the table names
the missing array; values are never imputed.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mmbench.errors import Status, UserError, did_you_mean
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.records import NO_CERTIFICATES, Cell, Experiment
from mmbench.tables.rows import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Name of the confusion matrix, the only metric that is not a single number.
CONFUSION = "confusion_matrix"
#: Names of metrics in the long table, for metrics with another name in the configuration.
ROW_NAMES = {"accuracy": "accuracy_pct"}

#: Key of a split: (repeat, fold, seed).
Split = tuple[int, int, int]


class Lacking(Exception):
    """Exception for a record without the arrays that a metric needs; its text names the arrays."""


@dataclass(frozen=True)
class Confusion:
    """Numbers of test rows by true and predicted class, summed over all splits."""

    labels: list[str]
    #: Numbers of test rows; one row per true class, one column per predicted class.
    counts: list[list[int]]


@dataclass
class Measures:
    """Metrics of the table cells of an experiment."""

    names: tuple[str, ...] = ()
    #: Value of each split, by table cell and metric.
    values: dict[tuple[Key, str], dict[Split, float]] = field(default_factory=dict)
    #: Numbers of records that lack an array, by name of the array, per table cell and metric.
    lacking: dict[tuple[Key, str], Counter[str]] = field(default_factory=dict)
    confusion: dict[Key, Confusion] = field(default_factory=dict)

    def rows(self, cells: Iterable[Cell]) -> list[Row]:
        """Return the rows of the long table for these metrics."""
        rows = []
        for cell in cells:
            names = [n for n in self.names if n not in ROW_NAMES and n != CONFUSION]
            rows += [self._row(cell, name) for name in names if cell.done]
            if found := self.confusion.get(cell.key):
                pairs = itertools.product(found.labels, repeat=2)
                for pair, count in zip(pairs, itertools.chain(*found.counts), strict=True):
                    row = Row(cell.key, f"{CONFUSION}[{','.join(pair)}]", cell.status, cell.note)
                    rows.append(replace(row, measured=float(count), n=len(cell.done)))
        return rows

    def _row(self, cell: Cell, name: str) -> Row:
        lacking = self.lacking.get((cell.key, name), Counter())
        found = list(self.values.get((cell.key, name), {}).values())
        parts = (f"{n} of {len(cell.counted)} records lack {what}" for what, n in lacking.items())
        notes = [f"{name}: {part}" for part in parts]
        if not notes or cell.note != NO_CERTIFICATES:  # the other metrics already cite this remark
            notes = [cell.note, *notes]
        note = "; ".join(filter(None, notes))
        if not found:
            return Row(cell.key, name, cell.status, note)
        sd = statistics.stdev(found) if len(found) > 1 else None
        se = None if sd is None else sd / math.sqrt(len(found))
        mean = statistics.fmean(found)
        return Row(cell.key, name, cell.status, note, measured=mean, sd=sd, se=se, n=len(found))


def metric_names() -> list[str]:
    """Return the names of the metrics that a table can show."""
    from mmbench.selection.metrics import METRICS

    return [*METRICS, CONFUSION]


def check_metrics(names: Sequence[str]) -> None:
    """Raise UserError if a metric is unknown or occurs twice."""
    known = metric_names()
    for k, name in enumerate(names):
        if name not in known:
            raise UserError(f"unknown metric {name!r}{did_you_mean(name, known)}")
        if name in names[:k]:
            raise UserError(f"metric {name!r} occurs twice")


def measure(experiment: Experiment, names: Sequence[str]) -> Measures:
    """Compute metrics from the stored predictions of all records that are averaged."""
    out = Measures(tuple(names))
    for cell in experiment.cells if names else ():
        totals: Counter[tuple[str, str]] = Counter()
        for record in cell.counted:
            arrays = experiment.store.arrays(record.key) if record.arrays else {}
            for name in names:
                try:
                    if name == CONFUSION:
                        totals.update(_pairs(arrays))
                    else:
                        value = value_of(name, record, arrays)
                        out.values.setdefault((cell.key, name), {})[record.at] = value
                except Lacking as what:
                    out.lacking.setdefault((cell.key, name), Counter())[str(what)] += 1
        if totals:
            labels = sorted({label for pair in totals for label in pair}, key=_by_size)
            counts = [[totals.get((true, taken), 0) for taken in labels] for true in labels]
            out.confusion[cell.key] = Confusion(labels, counts)
    return out


def value_of(name: str, record: Record, arrays: Mapping[str, NDArray]) -> float:
    """Return the value of a metric for one record.

    `name` is a key of `mmbench.selection.metrics.METRICS`; `arrays` are the record's stored arrays.
    """
    import numpy as np

    from mmbench.selection.metrics import METRICS

    if name == "accuracy":
        return record.metrics["accuracy_pct"]
    metric = METRICS[name]
    predicted = _stored(arrays, "predicted", "predictions").astype(str)
    truth = arrays["y_test"].astype(str)
    if metric.source == "predictions":
        if len(truth) == 1:
            raise Lacking("a second test row")
        return metric.compute(truth, predicted, np.unique(truth))
    if "classes" in arrays:
        classes = arrays["classes"].astype(str)
    else:  # in the sorted order of the machine's classes
        pairs = [tuple(map(str, fit["pair"])) for fit in record.per_pair]
        classes = np.array(list(dict.fromkeys([pairs[0][0], *(second for _, second in pairs)])))
    if metric.source == "scores":
        given = _scores(record, arrays, len(classes))
    else:
        given = _stored(arrays, "probabilities", "probabilities")
    value = metric.compute(truth, given, classes)
    if math.isnan(value):
        raise Lacking(metric.needs)
    return value


def _scores(record: Record, arrays: Mapping[str, NDArray], n_classes: int) -> NDArray:
    import numpy as np

    from mmbench.machines.base.voting import ovr_scores, summed_decisions

    if "scores" in arrays:
        return arrays["scores"]
    decisions = arrays["decisions"].astype(float)
    # Decisions of +-1 from a classifier of another package may be predictions, not scores.
    if record.status != Status.UNCERTIFIED or not (np.abs(decisions) == 1).all():
        return (summed_decisions if n_classes == 2 else ovr_scores)(decisions, n_classes)
    return _stored(arrays, "probabilities", "decision values")


def _stored(arrays: Mapping[str, NDArray], name: str, what: str) -> NDArray:
    """Return a stored array; raise `Lacking` with its description if there is none."""
    if name not in arrays:
        raise Lacking(what)
    return arrays[name]


def _pairs(arrays: Mapping[str, NDArray]) -> Counter[tuple[str, str]]:
    """Return the number of test rows for each pair of true and predicted class."""
    predicted = _stored(arrays, "predicted", "predictions").astype(str)
    return Counter(zip(arrays["y_test"].astype(str).tolist(), predicted.tolist(), strict=True))


def _by_size(label: str) -> tuple[bool, float, str]:
    """Return a sort key that orders numeric labels by value, before all other labels."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
