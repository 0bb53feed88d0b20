"""The page of an experiment in the report: tables, pictures, table cells, failures, and facts about
the run.
"""

import shutil

from mmbench.errors import UserError
from mmbench.tables.build import arrange, sheet_of
from mmbench.tables.figures import draw_figure, figures_of, title_of
from mmbench.tables.frame import SPLIT_COLUMNS
from mmbench.tables.render import to_csv
from mmbench.tables.report.pictures import pictures_of
from mmbench.tables.report.site import INDEX, Site
from mmbench.tables.report.view import View
from mmbench.tables.results_folder import SPLITS, split_rows
from mmbench.tables.table import Table

#: Names of the figure and of the layout that show mean ranks.
RANKS, RANKS_LAYOUT = "critical_difference", "comparison"


def write_experiment(site: Site, view: View) -> None:
    """Write the page of an experiment and its files for download."""
    site.page(
        f"{view.folder}/{INDEX}",
        "experiment.html",
        view=view,
        pictures=pictures_of(view),
        drawings=drawings(site, view),
        ranks=ranks_table(view),
        files=_write_files(site, view),
    )


def drawings(site: Site, view: View) -> list[dict[str, str]]:
    """Draw the figures of an experiment as SVG files.

    Returns one dict per figure, with the keys ``title``, ``file`` and ``words`` (the numbers in the
    figure as text).

    If no figure can be drawn from a reference table, the images in the folder of the reference
    table are copied. If drawing fails, ``file`` is empty, and ``words`` is the error message.
    """

    names, drawn = figures_of(view.experiment), []
    copied = not (view.has_records or names)
    for image in sorted(view.experiment.folder.glob("*.[ps][nv]g")) if copied else []:
        file, name = f"figures/{image.name}", image.stem
        shutil.copyfile(image, site.path(f"{view.folder}/{file}"))
        drawn.append({"name": view.name if name == "figure" else name, "file": file, "words": ""})
    for name in () if drawn else (*names, RANKS):
        file = f"figures/{name}.svg"
        try:
            words = draw_figure(name, view.experiment, site.path(f"{view.folder}/{file}"))
        except UserError as error:
            file, words = "", str(error)
        if file or name in names:
            drawn.append({"name": name, "file": file, "words": words})
    return [{"title": title_of(drawing["name"]), **drawing} for drawing in drawn]


def _write_files(site: Site, view: View) -> dict[str, str]:
    """Write the files for download.

    Returns a dict from file names to descriptions.
    """
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
    """Return a table of mean ranks and paired tests, or None if the page does not show this table.

    The table is not shown if there are no records, if fewer than three machines have results, if
    there are several training sizes, or if the experiment's own table already shows mean ranks.
    """
    run, shown = view.experiment, view.sheet.plan.layout == RANKS_LAYOUT
    if shown or run.sized or not run.has_records or len(view.ran) < 3:
        return None
    return arrange(sheet_of(run, RANKS_LAYOUT))
