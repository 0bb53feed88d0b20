"""What a layout draws on: the rows of an experiment, facts beside them, and its footnotes."""

from collections.abc import Callable, Sequence

from mmbench.jobs.store import Key, Plan
from mmbench.tables.cells import MISSING
from mmbench.tables.facts import Facts
from mmbench.tables.model import Column, Shown
from mmbench.tables.rows import Row
from mmbench.tables.text import join, kernel_text, verdict_mark

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
