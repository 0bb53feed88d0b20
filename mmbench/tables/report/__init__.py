"""The report of results as a static web site, with an overview, a page per experiment, and a page
per table cell.

The pages of the report are rendered from the templates in the folder ``templates``. The folder
``assets`` contains the style sheet and the script of the pages. The library plotly draws
interactive pictures. The library plotly is copied into the report, so that the report can be read
without internet access.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from mmbench.errors import visible
from mmbench.jobs.record import timestamp
from mmbench.tables.report.cell import write_cells
from mmbench.tables.report.experiment import write_experiment
from mmbench.tables.report.site import INDEX, Site, template
from mmbench.tables.report.two_runs import runs_to_compare, write_comparison
from mmbench.tables.report.view import View, unique_names
from mmbench.tables.results_folder import Experiment, each
from mmbench.tables.table import Table


def write_report(
    experiments: Sequence[Experiment],
    folder: Path,
    say: Callable[[str], object] = lambda line: None,
) -> Path:
    """Write the report of some experiments, and return the path of the overview page.

    If the experiments contain several runs of the same configuration, the report also compares
    these runs. The folder of the report must be new, or empty, or contain an earlier report. The
    pages of an earlier report are replaced. The function `say` is called with a message for each
    experiment that cannot be shown. Raises UserError if the folder contains other files, if a file
    cannot be written, or if no experiment can be shown.
    """
    site, names = Site(folder), unique_names(run.name for run in experiments)
    views = each(lambda pair: View(*pair), zip(experiments, names, strict=True), say)
    for view in views:
        write_experiment(site, view)
        write_cells(site, view)
    comparisons = [write_comparison(site, *runs) for runs in runs_to_compare(views)]
    values = {"views": views, "comparisons": comparisons, "written": timestamp()}
    return site.page(INDEX, "overview.html", **values)


def tables_as_html(tables: Sequence[Table]) -> str:
    """Return tables as HTML for a notebook, without style sheet and scripts."""
    return visible(template("tables.html").render(tables=tables))
