"""Layout that compares the machines of any experiment: mean ranks, and significance tests.

docs/compare.md lists the tests. Holm's method adjusts the p-values of each block.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, product
from statistics import fmean
from string import ascii_uppercase
from typing import TYPE_CHECKING

import numpy as np

from mmbench.jobs.planned import Key, grouped
from mmbench.results.cells import BELOW_BOUND, BOUND, CONFUSION, METRIC, STORED, WORST_CLASS
from mmbench.results.differences import Difference
from mmbench.results.frames import KernelKey, Results
from mmbench.results.pairwise import (
    LARGER,
    dataset_gaps,
    difference_of,
    incomplete,
    rank_decimals,
    ranks_of,
    sign_of,
    stability_of_ranks,
    with_results,
)
from mmbench.results.statistics import (
    LEVEL,
    RANK_DRAWS,
    Posterior,
    Ranks,
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

if TYPE_CHECKING:
    import pandas as pd

#: Half width of the region of practical equivalence: `ROPE_PCT` for accuracies in per cent, and
#: `ROPE` for all other metrics.
ROPE_PCT, ROPE = 1.0, 0.01


#: Legend of the columns of `rank_stability`.
STABILITY = (
    f"P(first), place and P(turn): from {RANK_DRAWS} draws of the data sets with replacement, with "
    "noise of the size of the standard errors. P(first): probability of the smallest mean rank. "
    "Place: 90 % interval of the place in the order by mean rank. P(turn): probability that the "
    "machine of the next line has the smaller mean rank."
)


def rope_of(metric: str) -> float:
    """Return the largest absolute difference of a metric that is treated as practically zero."""
    return ROPE_PCT if metric in LARGER else ROPE


def decimals_of(metric: str) -> int:
    """Return the number of decimals for differences of a metric."""
    return 2 if metric in LARGER else 3


def comparison(results: Results) -> Table:
    """Return a table of mean ranks, tests over data sets, and tests over splits, for the first
    requested metric; for the accuracy, if this metric is a result of records, such as errors.

    The tests compare the first machine with every other machine. Machines without results are left
    out.
    """
    asked = next((name for name in results.metrics if name != CONFUSION), METRIC)
    metric, every = METRIC if asked in STORED else asked, results.columns
    results = results.with_columns(with_results(results, results.places, metric))
    notes, grids = [], []
    if metric != asked:
        notes.append(f"Compared by the accuracy, as there is no test of: {label(asked)}.")
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
            concordance = ranks.statistic / ranks.n / (len(ranks.means) - 1)
            notes.append(
                f"{caption}: Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, "
                f"p = {ranks.p:.2g}, Kendall's W {concordance:.2f}. Rank 1 is best; values "
                f"are rounded to {rank_decimals(metric)} decimals. Nemenyi's critical difference "
                f"at {LEVEL:g}: {ranks.critical_difference:.2f}."
            )
            stability = stability_of_ranks(results, kernel, metric)
            grids.append(_ranks(results, ranks, stability, caption))
            notes += [STABILITY] if stability is not None and STABILITY not in notes else []
        grids.append(_over_data_sets(results, metric, kernel))
    notes += (
        _questions(results, metric, any(grid.rows for grid in grids)) + definitions(results)[:1]
    )
    title = f"Comparison of the machines over data sets and splits: {label(metric)}"
    return compose(
        results, title, [*grids, *_over_splits(results, metric), worst_cases(results)], *notes
    )


def _incomplete(results: Results, metric: str) -> list[str]:
    """Return sentences on table cells with missing splits, or an empty list."""
    every = ([place._replace(machine=m) for m in results.columns] for place in results.places)
    counts = [pair for keys in every for pair in incomplete(results, keys, metric).items()]
    found = grouped((results.row(key, metric).note or f"n = {n}", key) for key, n in counts)
    texts = [f"Missing splits of {about(results, keys)}: {note}." for note, keys in found.items()]
    common = "Differences and tests use common splits. There are no ranks where splits are missing."
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
    of_data_sets = [
        "Tests of Friedman and Nemenyi: null hypothesis of equal mean ranks over data sets.",
        f"Wilcoxon's signed-rank test: null hypothesis of no difference from {reference} over data "
        "sets. Effect: rank-biserial correlation, from -1 (all worse) to 1 (all better).",
        "Bayesian signed-rank test: probabilities that a machine is worse, practically equivalent "
        f"(within {rope}) and better on a further data set.",
    ]
    over_splits = [
        "Test on a data set: null hypothesis of equal expected results. The standard error counts "
        "each row of the data set once, and the variation over training sets; on an official test "
        "part, the test compares the trained machines.",
        "Bayesian test on a data set: probabilities that the expected difference is below "
        f"-{rope}, within {rope}, and above {rope}.",
    ]
    return [
        f"{BETTER} better, {WORSE} worse than {reference} at the level {LEVEL:g} (p-values "
        "Holm-corrected over the block).",
        *(of_data_sets if over_data_sets else []),
        *over_splits,
    ]


def worst_cases(results: Results) -> Grid:
    """Return a table block of the bounds on the accuracy of the worse class: means over data sets,
    and the number of splits in which the accuracy on test rows is below the bound.
    """
    stated = [key for key in results.keys if results.row(key, BELOW_BOUND).metric]
    rows = []
    for (machine, kernel), keys in grouped(((k.machine, k.kernel), k) for k in stated).items():
        means = [
            fmean(results.row(key, name).measured for key in keys) for name in (BOUND, WORST_CLASS)
        ]
        below = [results.row(key, BELOW_BOUND) for key in keys]
        k, n = sum(round(r.measured * r.n / 100) for r in below), sum(r.n for r in below)
        texts = (f"{mean:.1f}" for mean in means)
        rows.append([results.label(machine), kernel, str(len(keys)), *texts, f"{k} of {n}"])
    heads = numbers("data sets", "bound (%)", "on test rows (%)", "splits below the bound")
    caption = (
        "Accuracy of the worse class: bound for the moments of the training rows, and test rows"
    )
    return Grid((*words("machine", "kernel"), *heads), rows, caption)


def _ranks(results: Results, ranks: Ranks, stability: pd.DataFrame | None, kernel: str) -> Grid:
    # Groups of machines without a significant difference are named A to Z, then AA, BB, and so on.
    letters = (letter * n for n in count(1) for letter in ascii_uppercase)
    groups, rows = list(zip(letters, ranks.cliques(), strict=False)), []
    for machine in ranks.means:
        own = " ".join(letter for letter, group in groups if machine in group)
        chance = () if stability is None else stability_texts(stability.loc[machine])
        rows.append([results.label(machine), f"{ranks.means[machine]:.2f}", own, *chance])
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    heads = (*words("machine"), *numbers("mean rank"), *words("group"))
    more = () if stability is None else numbers("P(first)", "place", "P(turn)")
    return Grid((*heads, *more), rows, caption)


def stability_texts(row: pd.Series) -> tuple[str, str, str]:
    """Return P(first), the interval of the place, and P(turn), for a row of `rank_stability`."""
    low, high = row.place_low, row.place_high
    places = f"{low:g}" if low == high else f"{low:g} to {high:g}"
    turn = NOTHING if math.isnan(row.p_turn) else f"{row.p_turn:.2f}"
    return f"{row.p_first:.2f}", places, turn


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
    gap, of = ("difference", "from") if sign_of(metric) > 0 else ("improvement", "over")
    heads = ("data sets", f"mean {gap}", "Wilcoxon p", "effect", "worse / equivalent / better")
    caption = f"{caption_of(results, kernel)}: {gap}s {of} {_first(results)} over data sets"
    return Grid((*words("machine"), *numbers(*heads)), rows, caption)


def _over_splits(results: Results, metric: str) -> list[Grid]:
    """Return two table blocks that compare the first machine with all others on each data set: the
    test of `mmbench.results.differences`, and the Bayesian test with the same standard error.
    """
    others, decimals, known = results.columns[1:], decimals_of(metric), dict[Key, Difference]()
    for place, machine in product(results.places, others):
        key, first = (place._replace(machine=name) for name in (machine, results.columns[0]))
        if (own := difference_of(results, key, first, metric)) is not None:
            known[key] = own
    # adding 0.0 turns -0.0 into 0.0
    gains = {key: sign_of(metric) * own.d + 0.0 for key, own in known.items()}
    corrected = dict(zip(known, holm([own.p for own in known.values()]).tolist(), strict=True))
    marks = {key: direction(gains[key]) if corrected[key] < LEVEL else "" for key in known}

    def difference(key: Key) -> str:
        if key not in known:
            return NOTHING
        text, p = signed(gains[key], decimals), corrected[key]
        return text if math.isnan(p) else join(f"{text} ({p:.2g})", marks[key])

    def better_same_worse(machine: str) -> str:
        tested = (key for key in known if key.machine == machine and known[key].tested)
        own = [marks[key] for key in tested]
        return "/".join(str(own.count(mark)) for mark in (BETTER, "", WORSE))

    def posterior(key: Key) -> str:
        own = known[key].posterior(rope_of(metric)) if key in known else None
        if own is None:
            return NOTHING
        return str(own if sign_of(metric) > 0 else Posterior(*own[::-1]))

    hows = ", ".join(sorted({str(own.how) for own in known.values() if own.tested}))
    test = f"Holm-corrected p; standard error: {hows}" if hows else "no test is possible"
    heads = data_heads(lambda place: name_of(results, place))
    caption = f"{label(metric)} minus {_first(results)} ({test})"
    if sign_of(metric) < 0:
        caption = f"{label(metric)}: improvement over {_first(results)} ({test})"
    tested = by_machine(results, difference, caption, heads=heads, machines=others)
    tested.rows.append(["better/same/worse", *map(better_same_worse, others)])
    caption = (
        f"Probabilities: worse than {_first(results)} / practically equivalent / better "
        "(Bayesian test over splits with the same standard error)"
    )
    weighed = by_machine(results, posterior, caption, heads=heads, machines=others)
    any_known = any(cell != NOTHING for row in weighed.rows for cell in row[1:])
    return [tested, weighed if any_known else replace(weighed, rows=[])]
