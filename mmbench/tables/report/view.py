"""An experiment as its pages show it: sheet, drawn table, summary, facts of the run, and cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import CONFIG, Key
from mmbench.tables.blocks import CALIBRATION, STAGES, by_name
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.model import NOTHING, join, kernel_text, seconds_text
from mmbench.tables.records import PUBLISHED_ONLY, Experiment
from mmbench.tables.results import Reference
from mmbench.tables.rows import ALL_IN_BAND, SELECTED, Row

#: Longest name in characters; file systems allow 255 bytes, which include the folders.
LENGTH = 80


class Names:
    """Unique names that are safe in any file system and in an address."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, text: str) -> str:
        """Return a name made of a text, numbered if the name is taken.

        Examples
        --------
        >>> names = Names()
        >>> names.free("USPS <rbf>/svm"), names.free("usps rbf svm"), names.free("../..")
        ('usps-rbf-svm', 'usps-rbf-svm-2', 'unnamed')
        """
        base = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:LENGTH].strip("-_") or "unnamed"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}-{count}"
        self._taken.add(name)
        return name


def place_text(key: Key) -> str:
    """Return data set, kernel and training size of a cell, in words.

    Examples
    --------
    >>> place_text(Key("usps", "poly", 2, "svm", 1000))
    'usps (poly 2, 1000 rows)'
    """
    size = [] if key.size is None else [f"{key.size} rows"]
    return join(key.dataset, f"({', '.join([kernel_text(key.kernel, key.degree), *size])})")


ACCURACY, ERRORS = "accuracy_pct", "errors_count"


class View:
    """An experiment and what its pages share.

    Parameters
    ----------
    experiment : Experiment or Reference
    folder : str
        Folder of its pages, below the folder of the report.
    """

    def __init__(self, experiment: Experiment | Reference, folder: str):
        self.experiment, self.folder, self.name = experiment, folder, experiment.name
        self.sheet = sheet_of(experiment)
        self.cells = self.sheet.cells
        self.table = arrange(self.sheet)
        self.title = self.table.title.removeprefix(f"{self.name}: ")
        self.has_records = isinstance(experiment, Experiment)
        published = {row.metric for row in self.sheet.rows if row.published is not None}
        #: The metric by which cells are compared: errors if only these are published.
        self.metric = ERRORS if ERRORS in published and ACCURACY not in published else ACCURACY
        rows = (self.sheet.row(key, self.metric) for key in self.sheet.keys)
        #: The row of this metric of every cell that was to run, and the cells' keys.
        self.rows = [row for row in rows if row is not None and row.status != PUBLISHED_ONLY]
        self.keys = [row.key for row in self.rows]
        #: Cells that lack results.
        self.incomplete = frozenset(row.key for row in self.rows if self._lacks_results(row))
        names = Names()
        #: Pages of the cells with records, below `folder`.
        self.pages = {
            key: f"cells/{names.free(f'{place_text(key)} {key.machine}')}.html"
            for key, cell in self.cells.items()
            if cell.records
        }

    def _lacks_results(self, row: Row) -> bool:
        cell = self.cells.get(row.key)
        return len(cell.done) < cell.planned.n_splits if cell else row.measured is None

    def heading(self, key: Key) -> str:
        """Return the name of a cell: machine, data set and kernel."""
        return f"{self.sheet.label(key.machine)} on {place_text(key)}"


NAMES = {
    ACCURACY: "accuracy (%)",
    ERRORS: "errors",
    "errors_expected": "errors expected with ties drawn at random",
    "n_ties": "tied votes",
    "n_support": "support vectors a pair",
}

#: Names and values, as a list of definitions.
Facts = list[tuple[str, str]]


def metric_name(metric: str) -> str:
    """Return what a metric is called.

    Examples
    --------
    >>> metric_name("accuracy_pct"), metric_name("seconds_test")
    ('accuracy (%)', 'seconds test')
    """
    return NAMES.get(metric, metric.replace("_", " "))


def details(view: View, key: Key) -> Facts:
    """Return what a tap on a cell tells."""
    rows = [row for metric in (ACCURACY, ERRORS) if (row := view.sheet.row(key, metric))]
    shown = [row for row in rows if row.metric == view.metric or row.published is not None]
    facts = [fact for row in shown for fact in result(row)]
    return [
        *facts,
        ("parameters", parameters(view, key)),
        ("certificate", certificate(view, key)),
        ("CPU seconds a split", seconds(view, key)),
        ("remark", rows[0].note if rows else ""),
    ]


def result(row: Row) -> Facts:
    """Return what was measured, what is published, and how far they lie apart."""
    name = metric_name(row.metric)
    facts = [(name, measured(row)), (f"published {name}", published(row))]
    return [*facts, ("difference", difference(row)), ("not compared", row.objection)]


def measured(row: Row) -> str:
    """Return a mean with its spread and the number of splits."""
    if row.measured is None:
        return row.status.replace("_", " ")
    spread = "" if row.sd is None else f" ± {number(row.sd, row.metric)} (standard deviation)"
    error = [] if row.se is None else [f"standard error {number(row.se, row.metric)}"]
    return ", ".join([number(row.measured, row.metric) + spread, *error, f"n = {row.n}"])


