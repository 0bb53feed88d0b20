"""From an experiment to its drawn table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mmbench.tables.facts import gather_facts
from mmbench.tables.frame import build_frame
from mmbench.tables.layouts import check_sized, layout_module
from mmbench.tables.model import Facts, Table
from mmbench.tables.published import load_published, table_of_experiment
from mmbench.tables.records import Experiment
from mmbench.tables.render import check_format, renderer

if TYPE_CHECKING:
    import pandas as pd


def check_names(fmt: str, layout: str | None) -> None:
    """Refuse an unknown format or layout.

    Raises
    ------
    UserError
    """
    check_format(fmt)
    if layout is not None:
        layout_module(layout)


def draw_tables(
    experiments: Sequence[Experiment], fmt: str = "markdown", layout: str | None = None
) -> str:
    """Return the tables of some experiments, measured beside published.

    Parameters
    ----------
    experiments : sequence of Experiment
    fmt : {"markdown", "latex", "csv"}
        ``csv`` is the long tidy table, whatever the layout.
    layout : str, optional
        Layout instead of the one that each experiment's configuration names.

    Raises
    ------
    UserError
        If the layout or format is unknown, or the layout cannot show several training sizes.
    """
    check_names(fmt, layout)
    tables = [(e, *long_table(e, layout)) for e in experiments]
    if fmt == "csv":
        from mmbench.tables.render.csv import to_csv

        return to_csv((frame, facts) for _, frame, facts in tables)
    draw = renderer(fmt)
    return "\n".join(
        draw(_arrange(layout or e.plan.layout, frame, facts)) for e, frame, facts in tables
    )


def long_table(experiment: Experiment, layout: str | None = None) -> tuple[pd.DataFrame, Facts]:
    """Return the long table of one experiment, and the facts beside it."""
    layout = layout or experiment.plan.layout
    cells = experiment.cells
    if any(cell.key.size is not None for cell in cells):
        check_sized(layout)
    name = published_table(experiment.name, layout)
    published = _comparable(load_published(name), experiment) if name else None
    return build_frame(experiment.name, cells, published), gather_facts(experiment, published)


def published_table(experiment: str, layout: str) -> str | None:
    """Return the published table to compare with: the layout's own, else by experiment's name."""
    return getattr(layout_module(layout), "PUBLISHED", None) or table_of_experiment(experiment)


def _comparable(published: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Return a published table in our terms: accuracies for error rates, names of our data sets."""
    rates = published["metric"] == "error_pct"
    published["value"] = published["value"].where(~rates, 100 - published["value"])
    published["metric"] = published["metric"].where(~rates, "accuracy_pct")
    for ours, theirs in experiment.plan.published_as.items():
        if theirs != ours:
            published = published[published["dataset"] != ours]
            published = published.assign(dataset=published["dataset"].replace(theirs, ours))
    return published


def _arrange(layout: str, frame: pd.DataFrame, facts: Facts) -> Table:
    arranged = layout_module(layout).layout(frame, facts)
    return replace(arranged, title=f"{facts.experiment}: {arranged.title}")
