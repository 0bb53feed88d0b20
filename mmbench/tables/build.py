"""From a folder of records to a drawn table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.jobs.files import write_atomically
from mmbench.tables.facts import gather_facts
from mmbench.tables.frame import build_frame
from mmbench.tables.layouts import check_sized, layout_module
from mmbench.tables.model import Facts, Table
from mmbench.tables.published import load_published, table_of_experiment
from mmbench.tables.records import Experiment, check_settings, group_cells, read_experiments
from mmbench.tables.render import check_format, renderer

if TYPE_CHECKING:
    import pandas as pd


def table(
    results: str | Path,
    fmt: str = "markdown",
    layout: str | None = None,
    output: str | Path | None = None,
    mix: bool = False,
) -> str:
    """Return the tables of a results folder, measured beside published.

    Parameters
    ----------
    results : path
        The results folder, or the folder of one experiment in it.
    fmt : {"markdown", "latex", "csv"}
        ``csv`` is the long tidy table, whatever the layout.
    layout : str, optional
        Layout instead of the one that each experiment's configuration names.
    output : path, optional
        File to write the text to as well.
    mix : bool
        Whether records of different settings may stand in one table.

    Returns
    -------
    str

    Raises
    ------
    UserError
        If the folder holds no records, the layout or format is unknown, records of different
        settings meet without `mix`, or `output` cannot be written.
    """
    check_format(fmt)
    if layout is not None:
        layout_module(layout)
    experiments = read_experiments(Path(results))
    tables = [(e, *long_table(e, layout, mix)) for e in experiments]
    if fmt == "csv":
        from mmbench.tables.render.csv import to_csv

        text = to_csv((frame, facts) for _, frame, facts in tables)
    else:
        draw = renderer(fmt)
        text = "\n".join(
            draw(_arrange(layout or experiment.layout, frame, facts))
            for experiment, frame, facts in tables
        )
    if output is not None:
        _write(Path(output), text)
    return text


def long_table(
    experiment: Experiment, layout: str | None = None, mix: bool = False
) -> tuple[pd.DataFrame, Facts]:
    """Return the long table of one experiment, and the facts beside it.

    Raises
    ------
    UserError
        If records of different settings meet without `mix`.
    """
    cells = group_cells(experiment)
    remarks = check_settings(experiment, cells, mix)
    if any(cell.key.size is not None for cell in cells):
        check_sized(layout or experiment.layout)
    name = published_table(experiment, layout or experiment.layout)
    published = _comparable(load_published(name), experiment) if name else None
    facts = gather_facts(experiment, published, remarks)
    return build_frame(experiment.name, cells, published), facts


def _comparable(published: pd.DataFrame, experiment: Experiment) -> pd.DataFrame:
    """Return a published table in our terms: accuracies for error rates, names of our data sets.

    ``published_as`` in the configuration says which lines are meant by a data set. Without it those
    of the whole set are not compared with some of its classes.
    """
    rates = published["metric"] == "error_pct"
    published["value"] = published["value"].where(~rates, 100 - published["value"])
    published["metric"] = published["metric"].where(~rates, "accuracy_pct")
    entries = [entry for entry in experiment.config.get("datasets", []) if isinstance(entry, dict)]
    for entry in entries:
        theirs, ours = entry.get("published_as"), entry.get("name")
        if entry.get("classes") and not theirs:
            published = published[published["dataset"] != ours]
        if theirs and theirs != ours:
            others = published[published["dataset"] != ours]
            published = others.assign(dataset=others["dataset"].replace(str(theirs), str(ours)))
    return published


def _arrange(layout: str, frame: pd.DataFrame, facts: Facts) -> Table:
    arranged = layout_module(layout).layout(frame, facts)
    return replace(arranged, title=f"{facts.experiment}: {arranged.title}")


def published_table(experiment: Experiment, layout: str) -> str | None:
    """Return the published table to compare with: the layout's own, else by experiment's name."""
    return getattr(layout_module(layout), "PUBLISHED", None) or table_of_experiment(experiment.name)


def _write(path: Path, text: str) -> None:
    if not path.name:
        raise UserError(f"{path}: cannot write the table: it is a folder")
    try:
        write_atomically(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise UserError(f"{path}: cannot write the table: {error.strerror}") from None
