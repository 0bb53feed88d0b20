"""The page of an experiment (tables, pictures, cells, failures, facts), and the first page."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmbench.errors import Status, UserError
from mmbench.jobs.record import Record, timestamp
from mmbench.tables.blocks import by_name
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.export import SPLIT_COLUMNS, split_rows
from mmbench.tables.figures import draw_figure, figures_of, title_of
from mmbench.tables.model import Table, kernel_text
from mmbench.tables.records import Experiment
from mmbench.tables.render import to_csv
from mmbench.tables.report.cell import limits_text
from mmbench.tables.report.comparison import TwoRuns
from mmbench.tables.report.pictures import pictures_of
from mmbench.tables.report.site import INDEX, Site
from mmbench.tables.report.view import (
    View,
    config_text,
    data_facts,
    details,
    metric_name,
    number,
    parameters,
    published,
    remarks,
    run_facts,
    signed,
    summarize,
)
from mmbench.tables.results import Reference
from mmbench.tables.rows import ALL_IN_BAND, Row

#: Drawn of any experiment with machines and data sets enough.
RANKS = "critical_difference"


def drawings(site: Site, view: View) -> list[dict[str, str]]:
    """Draw the figures of an experiment; for a reference table return those beside it.

    Without a file, ``words`` says why a figure could not be drawn.
    """
    if isinstance(view.experiment, Reference):
        images = sorted(view.experiment.folder.glob("*.png"))
        for image in images:
            shutil.copyfile(image, site.path(f"{view.folder}/figures/{image.name}"))
        if images:
            named = [
                (view.name if image.stem == "figure" else image.stem, image) for image in images
            ]
            return [_drawing(name, f"figures/{image.name}", "") for name, image in named]
    found = [_drawn(site, view, name) for name in figures_of(view.experiment)]
    # Training sizes of one data set are no data sets over which machines could be ranked.
    if not any(key.size is not None for key in view.keys):
        found += [ranks for ranks in [_drawn(site, view, RANKS)] if ranks["file"]]
    return found


def _drawing(name: str, file: str, words: str) -> dict[str, str]:
    return {"name": name, "title": title_of(name), "file": file, "words": words}


def _drawn(site: Site, view: View, name: str) -> dict[str, str]:
    file = f"figures/{name}.svg"
    try:
        words = draw_figure(name, view.experiment, site.path(f"{view.folder}/{file}"))
    except UserError as error:
        return _drawing(name, "", str(error))
    return _drawing(name, file, words)


#: The layout of ranks and paired tests.
RANKS_LAYOUT = "comparison"


def write_experiment(site: Site, view: View) -> None:
    """Write the page of an experiment and the files that it offers."""
    files = _write_files(site, view)
    site.page(
        f"{view.folder}/{INDEX}",
        "experiment.html",
        view=view,
        **summarize(view),
        lines=[_line(view, row) for row in view.rows],
        sized=any(key.size is not None for key in view.keys),
        any_published=any(row.published is not None for row in view.rows),
        several_statuses=len({row.status for row in view.rows}) > 1,
        details={key: (f"details-{k}", details(view, key)) for k, key in enumerate(view.keys)},
        pictures=pictures_of(view),
        drawings=drawings(site, view),
        ranks=ranks_table(view),
        failures=failures(view),
        remarks=remarks(view),
        data=data_facts(view),
        runs=run_facts(view),
        config=config_text(view),
        files=files,
        metric=metric_name(view.metric),
    )


def _write_files(site: Site, view: View) -> dict[str, str]:
    """Write the tables for other programs; return what each file holds."""
    files = {"table.csv": "every cell and metric"}
    site.text(f"{view.folder}/table.csv", to_csv([view.sheet]))
    if isinstance(view.experiment, Experiment):
        rows = split_rows([view.experiment])
        site.csv(f"{view.folder}/splits.csv", SPLIT_COLUMNS, rows)
        files["splits.csv"] = "every split"
    if config := config_text(view):
        site.text(f"{view.folder}/experiment.yaml", config)
        files["experiment.yaml"] = "the configuration as run"
    return files


def ranks_table(view: View) -> Table | None:
    """Return mean ranks and paired tests of the machines; of three or more with records alone."""
    machines = {key.machine for key, cell in view.cells.items() if cell.done}
    if len(machines) < 3 or view.sheet.plan.layout == RANKS_LAYOUT:
        return None
    try:
        return arrange(sheet_of(view.experiment, RANKS_LAYOUT), RANKS_LAYOUT)
    except UserError:  # several training sizes, for which it has no place
        return None


def _line(view: View, row: Row) -> dict[str, Any]:
    """Return a line of the list of all cells; numbers as they are, for sorting."""
    key = row.key
    apart = None
    if row.measured is not None and row.published is not None:
        apart = row.measured - row.published
    seconds = [value for value in by_name(view.sheet, key).values() if value is not None]
    return {
        "key": key,
        "row": row,
        "page": view.pages.get(key),
        "kernel": kernel_text(key.kernel, key.degree),
        "machine": view.sheet.label(key.machine),
        "measured": row.measured,
        "difference": apart,
        "verdict": verdict_text(row),
        "mark": row.mark,
        "seconds": sum(seconds) if seconds else None,
        "gap": view.sheet.value(key, "worst_gap"),
        "parameters": parameters(view, key),
        "texts": {
            "measured": "" if row.measured is None else number(row.measured, row.metric),
            "sd": "" if row.sd is None else number(row.sd, row.metric),
            "published": published(row),
            "difference": "" if apart is None else signed(apart, row.metric),
        },
    }


def verdict_text(row: Row) -> str:
    """Return the outcome of the comparison in a word."""
    if row.in_band is None:
        return "not compared"
    if row.mark == ALL_IN_BAND:
        return "in band, as all"
    return "in band" if row.in_band else "out of band"


def failures(view: View) -> list[dict[str, Any]]:
    """Return one line per cell with splits without result or doubtful fits."""

    def failed(row: Row) -> list[Record]:
        return view.cells[row.key].failed if row.key in view.cells else []

    return [
        {
            "key": row.key,
            "name": view.heading(row.key),
            "page": view.pages.get(row.key),
            "status": row.status.replace("_", " "),
            "note": row.note,
            "limits": "; ".join(dict.fromkeys(filter(None, map(limits_text, failed(row))))),
        }
        for row in view.rows
        if row.key in view.incomplete or (row.note and row.status != Status.UNCERTIFIED)
    ]


def write_overview(site: Site, views: Sequence[View], comparisons: Sequence[TwoRuns] = ()) -> Path:
    """Write the first page."""
    lines = [{"view": view, **summarize(view)} for view in views]
    return site.page(
        INDEX, "overview.html", lines=lines, comparisons=comparisons, written=timestamp()
    )
