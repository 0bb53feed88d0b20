"""Figure 7 of the M4 paper: accuracy and training time on Heart against the reduction's threshold.

The accuracy is the mean over splits, with its standard error; the time the mean CPU time of one
training. At nu = 1 the M4 comes down to the MPM, which is drawn beside it. How many rows keep a
constraint is known from records alone.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing
from mmbench.tables.records import Cell, Experiment
from mmbench.tables.results import Reference
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MACHINE = "m4_nu100"
FROM_TABLE = True
EXPERIMENTS = ("m4_fig7",)
MPM = "mpm"
#: Of the M4 and of the MPM.
REDUCED, PLAIN = colour(0), colour(1)


@dataclass(frozen=True)
class Threshold:
    """What one threshold gave."""

    nu: float
    #: Mean accuracy in per cent, and its standard error.
    accuracy: float
    error: float
    #: Mean CPU time of a training.
    milliseconds: float
    #: Mean share of the training rows that keep a constraint of their own, where it is known.
    kept: float | None
    #: Splits.
    n: int


def draw(experiment: Experiment | Reference, output: Path) -> str:
    """Write the figure of an experiment's M4 results and return its numbers in words.

    Raises UserError if results of several data sets or kernels meet.
    """
    sheet = sheet_of(experiment)
    done = [key for key in sheet.keys if sheet.value(key, "accuracy_pct") is not None]
    places = {key._replace(machine="") for key in done}
    if len(places) > 1:
        raise UserError(f"{experiment.name}: the figure is of one data set and one kernel")
    cells = {} if isinstance(experiment, Reference) else {c.key: c for c in experiment.cells}
    curve = [_point(sheet, key, cells.get(key)) for key in done if key.machine != MPM]
    curve.sort(key=lambda point: point.nu)
    mpm = [_point(sheet, key, cells.get(key)) for key in done if key.machine == MPM]
    _plot(curve, mpm, next(iter(places)).dataset, output)
    return _describe(curve, mpm)


def _point(sheet: Sheet, key: Key, cell: Cell | None) -> Threshold:
    rows = {row.metric: row for row in sheet.rows if row.key == key}
    accuracy, time = rows["accuracy_pct"], rows["seconds_training"]
    return Threshold(
        nu=threshold(cell.done[0]) if cell else nu_of(key.machine),
        accuracy=accuracy.measured or 0.0,
        error=accuracy.se or 0.0,
        milliseconds=1e3 * (time.measured or 0.0),
        kept=statistics.fmean(map(_kept, cell.done)) if cell else None,
        n=accuracy.n or 0,
    )


def threshold(record: Record) -> float:
    """Return the nu of a record: stated in its job, or the machine's own."""
    return {"nu": nu_of(record.job.machine), **dict(record.job.params)}["nu"]


def nu_of(machine: str) -> float:
    """Return the nu that a machine has by its name; 1 for the MPM."""
    from mmbench.machines import make_machine

    return 1.0 if machine == MPM else make_machine(machine).get_params()["nu"]


def _kept(record: Record) -> float:
    """Return the share of the training rows that keep a constraint."""
    return record.per_pair[0]["extra"].get("kept", rows := record.split["n_train"]) / rows


def _plot(curve: list[Threshold], mpm: list[Threshold], dataset: str, output: Path) -> None:
    with drawing(output, PAGE, 2.8) as canvas:
        left, right = canvas.subplots(1, 2)
        at = [point.nu for point in curve]
        reduced: dict[str, Any] = {"color": REDUCED, "marker": "o", "label": "reduced M4"}
        accuracies, errors = [p.accuracy for p in curve], [p.error for p in curve]
        left.errorbar(at, accuracies, yerr=errors, capsize=2, **reduced)
        right.plot(at, [point.milliseconds for point in curve], **reduced)
        for point in mpm:
            # Hollow and large: at nu = 1 the points lie on one another.
            hollow = {"color": PLAIN, "ms": 8, "mfc": "none", "mew": 1.2, "label": "MPM"}
            left.plot(point.nu, point.accuracy, "s", ls="none", **hollow)
            right.plot(point.nu, point.milliseconds, "s", ls="none", **hollow)
        slowest = max(point.milliseconds for point in curve)
        left.set(ylabel="accuracy (%), with standard error")
        right.set(ylabel="CPU time of a training (ms)", ylim=(0, 1.3 * slowest))
        if all(map(_share, curve)):
            _label_kept(right, curve)
        for axes in (left, right):
            axes.set_xlabel("threshold ν of the reduction")
            axes.legend(loc="best")
        splits = f"{curve[0].n} splits of {dataset}"
        canvas.suptitle(f"The reduced M4 against its threshold, {splits}")


def _label_kept(axes: Axes, curve: list[Threshold]) -> None:
    """Write at each point how many rows are left."""
    for point in curve:
        axes.annotate(
            _share(point),
            (point.nu, point.milliseconds),
            textcoords="offset points",
            xytext=(0, 5),
            ha="center",
            rotation=90,
        )
    axes.annotate("beside each point: rows kept", (0.03, 0.45), xycoords="axes fraction")


def _share(point: Threshold) -> str:
    return "" if point.kept is None else f"{100 * point.kept:.0f} %"


def _describe(curve: list[Threshold], mpm: list[Threshold]) -> str:
    lines = [
        f"nu {point.nu:.2f}: {point.accuracy:.2f} ({point.error:.2f}) % correct, "
        f"{point.milliseconds:.2f} ms"
        + (f", {_share(point)} of the rows kept" if _share(point) else "")
        for point in curve
    ]
    lines += [f"MPM:     {p.accuracy:.2f} ({p.error:.2f}) %, {p.milliseconds:.2f} ms" for p in mpm]
    return "\n".join(lines)
