"""Tables 1 and 2 of the MAMC paper: accuracy on thirteen two-class sets, averages and counts.

Each data set has a line measured here and, below it, the line of the paper. The counts under them
follow the paper's rules: best and worst of a line, and win/tie/loss of MAMC_bs by Welch's t-test at
95 %. Those of the published lines are counted by the same code, from the published means and
deviations of the data sets shown.
"""

from collections.abc import Sequence
from functools import partial

from mmbench.jobs.store import Key
from mmbench.tables.blocks import METRIC, Line, against, average, best, both, paired
from mmbench.tables.compose import STANDARD_DEVIATION, compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, measured_with_sd, published_with_sd
from mmbench.tables.sheet import Sheet

PUBLISHED = "mamc_table2"
MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")
#: The machine whose wins, ties and losses are counted.
REFERENCE = "mamc_bs"
SIZES = {"n_features": "inputs", "n_train": "train", "n_test": "test"}


def layout(sheet: Sheet) -> Table:
    """Arrange accuracies as the paper does, with its counts, above the sizes of the data."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "Accuracy (%) on the two-class sets, measured and published (MAMC paper, table 2)",
        [_accuracies(sheet), _sizes(sheet)],
        "Average: mean over the data sets. Best/worst: lines with the largest and smallest mean, "
        "as printed; equal ones all count.",
        f"W/T/L: data sets on which {sheet.label(REFERENCE)} is better than, the same as, worse "
        "than the machine, by Welch's t-test at 95 %.",
        "The counts of the published lines are recounted from them; the paper itself prints "
        "best/worst 2/0 for MAMC_bsg and 0/11 for MAMC.",
        metric=METRIC,
        spread=STANDARD_DEVIATION,
    )


def summary(lines: list[Line], machines: Sequence[str]) -> dict[str, list[str]]:
    """Return the rows under the lines: average, best/worst and win/tie/loss, a text a machine."""
    lines = [line for line in lines if line]
    counts = best(lines, machines, decimals=2)
    return {
        "Average": [average(lines, machine) for machine in machines],
        "best/worst": ["/".join(map(str, counts.get(m, ()))) or NOTHING for m in machines],
        "W/T/L": [against(lines, REFERENCE, machine) for machine in machines],
    }


def _accuracies(sheet: Sheet) -> Grid:
    texts = partial(measured_with_sd, decimals=2), partial(published_with_sd, decimals=2)
    grid = paired(sheet, sheet.places, *texts)
    sides = {s: summary(lines, sheet.machines) for s, lines in both(sheet, sheet.places).items()}
    for head in sides["measured"]:
        for side, rows in sides.items():
            grid.rows.append([head if side == "measured" else "", side, *rows[head]])
    return grid


def _sizes(sheet: Sheet) -> Grid:
    """Return table 1 of the paper: inputs, rows of a split, and splits run here and there."""
    names = (*SIZES.values(), "splits run", "splits of the paper")
    ours = {key.dataset: str(len(splits)) for key, splits in sheet.facts.by_split.items() if splits}
    rows = []
    for dataset in sheet.datasets:
        known = sheet.facts.sizes.get(dataset, {})
        published = [row["n_splits"] for row in sheet.published_of(dataset)]
        rows.append([
            sheet.name(Key(dataset, "", None, ""), kernel=False),
            *(str(known.get(size, NOTHING)) for size in SIZES),
            ours.get(dataset, NOTHING),
            str(published[0]) if published else NOTHING,
        ])  # fmt: skip
    columns = (*sheet.columns("data", machines=()), *map(Column, names))
    return Grid(columns, rows, "The data sets (table 1)")
