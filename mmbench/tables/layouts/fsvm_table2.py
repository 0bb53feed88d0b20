"""Tables II to V of the F-SVM paper: accuracy on eleven sets, and training time.

Each data set has a line measured here and, below it, the line of the paper. Its counts, on how many
sets the F-SVM is better than each other machine, are counted for both by the same rule: of the
means as printed. The training times of the paper are lost in its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.layouts.mmrm_table1 import accuracy_rows
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    KernelKey,
    certificates,
    kernel_caption,
    legend,
    machine_label,
    printed_name,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

#: The order of the paper; variants of the F-SVM follow it, others come last.
MACHINES = ("svm", "rmm", "rsvm_plus", "rsvm_mu_plus", "fsvm")
OURS = "fsvm"
METRIC = "accuracy_pct"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange accuracies and training times as the paper does."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    grids = []
    for kernel in cells.kernels:
        rows = accuracy_rows(cells, kernel, machines, facts, notes, decimals=2)
        columns = _columns(machines)
        grids.append(Grid(columns, rows + _counts(cells, kernel, machines), _caption(kernel)))
    grids += [_seconds(cells, kernel, machines, facts) for kernel in cells.kernels]
    return Table(
        title="Accuracy (%) and training time, measured and published (F-SVM paper)",
        grids=grids,
        notes=[
            *legend(cells, METRIC),
            "The paper prints means over 100 runs, without a spread.",
            f"{machine_label(OURS)} better on: data sets on which its mean, as printed, is larger, "
            "of those on which both have one.",
            "The paper's heads R-SVM and R-SVM have lost their superscripts: the order is that of "
            "its public abstract.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _columns(machines: list[str]) -> tuple[Column, ...]:
    return (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )


def _caption(kernel: KernelKey) -> str:
    return f"Accuracy. {kernel_caption(*kernel)}"


def _counts(cells: Cells, kernel: KernelKey, machines: list[str]) -> list[list[str]]:
    head = f"{machine_label(OURS)} better on"
    return [
        [head if value == "measured" else "", value, *_better(cells, kernel, machines, value)]
        for value in ("measured", "published")
    ]


def _better(cells: Cells, kernel: KernelKey, machines: list[str], value: str) -> list[str]:
    """Return, for each machine, on how many data sets the F-SVM's value is larger."""
    texts = []
    for machine in machines:
        both = [
            (ours, theirs)
            for dataset in cells.datasets
            if (ours := _printed(cells, Key(dataset, *kernel, OURS), value)) is not None
            and (theirs := _printed(cells, Key(dataset, *kernel, machine), value)) is not None
        ]
        wins = sum(ours > theirs for ours, theirs in both)
        texts.append(f"{wins} of {len(both)}" if both and machine != OURS else NOTHING)
    return texts


def _printed(cells: Cells, key: Key, value: str) -> float | None:
    row = cells.get(key, METRIC)
    return None if row is None or row[value] is None else round(row[value], 2)


def _seconds(cells: Cells, kernel: KernelKey, machines: list[str], facts: Facts) -> Grid:
    """Return milliseconds of the training with the selected parameters."""
    ran = [m for m in machines if any(key.machine == m for key in _timed(cells, kernel))]
    columns = (Column("data", align="left"), *(Column(machine_label(machine)) for machine in ran))
    rows = []
    for dataset in cells.datasets:
        keys = [Key(dataset, *kernel, machine) for machine in ran]
        values = [cells.value(key, "seconds_training") for key in keys]
        texts = [NOTHING if value is None else f"{1000 * value:.1f}" for value in values]
        rows.append([printed_name(dataset, facts), *texts])
    caption = f"CPU milliseconds of one training; published: lost. {kernel_caption(*kernel)}"
    return Grid(columns, rows, caption)


def _timed(cells: Cells, kernel: KernelKey) -> list[Key]:
    mine = (key for key in cells.keys if (key.kernel, key.degree) == kernel)
    return [key for key in mine if cells.value(key, "seconds_training") is not None]
