"""Any experiment: ranks and tests over data sets, paired tests over splits, Bayesian ones of both.

Over data sets, mean ranks are shown with the critical difference of Nemenyi, and every machine is
compared with the first machine by Wilcoxon's and the Bayesian signed-rank test. On each data set,
machines are compared by the corrected resampled t-test and the Bayesian correlated t-test over
splits. All p-values of one block are adjusted together by Holm's method.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from statistics import fmean
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    ACCURACY,
    BETTER,
    WORSE,
    by_machine,
    dataset_gaps,
    definitions,
    direction,
    label,
    ranks_of,
    signed,
    split_gaps,
    test_to_train,
    with_results,
)
from mmbench.tables.compose import compose
from mmbench.tables.measures import CONFUSION
from mmbench.tables.model import NOTHING, Column, Grid, Table, join, kernel_caption
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

ANY_METRIC = True
#: Half width of the region of practical equivalence (1 %), in per cent and as a fraction.
ROPE_PCT, ROPE = 1.0, 0.01


class Comparison(NamedTuple):
    """Comparison of all machines with the first one by one metric."""

    sheet: Sheet
    metric: str

    @property
    def decimals(self) -> int:
        """Number of printed decimals of a difference."""
        return 2 if self.metric == ACCURACY else 3

    @property
    def rope(self) -> float:
        """Largest absolute difference that is practically equivalent to zero."""
        return ROPE_PCT if self.metric == ACCURACY else ROPE

    @property
    def reference(self) -> str:
        """Machine with which the other machines are compared."""
        return self.sheet.machines[0]

    @property
    def others(self) -> list[str]:
        """Machines that are compared with the reference machine."""
        return self.sheet.machines[1:]

    @property
    def name(self) -> str:
        """Label of the reference machine."""
        return self.sheet.label(self.reference) if self.sheet.machines else NOTHING

    def gaps(self, key: Key) -> list[float]:
        """Return the differences from the reference machine on the splits of a data set."""
        return split_gaps(self.sheet, key, key.machine, self.reference, self.metric)

    def grid(self, cell: Callable[[Key], str], caption: str) -> Grid:
        """Return one row per data set and kernel, and one column per machine in `others`."""
        words = self.sheet.columns("data", machines=())

        def heads(place: Key) -> list[str]:
            return [self.sheet.name(place)]

        return by_machine(self.sheet, cell, caption, heads=heads, words=words, machines=self.others)


def layout(sheet: Sheet) -> Table:
    """Return ranks, tests over data sets and paired tests over splits for the first metric."""
    numbers = [name for name in sheet.metrics if name != CONFUSION]
    found = Comparison(sheet, (numbers or [ACCURACY])[0])
    every, sheet.machines = sheet.machines, with_results(sheet, found.metric)
    head, grids = [], []
    if left_out := [sheet.label(name) for name in every if name not in sheet.machines]:
        what = label(found.metric)
        head.append(f"Not compared, as there is no result of them ({what}): {', '.join(left_out)}.")
    for kernel in sheet.kernels:
        try:
            ranks = ranks_of(sheet, kernel, found.metric)
        except ValueError as error:
            head.append(f"{kernel_caption(*kernel)}: no ranks, {error}.")
        else:
            head.append(f"{kernel_caption(*kernel)}: {_friedman(ranks)}")
            grids.append(_ranks(sheet, ranks, kernel_caption(*kernel)))
        grids.append(_over_data_sets(found, kernel))
    return compose(
        sheet,
        f"Comparison of the machines over data sets and splits: {label(found.metric)}",
        [*grids, _differences(found), _posteriors(found)],
        *head,
        *_questions(found, any(grid.rows for grid in grids)),
        *definitions(sheet)[:1],
    )


def _questions(found: Comparison, over_data_sets: bool) -> list[str]:
    """Return the question that each test answers."""
    if not found.sheet.machines:
        return []
    reference, rope = found.name, f"{found.rope:g}"
    of_data_sets = [
        "Friedman and Nemenyi ask: would machines that are all the same be ranked so differently "
        "on data sets like these?",
        f"Wilcoxon asks of each machine: would one as good as {reference} differ from it so much "
        "on data sets like these? Its effect size goes from -1 (all worse) to 1 (all better).",
        "The Bayesian signed-rank test answers: on a further data set, how probable is it that the "
        f"machine is worse, practically equivalent (within {rope}), better?",
    ]
    return [
        f"{BETTER} better, {WORSE} worse than {reference} at {LEVEL:g}, corrected by Holm's method "
        "over the whole table.",
        *(of_data_sets if over_data_sets else []),
        "The corrected resampled t-test asks: would two equally good ways of learning differ so "
        "much over such splits of this data set? Its variance counts that splits share training "
        "rows. d is the mean difference over its standard deviation over splits.",
        "The Bayesian correlated t-test answers: on this data set, how probable is it that the "
        f"mean difference is worse than -{rope}, within {rope}, better?",
    ]


def _friedman(ranks: Ranks) -> str:
    return (
        f"Friedman over {ranks.n} data sets: chi-square {ranks.statistic:.2f}, p = {ranks.p:.2g}, "
        f"Kendall's W {ranks.concordance:.2f}. "
        f"Rank 1 is best; values are ranked as printed. Nemenyi at {LEVEL:g}: mean ranks "
        f"differ significantly from {ranks.critical_difference:.2f} on."
    )


def _ranks(sheet: Sheet, ranks: Ranks, kernel: str) -> Grid:
    # Names of the groups: A to Z, then AA, BB, ...
    letters = (letter * n for n in count(1) for letter in ascii_uppercase)
    groups = list(zip(letters, ranks.cliques(), strict=False))
    rows = [
        [
            sheet.label(machine),
            f"{ranks.means[machine]:.2f}",
            " ".join(letter for letter, group in groups if machine in group),
        ]
        for machine in sorted(ranks.means, key=lambda machine: ranks.means[machine])
    ]
    columns = (Column("machine", align="left"), Column("mean rank"), Column("group", align="left"))
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    return Grid(columns, rows, caption)


def _over_data_sets(found: Comparison, kernel: KernelKey) -> Grid:
    """Return the tests of every machine against the reference machine over common data sets."""
    sheet = found.sheet
    gaps = {
        machine: values
        for machine in found.others
        if len(values := dataset_gaps(sheet, kernel, machine, found.reference, found.metric)) > 1
    }
    corrected = holm([wilcoxon_p(values) for values in gaps.values()])
    rows = [
        [
            sheet.label(machine),
            str(len(values)),
            signed(float(np.mean(values)), found.decimals),
            f"{p:.2g}",
            signed(rank_biserial(values) if any(values) else 0.0),
            str(signed_rank_posterior(values, found.rope)),
        ]
        for (machine, values), p in zip(gaps.items(), corrected, strict=True)
    ]
    heads = ("data sets", "mean difference", "Wilcoxon p", "effect", "worse / equivalent / better")
    caption = f"{kernel_caption(*kernel)}: against {found.name} over data sets"
    return Grid((Column("machine", align="left"), *map(Column, heads)), rows, caption)


def _differences(found: Comparison) -> Grid:
    """Return the differences from the reference machine per data set, tested over splits."""
    keys = [
        place._replace(machine=machine) for place in found.sheet.places for machine in found.others
    ]
    gaps = {key: found.gaps(key) for key in keys}
    raw = [paired_p(gaps[key], test_to_train(found.sheet, key)) for key in keys]
    corrected = dict(zip(keys, holm(raw).tolist(), strict=True))

    def text(key: Key) -> str:
        if not gaps[key]:
            return NOTHING
        mean, p, effect = fmean(gaps[key]), corrected[key], ""
        if math.isnan(p):
            return signed(mean, found.decimals)
        if sd := float(np.std(gaps[key], ddof=1)):
            effect = f"; d {signed(mean / sd)}"
        mark = direction(mean) if p < LEVEL else ""
        return join(f"{signed(mean, found.decimals)} ({p:.2g}{effect})", mark)

    def better_same_worse(machine: str) -> str:
        p_values = [(key, p) for key, p in corrected.items() if key.machine == machine and p == p]
        signs = [np.sign(fmean(gaps[key])) if p < LEVEL else 0 for key, p in p_values]
        return str(Counts(*map(signs.count, (1, 0, -1))))

    grid = found.grid(
        text,
        f"{label(found.metric)} against that of {found.name} "
        "(corrected resampled t-test: p after Holm; d)",
    )
    grid.rows.append(["better/same/worse", *map(better_same_worse, found.others)])
    return grid


def _posteriors(found: Comparison) -> Grid:
    """Return the Bayesian correlated t-test against the reference machine per data set."""

    def text(key: Key) -> str:
        ratio = test_to_train(found.sheet, key)
        return str(correlated_posterior(found.gaps(key), found.rope, ratio) or NOTHING)

    grid = found.grid(
        text,
        f"Probability that it is worse than {found.name} / practically equivalent / better "
        "(Bayesian correlated t-test over splits)",
    )
    known = any(cell != NOTHING for row in grid.rows for cell in row[1:])
    return grid if known else replace(grid, rows=[])
