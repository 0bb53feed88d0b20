"""Table 2 of the MMRM paper: test errors on large data sets, with sizes, ties and CPU seconds.

Below the paper's table stands what it leaves out: votes that were tied, the expected number of
errors under random tie-breaking, and where the time went.
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
    legend,
    machine_label,
    measured_text,
    place_name,
    published_text,
    remarks,
    seconds_text,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "mmrm_table2"
MACHINES = ("mmrm", "rmm", "svm")
METRIC = "errors_count"
SIZES = {
    "n_train": "#train",
    "n_test": "#test",
    "n_features": "#features",
    "n_classes": "#classes",
}
SECONDS = ("seconds_selection", "seconds_training", "seconds_test")


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange errors as the paper does: data info, then a column a machine."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    grids = [_errors(cells, machines, facts, notes)]
    details = _details(cells, machines, facts)
    if details.rows:
        grids.append(details)
    return Table(
        title="Classification errors on the test part (MMRM paper, table 2)",
        grids=grids,
        notes=[
            *legend(cells, METRIC),
            "C and gamma taken over from the SVM were searched once, in the SVM's selection time.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _errors(cells: Cells, machines: list[str], facts: Facts, notes: Footnotes) -> Grid:
    columns = (
        Column("data set", align="left"),
        *(Column(name, group="Data info") for name in SIZES.values()),
        *(Column(machine_label(m), group="Errors: measured / published") for m in machines),
    )
    rows = []
    for key in cells.places:
        name = dataset_label(key.dataset, place_name(cells, key, facts), facts, notes)
        sizes = facts.sizes.get(key.dataset, {})
        found = [cells.get(key._replace(machine=machine), METRIC) for machine in machines]
        info = [str(sizes.get(size, NOTHING)) for size in SIZES]
        rows.append([name, *info, *(_error_cell(row, notes) for row in found)])
    return Grid(columns, rows, caption="Errors: measured / published")


def _error_cell(row: Row | None, notes: Footnotes) -> str:
    both = f"{measured_text(row)} / {published_text(row)}"
    return join(both, verdict_mark(row), notes.cite(*remarks(row)))


def _details(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    columns = (
        Column("data set", align="left"),
        Column("machine", align="left"),
        Column("ties"),
        Column("expected errors"),
        *(Column(name, group="CPU seconds") for name in ("selection", "training", "test")),
        Column("support vectors a pair"),
    )
    rows = []
    for place in cells.places:
        label = place_name(cells, place, facts)
        for machine in machines:
            key = place._replace(machine=machine)
            if cells.value(key, METRIC) is None:
                continue
            rows.append([label, machine_label(machine), *_detail_cells(cells, key)])
            label = ""
    caption = "Tied votes, errors expected under random tie-breaking, CPU seconds"
    return Grid(columns, rows, caption)


def _detail_cells(cells: Cells, key: Key) -> list[str]:
    return [
        measured_text(cells.get(key, "n_ties")),
        measured_text(cells.get(key, "errors_expected"), 1),
        *(seconds_text(cells.value(key, metric)) for metric in SECONDS),
        measured_text(cells.get(key, "n_support"), 0),
    ]
