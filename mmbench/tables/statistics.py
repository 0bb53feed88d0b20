"""Statistics for the comparison of classifiers with published values and with each other.

Several machines are compared by counting rules of the papers, by ranks and tests over data sets,
and by paired tests over splits. The two Bayesian tests use the formulas of the package baycomp. The
module also computes the regression line of the MMRM paper.

References
----------
J. Demsar: Statistical comparisons of classifiers over multiple data sets. JMLR 7, 2006.
A. Benavoli, G. Corani, J. Demsar, M. Zaffalon: Time for a change: a tutorial for comparing multiple
classifiers through Bayesian analysis. JMLR 18, 2017.
S. Holm: A simple sequentially rejective multiple test procedure. Scand. J. Statistics 6, 1979.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import pandas as pd


def counting_sd(errors: float, n: int) -> float:
    """Return the binomial standard deviation ``sqrt(e (1 - e/n))`` of an error count e.

    `errors` is the number of errors on `n` test rows; it may be fractional if it is an expectation.

    Examples
    --------
    >>> counting_sd(100, 2000)
    9.746794344808963
    """
    return math.sqrt(max(0.0, errors * (1 - errors / n)))


def difference_se(
    sd: float | None, n: int, n_published: int | None, counting: float, same_test_rows: bool
) -> float:
    """Return the standard error of the difference between the measured and the published mean.

    `sd` is the measured standard deviation over runs, or None for a single run. `n` is the number
    of measured runs. `n_published` is the number of published runs, or None if the paper does not
    state it. `counting` is the binomial standard deviation of a single run, or 0 if the metric does
    not count errors. `same_test_rows` is true if all runs have the same test rows (an official test
    set).

    Notes
    -----
    The uncertainties printed in the papers are not used, because some are standard deviations, some
    are standard errors, and a few are neither. The published runs are assumed to have the standard
    deviation of the measured runs.

    For random partitions, the two means are treated as independent, so that their difference has
    the standard error ``sd sqrt(1/n + 1/n_published)``. For a single run on a random partition, the
    binomial standard deviation replaces `sd`. For an official test set, `sd` contains only the
    variation with the seeds of inner folds and tie-breaking. Therefore, ``counting^2`` is added to
    the variance for the sampling error of the test set.

    On an official test set, the measured and the published machine are tested on the same rows.
    The sampling errors of the two machines have a correlation r. The difference of the two sampling
    errors has the variance ``2 counting^2 (1 - r)``. Similar machines misclassify mostly the same
    rows, so that the correlation r of their sampling errors is above one half. If r is above one
    half, the variance ``2 counting^2 (1 - r)`` is below ``counting^2``.

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
    """Return the published minus the measured value, divided by the standard error `se`.

    The published and the measured value are treated as equal if they differ by less than 5e-10.

    Examples
    --------
    >>> z_value(90.0, 93.0, 1.5), z_value(90.0, 90.0 + 1e-12, 0.0), z_value(90.0, 91.0, 0.0)
    (2.0, 0.0, inf)
    """
    difference = round(published - measured, 9)
    return difference / se if se else math.copysign(math.inf, difference) if difference else 0.0


