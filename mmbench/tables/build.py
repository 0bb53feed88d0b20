"""Tables of experiments as Markdown, LaTeX or CSV."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mmbench.errors import UserError
from mmbench.results.published import published_rows, table_of_experiment
from mmbench.tables.blocks import embolden
from mmbench.tables.frame import ACCURACY, METRIC, check_metrics, long_table
from mmbench.tables.layouts import GENERIC, check_able, find_layout
from mmbench.tables.render import to_csv, to_latex, to_markdown
from mmbench.tables.results_folder import Experiment, each
from mmbench.tables.sheet import Sheet
from mmbench.tables.table import Table

#: Pattern for a bold text at the beginning of a table cell in Markdown.
BOLD_CELL = re.compile(r"(?<=\| )( *)\*\*([^*|]+)\*\*")


def check_names(layout: str | None, metrics: Sequence[str] = ()) -> None:
    """Raise UserError if the layout or a metric is unknown, or if the layout cannot show the
    metrics.
    """
    check_metrics(metrics)
    if layout is not None:
        find_layout(layout)
        if metrics:
            check_able(layout, "any_metric", metrics[0])


def draw_tables(
    experiments: Sequence[Experiment],
    fmt: str = "markdown",
    layout: str | None = None,
    say: Callable[[str], object] = lambda line: None,
    metrics: Sequence[str] = (),
    bold: bool = True,
) -> str:
    """Return the tables of experiments as text, with measured values beside published values.

    The format ``csv`` does not depend on the layout: the text is the long table, with one row per
    table cell and metric. The arguments `layout` and `metrics` replace the settings of the same
    names in the configurations. If `metrics` are given and the configured layout can only show
    accuracies, the generic layout is used. If `bold` is true, the best machines are printed in
    bold; see `embolden`.

    A reference table is the stored result of an earlier run. If `fmt` is "markdown", and neither
    `layout` nor `metrics` are given, the stored Markdown text of a reference table is returned. If
    `bold` is false, bold type is removed from the stored text.

    If the layout cannot show an experiment, `say` is called with a message. Raises UserError if the
    layout is unknown, or if the layout cannot show any of the experiments.
    """
    if fmt == "csv":
        return to_csv(each(lambda item: sheet_of(item, layout, metrics), experiments, say))

    def draw(experiment: Experiment) -> str:
        text = experiment.text
        if text is None or fmt != "markdown" or layout is not None or metrics:
            table = arrange(sheet_of(experiment, layout, metrics), bold)
            return to_latex(table) if fmt == "latex" else to_markdown(table)
        # Spaces replace the asterisks of bold type, so that the column keeps its width.
        return text if bold else re.sub("(?m)^- Bold: .*\n", "", BOLD_CELL.sub(r"    \1\2", text))

    return "\n".join(each(draw, experiments, say))


def sheet_of(
    experiment: Experiment, layout: str | None = None, metrics: Sequence[str] = ()
) -> Sheet:
    """Return the `Sheet` from which a layout makes the table of an experiment."""
    plan, frame = experiment.plan, experiment.frame
    if layout is None:
        layout = GENERIC if metrics and not find_layout(plan.layout).any_metric else plan.layout
    if experiment.sized:
        check_able(layout, "sized", "several training sizes")
    table = find_layout(layout).published or table_of_experiment(experiment.name)
    published = comparable(table, plan.published_as) if table else []
    if frame is not None:
        if metrics:
            raise UserError(f"{experiment.folder}: --metric needs records, not only a table")
        return Sheet(experiment, layout, frame, published)
    names = metrics or (plan.metrics if find_layout(layout).any_metric else ())
    metrics = [METRIC if name == ACCURACY else name for name in names]
    frame = long_table(experiment.cells, published, not plan.smoke, metrics)
    cells = {cell.key: cell for cell in experiment.cells}
    return Sheet(experiment, layout, frame, published, cells, metrics)


def comparable(table: str, published_as: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the rows of a published table with the names and units of mmbench.

    Published names of data sets are replaced by their names in mmbench, and error rates are
    converted to accuracies. The argument `published_as` maps names in mmbench to names in the
    published table. Several data sets may have the same published name. A data set with an empty
    published name is left out. A data set has an empty published name if, for example, only some of
    its classes are used.
    """
    names = {row["dataset"]: row["dataset"] for row in published_rows(table)} | {**published_as}
    rows = []
    for row in map(dict, published_rows(table)):
        if row["metric"] == "error_pct":
            row |= {"metric": "accuracy_pct", "value": row["value"] and 100 - row["value"]}
        rows += [row | {"dataset": name} for name in names if names[name] == row["dataset"]]
    return rows


def arrange(sheet: Sheet, bold: bool = True) -> Table:
    """Return the table of a sheet, in the layout `sheet.layout`. If `bold` is true, the best
    machines are printed in bold.
    """
    table = find_layout(sheet.layout).draw(sheet)
    notes = [*(embolden(sheet, table.grids) if bold else []), *table.notes]
    return replace(table, title=f"{sheet.experiment.name}: {table.title}", notes=notes)
