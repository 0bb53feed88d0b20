"""Differences between machines: ranks over data sets, paired tests over splits."""

from __future__ import annotations

from mmbench.jobs.plan import Key
from mmbench.tables.blocks.counts import measured_lines
from mmbench.tables.ranks import Ranks, rank_machines
from mmbench.tables.sheet import KernelKey, Sheet

BETTER, WORSE = "+", "−"


def with_results(sheet: Sheet) -> list[str]:
    """Return the machines that have a result somewhere."""
    found = {machine for line in measured_lines(sheet, sheet.places) for machine in line}
    return [machine for machine in sheet.machines if machine in found]


def ranks_of(sheet: Sheet, kernel: KernelKey) -> Ranks:
    """Return the ranks of the machines with results, over the data sets that all of them have.

    One kernel at a time: a data set with another kernel is no independent data set.

    Raises
    ------
    ValueError
        If there are too few machines or data sets.
    """
    lines = measured_lines(sheet, sheet.places_of(kernel))
    machines = [machine for machine in sheet.machines if any(machine in line for line in lines)]
    whole = [line for line in lines if len(line) == len(machines)]
    return rank_machines([{m: line[m].mean for m in machines} for line in whole])


def split_gaps(sheet: Sheet, place: Key, machine: str, reference: str) -> list[float]:
    """Return the accuracy of a machine less another's on every split that both have done."""
    ours = sheet.facts.by_split.get(place._replace(machine=machine), {})
    theirs = sheet.facts.by_split.get(place._replace(machine=reference), {})
    return [ours[split] - theirs[split] for split in sorted(ours.keys() & theirs.keys())]


def signed(difference: float) -> str:
    """Return a difference with its sign, as printed."""
    return f"{difference:+.2f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return whether a significant difference is for or against a machine."""
    return BETTER if difference > 0 else WORSE
