"""An experiment as its pages show it: sheet, drawn table, summary, facts of the run, and cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mmbench.errors import FINISHED, SEVERITY, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import CONFIG, Key
from mmbench.tables.blocks import CALIBRATION, STAGES, by_name
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.model import Table, join, kernel_text, seconds_text
from mmbench.tables.records import PUBLISHED_ONLY, Cell, Experiment
from mmbench.tables.results import Reference
from mmbench.tables.rows import SELECTED, Row
from mmbench.tables.sheet import Sheet

#: Characters of a name; file systems allow 255 bytes, and folders come before it.
LENGTH = 80


class Names:
    """Gives out names that are safe in any file system and in an address, each one once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, text: str) -> str:
        """Return a name made of a text, numbered where it is taken.

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
    """Return where a cell stands, in words: data set, kernel and training size.

    Examples
    --------
    >>> place_text(Key("usps", "poly", 2, "svm", 1000))
    'usps (poly 2, 1000 rows)'
    """
    size = [] if key.size is None else [f"{key.size} rows"]
    return join(key.dataset, f"({', '.join([kernel_text(key.kernel, key.degree), *size])})")


ACCURACY, ERRORS = "accuracy_pct", "errors_count"


@dataclass(frozen=True)
class View:
    """What the pages of an experiment share."""

    experiment: Experiment | Reference
    sheet: Sheet
    #: In the layout of the experiment.
    table: Table
    #: Of its pages, below that of the report.
    folder: str

    @classmethod
    def of(cls, experiment: Experiment | Reference, folder: str) -> View:
        """Return the view of an experiment."""
        sheet = sheet_of(experiment)
        return cls(experiment, sheet, arrange(sheet), folder)

    @property
    def name(self) -> str:
        """The experiment's name."""
        return self.experiment.name

    @property
    def title(self) -> str:
        """What its table shows."""
        return self.table.title.removeprefix(f"{self.name}: ")

    @property
    def has_records(self) -> bool:
        """Whether there are records, not the table of an earlier run alone."""
        return isinstance(self.experiment, Experiment)

    @cached_property
    def cells(self) -> Mapping[Key, Cell]:
        """The cells of the plan; none where there are no records."""
        if not isinstance(self.experiment, Experiment):
            return {}
        return {cell.key: cell for cell in self.experiment.cells}

    @cached_property
    def pages(self) -> Mapping[Key, str]:
        """The pages of the cells with records, below the folder of the experiment."""
        names = Names()
        return {
            key: f"cells/{names.free(f'{place_text(key)} {key.machine}')}.html"
            for key, cell in self.cells.items()
            if cell.records
        }

    @cached_property
    def metric(self) -> str:
        """What the cells are compared by: accuracy, or errors where only these are published."""
        published = {row.metric for row in self.sheet.rows if row.published is not None}
        return ERRORS if ERRORS in published and ACCURACY not in published else ACCURACY

    @cached_property
    def rows(self) -> list[Row]:
        """The row of the metric of every cell that was to run."""
        rows = (self.sheet.row(key, self.metric) for key in self.sheet.keys)
        return [row for row in rows if row is not None and row.status != PUBLISHED_ONLY]

    @cached_property
    def incomplete(self) -> frozenset[Key]:
        """The cells that lack results; of a table without records those that have none."""
        return frozenset(
            row.key
            for row in self.rows
            if (
                len(self.cells[row.key].done) < self.cells[row.key].planned.n_splits
                if row.key in self.cells
                else row.measured is None
            )
        )

    @cached_property
    def keys(self) -> list[Key]:
        """The cells of `rows`."""
        return [row.key for row in self.rows]

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
    return f"{signed(row.measured - row.published, row.metric)}{apart}: {verdict}"


def parameters(view: View, key: Key) -> str:
    """Return the medians of the parameters that were selected."""
    chosen = view.sheet.facts.selected.get(key)
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


