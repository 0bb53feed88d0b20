"""Table I of the M4 paper: accuracy on four toy sets, one published draw among many.

Under each mean stand the range of 90 % of the draws, the published value, and its percentile: the
share of draws below it, those equal to it counted half.
"""

from collections.abc import Sequence

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.blocks import METRIC
from mmbench.tables.compose import STANDARD_DEVIATION, compose
from mmbench.tables.model import NOTHING, Grid, Table, measured_with_sd, published_text
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet

PUBLISHED = "m4_table1"
MACHINES = ("m4", "svm", "mpm")
#: Shares of the draws below the two ends of the range that is shown.
RANGE = (0.05, 0.95)


def layout(sheet: Sheet) -> Table:
    """Arrange the distributions, a line a statistic under each data set."""
    sheet.arrange(MACHINES)
    rows = [line for place in sheet.places for line in _lines(sheet, place)]
    return compose(
        sheet,
        "Accuracy (%) on the toy sets over draws, and the published draw (M4 paper, table I)",
        [Grid(sheet.columns("data", ""), rows)],
        "Percentile: share of the draws below the published value, equal ones counted half.",
        metric=METRIC,
        spread=STANDARD_DEVIATION,
        runs="draws",
    )


def _lines(sheet: Sheet, place: Key) -> list[list[str]]:
    rows = sheet.line(place, METRIC)
    keys = [place._replace(machine=machine) for machine in sheet.machines]
    draws = [list(sheet.facts.by_split.get(key, {}).values()) for key in keys]
    head = sheet.head(place)
    return [
        [head, "measured", *(sheet.marked(measured_with_sd(row, 1), row) for row in rows)],
        ["", "90 % of the draws", *map(_range, draws)],
        ["", "published", *(published_text(row, 1) for row in rows)],
        ["", "its percentile", *map(_percentile, rows, draws)],
    ]


def _range(draws: Sequence[float]) -> str:
    if len(draws) < 2:
        return NOTHING
    low, high = np.quantile(draws, RANGE)
    return f"{low:.1f} to {high:.1f}"


def _percentile(row: Row | None, draws: Sequence[float]) -> str:
    if row is None or row.published is None or len(draws) < 2:
        return NOTHING
    return f"{percentile(draws, row.published):.3g}"


def percentile(draws: Sequence[float], value: float) -> float:
    """Return the share of draws below a value in per cent, those that print as it does half.

    Examples
    --------
    >>> percentile([97.0, 98.8, 98.83, 99.2], 98.8)
    50.0
    """
    printed = np.round(draws, 1)
    return float(100 * ((printed < value).mean() + 0.5 * np.isclose(printed, value).mean()))