def published(row: Row) -> str:
    """Return what a paper prints."""
    if row.published is None:
        return ""
    return f"{row.published:g}" + (
        "" if row.published_spread is None else f" ({row.published_spread:g})"
    )


def difference(row: Row) -> str:
    """Return the difference of both, in its standard errors."""
    if row.in_band is None or row.measured is None or row.published is None:
        return ""
    apart = "" if row.z is None else f", {abs(row.z):.2g} standard errors"
    verdict = "in the band" if row.in_band else "out of the band"
    verdict += ", as all published values of the row" if row.mark == ALL_IN_BAND else ""
    return f"{signed(row.measured - row.published, row.metric)}{apart}: {verdict}"


def parameters(view: View, key: Key) -> str:
    """Return the medians of the parameters that were selected."""
    chosen = view.sheet.selected.get(key)
    if chosen:
        return ", ".join(map(str, chosen))
    rows = (row for row in view.sheet.rows if row.key == key and row.metric.startswith(SELECTED))
    return ", ".join(f"{r.metric.removeprefix(SELECTED)} {r.measured:.3g}" for r in rows)


def certificate(view: View, key: Key) -> str:
    """Return the largest gap and violation of a cell's fits."""
    gap, asked, violation = (
        view.sheet.value(key, metric)
        for metric in ("worst_gap", "gap_tolerance", "worst_violation")
    )
    return gap_text(gap, asked, violation)


def gap_text(
    gap: float | None, asked: float | None, violation: float | None, unknown: str = ""
) -> str:
    """Return a certificate in words; `unknown` stands where it is not known what was asked.

    Examples
    --------
    >>> gap_text(2e-6, 1e-3, 1e-12)
    'gap 2.0e-06 (asked 1.0e-03), violation 1.0e-12'
    """
    wanted = unknown if asked is None else f"{asked:.1e}"
    parts = ["" if gap is None else f"gap {gap:.1e}" + (f" (asked {wanted})" if wanted else "")]
    parts.append("" if violation is None else f"violation {violation:.1e}")
    return ", ".join(filter(None, parts))


def seconds(view: View, key: Key) -> str:
    """Return the CPU seconds of every stage."""
    values = by_name(view.sheet, key)
    if set(values.values()) == {None}:
        return ""
    used = view.sheet.plan.uses.get(key.machine)
    other = f"; selection taken over from {view.sheet.label(used)}" if used else ""
    return ", ".join(f"{name} {seconds_text(value)}" for name, value in values.items()) + other


def number(value: float, metric: str) -> str:
    """Return a value with the decimals of its metric.

    Examples
    --------
    >>> number(95.4567, "accuracy_pct"), number(91.0, "errors_count"), number(91.2, "errors_count")
    ('95.46', '91', '91.2')
    """
    if metric == ACCURACY:
        return f"{value:.2f}"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def signed(value: float, metric: str) -> str:
    """Return a difference with its sign, a minus that is as wide as the plus.

    Examples
    --------
    >>> signed(-0.5, "accuracy_pct"), signed(2.0, "errors_count"), signed(1e-9, "accuracy_pct")
    ('−0.50', '+2', '0.00')
    """
    text = number(abs(value), metric)
    sign = "" if float(text) == 0 else "+" if value > 0 else "−"
    return sign + text


#: Statuses of a cell that say nothing against it.
SOUND = (*FINISHED, Status.UNCERTIFIED)
RUN_WITH = "Run with "