def wins_and_losses(first: NDArray, second: NDArray) -> tuple[int, int]:
    """Count the test rows that only one of two machines classifies correctly.

    The result contains the number of rows that only the first machine classifies correctly, and the
    number of rows that only the second machine classifies correctly. `first` and `second` are masks
    of the correctly classified test rows, shape (n_test,).
    """
    return int(np.sum(first & ~second)), int(np.sum(second & ~first))


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test for counts of `wins_and_losses`.

    Examples
    --------
    >>> round(mcnemar_p(1, 9), 4), mcnemar_p(0, 0)
    (0.0215, 1.0)
    """
    from scipy.stats import binomtest

    total = wins + losses
    return float(binomtest(wins, total).pvalue) if total else 1.0


#: Two-sided significance level of all tests.
LEVEL = 0.05


class Counts(NamedTuple):
    """Numbers of data sets on which a machine wins, ties and loses against another machine."""

    wins: int
    ties: int
    losses: int

    def __str__(self) -> str:
        return "/".join(map(str, self))


def welch_p(first: ArrayLike, second: ArrayLike) -> NDArray:
    """Return two-sided p-values of Welch's t-test of equal means.

    `first` and `second` contain the mean, the standard deviation and the size of a sample. Both
    arrays have the shape (3,) or, for several tests, (3, n_tests). If both standard deviations are
    0, the p-value is 1 for equal means and 0 for different means.

    Examples
    --------
    >>> print(welch_p((88.46, 0.85, 100), (89.13, 0.63, 100)).round(8))
    0.0
    >>> print(welch_p((1.0, 0.0, 9), (1.0, 0.0, 9)))
    1.0
    """
    from scipy.stats import ttest_ind_from_stats

    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    constant = (first[1] == 0) & (second[1] == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = ttest_ind_from_stats(*first, *second, equal_var=False).pvalue
    return np.where(constant, first[0] == second[0], p)


def win_tie_loss(first: ArrayLike, second: ArrayLike) -> Counts:
    """Count the data sets on which the first machine wins, ties and loses against the second.

    `first` and `second` contain mean, standard deviation and number of splits, shape
    (3, n_datasets). Larger means are better. A machine wins if its mean is larger and the p-value
    of Welch's t-test is below `LEVEL`.
    """
    signs = np.sign(np.subtract(first, second)[0]) * (welch_p(first, second) < LEVEL)
    return Counts(*(int(np.sum(signs == sign)) for sign in (1, 0, -1)))


def best_and_worst(means: pd.DataFrame, decimals: int | None = 2) -> dict[Any, tuple[int, int]]:
    """Count the data sets on which each machine has the largest mean, and the smallest mean.

    `means` has one row per data set and one column per machine. A data set is not counted if a mean
    is missing. If `decimals` is not None, means are first rounded to this number of decimals. If
    several machines share the largest or smallest mean, all of them are counted. The result is
    empty if every data set has a missing mean.
    """
    printed = means.dropna()
    if decimals is not None:
        printed = printed.map(lambda mean: round(mean, decimals))
    best = printed.eq(printed.max(axis=1), axis=0).sum()
    worst = printed.eq(printed.min(axis=1), axis=0).sum()
    counts = {name: (int(b), int(w)) for name, b, w in zip(printed, best, worst, strict=True)}
    return counts if len(printed) else {}


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of machines over data sets, with the results of Friedman's and Nemenyi's tests."""

    #: Mean rank by machine. On each data set, rank 1 is the best rank, and tied machines have their
    #: average rank.
    means: dict[str, float]
    #: Number of data sets.
    n: int
    #: Friedman's chi-square.
    statistic: float
    #: P-value of Friedman's test of the hypothesis that all machines have the same mean rank.
    p: float
    #: Nemenyi's critical difference, the smallest significant difference between two mean ranks.
    critical_difference: float

    def __len__(self) -> int:
        """Return the number of machines."""
        return len(self.means)

    @property
    def concordance(self) -> float:
        """Kendall's W: 1 if all data sets rank the machines equally, 0 if there is no agreement."""
        return self.statistic / (self.n * (len(self.means) - 1))

    @property
    def order(self) -> list[str]:
        """Machines in the order of mean ranks, the best machine first."""
        return sorted(self.means, key=lambda name: self.means[name])

    def cliques(self) -> list[tuple[str, ...]]:
        """Return the maximal groups of machines whose mean ranks do not differ significantly."""
        groups: list[tuple[str, ...]] = []
        for k, name in enumerate(self.order):
            reach = self.means[name] + self.critical_difference
            group = tuple(other for other in self.order[k:] if self.means[other] < reach)
            if len(group) > 1 and not (groups and group[-1] == groups[-1][-1]):
                groups.append(group)
        return groups


