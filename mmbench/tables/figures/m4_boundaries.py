"""Figures 5 and 6 of the M4 paper: two-dimensional toy sets, and boundaries of machines.

A panel shows the first draw on which most machines have results. Machines are trained again with
the recorded parameters, and compared with the record by their decision values on the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.jobs.planned import grouped
from mmbench.jobs.record import Record
from mmbench.results.frames import Results
from mmbench.tables.figures.style import DASHES, PAGE, colour, drawing, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mmbench.jobs.prepare import Prepared

#: For each class: name, colour, marker of training points, and marker of test points.
POINTS = (("X", colour(5), "o", "x"), ("Y", colour(4), "s", "+"))
#: Number of grid points per axis at which decision functions are evaluated.
RESOLUTION = 300
#: Relative tolerance for the difference between a new decision value and the decision value in the
#: record. Records store decision values in single precision.
TOLERANCE = 1e-3

Decision = Callable[[NDArray], NDArray]


def draw(results: Results, output: Path, panels: Mapping[str, str]) -> str:
    """Write the figure to a file, and return the accuracies of each machine on the toy sets as
    text.

    `panels` maps the name of each toy set to the title of its panel. Raises UserError if a toy set
    has no finished record of the M4, or if new and recorded decision values differ.
    """
    from mmbench.jobs.prepare import prepare

    draws = {name: _first_draw(results, name) for name in panels}
    lines, label = [], results.plan.label
    with drawing(output, PAGE, 3.9) as canvas:
        grid = canvas.subplots(1, len(draws))
        for axes, (name, records) in zip(grid, draws.items(), strict=True):
            job = next(iter(records.values())).job
            data = prepare(job, Path("datasets"), None)  # toy sets are generated without files
            inks, own = looks([*records]), records.items()
            fits = [(colour(inks[m]), label(m), _decision(results, r, data)) for m, r in own]
            axes.set_title(panels[name])
            _panel(axes, name, data, fits)
            texts = (f"{label(m)} {r.metrics['accuracy_pct']:.1f} %" for m, r in own)
            lines.append(f"{panels[name]}: draw {job.split.repeat + 1}, {', '.join(texts)}")
        canvas.legend(
            *canvas.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4
        )
    return "\n".join(lines)


def _first_draw(results: Results, name: str) -> dict[str, Record]:
    """Return the records of one draw of a toy set: the draw on which the most machines have
    results.
    """
    found = (r for r in results.records.values() if r.done and r.job.kernel == "linear")
    order = {machine: k for k, machine in enumerate(results.configured)}
    records = sorted(found, key=lambda record: order[record.job.column])
    draws = grouped((r.job.split.repeat, r) for r in records if r.job.dataset.name == name)
    with_m4 = [own for _, own in sorted(draws.items()) if "m4" in {r.job.machine for r in own}]
    if not with_m4:
        raise UserError(f"{results.name}: no finished record of m4 on {name}")
    return {record.job.column: record for record in max(with_m4, key=len)}


def _decision(results: Results, record: Record, data: Prepared) -> Decision:
    """Train the machine of a record again and return its decision function."""
    from mmbench.jobs.train import trained_again

    machine = trained_again(record, data)
    stored = results.arrays(record.key)["decisions"][:, 0]
    again = machine.pairwise_decision_function(data.X_test)[:, 0]
    if not np.allclose(again, stored, rtol=TOLERANCE, atol=TOLERANCE * np.abs(stored).max()):
        label = f"{results.name}, {record.job.column}"
        problem = "the decision values differ from those in the record"
        raise UserError(f"{label}: {problem}; run the experiment again with a new --results DIR")
    return lambda points: machine.pairwise_decision_function(points)[:, 0]


def _panel(
    axes: Axes, name: str, data: Prepared, decisions: Sequence[tuple[str, str, Decision]]
) -> None:
    """Draw the training and test points of a toy set, and the decision boundaries of the machines.

    `decisions` contains the colour, the label and the decision function of each machine.
    """
    from mmbench.datasets.generators import bayes

    for value, (label, own, hollow, small) in zip(np.unique(data.y_train), POINTS, strict=True):
        test, train = data.X_test[data.y_test == value], data.X_train[data.y_train == value]
        style: dict[str, Any] = {"s": 8, "alpha": 0.45, "lw": 0.6, "label": f"{label}, test"}
        axes.scatter(test[:, 0], test[:, 1], marker=small, c=own, **style)
        style = {"s": 14, "lw": 0.8, "zorder": 3, "label": f"{label}, training", "edgecolors": own}
        axes.scatter(train[:, 0], train[:, 1], marker=hollow, facecolors="none", **style)
    both = np.vstack([data.X_train, data.X_test])
    margin = 0.04 * np.ptp(both, axis=0)
    (left, low), (right, high) = both.min(axis=0) - margin, both.max(axis=0) + margin
    across, up = np.linspace(left, right, RESOLUTION), np.linspace(low, high, RESOLUTION)
    grid = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    drawn = [*decisions, ("black", "Bayes classifier", lambda points: bayes(name, points))]
    for (ink, label, decide), dashes in zip(drawn, cycle(DASHES), strict=False):
        values = decide(grid).reshape(RESOLUTION, RESOLUTION)
        axes.contour(across, up, values, [0.0], colors=ink, linestyles=[dashes], linewidths=1.4)
        axes.plot([], [], color=ink, ls=dashes, lw=1.4, label=label)
    axes.set(aspect="equal", xlim=(left, right), ylim=(low, high))
    axes.set(xlabel="feature 1", ylabel="feature 2")
