"""The class `Sheet`: the results from which a layout builds the printed table of an experiment.

A layout is a function that returns the printed table of a `Sheet`. A `Sheet` contains the long
table and the records of the experiment, and footnotes. The long table has one row per metric and
combination of data set, kernel, degree, machine and training size; see `mmbench.tables.frame`. In
this module, a `place` is a combination of data set, kernel, degree and training size, stored as a
`Key` with an empty machine. A table with one column per machine has one row per `place`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mmbench.errors import Status, UserError, converted
from mmbench.jobs.identity import identity
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key, grouped
from mmbench.tables.frame import (
    METRIC,
    MISSING,
    Cell,
    Published,
    Row,
    Split,
    absent_row,
    rows_of,
)
from mmbench.tables.protocol import OFFICIAL
from mmbench.tables.results_folder import Experiment
from mmbench.tables.table import NOTHING, Column, Shown, join, kernel_text, numbers, words

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from mmbench.jobs.job import Job

__all__ = ["Sheet"]

SMOKE = "Smoke version: fewer splits, rows and grid points; not compared with the paper."
LEAK = "LEAK: parameters were selected by the accuracy on the test part, which is too high."

#: If a table has at least this number of data sets, a footnote on all data sets does not list their
#: names.
MANY = 4
#: Type of a pair: name of a kernel, and degree of a polynomial kernel (else None).
KernelKey = tuple[str, int | None]

KERNEL_LABELS = {"linear": "Linear kernel", "poly": "Polynomial kernel", "rbf": "RBF kernel"}


@dataclass(eq=False)
class Sheet:
    """The long table of an experiment, with functions that look up values by table cell and metric.

    Parameters
    ----------
    experiment : Experiment
        The experiment with its plan and records.
    layout : str
        Name of the layout.
    frame : DataFrame
        Long table of the experiment.
    published : sequence of mapping
        Rows of the published table.
    cells : dict of Key to Cell
        Results of each table cell, with its records; empty for a reference table.
    metrics : sequence of str
        Names of the requested metrics in the long table. If `metrics` is empty, the layout
        determines the metrics.

    Attributes
    ----------
    configured : list of str
        Machines in the order of the configuration.
    machines : list of str
        Machines in the order of the table's columns.
    datasets : list of str
        Data sets in the order of the configuration.
    kernels : list of (kernel, degree)
        Kernels in the order of the configuration.
    places : list of Key
        Combinations of data set, kernel, degree and training size, each as a `Key` with an empty
        machine. A table with one column per machine has one row per `place`.
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
        self._notes: dict[str, list[Key]] = {}

    # -- records ---------------------------------------------------------------------------------

    def by_split(self, key: Key, metric: str = METRIC) -> dict[Split, float]:
        """Return the values of a metric on the splits over which the mean of a table cell is
        computed.
        """
        if key in self.cells:
            return {at: v for at, v in self.cells[key].values(metric) if not isinstance(v, str)}
        with converted(f"{self.experiment.splits}: not a split table of mmbench", ValueError):
            return {
                (int(row.repeat) - 1, int(row.fold) - 1, int(row.seed)): float(getattr(row, metric))
                for row in self.experiment.stored_splits.get(key, [])
                if getattr(row, metric, "") and Status.FAILED not in json.loads(row.fits)
            }

    def has_official_test(self, key: Key) -> bool:
        """Return whether all runs of a table cell are tested on the same rows."""
        hashes = {row.split_hash for row in self.experiment.stored_splits.get(key, [])}
        return self.rule == "official" or len(hashes) == 1

    def per_pair(self, key: Key) -> dict[Split, list[Mapping[str, Any]]]:
        """For each finished job of a table cell, return one certificate per pair of classes."""
        return {r.at: r.per_pair for r in (self.cells[key].done if key in self.cells else ())}

    def chosen(self, key: Key) -> str:
        """Return the selected parameters of a table cell as text, or a dash if no parameter was
        selected.
        """
        rows = self.cells[key].selected if key in self.cells else ()
        return ", ".join(row["text"] for row in rows) or NOTHING

    def hits(self, key: Key, split: tuple[int, ...]) -> NDArray | None:
        """Return which test rows of a split are classified correctly, as a boolean array of shape
        (n_test,).

        The argument `split` is (repeat, fold, seed), or (repeat, fold) for the first of several
        seeds. Returns None if no predictions are stored for the split.
        """
        counted = self.cells[key].counted if key in self.cells else []
        records = [row["source"] for row in counted if row["source"].at[: len(split)] == split]
        first = min(records, key=lambda record: record.at, default=None)
        arrays = self.experiment.arrays(first) if first else {}
        return arrays["predicted"] == arrays["y_test"] if arrays else None

    @cached_property
    def deviations(self) -> dict[str, tuple[str, ...]]:
        """For each data set, differences from the paper's data set, and warnings in the records."""
        texts = grouped(
            (record.job.dataset.name, text.removeprefix(f"{record.job.dataset.name}: "))
            for record in self.experiment.records
            for text in (*record.deviations, *record.warnings)
        )
        unique = {name: tuple(dict.fromkeys(found)) for name, found in texts.items()}
        return {**self.experiment.deviations, **unique}

    @cached_property
    def sizes(self) -> dict[str, dict[str, str]]:
        """For each data set, numbers of training rows, test rows, classes and features (before
        preprocessing), as texts. If a number differs between splits, the text states its smallest
        and largest value.
        """
        from mmbench.datasets import card_names, load_card

        lines: list[tuple[str, Mapping[str, Any]]] = []
        for r in self.experiment.records:
            split = {**r.split, "n_classes": len({str(c) for p in r.per_pair for c in p["pair"]})}
            lines.append((r.job.dataset.name, split if r.done else {}))
        for key, rows in self.experiment.stored_splits.items():
            lines += [(key.dataset, row._asdict()) for row in rows]
        found: dict[str, dict[str, str]] = {}
        for name, own in grouped(lines).items():
            sizes = found[name] = {}
            for part in ("n_train", "n_test", "n_features", "n_classes"):
                if counts := {int(float(line[part])) for line in own if line.get(part)}:
                    # The record of a classifier from another package names only one pair of
                    # classes, even for data sets with more classes. Therefore, the number of
                    # classes is the maximum over all records.
                    ends = {max(counts) if part == "n_classes" else min(counts), max(counts)}
                    sizes[part] = " to ".join(map(str, sorted(ends)))
        for name in found.keys() & card_names():
            found[name]["n_features"] = str(load_card(name).expect.shape[1])
        return found

    @property
    def metric(self) -> str:
        """Metric for which measured and published values are compared: the accuracy, or the error
        count if papers state only error counts.
        """
        published = set(self.frame.metric[self.frame.published.notna()])
        return "errors_count" if "errors_count" in published and METRIC not in published else METRIC

    @cached_property
    def rule(self) -> str:
        """Rule of the train/test splits, as in the class `SplitRef`.

        For a reference table, the rule is "official" if the Markdown text of the table says so, and
        empty otherwise.
        """
        stored = f"- Test: {OFFICIAL}" in (self.experiment.text or "")
        return next((job.split.rule for job in self.jobs), "official" if stored else "")

    @property
    def jobs(self) -> list[Job]:
        """Jobs of all records."""
        return [record.job for cell in self.cells.values() for record in cell.records]

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on the whole run: computers, versions, damaged records, and records with mixed
        settings.
        """
        leak = any(record.job.validates_on_test for record in self.experiment.records)
        smoke = self.plan.smoke and self.experiment.has_records
        own = self.experiment.remarks
        return (*[LEAK][:leak], *[SMOKE][:smoke], *own, *self._environment(), *self._code())

    def _environment(self) -> list[str]:
        """Return one sentence per combination of computer, mmbench version and Python version."""
        pairs = grouped(
            (f"mmbench {r['mmbench']}, Python {r['python']}, {r['cpu']}", r["threads"]["pairs"])
            for r in (record.environment for record in self.experiment.records if record.done)
        )
        text = "Run with {}; pairs of classes trained at a time: {}."
        return [text.format(c, " or ".join(map(str, sorted(set(n))))) for c, n in pairs.items()]

    def _code(self) -> list[str]:
        """Return sentences on the versions of the machines' code, with the number of records that
        were not made by the installed code.
        """
        done = [record for cell in self.cells.values() for record in cell.done]
        known = [record for record in done if {"version", "fingerprint"} <= record.code.keys()]
        codes: dict[str, dict[str, None]] = {}
        for job, code in ((record.job, record.code) for record in known):
            name = self.label(job.machine if job.has_kernel else job.column)
            name += f" ({job.kernel})" * job.has_kernel
            text = f"{code['version']}, {code['fingerprint'] or ''}".removesuffix(", ")
            codes.setdefault(text, {})[name] = None
        texts = (f"{', '.join(names)} {code}" for code, names in codes.items())
        other = sum(map(has_other_code, known))
        lines = [
            f"Code of the machines (version, fingerprint of the sources): {'; '.join(texts)}.",
            f"Records made by other code than this table: {other} of {len(known)}.",
        ]
        lacking = f"Records without a fingerprint of the code: {len(done) - len(known)}."
        return [*(lines if known else []), *([lacking] if len(known) < len(done) else [])]

    # -- looking up ------------------------------------------------------------------------------

    def row(self, key: Key, metric: str) -> Row:
        """Return the row of the long table for a table cell and a metric, or `absent_row` for a
        missing row.
        """
        return self._rows.get((key, metric), absent_row())

    def line(self, place: Key, metric: str, machines: Sequence[str] = ()) -> list[Row]:
        """Return the rows of the long table for one metric and one `place` (data set, kernel and
        training size), with one row per machine.
        """
        return [self.row(place._replace(machine=m), metric) for m in machines or self.machines]

    def value(self, key: Key, metric: str) -> float | None:
        """Return the measured value of a metric in a table cell, or None if there is no measured
        value.
        """
        return self.row(key, metric).measured

    def wide(
        self, places: Sequence[Key], metric: str = METRIC, column: str = "measured"
    ) -> pd.DataFrame:
        """Return a data frame of the values of a metric, with one column per machine.

        The data frame has one row per data set, kernel and training size. The values of the data
        frame are taken from the column `column` of the long table.
        """
        import pandas as pd

        values = [[getattr(row, column) for row in self.line(p, metric)] for p in places]
        return pd.DataFrame(values, columns=self.machines, dtype=float)

    def common(
        self, places: Sequence[Key], machines: Sequence[str], metric: str = METRIC
    ) -> pd.DataFrame:
        """Return a data frame of the means of a metric over common splits.

        A split is common if all `machines` have a result on the split. The data frame has one row
        per data set, kernel and training size, and one column per machine. Without common splits,
        the means are NaN. If no values of single splits are known, the means of the long table are
        returned.
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

    def places_of(self, kernel: KernelKey) -> list[Key]:
        """Return the combinations of data set and training size for one kernel."""
        return [place for place in self.places if (place.kernel, place.degree) == kernel]

    # -- heads -----------------------------------------------------------------------------------

    def columns(
        self, *heads: str, machines: Sequence[str] | None = None, group: str = ""
    ) -> tuple[Column, ...]:
        """Return the columns of a table block: left-aligned columns with the headings `heads`, then
        one column per machine.
        """
        names = self.machines if machines is None else machines
        return (*words(*heads), *numbers(*map(self.label, names), group=group))

    def printed(self, dataset: str) -> str:
        """Return the name of a data set in the published table, or else its name in mmbench."""
        names = (row["printed_dataset"] for row in self.published if row["dataset"] == dataset)
        return next(names, dataset)

    def name(self, place: Key) -> str:
        """Return the name of a data set in the paper, with the name of the kernel if the table has
        several kernels.
        """
        kernel = f"({kernel_text(place.kernel, place.degree)})" if len(self.kernels) > 1 else ""
        return join(self.printed(place.dataset), kernel)

    def caption(self, kernel: KernelKey, size: int | None = None) -> str:
        """Return the full name of a kernel as a caption, with its degree and the training size.

        Classifiers of other packages are mentioned, since they do not use this kernel.
        """
        degree = "" if kernel[1] is None else f", degree {kernel[1]}"
        names = [KERNEL_LABELS[kernel[0]] + degree, "other packages"]
        machines = {key.machine for key in self.keys if (key.kernel, key.degree) == kernel}
        others = sorted({machine in self.experiment.foreign for machine in machines})
        return " and ".join(map(names.__getitem__, others)) + (f", {size} rows" if size else "")

    def head(self, place: Key, name: str = "") -> str:
        """Return `name`, followed by the marks of the footnotes on the data set.

        The default name is the result of the method `name`.
        """
        texts = self.deviations.get(place.dataset, ())
        marks = (self._mark(text, Key(place.dataset, "", None, "")) for text in texts)
        return join(name or self.name(place), "".join(marks))

    # -- cells -----------------------------------------------------------------------------------

    def marked(self, text: str, row: Row, kernel: bool = True) -> str:
        """Return the text of a table cell, followed by its comparison mark and footnote marks."""
        text = join(text, row.mark, self.cite(row, kernel))
        return Shown(text, row) if row.metric else text

    def cite(self, row: Row, kernel: bool = True) -> str:
        """Return the marks of the footnotes to a table cell.

        A first footnote contains the note of the table cell, after the names of the machine and the
        data set. If `kernel` is true, the footnote also names the kernel. If the machine was not
        run, the first footnote is left out. If the published value is not usable for a comparison,
        a second footnote states the reason. The second footnote names no table cell, since the same
        reason often applies to a whole column.
        """
        if not row.metric:
            return ""
        key = row.key if kernel else row.key._replace(kernel="", degree=None)
        not_run = (row.status, row.measured) == (MISSING, None)
        return self._mark("" if not_run else row.note, key) + self._mark(row.objection)

    def _mark(self, text: str, key: Key | None = None) -> str:
        """Return the mark of a footnote, for example ``[1]``.

        Footnotes with equal texts have the same mark.
        """
        if not text:
            return ""
        keys = self._notes.setdefault(text, [])
        keys += [key] if key else []
        return f"[{list(self._notes).index(text) + 1}]"

    @property
    def footnotes(self) -> list[str]:
        """Texts of the footnotes that have been cited so far. A footnote on some machines or data
        sets begins with their names.
        """
        return [f"{self.about(own)}: {text}" if own else text for text, own in self._notes.items()]

    def about(self, keys: Iterable[Key]) -> str:
        """Return a text that names the machines, data sets and kernels of table cells. Data sets
        with the same machines and kernel are listed together. Training sizes are named if `keys`
        contains only some of the sizes.
        """

        def kernel_of(key: Key, sizes: list[int | None]) -> str:
            some = f"{', '.join(map(str, dict.fromkeys(sizes)))} rows" if {*sizes} < every else ""
            foreign = key.machine in self.experiment.foreign
            kernel = "" if foreign else kernel_text(key.kernel, key.degree)
            return ", ".join(filter(None, [kernel, some]))

        every = {key.size for key in self.keys}
        sizes = grouped((key._replace(size=None), key.size) for key in keys)
        machines = grouped(
            ((key.dataset, kernel_of(key, own)), key.machine and self.label(key.machine))
            for key, own in sizes.items()
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


def has_other_code(record: Record) -> bool:
    """Return whether the code of machine or preprocessing has changed since a record was made."""
    with suppress(UserError):  # raised if the machine no longer exists
        today = identity(record.job)
        return any(record.code.get(part) != today.get(part) for part in ("fingerprint", "steps"))
    return True
