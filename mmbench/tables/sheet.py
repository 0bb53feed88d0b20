"""What a layout draws on: the rows of an experiment, facts beside them, and its footnotes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmbench.jobs.record import Record
from mmbench.jobs.store import Key, Plan
from mmbench.tables.measures import Measures, Split
from mmbench.tables.model import Column, Shown, join, kernel_text, verdict_mark
from mmbench.tables.protocol import protocol
from mmbench.tables.records import MISSING, Experiment
from mmbench.tables.rows import Fits, Published, Row, Selected, fits_of, selected

if TYPE_CHECKING:
    from numpy.typing import NDArray

SMOKE = "Smoke version: fewer splits, rows and grid points; nothing is compared with the paper."


@dataclass(frozen=True)
class Facts:
    """What a layout must know beside its rows."""

    experiment: str
    #: The rows of the published table compared with.
    published: Sequence[Published] = ()
    #: By data set: where the data differ from what the paper used, or look suspicious.
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: By data set: ``n_train``, ``n_test``, ``n_classes``, ``n_features`` as far as known.
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    #: Accuracy in per cent of every split that counts.
    by_split: Mapping[Key, Mapping[Split, float]] = field(default_factory=dict)
    #: The metrics that are asked for.
    measures: Measures = field(default_factory=Measures)
    #: The certificates of the pairs of classes of every finished split.
    per_pair: Mapping[Key, Mapping[Split, list]] = field(default_factory=dict)
    #: The certificates of each machine.
    fits: Mapping[str, Fits] = field(default_factory=dict)
    #: The parameters that each cell's machine has selected.
    selected: Mapping[Key, Sequence[Selected]] = field(default_factory=dict)
    #: Takes a Key and a split, or a repeat and a fold (of several seeds the first), and returns
    #: which test rows that run has right, shape (n_test,), or None where there is no such run.
    hits: Callable[[Key, tuple[int, ...]], NDArray | None] = lambda key, split: None
    #: How test parts are made, as in `SplitRef`; empty where it is not known.
    rule: str = ""
    #: What was done: test parts, choice of parameters, preprocessing.
    protocol: tuple[str, ...] = ()
    #: On the whole run: hardware, damaged records, mixed settings.
    remarks: tuple[str, ...] = ()


def gather_facts(
    experiment: Experiment,
    published: Sequence[Published] = (),
    measures: Measures | None = None,
) -> Facts:
    """Return the facts of an experiment."""
    by_dataset: dict[str, list[Record]] = {}
    for record in experiment.records:
        by_dataset.setdefault(record.job.dataset.name, []).append(record)
    jobs = [record.job for cell in experiment.cells for record in cell.records]
    return Facts(
        experiment=experiment.name,
        published=published,
        deviations={name: _remarks_on_data(name, records) for name, records in by_dataset.items()},
        sizes={name: _sizes(name, records) for name, records in by_dataset.items()},
        by_split=_by_split(experiment, lambda record: record.metrics["accuracy_pct"]),
        measures=measures or Measures(),
        per_pair={cell.key: {r.at: r.per_pair for r in cell.done} for cell in experiment.cells},
        fits=_fits(experiment),
        selected={cell.key: selected(cell.done) for cell in experiment.cells},
        hits=_hits(experiment),
        rule=next((job.split.rule for job in jobs), ""),
        protocol=protocol(jobs, experiment.plan.label),
        remarks=(
            *_leak(experiment),
            *([SMOKE] if experiment.plan.smoke else []),
            *experiment.remarks,
            *_environment(experiment),
        ),
    )


def _remarks_on_data(name: str, records: list[Record]) -> tuple[str, ...]:
    """Return the deviations of a data set and the warnings on a user's file."""
    texts = (text for record in records for text in (*record.deviations, *record.warnings))
    return tuple(dict.fromkeys(text.removeprefix(f"{name}: ") for text in texts))


def _sizes(name: str, records: list[Record]) -> dict[str, int]:
    """Return rows as trained and tested on, classes as seen, features before preprocessing."""
    from mmbench.datasets import card_names, load_card

    sizes: dict[str, int] = {}
    for record in records:
        if record.done:
            known = {"n_train", "n_test", "n_features"} & record.split.keys()
            sizes |= {part: record.split[part] for part in known}
            # what knows no pairs, such as a classifier of another package, names fewer classes
            classes = {str(label) for pair in record.per_pair for label in pair["pair"]}
            sizes["n_classes"] = max(sizes.get("n_classes", 0), len(classes))
    if name in card_names():
        sizes["n_features"] = load_card(name).expect.shape[1]
    return sizes


