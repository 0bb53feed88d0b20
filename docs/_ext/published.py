"""Pictures and tables that compare measured with published values, on the pages of the papers.

All numbers are read from ``results/reference/*/table.csv`` when the pages are built.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from textwrap import fill

import pandas as pd
from docutils import nodes
from docutils.statemachine import StringList
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from measured import ERROR_RATE, REFERENCE, TABLE, UNITS, fold, prints_error_rates
from pictures import NARROW, STYLE, WIDTH
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.machines import alias_of
from mmbench.tables.figures.style import colour, data_names, looks, mark

#: Label of the axis of differences, by metric.
DIFFERENCES = {
    "accuracy_pct": "measured − published accuracy (points)\n> 0: better here",
    ERROR_RATE: "measured − published error (points)\n> 0: worse here",
    "errors_count": "measured − published (errors)\n> 0: worse here",
}
KERNELS = {"linear": "linear", "rbf": "RBF", "poly": "polynomial"}


def compared(name: str) -> pd.DataFrame:
    """Return the rows of a reference table that have a band around a published value.

    If the table prints error rates, the columns `measured` and `published` contain error rates too.
    The column `place` contains the data set or, if there is only one data set, the kernel. If data
    sets and kernels both vary, the column `panel` contains the kernel.
    """
    table = pd.read_csv(REFERENCE / name / "table.csv")
    rows = table[table["metric"].isin(UNITS) & table["in_band"].notna()].copy()
    if rows.empty:
        return rows
    if prints_error_rates(name):
        accuracies = rows["metric"] == "accuracy_pct"
        values = ["measured", "published"]
        rows.loc[accuracies, values] = 100 - rows.loc[accuracies, values]
        rows.loc[accuracies, "metric"] = ERROR_RATE
    names = data_names(rows["dataset"].unique())
    wrapped = {name: fill(title, 18) for name, title in names.items()}
    kernels = rows["kernel"].map(KERNELS)
    degrees = rows["degree"].map(lambda d: "" if pd.isna(d) else f", degree {d:g}")
    several = rows["dataset"].nunique() > 1
    rows["place"] = rows["dataset"].map(wrapped) if several else kernels + degrees
    rows["panel"] = kernels + " kernel" if several and kernels.nunique() > 1 else ""
    return rows


def draw(canvas: Figure, rows: pd.DataFrame) -> None:
    """Draw the differences between measured and published values, with the bands."""
    places, machines = list(dict.fromkeys(rows["place"])), list(dict.fromkeys(rows["machine"]))
    panels = list(rows.groupby("panel", sort=False))
    wide = canvas.get_figwidth() >= WIDTH
    columns = len(panels) if wide else 1
    height = 1.05 + len(places) * (0.13 + 0.1 * max(len(machines), 2))
    canvas.set_figheight(height * (len(panels) // columns) + 0.3)
    grid = canvas.subplots(len(panels) // columns, columns, squeeze=False, sharey=True)
    for axes, (title, panel) in zip(grid.ravel(), panels, strict=True):
        for k, (machine, look) in enumerate(looks(machines).items()):
            own = panel[panel["machine"] == machine]
            heights = own["place"].map(places.index) + 0.8 * ((k + 0.5) / len(machines) - 0.5)
            _points(axes, own, heights, look)
        axes.axvline(0, color="#777777", lw=0.8, zorder=0)
        axes.set_yticks(range(len(places)), places)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
        for edge in range(1, len(places)):
            axes.axhline(edge - 0.5, color="#cccccc", lw=0.5, zorder=0)
        axes.set_xlabel(DIFFERENCES[panel["metric"].iloc[0]])
        axes.set_title(title)
    handles, labels = grid.ravel()[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=len(labels) if wide else 3)


def _points(axes: Axes, rows: pd.DataFrame, heights: pd.Series, look: int) -> None:
    """Draw the points of a machine; points outside the band are hollow."""
    difference = rows["measured"] - rows["published"]
    label = alias_of(rows["machine"].iloc[0]).label if len(rows) else None
    style = {"color": colour(look), "marker": mark(look), "ls": "", "ms": 4.5, "elinewidth": 0.9}
    inside = rows["in_band"].astype(str) == "True"
    bars = rows["half_width"].fillna(0.0)
    axes.errorbar([], [], **style, label=label or rows["machine"].iloc[0])
    for part, face in ((inside, colour(look)), (~inside, "white")):
        axes.errorbar(difference[part], heights[part], xerr=bars[part], **style, mfc=face)


class Published(SphinxDirective):
    """``{published} NAME ...``: a picture and a folded table per experiment."""

    required_arguments = 1
    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        """Return the pictures with their captions, and the tables."""
        node = nodes.container()
        for name in self.arguments:
            rows = compared(name)
            if rows.empty:
                raise self.error(f"{name}: no cell is compared with a published one")
            near = int((rows["in_band"].astype(str) == "True").sum())
            text = (REFERENCE / name / "table.md").read_text(encoding="utf-8")
            title, _, body = text.partition("\n")
            title = title.partition(": ")[2]
            table = TABLE.search(body)
            picture = f"![Measured minus published values, {name}](/pictures/published_{name}.svg)"
            count = f"{near} of {len(rows)} measured values are near the published ones"
            caption = f"*[{name}](/tables/{name}.md): {title}. {count}.*"
            folded = fold("The table", table[0] if table else "")
            lines = [picture, "", caption, "", *folded.splitlines(), ""]
            self.state.nested_parse(StringList(lines, source=name), self.content_offset, node)
        return node.children


def draw_all(app: Sphinx) -> None:
    """Write a picture of each reference table with published values into ``docs/pictures``."""
    folder = Path(app.srcdir) / "pictures"
    folder.mkdir(exist_ok=True)
    names = sorted(path.parent.name for path in REFERENCE.glob("*/table.csv"))
    with rc_context(STYLE):
        for name, width in itertools.product(names, (WIDTH, NARROW)):
            if not (rows := compared(name)).empty:
                canvas = Figure(figsize=(width, 3), layout="constrained")
                draw(canvas, rows)
                suffix = ".svg" if width == WIDTH else "_narrow.svg"
                file = folder / f"published_{name}{suffix}"
                canvas.savefig(file, bbox_inches="tight", metadata={"Date": None, "Title": name})


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the pictures."""
    app.add_directive("published", Published)
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
