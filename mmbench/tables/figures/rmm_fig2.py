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
from mmbench.jobs.plan import Key
from mmbench.tables.facts import gather_facts
from mmbench.tables.growth import SVM, TIMED, curves, exponent, gram_curve, whole
from mmbench.tables.records import Experiment

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A machine that the figure cannot do without.
MACHINE = "rmm_b1"
COLOURS = {SVM: "#333333", "B₁": "#1f5fa8", "B₂": "#2e8b57", "B₃": "#c0392b"}
STYLES = {"warm": "-", "cold": "--"}

Curves = Mapping[str, Mapping[int, float]]


def draw(experiment: Experiment, output: Path) -> str:
    """Write the figure of an experiment and return its numbers in words.

    Raises
    ------
    UserError
        If records are of several data sets or kernels, or of one training size.
    """
    keys = [cell.key for cell in experiment.cells if cell.done]
    places = {key._replace(machine="", size=None) for key in keys}
    if len(places) > 1:
        raise UserError(f"{experiment.name}: the figure is of one data set and one kernel")
    sizes = sorted({key.size for key in keys if key.size is not None})
    if len(sizes) < 2:
        raise UserError(f"{experiment.name}: the figure needs several training sizes in max_train")
    place = places.pop()
    facts = gather_facts(experiment)
    found, gram = curves(place, sizes, facts), gram_curve(place, sizes, facts)
    classes = experiment.records[0].job.dataset.classes
    _plot(found, gram, place, classes, output)
    return f"{_describe(found)}\nwhole trainings:\n{_describe(whole(found, gram))}"


def _plot(
    found: Curves, gram: Mapping[int, float], place: Key, classes: Sequence[str], output: Path
) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter

    canvas = Figure(figsize=(9.6, 5.2), layout="constrained")
    panels = canvas.subplots(1, 2, sharey=True)
    parts = (found, "after the Gram matrix"), (whole(found, gram), "whole training")
    for axes, (shown, title) in zip(panels, parts, strict=True):
        _curves(axes, shown)
        if gram and axes is panels[0]:
            label = f"Gram matrix: {_power(gram)}"
            axes.loglog(list(gram), list(gram.values()), ":", color="#888888", label=label)
        sizes = sorted({size for curve in shown.values() for size in curve})
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set(xlabel="training rows n", title=title)
        axes.grid(alpha=0.25, lw=0.6, which="both")
        axes.legend(frameon=False, fontsize=8)
    panels[0].set_ylabel("CPU seconds")
    kernel = place.kernel if place.degree is None else f"{place.kernel}, degree {place.degree}"
    data = " ".join([place.dataset, " and ".join(classes)]).strip()
    canvas.suptitle(f"SVM and RMM on {data}, {kernel}")
    canvas.savefig(output, dpi=160)


def _curves(axes: Axes, found: Curves) -> None:
    for machine, curve in found.items():
        bound, start = TIMED.get(machine, (SVM, "warm"))
        axes.loglog(
            list(curve),
            list(curve.values()),
            STYLES[start],
            color=COLOURS[bound],
            marker="o",
            ms=4,
            mfc=COLOURS[bound] if start == "warm" else "none",
            label=f"{_label(machine)}: {_power(curve)}",
        )


def _label(machine: str) -> str:
    return "SVM" if machine == SVM else "RMM, {}, {}".format(*TIMED[machine])


def _power(curve: Mapping[int, float]) -> str:
    found = exponent(curve)
    return f"$n^{{{found.value:.2f}}}$" if found else "no exponent"


def _describe(found: Curves) -> str:
    """Return a line a machine: exponent, and seconds and ratio to the SVM at the largest size."""
    lines = []
    for machine, curve in found.items():
        size, last = max(curve.items())
        svm = found[SVM].get(size)
        ratio = f", {last / svm:.2f} times the SVM" if svm and machine != SVM else ""
        text = str(exponent(curve) or "none")
        lines.append(f"{_label(machine):15} exponent {text}; {last:.3g} s of {size} rows{ratio}")
    return "\n".join(lines)
