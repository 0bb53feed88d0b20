"""Table 1 of the RMM paper: errors on digits, a column a degree, and McNemar's test of RMM and SVM.

The paper reports single runs. Where an experiment repeats the selection with other seeds, the first
seed stands as the single run and the mean over seeds below it. Besides: errors expected under
random tie-breaking, on how many test digits RMM and SVM differ, and CPU seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

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
    printed_name,
    published_text,
    remarks,
    seconds_text,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table
from mmbench.tables.statistics import mcnemar_p

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "rmm_table1"
MACHINES = ("svm", "sigma_svm", "klda", "rmm")
METRIC = "errors_count"
#: The run that is held against the paper's single run, as (repeat, fold).
FIRST = (0, 0)

#: What one line of the table shows of a cell.
Show = Callable[[Key], str]


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange errors as the paper does: a block a data set, a column a degree, rbf last."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    grids = [_errors(cells, machines, facts, notes), _expected(cells, machines, facts)]
    if {"rmm", "svm"} <= set(machines):
        grids.append(_mcnemar(cells, facts))
    grids.append(_seconds(cells, machines, facts))
    return Table(
        title="Classification errors on digits (RMM paper, table 1)",
        grids=grids,
        notes=[
            *legend(cells, METRIC, "Mean ± standard deviation over {} seeds of the selection."),
            "Where there are several seeds, the mark compares the paper's single run with their "
            "mean: both the seeds' spread and one binomial deviation are allowed for.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _errors(cells: Cells, machines: list[str], facts: Facts, notes: Footnotes) -> Grid:
    rows = []
    for dataset in cells.datasets:
        name = dataset_label(dataset, printed_name(dataset, facts), facts, notes)
        for machine in machines:
            keys = _keys(cells, dataset, machine)
            found = [cells.get(key, METRIC) for key in keys]
            if not any(found):
                continue
            lines = {"measured": [_measured(row, notes) for row in found]}
            if any(row and row["sd"] is not None for row in found):
                lines = {
                    "single run": [_single(key, facts) for key in keys],
                    "mean": [_mean(row, notes) for row in found],
                }
            published = [published_text(row) for row in found]
            if set(published) != {NOTHING}:  # the paper leaves machines out on the larger sets
                lines["published"] = published
            for head, texts in lines.items():
                rows.append([name, machine_label(machine), head, *texts])
                name = ""
    return Grid(_columns(cells, "machine", ""), rows, "Errors on the test digits")


def _expected(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    def show(key: Key) -> str:
        row = cells.get(key, "errors_expected")
        return NOTHING if row is None or row["measured"] is None else f"{row['measured']:.1f}"

    caption = "Errors expected when equal votes are drawn at random, mean over seeds"
    return _grid(cells, machines, facts, show, caption)


def _seconds(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    def show(key: Key) -> str:
        parts = [cells.value(key, f"seconds_{stage}") for stage in ("selection", "training")]
        return seconds_text(None if None in parts else sum(p for p in parts if p is not None))

    caption = "CPU seconds of selection and training of all pairs, mean over seeds"
    return _grid(cells, machines, facts, show, caption)


def _mcnemar(cells: Cells, facts: Facts) -> Grid:
    """Count the test digits that one of RMM and SVM has right, in the single run."""
    rows = []
    for dataset in cells.datasets:
        keys = _keys(cells, dataset, "rmm")
        texts = [_discordant(key, key._replace(machine="svm"), facts) for key in keys]
        rows.append([printed_name(dataset, facts), *texts])
    caption = (
        "Single run: digits that only the RMM has right : that only the SVM has right (p-value of "
        "McNemar's exact test)"
    )
    return Grid(_columns(cells), rows, caption)


def _discordant(one: Key, other: Key, facts: Facts) -> str:
    ours, theirs = facts.hits(one, FIRST), facts.hits(other, FIRST)
    if ours is None or theirs is None:
        return NOTHING
    wins, losses = int(np.sum(ours & ~theirs)), int(np.sum(theirs & ~ours))
    return f"{wins} : {losses} ({mcnemar_p(wins, losses):.2g})"


def _grid(cells: Cells, machines: list[str], facts: Facts, show: Show, caption: str) -> Grid:
    """Return one line a data set and machine."""
    rows = []
    for dataset in cells.datasets:
        name = printed_name(dataset, facts)
        for machine in machines:
            texts = [show(key) for key in _keys(cells, dataset, machine)]
            if any(text != NOTHING for text in texts):
                rows.append([name, machine_label(machine), *texts])
                name = ""
    return Grid(_columns(cells, "machine"), rows, caption)


def _columns(cells: Cells, *heads: str) -> tuple[Column, ...]:
    return (
        Column("data", align="left"),
        *(Column(head, align="left") for head in heads),
        *(
            Column(kernel.upper() if degree is None else f"{kernel} {degree}")
            for kernel, degree in cells.kernels
        ),
    )


def _keys(cells: Cells, dataset: str, machine: str) -> list[Key]:
    return [Key(dataset, kernel, degree, machine) for kernel, degree in cells.kernels]


def _measured(row: Row | None, notes: Footnotes) -> str:
    return join(measured_text(row), verdict_mark(row), _cite(row, notes))


def _mean(row: Row | None, notes: Footnotes) -> str:
    if row is None or row["sd"] is None:
        return _measured(row, notes)
    text = f"{row['measured']:.1f} ± {row['sd']:.1f}"
    return join(text, verdict_mark(row), _cite(row, notes))


def _cite(row: Row | None, notes: Footnotes) -> str:
    """Cite a cell's notes; cells of one machine and data set mostly have the same."""
    return notes.cite(*remarks(row, kernel=False))


def _single(key: Key, facts: Facts) -> str:
    """Return the errors of the first run."""
    hits = facts.hits(key, FIRST)
    return NOTHING if hits is None else str(int(np.sum(~hits)))
