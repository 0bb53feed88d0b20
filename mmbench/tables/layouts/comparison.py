"""Any experiment with three machines or more: mean ranks, Friedman's test, paired tests by split.

What papers with a table of many data sets and machines leave out. Ranks over data sets with the
critical difference of Nemenyi; below them, on each data set, every machine against the first one
by a paired t-test over splits, all p-values corrected together by Holm's method.
"""

from __future__ import annotations

from typing import NamedTuple

from mmbench.jobs.plan import Key
from mmbench.tables.blocks.tests import (
    BETTER,
    WORSE,
    direction,
    ranks_of,
    signed,
    split_gaps,
    with_results,
)
from mmbench.tables.compose import compose
from mmbench.tables.counting import Counts
from mmbench.tables.model import NOTHING, Column, Grid, Table
from mmbench.tables.ranks import LEVEL, Ranks, holm, paired_p
from mmbench.tables.sheet import Sheet
from mmbench.tables.text import kernel_caption


class Difference(NamedTuple):
    """Mean difference of two machines over the splits of a data set, and its p-value."""

    mean: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether the p-value is below the level; NaN is not."""
        return self.p < LEVEL


def layout(sheet: Sheet) -> Table:
    """Arrange ranks and paired differences."""
    sheet.machines = with_results(sheet)
    reference = sheet.label(sheet.machines[0]) if sheet.machines else NOTHING
    head, grids = [], []
    for kernel in sheet.kernels:
        try:
            ranks = ranks_of(sheet, kernel)
        except ValueError as error:
            head.append(f"{kernel_caption(*kernel)}: no ranks, {error}.")
        else:
            head.append(f"{kernel_caption(*kernel)}: {_friedman(ranks)}")
            grids.append(_ranks(sheet, ranks, kernel_caption(*kernel)))
    return compose(
        sheet,
        "Comparison of the machines over data sets and splits",
        [*grids, _differences(sheet, reference)],
        *head,
        f"{BETTER} better, {WORSE} worse than {reference} at {LEVEL:g}, by a paired t-test over "
        "splits, p-values corrected by Holm's method over the whole table.",
        "Splits of a data set share rows: the tests speak of the machines on these data.",
    )


def _friedman(ranks: Ranks) -> str:
    return (
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}. "
        f"Rank 1 is best; accuracies are ranked as printed. Nemenyi at {LEVEL:g}: mean ranks "
        f"differ significantly from {ranks.critical_difference:.2f} on."
    )


def _ranks(sheet: Sheet, ranks: Ranks, kernel: str) -> Grid:
    groups = ranks.cliques()
    rows = [
        [
            sheet.label(machine),
            f"{ranks.means[machine]:.2f}",
            " ".join("ABCDEFGHIJ"[k] for k, group in enumerate(groups) if machine in group),
        ]
        for machine in sorted(ranks.means, key=lambda machine: ranks.means[machine])
    ]
    columns = (Column("machine", align="left"), Column("mean rank"), Column("group", align="left"))
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    return Grid(columns, rows, caption)


def _differences(sheet: Sheet, reference: str) -> Grid:
    others, places = sheet.machines[1:], sheet.places
    table = {(p, m): _difference(sheet, p, m) for p in places for m in others}
    corrected = holm([difference.p for difference in table.values()])
    for cell, p in zip(table, corrected, strict=True):
        table[cell] = table[cell]._replace(p=float(p))
    rows = [[sheet.name(place), *(_text(table[place, m]) for m in others)] for place in places]
    rows.append(["better/same/worse", *(str(_count(table, machine)) for machine in others)])
    caption = f"Accuracy less that of {reference} (corrected p)"
    return Grid(sheet.columns("data", machines=others), rows, caption)


def _difference(sheet: Sheet, place: Key, machine: str) -> Difference:
    gaps = split_gaps(sheet, place, machine, sheet.machines[0])
    if not gaps:
        return Difference(float("nan"), float("nan"))
    return Difference(sum(gaps) / len(gaps), paired_p(gaps))


def _text(difference: Difference) -> str:
    if difference.mean != difference.mean:
        return NOTHING
    mark = direction(difference.mean) if difference.significant else ""
    p = f" ({difference.p:.2g})" if difference.p == difference.p else ""
    return f"{signed(difference.mean)}{p} {mark}".rstrip()


def _count(table: dict[tuple[Key, str], Difference], machine: str) -> Counts:
    found = [difference for (_, name), difference in table.items() if name == machine]
    better = sum(d.significant and d.mean > 0 for d in found)
    worse = sum(d.significant and d.mean < 0 for d in found)
    return Counts(better, sum(d.p == d.p for d in found) - better - worse, worse)
