"""Any experiment: ranks and tests over data sets, paired tests over splits, Bayesian ones of both.

What papers with a table of many data sets and machines leave out. Over data sets: mean ranks with
the critical difference of Nemenyi, and every machine against the first one by Wilcoxon's and the
Bayesian signed-rank test. On each data set: the same by the corrected resampled t-test and the
Bayesian correlated t-test over splits. P-values of a table are corrected together by Holm's method.
"""

import math
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.blocks import (
    ACCURACY,
    BETTER,
    WORSE,
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
from mmbench.tables.model import NOTHING, Column, Grid, Table, kernel_caption
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.statistics import (
    LEVEL,
    Counts,
    Posterior,
    Ranks,
    correlated_posterior,
    holm,
    paired_p,
    rank_biserial,
    signed_rank_posterior,
    wilcoxon_p,
)

ANY_METRIC = True
#: Differences up to this are practically none: one per cent.
ROPE_PCT, ROPE = 1.0, 0.01


class Difference(NamedTuple):
    """Mean difference of two machines over the splits of a data set, p-value and effect size."""

    mean: float
    p: float
    effect: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether the p-value is below the level; NaN is not."""
        return self.p < LEVEL


class Comparison(NamedTuple):
    """What is compared: a metric, and its digits and region of practical equivalence."""

    sheet: Sheet
    metric: str

    @property
    def decimals(self) -> int:
        """Digits of a difference."""
        return 2 if self.metric == ACCURACY else 3

    @property
    def rope(self) -> float:
        """Differences up to this are practically none."""
        return ROPE_PCT if self.metric == ACCURACY else ROPE

    @property
    def reference(self) -> str:
        """The machine that others are compared with."""
        return self.sheet.machines[0]

    @property
    def others(self) -> list[str]:
        """Those that are compared with it."""
        return self.sheet.machines[1:]


def layout(sheet: Sheet) -> Table:
    """Arrange ranks, tests over data sets and paired tests over splits, of the first metric."""
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
    """Return which question each test answers."""
    if not found.sheet.machines:
        return []
    reference, rope = found.sheet.label(found.reference), f"{found.rope:g}"
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
    groups = ranks.cliques()
    rows = [
        [
            sheet.label(machine),
            f"{ranks.means[machine]:.2f}",
            " ".join(_letter(k) for k, group in enumerate(groups) if machine in group),
        ]
        for machine in sorted(ranks.means, key=lambda machine: ranks.means[machine])
    ]
    columns = (Column("machine", align="left"), Column("mean rank"), Column("group", align="left"))
    caption = f"{kernel}: mean ranks; machines of one group do not differ significantly"
    return Grid(columns, rows, caption)


def _letter(k: int) -> str:
    """Return the name of the kth group: A to Z, then AA."""
    return ascii_uppercase[k % 26] * (k // 26 + 1)


def _over_data_sets(found: Comparison, kernel: KernelKey) -> Grid:
    """Return every machine against the first one over the data sets that both have."""
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
    caption = f"{kernel_caption(*kernel)}: against {_name(found)} over data sets"
    return Grid((Column("machine", align="left"), *map(Column, heads)), rows, caption)


def _name(found: Comparison) -> str:
    return found.sheet.label(found.reference) if found.sheet.machines else NOTHING


def _differences(found: Comparison) -> Grid:
    sheet, others, places = found.sheet, found.others, found.sheet.places
    table = {(p, m): _difference(found, p, m) for p in places for m in others}
    corrected = holm([difference.p for difference in table.values()])
    for cell, p in zip(table, corrected, strict=True):
        table[cell] = table[cell]._replace(p=float(p))
    rows = [
        [sheet.name(place), *(_text(table[place, m], found.decimals) for m in others)]
        for place in places
    ]
    rows.append(["better/same/worse", *(str(_count(table, machine)) for machine in others)])
    caption = (
        f"{label(found.metric)} against that of {_name(found)} "
        "(corrected resampled t-test: p after Holm; d)"
    )
    return Grid(sheet.columns("data", machines=others), rows, caption)


def _difference(found: Comparison, place: Key, machine: str) -> Difference:
    gaps = split_gaps(found.sheet, place, machine, found.reference, found.metric)
    if not gaps:
        return Difference(math.nan, math.nan)
    mean, sd = sum(gaps) / len(gaps), float(np.std(gaps, ddof=1)) if len(gaps) > 1 else 0.0
    p = paired_p(gaps, test_to_train(found.sheet, place))
    return Difference(mean, p, mean / sd if sd else math.nan)


def _text(difference: Difference, decimals: int) -> str:
    if math.isnan(difference.mean):
        return NOTHING
    mark = direction(difference.mean) if difference.significant else ""
    p = "" if math.isnan(difference.p) else f"{difference.p:.2g}"
    effect = "" if math.isnan(difference.effect) else f"d {signed(difference.effect)}"
    inside = f" ({'; '.join(filter(None, [p, effect]))})" if p else ""
    return f"{signed(difference.mean, decimals)}{inside} {mark}".rstrip()


def _count(table: dict[tuple[Key, str], Difference], machine: str) -> Counts:
    found = [difference for (_, name), difference in table.items() if name == machine]
    better = sum(d.significant and d.mean > 0 for d in found)
    worse = sum(d.significant and d.mean < 0 for d in found)
    return Counts(better, sum(d.p == d.p for d in found) - better - worse, worse)


def _posteriors(found: Comparison) -> Grid:
    """Return the correlated t-test of every machine against the first one on each data set."""
    sheet = found.sheet
    rows = [
        [sheet.name(place), *(str(_posterior(found, place, m) or NOTHING) for m in found.others)]
        for place in sheet.places
    ]
    if all(cell == NOTHING for row in rows for cell in row[1:]):
        rows = []
    caption = (
        f"Probability that it is worse than {_name(found)} / practically equivalent / better "
        "(Bayesian correlated t-test over splits)"
    )
    return Grid(sheet.columns("data", machines=found.others), rows, caption)


def _posterior(found: Comparison, place: Key, machine: str) -> Posterior | None:
    gaps = split_gaps(found.sheet, place, machine, found.reference, found.metric)
    return correlated_posterior(gaps, found.rope, test_to_train(found.sheet, place))
