"""Layout that compares the machines of any experiment: mean ranks, and significance tests.

The layout `comparison` shows mean ranks over data sets, with Nemenyi's critical difference. Over
all data sets, the first machine is compared with every other machine by Wilcoxon's signed-rank test
and by the Bayesian signed-rank test. On each data set, the first machine is compared with every
other machine by two tests over splits: the corrected resampled t-test and the Bayesian correlated
t-test. Holm's method adjusts the p-values of each block for multiple tests.
"""

import math
from dataclasses import replace
from itertools import count
from statistics import fmean
from string import ascii_uppercase

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    BETTER,
    WORSE,
    by_machine,
    data_heads,
    dataset_gaps,
    definitions,
    direction,
    label,
    ranks_of,
    signed,
    size_ratio,
    split_gaps,
    with_results,
)
from mmbench.tables.compose import compose
from mmbench.tables.frame import CONFUSION, METRIC
from mmbench.tables.model import NOTHING, Grid, Table, join, kernel_caption, numbers, words
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.statistics import (
    LEVEL,
    Counts,
    Ranks,
    correlated_posterior,
    holm,
    paired_p,
    rank_biserial,
    signed_rank_posterior,
    wilcoxon_p,
)

#: Half width of the region of practical equivalence: for accuracies in per cent, and for other
#: metrics.
ROPE_PCT, ROPE = 1.0, 0.01


def rope_of(metric: str) -> float:
    """Return the largest absolute difference of a metric that counts as practically zero."""
    return ROPE_PCT if metric == METRIC else ROPE


def decimals_of(metric: str) -> int:
    """Return the number of decimals for differences of a metric."""
    return 2 if metric == METRIC else 3


def comparison(sheet: Sheet) -> Table:
    """Return a table of mean ranks, tests over data sets, and tests over splits, for the first
    requested metric.

    The tests compare the first machine with every other machine. Machines without results are left
    out.
    """
    metric = next((name for name in sheet.metrics if name != CONFUSION), METRIC)
    every, sheet.machines = sheet.machines, with_results(sheet, metric)
    notes, grids = [], []
    if left_out := [sheet.label(name) for name in every if name not in sheet.machines]:
        notes.append(f"Not compared, without results ({label(metric)}): {', '.join(left_out)}.")
    for kernel in sheet.kernels:
        caption = kernel_caption(*kernel)
        try:
            ranks = ranks_of(sheet, kernel, metric)
        except ValueError as error:
            notes.append(f"{caption}: no ranks, {error}.")
        else:
            notes.append(
                f"{caption}: Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, "
                f"p = {ranks.p:.2g}, Kendall's W {ranks.concordance:.2f}. Rank 1 is best; values "
                f"are ranked as printed. Nemenyi's critical difference at {LEVEL:g}: "
                f"{ranks.critical_difference:.2f}."
            )
            grids.append(_ranks(sheet, ranks, caption))
        grids.append(_over_data_sets(sheet, metric, kernel))
    notes += _questions(sheet, metric, any(grid.rows for grid in grids)) + definitions(sheet)[:1]
    title = f"Comparison of the machines over data sets and splits: {label(metric)}"
    return compose(sheet, title, [*grids, *_over_splits(sheet, metric)], *notes)


def _first(sheet: Sheet) -> str:
    """Return the label of the first machine, with which the tests compare all other machines."""
    return sheet.label(sheet.machines[0]) if sheet.machines else NOTHING


def _questions(sheet: Sheet, metric: str, over_data_sets: bool) -> list[str]:
    """Return sentences that explain each test: its null hypothesis, or the probabilities that it
    states.
    """
    if not sheet.machines:
        return []
    reference, rope = _first(sheet), f"{rope_of(metric):g}"
    of_data_sets = [
        "Tests of Friedman and Nemenyi: null hypothesis of equal mean ranks over data sets.",
        f"Wilcoxon's signed-rank test: null hypothesis of no difference from {reference} over data "
        "sets. Effect: rank-biserial correlation, from -1 (all worse) to 1 (all better).",
        "Bayesian signed-rank test: probabilities that a machine is worse, practically equivalent "
        f"(within {rope}) and better on a further data set.",
    ]
    return [
        f"{BETTER} better, {WORSE} worse than {reference} at the level {LEVEL:g} (p-values "
        "Holm-corrected over the block).",
        *(of_data_sets if over_data_sets else []),
        "Corrected resampled t-test: null hypothesis of equal expected results on a data set; the "
        "variance allows for training rows that splits share. d: mean difference divided by the "
        "standard deviation of the differences.",
        "Bayesian correlated t-test: probabilities that the mean difference on a data set is below "
        f"-{rope}, within {rope}, and above {rope}.",
    ]


