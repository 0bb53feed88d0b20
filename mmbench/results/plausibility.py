"""Checks of printed tables of classifiers, from the printed numbers alone (docs/audit.md).

A check returns the number of cells or comparisons checked, and a `Suspicion` per fault, of which
`search` makes findings: certain if arithmetic excludes the printed numbers, otherwise with the
probability `chance`, at most `LEVEL`, that an honest table has it (times the number of comparisons:
Bonferroni).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import binom, chi2, norm

from mmbench.errors import listed
from mmbench.results.printed_cells import PLACE, SIGN, Cells, lines, machine_key
from mmbench.results.published import AVERAGES, CLAIMS
from mmbench.results.statistics import LEVEL, best_and_worst, welch_p

#: How sure a finding is. The report lists certain findings first.
GRADES = ("certain", "likely", "possible")
#: Names of scores in the package mlscorecheck.
SCORES = {"accuracy": "acc", "sensitivity": "sens", "recall": "sens", "specificity": "spec"}
SCORES |= {"precision": "ppv", "f1": "f1p", "balanced_accuracy": "bacc", "mcc": "mcc"}
#: A finding with a smaller chance is likely, and possible otherwise.
LIKELY = 0.001
#: Minimum number of equal cells in a repeated row or column.
MIN_EQUAL = 3
#: Number of standard errors from which a difference is reported.
N_SE = 3.0
#: The same number for a machine that is worse than one that it contains. Parameter selection costs
#: up to five standard errors in honest tables.
N_SE_CONTAINED = 5.0
#: Maximum ratio of printed to smallest expected deviations at which the deviations of a table are
#: too small; a single cell must have half of it.
MAX_RATIO = 2 / 3
#: Minimum number of rows of a table in which odd cells are sought.
MIN_ROWS = 5
#: Minimum number of errors per test part in the test of deviations.
MIN_ERRORS = 2
#: Distance between a cell and its expected value, in robust standard deviations, from which the
#: cell is odd.
ODD = 12.0
#: Minimum distance in accuracy. Honest machines differ by a few percentage points on some data set.
MIN_ODD = 0.05
#: Maximum distance between a corrected cell and its expected value, in the same unit.
MAX_FIT = 2.0


class Finding(NamedTuple):
    """A possible fault of a table."""

    #: Name of the check.
    check: str
    #: How sure the finding is: certain, likely or possible.
    sure: str
    #: Names of the cells.
    cells: tuple[str, ...]
    #: The numbers that speak for a fault.
    reason: str
    #: Estimated probability of such a finding in an honest table, or NaN without an estimate.
    chance: float = math.nan


#: A fault that a check sees: its grade or its chance, the names of the cells, and the reason.
Suspicion = tuple[str | float, Iterable[str], str]
#: Result of a check: the number of cells or comparisons checked, and the faults.
Outcome = tuple[int, Sequence[Suspicion]]


def _each(frame: pd.DataFrame, grade: Any, words: str) -> list[Suspicion]:
    """Return a suspicion per row of a frame; `words` refers to the columns."""
    names = [name for name in frame if name.startswith("cell")]
    rows = frame.assign(grade=grade).to_dict("records")
    return [(row["grade"], [row[k] for k in names], words.format_map(row)) for row in rows]


def _all(part: pd.DataFrame, grade: str | float, words: str, **more: Any) -> Suspicion:
    """Return a suspicion of all cells of a part, in the words of its first row."""
    cells = [*part.cell, *part.get("cell_2", [])]
    return grade, dict.fromkeys(cells), words.format_map({**part.iloc[0], **more})


# -- single cells ----------------------------------------------------------------------------------


def empty_cells(cells: Cells) -> Outcome:
    """Find empty cells, and cells that a table prints twice."""
    frame = cells.all
    lost = "{n} of {total} values are empty; averages and counts of them cannot be recomputed"
    found = [
        _all(part, "certain", lost, n=len(part), total=frame.table.eq(table).sum())
        for table, part in frame[frame.value.isna()].groupby("table", sort=False)
    ]
    for _, part in frame[frame.duplicated(PLACE, keep=False)].groupby(PLACE, sort=False):
        words = f"the cell is printed {len(part)} times, as {listed([*part.text])}"
        found.append(_all(part, "certain", words))
    return len(frame), found


def possible_values(cells: Cells) -> Outcome:
    """Find values outside their range, and values that are no fraction of the test rows."""
    top = cells.results.full.mask(cells.results.metric.eq("seconds")).fillna(math.inf)
    frame = cells.results.assign(top=top, total=cells.results.n_test * cells.results.n_splits)
    inside = frame.value.between(0, top)
    exact = frame[inside & (frame.step > 1.5 * frame.value_unit)]
    # the printed value is rounded, or cut off after its last digit
    low, high = exact.value - exact.value_unit / 2, exact.value + exact.value_unit
    wrong = np.ceil(low / exact.step - 1e-6) > np.floor(high / exact.step + 1e-6)
    rows = exact.value / exact.step
    below, above = np.floor(rows) * exact.step, np.ceil(rows) * exact.step
    exact = exact.assign(rows=rows, below=below, above=above)
    words = "{text} would be {rows:.2f} of {total:.0f} test rows; the nearest possible values are "
    found = _each(frame[~inside], "certain", "{text} is not between 0 and {top:.5g}")
    return len(exact), found + _each(exact[wrong], "certain", words + "{below:.5g} and {above:.5g}")


def deviations(cells: Cells) -> Outcome:
    """Find deviations that are too large for the mean, or too small for single splits.

    The standard deviation of an accuracy p over test parts with n of N rows is at least
    ``sqrt(p (1 - p) / n (1 - n/N))``, even if the same rows are wrong in each split. If n is not
    known, half of the rows are assumed to be test rows, which gives a smaller deviation than any
    smaller test part. Cells with fewer than two errors per test part are left out, and cells
    within a binomial SE of the share of the largest class: a machine that predicts a single class
    has no deviation over stratified splits. If the median ratio of printed and smallest deviation
    is small, the chance follows from the chi-square test of all data sets together. Machines on one
    data set depend on one another, so each data set counts with its median ratio. Otherwise, single
    cells are tested.
    """
    frame = cells.results[cells.results.sd.notna() & (cells.results.n_splits > 1)]
    frame = frame[frame.share.notna()]
    p, free = frame.share, frame.n_splits - 1
    test = frame.n_test.fillna(frame.rows / 2)
    factor = (1 - test / frame.rows.fillna(2 * test)).clip(lower=0)
    frame = frame.assign(
        most=np.sqrt(p * (1 - p) * (free + 1) / free) * frame.full + frame.value_unit,
        least=np.sqrt(p * (1 - p) / test * factor) * frame.full,
        right=100 * p,
        free=free,
        test=test,
    )
    words = "{sd:.5g} is more than {most:.5g}, the largest deviation of {n_splits:.0f} values with "
    words += "this mean"
    found = _each(frame[frame.sd - frame.sd_error > frame.most], "certain", words)
    words = (
        " are too small for deviations over splits: {cell} has {std:.5g}, but at least {least:.5g} "
        "is expected ({right:.1f} % of {rows:.0f} rows are right, {test:.0f} test rows). They could"
        " be standard errors: {least:.5g} / sqrt({n_splits:.0f} splits) = {error:.5g}"
    )
    constant = (p - frame.top / 100).abs() * frame.full < frame.se
    frame = frame[(frame.least > 0) & ~constant & (np.minimum(p, 1 - p) * test >= MIN_ERRORS)]
    ratio = (frame.sd + frame.sd_error) / frame.least
    frame = frame.assign(ratio=ratio, error=frame.least / frame.n_splits**0.5)
    for _, part in frame.sort_values("ratio").groupby("table", sort=False):
        middle = part.groupby("dataset")[["ratio", "free"]].median()
        which, small = "the deviations", part[part.ratio < 1]
        chance = chi2.cdf((middle.ratio**2 * middle.free).sum(), middle.free.sum())
        if middle.ratio.median() > MAX_RATIO:
            chances = len(frame) * chi2.cdf(part.ratio**2 * part.free, part.free)
            odd = (chances < LIKELY) & (part.ratio < MAX_RATIO / 2)
            which, small, chance = "the deviations of cells", part[odd], chances[odd].max(initial=0)
        if len(small):
            found.append(_all(small, chance, which + words))
    return len(frame), found


# -- averages and counts ---------------------------------------------------------------------------


def averages(cells: Cells) -> Outcome:
    """Recompute averages over the data sets."""
    claims, found = cells.all[cells.all.dataset.isin(AVERAGES) & cells.all.value.notna()], []
    for r in lines(claims):
        part = _claimed(cells, r, r.metric)
        part = part[part.machine == r.machine]
        mean, half = part.value.mean(), part.value_unit.mean() / 2 + 1e-9
        if r.value < mean - half - r.value_unit or r.value > mean + half + r.value_unit / 2:
            reason = f"{r.text} is printed; the mean of the {len(part)} values is {mean:.4f}"
            found.append(("certain", [r.cell], reason))
    return len(claims), found


def _claimed(cells: Cells, claim: Any, metric: str | None = None) -> pd.DataFrame:
    """Return the results on which a printed average or count is based."""
    part = cells.results[cells.results.table == claim.table]
    part = part[part.setting.eq(claim.setting) | (claim.setting == "")]
    return part[part.metric == (metric or next(iter(part.metric.mode()), ""))]


def _means(part: pd.DataFrame) -> pd.DataFrame:
    """Return values with one row per data set and kernel; larger values are better."""
    values = part.pivot(index=["dataset", "setting"], columns="machine", values="value")
    return values * SIGN[part.metric.iloc[0]]


def counts(cells: Cells) -> Outcome:
    """Recompute how often each machine is the best or the worst, and wins, ties and losses."""
    found, checked = [], 0
    for r in lines(cells.all[cells.all.metric.str.startswith(CLAIMS) & cells.all.value.notna()]):
        part, (what, _, other) = _claimed(cells, r), r.metric.partition("_against_")
        if other:
            possible = _verdicts(part, r.machine, machine_key(other), what)
            sure, rule = "likely", "Welch's t-test at 5 %; another test may differ"
        else:
            possible = _extremes(part, r.machine, what == "worst_count")
            sure, rule = "certain", "ties may count for one or for all machines"
        checked += len(possible) > 0
        least, most = int((possible == 1).sum()), int((possible > 0).sum())
        if len(possible) and not least <= r.value <= most:
            numbers = " to ".join(map(str, sorted({least, most})))
            reason = f"{r.metric} is printed as {r.text}; the values give {numbers} ({rule})"
            found.append((sure, [r.cell], reason))
    return checked, found


def _extremes(part: pd.DataFrame, machine: str, worst: bool) -> NDArray:
    """Return whether a machine is the best or the worst in each row: 1, 0, or 0.5 for a tie or a
    row with empty cells.
    """
    if machine not in {*part.machine}:
        return np.empty(0)
    means = _means(part) * (-1 if worst else 1)
    first = means.eq(means.max(axis=1), axis=0)
    share = first[machine] * np.where(first.sum(axis=1) > 1, 0.5, 1.0)
    return share.mask(means.isna().any(axis=1), 0.5).to_numpy()


def _verdicts(part: pd.DataFrame, first: str, second: str, what: str) -> NDArray:
    """Return the share of roundings of means and deviations with which a machine wins, ties or
    loses on each data set; empty if a deviation is missing.
    """
    one, two = (part[part.machine == name] for name in (first, second))
    both = one.merge(two, on=["dataset", "setting"], suffixes=("", "_2"))
    sizes = both[["n_splits", "n_splits_2"]].T.to_numpy()
    deviations = both[["sd", "sd_2"]].T.to_numpy()
    if not len(both) or np.isnan([*sizes, *deviations]).any():
        return np.empty(0)
    signs, error = [], both[["sd_error", "sd_error_2"]].T.to_numpy()
    for shift, bend in product((-1, 0, 1), (-1, 1)):
        gap = (both.value - both.value_2 + shift * both.value_unit) * SIGN[both.metric[0]]
        sd = (deviations + bend * error).clip(min=0)
        p = welch_p((gap, sd[0], sizes[0]), (0 * gap, sd[1], sizes[1]))
        signs.append(np.sign(gap) * (p < LEVEL))
    return np.mean(np.equal(signs, {"wins": 1, "ties": 0, "losses": -1}[what]), axis=0)


# -- repeated rows and columns ---------------------------------------------------------------------

#: Comparisons of pairs of columns: keys that differ, keys that agree, and keys of groups of rows.
#: Each group is also compared alone.
COMPARED: tuple[tuple[list[str], list[str], list[str]], ...] = (
    (["machine"], ["table", "metric"], ["dataset", "setting"]),
    (["dataset"], ["table", "metric"], []),
    (["table", "setting"], ["metric", "machine"], []),
    (["table"], ["metric"], ["machine"]),
)
#: Columns of both cells of a pair, besides their places.
PAIRED = ["cell", "text", "value", "value_unit", "step", "grain", "se"]


def _pairs(frame: pd.DataFrame, differ: list[str], same: list[str]) -> pd.DataFrame:
    """Return the pairs of cells that differ in some columns alone, with the columns of both cells.

    Two cells agree by chance with probability ``q = grain / (2 d)``, where `grain` is the distance
    between two possible printed values. The typical difference d is the smaller of half a binomial
    SE, and the median `gap` between the unequal cells of the two columns. With fewer than three
    unequal cells, the median over all pairs of columns is used.
    """
    frame = frame[[*PLACE, *PAIRED]].assign(line=[*map(", ".join, frame[differ].to_numpy())])
    both = frame.merge(frame, on=[c for c in PLACE if c not in differ], suffixes=("", "_2"))
    both = both[both.line < both.line_2]
    both = both.assign(gap=(both.value - both.value_2).abs().round(9))
    unequal = both.assign(gap=both.gap.where(both.gap > 0))
    own = unequal.groupby([*same, "line", "line_2"]).gap
    typical = own.transform("median").where(own.transform("count") >= MIN_EQUAL)
    typical = typical.fillna(unequal.groupby(same).gap.transform("median"))
    d = np.fmin(typical, np.fmin(both.se, both.se_2) / 2)
    return both.assign(q=(np.fmax(both.grain, both.grain_2) / (2 * d)).clip(upper=1).fillna(1))


def repeats(cells: Cells) -> Outcome:
    """Find machines, data sets, kernels or tables whose values agree beyond chance.

    The probability of at least k equal cells among m follows from the binomial distribution with
    the mean of q (see `_pairs`). Machines that contain each other are left out, since they can be
    equal. Each pair of columns is reported once, with the smallest chance.
    """
    tests, checked = [], 0
    for kind, (differ, same, groups) in enumerate(COMPARED):
        if len(cells.results[differ].drop_duplicates()) < 2:
            continue  # a comparison of tables, and there is one
        both = _pairs(cells.results, differ, same)
        related = [cells.related(*pair) for pair in zip(both.line, both.line_2, strict=True)]
        other = both.setting.ne(both.setting_2) if "setting" in differ else True
        both = both[~np.array(related, dtype=bool) & other]
        pair = both.groupby([*same, "line", "line_2"]).ngroup()
        both = both.assign(equal=both.gap == 0, kind=kind, pair=pair)
        for group in ([], *([name] for name in groups)):
            parts = both.groupby(["pair", *group])
            m, k = parts.equal.transform("size"), parts.equal.transform("sum")
            mean = parts.q.transform("mean")
            test = both.assign(m=m, k=k, mean=mean, chance=binom.sf(k - 1, m, mean))
            tests.append(test[test.equal & (k >= MIN_EQUAL)])
            checked += int((parts.size() >= MIN_EQUAL).sum())
    if not tests:
        return 0, []
    words = "{line} and {line_2} are equal in {k} of {m} cells; by chance, a cell is equal with a "
    words += "probability of about {mean:.2g}, and {k} or more are equal with {chance:.1g} (times "
    words += f"{checked} comparisons)"
    found = []
    for _, part in pd.concat(tests).sort_values("chance").groupby(["kind", "pair"], sort=False):
        chance = part.chance.iloc[0]
        found.append(_all(part[part.chance == chance], checked * chance, words))
    return checked, found


def differences(cells: Cells) -> Outcome:
    """Find values that differ too much between two tables.

    The difference is divided by the standard errors of both values. A standard error is the larger
    of the binomial SE and the printed one.
    """
    frame = cells.results
    if frame.table.nunique() < 2:
        return 0, []
    frame = frame.assign(se=np.fmax(frame.se, frame.sd / np.sqrt(frame.n_splits)))
    both = _pairs(frame, ["table"], ["metric"])
    both = both.assign(z=both.gap / np.hypot(both.se, both.se_2))
    words = "{text} and {text_2} are printed for the same cell, {z:.1f} standard errors apart "
    words += "({se:.3g} and {se_2:.3g})"
    apart = both[both.z > N_SE]
    return len(both), _each(apart, 2 * norm.sf(apart.z) * len(both), words)


def exchanges(cells: Cells) -> Outcome:
    """Find two values that are exchanged between two tables, by chance with probability ``q^2``."""
    if cells.results.table.nunique() < 2:
        return 0, []
    place = ["table", "table_2", "metric", "dataset", "setting"]
    both = _pairs(cells.results, ["table"], ["metric"])
    both = both.merge(both, on=place, suffixes=("", "_b"))
    both = both[both.machine < both.machine_b]
    crossed = both[both.value.eq(both.value_2_b) & both.value_2.eq(both.value_b) & (both.gap > 0)]
    # test parts that differ in size have no exact step, so the printed digit counts
    fine = np.fmax(crossed.value_unit, crossed.step) / crossed.grain
    words = "{text} and {text_b} in {table} are {text_2} and {text_2_b} in {table_2}; one pair may "
    chance = crossed.q * crossed.q_b * fine**2 * len(both)
    return len(both), _each(crossed, chance, words + "be exchanged")


# -- order of the machines -------------------------------------------------------------------------


def contained(cells: Cells) -> Outcome:
    """Find machines that are worse than a machine that they contain.

    With the same grid, the larger machine can select the smaller one. The standard error of the
    difference is computed from both binomial SEs, as for independent rows.
    """
    frame, found = cells.results[cells.results.se.notna()], []
    both = frame.merge(frame, on=["table", "metric", "dataset", "setting"], suffixes=("", "_2"))
    pairs = zip(both.machine, both.machine_2, strict=True)
    both = both[np.array([b in cells.contains.get(a, ()) for a, b in pairs], dtype=bool)]
    gap = (both.value_2 - both.value) * both.metric.map(SIGN).astype(float)
    sd = np.hypot(both.se, both.se_2)
    both = both.assign(sd=sd, z=gap / sd).sort_values("z", ascending=False)
    worse = both[both.z > N_SE_CONTAINED]
    words = "{text} is worse than {text_2} of {printed_2}, which {printed} contains, by {z:.1f} "
    words += "standard errors of the difference, {sd:.3g} (binomial, {pool:.0f} rows); cells "
    words += "that are worse by more than {limit:.0f} standard errors: {n}"
    for _, part in worse.groupby(["table", "metric", "machine", "machine_2"], sort=False):
        chance = norm.sf(part.z.iloc[0]) * len(both)
        found.append(_all(part, chance, words, n=len(part), limit=N_SE_CONTAINED))
    return len(both), found


def majority(cells: Cells) -> Outcome:
    """Find accuracies below the share of the largest class, and machines that do not exceed it.

    An accuracy does not exceed the share of the largest class if it is at most one binomial SE
    above it. This is reported if another machine exceeds the share by three SE in the same row. If
    the share is not known, an equal share of each class is a lower bound.
    """
    frame = cells.results.assign(largest=np.fmax(cells.results.top, 100 / cells.results.classes))
    frame = frame.assign(right=100 * frame.share)
    frame["z"] = (frame.right - frame.largest) / (frame.se / frame.full * 100)
    frame = frame[frame.z.notna()]
    others = frame.groupby(["table", "dataset", "setting"]).z.transform("max")
    low = frame[frame.top.notna() & (frame.z <= 1) & (others > N_SE)]
    low = low.groupby(["table", "machine"]).filter(lambda part: len(part) >= MIN_EQUAL)
    words = " the share of the largest class in {n} of {total} cells: {cell} has {right:.2f} %, "
    words += "and the largest class has at least {largest:.2f} % of the rows"
    found = []
    for table, part in frame.groupby("table", sort=False):
        sure, what, rows = "likely", "the accuracy is below", part[part.z < -N_SE]
        if rows.empty:
            sure, what, rows = "possible", "the accuracy does not exceed", low[low.table == table]
        if len(rows):
            found.append(_all(rows, sure, what + words, n=len(rows), total=len(part)))
    return len(frame), found


def odd_cells(cells: Cells) -> Outcome:
    """Find numbers with a wrong digit: cells that fit neither their row nor their column, but would
    fit with one other digit, or with two neighbouring digits exchanged.

    The distance of a cell is its log-odds minus the median log-odds of the other machines in the
    row. The usual distance is the median over the other rows of the machine. The scale is 1.48
    times the median absolute deviation from the usual distance, of the machine or of all machines,
    or the binomial SE, if it is larger. Rows with several such cells are left out.
    """
    found, checked = [], 0
    for part in cells.tables():
        part = part[part.share.notna()].set_index(["dataset", "setting", "machine"])
        odds = _log_odds(part.share).unstack()
        if len(odds) < MIN_ROWS or len(odds.columns) < 3:
            continue
        checked += len(part)
        row = pd.DataFrame({m: odds.drop(columns=m).median(axis=1) for m in odds})
        away = odds - row
        usual = pd.DataFrame({i: away.drop(index=[i]).median() for i in away.index}).T
        expected = row + usual.set_axis(away.index)
        off = (odds - expected).abs()
        se = (part.se / part.full / (part.share * (1 - part.share)).clip(lower=0.001)).unstack()
        scale = np.fmax(se, off * 0 + 1.48 * np.fmax(off.median(), off.median().median()))
        part = part.assign(expected=expected.stack(), scale=scale.stack(), z=(off / scale).stack())
        odd = part[(part.z > ODD) & ((part.share - expit(part.expected)).abs() > MIN_ODD)]
        for r in lines(odd[~odd.index.droplevel("machine").duplicated(keep=False)]):
            near = np.array([*_one_digit_off(r.text)])
            share = near / r.full if r.metric == "accuracy_pct" else 1 - near / r.full
            z = np.abs(_log_odds(share) - r.expected) / r.scale
            if z.min() < MAX_FIT:
                reason = f"{r.text} is {r.z:.0f} robust standard deviations away from the accuracy "
                reason += f"{100 * expit(r.expected):.1f} % that follows from the row and the "
                reason += f"other rows of the machine; {near[z.argmin()]:.5g} would fit"
                found.append(("possible", [r.cell], reason))
    return checked, found


def _log_odds(share: Any) -> Any:
    return logit(np.clip(share, 0.001, 0.999))


def _one_digit_off(text: str) -> Iterator[float]:
    """Return the numbers with one other digit, or with two neighbouring digits exchanged."""
    for k, old in enumerate(text):
        if old != ".":
            yield from (float(text[:k] + new + text[k + 1 :]) for new in "0123456789" if new != old)
            yield float(text[:k] + text[k + 1 : k + 2] + old + text[k + 2 :])


# -- descriptions of data sets, and several scores of one cell -------------------------------------


def sizes(cells: Cells) -> Outcome:
    """Find numbers of rows, features or classes that contradict each other."""
    frame, found = cells.all, []
    described = frame[frame.machine.eq("") & frame.value.notna()]
    for (_, metric), part in described.groupby(["dataset", "metric"], sort=False):
        if part.value.nunique() > 1:
            numbers = listed([*part.text.unique()])
            found.append(_all(part, "likely", f"{metric} is printed as {numbers}"))
    totals = frame.assign(total=frame.n_train + frame.n_test).drop_duplicates(["dataset", "total"])
    totals = totals[totals.total.notna()]
    words = "{n_train:.0f} training rows and {n_test:.0f} test rows are {total:.0f} rows, but the "
    totals = totals.assign(n=[cells.facts.get((d, "n_samples"), math.nan) for d in totals.dataset])
    stated = described.dataset[described.metric == "n_samples"]
    few = totals[(totals.total < totals.n) & totals.dataset.isin(stated)]
    for sure, rows in (("certain", totals[totals.total > totals.n]), ("possible", few)):
        found += _each(rows, sure, words + "data set has {n:.0f}")
    return len(described) + len(totals), found


def scores(cells: Cells) -> Outcome:
    """Find scores that no confusion matrix of two classes has, by the package mlscorecheck.

    A cell is checked if it has a single split, two or more scores, and a number of positive rows.
    """
    if find_spec("mlscorecheck") is None:
        return 0, []
    from mlscorecheck.check.binary import check_1_testset_no_kfold

    logging.getLogger("mlscorecheck").setLevel(logging.WARNING)
    positive = [cells.facts.get((d, "n_positive"), math.nan) for d in cells.all.dataset]
    name = cells.all.metric.str.removesuffix("_pct").map(SCORES)
    frame = cells.all.assign(score=name, positive=positive)[cells.all.n_splits.eq(1)]
    frame = frame.dropna(subset=["score", "positive", "n_test", "value"])
    groups = [part for _, part in frame.groupby(PLACE[:-1], sort=False) if len(part) > 1]
    found = []
    for part in groups:
        factor = np.where(part.metric.str.endswith("_pct"), 0.01, 1.0)
        p, n = int(part.positive.iloc[0]), int(part.n_test.iloc[0])
        outcome = check_1_testset_no_kfold(
            testset={"p": p, "n": n - p},
            scores=dict(zip(part.score, part.value * factor, strict=True)),
            eps=dict(zip(part.score, part.value_unit * factor, strict=True)),
        )
        if outcome["inconsistency"]:
            printed = listed([*(part.metric + " " + part.text)])
            reason = f"no confusion matrix of {p} positive and {n - p} negative rows has the scores"
            found.append(("certain", part.cell[:1], f"{reason} {printed}"))
    return len(groups), found


#: Checks, and the columns or facts that each check needs.
CHECKS: tuple[tuple[str, Callable[[Cells], Outcome], str], ...] = (
    ("cells", empty_cells, "nothing else"),
    ("value", possible_values, "n_test and n_splits; n_train for several splits"),
    ("deviation", deviations, "std, n_splits, and n_test or the number of rows"),
    ("average", averages, "a row with the data set 'average'"),
    ("count", counts, "a row with the metric best_count, worst_count or wins_against_MACHINE"),
    ("repeat", repeats, "three cells in a row or column"),
    ("differ", differences, "two tables with the same data sets and machines"),
    ("exchange", exchanges, "two tables with the same data sets and two of the same machines"),
    ("contained", contained, "a machine that contains another one, and the number of rows"),
    ("majority", majority, "the number of rows, and majority_pct or n_classes"),
    ("size", sizes, "n_samples, n_features or n_classes, or n_train and n_test"),
    (
        "score",
        scores,
        "two scores, n_test, n_splits 1, the metric n_positive, and the extra 'audit'",
    ),
    ("odd", odd_cells, "five rows and three machines"),
)


def search(cells: Cells) -> tuple[list[Finding], list[tuple[str, int, int, str]]]:
    """Return the findings, the surest first, and name, number of checked cells, number of findings
    and needed columns of each check.
    """
    findings, checks = list[Finding](), []
    for check, look, needs in CHECKS:
        checked, suspicions = look(cells)
        found = []
        for grade, names, reason in suspicions:
            if isinstance(grade, str):
                found.append(Finding(check, grade, tuple(names), reason))
            elif grade <= LEVEL:
                sure = "likely" if grade < LIKELY else "possible"
                found.append(Finding(check, sure, tuple(names), reason, float(grade)))
        # a cell that another check explains is not reported again as odd
        named = {cell for one in findings if check == "odd" for cell in one.cells}
        found = [one for one in found if not named.issuperset(one.cells)]
        findings += found
        checks.append((check, checked, len(found), needs))
    return sorted(findings, key=lambda one: GRADES.index(one.sure)), checks


def recomputed(cells: Cells) -> pd.DataFrame:
    """Return means, and counts of the best and the worst values, by table, metric and machine."""
    rows = []
    for part in cells.tables():
        means = _means(part).dropna()
        sign, table = SIGN[part.metric.iloc[0]], part.table.iloc[0]
        for machine, (best, worst) in best_and_worst(means, None).items():
            mean = sign * float(means[machine].mean())
            name = part.printed[part.machine == machine].iloc[0]
            rows.append((table, part.metric.iloc[0], name, len(means), mean, best, worst))
    columns = ["table", "metric", "machine", "cells", "mean", "best", "worst"]
    return pd.DataFrame(rows, columns=columns)
