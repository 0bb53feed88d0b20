"""Metrics other than the accuracy: a grid each, and confusion matrices."""

from mmbench.jobs.store import Key
from mmbench.tables.blocks.seconds import place_columns, place_heads
from mmbench.tables.metrics import CONFUSION, ROW_NAMES, Confusion
from mmbench.tables.model import NOTHING, Column, Grid
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet
from mmbench.tables.text import join, kernel_text, measured_text

#: Of values between 0 and 1, and of per cent.
DECIMALS, DECIMALS_PCT = 3, 1


def grids(sheet: Sheet) -> list[Grid]:
    """Return a grid for each metric that is asked for; confusion matrices one a machine."""
    found = []
    for name in sheet.metrics:
        found += confusions(sheet) if name == CONFUSION else [_grid(sheet, name)]
    return found


def label(name: str) -> str:
    """Return how tables call a metric."""
    from mmbench.selection.metrics import METRICS

    if name == CONFUSION:
        return "Confusion matrices"
    return f"{METRICS[name].label} (%)" if name in ROW_NAMES else METRICS[name].label


def row_name(name: str) -> str:
    """Return what the long table calls a metric."""
    return ROW_NAMES.get(name, name)


def smaller_is_better(name: str) -> bool:
    """Return whether the best value of a metric is the smallest."""
    from mmbench.selection.metrics import METRICS

    return METRICS[name].smaller_is_better


def cell(sheet: Sheet, key: Key, name: str) -> str:
    """Return the text of a value, without footnotes."""
    return _text(sheet.row(key, row_name(name)), _decimals(name))


def definitions(sheet: Sheet) -> list[str]:
    """Return what each metric is, a line each."""
    from mmbench.selection.metrics import METRICS

    shown = [METRICS[name] for name in sheet.metrics if name in METRICS]
    return [f"{metric.label}: {metric.about}." for metric in shown if metric.about]


def _grid(sheet: Sheet, name: str) -> Grid:
    metric, decimals = row_name(name), _decimals(name)
    rows = [
        [
            sheet.head(place, name=place.dataset),
            *place_heads(place),
            *(sheet.marked(_text(row, decimals), row) for row in sheet.line(place, metric)),
        ]
        for place in sheet.places
    ]
    return Grid(place_columns(sheet, "data set"), rows, label(name))


def _decimals(name: str) -> int:
    return DECIMALS_PCT if name in ROW_NAMES else DECIMALS


def _text(row: Row | None, decimals: int) -> str:
    """Return a value; nothing where records lack what it is computed from."""
    if row is not None and row.measured is None and row.metric not in ROW_NAMES.values():
        return NOTHING
    return measured_text(row, decimals)


def confusions(sheet: Sheet) -> list[Grid]:
    """Return the confusion matrices, one a place and machine."""
    keys = (place._replace(machine=machine) for place in sheet.places for machine in sheet.machines)
    found = sheet.facts.measures.confusion
    return [_matrix(sheet, key, found[key]) for key in keys if key in found]


def _matrix(sheet: Sheet, key: Key, found: Confusion) -> Grid:
    where = join(key.dataset, kernel_text(key.kernel, key.degree), f"{key.size or ''}")
    caption = f"Confusion matrix of {sheet.label(key.machine)}, {where}: test rows of all splits"
    columns = (Column("true \\ predicted", align="left"), *map(Column, found.labels))
    pairs = zip(found.labels, found.counts, strict=True)
    return Grid(columns, [[name, *map(str, counts)] for name, counts in pairs], caption)
