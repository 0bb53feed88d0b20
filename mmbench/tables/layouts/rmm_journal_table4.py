"""Table 4 of the RMM journal paper: error rates (%) on thirteen two-class sets.

Each data set has a line measured here and, below it, the line of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    Row,
    certificates,
    dataset_label,
    join,
    legend,
    machine_label,
    measured_text,
    place_name,
    remark,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "rmm_2010_table4"
MACHINES = ("svm", "klda", "sigma_svm", "rmm_c_equals_d", "rmm")
METRIC = "accuracy_pct"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange error rates as the paper does."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    columns = (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    rows: list[list[str]] = []
    for place in cells.places:
        found = [cells.get(place._replace(machine=machine), METRIC) for machine in machines]
        name = dataset_label(place.dataset, place_name(cells, place, facts), facts, notes)
        rows.append([name, "measured", *(_measured(row, notes) for row in found)])
        rows.append(["", "published", *(_published(row) for row in found)])
    return Table(
        title="Errors (%) on the two-class sets, measured and published (RMM journal, table 4)",
        grids=[Grid(columns, rows)],
        notes=[
            *legend(cells, METRIC, "After ±: standard deviation over {} splits."),
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _measured(row: Row | None, notes: Footnotes) -> str:
    if row is None or row["measured"] is None:
        return join(measured_text(row), notes.cite(remark(row)))
    text = _error(row["measured"], row["sd"])
    return join(text, verdict_mark(row), notes.cite(remark(row)))


def _published(row: Row | None) -> str:
    if row is None or row["published"] is None:
        return NOTHING
    return _error(row["published"], row["published_spread"])


def _error(accuracy: float, sd: float | None) -> str:
    return f"{100 - accuracy:.1f}" + ("" if sd is None else f" ± {sd:.1f}")
