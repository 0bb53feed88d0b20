"""Figure 2 of the RMM paper: training time of SVM and RMM over the number of training rows.

Both panels of figure 2 show CPU seconds of one thread on logarithmic axes. In the left panel, times
exclude the computation of the Gram matrix, and the RMM's times also exclude the SVM that is trained
before the RMM. In the right panel, times include the whole training. The RMM paper does not state
whether its times include the Gram matrix and the SVM.

The CPU time is assumed to be proportional to a power of the number n of training rows. For each
machine, the legends state the exponent of n. The exponent is the slope of the least-squares line
through the points (log n, log time).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, data_names, drawing, mark
from mmbench.tables.layouts.rmm import COLD, GRAM, SVM, exponent, seconds
from mmbench.tables.results_folder import Experiment
from mmbench.tables.table import join

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure of an experiment to a file, and return the numbers in the figure as text.

    Raises UserError if the experiment has several data sets or kernels, or fewer than two training
    sizes.
    """
    sheet = sheet_of(experiment, "rmm_fig2")
    bases = {key._replace(machine="", size=None) for key in sheet.keys}
    if len(bases) > 1:
        raise UserError(f"{experiment.name}: the figure needs one data set and one kernel")
    base = bases.pop()
    after, whole = seconds(sheet, base)
    if len(after) < 2:
        raise UserError(f"{experiment.name}: the figure needs several training sizes in max_train")
    gram = whole.pop(GRAM).dropna()
    parts = {"After the Gram matrix": after, "Whole training": whole}
    labels = {machine: sheet.label(machine) for machine in after}
    classes = " and ".join(experiment.records[0].job.dataset.classes)
    data = join(data_names([base.dataset])[base.dataset], classes)
    with drawing(output, PAGE, 4.2) as canvas:
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        panels = canvas.subplots(1, 2, sharey=True)
        for axes, (name, times) in zip(panels, parts.items(), strict=True):
            _draw_curves(axes, times, labels)
            if len(gram) and times is after:
                axes.loglog(gram.index, gram, ":", color="0.5", label=f"{GRAM}: {_power(gram)}")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set(xlabel="training rows n", title=name)
            # The legend is below the axes, since curves may reach every corner of the panel.
            axes.legend(loc="upper left", bbox_to_anchor=(0, -0.25), ncols=2)
        panels[0].set_ylabel("CPU seconds")
        canvas.suptitle(f"Training time of SVM and RMM on {data}. {sheet.caption(base[1:3])}")
    return "\nwhole trainings:\n".join(_describe(times, labels) for times in parts.values())


def _draw_curves(axes: Axes, times: Any, labels: Mapping[str, str]) -> None:
    """Draw one curve per machine.

    An RMM has the same colour with and without a warm start.
    """
    names = list(dict.fromkeys(labels[machine].removesuffix(COLD) for machine in times))
    for machine, curve in times.items():
        label = labels[machine]
        k, cold = names.index(label.removesuffix(COLD)), label.endswith(COLD)
        style = {"color": colour(k), "marker": mark(k), "mfc": "none" if cold else colour(k)}
        known, text = curve.dropna(), f"{label}: {_power(curve)}"
        axes.loglog(known.index, known, "--" if cold else "-", label=text, **style)


def _power(curve: pd.Series) -> str:
    slope = exponent(curve).partition(" ")[0]
    return f"$n^{{{slope}}}$" if slope else "no exponent"


def _describe(times: Any, labels: Mapping[str, str]) -> str:
    """Return one line of text per machine.

    Each line of text states the exponent of the number of training rows, and the CPU time for the
    largest number of training rows.
    """
    lines = []
    for machine, curve in times.items():
        size = curve.last_valid_index()
        last, svm = curve[size], times[SVM].get(size)
        ratio = f", {last / svm:.2f} times the SVM" if svm and machine != SVM else ""
        text = exponent(curve) or "none"
        lines.append(f"{labels[machine]:15} exponent {text}; {last:.3g} s of {size} rows{ratio}")
    return "\n".join(lines)
