"""Differences between two machines: on the splits of a place, and over data sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.jobs.planned import Key
from mmbench.results.cells import (
    BOUND,
    CONFUSION,
    COUNTED,
    METRIC,
    MISSING,
    PUBLISHED_ONLY,
    WORST_CLASS,
    Row,
)
from mmbench.results.columns import typed
from mmbench.results.differences import NEW_DRAWS, Difference, difference, mean_covariance
from mmbench.results.frames import KernelKey, Results, Split, split_at
from mmbench.results.splits import counts_of_rows
from mmbench.results.statistics import Ranks, rank_machines, rank_stability
from mmbench.selection.metrics import METRICS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

#: Repeat and fold of the first run on an official test set, both counted from 0.
FIRST = (0, 0)
#: Column of the frame ``pairs`` with each field of `Difference`; the numbers of rows are apart.
FIELDS = {"rule": "rule", "k": "n", "n_train": "n_train", "n_test": "n_test", "d": "difference"}
FIELDS |= {"S2": "variance", "V_rows": "variance_rows", "q": "disagreement"}
FIELDS |= {"A": "variance_training"}


#: Metrics of records of which larger values are better.
LARGER = (METRIC, BOUND, WORST_CLASS)


def sign_of(metric: str) -> int:
    """Return -1 if smaller values of a metric are better, else 1."""
    larger = not METRICS[metric].smaller_is_better if metric in METRICS else metric in LARGER
    return 1 if larger else -1


def rank_decimals(metric: str) -> int:
    """Return the number of decimals to which a metric is rounded before machines are ranked."""
    return 2 if metric in LARGER else 4


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
    _, values = _ranked(results, kernel, metric)
    return rank_machines(values, rank_decimals(metric))


def stability_of_ranks(
    results: Results, kernel: KernelKey, metric: str = METRIC
) -> pd.DataFrame | None:
    """Return how much the order of `ranks_of` depends on chance; see `rank_stability`.

    The noise of the means is estimated from the splits and, for the accuracy, from the counts of
    right predictions per row if they are known. Returns None if the results of single splits are
    unknown. Raises ValueError where `ranks_of` does.
    """
    places, values = _ranked(results, kernel, metric)
    rank_machines(values)
    found = (_noise(results, place, list(values), metric) for place in places)
    noise = [V for V in found if V is not None]
    return (
        rank_stability(values, noise, rank_decimals(metric)) if len(noise) == len(places) else None
    )


def _ranked(results: Results, kernel: KernelKey, metric: str) -> tuple[list[Key], pd.DataFrame]:
    """Return the places and the values that are ranked; larger values are better."""
    places = results.places_of(kernel)
    machines = with_results(results, places, metric)
    rows = [[results.row(p._replace(machine=m), metric) for m in machines] for p in places]
    lacking = ([r.status == MISSING and r.measured is not None for r in own] for own in rows)
    places = [place for place, lacks in zip(places, lacking, strict=True) if not any(lacks)]
    values = sign_of(metric) * results.common(places, machines, metric).dropna()
    return [places[k] for k in values.index], values


def _noise(results: Results, place: Key, machines: Sequence[str], metric: str) -> NDArray | None:
    """Return the covariance matrix of the means of machines at a place; None if it is unknown."""
    keys = [place._replace(machine=machine) for machine in machines]
    values = [results.by_split(key, metric) for key in keys]
    common = sorted(set[Split].intersection(*map(set, values)))
    counts = [results.row_counts[key] for key in keys if key in results.row_counts]
    known = metric == METRIC and len(counts) == len(keys)
    rows = np.column_stack(counts) if known else None
    if not common or (len(common) < 2 and rows is None):
        return None
    per_split = np.array([[own[split] for own in values] for split in common])
    return mean_covariance(per_split, rows, results.row_counts.get(place))


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

    A split is missing in a cell if it is planned and has no record, or if only other cells in
    `keys` have a result on the split. If the
    results on single splits are unknown, the numbers of splits in the frame ``cells`` are compared.
    If the number of splits of a cell is unknown, the cell is treated as complete.
    """
    rows = [row for key in keys if (row := results.row(key, metric)).status != PUBLISHED_ONLY]
    splits = {row.key: results.by_split(row.key, metric) for row in rows}
    counts = {r.key: 0 if r.measured is None else len(splits[r.key]) or r.n for r in rows}
    most = max([len({at for own in splits.values() for at in own}), *filter(None, counts.values())])
    lacking = {row.key for row in rows if row.status == MISSING}
    return {key: n for key, n in counts.items() if n is not None and (n < most or key in lacking)}


# -- tests -----------------------------------------------------------------------------------------


def difference_of(
    results: Results, first: Key, second: Key, metric: str = METRIC
) -> Difference | None:
    """Return the difference between two machines at a place on their common splits: the first minus
    the second machine. The unit of errors is the accuracy in per cent.

    Returns None if there are no common splits.
    """
    metric = METRIC if metric in COUNTED else metric
    known, asked = results.differences, (first, second, metric)
    if asked not in known:
        known[asked] = _difference(results, *asked)
    return known[asked]


