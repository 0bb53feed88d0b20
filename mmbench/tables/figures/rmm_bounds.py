"""Error rate of the RMM as a function of its bound, with one panel per data set.

At `B_fraction` 1, the RMM is the SVM (dashed line). A star is at the median of the selected bounds.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median_low

from mmbench.jobs.planned import Key
from mmbench.results.cells import METRIC
from mmbench.results.frames import Results
from mmbench.tables.build import laid_out
from mmbench.tables.figures.style import PAGE, colour, data_names, drawing

#: The parameter of the horizontal axis, and the machine that is drawn as a line.
BOUND, SVM = "B_fraction", "svm"
#: Panels per line, and ticks of the horizontal axis.
PER_LINE, TICKS = 3, (0.02, 0.1, 0.5, 1)


def draw(results: Results, output: Path) -> str:
    """Write the figure to a file, and return the numbers in the figure as text."""
    results = laid_out(results)
    datasets, names, texts = results.datasets, data_names(results.datasets), []
    n_lines = -(-len(datasets) // PER_LINE)
    with drawing(output, PAGE, 0.8 + 1.7 * n_lines) as canvas:
        panels = canvas.subplots(n_lines, PER_LINE, squeeze=False).ravel()
        for axes in panels[len(datasets) :]:
            axes.set_axis_off()
        for axes, dataset in zip(panels, datasets, strict=False):
            axes.set(title=names[dataset], xlabel="B_fraction", ylabel="errors (%)", xscale="log")
            curve = []
            for key in (key for key in results.keys if key.dataset == dataset):
                row = results.row(key, METRIC)
                if row.measured is None:
                    continue
                errors, se, bounds = 100 - row.measured, row.se or 0.0, _bounds(results, key)
                texts.append(f"{dataset}, {results.label(key.machine)}: {errors:.2f} ({se:.2f}) %")
                if key.machine == SVM:
                    axes.axhline(errors, color=colour(1), ls="--", label="SVM")
                elif any(split.grid for split in results.counted(key)):
                    middle = median_low(bounds)
                    axes.plot(middle, errors, "*", ms=9, color=colour(2), label="selected bound")
                    texts[-1] += f", selected {BOUND} {middle:g}"
                else:
                    curve.append((bounds[0], errors, se))
            if curve:
                axes.errorbar(*zip(*sorted(curve), strict=True), color=colour(0), label="RMM")
            axes.set_xticks(TICKS, [f"{value:g}" for value in TICKS])
            axes.minorticks_off()
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        canvas.suptitle("The RMM against its bound")
    return "\n".join(texts)


def _bounds(results: Results, key: Key) -> list[float]:
    """Return the bounds of a machine on all splits; empty for the SVM."""
    given = (split.parameters or {} for split in results.counted(key))
    return [float(values[BOUND]) for values in given if BOUND in values]
