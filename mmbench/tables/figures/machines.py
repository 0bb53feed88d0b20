"""Figures that compare machines: accuracies on splits, mean ranks, and CPU times."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mmbench.errors import UserError, converted
from mmbench.results.cells import ACCURACY
from mmbench.results.frames import KernelKey, Results
from mmbench.results.pairwise import dataset_gaps, ranks_of
from mmbench.results.statistics import LEVEL, Ranks
from mmbench.tables.blocks import total_with_search
from mmbench.tables.build import laid_out
from mmbench.tables.figures.style import PAGE, colour, data_names, draw_panels, name_lines
from mmbench.tables.layouts.comparison import ROPE_PCT
from mmbench.tables.names import caption_of

#: Number of letters in a line of the axis labels of a figure narrower than a page.
NARROW_LABEL = 17
#: Characters per line of a title, or of the label of an only panel, in a narrow figure.
NARROW_TITLE = 32


def draw_accuracies(results: Results, output: Path) -> str:
    """Write a figure of the accuracies on all splits to a file, and return the mean accuracies as
    text.

    The figure has one panel per data set, kernel and training size. Raises UserError if no machine
    has a result.
    """
    # only the accuracy is computed, since other metrics could take more time than the drawing
    results = laid_out(results, "machines", [ACCURACY] if results.has_records else ())
    found, names = {}, data_names(results.datasets)
    for place in results.places:
        # Machines are drawn from bottom to top. Therefore, the order is reversed, so that machines
        # with equal means appear in the order of the table from top to bottom.
        keys = [place._replace(machine=machine) for machine in reversed(results.columns)]
        values = [(results.label(key.machine), [*results.by_split(key).values()]) for key in keys]
        if own := sorted((pair for pair in values if pair[1]), key=lambda pair: fmean(pair[1])):
            kernel = caption_of(results, (place.kernel, place.degree), place.size)
            found[f"{names[place.dataset]} ({kernel})"] = own
    if not found:
        raise UserError(f"{results.name}: no records or splits.csv.gz with results of machines")

    def panel(axes: Any, title: str, values: list[tuple[str, list[float]]]) -> str:
        for k, (_, splits) in enumerate(values):
            axes.plot(splits, [k] * len(splits), "o", ms=4, mew=0, color=colour(0), alpha=0.4)
            axes.plot([fmean(splits)], [k], "|", ms=13, mew=2, color=colour(1))
        name_lines(axes, [label for label, _ in values])
        axes.set_title(title)
        if title == list(found)[-1]:
            axes.set_xlabel("accuracy on each test part (%), and mean")
        means = (f"{label} {fmean(splits):.1f}" for label, splits in reversed(values))
        return f"{title}: {', '.join(means)}"

    return draw_panels(output, found, panel, line=0.27, frame=0.9)


def draw_ranks(results: Results, output: Path, width: float = PAGE) -> str:
    """Write a diagram of mean ranks to a file, and return the numbers in the diagram as text.

    In a diagram narrower than a page, the title and the label of the axis have several lines.

    A vertical bar connects machines whose mean ranks do not differ significantly by Nemenyi's test
    at the level 0.05. Raises UserError if too few machines or data sets have results.
    """
    results = laid_out(results)
    with converted(results.name, ValueError):
        found = {
            caption_of(results, kernel): ranks_of(results, kernel) for kernel in results.kernels
        }

    def panel(axes: Any, kernel: str, ranks: Ranks) -> str:
        order, cd = list(ranks.means), f"critical difference {ranks.critical_difference:.2f}"
        values, labels = [ranks.means[m] for m in order], [results.label(m) for m in order]
        label = "mean rank (1 is best); a bar connects machines without a significant difference"
        title = f"{kernel}: mean ranks over {ranks.n} data sets, {cd}"
        narrow = width < PAGE
        axes.set_title(fill(title, NARROW_TITLE) if narrow else title, loc="left")
        axes.set_xlabel(fill(label, NARROW_TITLE) if narrow else label)
        # Horizontal distance between the bars that connect machines.
        step = (0.1 if narrow else 0.05) * (values[-1] - values[0] or 1.0)
        name_lines(axes, labels, downwards=True)
        axes.hlines(range(len(order)), values[0] - step, values, color="0.8", lw=0.8)
        axes.plot(values, range(len(order)), "o", color=colour(0))
        for k, value in enumerate(values):
            axes.text(value + step / 3, k, f"{value:.2f}", va="center")
        for k, group in enumerate(ranks.cliques(), 2):
            ends = [order.index(group[0]) - 0.3, order.index(group[-1]) + 0.3]
            axes.plot([values[-1] + k * step] * 2, ends, color="black", lw=3, solid_capstyle="butt")
        means = ", ".join(f"{x} {mean:.2f}" for x, mean in zip(labels, values, strict=True))
        groups = (", ".join(map(results.label, group)) for group in ranks.cliques())
        test = f"chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}"
        return "\n".join([
            f"{kernel}. Friedman over {ranks.n} data sets: {test}",
            f"Nemenyi: {cd} at {LEVEL:g}",
            f"Mean ranks: {means}",
            *(f"Not significantly different: {group}" for group in groups),
        ])  # fmt: skip

    frame = 0.75 if width >= PAGE else 1.1
    return draw_panels(output, found, panel, line=0.19, frame=frame, width=width)


def draw_times(results: Results, output: Path, width: float = PAGE) -> str:
    """Write a figure of accuracies and CPU times to a file, and return the numbers in the figure as
    text.

    In a figure narrower than a page, the labels of the axes have several lines.

    The first machine of the experiment is compared with every other machine. The machines are
    sorted by CPU time, with the fastest machine on top. The left panel shows the difference in
    accuracy, averaged over data sets. For the CPU time relative to the first machine, the right
    panel shows the three quartiles over data sets.

    A CPU time is the sum of the times of selection, training and test. If a machine uses parameters
    that were selected for another machine, its CPU time includes this selection. Raises UserError
    if no other machine has results on at least two data sets in common with the first machine.
    """
    results = laid_out(results)
    points = {caption_of(results, kernel): _points(results, kernel) for kernel in results.kernels}
    found = {kernel: rows for kernel, rows in points.items() if len(rows)}
    first = results.label(results.columns[0]) if results.columns else "the first machine"
    if not found:
        raise UserError(f"{results.name}: no machine but {first} has results on two data sets")

    def lines(label: str) -> str:
        return label if width >= PAGE else fill(label, NARROW_LABEL)

    def panel(axes: Any, kernel: str, points: pd.DataFrame) -> str:
        from matplotlib.ticker import LogLocator, NullFormatter

        gains, times = axes
        name_lines(gains, list(points.machine), downwards=True)
        gains.axvspan(-ROPE_PCT, ROPE_PCT, color="0.93", lw=0)
        gains.axvline(0.0, color="0.5", lw=0.8)
        gains.errorbar(points.gain, range(len(points)), xerr=points.error, fmt="o", color=colour(0))
        data = f"mean over {points.n.max()} data sets ± 2 s.e."
        gains.set_xlabel(lines(f"accuracy (%) minus {first}: {data}"))
        gains.set_title(kernel, loc="left")
        name_lines(times, [""] * len(points), downwards=True)
        times.hlines(range(len(points)), points.low, points.high, color=colour(1), lw=1.2)
        times.plot(points.time, range(len(points)), "s", color=colour(1))
        times.axvline(1.0, color="0.5", lw=0.8)
        times.set_xscale("log")
        times.xaxis.set_major_locator(LogLocator(subs=(1, 3)))
        times.xaxis.set_major_formatter("{x:g}")
        times.xaxis.set_minor_formatter(NullFormatter())
        parts = "selection (also if reused), training, test"
        times.set_xlabel(lines(f"CPU time relative to {first}:\n{parts}"))
        texts = (
            f"{p.machine} {p.gain:+.2f} ± {p.error:.2f} in {p.time:.2g} times the time"
            for p in list[Any](points.itertuples())
        )
        return f"{kernel}, against {first}: {', '.join(texts)}"

    frame, ratios = (0.75, (3, 2)) if width >= PAGE else (1.05, (1, 1))
    return draw_panels(output, found, panel, line=0.2, frame=frame, ratios=ratios, width=width)


def _points(results: Results, kernel: KernelKey) -> pd.DataFrame:
    """Return a data frame that compares each machine with the first machine in accuracy and CPU
    time, sorted by CPU time.

    Machines with unknown CPU times, or with accuracies on fewer than two data sets, are left out.
    """
    rows = []
    for machine in results.columns[1:]:
        gaps = np.array(dataset_gaps(results, kernel, machine, results.columns[0]))
        ratios = time_ratios(results, kernel, machine, results.columns[0])
        if len(gaps) > 1 and len(ratios):
            error = 2 * gaps.std(ddof=1) / np.sqrt(len(gaps))
            quartiles = np.quantile(ratios, [0.25, 0.5, 0.75])
            rows.append((results.label(machine), gaps.mean(), error, *quartiles, len(gaps)))
    # gain: mean difference in accuracy (%); error: twice its standard error; low, time and high:
    # quartiles of the CPU time ratios; n: number of data sets
    columns = ["machine", "gain", "error", "low", "time", "high", "n"]
    return pd.DataFrame(rows, columns=columns).sort_values("time", kind="stable")


def time_ratios(results: Results, kernel: KernelKey, machine: str, reference: str) -> NDArray:
    """Return the ratio of two machines' CPU times on each data set: `machine` / `reference`.

    Only data sets on which both CPU times are known are used.
    """
    times = [
        [total_with_search(results, key._replace(machine=name)) for name in (machine, reference)]
        for key in results.places_of(kernel)
    ]
    return np.array([ours / theirs for ours, theirs in times if ours and theirs])
