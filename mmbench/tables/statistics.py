"""Comparison statistics: numbers in, numbers out, nothing known of records or layouts.

Standard errors and the band in which a published value counts as met; the counting rules of the
papers (best and worst, win/tie/loss by Welch's t-test); ranks and tests of several machines over
data sets, and paired tests over splits. The Bayesian tests are those of the package baycomp, of
which two formulas are needed.

References
----------
J. Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
A. Benavoli, G. Corani, J. Demsar, M. Zaffalon: Time for a change: a tutorial for comparing multiple
classifiers through Bayesian analysis. JMLR 18, 2017.
S. Holm: A simple sequentially rejective multiple test procedure. Scand. J. Statistics 6, 1979.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray


def counting_sd(errors: float, n: int) -> float:
    """Return the binomial standard deviation of an error count, ``sqrt(e (1 - e/n))``.

    `errors` of `n` test rows; an expected number may be fractional.

    Examples
    --------
    >>> counting_sd(100, 2000)
    9.746794344808963
    """
    return math.sqrt(max(0.0, errors * (1 - errors / n)))


def difference_se(
    sd: float | None, n: int, n_published: int | None, counting: float, same_test_rows: bool
) -> float:
    """Return the standard error of the difference of our mean and a published one.

    `sd` is our standard deviation over runs (None for a single run), `n` and `n_published` are the
    numbers of runs (None if the paper does not state it), `counting` is the binomial deviation of
    the errors of one run (0 for other metrics), and `same_test_rows` says whether all runs, the
    paper's included, tested on the official test part.

    Notes
    -----
    The spread that papers print is left out: it is a standard deviation in some, a standard error
    in others, and in a few neither. The paper's runs are taken to vary as much as ours, so that
    two independent means differ by ``sd sqrt(1/n + 1/n_published)``.

    * Partitions drawn from the data: that is all. A single one varies by its binomial deviation.
    * The official test part: seeds of inner folds and ties are what varies. Besides, both counted
      errors on the same rows, so the luck of the draw is shared and must not be added twice. The
      variance of the difference is ``2 counting^2 (1 - r)``; the correlation r of two similar
      machines' errors is above one half (they fail on the same rows), so one binomial deviation is
      still on the wide side.

    Examples
    --------
    >>> round(difference_se(5.0, 50, 50, 0.0, same_test_rows=False), 6)
    1.0
    >>> difference_se(None, 1, 1, 9.7, same_test_rows=True)
    9.7
    """
    spread = sd if sd is not None else 0.0 if same_test_rows else counting
    shared = counting if same_test_rows else 0.0
    return math.hypot(shared, spread / math.sqrt(n), spread / math.sqrt(n_published or math.inf))


def z_value(measured: float, published: float, se: float) -> float:
    """Return how many standard errors a published value lies above the measured one.

    Published values are decimals; values that differ by binary rounding alone are equal.

    Examples
    --------
    >>> z_value(90.0, 93.0, 1.5), z_value(90.0, 90.0 + 1e-12, 0.0), z_value(90.0, 91.0, 0.0)
    (2.0, 0.0, inf)
    """
    difference = round(published - measured, 9)
    return difference / se if se else math.copysign(math.inf, difference) if difference else 0.0


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    `wins` and `losses` are the numbers of test rows that only the first and only the second machine
    has right.

    Examples
    --------
    >>> round(mcnemar_p(1, 9), 4), mcnemar_p(0, 0)
    (0.0215, 1.0)
    """
    from scipy.stats import binomtest

    total = wins + losses
    return float(binomtest(wins, total).pvalue) if total else 1.0


Name = TypeVar("Name")

#: Level of the test, two-sided.
WELCH_LEVEL = 0.05


@dataclass(frozen=True)
class Sample:
    """Mean, standard deviation and size of a sample."""

    mean: float
    sd: float
    n: int


