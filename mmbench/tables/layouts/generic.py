"""Any experiment: one row per data set, kernel and training size, one column per machine.

The values are accuracies, beside published values if a published table belongs to the experiment,
or the requested metrics. The last block shows the CPU seconds of each machine.
"""

from mmbench.tables.blocks import by_stage, definitions, grids, label, results, row_name
from mmbench.tables.compose import compose
from mmbench.tables.frame import METRIC, Row
from mmbench.tables.model import Table, measured_text, published_text
from mmbench.tables.sheet import Sheet

SIZED = True
ANY_METRIC = True


def layout(sheet: Sheet) -> Table:
    """Return accuracies, or error counts if only these are published, and CPU seconds."""
    if sheet.metrics:
        title, first = ", ".join(map(label, sheet.metrics)), row_name(sheet.metrics[0])
        blocks = [*grids(sheet), by_stage(sheet)]
        return compose(sheet, title, blocks, *definitions(sheet), metric=first)
    published = {row.metric for row in sheet.rows if row.published is not None}
    metric = sheet.metric
    title = "Accuracy (%)" if metric == METRIC else "Errors on the test part"
    if published & {"errors_count", METRIC}:
        title += ", measured / published"
    blocks = [results(sheet, metric, _accuracy_or_errors), by_stage(sheet)]
    return compose(sheet, title, blocks, metric=metric)


def _accuracy_or_errors(row: Row) -> str:
    text = measured_text(row, None if row.metric == "errors_count" else 1)
    return text if row.published is None else f"{text} / {published_text(row)}"
