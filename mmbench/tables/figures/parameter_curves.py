"""Accuracy and CPU time of one training against a parameter of a machine, one curve per data set.

Columns of an experiment have the machine at different values of the parameter; the value of a
column is the number at the end of its label, as in "M4, ν = 0.7". Accuracies are means over splits
with standard errors. Another machine, which does not have the parameter, is a dashed line.
"""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from mmbench.errors import UserError
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing, mark
from mmbench.tables.frame import METRIC
from mmbench.tables.results import Experiment
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class Curves:
    """A figure with a panel of accuracies and a panel of times."""

    FROM_TABLE = True
    MACHINE: ClassVar[str]
    EXPERIMENTS: ClassVar[tuple[str, ...]]
    #: Column of the machine without the parameter.
    rival: ClassVar[str]
    #: Columns whose label has no number, with their values of the parameter.
    values: ClassVar[dict[str, float]] = {}
    #: Title, label and scale of the horizontal axis.
    title: ClassVar[str]
    axis: ClassVar[str]
    scale: ClassVar[str] = "linear"

    @classmethod
    def draw(cls, experiment: Experiment, output: Path) -> str:
        """Write the figure of an experiment and return its numbers as text.

        Raises UserError if there are no results, or results of several kernels.
        """
        import pandas as pd

        sheet = sheet_of(experiment)
        done = [key for key in sheet.keys if sheet.value(key, METRIC) is not None]
        if len({(key.kernel, key.degree) for key in done}) != 1:
            raise UserError(f"{experiment.name}: the figure needs results of one kernel")
        points = pd.DataFrame([cls._point(sheet, key) for key in done])
        if points.kept.notna().any():  # without reduction, all rows have a constraint
            points["kept"] = points.kept.fillna(100.0).where(points.machine != cls.rival)
        points = points.sort_values("at", kind="stable")
        cls._plot(points, output)
        lines, shown = [], list[Any](points.itertuples())
        for p in shown:
            kept = f", {p.kept:.0f} % of the rows kept" if p.kept == p.kept else ""
            lines.append(
                f"{p.dataset}, {p.label}: {p.accuracy:.2f} ({p.error:.2f}) % correct, "
                f"{p.ms:.2f} ms{kept}"
            )
        return "\n".join(lines)

    @classmethod
    def _point(cls, sheet: Sheet, key: Key) -> dict[str, Any]:
        """Return a point of a curve; ``at`` is the value of the parameter, NaN for the rival.

        ``kept`` is the percentage of training rows with a constraint in the reduced problem of the
        M4, NaN without records or without a reduction.
        """
        label, cell = sheet.label(key.machine), sheet.cells.get(key)
        found = re.search(r"= *([\d.]+)$", label)
        shares = [
            100 * record.per_pair[0]["extra"]["kept"] / record.split["n_train"]
            for record in (cell.done if cell else ())
            if "kept" in record.per_pair[0]["extra"]
        ]
        row: Any = sheet.row(key, METRIC)
        return {
            "dataset": key.dataset,
            "machine": key.machine,
            "label": label,
            "at": float(found[1]) if found else cls.values.get(key.machine, float("nan")),
            "accuracy": row.measured,
            "error": row.se or 0.0,
            "ms": 1e3 * (sheet.value(key, "seconds_training") or 0.0),
            "kept": fmean(shares) if shares else float("nan"),
        }

    @classmethod
    def _plot(cls, points: pd.DataFrame, output: Path) -> None:
        labels = {
            "accuracy": "accuracy (%), with standard error",
            "ms": "CPU time of a training (ms)",
        }
        if points.kept.notna().any():
            labels["kept"] = "training rows kept (%)"
        with drawing(output, PAGE, 2.8) as canvas:
            panels = canvas.subplots(1, len(labels))
            for axes, (column, text) in zip(panels, labels.items(), strict=True):
                for k, (_, group) in enumerate(points.groupby("dataset", sort=False)):
                    cls._curve(axes, group, column, k)
                axes.set(xlabel=cls.axis, ylabel=text, xscale=cls.scale)
                if cls.scale == "log":
                    values = sorted(set(points["at"].dropna()))
                    axes.set_xticks(values, [f"{value:g}" for value in values])
                    axes.minorticks_off()
            for axes in panels[1:]:
                axes.set_ylim(bottom=0)
            handles, names = panels[0].get_legend_handles_labels()
            canvas.legend(handles, names, loc="outside lower center", ncols=min(len(names), 3))
            canvas.suptitle(cls.title)

    @classmethod
    def _curve(cls, axes: Axes, points: pd.DataFrame, column: str, k: int) -> None:
        """Draw the curve of the kth data set, and the rival's value across the axes."""
        own, rival = points[points["at"].notna()], points[points.machine == cls.rival]
        errors = own.error if column == "accuracy" else None
        dataset = points.dataset.iloc[0]
        style: dict[str, Any] = {"color": colour(k), "marker": mark(k), "capsize": 2}
        axes.errorbar(own["at"], own[column], errors, label=dataset, **style)
        for p in rival[rival[column].notna()].itertuples():
            level = getattr(p, column)
            axes.axhline(level, color=colour(k), ls="--", label=f"{dataset}, {p.label}")


class M4Reduction(Curves):
    """Figure 7 of the M4 paper: accuracy and training time on Heart against the threshold ν.

    At ν = 1 the M4 is equivalent to the MPM.
    """

    MACHINE = "m4_nu100"
    EXPERIMENTS = ("m4_fig7",)
    rival = "mpm"
    values: ClassVar = {"m4": 0.0}
    title = "The reduced M4 against its threshold"
    axis = "threshold ν of the reduction"


class FSVMComponents(Curves):
    """Accuracy and training time of the F-SVM against the components of kernel PCA."""

    MACHINE = "fsvm_d10"
    EXPERIMENTS = ("fsvm_components",)
    rival = "svm"
    title = "The F-SVM against the number of components"
    axis = "components d of kernel PCA"
    scale = "log"
