"""How far the F-SVM's alternation stops from its own optimum: gap and accuracy after some rounds.

Every machine has the C and rho that the paper's algorithm selects on the split, so that all
minimise the same objective F, and F* is what `fsvm_opt` reaches.
"""

from statistics import fmean

from mmbench.jobs.store import Key
from mmbench.tables.blocks import METRIC
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, measured_text
from mmbench.tables.sheet import Sheet

#: From the semi-whitening to the optimum; the paper's stopping rule between them.
MACHINES = ("fsvm_semi", "fsvm_1", "fsvm_2", "fsvm_5", "fsvm_15", "fsvm", "fsvm_opt")
PAPER, OPTIMUM = "fsvm", "fsvm_opt"


def layout(sheet: Sheet) -> Table:
    """Arrange gaps above accuracies: a line a data set, a column a number of rounds."""
    sheet.machines = [machine for machine in MACHINES if machine in sheet.machines]
    return compose(
        sheet,
        "The F-SVM after some rounds of its alternation, and at its optimum",
        [_gaps(sheet), _accuracies(sheet)],
        f"{sheet.label(PAPER)}: the paper's rule, at most 15 rounds, ended when F falls by less "
        "than 0.1 %. All columns have the C and rho that it selected.",
        f"The optimum F* is what {sheet.label(OPTIMUM)} reaches; its own column is the proven "
        "distance to a lower bound.",
        metric=METRIC,
    )


def _gaps(sheet: Sheet) -> Grid:
    columns = (*sheet.columns("data"), Column("rounds by the paper's rule"))
    rows = []
    for place in sheet.places:
        texts = [_gap_text(sheet, place, machine) for machine in sheet.machines]
        rows.append([sheet.name(place), *texts, _rounds_text(sheet, place)])
    caption = "(F - F*) / F* in per cent: mean over splits, in parentheses the largest"
    return Grid(columns, rows, caption)


def gaps(sheet: Sheet, place: Key, machine: str) -> list[float]:
    """Return ``(F - F*) / F*`` on each split that both have done; of the optimum its own gap."""
    ours = sheet.facts.per_pair.get(place._replace(machine=machine), {})
    best = sheet.facts.per_pair.get(place._replace(machine=OPTIMUM), {})
    values = []
    for split in sorted(ours.keys() & best.keys()):
        # what pairs that share M minimise together is the same in the certificate of each
        at, optimum = ours[split][0]["objective"], best[split][0]["objective"]
        low = best[split][0]["bound"] if machine == OPTIMUM else optimum
        if None not in (at, low) and optimum:
            values.append((at - low) / optimum)
    return values


def _gap_text(sheet: Sheet, place: Key, machine: str) -> str:
    values = [100 * value for value in gaps(sheet, place, machine)]
    if not values:
        return NOTHING
    form = ".0e" if machine == OPTIMUM else ".1f"
    return f"{fmean(values):{form}} ({max(values):{form}})"


def _rounds_text(sheet: Sheet, place: Key) -> str:
    fits = sheet.facts.per_pair.get(place._replace(machine=PAPER), {}).values()
    counts = [pairs[0]["extra"]["rounds"] for pairs in fits if "rounds" in pairs[0]["extra"]]
    return f"{min(counts)} to {max(counts)}" if counts else NOTHING


def _accuracies(sheet: Sheet) -> Grid:
    rows = []
    for place in sheet.places:
        found = sheet.line(place, METRIC)
        cells = (sheet.marked(measured_text(row, 2), row) for row in found)
        rows.append([sheet.head(place), *cells])
    return Grid(sheet.columns("data"), rows, "Accuracy (%)")
