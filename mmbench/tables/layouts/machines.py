"""Any experiment: a line for each machine, the best first, with its metrics, time and parameters.

A block for each data set, kernel and training size, for experiments with many machines on few data
sets.
"""

from mmbench.jobs.store import Key
from mmbench.tables import blocks as metrics
from mmbench.tables.blocks import CHOICES, total_with_search, with_search_text
from mmbench.tables.compose import compose
from mmbench.tables.measures import CONFUSION
from mmbench.tables.model import NOTHING, Column, Grid, Table, join, kernel_caption, seconds_text
from mmbench.tables.sheet import Sheet

SIZED = True
ANY_METRIC = True


def layout(sheet: Sheet) -> Table:
    """Arrange machines by the first metric."""
    shown = [name for name in sheet.metrics if name != CONFUSION] or ["accuracy"]
    grids = [_machines(sheet, place, shown) for place in sheet.places]
    if CONFUSION in sheet.metrics:
        grids += metrics.confusions(sheet)
    about, first = metrics.definitions(sheet), metrics.row_name(shown[0])
    if sheet.facts.selected:
        about.append(f"Selected: {CHOICES}.")
    if texts := with_search_text(sheet, sheet.machines):
        about.append(f"CPU seconds are of selection, training and test.{texts}")
    return compose(sheet, "Machines, the best first", grids, *about, metric=first, choices=False)


def _machines(sheet: Sheet, place: Key, shown: list[str]) -> Grid:
    first = metrics.row_name(shown[0])
    keys = [place._replace(machine=m) for m in sheet.machines]
    keys = [key for key in keys if sheet.row(key, first) is not None]
    known = [key for key in keys if sheet.value(key, first) is not None]
    sign = 1 if metrics.smaller_is_better(shown[0]) else -1
    known.sort(key=lambda key: sign * (sheet.value(key, first) or 0.0))
    ordered = [*known, *(key for key in keys if key not in known)]
    rows = [_line(sheet, key, shown) for key in ordered]
    heads = (*map(metrics.label, shown), "CPU seconds a split")
    columns = (Column("machine", align="left"), *map(Column, heads))
    kernel = kernel_caption(place.kernel, place.degree)
    size = "" if place.size is None else f", {place.size} rows"
    caption = f"{sheet.head(place, name=place.dataset)}: {kernel}{size}"
    return Grid((*columns, Column("selected", align="left")), rows, caption)


def _line(sheet: Sheet, key: Key, shown: list[str]) -> list[str]:
    first, *rest = (metrics.cell(sheet, key, name) for name in shown)
    cited = join(first, sheet.cite(sheet.row(key, metrics.row_name(shown[0]))))
    chosen = ", ".join(map(str, sheet.facts.selected.get(key, ()))) or NOTHING
    return [
        sheet.label(key.machine),
        cited,
        *rest,
        seconds_text(total_with_search(sheet, key)),
        chosen,
    ]
