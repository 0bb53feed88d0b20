"""Table II of the M4 paper: accuracy on seven sets, linear and Gaussian, with tests of the M4.

Each data set has a line measured here and, below it, the line of the paper. A second block a kernel
holds the M4 against the others: the mean difference over splits and two p-values, of the paired
t-test, as the paper is read, and of its correction for training rows that splits share (Nadeau and
Bengio 2003). Beside them stands on which sets the paper finds the M4 significantly better.
"""

from statistics import fmean

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    BETTER,
    METRIC,
    WORSE,
    best,
    both,
    direction,
    paired,
    signed,
    split_gaps,
)
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, join, kernel_caption
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.statistics import LEVEL, paired_p

PUBLISHED = "m4_table2"
MACHINES = ("m4", "svm", "mpm")
#: The machine that is tested against the others.
REFERENCE = "m4"

#: Where the text of the paper calls the M4 significantly better than both others.
SIGNIFICANT = {
    "linear": ("breast_wisconsin", "ionosphere", "sonar", "vote", "heart"),
    "rbf": ("breast_wisconsin", "ionosphere", "vote", "heart"),
}


def layout(sheet: Sheet) -> Table:
    """Arrange two blocks a kernel: accuracies as the paper does, and tests."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "Accuracy (%) on the benchmark sets, measured and published (M4 paper, table II)",
        [grid for kernel in sheet.kernels for grid in _grids(sheet, kernel)],
        "The paper does not say what its ± are; they have the size of standard errors over 50 "
        "partitions.",
        "Best: data sets on which a machine has the largest mean, as printed; equal ones count "
        "for all.",
        f"{BETTER} M4 better, {WORSE} worse at {LEVEL:g}; p by a paired t-test over splits, and "
        "corrected for the training rows that splits share (Nadeau and Bengio 2003).",
        metric=METRIC,
    )


def _grids(sheet: Sheet, kernel: KernelKey) -> list[Grid]:
    places, caption = sheet.places_of(kernel), kernel_caption(*kernel)
    grid = paired(sheet, places, caption=caption)
    head = "Best"
    for side, lines in both(sheet, places).items():
        counts = best(lines, sheet.machines, decimals=1)
        texts = [str(counts[m][0]) if m in counts else NOTHING for m in sheet.machines]
        grid.rows.append([head, side, *texts])
        head = ""
    tested = REFERENCE in sheet.machines and len(sheet.machines) > 1
    return [grid, _tests(sheet, places, caption)] if tested else [grid]


def _tests(sheet: Sheet, places: list[Key], caption: str) -> Grid:
    others = [machine for machine in sheet.machines if machine != REFERENCE]
    columns = [*sheet.columns("data", machines=())]
    for machine in others:
        difference = f"less {sheet.label(machine)}"
        columns += [Column(name) for name in (difference, "p", "corrected p")]
    columns.append(Column("better than both in the paper", align="left"))
    rows = []
    for place in places:
        cells = [text for machine in others for text in _test(sheet, place, machine)]
        claimed = place.dataset in SIGNIFICANT.get(place.kernel, ())
        rows.append([sheet.name(place, kernel=False), *cells, "yes" if claimed else "no"])
    caption = f"{caption}: accuracy of {sheet.label(REFERENCE)} less that of others"
    return Grid(tuple(columns), rows, caption)


def _test(sheet: Sheet, place: Key, machine: str) -> list[str]:
    gaps = split_gaps(sheet, place, REFERENCE, machine)
    if not gaps:
        return [NOTHING] * 3
    sizes, mean = sheet.facts.sizes[place.dataset], fmean(gaps)
    share = sizes["n_test"] / sizes["n_train"]
    return [signed(mean), *(_p_text(p, mean) for p in (paired_p(gaps), paired_p(gaps, share)))]


def _p_text(p: float, mean: float) -> str:
    if p != p:
        return NOTHING
    return join("<0.001" if p < 0.001 else f"{p:.3f}", direction(mean) if p < LEVEL else "")
