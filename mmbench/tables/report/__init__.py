"""The report of results as a static web site: an overview, and pages per experiment and table cell.

plotly, which draws interactive pictures, is copied into the report, so that it can be read offline.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from mmbench.errors import visible
from mmbench.jobs.clock import timestamp
from mmbench.results.folder import each
from mmbench.results.frames import Results
from mmbench.tables.report.cell import write_cells
from mmbench.tables.report.experiment import write_experiment
from mmbench.tables.report.site import INDEX, Site, template
from mmbench.tables.report.two_runs import runs_to_compare, write_comparison
from mmbench.tables.report.view import View, unique_names
from mmbench.tables.text import Table


def write_report(
    results: Sequence[Results],
    folder: Path,
    say: Callable[[str], object] = lambda line: None,
) -> Path:
    """Write the report of some results, and return the path of the overview page.

    Several results of the same configuration are also compared. The folder of the report must be
    new, or empty, or contain an earlier report. The pages of an earlier report are replaced. The
    function `say` is called with a message for each of the `results` that cannot be shown. Raises
    UserError if the folder contains other files, if a file cannot be written, or if none of the
    `results` can be shown.
    """
    site, names = Site(folder), unique_names(one.name for one in results)
    views = each(lambda pair: View(*pair), zip(results, names, strict=True), say)
    for view in views:
        write_experiment(site, view)
        write_cells(site, view)
    comparisons = [write_comparison(site, *runs) for runs in runs_to_compare(views)]
    values = {"views": views, "comparisons": comparisons, "written": timestamp()}
    return site.page(INDEX, "overview.html", **values)


def tables_as_html(tables: Sequence[Table]) -> str:
    """Return tables as HTML for a notebook, without style sheet and scripts."""
    return visible(template("tables.html").render(tables=tables))
