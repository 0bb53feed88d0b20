"""Layout that compares the machines of any experiment: mean ranks, and significance tests.

The layout `comparison` shows mean ranks over data sets, with Nemenyi's critical difference. Over
all data sets, the first machine is compared with every other machine by Wilcoxon's signed-rank test
and by the Bayesian signed-rank test. On each data set, the first machine is compared with every
other machine by two tests over splits: the corrected resampled t-test and the Bayesian correlated
t-test. If all runs have the same test rows, McNemar's test of the predictions replaces both tests
over splits. Holm's method adjusts the p-values of each block for multiple tests.
"""

import math
from dataclasses import replace
from itertools import count
from statistics import fmean
from string import ascii_uppercase

import numpy as np

from mmbench.jobs.store import Key, grouped
from mmbench.results.cells import CONFUSION, COUNTED, METRIC
from mmbench.results.frames import KernelKey, Results
from mmbench.results.pairs import (
    MCNEMAR,
    RESAMPLED,
    dataset_gaps,
    incomplete,
    paired_test,
    rank_decimals,
    ranks_of,
    size_ratio,
    split_gaps,
    with_results,
)
from mmbench.results.statistics import (
    LEVEL,
    Ranks,
    correlated_posterior,
    holm,
    rank_biserial,
    signed_rank_posterior,
    wilcoxon_p,
)
from mmbench.tables.blocks import (
    BETTER,
    WORSE,
    by_machine,
    data_heads,
    definitions,
    direction,
    label,
    signed,
)
from mmbench.tables.compose import compose
from mmbench.tables.names import about, caption_of, name_of
from mmbench.tables.text import NOTHING, Grid, Table, join, numbers, words

#: Name of each paired test in the caption of the block of differences. The letter d stands for the
#: effect size that follows the p-value of the t-test.
TESTS = {RESAMPLED: "the corrected resampled t-test; d", MCNEMAR: MCNEMAR}
#: Half width of the region of practical equivalence: `ROPE_PCT` for accuracies in per cent, and
#: `ROPE` for all other metrics.
ROPE_PCT, ROPE = 1.0, 0.01


def rope_of(metric: str) -> float:
    """Return the largest absolute difference of a metric that is treated as practically zero."""
    return ROPE_PCT if metric == METRIC else ROPE


def decimals_of(metric: str) -> int:
    """Return the number of decimals for differences of a metric."""
    return 2 if metric == METRIC else 3


def comparison(results: Results) -> Table:
    """Return a table of mean ranks, tests over data sets, and tests over splits, for the first
    requested metric.

    The tests compare the first machine with every other machine. Machines without results are left
    out.
    """
    metric = next((name for name in results.metrics if name != CONFUSION), METRIC)
    every = results.columns
    results = results.with_columns(with_results(results, results.places, metric))
    notes, grids = [], []
    if left_out := [results.label(name) for name in every if name not in results.columns]:
        notes.append(f"Not compared, without results ({label(metric)}): {', '.join(left_out)}.")
    notes += _incomplete(results, metric)
    for kernel in results.kernels:
        caption = caption_of(results, kernel)
        try:
            ranks = ranks_of(results, kernel, metric)
        except ValueError as error:
            notes.append(f"{caption}: no ranks, {error}.")
        else:
            notes.append(
                f"{caption}: Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, "
                f"p = {ranks.p:.2g}, Kendall's W {ranks.concordance:.2f}. Rank 1 is best; values "
                f"are rounded to {rank_decimals(metric)} decimals. Nemenyi's critical difference "
                f"at {LEVEL:g}: {ranks.critical_difference:.2f}."
            )
            grids.append(_ranks(results, ranks, caption))
        grids.append(_over_data_sets(results, metric, kernel))
    notes += (
        _questions(results, metric, any(grid.rows for grid in grids)) + definitions(results)[:1]
    )
    title = f"Comparison of the machines over data sets and splits: {label(metric)}"
    return compose(results, title, [*grids, *_over_splits(results, metric)], *notes)


def _incomplete(results: Results, metric: str) -> list[str]:
    """Return sentences on table cells with missing splits, or an empty list."""
    every = ([place._replace(machine=m) for m in results.columns] for place in results.places)
    counts = [pair for keys in every for pair in incomplete(results, keys, metric).items()]
    found = grouped((results.row(key, metric).note or f"n = {n}", key) for key, n in counts)
    texts = [f"Missing splits of {about(results, keys)}: {note}." for note, keys in found.items()]
    common = "Ranks, differences and tests use common splits, if values of single splits are known."
    return [*texts, common] if texts else []


def _first(results: Results) -> str:
    """Return the label of the first machine, with which all other machines are compared."""
    return results.label(results.columns[0]) if results.columns else NOTHING


