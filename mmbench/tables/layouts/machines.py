"""Any experiment: one row per machine, the best first, with metrics, CPU time and parameters.

There is one block per data set, kernel and training size. The layout is for experiments with many
machines on few data sets.
"""

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    CHOICES,
    confusions,
    definitions,
    label,
    metric_text,
    row_name,
    sign_of,
    total_with_search,
    with_search_text,
)
from mmbench.tables.compose import compose
from mmbench.tables.frame import ACCURACY, CONFUSION
from mmbench.tables.model import (
    Grid,
    Shown,
    Table,
    join,
    kernel_caption,
    numbers,
    seconds_text,
    words,
)
from mmbench.tables.sheet import Sheet

SIZED = True
ANY_METRIC = True


def layout(sheet: Sheet) -> Table:
    """Return one block per place, with the machines sorted by the first metric."""
    shown = [name for name in sheet.metrics if name != CONFUSION] or [ACCURACY]
    grids = [_machines(sheet, place, shown) for place in sheet.places]
    if CONFUSION in sheet.metrics:
        grids += confusions(sheet)
    about, first = definitions(sheet), row_name(shown[0])
    if sheet.cells:
        about.append(f"Selected: {CHOICES}.")
    if texts := with_search_text(sheet, sheet.machines):
        about.append(f"CPU seconds: selection, training and test.{texts}")
    return compose(sheet, "Machines, the best first", grids, *about, metric=first, choices=False)


def _machines(sheet: Sheet, place: Key, shown: list[str]) -> Grid:
    first = row_name(shown[0])

    def rank(key: Key) -> tuple[bool, float]:
        value = sheet.value(key, first)
        return value is None, -sign_of(shown[0]) * (value or 0.0)

    keys = [place._replace(machine=machine) for machine in sheet.machines]
    rows = []
    for key in sorted((key for key in keys if sheet.row(key, first).metric), key=rank):
        best, *rest = (metric_text(sheet.row(key, row_name(name)), name) for name in shown)
        row, seconds = sheet.row(key, first), seconds_text(total_with_search(sheet, key))
        cited, chosen = Shown(join(best, sheet.cite(row)), row), sheet.chosen(key)
        rows.append([sheet.label(key.machine), cited, *rest, seconds, chosen])
    heads = numbers(*map(label, shown), "CPU seconds per split")
    kernel = kernel_caption(place.kernel, place.degree)
    size = "" if place.size is None else f", {place.size} rows"
    caption = f"{sheet.head(place, name=place.dataset)}: {kernel}{size}"
    return Grid((*words("machine"), *heads, *words("selected")), rows, caption)
