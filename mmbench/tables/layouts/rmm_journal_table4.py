"""Table 4 of the RMM journal paper: error rates (%) on thirteen two-class sets.

Each data set has a line measured here and, below it, the line of the paper.
"""

from dataclasses import replace

from mmbench.tables.blocks import METRIC, paired
from mmbench.tables.compose import STANDARD_DEVIATION, compose
from mmbench.tables.model import Table, measured_with_sd, published_with_sd
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet

PUBLISHED = "rmm_2010_table4"
MACHINES = ("svm", "klda", "sigma_svm", "rmm_c_equals_d", "rmm")


def layout(sheet: Sheet) -> Table:
    """Arrange error rates as the paper does."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "Errors (%) on the two-class sets, measured and published (RMM journal, table 4)",
        [paired(sheet, sheet.places, _measured, _published)],
        metric=METRIC,
        spread=STANDARD_DEVIATION,
    )


def _measured(row: Row | None) -> str:
    if row is not None and row.measured is not None:
        row = replace(row, measured=100 - row.measured)
    return measured_with_sd(row, 1)


def _published(row: Row | None) -> str:
    if row is not None and row.published is not None:
        row = replace(row, published=100 - row.published)
    return published_with_sd(row, 1)
