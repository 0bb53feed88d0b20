"""Averages over data sets, and the counting rules of the papers, measured and published."""

from collections.abc import Iterable, Sequence
from statistics import fmean

from mmbench.jobs.store import Key
from mmbench.tables.blocks.accuracy import METRIC
from mmbench.tables.counting import Sample, best_and_worst, win_tie_loss
from mmbench.tables.model import NOTHING
from mmbench.tables.sheet import Sheet

#: One sample a machine, for one data set.
Line = dict[str, Sample]


def measured_lines(sheet: Sheet, places: Iterable[Key], metric: str = METRIC) -> list[Line]:
    """Return what was measured at some places, as far as machines have results there."""
    return [
        {
            machine: Sample(row.measured, row.sd or 0.0, row.n or 0)
            for machine, row in zip(sheet.machines, sheet.line(place, metric), strict=True)
            if row is not None and row.measured is not None
        }
        for place in places
    ]


def published_lines(sheet: Sheet, places: Iterable[Key]) -> list[Line]:
    """Return what the paper prints at some places."""
    return [
        {
            row["machine"]: Sample(row["value"], row["std"], row["n_splits"])
            for row in sheet.published_of(place.dataset)
            if row["metric"] == METRIC
            and row["machine"] in sheet.machines
            and row["kernel"] == place.kernel
        }
        for place in places
    ]


def both(sheet: Sheet, places: Sequence[Key]) -> dict[str, list[Line]]:
    """Return the lines measured and published."""
    return {
        "measured": measured_lines(sheet, places),
        "published": published_lines(sheet, places),
    }


def best(lines: Iterable[Line], machines: Sequence[str], decimals: int) -> dict[str, tuple]:
    """Count the lines on which each machine is best and worst, of those that have all machines."""
    whole = [{m: sample.mean for m, sample in line.items()} for line in lines]
    return best_and_worst([line for line in whole if len(line) == len(machines)], decimals)


def average(lines: Sequence[Line], machine: str) -> str:
    """Return the mean over all lines; a machine without a result on some has none."""
    means = [line[machine].mean for line in lines if machine in line]
    return f"{fmean(means):.2f}" if means and len(means) == len(lines) else NOTHING


def against(lines: Iterable[Line], reference: str, machine: str) -> str:
    """Count on how many lines a reference wins, ties and loses against a machine."""
    pairs = [
        (line[reference], line[machine])
        for line in lines
        if reference in line and machine in line and min(line[reference].n, line[machine].n) > 1
    ]
    return str(win_tie_loss(pairs)) if pairs and machine != reference else NOTHING
