"""Records to tables and figures, each measured value beside the published one."""

from mmbench.tables.build import check_names, draw_tables
from mmbench.tables.figures import check_figure, draw_figure, list_figures
from mmbench.tables.layouts import check_any_metric, check_sized, layout_names, list_layouts
from mmbench.tables.published import load_published, published_machines, published_tables
from mmbench.tables.report import write_report
from mmbench.tables.results import read_results

__all__ = [
    "check_any_metric",
    "check_figure",
    "check_names",
    "check_sized",
    "draw_figure",
    "draw_tables",
    "layout_names",
    "list_figures",
    "list_layouts",
    "load_published",
    "published_machines",
    "published_tables",
    "read_results",
    "write_report",
]
