"""Figure 2 of the RMM paper: training time of SVM and RMM against the number of training rows.

CPU seconds of one thread on logarithmic axes: on the left of what comes after the Gram matrix, the
RMM's without the SVM that gives theta; on the right of whole trainings. The paper does not say
which it shows. The legends hold the exponents in n by least squares on the logarithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mmbench.errors import UserError
from mmbench.jobs.store import Key
from mmbench.tables.build import sheet_of
from mmbench.tables.figures.style import PAGE, colour, drawing, mark
from mmbench.tables.layouts.rmm_fig2 import (
    COLD,
    SVM,
    Curve,
    Curves,
    curves,
    exponent,
    gram_curve,
    sizes_of,
    whole,
)
from mmbench.tables.model import kernel_caption
from mmbench.tables.records import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A machine that the figure cannot do without.
MACHINE = "rmm_b1"


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure of an experiment and return its numbers in words.

    Raises UserError if records are of several data sets or kernels, or of one training size.
    """
    sheet = sheet_of(experiment, "rmm_fig2")
    bases = {key._replace(machine="", size=None) for key in sheet.keys}
    if len(bases) > 1:
        raise UserError(f"{experiment.name}: the figure is of one data set and one kernel")
    place = bases.pop()
    if len(sizes_of(sheet, place)) < 2:
        raise UserError(f"{experiment.name}: the figure needs several training sizes in max_train")
    found, gram = curves(sheet, place), gram_curve(sheet, place)
    labels = {machine: sheet.label(machine) for machine in found}
    classes = experiment.records[0].job.dataset.classes
    _plot(found, gram, labels, _title(place, classes), output)
    return f"{_describe(found, labels)}\nwhole trainings:\n{_describe(whole(found, gram), labels)}"


def _title(place: Key, classes: Sequence[str]) -> str:
    data = " ".join([place.dataset, " and ".join(classes)]).strip()
    return f"Training time of SVM and RMM on {data}. {kernel_caption(place.kernel, place.degree)}"


def _plot(found: Curves, gram: Curve, labels: Mapping[str, str], title: str, output: Path) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    with drawing(output, PAGE, 4.2) as canvas:
        panels = canvas.subplots(1, 2, sharey=True)
        parts = (found, "After the Gram matrix"), (whole(found, gram), "Whole training")
        for axes, (shown, name) in zip(panels, parts, strict=True):
            _curves(axes, shown, labels)
            if gram and axes is panels[0]:
                label = f"Gram matrix: {_power(gram)}"
                axes.loglog(list(gram), list(gram.values()), ":", color="0.5", label=label)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set(xlabel="training rows n", title=name)
            # below, as the curves go from corner to corner
            axes.legend(loc="upper left", bbox_to_anchor=(0, -0.25), ncols=2)
        panels[0].set_ylabel("CPU seconds")
        canvas.suptitle(title)


def _curves(axes: Axes, found: Curves, labels: Mapping[str, str]) -> None:
    names = list(dict.fromkeys(labels[machine].removesuffix(COLD) for machine in found))
    for machine, curve in found.items():
        name = labels[machine].removesuffix(COLD)
        # The SVM and the bounds of the RMMs have their colours; an RMM from zero is dashed.
        cold, k = labels[machine] != name, names.index(name)
        axes.loglog(
            list(curve),
            list(curve.values()),
            "--" if cold else "-",
            color=colour(k),
            marker=mark(k),
            mfc="none" if cold else colour(k),
            label=f"{labels[machine]}: {_power(curve)}",
        )


def _power(curve: Curve) -> str:
    found = exponent(curve)
    return f"$n^{{{found.value:.2f}}}$" if found else "no exponent"


def _describe(found: Curves, labels: Mapping[str, str]) -> str:
    """Return a line a machine: exponent, and seconds and ratio to the SVM at the largest size."""
    lines = []
    for machine, curve in found.items():
        size, last = max(curve.items())
        svm = found[SVM].get(size)
        ratio = f", {last / svm:.2f} times the SVM" if svm and machine != SVM else ""
        text = str(exponent(curve) or "none")
        lines.append(f"{labels[machine]:15} exponent {text}; {last:.3g} s of {size} rows{ratio}")
    return "\n".join(lines)
