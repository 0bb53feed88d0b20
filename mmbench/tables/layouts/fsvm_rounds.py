"""How far the F-SVM's alternation stops from its own optimum: gap and accuracy after some rounds.

Every machine has the C and rho that the paper's algorithm selects on the split, so that all
minimise the same objective F, and F* is what `fsvm_opt` reaches.
"""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    certificates,
    dataset_label,
    join,
    legend,
    machine_label,
    measured_text,
    place_name,
    remarks,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

#: From the semi-whitening to the optimum; the paper's stopping rule between them.
MACHINES = ("fsvm_semi", "fsvm_1", "fsvm_2", "fsvm_5", "fsvm_15", "fsvm", "fsvm_opt")
PAPER, OPTIMUM = "fsvm", "fsvm_opt"
METRIC = "accuracy_pct"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange gaps above accuracies: a line a data set, a column a number of rounds."""
    cells, notes = Cells(frame), Footnotes()
    machines = [m for m in MACHINES if m in cells.machines]
    return Table(
        title="The F-SVM after some rounds of its alternation, and at its optimum",
        grids=[_gaps(cells, machines, facts), _accuracies(cells, machines, facts, notes)],
        notes=[
            *legend(cells, METRIC),
            f"{machine_label(PAPER)}: the paper's rule, at most 15 rounds, ended when F falls by "
            "less than 0.1 %. All columns have the C and rho that it selected.",
            f"The optimum F* is what {machine_label(OPTIMUM)} reaches; its own column is the "
            "proven distance to a lower bound.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _gaps(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    columns = (
        Column("data", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
        Column("rounds by the paper's rule"),
    )
    rows = []
    for place in cells.places:
        texts = [_gap_text(facts, place, machine) for machine in machines]
        rows.append([place_name(cells, place, facts), *texts, _rounds_text(facts, place)])
    caption = "(F - F*) / F* in per cent: mean over splits, in parentheses the largest"
    return Grid(columns, rows, caption)


def gaps(facts: Facts, place: Key, machine: str) -> list[float]:
    """Return ``(F - F*) / F*`` on each split that both have done; of the optimum its own gap."""
    ours = facts.per_pair.get(place._replace(machine=machine), {})
    best = facts.per_pair.get(place._replace(machine=OPTIMUM), {})
    values = []
    for split in sorted(ours.keys() & best.keys()):
        # what pairs that share M minimise together is the same in the certificate of each
        at, optimum = ours[split][0]["objective"], best[split][0]["objective"]
        low = best[split][0]["bound"] if machine == OPTIMUM else optimum
        if None not in (at, low) and optimum:
            values.append((at - low) / optimum)
    return values


def _gap_text(facts: Facts, place: Key, machine: str) -> str:
    values = [100 * value for value in gaps(facts, place, machine)]
    if not values:
        return NOTHING
    form = ".0e" if machine == OPTIMUM else ".1f"
    return f"{fmean(values):{form}} ({max(values):{form}})"


def _rounds_text(facts: Facts, place: Key) -> str:
    fits = facts.per_pair.get(place._replace(machine=PAPER), {}).values()
    counts = [pairs[0]["extra"]["rounds"] for pairs in fits if "rounds" in pairs[0]["extra"]]
    return f"{min(counts)} to {max(counts)}" if counts else NOTHING


def _accuracies(cells: Cells, machines: list[str], facts: Facts, notes: Footnotes) -> Grid:
    columns = (
        Column("data", align="left"),
        *(Column(machine_label(machine)) for machine in machines),
    )
    rows = []
    for place in cells.places:
        name = dataset_label(place.dataset, place_name(cells, place, facts), facts, notes)
        found = [cells.get(place._replace(machine=machine), METRIC) for machine in machines]
        texts = (join(measured_text(row, 2), notes.cite(*remarks(row))) for row in found)
        rows.append([name, *texts])
    return Grid(columns, rows, "Accuracy (%)")