@dataclass(frozen=True)
class Summary:
    """What the overview says of an experiment."""

    #: Cells that were to run; of these compared with a published value; of these met.
    n_cells: int
    n_compared: int
    n_in_band: int
    #: Cells in which some split failed or was not run.
    n_incomplete: int
    #: Cells in which a job failed.
    n_failed: int
    #: Complete cells with a fit that is not optimal.
    n_doubtful: int
    #: Of all fits and jobs.
    worst_status: str
    #: The largest relative gap of machines of which one was asked, and what was asked; where that
    #: is not known, the largest of all that did not end by a rule of their own.
    gap: float | None
    gap_tolerance: float | None
    #: Gaps larger than asked.
    n_above: int | None
    #: The largest.
    violation: float | None
    #: Of selection, training and test, all splits together.
    cpu_seconds: float
    #: Days, in UTC; empty where they are not known.
    started: str
    finished: str
    computers: tuple[str, ...]


def summarize(view: View) -> Summary:
    """Return the summary of an experiment, or of the table of one."""
    compared = [row.in_band for row in view.rows if row.in_band is not None]
    whole = (row for row in view.rows if row.key not in view.incomplete)
    doubtful = [row for row in whole if row.status not in SOUND]
    above = list(_values(view, "gaps_above_tolerance"))
    started, finished = _days(view)
    gap, asked = _largest_gap(view)
    timed = {f"seconds_{stage}" for stage in (*STAGES, CALIBRATION)}
    return Summary(
        n_cells=len(view.rows),
        n_compared=len(compared),
        n_in_band=sum(compared),
        n_incomplete=len(view.incomplete),
        n_failed=sum(bool(cell.failed) for cell in view.cells.values()),
        n_doubtful=len(doubtful),
        worst_status=_worst(row.status for row in view.rows),
        gap=gap,
        gap_tolerance=asked,
        n_above=int(sum(above)) if above else None,
        violation=max(_values(view, "worst_violation"), default=None),
        cpu_seconds=sum(
            row.measured * (row.n or 0)
            for row in view.sheet.rows
            if row.metric in timed and row.measured is not None
        ),
        started=started,
        finished=finished,
        computers=tuple(
            dict.fromkeys(
                note.removeprefix(RUN_WITH) for note in remarks(view) if note.startswith(RUN_WITH)
            )
        ),
    )


def remarks(view: View) -> tuple[str, ...]:
    """Return what is to be said of a whole run: of a reference table, as its text says it."""
    if isinstance(view.experiment, Experiment):
        return view.sheet.facts.remarks
    lines = (view.experiment.text or "").splitlines()
    return (*view.experiment.remarks, *(line[2:] for line in lines if line.startswith("- ")))


def _largest_gap(view: View) -> tuple[float | None, float | None]:
    by_rule = {row.key for row in view.rows if row.status == Status.STOPPED_BY_RULE}
    keys = [key for key in view.keys if key not in by_rule]
    cells = [[view.sheet.value(k, m) for m in ("worst_gap", "gap_tolerance")] for k in keys]
    known = [(gap, asked) for gap, asked in cells if gap is not None]
    asked_of = [(gap, asked) for gap, asked in known if asked is not None]
    return max(asked_of or known, key=lambda cell: cell[0], default=(None, None))


def _values(view: View, metric: str) -> Iterable[float]:
    values = (view.sheet.value(key, metric) for key in view.keys)
    return (value for value in values if value is not None)


def _worst(statuses: Iterable[str]) -> str:
    """Return the gravest status of a fit or job; empty where nothing was run."""
    found = set(statuses)
    known = [str(status) for status in SEVERITY if status in found]
    return known[-1] if known else ""


def _days(view: View) -> tuple[str, str]:
    if not isinstance(view.experiment, Experiment):
        return "", ""
    records = [record for record in view.experiment.records if record.started]
    if not records:
        return "", ""
    return min(r.started for r in records)[:10], max(r.finished for r in records)[:10]


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
    sizes = view.sheet.facts.sizes.get(name, {})
    return {
        "name": name,
        "title": card.title if card else str(records[0].job.dataset.path or ""),
        "sizes": sizes,
        "hashes": sorted({record.job.dataset_hash for record in records}),
        "preprocessing": preprocessed([record.job for record in records]),
        "splits": len({record.split["digest"] for record in records if record.done}),
        "licence": card.licence if card else "",
        "deviations": view.sheet.facts.deviations.get(name, ()),
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
