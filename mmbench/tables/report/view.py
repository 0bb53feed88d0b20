"""Values that the pages of an experiment show: tables, a summary, table cells, and facts about the
run.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from itertools import chain, count
from typing import Any

from mmbench.datasets.card import Card, load_card
from mmbench.datasets.card_files import card_names
from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.jobs.disk import read_regular
from mmbench.jobs.planned import Key, grouped
from mmbench.jobs.seal import BadRecord
from mmbench.jobs.store import CONFIG
from mmbench.results.cells import (
    ALL_IN_BAND,
    METRIC,
    MISSING,
    PUBLISHED_ONLY,
    SELECTED,
    Row,
    rows_of,
)
from mmbench.results.folder import as_text
from mmbench.results.frames import Results
from mmbench.results.splits import SECONDS
from mmbench.tables.blocks import by_name, chosen_text
from mmbench.tables.build import arrange, laid_out
from mmbench.tables.text import (
    NOTHING,
    join,
    kernel_text,
    published_text,
    seconds_text,
    small_text,
)

#: Maximum number of characters in a file name, below the limit of file systems (255 bytes).
LENGTH = 80


def unique_names(texts: Iterable[str]) -> list[str]:
    """For each text, return a unique name that is valid in file systems and URLs.

    If two texts lead to the same name, a number is appended to the second name.

    Examples
    --------
    >>> unique_names(["USPS <rbf>/svm", "usps rbf svm", "../.."])
    ['usps-rbf-svm', 'usps-rbf-svm-2', 'unnamed']
    """
    names: dict[str, None] = {}
    for text in texts:
        base = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:LENGTH].strip("-_") or "unnamed"
        numbered = chain([base], (f"{base}-{k}" for k in count(2)))
        names[next(name for name in numbered if name not in names)] = None
    return list(names)


def data_text(key: Key, with_kernel: bool = True) -> str:
    """Return a text that names the data set, kernel and training size of a table cell.

    Examples
    --------
    >>> data_text(Key("usps", "poly", 2, "svm", 1000))
    'usps (poly 2, 1000 rows)'
    """
    parts = [kernel_text(key.kernel, key.degree)] if with_kernel else []
    parts += [] if key.size is None else [f"{key.size} rows"]
    return join(key.dataset, f"({', '.join(parts)})" if parts else "")


METRIC_NAMES = {
    METRIC: "accuracy (%)",
    "errors_count": "errors",
    "errors_expected": "errors expected under random tie-breaking",
    "n_ties": "tied votes",
    "n_support": "support vectors per pair",
}

#: Metrics of the certificates in one table cell: largest duality gap, tolerance for the gap, and
#: largest constraint violation.
CERTIFICATE = ("worst_gap", "gap_tolerance", "worst_violation")

#: Type of a list of pairs (name, value). A page shows the list as an HTML description list.
Facts = list[tuple[str, str]]

#: Statuses of table cells in which all trainings ended as intended or have no certificate. The
#: summary of an experiment counts complete table cells with any other status as doubtful.
SOUND = (*FINISHED, Status.UNCERTIFIED)


class View:
    """Results with the values that the pages of their report show.

    Parameters
    ----------
    results : Results
    folder : str
        Folder of the pages of the results, relative to the folder of the report.
    """

    def __init__(self, results: Results, folder: str):
        self.results = results = laid_out(results)
        self.folder, self.name, self.table = folder, results.name, arrange(results)
        path = results.folder / CONFIG
        #: Configuration of the run as text, or an empty text if there are no records.
        self.config = ""
        if results.has_records:
            with suppress(BadRecord, FileNotFoundError):  # a link is not followed
                self.config = read_regular(path).decode("utf-8", "replace")
        #: Metric for which measured and published values are compared.
        self.metric = results.metric
        rows = (results.row(key, self.metric) for key in results.keys)
        #: Rows of the frame ``cells`` for the metric `metric`, with one row per planned cell. The
        #: attribute `keys` contains the keys of these cells.
        self.rows = [row for row in rows if row.status != PUBLISHED_ONLY]
        self.keys = [row.key for row in self.rows]
        ran = {row.key.machine for row in self.rows if row.measured is not None}
        #: Machines with results, in the order of the configuration.
        self.ran = [machine for machine in results.configured if machine in ran]
        #: Keys of the cells in which splits are missing.
        self.incomplete = {
            row.key
            for row in self.rows
            if row.status == MISSING or row.measured is None or self.failed(row.key)
        }
        #: Rows of incomplete cells, and of cells whose status is not in `SOUND`.
        self.failures = [r for r in self.rows if r.key in self.incomplete or r.status not in SOUND]
        #: Splits of each data set.
        self.datasets = grouped((row.dataset, row) for row in rows_of(results.splits))
        #: Rows of the frame ``cells`` with a measured value, by cell.
        self.metrics = grouped((r.key, r) for r in rows_of(results.cells) if r.measured is not None)
        #: HTML identifiers of the elements that show the details of cells.
        self.ids = {key: f"details-{k}" for k, key in enumerate(self.keys)}
        names = unique_names(f"{data_text(key)} {key.machine}" for key in results.by_cell)
        #: Path of the page of each cell with splits, relative to the folder of the experiment's
        #: pages.
        self.pages = {key: f"cells/{n}.html" for key, n in zip(results.by_cell, names, strict=True)}
        #: The frame ``splits`` as it is written to files.
        self.splits = as_text("splits", results.splits, results.foreign)

    def failed(self, key: Key) -> list[Row]:
        """Return the splits of a cell without a result."""
        return [row for row in self.results.by_cell.get(key, ()) if row.accuracy_pct is None]

    def heading(self, key: Key) -> str:
        """Return the title of a cell's page: machine, data set, kernel and training size."""
        text = data_text(key, key.machine not in self.results.foreign)
        return f"{self.results.label(key.machine)} on {text}"

    def details(self, key: Key) -> Facts:
        """Return the facts about a cell that a page shows on hover or tap."""
        results, facts = self.results, Facts()
        for row in (results.row(key, metric) for metric in (METRIC, "errors_count")):
            if row.metric and (row.metric == self.metric or row.published is not None):
                name = metric_name(row.metric)
                facts += [(name, measured(row)), (f"published {name}", published(row))]
                facts += [("difference", difference(row)), ("not compared", row.objection)]
        times, used = by_name(results, key), results.plan.uses.get(key.machine)
        seconds = ", ".join(f"{name} {seconds_text(value)}" for name, value in times.items())
        seconds += f"; selection reused from {results.label(used)}" if used else ""
        return [
            *facts,
            ("parameters", self.parameters(key)),
            ("certificate", gap_text(*self.certificate(key))),
            ("CPU seconds per split", seconds if set(times.values()) != {None} else ""),
            ("remark", results.row(key, METRIC).note),
        ]

    def certificate(self, key: Key) -> tuple[float | None, ...]:
        """Return the values of the metrics `CERTIFICATE` in a cell."""
        return tuple(self.results.value(key, metric) for metric in CERTIFICATE)

    def parameters(self, key: Key) -> str:
        """Return the selected parameters of a cell as text. If parameters were selected on several
        splits or pairs of classes, the text states the median of each parameter.
        """
        if (chosen := chosen_text(self.results, key)) != NOTHING:
            return chosen
        rows = (row for row in self.metrics.get(key, ()) if row.metric.startswith(SELECTED))
        return ", ".join(f"{r.metric.removeprefix(SELECTED)} {r.measured:.3g}" for r in rows)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """Numbers and texts that summarize the experiment on the overview page."""
        results, rows = self.results, self.rows
        compared = [row.in_band for row in rows if row.in_band is not None]
        timed = results.cells[results.cells.metric.isin(SECONDS)]
        fits = [(row.status == Status.STOPPED_BY_RULE, *self.certificate(row.key)) for row in rows]
        # The summary shows the duality gap with the largest ratio of gap to tolerance. Cells
        # without a tolerance are used only if no cell has a tolerance. Cells whose trainings were
        # ended by the paper's stopping rule (status `STOPPED_BY_RULE`) are reported separately,
        # since their gaps are not small.
        ended = [gap for stopped, gap, *_ in fits if stopped and gap is not None]
        known = [(gap, tol) for stopped, gap, tol, _ in fits if not stopped and gap is not None]
        known = [pair for pair in known if pair[1] is not None] or known
        gap, tolerance = max(known, key=lambda p: p[0] / (p[1] or 1.0), default=(None, None))
        violation = max((fit[3] for fit in fits if fit[3] is not None), default=None)
        above = int(sum(results.value(key, "gaps_above_tolerance") or 0.0 for key in self.keys))
        certificate = [
            gap_text(gap, tolerance, violation, unknown="unknown"),
            f"{above} gaps above tolerance" if above else "",
            f"gap {small_text(max(ended))} if stopped by the rule of the paper" if ended else "",
        ]
        days = sorted(text[:10] for text in results.splits.finished if text)
        statuses = {row.status for row in rows}
        doubtful = (row for row in rows if row.status not in SOUND)
        return {
            "n_cells": len(rows),
            "n_compared": len(compared),
            "n_in_band": sum(compared),
            "n_incomplete": len(self.incomplete),
            "n_failed": sum(bool(self.failed(key)) for key in results.by_cell),
            "n_doubtful": sum(row.key not in self.incomplete for row in doubtful),
            "worst_status": ([str(s) for s in SEVERITY if s in statuses] or [""])[-1],
            "gap": gap,
            "certificate": ", ".join(filter(None, certificate)) or NOTHING,
            "cpu_seconds": sum((timed.measured * timed.n).fillna(0.0)),
            "days": list(dict.fromkeys(days[:1] + days[-1:])),
        }


