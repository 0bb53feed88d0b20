"""An experiment as its pages show it: sheet, drawn table, and what is known of every cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from mmbench.jobs.store import Key
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.cells import PUBLISHED_ONLY, Cell
from mmbench.tables.model import Table
from mmbench.tables.records import Experiment
from mmbench.tables.reference import Reference
from mmbench.tables.report.names import Names, place_text
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet

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
