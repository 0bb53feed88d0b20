"""Checks of printed tables of classifiers, from the printed numbers alone (docs/audit.md).

A check returns the number of cells or comparisons checked, and its findings: certain if arithmetic
excludes the printed numbers, otherwise with the probability `chance`, at most `LEVEL`, that an
honest table has it (times the number of comparisons: Bonferroni).

    unit         the last printed digit: 0.1 for 97.3
    pool         different rows on which errors are counted: the test rows of a single split, or
                 all rows for several splits
    binomial SE  sqrt(p (1 - p) / pool) for the accuracy p
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import binom, chi2, norm

from mmbench.errors import listed
from mmbench.results.published import AVERAGES, CLAIMS, STANDARD_ERROR
from mmbench.results.statistics import LEVEL, best_and_worst, welch_p

#: Metrics of results. The value is 1 if larger numbers are better, and -1 if they are worse.
SIGN = {"accuracy_pct": 1, "error_pct": -1, "errors_count": -1, "seconds": -1}
#: Other names of metrics that describe a data set.
SYNONYMS = {"n_attributes": "n_features", "n_inputs": "n_features"}
#: Names of scores in the package mlscorecheck.
SCORES = {"accuracy": "acc", "sensitivity": "sens", "recall": "sens", "specificity": "spec"}
SCORES |= {"precision": "ppv", "f1": "f1", "balanced_accuracy": "bacc", "mcc": "mcc"}
#: Machines, and the machines that they contain for certain hyper-parameters: an RMM with a large B,
#: a Sigma-SVM with D = 0, and an R-SVM+ without a penalty on the radius are SVMs.
CONTAINS: Mapping[str, Iterable[str]] = {
    "rmm": ("svm", "rmm_c_equals_d"),
    **dict.fromkeys(("rmm_c_equals_d", "sigma_svm", "rsvm_plus"), ("svm",)),
}
#: A finding with a smaller chance is likely, and possible otherwise.
LIKELY = 0.001
#: Minimum number of equal cells in a repeated row or column.
MIN_EQUAL = 3
#: Number of standard errors from which a difference is reported.
N_SE = 3.0
#: The same number for a machine that is worse than one that it contains. Parameter selection costs
#: up to five standard errors in honest tables.
N_SE_CONTAINED = 5.0
#: Maximum ratio of printed to smallest expected deviations at which deviations are too small.
MAX_RATIO = 2 / 3
#: Minimum number of rows of a table in which odd cells are sought.
MIN_ROWS = 5
#: Minimum number of errors per test part in the test of deviations.
MIN_ERRORS = 2
#: Level of the test of the deviations on one data set.
QUANTILE = 0.01
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


#: Result of a check: the number of cells or comparisons checked, and the findings.
Outcome = tuple[int, list[Finding]]


@dataclass(frozen=True)
class Cells:
    """The cells of one or several tables.

    Attributes
    ----------
    all : DataFrame
        Every row of the tables, with the columns that `cells_of` adds.
    facts : dict
        Numbers that describe data sets: ``(data set, name) -> number``.
    contains : dict
        Machines, and the machines that each of them contains.
    """

    all: pd.DataFrame
    facts: Mapping[tuple[str, str], float]
    contains: Mapping[str, set[str]]

    @cached_property
    def results(self) -> pd.DataFrame:
        """Results of machines on single data sets, without empty cells."""
        chosen = self.all.metric.isin([*SIGN]) & ~self.all.dataset.isin(AVERAGES)
        return self.all[chosen & self.all.value.notna()].drop_duplicates(PLACE)

    def tables(self) -> Iterator[pd.DataFrame]:
        """Return the results of each table and metric."""
        yield from (part for _, part in self.results.groupby(["table", "metric"], sort=False))

    def related(self, first: str, second: str) -> bool:
        """Whether one of two machines contains the other."""
        return second in self.contains.get(first, ()) or first in self.contains.get(second, ())


#: Columns that name a cell.
PLACE = ["table", "dataset", "setting", "machine", "metric"]


def machine_key(name: str) -> str:
    """Return a name of a machine without its punctuation: ``R-SVM+`` and ``rsvm_plus`` agree."""
    return re.sub(r"[\W_]", "", name.lower().replace("+", "plus"))


def dataset_key(name: str) -> str:
    """Return a name of a data set as sorted words: ``Solar Flare`` and ``flare-solar`` agree."""
    return " ".join(sorted(re.findall(r"[^\W_]+", name.lower())))


def cells_of(
    frame: pd.DataFrame,
    facts: Mapping[tuple[str, str], float],
    contains: Mapping[str, Iterable[str]],
) -> Cells:
    """Return the cells of a frame with the columns of a published table and the column ``table``.

    The columns ``value`` and ``std`` are text as printed, since the decimals determine the unit.
    """
    frame = frame.copy()
    label = [frame[name] for name in ("dataset", "kernel", "degree", "machine")]
    labels = zip(frame.table, *label, strict=True)
    frame["cell"] = [f"{table}: {', '.join(filter(None, rest))}" for table, *rest in labels]
    frame["setting"] = [" ".join(filter(None, key)) for key in zip(*label[1:3], strict=True)]
    frame["dataset"], frame["machine"] = label[0].map(dataset_key), label[3].map(machine_key)
    frame["printed"] = label[3]
    frame["metric"] = frame.metric.replace(SYNONYMS)
    for name in ("value", "std"):
        exponents = [int(Decimal(text or 0).as_tuple().exponent) for text in frame[name]]
        frame[f"{name}_unit"], frame[name] = np.power(10.0, exponents), pd.to_numeric(frame[name])
    described = frame[frame.machine.eq("") & frame.value.notna()]
    own = zip(described.dataset, described.metric, strict=True)
    facts = {**facts, **dict(zip(own, described.value.astype(float), strict=True))}
    for column, name in (("rows", "n_samples"), ("classes", "n_classes"), ("top", "majority_pct")):
        frame[column] = [facts.get((d, name), math.nan) for d in frame.dataset]
    frame["rows"] = np.fmax(frame.rows, frame.n_train + frame.n_test)
    frame["pool"] = frame.n_test.where(frame.n_splits.eq(1), frame.rows)
    count = frame.metric.eq("errors_count")
    frame["full"] = np.where(count, frame.n_test, 100.0)  # the value of all rows
    share = (frame.value / frame.full).mask(frame.metric.ne("accuracy_pct"), lambda p: 1 - p)
    frame["share"] = share.where(frame.metric.isin([*SIGN][:3]) & share.between(0, 1))
    # half a row is added to the errors, so that the standard error of 100 % is not 0
    p = (frame.share * frame["pool"] + 0.5) / (frame["pool"] + 1)
    frame["se"] = np.sqrt(p * (1 - p) / frame["pool"]) * frame.full
    # test parts that differ in size, as the folds of cross-validation, have no exact step
    total = frame.n_train + frame.n_test
    even = frame.n_splits.eq(1) | (total % frame.n_test == 0) | (total < 1.5 * frame.n_test)
    step = np.where(count, 1.0, 100 / frame.n_test) / frame.n_splits
    step = step.where(frame.metric.ne("seconds"))
    frame["step"] = step.where(even)
    frame["grain"] = np.fmax(frame.value_unit, step)
    scale = np.sqrt(frame.n_splits.where(frame.std_is.eq(STANDARD_ERROR), 1.0))
    frame["sd"], frame["sd_error"] = frame["std"] * scale, frame.std_unit / 2 * scale
    related = {machine_key(key): set(map(machine_key, names)) for key, names in contains.items()}
    return Cells(frame, facts, related)


def lines(frame: pd.DataFrame) -> Iterator[Any]:
    """Return the rows of a frame; their columns are attributes."""
    return iter(frame.itertuples())


def _text(value: float) -> str:
    return f"{value:.5g}"


def _graded(check: str, cells: Iterable[str], reason: str, chance: float) -> list[Finding]:
    """Return a finding with its grade, or nothing if its chance is too large."""
    chance = min(1.0, chance)
    sure = "likely" if chance < LIKELY else "possible"
    return [Finding(check, sure, tuple(cells), reason, chance)] if chance <= LEVEL else []


# -- single cells ----------------------------------------------------------------------------------


def empty_cells(cells: Cells) -> Outcome:
    """Find empty cells, and cells that a table prints twice."""
    frame, found = cells.all, []
    for table, part in frame[frame.value.isna()].groupby("table", sort=False):
        reason = f"{len(part)} of {frame.table.eq(table).sum()} values are empty; averages and "
        reason += "counts over these cells cannot be recomputed"
        found.append(Finding("cells", "certain", tuple(part.cell), reason))
    for _, part in frame[frame.duplicated(PLACE, keep=False)].groupby(PLACE, sort=False):
        reason = f"the cell is printed {len(part)} times, as {listed([*map(_text, part.value)])}"
        found.append(Finding("cells", "certain", (part.cell.iloc[0],), reason))
    return len(frame), found


def possible_values(cells: Cells) -> Outcome:
    """Find values outside their range, and values that are no fraction of the test rows."""
    found, checked = [], 0
    for r in lines(cells.results):
        top = math.inf if r.metric == "seconds" or math.isnan(r.full) else r.full
        if not 0 <= r.value <= top:
            reason = f"{r.value:.5g} is not between 0 and {top:.5g}"
            found.append(Finding("value", "certain", (r.cell,), reason))
        elif r.step > 1.5 * r.value_unit:
            checked += 1
            # the printed value is rounded, or cut off after its last digit
            low, high = r.value - r.value_unit / 2, r.value + r.value_unit
            if math.ceil(low / r.step - 1e-6) > math.floor(high / r.step + 1e-6):
                rows = math.floor(r.value / r.step)
                reason = f"{r.value:.5g} would be {r.value / r.step:.2f} of "
                reason += f"{r.n_test * r.n_splits:.0f} test rows; the nearest possible values are "
                reason += f"{rows * r.step:.5g} and {(rows + 1) * r.step:.5g}"
                found.append(Finding("value", "certain", (r.cell,), reason))
    return checked, found


def deviations(cells: Cells) -> Outcome:
    """Find deviations that are too large for the mean, or too small for single splits.

    The standard deviation of an accuracy p over test parts with n of N rows is at least
    ``sqrt(p (1 - p) / n (1 - n/N))``, even if the same rows are wrong in each split. If n is not
    known, half of the rows are assumed to be test rows, which gives a smaller deviation than any
    smaller test part. Cells with fewer than two errors per test part are left out, and cells
    within a binomial SE of the share of the largest class: a machine that predicts a single class
    has no deviation over stratified splits. Deviations on the same data set depend on one another.
    Therefore, a chi-square test at the level `QUANTILE` is applied to the median ratio of each data
    set. The number of significant tests is compared with the binomial distribution, and the
    smallest p-value with its Bonferroni bound; the chance is twice the smaller probability.
    """
    frame = cells.results[cells.results.sd.notna() & (cells.results.n_splits > 1)]
    frame = frame[frame.share.notna()]
    p, n = frame.share, frame.n_splits
    most = np.sqrt(p * (1 - p) * n / (n - 1)) * frame.full + frame.value_unit
    reason = (
        "{:.5g} is more than {:.5g}, the largest deviation that {:.0f} values with this mean have"
    )
    found = [
        Finding("deviation", "certain", (r.cell,), reason.format(r.sd, limit, r.n_splits))
        for r, limit in zip(lines(frame), most, strict=True)
        if r.sd - r.sd_error > limit
    ]
    test = frame.n_test.fillna(frame.rows / 2)
    factor = (1 - test / frame.rows.fillna(2 * test)).clip(lower=0)
    least = np.sqrt(p * (1 - p) / test * factor) * frame.full
    frame = frame.assign(least=least, ratio=(frame.sd + frame.sd_error) / least)
    constant = (p - frame.top / 100).abs() * frame.full < frame.se
    frame = frame[(least > 0) & ~constant & (np.minimum(p, 1 - p) * test >= MIN_ERRORS)]
    for _, part in frame.groupby("table", sort=False):
        middle = part.groupby("dataset")[["ratio", "n_splits"]].median()
        small = _chi(middle) < QUANTILE
        few, one = part[part.ratio < 1], float(_chi(middle).min() * len(middle))
        chance = 2 * min(one, float(binom.sf(small.sum() - 1, len(small), QUANTILE)))
        which = f"of {small.sum()} of {len(small)} data sets"
        if middle.ratio.median() > MAX_RATIO or not small.any():
            single = (_chi(part) * len(frame) < LIKELY) & (part.ratio < MAX_RATIO / 2)
            few, which = part[single], "of cells"
            chance = float(_chi(few).max() * len(frame)) if len(few) else 1.0
        if len(few):
            found += _too_small(few.sort_values("ratio"), which, chance)
    return len(frame), found


def _chi(frame: pd.DataFrame) -> pd.Series:
    """Return the probability of at most `ratio` times the expected deviation."""
    free = frame.n_splits - 1
    return pd.Series(chi2.cdf(frame.ratio**2 * free, free), frame.index)


def _too_small(part: pd.DataFrame, which: str, chance: float) -> list[Finding]:
    r = part.iloc[0]
    rows = f"{r.n_test:.0f} test rows" if r.n_test > 0 else "at most half of them test rows"
    reason = (
        f"the deviations {which} are too small for deviations over splits: {r.cell} has "
        f"{r['std']:.5g}, but at least {r.least:.5g} is expected ({100 * r.share:.1f} % of "
        f"{r.rows:.0f} rows are right, {rows}). They could be standard errors: "
        f"{r.least:.5g} / sqrt({r.n_splits:.0f} splits) = {r.least / r.n_splits**0.5:.5g}"
    )
    return _graded("deviation", part.cell, reason, chance)


# -- averages and counts ---------------------------------------------------------------------------


def averages(cells: Cells) -> Outcome:
    """Recompute averages over the data sets."""
    claims = cells.all[cells.all.dataset.isin(AVERAGES) & cells.all.value.notna()]
    found = []
    for r in lines(claims):
        part = _claimed(cells, r, r.metric)
        part = part[part.machine == r.machine]
        mean, half = part.value.mean(), part.value_unit.mean() / 2
        if not -r.value_unit - half - 1e-9 <= r.value - mean <= r.value_unit / 2 + half + 1e-9:
            reason = f"{r.value:.5g} is printed; the mean of the {len(part)} values is {mean:.4f}"
            found += [Finding("average", "certain", (r.cell,), reason)] if len(part) else []
    return len(claims), found


def _claimed(cells: Cells, claim: Any, metric: str | None = None) -> pd.DataFrame:
    """Return the results on which a printed average or count is based."""
    part = cells.results[cells.results.table == claim.table]
    part = part[part.setting.eq(claim.setting) | (claim.setting == "")]
    metric = metric or (part.metric.mode().iloc[0] if len(part) else "")
    return part[part.metric == metric]


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
            limits = _win_tie_loss(part, r.machine, machine_key(other))[what]
            sure, rule = "likely", "Welch's t-test at 5 %; another test may differ"
        else:
            limits = _best_or_worst(part, r.machine, what == "worst_count")
            sure, rule = "certain", "ties may count for one or for all machines"
        checked += limits is not None
        if limits and not limits[0] <= r.value <= limits[1]:
            numbers = " to ".join(map(str, sorted({*limits})))
            reason = f"{r.metric} is printed as {r.value:.5g}; the values give {numbers} ({rule})"
            found.append(Finding("count", sure, (r.cell,), reason))
    return checked, found


def _best_or_worst(part: pd.DataFrame, machine: str, worst: bool) -> tuple[int, int] | None:
    """Return the smallest and the largest number of rows in which a machine is best or worst."""
    if machine not in {*part.machine}:
        return None
    means = _means(part)
    extreme = means.min(axis=1) if worst else means.max(axis=1)
    complete = means.notna().all(axis=1)
    alone = (means.eq(extreme, axis=0).sum(axis=1) == 1) & complete
    most = best_and_worst(means, None).get(machine, (0, 0))[worst] + int((~complete).sum())
    return int((alone & means[machine].eq(extreme)).sum()), most


def _win_tie_loss(part: pd.DataFrame, first: str, second: str) -> dict[str, Any]:
    """Return the smallest and the largest number of wins, ties and losses that rounding permits.

    The numbers are None if a deviation is missing.
    """
    both = part[part.machine == first].merge(
        part[part.machine == second], on=["dataset", "setting"], suffixes=("", "_2")
    )
    if not len(both) or both[["sd", "sd_2", "n_splits", "n_splits_2"]].isna().any(axis=None):
        return {}.fromkeys(("wins", "ties", "losses"))
    gap = (both.value - both.value_2) * SIGN[both.metric[0]]
    never, maybe = (
        welch_p(
            ((gap.abs() + sign * both.value_unit).clip(lower=0), *_bent(both, "", -sign)),
            (0 * gap, *_bent(both, "_2", -sign)),
        ) < LEVEL
        for sign in (-1, 1)
    )  # fmt: skip
    return {
        "wins": (int((never & (gap > 0)).sum()), int((maybe & (gap > -both.value_unit)).sum())),
        "ties": (int((~maybe).sum()), int((~never).sum())),
        "losses": (int((never & (gap < 0)).sum()), int((maybe & (gap < both.value_unit)).sum())),
    }


def _bent(both: pd.DataFrame, side: str, sign: int) -> tuple[pd.Series, pd.Series]:
    """Return deviations, changed by half a digit, and numbers of splits."""
    sd = (both[f"sd{side}"] + sign * both[f"sd_error{side}"]).clip(lower=0)
    return sd, both[f"n_splits{side}"]


# -- repeated rows and columns ---------------------------------------------------------------------


def repeats(cells: Cells) -> Outcome:
    """Find machines, data sets, kernels or tables whose values agree beyond chance.

    Two cells agree by chance with probability ``q = grain / (2 d)``, where `grain` is the distance
    between two possible printed values. The typical difference d is the smaller of half a binomial
    SE, and the median difference between the unequal cells of the two columns. With fewer than
    three unequal cells, the median over all pairs of columns is used. The probability of at least k
    equal cells among m follows from the binomial distribution. Machines that contain each other are
    left out, since they can be equal.
    """
    outcomes = [
        outcome
        for part in cells.tables()
        for outcome in (
            _repeated(part, "machine", ["dataset", "setting"], [[], ["dataset"], ["setting"]],
                      cells.related),
            _repeated(part, "dataset", ["setting", "machine"], [[]]),
        )
    ]  # fmt: skip
    for _, part in cells.results.groupby("metric", sort=False):
        frame = part.assign(line=part.table + ", " + part.setting)
        place = dict(zip(frame.line, frame.setting, strict=True))
        outcomes += [
            _repeated(frame, "line", ["machine", "dataset"], [["machine"]], _same(place)),
            _repeated(part, "table", ["dataset", "setting", "machine"], [[], ["machine"]]),
        ]  # fmt: skip
    return sum(n for n, _ in outcomes), [finding for _, found in outcomes for finding in found]


def _same(place: Mapping[str, str]) -> Callable[[str, str], bool]:
    return lambda a, b: place[a] == place[b]


def _repeated(
    frame: pd.DataFrame,
    line: str,
    rows: list[str],
    groups: list[list[str]],
    skip: Callable[[str, str], bool] = lambda a, b: False,
) -> Outcome:
    """Compare each pair of lines, such as the columns of two machines, in groups of rows."""
    wide = frame.pivot(index=rows, columns=line, values=["value", "grain", "se", "cell"])
    value, grain, se = (wide[name].to_numpy(dtype=float) for name in ("value", "grain", "se"))
    names, cell = list(wide["value"].columns), wide["cell"].to_numpy()
    codes = [
        wide.index.to_frame(index=False).groupby(group).ngroup().to_numpy()
        if group
        else np.zeros(len(wide))
        for group in groups
    ]
    gaps = {
        (i, j): np.abs(value[:, i] - value[:, j]).round(9)
        for i, j in combinations(range(len(names)), 2)
        if not skip(names[i], names[j])
    }
    unequal = {pair: gap[gap > 0] for pair, gap in gaps.items()}
    every = np.concatenate([*unequal.values(), []])
    pooled = np.median(every) if len(every) else math.nan
    checked, found = 0, []
    for (i, j), gap in gaps.items():
        known, pair = ~np.isnan(gap), [i, j]
        typical = np.median(unequal[i, j]) if len(unequal[i, j]) >= MIN_EQUAL else pooled
        d = np.fmin(typical, np.fmin(se[:, i], se[:, j]) / 2)
        q = np.nan_to_num(grain[:, pair].max(axis=1) / (2 * d), nan=1.0).clip(max=1)
        least: dict[Any, tuple] = {}  # the groups with the smallest chance
        for code in codes:
            for key in np.unique(code[known]):
                part = known & (code == key)
                equal = part & (gap == 0)
                m, k, mean = int(part.sum()), int(equal.sum()), float(q[part].mean())
                chance = float(binom.sf(k - 1, m, mean))
                key = key if len(groups) == 1 else ""
                checked += m >= MIN_EQUAL
                if k >= MIN_EQUAL and chance < least.get(key, (2.0,))[0]:
                    cells = cell[np.ix_(equal, pair)].ravel().tolist()
                    least[key] = (chance, k, m, mean, cells)
        found += [(f"{names[i]} and {names[j]}", *values) for values in least.values()]
    return checked, [
        finding
        for pair, chance, k, m, mean, names in found
        for finding in _graded(
            "repeat", names, f"{pair} are equal in {k} of {m} cells; by chance, a cell is equal "
            f"with a probability of about {mean:.2g}, and {k} or more are equal with {chance:.1g} "
            f"(times {checked} comparisons)", chance * checked)
    ]  # fmt: skip


def exchanges(cells: Cells) -> Outcome:
    """Find two values that are exchanged between two tables, and values that differ too much.

    Two exchanged values agree by chance with probability ``q^2``, with q as in `repeats`. A
    difference between two tables is divided by the standard errors of both values. A standard
    error is the larger of the binomial SE and the printed one.
    """
    found: list[tuple[str, tuple[str, ...], str, float]] = []
    crossed = compared = 0
    frame = cells.results
    frame = frame.assign(se=np.fmax(frame.se, frame.sd / np.sqrt(frame.n_splits)))
    for _, part in frame.groupby("metric", sort=False):
        for one, two in combinations(part.table.unique(), 2):
            both = part[part.table == one].merge(
                part[part.table == two], on=["dataset", "setting", "machine"], suffixes=("", "_2")
            )
            size = (both.value - both.value_2).abs()
            typical = size[size > 1e-9].median()
            grain = np.fmax(both.value_unit, both.step)
            both["q"] = (grain / (2 * np.fmin(typical, both.se / 2))).clip(upper=1).fillna(1)
            compared += len(both)
            both["z"] = size / np.hypot(both.se, both.se_2)
            for r in lines(both[both.z > N_SE]):
                reason = (
                    f"{r.value:.5g} and {r.value_2:.5g} are printed for the same cell, {r.z:.1f} "
                )
                reason += f"standard errors apart ({r.se:.3g} and {r.se_2:.3g})"
                found.append(("differ", (r.cell, r.cell_2), reason, 2 * norm.sf(r.z)))
            for _, place in both.groupby(["dataset", "setting"], sort=False):
                for r, s in combinations(lines(place), 2):
                    crossed += 1
                    if r.value == s.value_2 != s.value == r.value_2:
                        reason = (
                            f"{r.value:.5g} and {s.value:.5g} in {one} are {r.value_2:.5g} and "
                        )
                        reason += f"{s.value_2:.5g} in {two}; one pair may be exchanged"
                        names = (r.cell, s.cell, r.cell_2, s.cell_2)
                        found.append(("exchange", names, reason, r.q * s.q))
    n = {"differ": compared, "exchange": crossed}
    return compared, [f for k, names, why, p in found for f in _graded(k, names, why, p * n[k])]


# -- order of the machines -------------------------------------------------------------------------


def contained(cells: Cells) -> Outcome:
    """Find machines that are worse than a machine that they contain.

    With the same grid, the larger machine can select the smaller one. The standard error of the
    difference is computed from both binomial SEs, as for independent rows.
    """
    found, checked = [], 0
    for part in cells.tables():
        both = part.merge(part, on=["dataset", "setting"], suffixes=("", "_2"))
        pairs = zip(both.machine, both.machine_2, both.se.notna(), strict=True)
        both = both[[known and b in cells.contains.get(a, ()) for a, b, known in pairs]]
        checked += len(both)
        gap = (both.value_2 - both.value) * SIGN[part.metric.iloc[0]]
        both = both.assign(sd=np.hypot(both.se, both.se_2), z=gap / np.hypot(both.se, both.se_2))
        for _, worse in both[both.z > N_SE_CONTAINED].groupby(["machine", "machine_2"], sort=False):
            r = worse.sort_values("z").iloc[-1]
            reason = (
                f"{r.value:.5g} is worse than {r.value_2:.5g} of {r.printed_2}, which {r.printed} "
            )
            reason += f"contains, by {r.z:.1f} standard errors of the difference, {r.sd:.3g} "
            reason += f"(binomial, {r['pool']:.0f} rows)"
            if len(worse) > 1:
                reason += f"; so are {len(worse) - 1} other cells by more than {N_SE_CONTAINED:.0f}"
            found.append((worse.cell, reason, norm.sf(r.z)))
    graded = (_graded("contained", names, why, p * checked) for names, why, p in found)
    return checked, [finding for findings in graded for finding in findings]


def majority(cells: Cells) -> Outcome:
    """Find accuracies below the share of the largest class, and machines that do not exceed it.

    An accuracy does not exceed the share of the largest class if it is at most one binomial SE
    above it. This is reported if another machine exceeds the share by three SE in the same row. If
    the share is not known, an equal share of each class is a lower bound.
    """
    frame = cells.results[cells.results.share.notna()].copy()
    frame["largest"] = np.fmax(frame.top / 100, 1 / frame.classes)
    frame["z"] = (frame.share - frame.largest) / (frame.se / frame.full)
    frame = frame[frame.z.notna()]
    others = frame.groupby(["table", "dataset", "setting"]).z.transform("max")
    frame["low"] = frame.top.notna() & (frame.z <= 1) & (others > N_SE)
    found = []
    for _, part in frame.groupby("table", sort=False):
        low = part[part.low].groupby("machine").filter(lambda cells: len(cells) >= MIN_EQUAL)
        for sure, word, rows in (
            ("likely", "is below", part[part.z < -N_SE]),
            ("possible", "does not exceed", low),
        ):
            if len(rows):
                r = rows.iloc[0]
                reason = f"the accuracy {word} the share of the largest class in {len(rows)} of "
                reason += f"{len(part)} cells: {r.cell} has {100 * r.share:.2f} %, and the largest "
                reason += f"class has at least {100 * r.largest:.2f} % of the rows"
                found.append(Finding("majority", sure, tuple(rows.cell), reason))
                break
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
        row = pd.DataFrame({m: odds.drop(columns=m).median(axis=1) for m in odds})
        away = odds - row
        usual = pd.DataFrame({i: away.drop(index=[i]).median() for i in away.index}).T
        off = (odds - row - usual.set_axis(away.index)).abs()
        spread = 1.48 * np.fmax(off.median(), off.median().median())
        se = (part.se / part.full / (part.share * (1 - part.share)).clip(lower=0.001)).unstack()
        scale = np.fmax(se.fillna(0), off * 0 + spread)
        part["expected"] = (row + usual.set_axis(away.index)).stack()
        part["scale"], part["z"] = scale.stack(), (off / scale).stack()
        checked += len(part)
        odd = part[(part.z > ODD) & ((part.share - expit(part.expected)).abs() > MIN_ODD)]
        for r in lines(odd[~odd.index.droplevel("machine").duplicated(keep=False)]):
            near = np.array([*_one_digit_off(f"{r.value:.{-round(math.log10(r.value_unit))}f}")])
            share = near / r.full if r.metric == "accuracy_pct" else 1 - near / r.full
            z = np.abs(_log_odds(share) - r.expected) / r.scale
            if z.min() < MAX_FIT:
                reason = f"{r.value:.5g} is {r.z:.0f} robust standard deviations away from the "
                reason += f"accuracy {100 * expit(r.expected):.1f} % that follows from the row and "
                reason += f"the other rows of the machine; {near[z.argmin()]:.5g} would fit"
                found.append(Finding("odd", "possible", (r.cell,), reason))
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
            reason = f"{metric} is printed as {listed([*map(_text, part.value.unique())])}"
            found.append(Finding("size", "likely", tuple(part.cell), reason))
    totals = frame.assign(total=frame.n_train + frame.n_test).drop_duplicates(["dataset", "total"])
    totals = totals[totals.total.notna()]
    for r in lines(totals):
        n = cells.facts.get((r.dataset, "n_samples"), math.nan)
        own = described.dataset.eq(r.dataset) & described.metric.eq("n_samples")
        if r.total > n or (r.total < n and own.any()):
            reason = (
                f"{r.n_train:.0f} training rows and {r.n_test:.0f} test rows are {r.total:.0f} "
            )
            reason += f"rows, but the data set has {n:.0f}"
            sure = "certain" if r.total > n else "possible"
            found.append(Finding("size", sure, (r.cell, *described.cell[own]), reason))
    return len(described) + len(totals), found


def scores(cells: Cells) -> Outcome:
    """Find scores that no confusion matrix of two classes has, by the package mlscorecheck.

    A cell is checked if it has a single split, two or more scores, and a number of positive rows.
    """
    name = cells.all.metric.str.removesuffix("_pct").map(SCORES)
    frame = cells.all.assign(score=name)[name.notna() & cells.all.n_splits.eq(1)]
    positive = [cells.facts.get((d, "n_positive"), math.nan) for d in frame.dataset]
    frame = frame.assign(positive=positive).dropna(subset=["positive", "n_test", "value"])
    groups = [part for _, part in frame.groupby(PLACE[:-1], sort=False) if len(part) > 1]
    found = []
    for part in groups:
        from mlscorecheck.check.binary import check_1_testset_no_kfold

        factor = np.where(part.metric.str.endswith("_pct"), 0.01, 1.0)
        p, n = int(part.positive.iloc[0]), int(part.n_test.iloc[0])
        outcome = check_1_testset_no_kfold(
            testset={"p": p, "n": n - p},
            scores=dict(zip(part.score, part.value * factor, strict=True)),
            eps=dict(zip(part.score, part.value_unit * factor, strict=True)),
        )
        if outcome["inconsistency"]:
            printed = [f"{r.metric} {r.value:.5g}" for r in lines(part)]
            reason = f"no confusion matrix of {p} positive and {n - p} negative rows has "
            reason += f"the scores {listed(printed)}"
            found.append(Finding("score", "certain", (part.cell.iloc[0],), reason))
    return len(groups), found


#: Checks, and the columns or facts that each check needs.
CHECKS: tuple[tuple[str, Callable[[Cells], Outcome], str], ...] = (
    ("cells", empty_cells, "nothing else"),
    ("value", possible_values, "n_test and n_splits; n_train for several splits"),
    ("deviation", deviations, "std, n_splits, and n_test or the number of rows"),
    ("average", averages, "a row with the data set 'average'"),
    ("count", counts, "a row with the metric best_count, worst_count or wins_against_MACHINE"),
    ("repeat", repeats, "three cells in a row or column"),
    ("exchange", exchanges, "two tables with the same data sets and machines"),
    ("contained", contained, "a machine that contains another one, and the number of rows"),
    ("majority", majority, "the number of rows, and majority_pct or n_classes"),
    ("odd", odd_cells, "five rows and three machines"),
    ("size", sizes, "n_samples, n_features or n_classes, or n_train and n_test"),
    ("score", scores, "two scores, n_test, n_splits 1, n_positive, and the extra 'audit'"),
)


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
