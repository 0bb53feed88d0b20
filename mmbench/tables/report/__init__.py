"""A static site of results: an overview, a page an experiment, a page a cell.

It opens from a file, without a network and without a build step: pages of `templates`, one style
sheet and one script of `assets`, and beside them the script that draws the pictures.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from mmbench.tables.records import Experiment
from mmbench.tables.report.cell import write_cells
from mmbench.tables.report.comparison import runs_to_compare, write_comparison
from mmbench.tables.report.experiment import write_experiment, write_overview
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import Names, View
from mmbench.tables.results import Reference, each


def write_report(
    experiments: Sequence[Experiment | Reference],
    folder: Path,
    say: Callable[[str], object] = lambda line: None,
) -> Path:
    """Write the site of some experiments and return its first page; two runs of one are compared.

    `folder` is new, empty, or the folder of an earlier report, whose pages are replaced. `say` gets
    a line per experiment that cannot be shown. Raises UserError if the folder holds something else
    or cannot be written to, or no experiment can be shown.
    """
    site = Site.create(folder)
    names = Names()
    views = each(lambda one: View(one, names.free(one.name)), experiments, say)
    for view in views:
        write_experiment(site, view)
        write_cells(site, view)
    comparisons = [write_comparison(site, *runs) for runs in runs_to_compare(views)]
    return write_overview(site, views, comparisons)