def _difference(results: Results, first: Key, second: Key, metric: str) -> Difference | None:
    row, sign = _pair_row(results, first, second, metric)
    if row is not None and row.difference is not None:
        stored = {name: getattr(row, column) for name, column in FIELDS.items()}
        stored["d"] *= sign
        stored["V_rows"] = math.nan if row.variance_rows is None else row.variance_rows
        wins, losses = (row.wins or 0, row.losses or 0)[::sign]
        return Difference(**stored, wins=wins, losses=losses)
    sides = [{split_at(row): row for row in results.counted(key)} for key in (first, second)]
    values = [results.by_split(key, metric) for key in (first, second)]
    common = sorted(values[0].keys() & values[1].keys())
    if not common:
        return None
    rows = [(sides[0][at], sides[1][at]) for at in common]
    gaps = [values[0][at] - values[1][at] for at in common]
    return paired((results, first), (results, second), rows, gaps, metric)


def paired(
    first: tuple[Results, Key],
    second: tuple[Results, Key],
    rows: Sequence[tuple[Row, Row]],
    gaps: Sequence[float],
    metric: str = METRIC,
) -> Difference:
    """Return the difference between two cells, of one or of two results, on their common splits.

    `rows` contains the splits of both cells, and `gaps` the difference of the metric on each. The
    second results state the rule of the splits.
    """
    n_train, n_test = ([getattr(b, part) for _, b in rows] for part in ("n_train", "n_test"))
    rule = split_rule(*second, len(rows), fmean(n_train), fmean(n_test))
    counts = counts_of(first, second, rows) if metric == METRIC else {}
    if ratio := second[0].plan.test_to_train:  # rows that `max_train` leaves out overlap as well
        n_train = [n / ratio for n in n_test]
    return difference(gaps, n_train, n_test, rule=rule, **counts)


def split_rule(results: Results, key: Key, k: int, n_train: float, n_test: float) -> str:
    """Return the rule of the splits. If the splits of a generated data set use each row once, each
    split is a new draw.
    """
    if results.has_official_test(key):
        return "official"
    rows = results.by_cell[key]
    rule = (rows[0].test or {}).get("rule", results.rule) if rows else results.rule
    pool = results.facts["sizes"].get(key.dataset, {}).get("n_rows", [0])[0]
    drawn = rule == "predefined" and k > 1 and pool >= len(rows) * (n_train + n_test)
    return NEW_DRAWS if drawn else rule or "predefined"


def counts_of(
    first: tuple[Results, Key], second: tuple[Results, Key], rows: Sequence[tuple[Row, Row]]
) -> dict[str, Any]:
    """Return the arguments `rows`, `tested` and `q` of `difference`, or none without predictions.

    `rows` contains the splits of both cells. The counts of rows of a reference folder are used if a
    cell has results on all its splits.
    """
    counts, hits = [], []
    for k, (results, key) in enumerate((first, second)):
        if results.has_records:
            parts = [results.tested(pair[k].record) for pair in rows]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return {}
            counts.append(counts_of_rows(known))
            hits.append([right for _, right in known])
        else:
            right = results.row_counts.get(key)
            tested = results.row_counts.get(key._replace(machine=""))
            if right is None or tested is None or tested.sum() != sum(p[k].n_test for p in rows):
                return {}
            counts.append((right, tested))
    (ours, tested), (theirs, others) = counts
    if not np.array_equal(tested, others):
        return {}
    both = len(hits) == 2  # a reference folder has no predictions of single splits
    apart = (np.count_nonzero(a != b) / len(a) for a, b in zip(*hits, strict=True)) if both else ()
    q = {"q": 100 * fmean(apart)} if both else {}
    return {"rows": ours - theirs, "tested": tested, **q}


def _pair_row(
    results: Results, first: Key, second: Key, metric: str = METRIC
) -> tuple[Row | None, int]:
    """Return the row of the frame ``pairs`` of a reference folder for two cells, or None; and -1 if
    its first machine is the second one here, else 1.
    """
    row = results.pair_rows.get((first, second, metric))
    return (row, 1) if row is not None else (results.pair_rows.get((second, first, metric)), -1)


def pair_frame(results: Results) -> pd.DataFrame:
    """Return the frame ``pairs``: the differences between all machines at each place, in the
    accuracy and in the metrics of the results.
    """
    import pandas as pd

    metrics = [METRIC, *(m for m in results.metrics if m not in (METRIC, CONFUSION, *COUNTED))]
    found = []
    for place, metric in itertools.product(results.places, metrics):
        keys = [place._replace(machine=m) for m in results.configured]
        keys = [key for key in keys if key in results.by_cell]
        for first, second in itertools.combinations(keys, 2):
            own = difference_of(results, first, second, metric)
            counts = disagreements(results, first, second) if metric == METRIC else None
            if own is None and counts is None:
                continue
            machines = {"machine_a": first.machine, "machine_b": second.machine, "metric": metric}
            row = {"experiment": results.name, **place._asdict(), **machines}
            del row["machine"]  # the empty one of the place
            if own is not None:
                tested = {"se": own.se, "df": own.df, "test": str(own.how)}
                row |= {column: getattr(own, name) for name, column in FIELDS.items()} | tested
            found.append(row | dict(zip(("wins", "losses"), counts or (None, None), strict=True)))
    return typed("pairs", pd.DataFrame(found))


def disagreements(results: Results, first: Key, second: Key) -> tuple[int, int] | None:
    """Return the number of test rows of the first run that only the first machine classifies
    correctly, and the number for the second machine; None if no predictions are stored, or if the
    test part is not the same in all runs.
    """
    row, sign = _pair_row(results, first, second)
    if row is not None and row.wins is not None:
        return (row.wins, row.losses)[::sign]
    if not results.has_records or not results.has_official_test(first):
        return None
    ours, theirs = (results.hits(key, FIRST) for key in (first, second))
    if ours is None or theirs is None:
        return None
    return int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