class Counts(NamedTuple):
    """How often one machine did better than another, the same, and worse."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def welch_p(one: Sample, other: Sample) -> float:
    """Return the two-sided p-value of Welch's t-test of equal means.

    Two samples without any spread are equal or certainly different.

    Examples
    --------
    >>> round(welch_p(Sample(88.46, 0.85, 100), Sample(89.13, 0.63, 100)), 8)
    0.0
    >>> welch_p(Sample(1.0, 0.0, 9), Sample(1.0, 0.0, 9))
    1.0
    """
    from scipy.stats import ttest_ind_from_stats

    if one.sd == other.sd == 0:
        return float(one.mean == other.mean)
    found = ttest_ind_from_stats(
        one.mean, one.sd, one.n, other.mean, other.sd, other.n, equal_var=False
    )
    return float(found.pvalue)


def win_tie_loss(pairs: Iterable[tuple[Sample, Sample]], level: float = WELCH_LEVEL) -> Counts:
    """Count on how many data sets the first machine is significantly better, the same, worse.

    One pair per data set; larger means are better. Differences count with a p-value below `level`.
    """
    wins = ties = losses = 0
    for one, other in pairs:
        different = welch_p(one, other) < level
        wins += different and one.mean > other.mean
        losses += different and one.mean < other.mean
        ties += not different
    return Counts(wins, ties, losses)


def best_and_worst(
    rows: Sequence[Mapping[Name, float]], decimals: int | None = 2
) -> dict[Name, tuple[int, int]]:
    """Count how often each name has the largest and the smallest value of a row.

    One row per data set. Values are compared as printed with `decimals` (None: unrounded); all
    equal values count.

    Examples
    --------
    >>> best_and_worst([{"a": 90.001, "b": 90.0, "c": 80.0}])
    {'a': (1, 0), 'b': (1, 0), 'c': (0, 1)}
    """
    counts = {name: [0, 0] for row in rows for name in row}
    for row in rows:
        printed = {n: v if decimals is None else round(v, decimals) for n, v in row.items()}
        for side, extreme in enumerate((max(printed.values()), min(printed.values()))):
            for name, value in printed.items():
                counts[name][side] += value == extreme
    return {name: (best, worst) for name, (best, worst) in counts.items()}


#: Level of all tests.
LEVEL = 0.05


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of machines over data sets, and what they allow to conclude."""

    #: Mean rank by machine; 1 is best, equal values share the mean of their ranks.
    means: dict[str, float]
    #: Number of data sets.
    n: int
    #: Friedman's chi-square.
    statistic: float
    #: P-value of the hypothesis that all machines are the same.
    p: float
    #: Nemenyi: mean ranks that differ by less are not significantly different.
    critical_difference: float

    @property
    def concordance(self) -> float:
        """Kendall's W: 1 where all data sets rank the machines alike, 0 where they do not agree."""
        return self.statistic / (self.n * (len(self.means) - 1))

    def cliques(self) -> list[tuple[str, ...]]:
        """Return the largest groups of machines, by rank, that are not significantly different."""
        order = sorted(self.means, key=lambda name: self.means[name])
        groups: list[tuple[str, ...]] = []
        for k, name in enumerate(order):
            reach = self.means[name] + self.critical_difference
            group = tuple(other for other in order[k:] if self.means[other] < reach)
            if len(group) > 1 and not (groups and group[-1] == groups[-1][-1]):
                groups.append(group)
        return groups


def rank_machines(rows: Sequence[Mapping[str, float]], decimals: int = 2) -> Ranks:
    """Rank machines on every data set and test whether they differ.

    One row per data set with the same machines; larger is better, and values are compared as
    printed with `decimals`. Raises ValueError with fewer than three machines or two data sets.
    """
    from scipy.stats import friedmanchisquare, rankdata

    names = list(rows[0]) if rows else []
    if len(names) < 3 or len(rows) < 2:
        raise ValueError("ranks need three machines and two data sets with results of all")
    table = np.round([[row[name] for name in names] for row in rows], decimals)
    ranks = rankdata(-table, axis=1).mean(axis=0)
    # Rows in which all are equal everywhere leave the statistic without a value: no difference.
    same = bool((table == table[:, :1]).all())
    statistic, p = (0.0, 1.0) if same else friedmanchisquare(*table.T)
    return Ranks(
        dict(zip(names, ranks.tolist(), strict=True)),
        len(rows),
        float(statistic),
        float(p),
        critical_difference(len(names), len(rows)),
    )


def critical_difference(n_machines: int, n_datasets: int, level: float = LEVEL) -> float:
    """Return Nemenyi's critical difference of mean ranks.

    Examples
    --------
    Demsar's example: four classifiers on 14 data sets.

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    q = studentized_range.ppf(1 - level, n_machines, np.inf) / math.sqrt(2)
    return float(q * math.sqrt(n_machines * (n_machines + 1) / (6 * n_datasets)))


def paired_p(differences: ArrayLike, test_to_train: float = 0.0) -> float:
    """Return the p-value of a paired t-test; NaN for fewer than two differences.

    `differences` of two machines on the same splits; `test_to_train`, the ratio of test rows to
    training rows, corrects for training rows that splits share.

    Notes
    -----
    Splits of one pool share rows, so the plain test speaks of the machines on that pool, and finds
    too many differences between ways of learning. The corrected resampled test takes
    ``(1/n + test_to_train) var`` in place of ``var/n`` for the variance of the mean; it is meant
    for test parts smaller than the training part.

    References
    ----------
    C. Nadeau, Y. Bengio: Inference for the generalization error. Machine Learning 52, 2003.

    Examples
    --------
    >>> round(paired_p([1.0, 2.0, 3.0]), 3), paired_p([0.0, 0.0])
    (0.074, 1.0)
    >>> round(paired_p([1.0, 2.0, 3.0], test_to_train=1 / 9), 3)
    0.095
    """
    from scipy.stats import t as student

    if len(np.atleast_1d(differences)) < 2:
        return math.nan
    mean, se, df = _resampled(differences, test_to_train)
    if se == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * student.sf(abs(mean) / se, df))


def _resampled(differences: ArrayLike, test_to_train: float) -> tuple[float, float, int]:
    """Return the mean over splits that share rows, its standard error, and degrees of freedom."""
    values = np.asarray(differences, dtype=float)
    se = values.std(ddof=1) * math.sqrt(1.0 / len(values) + test_to_train)
    return float(values.mean()), float(se), len(values) - 1


def holm(p_values: ArrayLike) -> NDArray:
    """Return p-values corrected for their number, in their order; NaN stays and is not counted.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known])]
    factors = np.arange(len(order), 0, -1)
    out = np.full_like(p, np.nan)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return out


