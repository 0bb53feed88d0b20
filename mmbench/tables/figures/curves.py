"""Accuracy and CPU time per training as functions of a parameter, with one curve per data set.

Machines of an experiment differ in this parameter. Dashed lines show a machine without it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.planned import Key
from mmbench.machines import alias_of
from mmbench.results.cells import KEPT, METRIC
from mmbench.results.frames import Results
from mmbench.tables.build import laid_out
from mmbench.tables.figures.style import PAGE, colour, data_names, drawing, mark

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: Label of the vertical axis for each column of the plotted data frame.
AXIS_LABELS = {
    "accuracy": "accuracy (%), with standard error",
    "ms": "CPU time of a training (ms)",
    "kept": "training rows kept (%)",
}


def draw(
    results: Results,
    output: Path,
    rival: str,
    parameter: str,
    title: str,
    axis: str,
    scale: str = "linear",
) -> str:
    """Write the figure of an experiment to a file, and return the numbers in the figure as text.

    `rival` is the name of a machine without the varied parameter. `parameter` is the name of the
    varied parameter. Raises UserError if the experiment has no results, or results of several
    kernels.
    """
    import pandas as pd

    results = laid_out(results)
    done = [key for key in results.keys if results.value(key, METRIC) is not None]
    if len({(key.kernel, key.degree) for key in done}) != 1:
        raise UserError(f"{results.name}: the figure needs results of one kernel")
    points = pd.DataFrame([_point(results, key, parameter) for key in done])
    machines = points.estimator.map(lambda name: alias_of(alias_of(name).machine).label)
    points["curve"] = points.dataset.map(data_names(results.datasets)) + ", " + machines
    if points.kept.notna().any():  # an M4 without a reduced problem keeps all training rows
        points["kept"] = points.kept.fillna(100.0).where(points.machine != rival)
    points = points.sort_values("at", kind="stable")
    columns = [name for name in AXIS_LABELS if points[name].notna().any()]
    with drawing(output, PAGE, 2.8) as canvas:
        panels = canvas.subplots(1, len(columns))
        for axes, column in zip(panels, columns, strict=True):
            for k, (_, own) in enumerate(points.groupby("dataset", sort=False)):
                _draw_curve(axes, own, column, rival, {"color": colour(k), "marker": mark(k)})
            axes.set(xlabel=axis, ylabel=AXIS_LABELS[column], xscale=scale)
            if scale == "log":
                ticks = sorted(set(points["at"].dropna()))
                axes.set_xticks(ticks, [f"{value:g}" for value in ticks])
                axes.minorticks_off()
        for axes in panels[1:]:
            axes.set_ylim(bottom=0)
        entries = zip(*panels[0].get_legend_handles_labels()[::-1], strict=True)
        names, handles = zip(*sorted(entries, key=lambda entry: entry[0]), strict=True)
        canvas.legend(handles, names, loc="outside lower center", ncols=min(len(names), 3))
        canvas.suptitle(title)
    kept = [f", {k:.0f} % of the rows kept" if k == k else "" for k in points.kept]
    return "\n".join(
        f"{p.dataset}, {p.label}: {p.accuracy:.2f} ({p.error:.2f}) % correct, {p.ms:.2f} ms{text}"
        for p, text in zip(list[Any](points.itertuples()), kept, strict=True)
    )


def _point(results: Results, key: Key, parameter: str) -> dict[str, Any]:
    """Return one point of a curve: accuracy, CPU time in ms, and value ``at`` of the parameter.

    For a machine without the parameter, ``at`` is NaN.
    """
    row, splits = results.row(key, METRIC), results.counted(key)
    kept, settings = results.value(key, KEPT), {}
    for split in splits[:1]:
        given = split.parameters if isinstance(split.parameters, dict) else {}
        settings = {**(split.defaults or {}), **given}
    return {
        "dataset": key.dataset,
        "machine": key.machine,
        "estimator": (splits[0].estimator if splits else "") or key.machine,
        "label": results.label(key.machine),
        "at": float(settings.get(parameter, "nan")),
        "accuracy": row.measured,
        "error": row.se or 0.0,
        "ms": 1e3 * (results.value(key, "seconds_training") or 0.0),
        "kept": float("nan") if kept is None else kept,
    }


def _draw_curve(
    axes: Axes, points: pd.DataFrame, column: str, rival: str, style: dict[str, Any]
) -> None:
    """Draw the curve of a data set, and the result of the rival as a horizontal line."""
    own = points[points["at"].notna()]
    errors = own.error if column == "accuracy" else None
    name = next(iter(own.curve), None)
    axes.errorbar(own["at"], own[column], errors, label=name, capsize=2, **style)
    others: Any = points[(points.machine == rival) & points[column].notna()]
    for level, label in zip(others[column], others.curve, strict=True):
        axes.axhline(level, color=style["color"], ls="--", label=label)
