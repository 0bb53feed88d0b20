"""From an experiment to its drawn table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mmbench.errors import UserError
from mmbench.tables.layouts import (
    GENERIC,
    check_any_metric,
    check_sized,
    find_layout,
)
from mmbench.tables.measures import check_metrics, measure
from mmbench.tables.model import Table
from mmbench.tables.published import published_rows, table_of_experiment
from mmbench.tables.records import Experiment
from mmbench.tables.render import check_format, to_csv, to_latex, to_markdown
from mmbench.tables.results import Reference, each
from mmbench.tables.rows import build_rows
from mmbench.tables.sheet import Sheet


def check_names(fmt: str, layout: str | None, metrics: Sequence[str] = ()) -> None:
    """Refuse an unknown format, layout or metric, and a layout that shows the accuracy alone."""
    check_format(fmt)
    check_metrics(metrics)
    if layout is not None:
        find_layout(layout)
    if layout is not None and metrics:
        check_any_metric(layout, metrics)


def draw_tables(
    experiments: Sequence[Experiment | Reference],
    fmt: str = "markdown",
    layout: str | None = None,
    say: Callable[[str], object] = lambda line: None,
    metrics: Sequence[str] = (),
) -> str:
    """Return the tables of some experiments, measured beside published.

    A reference table is drawn as it was from its records, except in other formats and layouts;
    ``csv`` is the long tidy table in any layout. `layout` and `metrics` replace those of the
    configurations; with `metrics` the default layout is the generic one, if the experiment's own
    shows accuracies alone. `say` gets a line per experiment that the layout cannot show.
    Raises UserError if the layout or format is unknown, or the layout can show none of the
    experiments.
    """
    check_names(fmt, layout, metrics)
    if fmt == "csv":
        return to_csv(each(lambda item: sheet_of(item, layout, metrics), experiments, say))

    def draw(experiment: Experiment | Reference) -> str:
        ready = experiment.text if isinstance(experiment, Reference) else None
        if ready is None or fmt != "markdown" or layout is not None or metrics:
            name = _layout_of(experiment, layout, metrics)
            table = arrange(sheet_of(experiment, layout, metrics), name)
            ready = to_latex(table) if fmt == "latex" else to_markdown(table)
        return ready

    return "\n".join(each(draw, experiments, say))


def sheet_of(
    experiment: Experiment | Reference, layout: str | None = None, metrics: Sequence[str] = ()
) -> Sheet:
    """Return the input of a layout: the rows of an experiment, and its records if there are any."""
    layout = _layout_of(experiment, layout, metrics)
    if any(cell.key.size is not None for cell in experiment.plan.cells):
        check_sized(layout)
    table = published_table(experiment.name, layout)
    published = comparable(table, experiment.plan.published_as) if table else []
    name, plan = experiment.name, experiment.plan
    if isinstance(experiment, Reference):
        if metrics:
            raise UserError(f"{experiment.folder}: a table without records has no other metrics")
        deviations, remarks = experiment.deviations, experiment.remarks
        return Sheet(experiment.rows, plan, name, published, deviations=deviations, remarks=remarks)
    rows = build_rows(experiment.cells, published, compare=not plan.smoke)
    shown = metrics or (plan.metrics if find_layout(layout).any_metric else ())
    measures = measure(experiment, shown)
    rows += measures.rows(experiment.cells)
    return Sheet(rows, plan, name, published, experiment, measures)


def _layout_of(
    experiment: Experiment | Reference, layout: str | None, metrics: Sequence[str]
) -> str:
    """Return the requested layout, else the experiment's, unless it lacks the metrics."""
    planned = experiment.plan.layout
    return layout or (GENERIC if metrics and not find_layout(planned).any_metric else planned)


def published_table(experiment: str, layout: str) -> str | None:
    """Return the published table to compare with: the layout's own, else by experiment's name."""
    return find_layout(layout).published or table_of_experiment(experiment)


def comparable(table: str, published_as: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a published table in our terms: accuracies for error rates, names of our data sets."""
    ours = {theirs: ours for ours, theirs in published_as.items() if theirs}
    rows = []
    for row in map(dict, published_rows(table)):
        if row["metric"] == "error_pct":
            row |= {"metric": "accuracy_pct", "value": row["value"] and 100 - row["value"]}
        if row["dataset"] in ours or row["dataset"] not in published_as:
            rows.append(row | {"dataset": ours.get(row["dataset"], row["dataset"])})
    return rows


def arrange(sheet: Sheet, layout: str | None = None) -> Table:
    """Return the table that a layout, the experiment's own by default, makes of a sheet."""
    arranged = find_layout(layout or sheet.plan.layout).draw(sheet)
    return replace(arranged, title=f"{sheet.experiment}: {arranged.title}")