def _questions(results: Results, metric: str, over_data_sets: bool) -> list[str]:
    """Return sentences that state the null hypotheses of the significance tests, and the meaning of
    the probabilities of the Bayesian tests.
    """
    if not results.columns:
        return []
    reference, rope = _first(results), f"{rope_of(metric):g}"
    rows = (r for k in results.keys if (r := results.row(k, metric)).measured is not None)
    official = {results.has_official_test(row.key) for row in rows}
    of_data_sets = [
        "Tests of Friedman and Nemenyi: null hypothesis of equal mean ranks over data sets.",
        f"Wilcoxon's signed-rank test: null hypothesis of no difference from {reference} over data "
        "sets. Effect: rank-biserial correlation, from -1 (all worse) to 1 (all better).",
        "Bayesian signed-rank test: probabilities that a machine is worse, practically equivalent "
        f"(within {rope}) and better on a further data set.",
    ]
    on_test_part = ["McNemar's test: null hypothesis of equal error rates on the test part."]
    over_splits = [
        "Corrected resampled t-test: null hypothesis of equal expected results on a data set; the "
        "variance allows for training rows that splits share. d: mean difference divided by the "
        "standard deviation of the differences.",
        "Bayesian correlated t-test: probabilities that the mean difference on a data set is below "
        f"-{rope}, within {rope}, and above {rope}.",
    ]
    return [
        f"{BETTER} better, {WORSE} worse than {reference} at the level {LEVEL:g} (p-values "
        "Holm-corrected over the block).",
        *(of_data_sets if over_data_sets else []),
        *(on_test_part if True in official and metric in COUNTED else []),
        *(over_splits if official != {True} else []),
    ]


def _ranks(results: Results, ranks: Ranks, kernel: str) -> Grid:
    # Groups of machines without a significant difference are named A to Z, then AA, BB, and so on.
    letters = (letter * n for n in count(1) for letter in ascii_uppercase)
    groups, rows = list(zip(letters, ranks.cliques(), strict=False)), []
    for machine in ranks.order:
        own = " ".join(letter for letter, group in groups if machine in group)
        rows.append([results.label(machine), f"{ranks.means[machine]:.2f}", own])
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    return Grid((*words("machine"), *numbers("mean rank"), *words("group")), rows, caption)


def _over_data_sets(results: Results, metric: str, kernel: KernelKey) -> Grid:
    """Return a table block of tests over data sets.

    The first machine is compared with every other machine.
    """
    others = results.columns[1:]
    every = {m: dataset_gaps(results, kernel, m, results.columns[0], metric) for m in others}
    gaps = {m: values for m, values in every.items() if len(values) > 1}
    corrected, rows = holm([wilcoxon_p(values) for values in gaps.values()]), []
    for (machine, values), p in zip(gaps.items(), corrected, strict=True):
        mean = signed(float(np.mean(values)), decimals_of(metric))
        effect = signed(rank_biserial(values) if any(values) else 0.0)
        posterior = str(signed_rank_posterior(values, rope_of(metric)))
        rows.append([results.label(machine), str(len(values)), mean, f"{p:.2g}", effect, posterior])
    heads = ("data sets", "mean difference", "Wilcoxon p", "effect", "worse / equivalent / better")
    caption = f"{caption_of(results, kernel)}: differences from {_first(results)} over data sets"
    return Grid((*words("machine"), *numbers(*heads)), rows, caption)


def _over_splits(results: Results, metric: str) -> list[Grid]:
    """Return two table blocks that compare the first machine with all others on each data set.

    Two tests are used: the corrected resampled t-test and the Bayesian correlated t-test. If the
    data set has an official test part, McNemar's test replaces both tests.
    """
    others, decimals = results.columns[1:], decimals_of(metric)
    keys = [place._replace(machine=machine) for place in results.places for machine in others]
    gaps = {key: split_gaps(results, key, key.machine, results.columns[0], metric) for key in keys}
    tests = {
        k: paired_test(results, k, k._replace(machine=results.columns[0]), metric) for k in keys
    }
    corrected = dict(zip(keys, holm([p for p, _ in tests.values()]).tolist(), strict=True))
    # McNemar's test only uses the run with the first seed. If the difference in this run and the
    # mean difference over seeds have different signs, no mark is printed.
    agrees = {k for k, g in gaps.items() if g and (tests[k][1] == RESAMPLED or g[0] * sum(g) > 0)}
    found = {k for k in agrees if corrected[k] < LEVEL}
    marks = {k: direction(sum(g)) if k in found else "" for k, g in gaps.items() if g}

    def difference(key: Key) -> str:
        if not gaps[key]:
            return NOTHING
        mean, p, effect = fmean(gaps[key]), corrected[key], ""
        if math.isnan(p):
            return signed(mean, decimals)
        if tests[key][1] == RESAMPLED and (sd := float(np.std(gaps[key], ddof=1))):
            effect = f"; d {signed(mean / sd)}"
        return join(f"{signed(mean, decimals)} ({p:.2g}{effect})", marks[key])

    def better_same_worse(machine: str) -> str:
        own = [m for k, m in marks.items() if k.machine == machine and corrected[k] == corrected[k]]
        return "/".join(str(own.count(mark)) for mark in (BETTER, "", WORSE))

    def posterior(key: Key) -> str:
        own = [] if results.has_official_test(key) else gaps[key]
        ratio = size_ratio(results, key, results.columns[0])
        return str(correlated_posterior(own, rope_of(metric), ratio) or NOTHING)

    names = " or ".join(sorted({TESTS[name] for p, name in tests.values() if not math.isnan(p)}))
    test = f"Holm-corrected p of {names}" if names else "no test is possible"
    heads, caption = (
        data_heads(lambda place: name_of(results, place)),
        f"{label(metric)} minus {_first(results)} ({test})",
    )
    tested = by_machine(results, difference, caption, heads=heads, machines=others)
    tested.rows.append(["better/same/worse", *map(better_same_worse, others)])
    caption = (
        f"Probabilities: worse than {_first(results)} / practically equivalent / better "
        "(Bayesian correlated t-test over splits)"
    )
    weighed = by_machine(results, posterior, caption, heads=heads, machines=others)
    known = any(cell != NOTHING for row in weighed.rows for cell in row[1:])
    return [tested, weighed if known else replace(weighed, rows=[])]