def metric_name(metric: str) -> str:
    """Return the name of a metric as shown in the report.

    Examples
    --------
    >>> metric_name("accuracy_pct"), metric_name("seconds_test")
    ('accuracy (%)', 'seconds test')
    """
    return METRIC_NAMES.get(metric, metric.replace("_", " "))


def measured(row: Row) -> str:
    """Return the measured mean as text, with standard deviation, standard error and number of
    splits.
    """
    if row.measured is None:
        return row.status.replace("_", " ")
    spread = "" if row.sd is None else f" ± {number(row.sd, row.metric)} (standard deviation)"
    error = [] if row.se is None else [f"standard error {number(row.se, row.metric)}"]
    known = [] if row.n is None else [f"n = {row.n}"]
    return ", ".join([number(row.measured, row.metric) + spread, *error, *known])


def published(row: Row) -> str:
    """Return the published value as text with its uncertainty, or an empty text if there is no
    value.
    """
    return "" if row.published is None else published_text(row)


def difference(row: Row) -> str:
    """Return the measured minus the published value as text, and its absolute value in standard
    errors.
    """
    if row.in_band is None or row.measured is None or row.published is None:
        return ""
    errors = "" if row.z is None else f", {abs(row.z):.2g} standard errors"
    verdict = "in the band" if row.in_band else "out of the band"
    verdict += ", as are all compared published values" if row.mark == ALL_IN_BAND else ""
    return f"{signed(row.measured - row.published, row.metric)}{errors}: {verdict}"


