"""ROC curves of face verification, with one panel per data set and one curve per machine.

At each false positive rate, the true positive rates of the folds are averaged. A label states the
area under the curve with its standard error over folds, and the number of folds if others have
more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.results.frames import Results
from mmbench.tables.figures.style import COLUMN, DASHES, PAGE, colour, data_names, drawing, looks
from mmbench.tables.text import kernel_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: False positive rates at which the ROC curves are evaluated, shape (201,).
GRID = np.linspace(0.0, 1.0, 201)

#: Maximum number of panels in a row of the figure, and height in inches of a line of the legend.
PER_LINE, LINE = 3, 0.16


def draw(results: Results, output: Path) -> str:
    """Write the ROC curves of all data sets with two classes to a file, and return the areas under
    the curves as text.

    Raises UserError if no data set with two classes has results.
    """
    import pandas as pd

    columns = ["dataset", "kernel", "machine", "label", "curve", "area"]
    folds = pd.DataFrame(_folds(results), columns=columns)
    if folds.empty:
        raise UserError(f"{results.name}: no finished record of a data set with two classes")
    panels = folds.groupby(["dataset", "kernel"], sort=False)
    inks = {name: colour(k) for name, k in looks(folds.machine.unique()).items()}
    names = data_names(folds.dataset.unique())
    n_columns, n_rows = min(len(panels), PER_LINE), -(-len(panels) // PER_LINE)
    width = PAGE if len(panels) > 1 else COLUMN
    height, lines = n_rows * (width / n_columns + LINE * (len(inks) + 2.5)), []
    with drawing(output, width, height) as canvas:
        grid = canvas.subplots(n_rows, n_columns, squeeze=False).ravel()
        for axes, ((dataset, kernel), panel) in zip(grid, panels, strict=False):
            axes.set_title(f"{names[dataset]}, {kernel}")
            areas = ", ".join(_draw_curves(axes, panel, inks))
            lines.append(f"{dataset}, area under the ROC curve: {areas}")
        for axes in grid[len(panels) :]:
            axes.axis("off")
    return "\n".join(lines)


def _folds(results: Results) -> Iterator[tuple]:
    """Yield one tuple per fold over which the means are computed: data set, kernel, machine, label
    of the machine, ROC curve, and area under the curve.
    """
    for key in results.by_cell:
        kernel, splits = kernel_text(key.kernel, key.degree), results.counted(key)
        head = key.dataset, kernel, key.machine, results.label(key.machine)
        for split in splits if all(len(s.certificates or ()) == 1 for s in splits) else ():
            arrays = results.arrays(split.record)
            decisions, labels = arrays["decisions"], arrays["y_test"].astype(str)
            positive = labels == str(split.certificates[0]["pair"][1])
            # the record of a classifier from another package has a single pair of classes, even for
            # data sets with more than two classes
            if decisions.shape[1] == 1 and len(np.unique(labels)) == 2 and positive.any():
                curve, area = roc(decisions[:, 0], positive)
                yield (*head, curve, area)


def roc(decisions: NDArray, positive: NDArray) -> tuple[NDArray, float]:
    """Return the ROC curve at the false positive rates in `GRID`, and the area under the curve.

    The boolean array `positive` states which rows are positive. At least one entry of `positive`
    must be true, and at least one must be false. The ROC curve is an array of true positive rates,
    with one entry per entry of `GRID`.

    Examples
    --------
    >>> curve, area = roc(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False]))
    >>> float(curve[0]), float(curve[-1]), area
    (0.5, 1.0, 0.75)
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    false, true, _ = roc_curve(positive, decisions, drop_intermediate=False)
    # If an ROC curve has several true positive rates at one false positive rate, np.interp returns
    # the largest of them.
    return np.interp(GRID, false, true), float(roc_auc_score(positive, decisions))


def _draw_curves(axes: Axes, folds: pd.DataFrame, inks: Mapping[Any, str]) -> list[str]:
    """Draw the mean ROC curve of each machine over the folds, and return the areas under the curves
    as text.
    """
    lines, by_machine = [], folds.groupby("machine", sort=False)
    n_folds = by_machine.size().max()
    for machine, own in by_machine:
        n, k, mean = len(own), list(inks).index(machine), own.area.mean()
        part, name = f", {n} of {n_folds} folds" if n < n_folds else "", own.label.iloc[0]
        label, dashes = f"{name} ({mean:.3f}{part})", DASHES[k % len(DASHES)]
        axes.plot(GRID, np.mean([*own.curve], axis=0), color=inks[machine], ls=dashes, label=label)
        error = f" ± {own.area.std() / np.sqrt(n):.4f}" if n > 1 else ""
        lines.append(f"{name} {mean:.4f}{error}{part}")
    axes.plot([0, 1], [0, 1], color="0.7", lw=0.8, ls=":")
    axes.set(xlim=(0, 1), ylim=(0, 1.01), aspect="equal", anchor="N")
    axes.set(xlabel="false acceptances", ylabel="true acceptances")
    # The legend of an ROC panel is below the axes, since some ROC curves cross the whole panel.
    axes.legend(title="area under the curve", loc="upper left", bbox_to_anchor=(0, -0.22))
    return lines
