"""Table II of the M4 paper: accuracy on seven sets, linear and Gaussian, with tests of the M4.

Each data set has a line measured here and, below it, the line of the paper. A second block a kernel
holds the M4 against the others: the mean difference over splits and two p-values, of the paired
t-test, as the paper is read, and of its correction for training rows that splits share (Nadeau and
Bengio 2003). Beside them stands on which sets the paper finds the M4 significantly better.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.counting import best_and_worst
from mmbench.tables.layouts.comparison import BETTER, WORSE, split_gaps
from mmbench.tables.layouts.mamc_table2 import measured_lines, published_lines
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    KernelKey,
    Row,
    certificates,
    dataset_label,
    join,
    kernel_caption,
    legend,
    machine_label,
    measured_text,
    printed_name,
    published_text,
    remarks,
    verdict_mark,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table
from mmbench.tables.ranks import LEVEL, paired_p

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = "m4_table2"
MACHINES = ("m4", "svm", "mpm")
#: The machine that is tested against the others.
REFERENCE = "m4"
METRIC = "accuracy_pct"

#: Where the text of the paper calls the M4 significantly better than both others.
SIGNIFICANT = {
    "linear": ("breast_wisconsin", "ionosphere", "sonar", "vote", "heart"),
    "rbf": ("breast_wisconsin", "ionosphere", "vote", "heart"),
}


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange two blocks a kernel: accuracies as the paper does, and tests."""
    cells, notes = Cells(frame), Footnotes()
    machines = cells.in_order(MACHINES)
    grids = []
    for kernel in cells.kernels:
        places = [place for place in cells.places if (place.kernel, place.degree) == kernel]
        grids.append(_accuracies(cells, places, machines, facts, notes))
        if REFERENCE in machines and len(machines) > 1:
            grids.append(_tests(places, kernel, machines, facts))
    return Table(
        title="Accuracy (%) on the benchmark sets, measured and published (M4 paper, table II)",
        grids=grids,
        notes=[
            *legend(cells, METRIC, "In parentheses: standard error over {} splits."),
            "The paper does not say what its ± are; they have the size of standard errors over "
            "50 partitions.",
            "Best: data sets on which a machine has the largest mean, as printed; equal ones count "
            "for all.",
            f"{BETTER} M4 better, {WORSE} worse at {LEVEL:g}; p by a paired t-test over splits, "
            "and corrected for the training rows that splits share (Nadeau and Bengio 2003).",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _accuracies(
    cells: Cells, places: list[Key], machines: list[str], facts: Facts, notes: Footnotes
) -> Grid:
    columns = (
        Column("data", align="left"),
        Column("", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    rows: list[list[str]] = []
    for place in places:
        found = [cells.get(place._replace(machine=machine), METRIC) for machine in machines]
        name = dataset_label(place.dataset, printed_name(place.dataset, facts), facts, notes)
        rows.append([name, "measured", *(_measured(row, notes) for row in found)])
        rows.append(["", "published", *(published_text(row, 1) for row in found)])
    return Grid(columns, [*rows, *_best(cells, places, machines, facts)], _caption(places))


def _caption(places: list[Key]) -> str:
    return kernel_caption(places[0].kernel, places[0].degree)


def _measured(row: Row | None, notes: Footnotes) -> str:
    return join(measured_text(row, 1), verdict_mark(row), notes.cite(*remarks(row)))


def _best(cells: Cells, places: list[Key], machines: list[str], facts: Facts) -> list[list[str]]:
    """Return on how many of the data sets each machine is best, here and in the paper."""
    kernel = places[0].kernel
    table = facts.published
    if table is not None:
        table = table[table["kernel"] == kernel]
    lines = dict(zip(cells.places, measured_lines(cells, machines), strict=True))
    ours = [lines[place] for place in places]
    theirs = published_lines(table, [place.dataset for place in places], machines)
    rows = []
    for side, found in (("measured", ours), ("published", theirs)):
        whole = [{m: s.mean for m, s in line.items()} for line in found]
        counts = best_and_worst([line for line in whole if len(line) == len(machines)], decimals=1)
        texts = [str(counts[m][0]) if m in counts else NOTHING for m in machines]
        rows.append(["Best" if side == "measured" else "", side, *texts])
    return rows


def _tests(places: list[Key], kernel: KernelKey, machines: list[str], facts: Facts) -> Grid:
    others = [machine for machine in machines if machine != REFERENCE]
    columns = [Column("data", align="left")]
    for machine in others:
        difference = f"less {machine_label(machine)}"
        columns += [Column(name) for name in (difference, "p", "corrected p")]
    columns.append(Column("better than both in the paper", align="left"))
    claimed = SIGNIFICANT.get(kernel[0], ())
    rows = []
    for place in places:
        cells = [text for machine in others for text in _test(place, machine, facts)]
        claim = "yes" if place.dataset in claimed else "no"
        rows.append([printed_name(place.dataset, facts), *cells, claim])
    label = machine_label(REFERENCE)
    return Grid(
        tuple(columns), rows, f"{_caption(places)}: accuracy of {label} less that of others"
    )


def _test(place: Key, machine: str, facts: Facts) -> list[str]:
    gaps = split_gaps(facts, place, REFERENCE, machine)
    if not gaps:
        return [NOTHING] * 3
    sizes, mean = facts.sizes[place.dataset], fmean(gaps)
    share = sizes["n_test"] / sizes["n_train"]
    tests = [_p_text(p, mean) for p in (paired_p(gaps), paired_p(gaps, share))]
    return [f"{mean:+.2f}".replace("-", WORSE), *tests]


def _p_text(p: float, mean: float) -> str:
    if p != p:
        return NOTHING
    mark = (BETTER if mean > 0 else WORSE) if p < LEVEL else ""
    return join("<0.001" if p < 0.001 else f"{p:.3f}", mark)
