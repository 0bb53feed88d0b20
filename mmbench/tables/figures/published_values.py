"""Measured minus published values with their bands, for any table with published values."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.planned import grouped
from mmbench.results.cells import METRIC, Row, rows_of
from mmbench.results.frames import Results
from mmbench.results.published import published_rows
from mmbench.tables.build import laid_out
from mmbench.tables.figures.style import PAGE, colour, data_names, drawing, looks, mark
from mmbench.tables.layouts import find_layout
from mmbench.tables.names import caption_of
from mmbench.tables.text import kernel_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Metric of tables that print error rates in per cent, that is, 100 minus the accuracy.
ERROR_RATE = "error_pct"
#: Label of the axis of differences, by metric.
DIFFERENCES = {
    METRIC: "measured − published accuracy\n(points, > 0: better here)",
    ERROR_RATE: "measured − published error\n(points, > 0: worse here)",
    "errors_count": "measured − published\n(errors, > 0: worse here)",
}


def prints_error_rates(layout: str) -> bool:
    """Return whether the table of a layout and the paper print error rates."""
    paper = find_layout(layout).published
    return bool(paper) and any(row["metric"] == ERROR_RATE for row in published_rows(paper))


def compared(results: Results) -> list[Row]:
    """Return the rows of the frame ``cells`` whose published value is compared."""
    found = results.cells[results.cells.in_band.notna() & results.cells.metric.isin([*DIFFERENCES])]
    return rows_of(found)


def draw(results: Results, output: Path, width: float = PAGE) -> str:
    """Write the figure of an experiment to a file, and return the differences as text.

    The panels are side by side in a figure as wide as a page, and else one below the other.
    Raises UserError if no measured value is compared with a published value.
    """
    results = laid_out(results)
    rows = compared(results)
    if not rows:
        raise UserError(f"{results.name}: no measured value is compared with a published one")
    rates = prints_error_rates(results.layout) and rows[0].metric == METRIC
    sign, metric = (-1, ERROR_RATE) if rates else (1, rows[0].metric)
    several = len({row.dataset for row in rows}) > 1
    panels = grouped((caption_of(results, (row.kernel, row.degree)), row) for row in rows)
    panels = panels if several and len(panels) > 1 else {"": rows}
    names = data_names(dict.fromkeys(row.dataset for row in rows))
    machines = looks(dict.fromkeys(row.machine for row in rows))
    lines, stacked = [], width < PAGE
    most = max(len({_place(row, names, several) for row in own}) for own in panels.values())
    height = 1.2 + most * (0.13 + 0.1 * len(machines))
    shape = (len(panels), 1) if stacked else (1, len(panels))
    with drawing(output, width, height * shape[0]) as canvas:
        grid = canvas.subplots(*shape, squeeze=False).ravel()
        for axes, (title, own) in zip(grid, panels.items(), strict=True):
            places = list(dict.fromkeys(_place(row, names, several) for row in own))
            for k, (machine, look) in enumerate(machines.items()):
                shift = 0.8 * ((k + 0.5) / len(machines) - 0.5)
                mine = [row for row in own if row.machine == machine]
                heights = [places.index(_place(row, names, several)) + shift for row in mine]
                _points(axes, mine, heights, look, results.label(machine), sign)
            axes.axvline(0, color="0.5", lw=0.8, zorder=0)
            axes.set_yticks(range(len(places)), [fill(place, 18) for place in places])
            axes.set_ylim(len(places) - 0.5, -0.5)
            axes.set(xlabel=DIFFERENCES[metric], title=title)
        ncols = min(len(machines), 3 if stacked else 6)
        canvas.legend(*grid[0].get_legend_handles_labels(), loc="outside lower center", ncols=ncols)
    for row in rows:
        gap, where = sign * (row.measured - row.published), _place(row, names, True)
        kernel = kernel_text(row.kernel, row.degree)
        lines.append(f"{where} ({kernel}), {results.label(row.machine)}: {gap:+.2f} {row.mark}")
    return "\n".join(lines)


def _place(row: Row, names: dict[Any, str], several: bool) -> str:
    """Return the name of the data set or, if there is only one data set, of the kernel."""
    return names[row.dataset] if several else kernel_text(row.kernel, row.degree)


def _points(
    axes: Axes, rows: list[Row], heights: list[float], look: int, label: str, sign: int
) -> None:
    """Draw the points of a machine with their bands; points outside the band are hollow."""
    style: dict[str, Any] = {"color": colour(look), "marker": mark(look), "ls": "", "ms": 4.5}
    axes.errorbar([], [], **style, label=label)
    for row, height in zip(rows, heights, strict=True):
        face = colour(look) if row.in_band else "white"
        gap = sign * (row.measured - row.published)
        axes.errorbar([gap], [height], xerr=[row.half_width or 0.0], **style, mfc=face, lw=0.9)
