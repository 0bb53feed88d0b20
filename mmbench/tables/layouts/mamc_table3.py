"""Table 3 of the MAMC paper: CPU seconds a split as ratios to the MAMC's.

Seconds of selection, training and test together. Those of the paper are another computer's and
another program's, so ratios are compared: measured here / published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.counting import best_and_worst
from mmbench.tables.layouts.mamc_table2 import MACHINES
from mmbench.tables.layouts.parts import (
    Cells,
    machine_label,
    place_name,
    seconds_text,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "mamc_table3"
#: The machine whose seconds are the unit.
UNIT = "mamc"
STAGES = ("seconds_selection", "seconds_training", "seconds_test")

#: Seconds by machine, on one data set.
Line = dict[str, float]


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange ratios of CPU seconds, and count the shortest and longest times."""
    cells = Cells(frame)
    machines = cells.in_order(MACHINES)
    return Table(
        title="CPU seconds a split, as ratios to the MAMC's (MAMC paper, table 3)",
        grids=[_ratios(cells, machines, facts)],
        notes=[
            "Selection, training and test together, on one thread; mean over splits.",
            "Published ratios: of the paper's seconds on its own computer. "
            f"{NOTHING} the cell is lost in the text of the paper, or was not run.",
            "Shortest/longest: data sets on which the machine takes the least and the most time.",
            *facts.remarks,
        ],
    )


def _ratios(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    unit = machine_label(UNIT)
    columns = (
        Column("data", align="left"),
        Column(f"{unit} (s)"),
        *(Column(machine_label(m), group="Ratio: measured / published") for m in machines),
    )
    ours = {place: _measured(cells, place, machines) for place in cells.places}
    theirs = published_seconds(facts.published)
    rows = []
    for place, seconds in ours.items():
        printed = theirs.get(place.dataset, {})
        texts = [f"{_ratio(seconds, m)} / {_ratio(printed, m)}" for m in machines]
        name = place_name(cells, place, facts)
        rows.append([name, seconds_text(seconds.get(UNIT)), *texts])
    counted = _counts([line for line in ours.values() if len(line) == len(machines)])
    printed_counts = _printed_counts(facts.published)
    texts = [f"{counted.get(m, NOTHING)} / {printed_counts.get(m, NOTHING)}" for m in machines]
    rows.append(["shortest-longest", "", *texts])
    return Grid(columns, rows, "Ratio: measured / published")


def _measured(cells: Cells, place: Key, machines: list[str]) -> Line:
    line = {}
    for machine in machines:
        parts = [cells.value(place._replace(machine=machine), stage) for stage in STAGES]
        known = [part for part in parts if part is not None]
        if len(known) == len(STAGES):
            line[machine] = sum(known)
    return line


def published_seconds(table: pd.DataFrame | None) -> dict[str, Line]:
    """Return the paper's seconds by data set and machine, lost cells left out."""
    lines: dict[str, Line] = {}
    if table is not None:
        known = table[(table["metric"] == "seconds") & table["value"].notna()]
        for row in known.to_dict("records"):
            lines.setdefault(row["dataset"], {})[row["machine"]] = row["value"]
    return lines


def _ratio(seconds: Line, machine: str) -> str:
    if machine not in seconds or not seconds.get(UNIT):
        return NOTHING
    ratio = seconds[machine] / seconds[UNIT]
    return f"{ratio:.{1 if ratio < 100 else 0}f}"


def _counts(lines: list[Line]) -> dict[str, str]:
    """Return "shortest-longest" by machine; short times are the good ones."""
    counts = best_and_worst([{m: -s for m, s in line.items()} for line in lines], decimals=None)
    return {machine: f"{best}-{worst}" for machine, (best, worst) in counts.items()}


def _printed_counts(table: pd.DataFrame | None) -> dict[str, str]:
    """Return the paper's own counts; lost cells do not allow to count them again."""
    if table is None:
        return {}
    rows = table[table["metric"].isin(["best_count", "worst_count"])]
    values = rows.set_index(["machine", "metric"])["value"].to_dict()
    return {
        machine: f"{values[machine, 'best_count']:.0f}-{values[machine, 'worst_count']:.0f}"
        for machine in dict.fromkeys(rows["machine"])
    }