def gap_text(
    gap: float | None, tolerance: float | None, violation: float | None, *, unknown: str = ""
) -> str:
    """Return duality gap, tolerance for the gap, and constraint violation as text.

    If the tolerance is None, `unknown` is shown in place of the tolerance.

    Examples
    --------
    >>> gap_text(2e-6, 1e-3, 1e-12)
    'gap 2.0e-06 (tolerance 1.0e-03), violation 1.0e-12'
    """
    asked = unknown if tolerance is None else f"{tolerance:.1e}"
    asked = f" (tolerance {asked})" if asked else ""
    parts = ["" if gap is None else f"gap {small_text(gap)}{asked}"]
    parts.append("" if violation is None else f"violation {small_text(violation)}")
    return ", ".join(filter(None, parts))


def number(value: float | None, metric: str) -> str:
    """Return a value as text with the number of decimals for its metric, or an empty text for None.

    Examples
    --------
    >>> number(95.4567, "accuracy_pct"), number(91.0, "errors_count"), number(91.2, "errors_count")
    ('95.46', '91', '91.2')
    """
    if value is None:
        return ""
    return f"{value:.{2 if metric == METRIC else 0 if float(value).is_integer() else 1}f}"


def signed(value: float, metric: str) -> str:
    """Return a difference as text with its sign.

    For the minus sign, the Unicode character with the width of a plus sign is used.

    Examples
    --------
    >>> signed(-0.5, "accuracy_pct"), signed(2.0, "errors_count"), signed(1e-9, "accuracy_pct")
    ('−0.50', '+2', '0.00')
    """
    text = number(abs(value), metric)
    return ("" if float(text) == 0 else "+" if value > 0 else "−") + text


