"""Two layouts for any experiment: `generic` and `machines`.

The layout `generic` shows the requested metrics, with one row per data set, kernel and training
size, and one column per machine. If no metric is requested, the layout `generic` shows accuracies,
and the published values if there are any. The layout `machines`, for experiments with many machines
on few data sets, has one block per data set, kernel and training size, and one row per machine.
"""

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    CHOICES,
    by_stage,
    confusions,
    definitions,
    grids,
    incomplete,
    label,
    metric_text,
    results,
    sign_of,
    total_with_search,
    with_search_text,
)
from mmbench.tables.compose import compose
from mmbench.tables.frame import CONFUSION, METRIC, Row
from mmbench.tables.sheet import Sheet
from mmbench.tables.table import (
    Grid,
    Shown,
    Table,
    join,
    measured_text,
    numbers,
    published_text,
    seconds_text,
    words,
)


def generic(sheet: Sheet) -> Table:
    """Return a table of the requested metrics and the CPU seconds, with one column per machine.

    If no metric is requested, the table shows accuracies, or error counts if a paper states only
    error counts.
    """
    if sheet.metrics:
        title, blocks = ", ".join(map(label, sheet.metrics)), [*grids(sheet), by_stage(sheet)]
        return compose(sheet, title, blocks, *definitions(sheet), metric=sheet.metrics[0])
    metric = sheet.metric
    title = "Accuracy (%)" if metric == METRIC else "Errors on the test part"
    if sheet.frame.published[sheet.frame.metric == metric].notna().any():
        title += ", measured / published"
    blocks = [results(sheet, metric, _accuracy_or_errors), by_stage(sheet)]
    return compose(sheet, title, blocks, metric=metric)


def _accuracy_or_errors(row: Row) -> str:
    text = measured_text(row, None if row.metric == "errors_count" else 1)
    return text if row.published is None else f"{text} / {published_text(row)}"


def machines(sheet: Sheet) -> Table:
    """Return a table with one block per data set, kernel and training size. In each block, the
    machines are sorted by their results. Machines with missing splits are listed last.
    """
    shown = [name for name in sheet.metrics if name != CONFUSION] or [METRIC]
    grids = [_ranked(sheet, place, shown) for place in sheet.places]
    grids += confusions(sheet) if CONFUSION in sheet.metrics else []
    about = definitions(sheet)
    if sheet.cells:
        about.append(f"Selected: {CHOICES}.")
    if texts := with_search_text(sheet, sheet.machines):
        about.append(f"CPU seconds: selection, training and test.{texts}")
    return compose(sheet, "Machines, the best first", grids, *about, metric=shown[0], choices=False)


def _ranked(sheet: Sheet, place: Key, shown: list[str]) -> Grid:
    first, rows = shown[0], []
    keys = [place._replace(machine=machine) for machine in sheet.machines]
    partial = incomplete(sheet, keys, first)

    def rank(key: Key) -> tuple[bool, bool, float]:
        value = sheet.value(key, first)
        return value is None, key in partial, -sign_of(first) * (value or 0.0)

    for key in sorted((key for key in keys if sheet.row(key, first).metric), key=rank):
        best, *rest = (metric_text(sheet.row(key, name)) for name in shown)
        row, seconds = sheet.row(key, first), seconds_text(total_with_search(sheet, key))
        cited, chosen = Shown(join(best, sheet.cite(row)), row), sheet.chosen(key)
        rows.append([sheet.label(key.machine), cited, *rest, seconds, chosen])
    heads = numbers(*map(label, shown), "CPU seconds per split")
    kernel = sheet.caption((place.kernel, place.degree), place.size)
    caption = f"{sheet.head(place, name=place.dataset)}: {kernel}"
    return Grid((*words("machine"), *heads, *words("selected")), rows, caption)