def wilcoxon_p(differences: ArrayLike) -> float:
    """Return the p-value of Wilcoxon's signed-rank test; NaN for fewer than two differences.

    `differences` of the mean results of two machines, one per data set. Zeros are ranked, and count
    half for either sign.

    Examples
    --------
    >>> round(wilcoxon_p([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3), wilcoxon_p([0.0, 0.0])
    (0.031, 1.0)
    """
    from scipy.stats import wilcoxon

    values = np.asarray(differences, dtype=float)
    if len(values) < 2:
        return math.nan
    return float(wilcoxon(values, zero_method="zsplit").pvalue) if values.any() else 1.0


def rank_biserial(differences: ArrayLike) -> float:
    """Return the effect size of the signed-rank test: 1 if all are positive, -1 if negative.

    Examples
    --------
    >>> rank_biserial([1.0, 2.0, -3.0]), rank_biserial([0.5, 0.1])
    (0.0, 1.0)
    """
    from scipy.stats import rankdata

    values = np.asarray(differences, dtype=float)
    ranks = rankdata(np.abs(values))
    return float(np.sum(np.sign(values) * ranks) / ranks.sum())


class Posterior(NamedTuple):
    """Probabilities that a machine is worse, practically equivalent, and better."""

    worse: float
    equivalent: float
    better: float

    def __str__(self) -> str:
        return " / ".join(f"{p:.2f}" for p in self)


def correlated_posterior(
    differences: ArrayLike, rope: float, test_to_train: float
) -> Posterior | None:
    """Return the posterior of the mean difference on one data set: the correlated t-test.

    `differences` of two machines on the same splits; differences up to `rope` are practically none;
    `test_to_train` is the ratio of test rows to training rows. The correlation of two splits is
    taken to be the share of test rows. None for fewer than two differences.

    Examples
    --------
    >>> print(correlated_posterior([1.0, 3.0, 2.0, 4.0], rope=1.0, test_to_train=1 / 3))
    0.02 / 0.09 / 0.89
    """
    from scipy.stats import t as student

    if len(np.atleast_1d(differences)) < 2:
        return None
    mean, se, df = _resampled(differences, test_to_train)
    if se == 0:
        sides = (mean < -rope, abs(mean) <= rope, mean > rope)
        return Posterior(*map(float, sides))
    worse, not_better = student.cdf((np.array([-rope, rope]) - mean) / se, df).tolist()
    return Posterior(worse, not_better - worse, 1.0 - not_better)


#: Draws of `signed_rank_posterior`: the probabilities are good to half a per cent.
DRAWS = 20_000


def signed_rank_posterior(differences: ArrayLike, rope: float) -> Posterior | None:
    """Return the posterior of the Bayesian signed-rank test over data sets.

    The weights of the data sets are drawn from a Dirichlet distribution, with one more of weight
    1/2 on which there is no difference. A draw speaks for the side on which most of the weight of
    the means of two data sets lies.

    `differences` of the mean results of two machines, one per data set; differences up to `rope`
    are practically none. None for fewer than two differences.

    Examples
    --------
    >>> print(signed_rank_posterior([3.0, 4.0, 2.0, 5.0], rope=1.0))
    0.00 / 0.01 / 0.99
    """
    values = np.append(0.0, np.asarray(differences, dtype=float))
    if len(values) < 3:
        return None
    weights = _weights(len(values))
    sums = values[:, None] + values
    better, worse = (
        np.einsum("ki,ki->k", weights @ side, weights)
        for side in (np.heaviside(sums - 2 * rope, 0.5), np.heaviside(-sums - 2 * rope, 0.5))
    )
    sides = np.column_stack([worse, 1.0 - worse - better, better])
    counts = np.bincount(sides.argmax(axis=1), minlength=3)
    return Posterior(*(counts / DRAWS).tolist())


@lru_cache(maxsize=1)  # comparisons of one table are mostly over equally many data sets
def _weights(n: int) -> NDArray:
    """Return the draws from the Dirichlet distribution, of shape (DRAWS, n)."""
    return np.random.default_rng(0).dirichlet(np.append(0.5, np.ones(n - 1)), DRAWS)