def summarize(view: View) -> dict[str, Any]:
    """Return an experiment in one line: numbers under ``summary``, and some of them in words."""
    sheet = view.sheet
    compared = [row.in_band for row in view.rows if row.in_band is not None]
    whole = (row for row in view.rows if row.key not in view.incomplete)
    n_above = int(sum(_values(view, "gaps_above_tolerance")))
    violation = max(_values(view, "worst_violation"), default=None)
    gap, asked = _largest_gap(view)
    timed = {f"seconds_{stage}" for stage in (*STAGES, CALIBRATION)}
    seconds = sum(
        row.measured * (row.n or 0)
        for row in sheet.rows
        if row.metric in timed and row.measured is not None
    )
    records = [record for record in _records(view) if record.started]
    started = min((record.started for record in records), default="")[:10]
    finished = max((record.finished for record in records), default="")[:10]
    statuses = {row.status for row in view.rows}
    summary = {
        "n_cells": len(view.rows),
        "n_compared": len(compared),
        "n_in_band": sum(compared),
        "n_incomplete": len(view.incomplete),
        "n_failed": sum(bool(cell.failed) for cell in view.cells.values()),
        "n_doubtful": sum(row.status not in SOUND for row in whole),
        "worst_status": ([str(s) for s in SEVERITY if s in statuses] or [""])[-1],
        "gap": gap,
        "cpu_seconds": seconds,
        "started": started,
    }
    certificate = gap_text(gap, asked, violation, unknown="not known")
    above = f"{n_above} gaps above" if n_above else ""
    computers = (note.removeprefix(RUN_WITH) for note in remarks(view) if note.startswith(RUN_WITH))
    return {
        "summary": summary,
        "certificate": ", ".join(filter(None, [certificate, above])) or NOTHING,
        "cpu": duration(seconds),
        # The number of pairs trained at a time stands on the experiment's own page.
        "computers": list(dict.fromkeys(text.partition(";")[0] for text in computers)),
        "when": " to ".join(dict.fromkeys((started, finished))) or NOTHING,
    }


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> duration(0.4), duration(75.2), duration(4000), duration(200_000)
    ('0.4 s', '75 s', '1.1 h', '56 h')
    """
    for length, unit in ((3600, "h"), (120, "min")):
        if seconds >= length:
            value = seconds / (3600 if unit == "h" else 60)
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def remarks(view: View) -> tuple[str, ...]:
    """Return the remarks on a whole run; of a reference table those of its text."""
    if isinstance(view.experiment, Experiment):
        return view.sheet.remarks
    lines = (view.experiment.text or "").splitlines()
    return (*view.experiment.remarks, *(line[2:] for line in lines if line.startswith("- ")))


def _largest_gap(view: View) -> tuple[float | None, float | None]:
    """Return the largest gap and its tolerance, of machines with a tolerance if there are any.

    Fits that stop by a rule of their own do not count.
    """
    keys = [row.key for row in view.rows if row.status != Status.STOPPED_BY_RULE]
    cells = [[view.sheet.value(k, m) for m in ("worst_gap", "gap_tolerance")] for k in keys]
    known = [(gap, asked) for gap, asked in cells if gap is not None]
    asked_of = [(gap, asked) for gap, asked in known if asked is not None]
    return max(asked_of or known, key=lambda cell: cell[0], default=(None, None))


def _values(view: View, metric: str) -> Iterable[float]:
    values = (view.sheet.value(key, metric) for key in view.keys)
    return (value for value in values if value is not None)


def config_text(view: View) -> str:
    """Return the configuration as run; empty where it is not known."""
    if not isinstance(view.experiment, Experiment):
        return ""
    return (view.experiment.folder / CONFIG).read_text(encoding="utf-8", errors="replace")


def data_facts(view: View) -> list[dict[str, Any]]:
    """Return a line a data set: sizes, hash, preprocessing, licence, deviations."""
    by_name: dict[str, list[Record]] = {}
    for record in _records(view):
        by_name.setdefault(record.job.dataset.name, []).append(record)
    return [_data_line(view, name, records) for name, records in by_name.items()]


def _data_line(view: View, name: str, records: list[Record]) -> dict[str, Any]:
    from mmbench.datasets import card_names, load_card
    from mmbench.tables.protocol import preprocessed

    card = load_card(name) if name in card_names() else None
    sizes = view.sheet.sizes.get(name, {})
    return {
        "name": name,
        "title": card.title if card else str(records[0].job.dataset.path or ""),
        "sizes": sizes,
        "hashes": sorted({record.job.dataset_hash for record in records}),
        "preprocessing": preprocessed([record.job for record in records]),
        "splits": len({record.split["digest"] for record in records if record.done}),
        "licence": card.licence if card else "",
        "deviations": view.sheet.deviations.get(name, ()),
    }


def run_facts(view: View) -> Facts:
    """Return versions, computers, threads and seeds, each with how many records have it."""
    records = [record for record in _records(view) if record.environment]
    if not records:
        return []
    environments = [record.environment for record in records]
    facts = {
        "mmbench": (e["mmbench"] for e in environments),
        "Python": (e["python"] for e in environments),
        "computer": (_computer(e) for e in environments),
        "libraries": (_versions(e.get("libraries", {})) for e in environments),
        "threads": (_threads(e.get("threads", {})) for e in environments),
        "master seed": (r.seeds.get("master", r.job.split.seed) for r in records),
        "limits of a job": (_limits(r.limits) for r in records),
    }
    return [(name, _counted(values, len(records))) for name, values in facts.items()]


def _records(view: View) -> list[Record]:
    return view.experiment.records if isinstance(view.experiment, Experiment) else []


def _computer(environment: Any) -> str:
    parts = [environment["cpu"]]
    parts += [f"{environment['cores']} cores"] if "cores" in environment else []
    return ", ".join([*parts, *filter(None, [environment.get("platform")])])


def _versions(libraries: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in libraries.items())


def _threads(threads: Any) -> str:
    pools = (f"{name}: {count}" for name, count in sorted(threads.get("libraries", {}).items()))
    return ", ".join([f"pairs of classes at a time: {threads.get('pairs')}", *pools])


def _limits(limits: Any) -> str:
    time, memory = limits.get("time"), limits.get("memory")
    parts = [f"{time:g} s" if time else "", f"{memory / 1e6:.0f} MB" if memory else ""]
    return ", ".join(filter(None, parts)) or "none"


def _counted(values: Iterable[Any], total: int) -> str:
    """Return the distinct values, with how many records have each where there are several."""
    counts = Counter(str(value) for value in values)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{value} ({count} of {total} records)" for value, count in counts.items())
