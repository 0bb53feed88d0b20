"""Tables of experiments as Markdown, LaTeX or CSV."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pkgutil import resolve_name

from mmbench.errors import UserError
from mmbench.results.cells import ACCURACY, CONFUSION, METRIC, check_metrics, name_in_frame
from mmbench.results.folder import each
from mmbench.results.frames import Results
from mmbench.results.published import comparable, published_rows, table_of_experiment
from mmbench.selection.metrics import METRICS
from mmbench.tables.layouts import GENERIC, check_able, find_layout
from mmbench.tables.render import to_csv, to_latex, to_markdown
from mmbench.tables.text import Table, plain, without_bold


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
    experiments: Sequence[Results],
    fmt: str = "markdown",
    layout: str | None = None,
    say: Callable[[str], object] = lambda line: None,
    metrics: Sequence[str] = (),
    bold: bool = True,
    block: int | None = None,
    caption: str = "",
) -> str:
    """Return the tables of experiments as text, with measured values beside published values.

    The format ``csv`` does not depend on the layout: the text is the frame ``cells``. The arguments
    `layout` and `metrics` replace the settings of the same names in the configurations. If
    `metrics` are given and the configured layout can only show accuracies, the generic layout is
    used. If `bold` is false, no value is bold. If `block` is given, only the block with this number
    is shown, counted from 1. In LaTeX, `caption` replaces the caption of the first block.

    If the layout cannot show an experiment, `say` is called with a message. Raises UserError if the
    layout is unknown, or if the layout cannot show any of the experiments.
    """
    if fmt not in ("markdown", "latex"):
        return to_csv(each(lambda item: laid_out(item, layout, metrics), experiments, say))

    def draw(item: Results) -> list[Table]:
        tables = tables_of(item, layout, metrics, bold)
        return [with_block(table, block) for table in tables]

    tables = [*chain.from_iterable(each(draw, experiments, say))]
    return to_latex(tables, caption) if fmt == "latex" else "\n".join(map(to_markdown, tables))


def with_block(table: Table, block: int | None) -> Table:
    """Return a table with only one of its blocks, counted from 1, or with all blocks."""
    if block is None:
        return table
    if not 1 <= block <= len(table.grids):
        names = (plain(grid.caption) or table.title for grid in table.grids)
        texts = "; ".join(f"{k} {name}" for k, name in enumerate(names, 1))
        raise UserError(f"--block {block}: {table.heading} has the blocks {texts}")
    return replace(table, grids=[table.grids[block - 1]])


def tables_of(
    results: Results,
    layout: str | None = None,
    metrics: Sequence[str] = (),
    bold: bool = True,
) -> list[Table]:
    """Return the tables of an experiment: in one layout, or in all its layouts."""
    layouts = [layout] if layout or metrics else [None, *results.plan.more_layouts]
    tables = [arrange(laid_out(results, name, metrics)) for name in layouts]
    return tables if bold else list(map(without_bold, tables))


def laid_out(results: Results, layout: str | None = None, metrics: Sequence[str] = ()) -> Results:
    """Return the results with the frame ``cells`` that a layout shows: its published values, its
    metrics, and its order of machines.
    """
    plan = results.plan
    if layout is None:
        layout = GENERIC if metrics and not find_layout(plan.layout).any_metric else plan.layout
    if results.sized:
        check_able(layout, "sized", "several training sizes")
    chosen = find_layout(layout)
    table = chosen.published or table_of_experiment(results.name)
    printed = plan.published or (published_rows(table) if table else ())
    splits = plan.published_splits
    published = [
        {**row, "n_splits": splits.get(row["dataset"], row.get("n_splits"))}
        for row in comparable(printed, plan.published_as)
    ]
    names = [*map(name_in_frame, metrics or (plan.metrics if chosen.any_metric else ()))]
    if results.stored is not None:
        known = {METRIC, *results.stored.metric}
        if lost := {*metrics} & {*METRICS, CONFUSION} - {ACCURACY, *known}:
            raise UserError(
                f"{results.folder}: --metric {min(lost)} needs records, not only a table"
            )
        names = [name for name in names if name in known]
    made = replace(
        results,
        layout=layout,
        published=published,
        metrics=names,
        derive=resolve_name(chosen.derive) if chosen.derive else None,
        order=chosen.order,
    )
    for name in metrics:
        measured = made.cells.measured[made.cells.metric == name_in_frame(name)]
        if name != CONFUSION and name not in METRICS and measured.isna().all():
            raise UserError(f"{results.folder}: --metric {name}: no machine has this result")
    return made


def arrange(results: Results) -> Table:
    """Return the table of results in their layout."""
    return replace(find_layout(results.layout).draw(results), experiment=results.name)
