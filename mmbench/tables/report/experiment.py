"""The page of an experiment: tables, pictures, table cells, failures, and facts about the run."""

import shutil
from typing import Any

from mmbench.errors import Status, UserError
from mmbench.tables.blocks import total_with_search, with_search_text
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.figures import draw_figure, figures_of, title_of
from mmbench.tables.frame import SPLIT_COLUMNS
from mmbench.tables.model import Table
from mmbench.tables.render import to_csv
from mmbench.tables.report.cell import limits_text
from mmbench.tables.report.pictures import pictures_of, share_marks
from mmbench.tables.report.site import INDEX, Site
from mmbench.tables.report.view import (
    View,
    data_facts,
    details,
    metric_name,
    parameters,
    run_facts,
    summarize,
)
from mmbench.tables.results import SPLITS, split_rows

#: Figure and layout of mean ranks, shown if there are enough machines and data sets.
RANKS, RANKS_LAYOUT = "critical_difference", "comparison"


def write_experiment(site: Site, view: View) -> None:
    """Write the page of an experiment and the files for download."""
    site.page(
        f"{view.folder}/{INDEX}",
        "experiment.html",
        view=view,
        **summarize(view),
        lines=[
            (row, total_with_search(view.sheet, row.key), parameters(view, row.key))
            for row in view.rows
        ],
        details={key: (f"details-{k}", details(view, key)) for k, key in enumerate(view.keys)},
        pictures=pictures_of(view),
        shared=share_marks(view),
        search=with_search_text(view.sheet, view.ran),
        drawings=drawings(site, view),
        ranks=ranks_table(view),
        failures=failures(view),
        data=data_facts(view),
        runs=run_facts(view),
        files=_write_files(site, view),
        metric=metric_name(view.metric),
    )


def drawings(site: Site, view: View) -> list[dict[str, str]]:
    """Draw the figures of an experiment as SVG files, or copy the images beside a reference table.

    Images are copied if there are no records, and no figure can be drawn without records. If a
    figure cannot be drawn, ``file`` is empty and ``words`` is the error message.
    """

    names, drawn = figures_of(view.experiment), []
    copied = not (view.has_records or names)
    for image in sorted(view.experiment.folder.glob("*.[ps][nv]g")) if copied else []:
        file, name = f"figures/{image.name}", image.stem
        shutil.copyfile(image, site.path(f"{view.folder}/{file}"))
        drawn.append({"name": view.name if name == "figure" else name, "file": file, "words": ""})
    # machines are not ranked over several training sizes of one data set
    ranks = [RANKS] if all(key.size is None for key in view.keys) else []
    for name in () if drawn else (*names, *ranks):
        file = f"figures/{name}.svg"
        try:
            words = draw_figure(name, view.experiment, site.path(f"{view.folder}/{file}"))
        except UserError as error:
            file, words = "", str(error)
        if file or name in names:
            drawn.append({"name": name, "file": file, "words": words})
    return [{"title": title_of(drawing["name"]), **drawing} for drawing in drawn]


def _write_files(site: Site, view: View) -> dict[str, str]:
    """Write the files for download; return the description of each file by name."""
    files = {"table.csv": "all cells and metrics"}
    site.text(f"{view.folder}/table.csv", to_csv([view.sheet]))
    if view.has_records:
        site.table(f"{view.folder}/splits.csv", split_rows(view.experiment), SPLIT_COLUMNS)
        files["splits.csv"] = "all splits"
    elif view.experiment.splits:
        shutil.copyfile(view.experiment.splits, site.path(f"{view.folder}/{SPLITS}"))
        files[SPLITS] = "all splits"
    if view.config:
        site.text(f"{view.folder}/experiment.yaml", view.config)
        files["experiment.yaml"] = "configuration of the run"
    return files


def ranks_table(view: View) -> Table | None:
    """Return mean ranks and paired tests; None for fewer than three machines with records."""
    machines = {key.machine for key, cell in view.cells.items() if cell.done}
    if len(machines) < 3 or view.sheet.plan.layout == RANKS_LAYOUT:
        return None
    try:
        return arrange(sheet_of(view.experiment, RANKS_LAYOUT))
    except UserError:  # the layout cannot show several training sizes
        return None


def failures(view: View) -> list[dict[str, Any]]:
    """Return the table cells with missing results or with fit warnings, and the limits reached."""
    lines = []
    for row in view.rows:
        if row.key in view.incomplete or (row.note and row.status != Status.UNCERTIFIED):
            failed = view.cells[row.key].failed if row.key in view.cells else []
            limits = filter(None, map(limits_text, failed))
            lines.append({"row": row, "limits": "; ".join(dict.fromkeys(limits))})
    return lines
