"""Table 4 of the RMM journal paper: error rates (%) on thirteen two-class sets.

Each data set has a line measured here and, below it, the line of the paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.tables.layouts.paired import paired_grid
from mmbench.tables.layouts.parts import Cells, Footnotes, certificates, legend
from mmbench.tables.model import Facts, Table

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "rmm_2010_table4"
MACHINES = ("svm", "klda", "sigma_svm", "rmm_c_equals_d", "rmm")
METRIC = "accuracy_pct"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange error rates as the paper does."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    return Table(
        title="Errors (%) on the two-class sets, measured and published (RMM journal, table 4)",
        grids=[paired_grid(cells, machines, METRIC, _error, facts, notes)],
        notes=[
            *legend(cells, METRIC, "After ±: standard deviation over {} splits."),
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _error(accuracy: float, sd: float | None) -> str:
    return f"{100 - accuracy:.1f}" + ("" if sd is None else f" ± {sd:.1f}")
