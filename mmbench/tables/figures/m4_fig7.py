"""Figure 7 of the M4 paper: accuracy and training time on Heart against the reduction's threshold.

Accuracies are means over splits with standard errors; times are mean CPU times of one training. At
nu = 1 the M4 is equivalent to the MPM, which is also drawn. The fraction of training rows with a
constraint in the reduced problem is shown only if there are records.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing
from mmbench.tables.frame import Cell
from mmbench.tables.results import Experiment
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

MACHINE = "m4_nu100"
FROM_TABLE = True
EXPERIMENTS = ("m4_fig7",)
MPM = "mpm"
#: Colours of the reduced M4 and of the MPM.
REDUCED, PLAIN = colour(0), colour(1)


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure of an experiment's M4 results and return its numbers as text.

    Raises UserError if there are several data sets or kernels.
    """
    import pandas as pd

    sheet = sheet_of(experiment)
    done = [key for key in sheet.keys if sheet.value(key, "accuracy_pct") is not None]
    if len({key._replace(machine="") for key in done}) > 1:
        raise UserError(f"{experiment.name}: the figure is of one data set and one kernel")
    columns = ["machine", "nu", "accuracy", "error", "ms", "kept", "n"]
    rows = [_point(sheet, key, sheet.cells.get(key)) for key in done]
    points = pd.DataFrame(rows, columns=columns)
    is_mpm = points.machine == MPM
    curve, mpm = points[~is_mpm].sort_values("nu", kind="stable"), points[is_mpm]
    title = f"The reduced M4 against its threshold, {curve.n.iloc[0]} splits of {done[0].dataset}"
    _plot(curve, mpm, title, output)
    shown: list[Any] = [*curve.itertuples(), *mpm.itertuples()]
    lines = []
    for p in shown:
        name, correct = ("MPM:    ", "%") if p.machine == MPM else (f"nu {p.nu:.2f}:", "% correct")
        kept = f", {p.kept} of the rows kept" if p.kept and p.machine != MPM else ""
        lines.append(f"{name} {p.accuracy:.2f} ({p.error:.2f}) {correct}, {p.ms:.2f} ms{kept}")
    return "\n".join(lines)


def _point(sheet: Sheet, key: Key, cell: Cell | None) -> tuple:
    """Return machine, nu, accuracy (%), standard error, milliseconds, rows kept, and n of splits.

    Rows kept is the percentage of training rows with a constraint in the reduced problem, as text;
    empty without records.
    """
    from mmbench.machines import make_machine

    nu = 1.0 if key.machine == MPM else make_machine(key.machine).get_params()["nu"]
    kept = ""
    if cell:
        nu = dict(cell.done[0].job.params).get("nu", nu)
        sizes = [(record.per_pair[0]["extra"], record.split["n_train"]) for record in cell.done]
        kept = f"{100 * fmean(extra.get('kept', rows) / rows for extra, rows in sizes):.0f} %"
    row: Any = sheet.row(key, "accuracy_pct")
    milliseconds = 1e3 * (sheet.value(key, "seconds_training") or 0.0)
    return (key.machine, nu, row.measured, row.se or 0.0, milliseconds, kept, row.n)


def _plot(curve: pd.DataFrame, mpm: pd.DataFrame, title: str, output: Path) -> None:
    reduced: dict[str, Any] = {"color": REDUCED, "marker": "o", "label": "reduced M4"}
    # The MPM's marker is hollow and large, because it covers the M4's point at nu = 1.
    hollow: dict[str, Any] = {"color": PLAIN, "ms": 8, "mfc": "none", "mew": 1.2, "label": "MPM"}
    with drawing(output, PAGE, 2.8) as canvas:
        left, right = canvas.subplots(1, 2)
        left.errorbar(curve.nu, curve.accuracy, yerr=curve.error, capsize=2, **reduced)
        right.plot(curve.nu, curve.ms, **reduced)
        for point in mpm.itertuples():
            left.plot(point.nu, point.accuracy, "s", ls="none", **hollow)
            right.plot(point.nu, point.ms, "s", ls="none", **hollow)
        left.set(ylabel="accuracy (%), with standard error")
        right.set(ylabel="CPU time of a training (ms)", ylim=(0, 1.3 * curve.ms.max()))
        if all(curve.kept):
            beside: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "rotation": 90}
            for point in curve.itertuples():
                right.annotate(point.kept, (point.nu, point.ms), xytext=(0, 5), **beside)
            text = "beside each point: rows kept"
            right.annotate(text, (0.03, 0.45), xycoords="axes fraction")
        for axes in (left, right):
            axes.set_xlabel("threshold ν of the reduction")
            axes.legend(loc="best")
        canvas.suptitle(title)
