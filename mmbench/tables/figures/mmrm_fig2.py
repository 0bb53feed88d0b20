"""Figure 2 of the MMRM paper: test accuracy and margin ratio of each pair of classes.

The margin ratio rho is of the training rows of both classes, the accuracy of their test rows. The
published least-squares line over the 45 pairs of USPS is ``accuracy = 0.20354 rho + 98.182``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.errors import UserError
from mmbench.jobs.planned import Key
from mmbench.results.frames import Results
from mmbench.results.published import published_rows
from mmbench.results.statistics import fit_line, pair_points
from mmbench.tables.figures.style import COLUMN, colour, data_names, drawing

if TYPE_CHECKING:
    import pandas as pd

MACHINE = "mmrm"
PUBLISHED = "mmrm_fig2"
#: Number of labelled pairs of classes. The pairs with the lowest accuracies are labelled.
N_LABELLED = 4

OURS, THEIRS = colour(0), colour(1)


def draw(results: Results, output: Path) -> str:
    """Write the figure of an MMRM record to a file, and return the numbers in the figure as text.

    If the MMRM has results for several data sets or kernels, the record for the paper's data set
    and kernel is drawn. Raises UserError if this record is missing, or if no pair of classes has a
    margin ratio.
    """
    key = _choose_cell(results)
    fits, dataset = results.fits_with_accuracy(results.first(key)), key.dataset
    points = pair_points(fits)
    if points.empty:
        raise UserError(f"{results.name}: no pair of classes has a margin ratio and test rows")
    values = {row["metric"]: row["value"] for row in published_rows(PUBLISHED)}
    published = float(values["regression_slope"]), float(values["regression_intercept"])
    line, n = fit_line(points), int(points.separable.sum())
    ours = "no line: the separable pairs are too few or have one margin ratio"
    with drawing(output, COLUMN, 3.5) as canvas:
        axes = canvas.subplots()
        _scatter(axes, points)
        ends = np.array([points.ratio.min(), points.ratio.max()])
        if line:
            ours, p = equation(line.slope, line.intercept), f"{line.pvalue:.2g}"
            label = f"measured: {ours}\n({n} separable pairs, r = {line.rvalue:.2f}, p = {p})"
            axes.plot(ends, line.slope * ends + line.intercept, color=OURS, label=label)
            ours += f"  (r = {line.rvalue:.3f}, p of the slope = {p}, {n} separable pairs)"
        label = f"published: {equation(*published)}"
        axes.plot(ends, published[0] * ends + published[1], color=THEIRS, ls="--", label=label)
        axes.set_xlabel("margin ratio ρ on the training rows of the pair")
        axes.set_ylabel("accuracy on its test rows (%)")
        axes.set_title(
            f"Margin ratio and accuracy of {len(points)} pairs of {data_names([dataset])[dataset]}"
        )
        # The legend is outside the axes, since each corner of the panel may contain points.
        canvas.legend(loc="outside lower center")
    counts = [f"{len(fits)} pairs of {dataset}"]
    if hollow := len(points) - n:
        counts.append(f"{hollow} with slack, drawn hollow")
    if lost := len(fits) - len(points):
        counts.append(f"{lost} without a finite margin ratio or test rows")
    return f"{', '.join(counts)}\nmeasured:  {ours}\npublished: {equation(*published)}"


def _choose_cell(results: Results) -> Key:
    """Return the cell of the MMRM on the paper's data set with the paper's kernel.

    If the MMRM has a single cell with results, return this cell.
    """
    keys = [key for key in results.by_cell if key.machine == MACHINE and results.first(key)]
    paper = published_rows(PUBLISHED)[0]
    for key in keys:
        if len(keys) == 1 or key[:2] == (paper["dataset"], paper["kernel"]):
            return key
    names = ", ".join(f"{key.dataset} ({key.kernel})" for key in keys)
    raise UserError(f"{results.name}: the figure needs results of exactly one of {names}")


def equation(slope: float, intercept: float) -> str:
    """Return the equation of a least-squares line in the notation of the paper.

    Examples
    --------
    >>> equation(0.20354, 98.182)
    'accuracy = 0.20354 ρ + 98.182'
    """
    return f"accuracy = {slope:.5g} ρ + {intercept:.5g}"


def _scatter(axes: Any, points: pd.DataFrame) -> None:
    """Draw a filled point for each separable pair of classes (without slack), and a hollow point
    for each other pair.

    The points with the lowest accuracies are labelled.
    """
    style = {"s": 12, "lw": 0.8, "edgecolors": OURS, "alpha": 0.75, "zorder": 3}
    kinds = ((True, OURS, "separable pair"), (False, "none", "pair with slack"))
    for separable, face, label in kinds:
        own = points[points.separable == separable]
        if len(own):
            axes.scatter(own.ratio, own.accuracy, facecolors=face, label=label, **style)
    for p in points.sort_values("accuracy", kind="stable")[:N_LABELLED].itertuples():
        axes.annotate(p.pair, (p.ratio, p.accuracy), (4, -3), textcoords="offset points")