def rank_machines(values: pd.DataFrame, decimals: int = 2) -> Ranks:
    """Rank the machines on every data set, and test whether their mean ranks differ.

    `values` has one row per data set and one column per machine; larger values are better. Before
    ranking, values are rounded to `decimals` decimals. Raises ValueError if there are fewer than
    three machines or fewer than two data sets.
    """
    from scipy.stats import friedmanchisquare, rankdata

    n, n_machines = values.shape
    if n_machines < 3 or n < 2:
        raise ValueError("ranks need two data sets with results of the same three or more machines")
    table = np.round(values.to_numpy(), decimals)
    ranks = rankdata(-table, axis=1).mean(axis=0)
    # Friedman's statistic is 0/0 if all machines have equal values on all data sets.
    same = bool((table == table[:, :1]).all())
    statistic, p = (0.0, 1.0) if same else friedmanchisquare(*table.T)
    return Ranks(
        dict(zip(map(str, values), ranks.tolist(), strict=True)),
        n,
        float(statistic),
        float(p),
        critical_difference(n_machines, n),
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
    """Return the p-value of a paired t-test, or NaN if there are fewer than two differences.

    `differences` contains one difference between two machines per split. `test_to_train` is the
    number of test rows divided by the number of training rows. A positive `test_to_train` corrects
    the test for training rows that several splits share.

    Notes
    -----
    Splits of the same data share training rows, so that results on different splits are not
    independent. The uncorrected paired t-test therefore finds significant differences between
    learning algorithms too often. The corrected resampled t-test estimates the variance of the mean
    by ``(1/n + test_to_train) var`` instead of ``var/n``. The corrected resampled t-test is meant
    for test sets smaller than the training set.

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
    from scipy.special import stdtr

    if len(np.atleast_1d(differences)) < 2:
        return math.nan
    mean, se, df = _resampled(differences, test_to_train)
    if se == 0:
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(df, -abs(mean) / se))


def detectable_difference(
    sd: float, n: int, test_to_train: float = 0.0, power: float = 0.8
) -> float:
    """Return the true mean difference that `paired_p` finds significant with probability `power`.

    `sd` is the standard deviation over splits of the difference between two machines. `n` is the
    number of splits, at least 2. The significance level is `LEVEL`.

    Notes
    -----
    For a `power` of 0.8, the difference is ``(t_0.975 + t_0.8) sd sqrt(1/n + test_to_train)``. Here
    t_p is the p-quantile of Student's t-distribution with n - 1 degrees of freedom. The formula for
    the difference is an approximation, because the exact power follows from the noncentral
    t-distribution.

    Examples
    --------
    >>> round(detectable_difference(2.0, 50), 3), round(detectable_difference(2.0, 50, 1 / 9), 3)
    (0.809, 2.07)
    """
    from scipy.special import stdtrit

    quantiles = stdtrit(n - 1, [1 - LEVEL / 2, power])
    return float(quantiles.sum() * sd * math.sqrt(1 / n + test_to_train))


def _resampled(differences: ArrayLike, test_to_train: float) -> tuple[float, float, int]:
    """Return mean, standard error and degrees of freedom of the corrected resampled t-test."""
    values = np.asarray(differences, dtype=float)
    se = values.std(ddof=1) * math.sqrt(1.0 / len(values) + test_to_train)
    return float(values.mean()), float(se), len(values) - 1


def holm(p_values: ArrayLike) -> NDArray:
    """Return p-values adjusted by Holm's method, in the given order; missing values are ignored.

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
    """Return the p-value of Wilcoxon's signed-rank test.

    `differences` contains one difference between the means of two machines per data set.
    Differences of zero are ranked too: half of their rank sum is added to the positive rank sum,
    and half to the negative rank sum.

    Examples
    --------
    >>> round(wilcoxon_p([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3), wilcoxon_p([0.0, 0.0])
    (0.031, 1.0)
    """
    from scipy.stats import wilcoxon

    values = np.asarray(differences, dtype=float)
    return float(wilcoxon(values, zero_method="zsplit").pvalue) if values.any() else 1.0


def rank_biserial(differences: ArrayLike) -> float:
    """Return the rank-biserial correlation of the signed-rank test, between -1 and 1.

    The correlation is 1 if all differences are positive, and -1 if all differences are negative.

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
    """Probabilities that a machine is worse, practically equivalent, and better than another."""

    worse: float
    equivalent: float
    better: float

    def __str__(self) -> str:
        return " / ".join(f"{p:.2f}" for p in self)


def correlated_posterior(
    differences: ArrayLike, rope: float, test_to_train: float
) -> Posterior | None:
    """Return the posterior probabilities of the Bayesian correlated t-test on one data set.

    `differences` contains one difference between two machines per split. The machines are
    practically equivalent if the mean difference is between -`rope` and `rope`. `test_to_train` is
    the number of test rows divided by the number of training rows. The correlation between results
    of two splits is assumed to be the fraction of test rows in the data. If there are fewer than
    two differences, the result is None.

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


#: Number of Monte Carlo draws in `signed_rank_posterior`, sufficient for probabilities accurate to
#: 0.5 %.
DRAWS = 20_000


def signed_rank_posterior(differences: ArrayLike, rope: float) -> Posterior | None:
    """Return the posterior probabilities of the Bayesian signed-rank test over data sets.

    The posterior is computed by Monte Carlo. In each draw, random weights of the data sets are
    drawn from a Dirichlet distribution. The parameter of the Dirichlet distribution is 1 for each
    data set, and 1/2 for an additional data set with difference 0 (the prior). A pair of data sets
    is in the class worse, equivalent or better, according to the mean of its two differences. The
    weight of a pair is the product of the weights of its data sets. The outcome of a draw is worse,
    equivalent or better: the class with the largest sum of weights of pairs.

    `differences` contains one difference between the means of two machines per data set.
    Differences between -`rope` and `rope` are practically equivalent. If there are fewer than two
    differences, the result is None.

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


@lru_cache(maxsize=1)  # comparisons in one table mostly have the same number of data sets
def _weights(n: int) -> NDArray:
    """Return random weights of `n` data sets from a Dirichlet distribution, shape (DRAWS, n)."""
    return np.random.default_rng(0).dirichlet(np.append(0.5, np.ones(n - 1)), DRAWS)


# -- the regression line of the MMRM paper ---------------------------------------------------------

#: Minimum number of separable pairs of classes for a regression line.
MIN_POINTS = 3


def pair_points(
    per_pair: Sequence[Mapping[str, Any]], arrays: Mapping[str, NDArray]
) -> pd.DataFrame:
    """Return margin ratio and accuracy of each pair of classes as a data frame.

    Pairs without a margin ratio or without test rows are left out. The columns are ``pair``,
    ``ratio``, ``accuracy`` and ``separable``. The margin ratio is computed from the training rows
    of a pair. The accuracy (%) is measured by the machine of the pair, on the test rows of the two
    classes.

    `per_pair` contains the certificates in an MMRM's record. `arrays` contains the record's arrays
    ``decisions``, of shape (n_test, n_pairs), and ``y_test``. Column k of ``decisions`` belongs to
    ``per_pair[k]``. A decision value of at least 0 predicts the second class of the pair.
    """
    import pandas as pd

    truth = arrays["y_test"].astype(str)
    points = []
    for fit, decisions in zip(per_pair, arrays["decisions"].T, strict=True):
        negative, positive = map(str, fit["pair"])
        rows = (truth == negative) | (truth == positive)
        ratio, separable = fit["extra"].get("margin_ratio"), fit["extra"].get("separable", True)
        if ratio is not None and rows.any():
            accuracy = 100 * np.mean((decisions[rows] >= 0) == (truth[rows] == positive))
            points.append((f"{negative}/{positive}", ratio, accuracy, bool(separable)))
    return pd.DataFrame(points, columns=["pair", "ratio", "accuracy", "separable"])


def fit_line(points: pd.DataFrame) -> Any:
    """Return scipy's linear regression of accuracy on margin ratio over separable pairs of classes.

    The result is None if there are fewer than `MIN_POINTS` separable pairs, or if all separable
    pairs have the same margin ratio.
    """
    from scipy.stats import linregress

    points = points[points.separable]
    if len(points) < MIN_POINTS or np.ptp(points.ratio) == 0:
        return None
    return linregress(points.ratio, points.accuracy)
