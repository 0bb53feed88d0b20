"""A grid with two lines a data set: what was measured here and, below it, the paper's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    Row,
    dataset_label,
    join,
    machine_label,
    measured_text,
    place_name,
    remarks,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid

#: How a mean and its standard deviation, None for one run, are written.
Writer = Callable[[float, float | None], str]


def paired_grid(
    cells: Cells,
    machines: Sequence[str],
    metric: str,
    write: Writer,
    facts: Facts,
    notes: Footnotes,
) -> Grid:
    """Return a column a machine and, for each place, the measured line above the published one."""
    columns = (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    rows: list[list[str]] = []
    for place in cells.places:
        found = [cells.get(place._replace(machine=machine), metric) for machine in machines]
        name = dataset_label(place.dataset, place_name(cells, place, facts), facts, notes)
        rows.append([name, "measured", *(_measured(row, write, notes) for row in found)])
        rows.append(["", "published", *(_published(row, write) for row in found)])
    return Grid(columns, rows)


def _measured(row: Row | None, write: Writer, notes: Footnotes) -> str:
    if row is None or row["measured"] is None:
        return join(measured_text(row), notes.cite(*remarks(row)))
    text = write(row["measured"], row["sd"])
    return join(text, verdict_mark(row), notes.cite(*remarks(row)))


def _published(row: Row | None, write: Writer) -> str:
    if row is None or row["published"] is None:
        return NOTHING
    return write(row["published"], row["published_spread"])