def duration(seconds: float) -> str:
    """Return a duration as text, in seconds, minutes or hours.

    Examples
    --------
    >>> duration(0.4), duration(75.2), duration(4000), duration(200_000)
    ('0.4 s', '75 s', '1.1 h', '56 h')
    """
    unit, length = ("h", 3600) if seconds >= 3600 else ("min", 60) if seconds >= 120 else ("s", 1)
    value = seconds / length
    return f"{value:.{1 if value < 10 else 0}f} {unit}"


def card_of(dataset: str) -> Card | None:
    """Return the card that describes a data set, or None if the data set has no card."""
    return load_card(dataset) if dataset in card_names() else None


def parameters_text(parameters: Any) -> str:
    """Return parameters as a text such as ``C 10, gamma 0.1``.

    If parameters are selected per pair of classes, they are a list, and the text states only the
    number of different choices.

    Examples
    --------
    >>> parameters_text({"C": 10, "gamma": 0.0078125}), parameters_text([{"C": 1}, {"C": 10}])
    ('C 10, gamma 0.00781', '2 pairs of classes, 2 choices')
    """
    if isinstance(parameters, list):
        choices = {json.dumps(choice, sort_keys=True) for choice in parameters}
        return f"{len(parameters)} pairs of classes, {len(choices)} choices"
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in (parameters or {}).items()
        if value is not None
    )


def limits_text(split: Row, results: Results) -> str:
    """If a limit stopped a job, return the stage, time and memory of the job as text. Otherwise,
    and without a record, return an empty text.
    """
    record = results.record(split.record)
    reached = record.reached if record else {}
    memory = f" with {reached['bytes'] / 1e6:.0f} MB" if reached.get("bytes") else ""
    seconds = f" after {reached['seconds']:.0f} s" if reached.get("seconds") else ""
    return f"stopped in {reached.get('stage') or 'the job'}{seconds}{memory}" if reached else ""


def run_facts(results: Results) -> Facts:
    """Return facts about a run: versions, computers, threads, seeds and limits.

    If a fact has several values, the number of records with each value is stated.
    """
    facts = Facts()
    for row in rows_of(results.splits):
        if not row.mmbench:
            continue
        record = results.record(row.record)
        run, limits = (record.environment, record.limits) if record else ({}, {})
        pools = sorted(run.get("threads", {}).get("libraries", {}).items())
        cores = f"{run['cores']} cores" if "cores" in run else ""
        time, memory = map(limits.get, ("time", "memory"))
        bounds = [f"{time:g} s" if time else "", f"{memory / 1e6:.0f} MB" if memory else ""]
        threads = [("pairs of classes at a time", row.pairs_at_a_time), *pools]
        facts += [
            ("mmbench", row.mmbench),
            ("Python", row.python),
            ("computer", ", ".join(filter(None, [row.computer, cores, run.get("platform")]))),
            ("libraries", ", ".join(map(" ".join, (row.libraries or {}).items()))),
            ("threads", ", ".join(f"{name}: {count}" for name, count in threads)),
            ("master seed", str(row.seed)),
            ("limits of a job", (", ".join(filter(None, bounds)) or "none") if record else ""),
        ]

    def text(values: Counter[str]) -> str:
        counted = (f"{value} ({n} of {values.total()} records)" for value, n in values.items())
        return "; ".join(counted) if len(values) > 1 else next(iter(values))

    return [(name, text(Counter(values))) for name, values in grouped(facts).items()]
