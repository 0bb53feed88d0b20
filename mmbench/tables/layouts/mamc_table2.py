"""Tables 1 and 2 of the MAMC paper: accuracy on thirteen two-class sets, averages and counts.

Each data set has a line measured here and, below it, the line of the paper. The counts under them
follow the paper's rules: best and worst of a line, and win/tie/loss of MAMC_bs by Welch's t-test at
95 %. Those of the published lines are counted by the same code, from the published means and
deviations of the data sets shown.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.counting import Sample, best_and_worst, win_tie_loss
from mmbench.tables.layouts.paired import paired_grid
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    certificates,
    legend,
    machine_label,
    printed_name,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "mamc_table2"
MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")
#: The machine whose wins, ties and losses are counted.
REFERENCE = "mamc_bs"
METRIC = "accuracy_pct"

#: One sample a machine, for one data set.
Line = dict[str, Sample]


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange accuracies as the paper does, with its counts, above the sizes of the data."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    return Table(
        title="Accuracy (%) on the two-class sets, measured and published (MAMC paper, table 2)",
        grids=[_accuracies(cells, machines, facts, notes), _sizes(cells, facts)],
        notes=[
            *legend(cells, METRIC, "After ±: standard deviation over {} splits."),
            "Average: mean over the data sets. Best/worst: lines with the largest and smallest "
            "mean, as printed; equal ones all count.",
            f"W/T/L: data sets on which {machine_label(REFERENCE)} is better than, the same as, "
            "worse than the machine, by Welch's t-test at 95 %.",
            "The counts of the published lines are recounted from them; the paper itself prints "
            "best/worst 2/0 for MAMC_bsg and 0/11 for MAMC.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def measured_lines(cells: Cells, machines: list[str]) -> list[Line]:
    """Return what was measured on each data set, as far as machines have results there."""
    return [_line(cells, place, machines) for place in cells.places]


def _line(cells: Cells, place: Key, machines: list[str]) -> Line:
    rows = {m: cells.get(place._replace(machine=m), METRIC) for m in machines}
    return {
        m: Sample(row["measured"], row["sd"] or 0.0, row["n"])
        for m, row in rows.items()
        if row is not None and row["measured"] is not None
    }


def published_lines(
    table: pd.DataFrame | None, datasets: list[str], machines: list[str]
) -> list[Line]:
    """Return what the paper prints on each data set."""
    lines: dict[str, Line] = {dataset: {} for dataset in datasets}
    if table is not None:
        for row in table[table["metric"] == METRIC].to_dict("records"):
            if row["dataset"] in lines and row["machine"] in machines:
                sample = Sample(row["value"], row["std"], row["n_splits"])
                lines[row["dataset"]][row["machine"]] = sample
    return list(lines.values())


def summary(lines: list[Line], machines: list[str]) -> dict[str, list[str]]:
    """Return the rows under the lines: average, best/worst and win/tie/loss, a text a machine.

    A machine without a result on some data set has no average, and a data set counts for best and
    worst only when every machine has a result on it.
    """
    lines = [line for line in lines if line]
    whole = [{m: line[m].mean for m in machines} for line in lines if len(line) == len(machines)]
    counts = best_and_worst(whole)
    return {
        "Average": [_average(lines, machine) for machine in machines],
        "best/worst": ["/".join(map(str, counts.get(m, ()))) or NOTHING for m in machines],
        "W/T/L": [_against(lines, machine) for machine in machines],
    }


def _average(lines: list[Line], machine: str) -> str:
    means = [line[machine].mean for line in lines if machine in line]
    return f"{fmean(means):.2f}" if means and len(means) == len(lines) else NOTHING


def _against(lines: list[Line], machine: str) -> str:
    pairs = [
        (line[REFERENCE], line[machine])
        for line in lines
        if REFERENCE in line and machine in line and min(line[REFERENCE].n, line[machine].n) > 1
    ]
    return str(win_tie_loss(pairs)) if pairs and machine != REFERENCE else NOTHING


def _accuracies(cells: Cells, machines: list[str], facts: Facts, notes: Footnotes) -> Grid:
    grid = paired_grid(cells, machines, METRIC, _text, facts, notes)
    ours = summary(measured_lines(cells, machines), machines)
    theirs = summary(published_lines(facts.published, cells.datasets, machines), machines)
    for head in ours:
        grid.rows.append([head, "measured", *ours[head]])
        grid.rows.append(["", "published", *theirs[head]])
    return grid


def _text(mean: float, sd: float | None) -> str:
    return f"{mean:.2f}" if sd is None else f"{mean:.2f} ± {sd:.2f}"


def _sizes(cells: Cells, facts: Facts) -> Grid:
    """Return table 1 of the paper: inputs, rows of a split, and splits run here and there."""
    sizes = {"n_features": "inputs", "n_train": "train", "n_test": "test"}
    names = (*sizes.values(), "splits run", "splits of the paper")
    columns = (Column("data", align="left"), *(Column(name) for name in names))
    rows = []
    for dataset in cells.datasets:
        known = facts.sizes.get(dataset, {})
        ours = {key.dataset: str(len(splits)) for key, splits in facts.by_split.items()}
        shown = [str(known.get(size, NOTHING)) for size in sizes]
        theirs = _published_splits(facts, dataset)
        rows.append([printed_name(dataset, facts), *shown, ours.get(dataset, NOTHING), theirs])
    return Grid(columns, rows, "The data sets (table 1)")


def _published_splits(facts: Facts, dataset: str) -> str:
    table = facts.published
    if table is None or not (table["dataset"] == dataset).any():
        return NOTHING
    return str(table.loc[table["dataset"] == dataset, "n_splits"].iloc[0])
