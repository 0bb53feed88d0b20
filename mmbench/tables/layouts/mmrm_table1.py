"""Table 1 of the MMRM paper: accuracy in per cent, linear and RBF kernel, over random partitions.

Each data set has a line measured here and, below it, the line of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.cells import PUBLISHED_ONLY
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    KernelKey,
    Row,
    certificates,
    dataset_label,
    join,
    kernel_caption,
    legend,
    machine_label,
    measured_text,
    printed_name,
    published_text,
    remarks,
    verdict_mark,
)
from mmbench.tables.model import Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "mmrm_table1"
MACHINES = ("mmrm", "svm", "rmm", "m4", "mpm")
KERNELS = ("linear", "poly", "rbf")
METRIC = "accuracy_pct"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange accuracies as the paper does: a block a kernel, a column a machine."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    kernels = sorted(cells.kernels, key=lambda k: KERNELS.index(k[0]))
    columns = (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    grids = [
        Grid(columns, accuracy_rows(cells, kernel, machines, facts, notes), kernel_caption(*kernel))
        for kernel in kernels
    ]
    return Table(
        title="Classification accuracies (%), measured and published (MMRM paper, table 1)",
        grids=grids,
        notes=[
            *legend(cells, METRIC),
            "What the paper calls a standard deviation has the size of a standard error.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def accuracy_rows(
    cells: Cells,
    kernel: KernelKey,
    machines: list[str],
    facts: Facts,
    notes: Footnotes,
    decimals: int = 1,
) -> list[list[str]]:
    """Return two lines a data set: accuracies measured here, and those of the paper."""
    rows: list[list[str]] = []
    for dataset in cells.datasets:
        found = [cells.get(Key(dataset, *kernel, machine), METRIC) for machine in machines]
        if not any(found):
            continue
        name = dataset_label(dataset, printed_name(dataset, facts), facts, notes)
        rows.append([name, "measured", *(_measured(row, notes, decimals) for row in found)])
        rows.append(["", "published", *(_published(row, notes, decimals) for row in found)])
    return rows


def _measured(row: Row | None, notes: Footnotes, decimals: int) -> str:
    ran = row is not None and row["status"] != PUBLISHED_ONLY
    cited = notes.cite(*remarks(row)) if ran else ""
    return join(measured_text(row, decimals), verdict_mark(row), cited)


def _published(row: Row | None, notes: Footnotes, decimals: int) -> str:
    """Return the paper's value; what is to be said of it alone is cited beside it."""
    alone = row is not None and row["status"] == PUBLISHED_ONLY
    return join(published_text(row, decimals), notes.cite(*remarks(row)) if alone else "")
