"""Metrics of stored predictions: of any record, old or new, without training again.

What a record does not hold, such as probabilities, is said by name and never imputed.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mmbench.errors import Status, UserError, did_you_mean
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.records import NO_CERTIFICATES, Cell, Experiment
from mmbench.tables.rows import Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The only metric that is no number.
CONFUSION = "confusion_matrix"
#: Names of metrics in the long table, if they differ.
ROW_NAMES = {"accuracy": "accuracy_pct"}

#: A split, as (repeat, fold, seed).
Split = tuple[int, int, int]


class Lacking(Exception):
    """The stored arrays that a metric needs and a record lacks."""


@dataclass(frozen=True)
class Confusion:
    """Counts of test rows by true and predicted class, over all splits."""

    labels: list[str]
    #: One row per true class, one column per predicted class.
    counts: list[list[int]]


@dataclass
class Measures:
    """The metrics of an experiment's cells."""

    names: tuple[str, ...] = ()
    #: Values on splits, by cell and metric.
    values: dict[tuple[Key, str], dict[Split, float]] = field(default_factory=dict)
    #: Number of records by what they lack, by cell and metric.
    lacking: dict[tuple[Key, str], Counter[str]] = field(default_factory=dict)
    confusion: dict[Key, Confusion] = field(default_factory=dict)

    def rows(self, cells: Iterable[Cell]) -> list[Row]:
        """Return the rows of the long table that they add."""
        rows = []
        for cell in cells:
            done = [(cell, name) for name in self.names if cell.done and name not in ROW_NAMES]
            rows += [self._row(*one) for one in done if one[1] != CONFUSION]
            if cell.key in self.confusion:
                rows += _confusion_rows(cell, self.confusion[cell.key])
        return rows

    def _row(self, cell: Cell, name: str) -> Row:
        lacking = self.lacking.get((cell.key, name), Counter())
        found = list(self.values.get((cell.key, name), {}).values())
        parts = (f"{n} of {len(cell.counted)} records lack {what}" for what, n in lacking.items())
        said = [f"{name}: {part}" for part in parts]
        if not said or cell.note != NO_CERTIFICATES:  # which the other metrics cite
            said = [cell.note, *said]
        note = "; ".join(filter(None, said))
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
    """Refuse unknown metrics, and one that occurs twice."""
    known = metric_names()
    for k, name in enumerate(names):
        if name not in known:
            raise UserError(f"unknown metric {name!r}{did_you_mean(name, known)}")
        if name in names[:k]:
            raise UserError(f"metric {name!r} occurs twice")


def measure(experiment: Experiment, names: Sequence[str]) -> Measures:
    """Return metrics of every record of an experiment that counts, from its stored predictions."""
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
            out.confusion[cell.key] = _confusion(totals)
    return out


def value_of(name: str, record: Record, arrays: Mapping[str, NDArray]) -> float:
    """Return a metric of one record.

    `name` is a key of `mmbench.selection.metrics.METRICS`; `arrays` are the record's stored arrays.
    """
    import numpy as np

    from mmbench.selection.metrics import METRICS

    if name == "accuracy":
        return record.metrics["accuracy_pct"]
    metric = METRICS[name]
    if "predicted" not in arrays:
        raise Lacking("predictions")
    truth = arrays["y_test"].astype(str)
    if metric.source == "predictions":
        if len(truth) == 1:
            raise Lacking("a second test row")
        return metric.compute(truth, arrays["predicted"].astype(str), np.unique(truth))
    classes = _classes(record, arrays)
    given = (
        _scores(record, arrays, len(classes))
        if metric.source == "scores"
        else _probabilities(arrays)
    )
    value = metric.compute(truth, given, classes)
    if math.isnan(value):
        raise Lacking(metric.needs)
    return value


def _classes(record: Record, arrays: Mapping[str, NDArray]) -> NDArray:
    """Return the classes of the training rows, sorted as the machine has them."""
    import numpy as np

    if "classes" in arrays:
        return arrays["classes"].astype(str)
    pairs = [tuple(map(str, fit["pair"])) for fit in record.per_pair]
    return np.array(list(dict.fromkeys([pairs[0][0], *(second for _, second in pairs)])))


def _scores(record: Record, arrays: Mapping[str, NDArray], n_classes: int) -> NDArray:
    import numpy as np

    from mmbench.machines.base.voting import ovr_scores, summed_decisions

    if "scores" in arrays:
        return arrays["scores"]
    decisions = arrays["decisions"].astype(float)
    # of other packages' classifiers +-1 may stand for predictions alone
    if record.status != Status.UNCERTIFIED or not (np.abs(decisions) == 1).all():
        return (summed_decisions if n_classes == 2 else ovr_scores)(decisions, n_classes)
    if "probabilities" not in arrays:
        raise Lacking("decision values")
    return arrays["probabilities"]


def _probabilities(arrays: Mapping[str, NDArray]) -> NDArray:
    if "probabilities" not in arrays:
        raise Lacking("probabilities")
    return arrays["probabilities"]


def _pairs(arrays: Mapping[str, NDArray]) -> Counter[tuple[str, str]]:
    """Count test rows by true and by predicted class."""
    if "predicted" not in arrays:
        raise Lacking("predictions")
    names = (arrays[name].astype(str).tolist() for name in ("y_test", "predicted"))
    return Counter(zip(*names, strict=True))


def _confusion(totals: Mapping[tuple[str, str], int]) -> Confusion:
    labels = sorted({label for pair in totals for label in pair}, key=_by_size)
    counts = [[totals.get((true, taken), 0) for taken in labels] for true in labels]
    return Confusion(labels, counts)


def _by_size(label: str) -> tuple[bool, float, str]:
    """Order numbers by size, and before words."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def _confusion_rows(cell: Cell, found: Confusion) -> list[Row]:
    return [
        Row(
            cell.key,
            f"{CONFUSION}[{true},{taken}]",
            cell.status,
            cell.note,
            measured=float(count),
            n=len(cell.done),
        )
        for true, counts in zip(found.labels, found.counts, strict=True)
        for taken, count in zip(found.labels, counts, strict=True)
    ]
