"""Any experiment with three machines or more: mean ranks, Friedman's test, paired tests by split.

What papers with a table of many data sets and machines leave out. Ranks over data sets with the
critical difference of Nemenyi; below them, on each data set, every machine against the first one
by a paired t-test over splits, all p-values corrected together by Holm's method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mmbench.jobs.plan import Key
from mmbench.tables.counting import Counts
from mmbench.tables.layouts.mamc_table2 import measured_lines
from mmbench.tables.layouts.parts import Cells, machine_label, place_name
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table
from mmbench.tables.ranks import LEVEL, Ranks, holm, paired_p, rank_machines

if TYPE_CHECKING:
    import pandas as pd

BETTER, WORSE = "+", "−"


class Difference(NamedTuple):
    """Mean difference of two machines over the splits of a data set, and its p-value."""

    mean: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether the p-value is below the level; NaN is not."""
        return self.p < LEVEL


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange ranks and paired differences."""
    cells = Cells(frame)
    machines = with_results(cells)
    reference = machine_label(machines[0]) if machines else NOTHING
    try:
        ranks = ranks_of(cells)
        head, grids = _friedman(ranks), [_ranks(ranks)]
    except ValueError as error:
        head, grids = [f"No ranks: {error}."], []
    return Table(
        title="Comparison of the machines over data sets and splits",
        grids=[*grids, _differences(cells, machines, facts)],
        notes=[
            *head,
            f"{BETTER} better, {WORSE} worse than {reference} at {LEVEL:g}, by a paired t-test "
            "over splits, p-values corrected by Holm's method over the whole table.",
            "Splits of a data set share rows: the tests speak of the machines on these data.",
            *facts.remarks,
        ],
    )


def with_results(cells: Cells) -> list[str]:
    """Return the machines that have a result somewhere."""
    found = {machine for line in measured_lines(cells, cells.machines) for machine in line}
    return [machine for machine in cells.machines if machine in found]


def ranks_of(cells: Cells) -> Ranks:
    """Return the ranks of the machines with results, over the data sets that all of them have.

    Raises
    ------
    ValueError
        If there are too few machines or data sets.
    """
    machines = with_results(cells)
    lines = measured_lines(cells, machines)
    whole = [line for line in lines if len(line) == len(machines)]
    return rank_machines([{m: line[m].mean for m in machines} for line in whole])


def _friedman(ranks: Ranks) -> list[str]:
    return [
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}. "
        "Rank 1 is best; accuracies are ranked as printed.",
        f"Nemenyi at {LEVEL:g}: mean ranks differ significantly from "
        f"{ranks.critical_difference:.2f} on.",
    ]


def _ranks(ranks: Ranks) -> Grid:
    order = sorted(ranks.means, key=lambda machine: ranks.means[machine])
    groups = ranks.cliques()
    rows = [
        [
            machine_label(machine),
            f"{ranks.means[machine]:.2f}",
            " ".join("ABCDEFGHIJ"[k] for k, group in enumerate(groups) if machine in group),
        ]
        for machine in order
    ]
    columns = (Column("machine", align="left"), Column("mean rank"), Column("group", align="left"))
    return Grid(columns, rows, "Mean ranks; machines of one group do not differ significantly")


def _differences(cells: Cells, machines: list[str], facts: Facts) -> Grid:
    reference, others = (machines or [""])[0], machines[1:]
    places = cells.places
    table = {(p, m): _difference(facts, p, reference, m) for p in places for m in others}
    corrected = holm([difference.p for difference in table.values()])
    for cell, p in zip(table, corrected, strict=True):
        table[cell] = table[cell]._replace(p=float(p))
    rows = []
    for place in places:
        name = place_name(cells, place, facts)
        rows.append([name, *(_text(table[place, machine]) for machine in others)])
    rows.append(["better/same/worse", *(str(_count(table, machine)) for machine in others)])
    columns = (Column("data", align="left"), *(Column(machine_label(m)) for m in others))
    caption = f"Accuracy less that of {machine_label(reference) or NOTHING} (corrected p)"
    return Grid(columns, rows, caption)


def split_gaps(facts: Facts, place: Key, machine: str, reference: str) -> list[float]:
    """Return the accuracy of a machine less another's on every split that both have done."""
    ours = facts.by_split.get(place._replace(machine=machine), {})
    theirs = facts.by_split.get(place._replace(machine=reference), {})
    return [ours[split] - theirs[split] for split in sorted(ours.keys() & theirs.keys())]


def _difference(facts: Facts, place: Key, reference: str, machine: str) -> Difference:
    gaps = split_gaps(facts, place, machine, reference)
    if not gaps:
        return Difference(float("nan"), float("nan"))
    return Difference(sum(gaps) / len(gaps), paired_p(gaps))


def _text(difference: Difference) -> str:
    if difference.mean != difference.mean:
        return NOTHING
    mark = (BETTER if difference.mean > 0 else WORSE) if difference.significant else ""
    p = f" ({difference.p:.2g})" if difference.p == difference.p else ""
    return f"{difference.mean:+.2f}{p} {mark}".rstrip().replace("-", WORSE)


def _count(table: dict[tuple[Key, str], Difference], machine: str) -> Counts:
    found = [difference for (_, name), difference in table.items() if name == machine]
    better = sum(d.significant and d.mean > 0 for d in found)
    worse = sum(d.significant and d.mean < 0 for d in found)
    return Counts(better, sum(d.p == d.p for d in found) - better - worse, worse)
