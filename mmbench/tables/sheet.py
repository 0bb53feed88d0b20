"""The input of layouts: the long table of an experiment, its records, and footnotes.

The variable `place` is a data set with kernel, degree and training size, stored as a `Key` with an
empty machine. A table with one column per machine has one row per data set, kernel and training
size.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mmbench.errors import Status, UserError
from mmbench.jobs.identity import fingerprint
from mmbench.jobs.store import Key
from mmbench.tables.frame import (
    METRIC,
    MISSING,
    Cell,
    Published,
    Row,
    Split,
    absent_row,
    grouped,
    rows_of,
)
from mmbench.tables.model import NOTHING, Column, Shown, join, kernel_text, numbers, words
from mmbench.tables.results import Experiment

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from mmbench.jobs.job import Job

__all__ = ["Sheet"]

SMOKE = "Smoke version: fewer splits, rows and grid points; not compared with the paper."
LEAK = "LEAK: parameters were selected by the accuracy on the test part, which is too high."

#: Minimum number of data sets for which a footnote says "all data sets" instead of listing names.
MANY = 4
#: Type of the subject of a footnote: (machine, data set, kernel), with optional machine and kernel.
Subject = tuple[str, str, str]
#: Type of a kernel with its degree.
KernelKey = tuple[str, int | None]


@dataclass(eq=False)
class Sheet:
    """The long table of an experiment, with access by table cell and metric.

    Parameters
    ----------
    experiment : Experiment
        Plan and records of the experiment.
    layout : str
        Name of the layout.
    frame : DataFrame
        Long table of the experiment.
    published : sequence of mapping
        Rows of the published table.
    cells : dict of Key to Cell
        Table cells with their records; empty for a reference table.
    metrics : sequence of str
        Requested metrics, with their names in the long table. If empty, the layout determines the
        metrics.

    Attributes
    ----------
    configured : list of str
        Machines in the order of the configuration.
    machines : list of str
        Machines in the order of the layout's columns.
    datasets : list of str
        Data sets in the order of the configuration.
    kernels : list of (kernel, degree)
        Kernels in the order of the configuration.
    places : list of Key
        Combinations of data set, kernel, degree and training size, each as a `Key` with an empty
        machine. A table with one column per machine has one row per element of `places`.
    """

    experiment: Experiment
    layout: str
    frame: pd.DataFrame
    published: Sequence[Published] = ()
    cells: Mapping[Key, Cell] = field(default_factory=dict)
    metrics: Sequence[str] = ()

    def __post_init__(self) -> None:
        self.plan, self.label = self.experiment.plan, self.experiment.plan.label
        self.rows = rows_of(self.frame)
        self._rows = {(row.key, row.metric): row for row in self.rows}
        self.keys = list(dict.fromkeys(self.frame.key))
        self.datasets = list(dict.fromkeys(key.dataset for key in self.keys))
        self.configured = list(dict.fromkeys(key.machine for key in self.keys))
        self.machines = list(self.configured)
        self.kernels = list(dict.fromkeys((key.kernel, key.degree) for key in self.keys))
        self.places = list(dict.fromkeys(key._replace(machine="") for key in self.keys))
        self._notes: dict[str, list[Subject]] = {}

    # -- records ---------------------------------------------------------------------------------

    def by_split(self, key: Key, metric: str = METRIC) -> dict[Split, float]:
        """Return the value of a metric on each split that enters the mean of a table cell."""
        if key in self.cells:
            values = self.cells[key].values(metric)
            return {at: value for at, value in values if not isinstance(value, str)}
        return {
            (int(row.repeat), int(row.fold), int(row.seed)): float(getattr(row, metric))
            for row in self.experiment.stored_splits.get(key, [])
            if getattr(row, metric, "") and Status.FAILED not in json.loads(row.fits)
        }

    def has_official_test(self, key: Key) -> bool:
        """Whether all runs of a table cell are tested on the same rows."""
        if key in self.cells:
            return self.cells[key].records[0].job.split.rule == "official"
        return len({row.split_hash for row in self.experiment.stored_splits.get(key, [])}) == 1

    def per_pair(self, key: Key) -> dict[Split, list[Mapping[str, Any]]]:
        """Return the certificates of all pairs of classes in a table cell, by finished split."""
        done = self.cells[key].done if key in self.cells else []
        return {record.at: record.per_pair for record in done}

    def chosen(self, key: Key) -> str:
        """Return the selected parameters of a table cell as text, or a dash if there are none."""
        rows = self.cells[key].selected if key in self.cells else ()
        return ", ".join(row["text"] for row in rows) or NOTHING

    def hits(self, key: Key, split: tuple[int, ...]) -> NDArray | None:
        """Return a mask of the correctly classified test rows of a split, shape (n_test,).

        `split` is (repeat, fold, seed), or (repeat, fold) for the first of several seeds. The
        result is None if there are no stored predictions for the split.
        """
        counted = self.cells[key].counted if key in self.cells else []
        records = [row["source"] for row in counted if row["source"].at[: len(split)] == split]
        first = min(records, key=lambda record: record.at, default=None)
        arrays = self.experiment.arrays(first) if first else {}
        return arrays["predicted"] == arrays["y_test"] if arrays else None

    @cached_property
    def deviations(self) -> dict[str, tuple[str, ...]]:
        """Differences from the paper's data, and warnings about users' files, by data set."""
        texts = grouped(
            (record.job.dataset.name, text.removeprefix(f"{record.job.dataset.name}: "))
            for record in self.experiment.records
            for text in (*record.deviations, *record.warnings)
        )
        unique = {name: tuple(dict.fromkeys(found)) for name, found in texts.items()}
        return {**self.experiment.deviations, **unique}

    @cached_property
    def sizes(self) -> dict[str, dict[str, int]]:
        """Numbers of training rows, test rows, classes and original features, by data set."""
        from mmbench.datasets import card_names, load_card

        found: dict[str, dict[str, int]] = {}
        for record in self.experiment.records:
            name = record.job.dataset.name
            sizes = found.setdefault(name, {})
            if record.done:
                parts = ("n_train", "n_test", "n_features")
                sizes |= {part: record.split[part] for part in parts if part in record.split}
                # largest number of classes over all records, since a record of a classifier from
                # another package names only two classes
                classes = {str(label) for pair in record.per_pair for label in pair["pair"]}
                sizes["n_classes"] = max(sizes.get("n_classes", 0), len(classes))
        for key, rows in self.experiment.stored_splits.items():
            for row in rows:
                counts = (("n_train", row.n_train), ("n_test", row.n_test))
                found.setdefault(key.dataset, {}).update((k, int(n)) for k, n in counts if n)
        for name in found.keys() & card_names():
            found[name]["n_features"] = load_card(name).expect.shape[1]
        return found

    @property
    def metric(self) -> str:
        """Metric of the comparison: accuracy, or error count if only error counts are published."""
        published = set(self.frame.metric[self.frame.published.notna()])
        counts = "errors_count" in published and METRIC not in published
        return "errors_count" if counts else METRIC

    @property
    def rule(self) -> str:
        """Rule of the train/test splits, as in `SplitRef`; empty if there are no records."""
        return next((job.split.rule for job in self.jobs), "")

    @property
    def jobs(self) -> list[Job]:
        """Jobs of all records."""
        return [record.job for cell in self.cells.values() for record in cell.records]

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the whole run: hardware, code, damaged records, mixed settings."""
        leak = any(record.job.validates_on_test for record in self.experiment.records)
        smoke = self.plan.smoke and self.experiment.has_records
        own = self.experiment.remarks
        return (*[LEAK][:leak], *[SMOKE][:smoke], *own, *self._environment(), *self._code())

    def _environment(self) -> list[str]:
        """Return one sentence per combination of computer, mmbench version and Python version."""
        runs = [record.environment for record in self.experiment.records if record.done]
        pairs = grouped(
            (f"mmbench {r['mmbench']}, Python {r['python']}, {r['cpu']}", r["threads"]["pairs"])
            for r in runs
        )
        text = "Run with {}; pairs of classes trained at a time: {}."
        return [text.format(c, " or ".join(map(str, sorted(set(n))))) for c, n in pairs.items()]

    def _code(self) -> list[str]:
        """Return sentences on the versions of the machines' code, and on records of other code."""
        done = [record for cell in self.cells.values() for record in cell.done]
        known = [record for record in done if record.code]
        codes = grouped(
            (f"{r.code['version']}, {r.code['fingerprint'] or ''}".removesuffix(", "), r.job.column)
            for r in known
        )
        texts = (f"{', '.join(map(self.label, dict.fromkeys(m)))} {c}" for c, m in codes.items())
        changed = sum(record.code["fingerprint"] != _today(record.job.machine) for record in known)
        lines = [
            f"Code of the machines (version, fingerprint of the sources): {'; '.join(texts)}.",
            f"Records of other code than the installed code: {changed} of {len(known)}.",
        ]
        lacking = f"Records without a fingerprint of the code: {len(done) - len(known)}."
        return [*(lines if known else []), *([lacking] if len(known) < len(done) else [])]

    # -- looking up ------------------------------------------------------------------------------

    def row(self, key: Key, metric: str) -> Row:
        """Return the row of a table cell and metric in the long table, or `absent_row`."""
        return self._rows.get((key, metric), absent_row())

    def line(self, place: Key, metric: str, machines: Sequence[str] = ()) -> list[Row]:
        """Return the rows of several machines in the long table, for one metric and data set."""
        names = machines or self.machines
        return [self.row(place._replace(machine=machine), metric) for machine in names]

    def value(self, key: Key, metric: str) -> float | None:
        """Return the measured value of a metric in a table cell, or None."""
        return self.row(key, metric).measured

    def wide(
        self, places: Sequence[Key], metric: str = METRIC, column: str = "measured"
    ) -> pd.DataFrame:
        """Return a data frame of a metric's values, with one column per machine.

        The data frame has one row per data set, kernel and training size. The values are taken from
        `column`, a column of the long table.
        """
        import pandas as pd

        lines = (self.line(place, metric) for place in places)
        values = [[getattr(row, column) for row in line] for line in lines]
        return pd.DataFrame(values, columns=self.machines, dtype=float)

    def places_of(self, kernel: KernelKey) -> list[Key]:
        """Return the combinations of data set and training size that have results for a kernel."""
        return [place for place in self.places if (place.kernel, place.degree) == kernel]

    # -- heads -----------------------------------------------------------------------------------

    def columns(
        self, *heads: str, machines: Sequence[str] | None = None, group: str = ""
    ) -> tuple[Column, ...]:
        """Return left-aligned columns with the headings `heads`, then one column per machine."""
        names = self.machines if machines is None else machines
        return (*words(*heads), *numbers(*map(self.label, names), group=group))

    def printed(self, dataset: str) -> str:
        """Return the paper's name of a data set or, if there is none, the name in mmbench."""
        names = (row["printed_dataset"] for row in self.published if row["dataset"] == dataset)
        return next(names, dataset)

    def name(self, place: Key) -> str:
        """Return the paper's name of a data set, with the kernel if there are several kernels."""
        kernel = f"({kernel_text(place.kernel, place.degree)})" if len(self.kernels) > 1 else ""
        return join(self.printed(place.dataset), kernel)

    def head(self, place: Key, name: str = "") -> str:
        """Return `name` with the marks of the footnotes on differences from the paper's data.

        By default, `name` is the paper's name of the data set, with the kernel if there are several
        kernels.
        """
        texts = self.deviations.get(place.dataset, ())
        marks = (self._mark(text, ("", place.dataset, "")) for text in texts)
        return join(name or self.name(place), "".join(marks))

    # -- cells -----------------------------------------------------------------------------------

    def marked(self, text: str, row: Row, kernel: bool = True) -> str:
        """Return the text of a table cell with its comparison mark and its footnote marks."""
        text = join(text, row.mark, self.cite(row, kernel))
        return Shown(text, row) if row.metric else text

    def cite(self, row: Row, kernel: bool = True) -> str:
        """Return the footnote marks of a table cell.

        One footnote states the note of the table cell, except the note "not run". The footnote of a
        note also names the machine, the data set and, if `kernel` is true, the kernel of the table
        cell. If the published value is not compared, another footnote states the reason. The
        footnote with the reason for a missing comparison names no table cell, since the reason is
        often the same for a whole column of the table.
        """
        if not row.metric:
            return ""
        key = row.key
        subject = key.machine, key.dataset, kernel_text(key.kernel, key.degree) if kernel else ""
        not_run = (row.status, row.measured) == (MISSING, None)
        return self._mark("" if not_run else row.note, subject) + self._mark(row.objection)

    def _mark(self, text: str, subject: Subject | None = None) -> str:
        """Return the mark of a footnote, for example ``[1]``. Equal texts share a footnote."""
        if not text:
            return ""
        subjects = self._notes.setdefault(text, [])
        if subject and subject not in subjects:
            subjects.append(subject)
        return f"[{list(self._notes).index(text) + 1}]"

    @property
    def footnotes(self) -> list[str]:
        """Texts of the footnotes cited so far, each with the names of its table cells."""
        return [
            f"{self._about(subjects)}: {text}" if subjects else text
            for text, subjects in self._notes.items()
        ]

    def _about(self, subjects: Sequence[Subject]) -> str:
        """Return the names of table cells as text; data sets with the same machines are joined."""
        machines = grouped(
            ((dataset, kernel), machine and self.label(machine))
            for machine, dataset, kernel in subjects
        )
        datasets = grouped(
            ((", ".join(names), kernel), dataset) for (dataset, kernel), names in machines.items()
        )
        many = max(len(self.datasets), MANY)
        return "; ".join(
            join(
                f"{names} on" if names else "",
                ", ".join(found) if len(found) < many else f"all {many} data sets",
                f"({kernel})" if kernel else "",
            )
            for (names, kernel), found in datasets.items()
        )


def _today(machine: str) -> str | None:
    """Return the current fingerprint of a machine's code, or None for a removed machine."""
    with suppress(UserError):
        return fingerprint(machine)
    return None
