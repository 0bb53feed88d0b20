"""The class `Results`: the frames of an experiment, from its records or from a reference folder.

A `place` is stored as a `Key` with an empty machine.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.jobs.planned import Key, Plan, grouped
from mmbench.jobs.record import Record
from mmbench.jobs.store import Arrays, RecordStore
from mmbench.results.cells import (
    AVERAGED,
    CERTIFIED,
    CONFUSION,
    KEPT,
    METRIC,
    MISSING,
    NO_CERTIFICATES,
    WORST_CLASS,
    Published,
    Row,
    absent_row,
    all_fits,
    as_cells,
    certificates,
    compared,
    counted,
    finished,
    in_band,
    kept_share,
    key_at,
    mean_of,
    note_of,
    rows_of,
    selected,
    status_of,
    worst_case,
)
from mmbench.results.splits import CODE, SECONDS, counts_of_rows, value_of
from mmbench.results.statistics import fit_line, pair_accuracies, pair_points
from mmbench.selection.metrics import METRICS

__all__ = ["Results"]

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

#: Type of a pair: name of a kernel, and degree of a polynomial kernel (else None).
KernelKey = tuple[str, int | None]
#: Prefix of the metrics of the regression of accuracy on margin ratio. The regression has one point
#: per separable pair of classes.
LINE = "regression_"
#: Type that identifies a split: (repeat, fold, seed).
Split = tuple[int, int, int]
#: Function that returns further rows of the frame ``cells`` as pairs (key, entries of the row).
Derive = Callable[["Results"], Iterable[tuple[Key, dict[str, Any]]]]


@dataclass(frozen=True, eq=False)
class Results:
    """The frames of an experiment, or of a reference folder with the results of an earlier run.

    Attributes
    ----------
    folder : Path
        Folder of the experiment or of the reference.
    plan : Plan
        Planned cells, headings of machines, and layout.
    splits : DataFrame
        One row per record. The column ``kernel`` is the kernel of the place for all machines.
    facts : mapping
        Facts about the whole run: sizes of the data sets, deviations of the data, computers, and
        code of the machines.
    remarks : tuple of str
        Sentences on damaged records, and on records whose settings differ from the plan.
    records : mapping of str to Record
        Records by key; empty for a reference folder.
    stored : DataFrame, optional
        The frame ``cells`` of a reference folder.
    stored_pairs, stored_rows : DataFrame, optional
        The frames ``pairs`` and ``rows`` of a reference folder.
    foreign : frozenset of str
        Classifiers from other packages. These classifiers have no kernel.
    include_failed : bool
        Whether means include splits on which the training of a binary classifier failed.
    guests : tuple of Results
        Results whose machines are columns here, and their entries of `row_counts` as `guest_rows`;
        see `mmbench.results.beside`.
    published : sequence of mapping
        Rows of the published table.
    metrics : sequence of str
        Requested metrics; if empty, the layout determines the metrics.
    derive : callable, optional
        Function that returns the rows that only one layout needs.
    order : callable
        Function that returns the machines in the order of the columns of tables.
    """

    folder: Path
    plan: Plan
    splits: pd.DataFrame
    facts: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    records: Mapping[str, Record] = field(default_factory=dict)
    stored: pd.DataFrame | None = None
    stored_pairs: pd.DataFrame | None = None
    stored_rows: pd.DataFrame | None = None
    foreign: frozenset[str] = frozenset()
    include_failed: bool = False
    guests: tuple[Results, ...] = ()
    guest_rows: Mapping[Key, NDArray] = field(default_factory=dict)
    layout: str = ""
    published: Sequence[Published] = ()
    metrics: Sequence[str] = ()
    derive: Derive | None = None
    order: Callable[[list[str]], list[str]] = list
    #: Differences between two cells that are known so far; see `mmbench.results.pairwise`.
    differences: dict[tuple[Key, Key, str], Any] = field(default_factory=dict, init=False)
    _tested: dict[str, tuple[NDArray, NDArray] | None] = field(default_factory=dict, init=False)
    _indices: dict[bytes, NDArray] = field(default_factory=dict, init=False)
    #: Metrics by record and name; `replace` hands them on, since no result replaces its records.
    _values: dict[tuple[str, str], float | str] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        """Name of the experiment: the name of its folder."""
        return self.folder.name

    @property
    def has_records(self) -> bool:
        """Whether the results have records (false for a reference folder)."""
        return self.stored is None

    @property
    def label(self) -> Callable[[str], str]:
        """Function that returns the heading of a machine in tables."""
        return self.plan.label

    def arrays(self, record: str) -> Arrays:
        """Return the stored arrays of a record, or an empty dict if none are stored."""
        home = self.home(record)
        return home._store.arrays(record) if home and home.records[record].arrays else {}

    def tested(self, record: str) -> tuple[NDArray, NDArray] | None:
        """Return the indices of the test rows of a record, and which of these rows are classified
        correctly, or None if no predictions are stored.
        """
        if record not in self._tested:
            arrays, found = self.arrays(record), None
            if {"predicted", "test_index"} <= arrays.keys():
                # machines have the same test rows, so that their indices are kept once
                index = arrays["test_index"]
                index = self._indices.setdefault(index.tobytes(), index)
                found = index, arrays["predicted"] == arrays["y_test"]
            self._tested[record] = found
        return self._tested[record]

    def home(self, record: str) -> Results | None:
        """Return the results whose folder contains a record: these results, one of their guests, or
        None for a reference folder.
        """
        if record in self.records:
            return self
        return next((home for guest in self.guests if (home := guest.home(record))), None)

    def record(self, record: str) -> Record | None:
        """Return a record by its key, or None for a reference folder."""
        home = self.home(record)
        return home.records[record] if home else None

    def path_of(self, record: str) -> Path | None:
        """Return the path of a record, or None for a reference folder."""
        home = self.home(record)
        return home._store.path_of(record) if home else None

    @cached_property
    def _store(self) -> RecordStore:
        return RecordStore(self.folder)

    # -- splits ----------------------------------------------------------------------------------

    @cached_property
    def by_cell(self) -> dict[Key, list[Row]]:
        """Rows of the frame ``splits`` by cell, in the order of the plan."""
        found = grouped((key_at(row), row) for row in rows_of(self.splits))
        return {k: found[k] for k in dict.fromkeys((*self._planned, *found)) if k in found}

    @property
    def by_column(self) -> dict[str, None]:
        """Machines with splits, in the order of the plan."""
        return dict.fromkeys(key.machine for key in self.by_cell)

    @cached_property
    def by_machine(self) -> dict[str, list[Row]]:
        """Splits with a result by machine, in the order of the plan."""
        cells = grouped((key.machine, rows) for key, rows in self.by_cell.items())
        return {name: finished(itertools.chain(*rows)) for name, rows in cells.items()}

    @cached_property
    def _planned(self) -> dict[Key, Any]:
        return {cell.key: cell for cell in self.plan.cells}

    def counted(self, key: Key) -> list[Row]:
        """Return the splits over which the means of a cell are computed."""
        return self._counted.get(key, [])

    @cached_property
    def _counted(self) -> dict[Key, list[Row]]:
        return {key: counted(rows, self.include_failed) for key, rows in self.by_cell.items()}

    def by_split(self, key: Key, metric: str = METRIC) -> dict[Split, float]:
        """Return the values of a metric on the splits over which the mean is computed."""
        values = ((row, self._value(row, metric)) for row in self.counted(key))
        known = ((row, v) for row, v in values if v is not None and not isinstance(v, str))
        return {split_at(row): float(v) for row, v in known}

    def _value(self, row: Row, metric: str) -> float | str | None:
        """Return the value of a metric on a split, or a text that names the missing input."""
        record = self.record(row.record) if metric in METRICS else None
        if record is None or metric in row._fields:
            return getattr(row, metric, None)
        if (record.key, metric) not in self._values:
            self._values[record.key, metric] = value_of(metric, record, self.arrays(record.key))
        return self._values[record.key, metric]

    def first(self, key: Key) -> Row | None:
        """Return the first split of a cell with a result, or None."""
        done = finished(self.by_cell.get(key, ()))
        return min(done, key=split_at, default=None)

    def fits_with_accuracy(self, row: Row) -> list[dict[str, Any]]:
        """Return the certificates of a split. If they have margin ratios, the entry
        ``accuracy_pct`` is the accuracy of each pair of classes on its test rows.
        """
        fits = row.certificates or []
        lacking = any(
            "margin_ratio" in fit.get("extra", {}) and "accuracy_pct" not in fit for fit in fits
        )
        arrays = self.arrays(row.record) if lacking else {}
        if "decisions" not in arrays:
            return fits
        accuracies = pair_accuracies([fit["pair"] for fit in fits], arrays)
        return [{**fit, "accuracy_pct": a} for fit, a in zip(fits, accuracies, strict=True)]

    def hits(self, key: Key, split: tuple[int, ...]) -> Any:
        """Return which test rows of a split are classified correctly, as a boolean array of shape
        (n_test,), or None if no predictions are stored.

        The argument `split` is (repeat, fold, seed), or (repeat, fold) for the first of several
        seeds.
        """
        at = {split_at(row): row.record for row in self.counted(key)}
        found = [record for own, record in sorted(at.items()) if own[: len(split)] == split]
        arrays = self.arrays(found[0]) if found else {}
        return arrays["predicted"] == arrays["y_test"] if arrays else None

    def has_official_test(self, key: Key) -> bool:
        """Return whether all runs of a cell are tested on the same rows."""
        return self.rule == "official" or (
            not self.has_records and len({r.split_hash for r in self.by_cell.get(key, ())}) == 1
        )

    @cached_property
    def pair_rows(self) -> dict[tuple[Key, Key, str], Row]:
        """Rows of the frame ``pairs`` of a reference folder, by the two cells and the metric."""
        rows = rows_of(self.stored_pairs) if self.stored_pairs is not None else ()
        return {
            (key_at(r, r.machine_a), key_at(r, r.machine_b), r.metric or METRIC): r for r in rows
        }

    @cached_property
    def row_counts(self) -> dict[Key, NDArray]:
        """Rows of the frame ``rows`` as arrays, by cell; a key with an empty machine contains the
        number of tests of each row.
        """
        if self.stored is None:
            return dict(self._row_counts())
        frame = self.stored_rows
        rows = rows_of(frame) if frame is not None else ()
        return {key_at(row): np.array(row.counts) for row in rows} | dict(self.guest_rows)

    def _row_counts(self) -> Iterable[tuple[Key, NDArray]]:
        for place in self.places:
            keys = [key for key in self.by_cell if key._replace(machine="") == place]
            most = max((len(self.counted(key)) for key in keys), default=0)
            for key in keys:
                parts = [self.tested(row.record) for row in self.counted(key)]
                known = [part for part in parts if part is not None]
                if len(known) == len(parts) == most > 0:
                    right, tested = counts_of_rows(known)
                    yield key, right
                    yield place, tested

    @cached_property
    def rule(self) -> str:
        """Rule of the train/test splits, as in `mmbench.jobs.job.SplitRef`; empty if unknown."""
        tests = (row.test for rows in self.by_cell.values() for row in rows if row.test)
        return str(next(tests, {"rule": ""})["rule"])

    # -- cells -----------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The frame ``cells``, with a column ``key``."""
        if self.stored is not None:
            return self.stored
        return as_cells([*self._cell_rows(), *self.totals()])

    def _cell_rows(self) -> Iterable[tuple[Key, dict[str, Any]]]:
        for of_cell in (self._split_rows, self._metric_rows):
            for key, head in self._heads.items():
                splits, done = self.by_cell.get(key, []), finished(self.by_cell.get(key, ()))
                whole = len(self.counted(key)) == len(done) and head["status"] != MISSING
                for row in of_cell(key, done):
                    found = self._paper.get((key, row["metric"]))
                    yield key, compared(head | row, splits, found, not self.plan.smoke, whole)
        lined = (key for key in self._heads if (key, f"{LINE}slope") in self._paper)
        lines = ((cell, row) for cell in lined for row in self._line_rows(cell))
        for key, row in itertools.chain(lines, self.derive(self) if self.derive else ()):
            found = self._paper.get((key, row["metric"]))
            made = compared({**self._heads.get(key, {}), **row}, (), found, False, True)
            on_line = found and not self.plan.smoke and row["metric"].startswith(LINE)
            yield key, in_band(made, row["se"]) if on_line else made

    @cached_property
    def _paper(self) -> dict[tuple[Key, str], Published]:
        """Published rows by cell and metric."""
        return {
            (Key(p["dataset"], p["kernel"], p["degree"], p["machine"]), p["metric"]): p
            for p in self.published
        }

    @cached_property
    def _heads(self) -> dict[Key, dict[str, Any]]:
        """Entries that all rows of a cell share."""
        cells = ((cell, self.by_cell.get(key, [])) for key, cell in self._planned.items())
        return {
            planned.key: {
                "experiment": self.name,
                "status": status_of(planned, splits),
                "note": note_of(planned, splits, self.include_failed),
                "objection": "",
                "deviation": "; ".join(self.facts["deviations"].get(planned.key.dataset, ())),
                **{name: _texts(finished(splits), name) for name in CODE},
            }
            for planned, splits in cells
        }

    def _split_rows(self, key: Key, done: Sequence[Row]) -> Iterable[dict[str, Any]]:
        """Yield the rows of metrics in the frame ``splits``, and of selected parameters."""
        own, n, n_test = self.counted(key), len(done), done[0].n_test if done else None
        for name in AVERAGED if done else AVERAGED[:2]:
            values = [value for row in own if (value := getattr(row, name)) is not None]
            planned = not self._planned[key].published_only or (key, name) in self._paper
            if planned and (values or name != SECONDS[-1]):
                yield {"metric": name, **mean_of(values, name, n_test)}
        fits = certificates(done)
        yield from ({"metric": m, "measured": fits[m], "n": n} for m in CERTIFIED if m in fits)
        guaranteed = worst_case(own)
        if WORST_CLASS in self.metrics:  # also of machines without a bound
            accuracies = (row.worst_class_accuracy_pct for row in own)
            guaranteed[WORST_CLASS] = [value for value in accuracies if value is not None]
        yield from ({"metric": m, **mean_of(v, m, None)} for m, v in guaranteed.items())
        if (kept := kept_share(done)) is not None:
            yield {"metric": KEPT, "measured": kept, "n": n}
        yield from selected(done)

    def _line_rows(self, key: Key) -> Iterable[dict[str, Any]]:
        """Yield the rows of the least-squares line of accuracy on margin ratio, with one point per
        separable pair of classes.

        The comparison band is two standard errors of the measured line. The published and the
        measured line are fitted to the same pairs and test rows, so that the standard error of
        their difference is smaller.
        """
        first = self.first(key)
        points = pair_points(self.fits_with_accuracy(first)) if first else None
        if points is None or (line := fit_line(points)) is None:
            return
        errors, n = (line.stderr, line.intercept_stderr, None, None), int(points.separable.sum())
        for name, value, error in zip(("slope", "intercept", "r", "p"), line, errors, strict=False):
            yield {"metric": f"{LINE}{name}", "measured": value, "se": error, "n": n}

    def _metric_rows(self, key: Key, done: Sequence[Row]) -> Iterable[dict[str, Any]]:
        """Yield the rows of metrics that are computed from stored predictions; without splits, the
        rows of metrics that the paper states.

        If some records lack the input from which a metric is computed, the note of the metric's row
        names this input.
        """
        own, note = self.counted(key), self._heads[key]["note"]
        for name in self.metrics:
            if not done:
                if (key, name) in self._paper and name not in AVERAGED[:2]:
                    yield {"metric": name}
            elif name == CONFUSION:
                confusion = self.confusion(key)
                for true, row in confusion.items():
                    for taken, count in zip(confusion, row, strict=True):
                        metric = f"{name}[{true},{taken}]"
                        yield {"metric": metric, "measured": count, "n": len(own)}
            elif name in METRICS:
                values = [self._value(row, name) for row in own]
                lacking = Counter(value for value in values if isinstance(value, str))
                n, numbers = len(own), [float(v) for v in values if not isinstance(v, str | None)]
                notes = [f"{name}: {k} of {n} records lack {what}" for what, k in lacking.items()]
                if METRICS[name].source == "scores" and (k := self._constant(key)):
                    notes.append(f"{name}: {k} of {n} records have constant decision values")
                # a row with a note on missing inputs omits the note `NO_CERTIFICATES`, which is
                # already in the row of the accuracy
                base = [] if notes and note == NO_CERTIFICATES else [note]
                text = "; ".join(filter(None, base + notes))
                yield {"metric": name, **mean_of(numbers, name, None), "note": text}

    def _constant(self, key: Key) -> int:
        """Return the number of records in which, for each pair of classes, all test rows have equal
        decision values.
        """
        stored = (self.arrays(row.record) for row in self.counted(key))
        values = [a["decisions"] for a in stored if "decisions" in a and "scores" not in a]
        return sum(len(f) > 1 and not np.ptp(f, axis=0).any() for f in values)

    def confusion(self, key: Key) -> dict[str, list[int]]:
        """Return the confusion matrix of a cell, summed over splits.

        The dict maps each true class to a list of counts, with one count per predicted class.
        """
        totals: Counter[tuple[str, str]] = Counter()
        for row in self.counted(key):
            arrays = self.arrays(row.record)
            if "predicted" in arrays:
                both = (arrays[name].astype(str).tolist() for name in ("y_test", "predicted"))
                totals.update(zip(*both, strict=True))
        labels = sorted({label for pair in totals for label in pair}, key=_by_size)
        return {true: [totals[true, taken] for taken in labels] for true in labels}

    def totals(self) -> Iterable[tuple[Key, dict[str, Any]]]:
        """Yield the rows that summarize the certificates of all fits of a machine."""
        for machine, done in self.by_machine.items():
            for name, value in (certificates(done) if done else {}).items():
                entries = {"metric": name, "measured": value, "n": len(done)}
                yield all_fits(machine), {"experiment": self.name, **entries}

    # -- look-up ---------------------------------------------------------------------------------

    @cached_property
    def _rows(self) -> dict[tuple[Key, str], Row]:
        return {(row.key, row.metric): row for row in rows_of(self.cells)}

    @cached_property
    def keys(self) -> list[Key]:
        """Cells in the order of the configuration."""
        rows = self.cells[self.cells.metric.isin([*AVERAGED[:2], *self.metrics])]
        return list(dict.fromkeys(rows.key[rows.dataset != ""]))

    @property
    def configured(self) -> list[str]:
        """Machines in the order of the configuration."""
        return list(dict.fromkeys(key.machine for key in self.keys))

    @property
    def columns(self) -> list[str]:
        """Machines in the order of the columns of tables."""
        return self.order(self.configured)

    def with_columns(self, machines: Sequence[str]) -> Results:
        """Return the same results with other columns in tables."""
        made = replace(self, order=lambda _: list(machines))
        known = ["cells", "by_cell", "keys", "places", "_rows", "differences"]
        known += ["by_machine", "_counted", "_tested", "_indices"]
        vars(made).update({name: vars(self)[name] for name in known if name in vars(self)})
        return made

    @property
    def datasets(self) -> list[str]:
        """Data sets in the order of the configuration."""
        return list(dict.fromkeys(key.dataset for key in self.keys))

    @property
    def kernels(self) -> list[KernelKey]:
        """Kernels in the order of the configuration."""
        return list(dict.fromkeys((key.kernel, key.degree) for key in self.keys))

    @cached_property
    def places(self) -> list[Key]:
        """Places in the order of the configuration."""
        return list(dict.fromkeys(key._replace(machine="") for key in self.keys))

    def places_of(self, kernel: KernelKey) -> list[Key]:
        """Return the places of one kernel."""
        return [place for place in self.places if (place.kernel, place.degree) == kernel]

    @property
    def sized(self) -> bool:
        """Whether the experiment has several training sizes."""
        return any(key.size is not None for key in (self._planned or self.keys))

    @property
    def metric(self) -> str:
        """Metric for which measured and published values are compared: the accuracy, or the error
        count if papers state only error counts.
        """
        published = set(self.cells.metric[self.cells.published.notna()])
        return "errors_count" if "errors_count" in published and METRIC not in published else METRIC

    def row(self, key: Key, metric: str) -> Row:
        """Return the row of the frame ``cells`` for a cell and a metric, or `absent_row`."""
        return self._rows.get((key, metric), absent_row())

    def value(self, key: Key, metric: str) -> float | None:
        """Return the measured value of a metric in a cell, or None if there is none."""
        return self.row(key, metric).measured

    def wide(
        self, places: Sequence[Key], metric: str = METRIC, column: str = "measured"
    ) -> pd.DataFrame:
        """Return a column of the frame ``cells``, one row per place and a column per machine."""
        import pandas as pd

        values = [
            [getattr(self.row(place._replace(machine=m), metric), column) for m in self.columns]
            for place in places
        ]
        return pd.DataFrame(values, columns=self.columns, dtype=float)

    def common(
        self, places: Sequence[Key], machines: Sequence[str], metric: str = METRIC
    ) -> pd.DataFrame:
        """Return a data frame of the means of a metric over common splits.

        A split is common if all `machines` have a result on the split. The data frame has one row
        per place, and one column per machine. Without common splits, the means are NaN. If no
        values of single splits are known, the means of the frame ``cells`` are returned.
        """
        import pandas as pd

        rows = []
        for place in places:
            keys = [place._replace(machine=machine) for machine in machines]
            splits = [self.by_split(key, metric) for key in keys]
            common = {at for own in splits for at in own if all(at in other for other in splits)}
            whole = all(len(own) == len(common) for own in splits)
            means = (fmean(own[at] for at in common) if common else None for own in splits)
            rows.append([self.value(key, metric) for key in keys] if whole else [*means])
        return pd.DataFrame(rows, columns=list(machines), dtype=float)


def split_at(row: Row) -> Split:
    """Return the split of a row of the frame ``splits``; repeat and fold are counted from 0."""
    return row.repeat - 1, row.fold - 1, row.seed


def _texts(rows: Iterable[Row], column: str) -> str:
    """Return the distinct values of a column as text."""
    values = (getattr(row, column) for row in rows)
    return " ".join(dict.fromkeys("" if v is None else str(v) for v in values)).strip()


def _by_size(label: str) -> tuple[bool, float, str]:
    """Return a sort key that orders numeric class labels by value, before all other labels."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label