def _ranks(sheet: Sheet, ranks: Ranks, kernel: str) -> Grid:
    # Groups are named A to Z, then AA, BB, and so on.
    letters = (letter * n for n in count(1) for letter in ascii_uppercase)
    groups = list(zip(letters, ranks.cliques(), strict=False))
    rows = []
    for machine in ranks.order:
        own = " ".join(letter for letter, group in groups if machine in group)
        rows.append([sheet.label(machine), f"{ranks.means[machine]:.2f}", own])
    columns = (*words("machine"), *numbers("mean rank"), *words("group"))
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    return Grid(columns, rows, caption)


def _over_data_sets(sheet: Sheet, metric: str, kernel: KernelKey) -> Grid:
    """Return a table block of tests over data sets.

    The first machine is compared with every other machine.
    """
    every = {m: dataset_gaps(sheet, kernel, m, sheet.machines[0], metric) for m in sheet.machines}
    gaps = {m: values for m, values in list(every.items())[1:] if len(values) > 1}
    corrected, rows = holm([wilcoxon_p(values) for values in gaps.values()]), []
    for (machine, values), p in zip(gaps.items(), corrected, strict=True):
        mean = signed(float(np.mean(values)), decimals_of(metric))
        effect = signed(rank_biserial(values) if any(values) else 0.0)
        posterior = str(signed_rank_posterior(values, rope_of(metric)))
        rows.append([sheet.label(machine), str(len(values)), mean, f"{p:.2g}", effect, posterior])
    heads = ("data sets", "mean difference", "Wilcoxon p", "effect", "worse / equivalent / better")
    caption = f"{kernel_caption(*kernel)}: differences from {_first(sheet)} over data sets"
    return Grid((*words("machine"), *numbers(*heads)), rows, caption)


def _over_splits(sheet: Sheet, metric: str) -> list[Grid]:
    """Return two table blocks of tests over the splits of each data set.

    The first machine is compared with every other machine. The first of the two blocks contains the
    corrected resampled t-test. The second of the two blocks contains the Bayesian correlated
    t-test.
    """
    others, decimals = sheet.machines[1:], decimals_of(metric)
    keys = [place._replace(machine=machine) for place in sheet.places for machine in others]
    gaps = {key: split_gaps(sheet, key, key.machine, sheet.machines[0], metric) for key in keys}
    raw = [paired_p(gaps[key], size_ratio(sheet, key)) for key in keys]
    corrected = dict(zip(keys, holm(raw).tolist(), strict=True))

    def difference(key: Key) -> str:
        if not gaps[key]:
            return NOTHING
        mean, p, effect = fmean(gaps[key]), corrected[key], ""
        if math.isnan(p):
            return signed(mean, decimals)
        if sd := float(np.std(gaps[key], ddof=1)):
            effect = f"; d {signed(mean / sd)}"
        mark = direction(mean) if p < LEVEL else ""
        return join(f"{signed(mean, decimals)} ({p:.2g}{effect})", mark)

    def better_same_worse(machine: str) -> str:
        p_values = [(key, p) for key, p in corrected.items() if key.machine == machine and p == p]
        signs = [np.sign(fmean(gaps[key])) if p < LEVEL else 0 for key, p in p_values]
        return str(Counts(*map(signs.count, (1, 0, -1))))

    def posterior(key: Key) -> str:
        ratio = size_ratio(sheet, key)
        return str(correlated_posterior(gaps[key], rope_of(metric), ratio) or NOTHING)

    captions = {
        difference: f"{label(metric)} minus {_first(sheet)} (Holm-corrected p of the corrected "
        "resampled t-test; d)",
        posterior: f"Probabilities: worse than {_first(sheet)} / practically equivalent / better "
        "(Bayesian correlated t-test over splits)",
    }
    tested, weighed = (
        by_machine(sheet, text, caption, heads=data_heads(sheet.name), machines=others)
        for text, caption in captions.items()
    )
    tested.rows.append(["better/same/worse", *map(better_same_worse, others)])
    known = any(cell != NOTHING for row in weighed.rows for cell in row[1:])
    return [tested, weighed if known else replace(weighed, rows=[])]
