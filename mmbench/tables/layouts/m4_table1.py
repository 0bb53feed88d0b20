"""Table I of the M4 paper: accuracy on four toy sets, one published draw among many.

Under each mean stand the range of 90 % of the draws, the published value, and its percentile: the
share of draws below it, those equal to it counted half.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    place_name,
    published_text,
    remarks,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "m4_table1"
MACHINES = ("m4", "svm", "mpm")
METRIC = "accuracy_pct"
#: The published value is one draw: its own deviation counts beside that of our mean.
BAND = "within 2 sd sqrt(1 + 1/n) of the mean of our n draws, being a single draw itself"
#: Shares of the draws below the two ends of the range that is shown.
RANGE = (0.05, 0.95)


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange the distributions, a line a statistic under each data set."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    columns = (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    rows = [line for p in cells.places for line in _lines(cells, p, machines, facts, notes)]
    return Table(
        title="Accuracy (%) on the toy sets over draws, and the published draw (M4 paper, table I)",
        grids=[Grid(columns, rows)],
        notes=[
            *legend(cells, METRIC, "After ±: standard deviation over {} draws.", BAND),
            "Percentile: share of the draws below the published value, equal ones counted half.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _lines(
    cells: Cells, place: Key, machines: list[str], facts: Facts, notes: Footnotes
) -> list[list[str]]:
    keys = [place._replace(machine=machine) for machine in machines]
    rows = [cells.get(key, METRIC) for key in keys]
    draws = [list(facts.by_split.get(key, {}).values()) for key in keys]
    name = dataset_label(place.dataset, place_name(cells, place, facts), facts, notes)
    return [
        [name, "measured", *(_measured(row, notes) for row in rows)],
        ["", "90 % of the draws", *map(_range, draws)],
        ["", "published", *(published_text(row, 1) for row in rows)],
        ["", "its percentile", *map(_percentile, rows, draws)],
    ]


def _measured(row: Row | None, notes: Footnotes) -> str:
    if row is None or row["sd"] is None:
        text = measured_text(row, 1)
    else:
        text = f"{row['measured']:.1f} ± {row['sd']:.1f}"
    return join(text, verdict_mark(row), notes.cite(*remarks(row)))


def _range(draws: Sequence[float]) -> str:
    if len(draws) < 2:
        return NOTHING
    low, high = np.quantile(draws, RANGE)
    return f"{low:.1f} to {high:.1f}"


def _percentile(row: Row | None, draws: Sequence[float]) -> str:
    if row is None or row["published"] is None or len(draws) < 2:
        return NOTHING
    return f"{percentile(draws, row['published']):.3g}"


def percentile(draws: Sequence[float], value: float) -> float:
    """Return the share of draws below a value in per cent, those that print as it does half.

    Examples
    --------
    >>> percentile([97.0, 98.8, 98.83, 99.2], 98.8)
    50.0
    """
    printed = np.round(draws, 1)
    return float(100 * ((printed < value).mean() + 0.5 * np.isclose(printed, value).mean()))