def _by_split(experiment: Experiment, read: Callable[[Record], Any]) -> dict[Key, dict[Split, Any]]:
    """Return something of every record that counts, by its cell and split."""
    return {
        cell.key: {record.at: read(record) for record in cell.counted} for cell in experiment.cells
    }


def _fits(experiment: Experiment) -> dict[str, Fits]:
    """Return the certificates of each machine that has any."""
    by_machine: dict[str, list[Record]] = {}
    for cell in experiment.cells:
        by_machine.setdefault(cell.key.machine, []).extend(cell.done)
    return {machine: fits_of(records) for machine, records in by_machine.items() if records}


def _hits(experiment: Experiment) -> Callable[[Key, tuple[int, ...]], Any]:
    """Return `Facts.hits`; the arrays of a run are read when it is asked for."""
    keys = _by_split(experiment, lambda record: record.key if record.arrays else None)

    def hits(key: Key, split: tuple[int, ...]) -> Any:
        found = keys.get(key, {})
        record = next((found[at] for at in sorted(found) if at[: len(split)] == split), None)
        if record is None:
            return None
        arrays = experiment.store.arrays(record)
        return arrays["predicted"] == arrays["y_test"]

    return hits


def _leak(experiment: Experiment) -> tuple[str, ...]:
    if not any(record.job.validates_on_test for record in experiment.records):
        return ()
    return ("LEAK: parameters were chosen by the accuracy on the test part; it is too high.",)


def _environment(experiment: Experiment) -> tuple[str, ...]:
    """Return one line for each computer and version that made the records."""
    threads: dict[str, set[int]] = {}
    for found in (record.environment for record in experiment.records if record.done):
        computer = f"mmbench {found['mmbench']}, Python {found['python']}, {found['cpu']}"
        threads.setdefault(computer, set()).add(found["threads"]["pairs"])
    return tuple(
        f"Run with {computer}; pairs of classes trained at a time: "
        f"{' or '.join(map(str, sorted(counts)))}."
        for computer, counts in threads.items()
    )


#: What a footnote is about: a machine on a data set, with a kernel; or the data set alone.
Subject = tuple[str, str, str]
#: A line or block of a table: the kernel and its degree.
KernelKey = tuple[str, int | None]


