"""What a layout draws on: the rows of an experiment, facts beside them, and its footnotes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmbench.jobs.plan import Key, Plan
from mmbench.tables.cells import MISSING, PUBLISHED_ONLY
from mmbench.tables.facts import Facts
from mmbench.tables.model import IN_BAND, NOTHING, OUT_OF_BAND, Column, Grid, Table
from mmbench.tables.rows import Row
from mmbench.tables.text import join, kernel_text, verdict_mark

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
    machines : list of str
        The columns, in the order in which a layout shows them; see `arrange`.
    datasets : list of str
    kernels : list of (kernel, degree)
    places : list of Key
        One a line of a table with a column a machine: data set, kernel, degree and size.
    footnotes : list of str
        Texts that cells cite so far.
    """

    def __init__(self, rows: Sequence[Row], facts: Facts, plan: Plan):
        self.rows, self.facts, self.plan = rows, facts, plan
        self._rows = {(row.key, row.metric): row for row in rows}
        self.keys = list(dict.fromkeys(row.key for row in rows))
        self.datasets = list(dict.fromkeys(key.dataset for key in self.keys))
        self._configured = list(dict.fromkeys(key.machine for key in self.keys))
        self.machines = list(self._configured)
        self.kernels = list(dict.fromkeys((key.kernel, key.degree) for key in self.keys))
        self.places = list(dict.fromkeys(key._replace(machine="") for key in self.keys))
        self.footnotes: list[str] = []

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
        deviations = self.facts.deviations.get(place.dataset, ())
        return join(name or self.name(place, kernel), self._cite(*deviations))

    # -- cells -----------------------------------------------------------------------------------

    def marked(self, text: str, row: Row | None, kernel: bool = True) -> str:
        """Return the text of a cell with its mark and its footnotes."""
        return join(text, verdict_mark(row), self.cite(row, kernel))

    def cite(self, row: Row | None, kernel: bool = True) -> str:
        """Return the marks of a cell's footnotes: its own note, and why there is no target.

        The second has no name, as most often it is that of a whole column; "not run" is not cited.
        `kernel` says whether the kernel belongs to the name.
        """
        if row is None:
            return ""
        key = row.key
        place = join(
            f"{self.label(key.machine)} on {key.dataset}",
            f"({kernel_text(key.kernel, key.degree)})" if kernel else "",
        )
        not_run = (row.status, row.measured) == (MISSING, None)
        return self._cite(f"{place}: {row.note}" if row.note and not not_run else "", row.objection)

    def _cite(self, *texts: str) -> str:
        """Number some texts and return their marks, as ``[1][2]``; equal texts share a number."""
        marks = []
        for text in filter(None, texts):
            if text not in self.footnotes:
                self.footnotes.append(text)
            marks.append(f"[{self.footnotes.index(text) + 1}]")
        return "".join(marks)

    # -- the whole -------------------------------------------------------------------------------

    def table(
        self, title: str, grids: Sequence[Grid], legend: Sequence[str] = (), *notes: str
    ) -> Table:
        """Return the table of some grids, with legend, notes, certificates and remarks."""
        grids = [grid for grid in grids if grid.rows]
        texts = [*legend, *notes, *self.certificates(), *self.facts.remarks]
        return Table(title, grids, texts, self.footnotes)

    def legend(
        self,
        metric: str,
        spread: str = "In parentheses: standard error over {} partitions.",
        band: str = "within 2 standard errors of the measured one",
    ) -> list[str]:
        """Return what the marks of a table mean, as far as they occur for a metric.

        `spread` says what stands beside a mean, with a place for the number of partitions; `band`
        says where a published value counts as met.
        """
        rows = [row for row in self.rows if row.metric == metric]
        lines = []
        if any(row.in_band is not None for row in rows):
            lines.append(
                f"{IN_BAND} the published value lies {band}, "
                f"{OUT_OF_BAND} it does not; no mark: not compared."
            )
        if any(row.n == 1 and row.in_band is not None for row in rows):
            lines.append("The standard error of a single run is binomial: sqrt(e (1 - e/n)).")
        counts = sorted({row.n for row in rows if row.sd is not None and row.n})
        if counts:
            lines.append(spread.format(" or ".join(map(str, counts))))
        if any(row.status == PUBLISHED_ONLY for row in rows):
            lines.append(f"{NOTHING} not run; the published value alone is shown.")
        return lines

    def certificates(self) -> list[str]:
        """Return one line on the worst certificate of each machine."""
        lines = []
        for machine in self._configured:
            worst = [self._largest(machine, m) for m in ("worst_violation", "worst_gap")]
            if None not in worst:
                lines.append(f"{self.label(machine)} {worst[0]:.1e} / {worst[1]:.1e}")
        if not lines:
            return []
        return [f"Worst constraint violation / relative gap over all fits: {', '.join(lines)}."]

    def _largest(self, machine: str, metric: str) -> float | None:
        keys = (key for key in self.keys if key.machine == machine)
        values = [value for key in keys if (value := self.value(key, metric)) is not None]
        return max(values, default=None)


#: How a layout writes a row.
Write = Callable[[Row | None], str]
