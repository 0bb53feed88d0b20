"""Tables II to V of the F-SVM paper: accuracy on eleven sets, and training time.

Each data set has a line measured here and, below it, the line of the paper. Its counts, on how many
sets the F-SVM is better than each other machine, are counted for both by the same rule: of the
means as printed. The training times of the paper are lost in its text.
"""

from functools import partial

from mmbench.tables.blocks import METRIC, Line, both, paired, total
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Grid, Table, kernel_caption, measured_text, published_text
from mmbench.tables.sheet import KernelKey, Sheet

#: The order of the paper; variants of the F-SVM follow it, others come last.
MACHINES = ("svm", "rmm", "rsvm_plus", "rsvm_mu_plus", "fsvm")
OURS = "fsvm"


def layout(sheet: Sheet) -> Table:
    """Arrange accuracies and training times as the paper does."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "Accuracy (%) and training time, measured and published (F-SVM paper)",
        [
            *(_accuracies(sheet, kernel) for kernel in sheet.kernels),
            *(_milliseconds(sheet, kernel) for kernel in sheet.kernels),
        ],
        "The paper prints means over 100 runs, without a spread.",
        f"{sheet.label(OURS)} better on: data sets on which its mean, as printed, is larger, of "
        "those on which both have one.",
        "The paper's heads R-SVM and R-SVM have lost their superscripts: the order is that of its "
        "public abstract.",
        metric=METRIC,
    )


def _accuracies(sheet: Sheet, kernel: KernelKey) -> Grid:
    places = sheet.places_of(kernel)
    caption = f"Accuracy. {kernel_caption(*kernel)}"
    text, published = partial(measured_text, decimals=2), partial(published_text, decimals=2)
    grid = paired(sheet, places, text, published, caption)
    head = f"{sheet.label(OURS)} better on"
    for side, lines in both(sheet, places).items():
        grid.rows.append([head, side, *(_better(lines, machine) for machine in sheet.machines)])
        head = ""
    return grid


def _better(lines: list[Line], machine: str) -> str:
    """Return on how many data sets the F-SVM's mean is larger than another machine's."""
    pairs = [(line[OURS], line[machine]) for line in lines if {OURS, machine} <= line.keys()]
    wins = sum(round(ours.mean, 2) > round(theirs.mean, 2) for ours, theirs in pairs)
    return f"{wins} of {len(pairs)}" if pairs and machine != OURS else NOTHING


def _milliseconds(sheet: Sheet, kernel: KernelKey) -> Grid:
    """Return milliseconds of the training with the selected parameters."""
    places = sheet.places_of(kernel)
    times = {
        machine: [total(sheet, place._replace(machine=machine), ("training",)) for place in places]
        for machine in sheet.machines
    }
    ran = [machine for machine in sheet.machines if set(times[machine]) != {None}]
    rows = [
        [sheet.name(place, kernel=False), *(_text(times[machine][k]) for machine in ran)]
        for k, place in enumerate(places)
    ]
    caption = f"CPU milliseconds of one training; published: lost. {kernel_caption(*kernel)}"
    return Grid(sheet.columns("data", machines=ran), rows, caption)


def _text(seconds: float | None) -> str:
    return NOTHING if seconds is None else f"{1000 * seconds:.1f}"
