"""Differences between two machines: on the splits of a place, and over data sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mmbench.jobs.store import Key
from mmbench.results.cells import COUNTED, METRIC, PUBLISHED_ONLY
from mmbench.results.frames import KernelKey, Results
from mmbench.results.statistics import Ranks, mcnemar_p, paired_p, rank_machines, wins_and_losses
from mmbench.selection.metrics import METRICS

#: Repeat and fold of the first run on an official test set, both counted from 0.
FIRST = (0, 0)
#: Names of the paired tests.
RESAMPLED, MCNEMAR = "the corrected resampled t-test over splits", "McNemar's test on the test part"


def sign_of(metric: str) -> int:
    """Return -1 if smaller values of a metric are better, else 1."""
    smaller = METRICS[metric].smaller_is_better if metric in METRICS else metric != METRIC
    return -1 if smaller else 1


def rank_decimals(metric: str) -> int:
    """Return the number of decimals to which a metric is rounded before machines are ranked."""
    return 2 if metric == METRIC else 4


def with_results(results: Results, places: Sequence[Key], metric: str = METRIC) -> list[str]:
    """Return the machines that have a result for at least one of the `places`."""
    return list(map(str, results.wide(places, metric).dropna(axis=1, how="all")))


def ranks_of(results: Results, kernel: KernelKey, metric: str = METRIC) -> Ranks:
    """Return the mean ranks of the machines over the data sets, for one kernel.

    Machines without results are left out. The ranked values are means over common splits, on which
    all ranked machines have results. Data sets on which the machines have no common split are left
    out. Each kernel has its own mean ranks, since the results of two kernels on one data set are
    dependent. Raises ValueError for fewer than three machines or fewer than two data sets.
    """
    places = results.places_of(kernel)
    values = results.common(places, with_results(results, places, metric), metric).dropna()
    return rank_machines(sign_of(metric) * values, rank_decimals(metric))


def split_gaps(
    results: Results, place: Key, machine: str, reference: str, metric: str = METRIC
) -> list[float]:
    """Return, for each split, the improvement of the machine `machine` over the machine
    `reference`.

    Only splits on which both machines have results are used. The improvements are rounded to nine
    decimals: rounding errors would make equal improvements different, and zero improvements
    positive or negative.
    """
    keys = (place._replace(machine=name) for name in (machine, reference))
    ours, theirs = (results.by_split(key, metric) for key in keys)
    common = sorted(ours.keys() & theirs.keys())
    return [round(sign_of(metric) * (ours[split] - theirs[split]), 9) for split in common]


def dataset_gaps(
    results: Results, kernel: KernelKey, machine: str, reference: str, metric: str = METRIC
) -> list[float]:
    """Return, for each data set, the improvement of the machine `machine` over the machine
    `reference`.

    The improvement is the difference of the means over common splits, on which both machines have
    results, rounded as in `split_gaps`. Data sets on which the machines have no common split are
    left out.
    """
    values = results.common(results.places_of(kernel), [machine, reference], metric)
    return list((sign_of(metric) * (values[machine] - values[reference])).dropna().round(9))


def incomplete(results: Results, keys: Sequence[Key], metric: str) -> dict[Key, int]:
    """Return the cells with missing splits, and for each of them the number of splits with a
    result.

    A split is missing in a cell if only other cells in `keys` have a result on the split. If the
    results on single splits are unknown, the numbers of splits in the frame ``cells`` are compared.
    If the number of splits of a cell is unknown, the cell is treated as complete.
    """
    rows = [row for key in keys if (row := results.row(key, metric)).status != PUBLISHED_ONLY]
    splits = {row.key: results.by_split(row.key, metric) for row in rows}
    counts = {r.key: 0 if r.measured is None else len(splits[r.key]) or r.n for r in rows}
    most = max([len({at for own in splits.values() for at in own}), *filter(None, counts.values())])
    return {key: n for key, n in counts.items() if n is not None and n < most}


def size_ratio(results: Results, key: Key, reference: str) -> float:
    """Return the number of test rows divided by the number of training rows, or 0 if unknown.

    Both numbers are summed over the splits on which the machine of `key` and the machine
    `reference` have results. If the plan states a ratio, the ratio of the plan is returned. The
    plan counts training rows before ``max_train`` excludes some of them, since the excluded rows
    also determine the overlap of the training parts of two splits.
    """
    common = results.by_split(key._replace(machine=reference))
    sizes = (results.by_split(key, name) for name in ("n_test", "n_train"))
    n_test, n_train = (sum(n for at, n in own.items() if at in common) for own in sizes)
    return results.plan.test_to_train or (n_test / n_train if n_train else 0.0)


def paired_test(results: Results, key: Key, best: Key, metric: str) -> tuple[float, str]:
    """Compare two machines on a data set by a paired test. Return the p-value and the name of the
    test.

    If the test is not possible, the p-value is NaN.

    In general, the test is the corrected resampled t-test over splits. On an official test part,
    however, runs with different seeds have the same test rows, so that a test over seeds would
    ignore the sampling error of the test part. Therefore, McNemar's test is applied to the
    predictions of the run with the first seed.
    """
    if not results.has_official_test(key):
        gaps = split_gaps(results, key, key.machine, best.machine, metric)
        return paired_p(gaps, size_ratio(results, key, best.machine)), RESAMPLED
    counts = disagreements(results, key, best) if metric in COUNTED else None
    return (mcnemar_p(*counts) if counts else math.nan), MCNEMAR


def disagreements(results: Results, first: Key, second: Key) -> tuple[int, int] | None:
    """Return the number of test rows of the first run that only the first machine classifies
    correctly, and the number for the second machine; None if no predictions are stored.
    """
    hits = [results.hits(key, FIRST) for key in (first, second)]
    if hits[0] is not None and hits[1] is not None:
        return wins_and_losses(*hits)
    return results.stored_disagreements.get((first, second))
