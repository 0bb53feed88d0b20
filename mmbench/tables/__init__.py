"""Records to tables and figures, each measured value beside the published one."""

from mmbench.tables.build import table
from mmbench.tables.figures import figure, list_figures
from mmbench.tables.layouts import check_sized, layout_names, list_layouts
from mmbench.tables.published import load_published, published_machines, published_tables

__all__ = [
    "check_sized",
    "figure",
    "layout_names",
    "list_figures",
    "list_layouts",
    "load_published",
    "published_machines",
    "published_tables",
    "table",
]
