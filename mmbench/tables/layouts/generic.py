"""Any experiment: a line for each data set, kernel and training size, a column for each machine.

Accuracy, and published values where a published table belongs to the experiment, or the metrics
that are asked for; then the CPU seconds of each machine.
"""

from mmbench.tables import blocks as metrics
from mmbench.tables.blocks import by_stage, place_columns, place_heads
from mmbench.tables.compose import compose
from mmbench.tables.model import Grid, Table, measured_text, published_text
from mmbench.tables.rows import Row
from mmbench.tables.sheet import Sheet

SIZED = True
ANY_METRIC = True


def layout(sheet: Sheet) -> Table:
    """Arrange accuracies (errors where only these are published) and CPU seconds."""
    if sheet.metrics:
        title, grids = ", ".join(map(metrics.label, sheet.metrics)), metrics.grids(sheet)
        about, first = metrics.definitions(sheet), metrics.row_name(sheet.metrics[0])
        return compose(sheet, title, [*grids, by_stage(sheet)], *about, metric=first)
    published = {row.metric for row in sheet.rows if row.published is not None}
    counts = "errors_count" in published and "accuracy_pct" not in published
    metric = "errors_count" if counts else "accuracy_pct"
    title = "Errors on the test part" if counts else "Accuracy (%)"
    if published & {"errors_count", "accuracy_pct"}:
        title += ", measured / published"
    return compose(sheet, title, [_results(sheet, metric), by_stage(sheet)], metric=metric)


def _results(sheet: Sheet, metric: str) -> Grid:
    rows = []
    for place in sheet.places:
        head = sheet.head(place, name=place.dataset)
        cells = (_cell(sheet, row, metric) for row in sheet.line(place, metric))
        rows.append([head, *place_heads(place), *cells])
    return Grid(place_columns(sheet, "data set"), rows)


def _cell(sheet: Sheet, row: Row | None, metric: str) -> str:
    text = measured_text(row, 1 if metric == "accuracy_pct" else None)
    if row is not None and row.published is not None:
        text += f" / {published_text(row)}"
    return sheet.marked(text, row)
