"""Any experiment: a line for each data set, kernel and training size, a column for each machine.

Accuracy, and published values where a published table belongs to the experiment; then the CPU
seconds of each machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    Row,
    certificates,
    dataset_label,
    join,
    kernel_text,
    legend,
    machine_label,
    measured_text,
    published_text,
    remarks,
    seconds_text,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

SIZED = True
SECONDS = {"seconds_selection": "selection", "seconds_training": "training", "seconds_test": "test"}


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange accuracies (errors where only these are published) and CPU seconds."""
    cells, notes = Cells(frame), Footnotes()
    metric = _metric(cells)
    head = "Accuracy (%)" if metric == "accuracy_pct" else "Errors on the test part"
    compared = any(published_text(cells.get(key, metric)) != NOTHING for key in cells.keys)
    grids = [_results(cells, metric, facts, notes)]
    if any(cells.value(key, "seconds_test") is not None for key in cells.keys):
        grids.append(seconds(cells))
    return Table(
        title=f"{head}, measured / published" if compared else head,
        grids=grids,
        notes=[*legend(cells, metric), *certificates(cells), *facts.remarks],
        footnotes=notes.texts,
    )


def _metric(cells: Cells) -> str:
    """Return the metric to show: error counts if the paper has these alone, else accuracy."""
    for metric in ("accuracy_pct", "errors_count"):
        rows = (cells.get(key, metric) for key in cells.keys)
        if any(row and row["published"] is not None for row in rows):
            return metric
    return "accuracy_pct"


def _results(cells: Cells, metric: str, facts: Facts, notes: Footnotes) -> Grid:
    rows = []
    for place in cells.places:
        found = [cells.get(place._replace(machine=m), metric) for m in cells.machines]
        name = dataset_label(place.dataset, place.dataset, facts, notes)
        texts = (_cell(row, metric, notes) for row in found)
        rows.append([name, *_place(place), *texts])
    return Grid(_columns(cells), rows)


def _cell(row: Row | None, metric: str, notes: Footnotes) -> str:
    ours = measured_text(row, 1 if metric == "accuracy_pct" else None)
    if row is not None and row["published"] is not None:
        ours = f"{ours} / {published_text(row)}"
    return join(ours, verdict_mark(row), notes.cite(*remarks(row)))


def seconds(cells: Cells) -> Grid:
    """Return the CPU seconds of each machine, by stage."""
    rows = [
        [place.dataset, *_place(place), *_seconds_cells(cells, place)] for place in cells.places
    ]
    caption = f"CPU seconds a split: {' + '.join(SECONDS.values())}"
    return Grid(_columns(cells), rows, caption)


def _seconds_cells(cells: Cells, place: Key) -> list[str]:
    texts = []
    for machine in cells.machines:
        values = [cells.value(place._replace(machine=machine), metric) for metric in SECONDS]
        known = None not in values
        texts.append(" + ".join(map(seconds_text, values)) if known else NOTHING)
    return texts


def _columns(cells: Cells) -> tuple[Column, ...]:
    sized = any(place.size is not None for place in cells.places)
    return (
        Column("data set", align="left"),
        Column("kernel", align="left"),
        *[Column("rows")][:sized],
        *(Column(machine_label(machine)) for machine in cells.machines),
    )


def _place(place: Key) -> list[str]:
    """Return what a line's head says beside the data set."""
    size = [] if place.size is None else [str(place.size)]
    return [kernel_text(place.kernel, place.degree), *size]
