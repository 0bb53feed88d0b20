"""Figure 2 of the RMM paper: training time of SVM and RMM over the number of training rows.

CPU seconds of one thread: on the left, without the Gram matrix and the SVM that is trained first;
on the right, with both, since the paper does not state which. Legends state the exponent of n.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError
from mmbench.jobs.planned import Key
from mmbench.results.frames import Results
from mmbench.tables.build import laid_out
from mmbench.tables.figures.style import PAGE, colour, data_names, drawing, mark
from mmbench.tables.layouts.rmm import (
    AFTER,
    EXPONENT,
    GRAM,
    OF_GRAM,
    SVM,
    WHOLE,
    exponent_text,
    seconds,
    starts_cold,
)
from mmbench.tables.names import caption_of
from mmbench.tables.text import join

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(results: Results, output: Path) -> str:
    """Write the figure of an experiment to a file, and return the numbers in the figure as text.

    Raises UserError if the experiment has several data sets or kernels, or fewer than two training
    sizes.
    """
    results = laid_out(results, "rmm_fig2")
    bases = {key._replace(machine="", size=None) for key in results.keys}
    if len(bases) > 1:
        raise UserError(f"{results.name}: the figure needs one data set and one kernel")
    base = bases.pop()
    after, whole = (seconds(results, base, metric) for metric in (AFTER, WHOLE))
    if len(after) < 2:
        raise UserError(f"{results.name}: the figure needs several training sizes in max_train")
    gram = seconds(results, base, OF_GRAM)[""]
    parts = {"After the Gram matrix": (AFTER, after), "Whole training": (WHOLE, whole)}
    first = next(iter(results.by_cell.values()), [None])[0]
    classes = " and ".join((first.classes if first else None) or ())
    data = join(data_names([base.dataset])[base.dataset], classes)
    with drawing(output, PAGE, 4.2) as canvas:
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

        panels = canvas.subplots(1, 2, sharey=True)
        for axes, (name, (metric, times)) in zip(panels, parts.items(), strict=True):
            _draw_curves(axes, times, results, base, metric)
            if len(gram) and metric == AFTER:
                label = f"{GRAM}: {_power(results, base, '', OF_GRAM)}"
                axes.loglog(gram.index, gram, ":", color="0.5", label=label)
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.set(xlabel="training rows n", title=name)
            # The legend is below the axes, since curves may reach every corner of the panel.
            axes.legend(loc="upper left", bbox_to_anchor=(0, -0.25), ncols=2)
        panels[0].set_ylabel("CPU seconds")
        canvas.suptitle(f"Training time of SVM and RMM on {data}. {caption_of(results, base[1:3])}")
    return "\nwhole trainings:\n".join(
        _describe(times, results, base, metric) for metric, times in parts.values()
    )


def _draw_curves(axes: Axes, times: Any, results: Results, base: Key, metric: str) -> None:
    """Draw one curve per machine.

    An RMM has the same colour with and without a warm start.
    """
    kinds = {machine: _without_start(results, machine) for machine in times}
    names = list(dict.fromkeys(kinds.values()))
    for machine, curve in times.items():
        k, cold = names.index(kinds[machine]), starts_cold(results, machine)
        style = {"color": colour(k), "marker": mark(k), "mfc": "none" if cold else colour(k)}
        known, power = curve.dropna(), _power(results, base, machine, metric)
        text = f"{results.label(machine)}: {power}"
        axes.loglog(known.index, known, "--" if cold else "-", label=text, **style)


def _without_start(results: Results, machine: str) -> str:
    """Return the parameters of a machine, without the starting point, as text."""
    rows = (row for key, own in results.by_cell.items() if key.machine == machine for row in own)
    first = next(rows, None)
    given = first.parameters if first and isinstance(first.parameters, dict) else {}
    return str({name: value for name, value in given.items() if name != "timing"} or machine)


def _power(results: Results, base: Key, machine: str, metric: str) -> str:
    """Return the power of n to which a CPU time is proportional, as a formula."""
    slope = results.value(base._replace(machine=machine), EXPONENT + metric)
    return "no exponent" if slope is None else f"$n^{{{slope:.2f}}}$"


def _describe(times: Any, results: Results, base: Key, metric: str) -> str:
    """Return one line of text per machine.

    Each line of text states the exponent of the number of training rows, and the CPU time for the
    largest number of training rows.
    """
    lines = []
    for machine, curve in times.items():
        size = curve.last_valid_index()
        last, svm = curve[size], times[SVM].get(size)
        ratio = f", {last / svm:.2f} times the SVM" if svm and machine != SVM else ""
        text = exponent_text(results, base, machine, metric) or "none"
        label = results.label(machine)
        lines.append(f"{label:15} exponent {text}; {last:.3g} s of {size} rows{ratio}")
    return "\n".join(lines)
