"""The page of an experiment in the report: tables, pictures, table cells, failures, and facts about
the run.
"""

from mmbench.errors import UserError, converted
from mmbench.jobs.disk import read_regular
from mmbench.jobs.seal import BadRecord
from mmbench.results.folder import CSV
from mmbench.tables.build import arrange, laid_out
from mmbench.tables.figures import draw_figure, figures_of, title_of
from mmbench.tables.render import csv_text, to_csv
from mmbench.tables.report.pictures import pictures_of
from mmbench.tables.report.site import INDEX, Site
from mmbench.tables.report.view import View
from mmbench.tables.text import Table

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
    results, names, drawn = view.results, figures_of(view.results), []
    copied = not (results.has_records or names)
    for image in sorted(results.folder.glob("*.[ps][nv]g")) if copied else []:
        file, name = f"figures/{image.name}", image.stem
        with converted(str(image), BadRecord):
            site.path(f"{view.folder}/{file}").write_bytes(read_regular(image))
        drawn.append({"name": view.name if name == "figure" else name, "file": file, "words": ""})
    for name in () if drawn else (*names, RANKS):
        file = f"figures/{name}.svg"
        try:
            words = draw_figure(name, results, site.path(f"{view.folder}/{file}"))
        except UserError as error:
            file, words = "", str(error)
        if file or name in names:
            drawn.append({"name": name, "file": file, "words": words})
    return [{"title": title_of(drawing["name"]), **drawing} for drawing in drawn]


def _write_files(site: Site, view: View) -> dict[str, str]:
    """Write the files for download.

    Returns a dict from file names to descriptions.
    """
    texts = {
        CSV: ("all cells and metrics", to_csv([view.results])),
        "splits.csv": ("all splits", csv_text(view.splits) if len(view.splits) else ""),
        "experiment.yaml": ("configuration of the run", view.config),
    }
    made = {name: (about, text) for name, (about, text) in texts.items() if text}
    for name, (_, text) in made.items():
        site.text(f"{view.folder}/{name}", text)
    return {name: about for name, (about, _) in made.items()}


def ranks_table(view: View) -> Table | None:
    """Return a table of mean ranks and paired tests, or None if the page does not show this table.

    The table is not shown if there are no splits, if fewer than three machines have results, if
    there are several training sizes, or if the experiment's own table already shows mean ranks.
    """
    results = view.results
    shown = results.layout == RANKS_LAYOUT or results.sized or len(view.ran) < 3
    return arrange(laid_out(results, RANKS_LAYOUT)) if results.by_cell and not shown else None
