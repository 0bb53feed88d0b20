"""Differences between machines: ranks over data sets, paired tests over splits."""

from mmbench.jobs.store import Key
from mmbench.tables.blocks.counts import measured_lines
from mmbench.tables.blocks.metrics import row_name, smaller_is_better
from mmbench.tables.ranks import Ranks, rank_machines
from mmbench.tables.sheet import KernelKey, Sheet

ACCURACY = "accuracy"
BETTER, WORSE = "+", "−"


def with_results(sheet: Sheet, metric: str = ACCURACY) -> list[str]:
    """Return the machines that have a result somewhere."""
    lines = measured_lines(sheet, sheet.places, row_name(metric))
    found = {machine for line in lines for machine in line}
    return [machine for machine in sheet.machines if machine in found]


def ranks_of(sheet: Sheet, kernel: KernelKey, metric: str = ACCURACY) -> Ranks:
    """Return the ranks of the machines with results, over the data sets that all of them have.

    One kernel at a time: a data set with another kernel is no independent data set.

    Raises
    ------
    ValueError
        If there are too few machines or data sets.
    """
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    machines = [machine for machine in sheet.machines if any(machine in line for line in lines)]
    whole = [line for line in lines if len(line) == len(machines)]
    sign = -1 if smaller_is_better(metric) else 1
    decimals = 2 if metric == ACCURACY else 4
    return rank_machines([{m: sign * line[m].mean for m in machines} for line in whole], decimals)


def split_gaps(
    sheet: Sheet, place: Key, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return how much better a machine is than another on every split that both have done."""
    keys = [place._replace(machine=name) for name in (machine, reference)]
    if metric == ACCURACY:
        ours, theirs = (sheet.facts.by_split.get(key, {}) for key in keys)
    else:
        ours, theirs = (sheet.facts.measures.values.get((key, metric), {}) for key in keys)
    both = sorted(ours.keys() & theirs.keys())
    sign = -1 if smaller_is_better(metric) else 1
    return [sign * (ours[split] - theirs[split]) for split in both]


def dataset_gaps(
    sheet: Sheet, kernel: KernelKey, machine: str, reference: str, metric: str = ACCURACY
) -> list[float]:
    """Return how much better the mean of a machine is than another's on every data set."""
    lines = measured_lines(sheet, sheet.places_of(kernel), row_name(metric))
    both = [line for line in lines if machine in line and reference in line]
    sign = -1 if smaller_is_better(metric) else 1
    return [sign * (line[machine].mean - line[reference].mean) for line in both]


def test_to_train(sheet: Sheet, place: Key) -> float:
    """Return the rows tested on over the rows trained on, 0 where they are not known."""
    sizes = sheet.facts.sizes.get(place.dataset, {})
    return sizes["n_test"] / sizes["n_train"] if {"n_test", "n_train"} <= sizes.keys() else 0.0


def signed(difference: float, decimals: int = 2) -> str:
    """Return a difference with its sign, as printed."""
    return f"{difference:+.{decimals}f}".replace("-", WORSE)


def direction(difference: float) -> str:
    """Return whether a significant difference is for or against a machine."""
    return BETTER if difference > 0 else WORSE
