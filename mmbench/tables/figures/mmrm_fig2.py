"""Figure 2 of the MMRM paper: margin ratio of each pair of classes against its test accuracy.

The margin ratio rho is that of the pair's training rows; the accuracy is that of the pair's own
machine on the test rows of its two classes. The paper draws the least-squares line through the 45
pairs of USPS and prints ``accuracy = 0.20354 rho + 98.182``; here that line stands beside ours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.tables.figures.style import COLUMN, colour, drawing
from mmbench.tables.published import published_rows
from mmbench.tables.records import Cell, Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MACHINE = "mmrm"
EXPERIMENTS = ("mmrm_fig2", "usps_rbf")
PUBLISHED = "mmrm_fig2"
#: Pairs whose classes are written at their point: those with the lowest accuracies.
N_LABELLED = 4
#: The paper speaks of rho for separable pairs; from this many on a line is drawn.
MIN_POINTS = 3

OURS, THEIRS = colour(0), colour(1)


@dataclass(frozen=True)
class PairResult:
    """One pair of classes: margin ratio on its training rows, accuracy (%) on its test rows."""

    pair: str
    ratio: float
    accuracy: float
    separable: bool


@dataclass(frozen=True)
class Regression:
    """A least-squares line, and how far it is to be trusted."""

    slope: float
    intercept: float
    r: float
    p: float
    n: int


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure of an experiment's MMRM record and return its numbers in words.

    Raises UserError if no pair has a margin ratio, or several data sets or kernels have records and
    none is the paper's.
    """
    cell = _choose_cell(experiment)
    record = min(cell.done, key=lambda record: record.at)
    points = pair_points(record.per_pair, experiment.store.arrays(record.key))
    if not points:
        raise UserError(f"{experiment.name}: no pair of classes has a margin ratio and test rows")
    line = fit_line([point for point in points if point.separable])
    _plot(points, line, cell.key.dataset, output)
    return _describe(points, len(record.per_pair), line, cell.key.dataset)


def _choose_cell(experiment: Experiment) -> Cell:
    """Return the cell to draw: that of the paper's data set and kernel, or the only one."""
    candidates = [cell for cell in experiment.cells if cell.key.machine == MACHINE and cell.done]
    paper = published_rows(PUBLISHED)[0]
    for cell in candidates:
        if len(candidates) == 1 or cell.key[:2] == (paper["dataset"], paper["kernel"]):
            return cell
    names = ", ".join(f"{cell.key.dataset} ({cell.key.kernel})" for cell in candidates)
    raise UserError(f"{experiment.name}: the figure can be drawn of {names}; run one of them alone")


def pair_points(
    per_pair: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray]
) -> list[PairResult]:
    """Return one point a pair of classes that has a margin ratio and test rows.

    `per_pair` are the certificates of an MMRM's record, `arrays` hold its ``decisions`` of shape
    (n_test, n_pairs) and ``y_test``. Column k belongs to ``per_pair[k]``; positive values speak for
    its second class.
    """
    truth = arrays["y_test"].astype(str)
    points = []
    for fit, decisions in zip(per_pair, arrays["decisions"].T, strict=True):
        negative, positive = map(str, fit["pair"])
        rows = (truth == negative) | (truth == positive)
        ratio = fit["extra"].get("margin_ratio")
        if ratio is None or not rows.any():
            continue
        right = (decisions[rows] >= 0) == (truth[rows] == positive)
        separable = bool(fit["extra"].get("separable", True))
        points.append(
            PairResult(f"{negative}/{positive}", ratio, 100 * float(right.mean()), separable)
        )
    return points


def fit_line(points: list[PairResult]) -> Regression | None:
    """Return the least-squares line ``accuracy = slope * ratio + intercept``, if points allow."""
    from scipy.stats import linregress

    ratios = np.array([point.ratio for point in points])
    if len(points) < MIN_POINTS or np.ptp(ratios) == 0:
        return None
    fit = linregress(ratios, [point.accuracy for point in points])
    return Regression(fit.slope, fit.intercept, fit.rvalue, fit.pvalue, len(points))


def published_line() -> tuple[float, float]:
    """Return slope and intercept that the paper prints."""
    values = {row["metric"]: row["value"] for row in published_rows(PUBLISHED)}
    return float(values["regression_slope"]), float(values["regression_intercept"])


def equation(slope: float, intercept: float) -> str:
    """Return a line in the paper's words.

    Examples
    --------
    >>> equation(0.20354, 98.182)
    'accuracy = 0.20354 ρ + 98.182'
    """
    return f"accuracy = {slope:.5g} ρ + {intercept:.5g}"


def _plot(points: list[PairResult], line: Regression | None, dataset: str, output: Path) -> None:
    with drawing(output, COLUMN, 3.5) as canvas:
        axes = canvas.subplots()
        _scatter(axes, points)
        ends = np.array([min(p.ratio for p in points), max(p.ratio for p in points)])
        if line:
            trust = f"{line.n} separable pairs, r = {line.r:.2f}, p = {line.p:.2g}"
            label = f"measured: {equation(line.slope, line.intercept)}\n({trust})"
            axes.plot(ends, line.slope * ends + line.intercept, color=OURS, label=label)
        slope, intercept = published_line()
        label = f"published: {equation(slope, intercept)}"
        axes.plot(ends, slope * ends + intercept, color=THEIRS, ls="--", label=label)
        axes.set_xlabel("margin ratio ρ on the training rows of the pair")
        axes.set_ylabel("accuracy on its test rows (%)")
        axes.set_title(f"Margin ratio and accuracy of {len(points)} pairs of {dataset}")
        # Points may lie anywhere, so no corner of the axes is safe for the legend.
        canvas.legend(loc="outside lower center")


def _scatter(axes: Axes, points: list[PairResult]) -> None:
    """Draw the pairs: filled where separable, hollow where not, the lowest ones named."""
    for separable, face, label in (
        (True, OURS, "separable pair"),
        (False, "none", "pair with slack"),
    ):
        chosen = [point for point in points if point.separable == separable]
        if chosen:
            axes.scatter(
                [point.ratio for point in chosen],
                [point.accuracy for point in chosen],
                s=12,
                lw=0.8,
                facecolors=face,
                edgecolors=OURS,
                alpha=0.75,
                label=label,
                zorder=3,
            )
    for point in sorted(points, key=lambda point: point.accuracy)[:N_LABELLED]:
        axes.annotate(
            point.pair,
            (point.ratio, point.accuracy),
            textcoords="offset points",
            xytext=(4, -3),
        )


def _describe(points: list[PairResult], n_pairs: int, line: Regression | None, dataset: str) -> str:
    hollow = sum(not point.separable for point in points)
    counts = [f"{n_pairs} pairs of {dataset}"]
    if hollow:
        counts.append(f"{hollow} with slack, drawn hollow")
    if n_pairs > len(points):
        counts.append(f"{n_pairs - len(points)} without a finite margin ratio or test rows")
    ours = "no line: the separable pairs are too few or have one margin ratio"
    if line:
        trust = f"r = {line.r:.3f}, p of the slope = {line.p:.2g}, {line.n} separable pairs"
        ours = f"{equation(line.slope, line.intercept)}  ({trust})"
    lines = [", ".join(counts), f"measured:  {ours}", f"published: {equation(*published_line())}"]
    return "\n".join(lines)
