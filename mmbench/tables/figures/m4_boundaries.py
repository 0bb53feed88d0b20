"""Figures 5 and 6 of the M4 paper: toy sets in the plane, and where each machine divides them.

Shown is one draw of each set, the first that every machine of the experiment has finished. Records
hold no boundaries: a machine is trained again with the parameters that its record names, and must
decide on the test rows as the record says. The best classifier of the distributions, Bayes', stands
beside the machines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError
from mmbench.jobs.record import Record
from mmbench.jobs.store import Plan
from mmbench.tables.figures.style import PAGE, colour, drawing
from mmbench.tables.records import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from mmbench.jobs.data import Prepared

#: Colour, dashes and width of a boundary.
STYLES: dict[str, tuple[str, Any, float]] = {
    "m4": (colour(0), "-", 1.8),
    "svm": (colour(1), "--", 1.4),
    "mpm": (colour(2), "-.", 1.4),
    "bayes": ("black", ":", 1.4),
}
#: Colours of the points of X and Y.
POINTS = (colour(5), colour(4))
#: Points a side of the grid on which decisions are evaluated.
RESOLUTION = 300
#: How far decisions may be from those of the record: they are stored in single precision.
TOLERANCE = 1e-3

Decision = Callable[[NDArray], NDArray]


def draw_sets(experiment: Experiment, output: Path, sets: Mapping[str, str]) -> str:
    """Write a figure with a panel a set and return the accuracies in words.

    `sets` maps the name of a set to the title of its panel. Raises UserError if a set has no record
    of the M4, or a machine no longer decides as its record says.
    """
    panels = {name: _first_split(experiment, name) for name in sets}
    lines = []
    with drawing(output, PAGE, 3.9) as canvas:
        for axes, (name, records) in zip(
            canvas.subplots(1, len(sets)), panels.items(), strict=True
        ):
            data = _data(next(iter(records.values())))
            decisions = {m: _decision(experiment, record, data) for m, record in records.items()}
            _panel(axes, name, sets[name], data, decisions, experiment.plan)
            lines.append(f"{sets[name]}: {_accuracies(records, experiment.plan)}")
        handles, labels = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=4)
    return "\n".join(lines)


def _first_split(experiment: Experiment, name: str) -> dict[str, Record]:
    """Return the records of the machines on the first draw of a set that all of them have."""
    found: dict[int, dict[str, Record]] = {}
    for record in experiment.records:
        job = record.job
        if record.done and job.dataset.name == name and job.kernel == "linear":
            found.setdefault(job.split.repeat, {})[job.machine] = record
    whole = [draw for draw in found if "m4" in found[draw]]
    if not whole:
        raise UserError(f"{experiment.name}: no finished record of m4 on {name}")
    most = max(len(found[draw]) for draw in whole)
    draw = min(draw for draw in whole if len(found[draw]) == most)
    order = [*STYLES, *found[draw]]
    return dict(sorted(found[draw].items(), key=lambda item: order.index(item[0])))


def _data(record: Record) -> Prepared:
    """Return the training and test rows of a record; the sets are drawn, so no store is needed."""
    from mmbench.jobs.data import prepare

    return prepare(record.job, Path("datasets"), None)


def _decision(experiment: Experiment, record: Record, data: Prepared) -> Decision:
    """Return the decision function of a record's machine, trained again."""
    from mmbench.jobs.record import Clock
    from mmbench.jobs.train import train

    chosen, clock = record.selection["params"], Clock("warm_up", "training")
    machine, _ = train(replace(record.job, grid=()), data, chosen, 1, record.seeds, clock)
    stored = experiment.store.arrays(record.key)["decisions"][:, 0]
    again = machine.pairwise_decision_function(data.X_test)[:, 0]
    if not np.allclose(again, stored, rtol=TOLERANCE, atol=TOLERANCE * np.abs(stored).max()):
        name = record.job.machine
        raise UserError(f"{experiment.name}: {name} no longer decides as its record; run it again")
    return lambda points: machine.pairwise_decision_function(points)[:, 0]


def _panel(
    axes: Axes,
    name: str,
    title: str,
    data: Prepared,
    decisions: Mapping[str, Decision],
    plan: Plan,
) -> None:
    from mmbench.datasets.generators import bayes

    _points(axes, data)
    both = np.vstack([data.X_train, data.X_test])
    margin = 0.04 * np.ptp(both, axis=0)
    (left, low), (right, high) = both.min(axis=0) - margin, both.max(axis=0) + margin
    across, up = np.linspace(left, right, RESOLUTION), np.linspace(low, high, RESOLUTION)
    grid = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    for machine, decide in {**decisions, "bayes": lambda points: bayes(name, points)}.items():
        ink, dashes, width = STYLES.get(machine, ("grey", "-", 1.2))
        values = decide(grid).reshape(RESOLUTION, RESOLUTION)
        axes.contour(across, up, values, [0.0], colors=ink, linestyles=[dashes], linewidths=width)
        label = "Bayes" if machine == "bayes" else plan.label(machine)
        axes.plot([], [], color=ink, ls=dashes, lw=width, label=label)
    axes.set(title=title, aspect="equal", xlim=(left, right), ylim=(low, high))


def _points(axes: Axes, data: Prepared) -> None:
    """Draw training points large and hollow, test points small, X and Y in their colours."""
    names = ("X", "Y")
    for label, own, marks, name in zip(
        np.unique(data.y_train), POINTS, (("o", "x"), ("s", "+")), names, strict=True
    ):
        test, train = data.X_test[data.y_test == label], data.X_train[data.y_train == label]
        axes.scatter(
            test[:, 0],
            test[:, 1],
            s=8,
            marker=marks[1],
            c=own,
            alpha=0.45,
            lw=0.6,
            label=f"{name}, test",
        )
        axes.scatter(
            train[:, 0],
            train[:, 1],
            s=14,
            marker=marks[0],
            facecolors="none",
            edgecolors=own,
            lw=0.8,
            label=f"{name}, training",
            zorder=3,
        )


def _accuracies(records: Mapping[str, Record], plan: Plan) -> str:
    first = next(iter(records.values())).job.split.repeat
    parts = [f"{plan.label(m)} {r.metrics['accuracy_pct']:.1f} %" for m, r in records.items()]
    return f"draw {first + 1}, {', '.join(parts)}"