class Sheet:
    """The rows of a long table by cell and metric, and the orders in which its parts occur.

    Parameters
    ----------
    rows : sequence of Row
    facts : Facts
    plan : Plan

    Attributes
    ----------
    configured : list of str
        The machines in the order of the configuration.
    machines : list of str
        The columns, in the order in which a layout shows them; see `arrange`.
    datasets : list of str
    kernels : list of (kernel, degree)
    places : list of Key
        One a line of a table with a column a machine: data set, kernel, degree and size.
    """

    def __init__(self, rows: Sequence[Row], facts: Facts, plan: Plan):
        self.rows, self.facts, self.plan = rows, facts, plan
        self._rows = {(row.key, row.metric): row for row in rows}
        self.keys = list(dict.fromkeys(row.key for row in rows))
        self.datasets = list(dict.fromkeys(key.dataset for key in self.keys))
        self.configured = list(dict.fromkeys(key.machine for key in self.keys))
        self.machines = list(self.configured)
        self.kernels = list(dict.fromkeys((key.kernel, key.degree) for key in self.keys))
        self.places = list(dict.fromkeys(key._replace(machine="") for key in self.keys))
        self._notes: dict[str, list[Subject]] = {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that are asked for; none where the layout decides."""
        return self.facts.measures.names

    # -- looking up ------------------------------------------------------------------------------

    def arrange(self, first: Sequence[str]) -> None:
        """Put the machines in order: those that a paper has first, in its order."""
        rest = [machine for machine in self.machines if machine not in first]
        self.machines = [*(machine for machine in first if machine in self.machines), *rest]

    def row(self, key: Key, metric: str) -> Row | None:
        """Return a row, or None where the table has none."""
        return self._rows.get((key, metric))

    def line(self, place: Key, metric: str, machines: Sequence[str] = ()) -> list[Row | None]:
        """Return the rows of a place, one a machine."""
        names = machines or self.machines
        return [self.row(place._replace(machine=machine), metric) for machine in names]

    def value(self, key: Key, metric: str) -> float | None:
        """Return a measured value, or None."""
        row = self.row(key, metric)
        return row.measured if row else None

    def places_of(self, kernel: KernelKey) -> list[Key]:
        """Return the places of a kernel."""
        return [place for place in self.places if (place.kernel, place.degree) == kernel]

    def published_of(self, dataset: str) -> list[dict]:
        """Return the rows of the published table on a data set."""
        return [dict(row) for row in self.facts.published if row["dataset"] == dataset]

    # -- heads -----------------------------------------------------------------------------------

    def label(self, machine: str) -> str:
        """Return how a machine is called in tables."""
        return self.plan.label(machine)

    def columns(
        self, *heads: str, machines: Sequence[str] | None = None, group: str = ""
    ) -> tuple[Column, ...]:
        """Return columns of words under some heads, then one of numbers for each machine."""
        names = self.machines if machines is None else machines
        words = (Column(head, align="left") for head in heads)
        return (*words, *(Column(self.label(machine), group=group) for machine in names))

    def name(self, place: Key, kernel: bool = True) -> str:
        """Return a data set's name as the paper prints it, else our own.

        The kernel is named where there are several, unless `kernel` is false.
        """
        published = self.published_of(place.dataset)
        name = str(published[0]["printed_dataset"]) if published else place.dataset
        several = kernel and len(self.kernels) > 1
        return join(name, f"({kernel_text(place.kernel, place.degree)})" if several else "")

    def head(self, place: Key, kernel: bool = True, name: str = "") -> str:
        """Return the name of a line, citing where the data differ from the paper's."""
        marks = (
            self._mark(text, ("", place.dataset, ""))
            for text in self.facts.deviations.get(place.dataset, ())
        )
        return join(name or self.name(place, kernel), "".join(marks))

    # -- cells -----------------------------------------------------------------------------------

    def marked(self, text: str, row: Row | None, kernel: bool = True) -> str:
        """Return the text of a cell with its mark and its footnotes."""
        text = join(text, verdict_mark(row), self.cite(row, kernel))
        return text if row is None else Shown(text, row)

    def cite(self, row: Row | None, kernel: bool = True) -> str:
        """Return the marks of a cell's footnotes: its own note, and why there is no target.

        The second has no name, as most often it is that of a whole column; "not run" is not cited.
        `kernel` says whether the kernel belongs to the name.
        """
        if row is None:
            return ""
        key = row.key
        subject = key.machine, key.dataset, kernel_text(key.kernel, key.degree) if kernel else ""
        not_run = (row.status, row.measured) == (MISSING, None)
        return self._mark("" if not_run else row.note, subject) + self._mark(row.objection)

    def _mark(self, text: str, subject: Subject | None = None) -> str:
        """Return the mark of a footnote, as ``[1]``; what is said of several is said once."""
        if not text:
            return ""
        subjects = self._notes.setdefault(text, [])
        if subject and subject not in subjects:
            subjects.append(subject)
        return f"[{list(self._notes).index(text) + 1}]"

    @property
    def footnotes(self) -> list[str]:
        """The texts that cells cite so far, each with what it is about."""
        return [
            f"{self._about(subjects)}: {text}" if subjects else text
            for text, subjects in self._notes.items()
        ]

    def _about(self, subjects: Sequence[Subject]) -> str:
        """Name some cells; data sets of the same machines together."""
        machines: dict[tuple[str, str], list[str]] = {}
        for machine, dataset, kernel in subjects:
            machines.setdefault((dataset, kernel), []).append(machine and self.label(machine))
        datasets: dict[tuple[str, str], list[str]] = {}
        for (dataset, kernel), names in machines.items():
            datasets.setdefault((", ".join(names), kernel), []).append(dataset)
        return "; ".join(
            join(f"{names} on" if names else "", ", ".join(found), f"({kernel})" if kernel else "")
            for (names, kernel), found in datasets.items()
        )


#: How a layout writes a row.
Write = Callable[[Row | None], str]
