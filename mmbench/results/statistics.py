"""Statistical comparisons of classifiers with each other, and of measured with published values.

Ranks and tests over data sets: Demsar, JMLR 7, 2006. Bayesian test: Benavoli et al., JMLR 18, 2017,
with the formulas of baycomp. Holm: Scand. J. Statistics 6, 1979. Regression line: MMRM paper.
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
    """Return the standard deviation ``sqrt(e (1 - e/n))`` of an error count, by the binomial
    distribution.

    `errors` is e, the observed or the expected number of errors on `n` test rows.

    Examples
    --------
    >>> counting_sd(100, 2000)
    9.746794344808963
    """
    return math.sqrt(max(0.0, errors * (1 - errors / n)))


def difference_se(
    sd: float | None, n: int, n_published: int | None, counting: float, same_test_rows: bool
) -> float:
    """Return the standard error of the difference between a measured and a published mean over
    runs.

    `sd` is the standard deviation over the measured runs, or None for a single run. `n` is the
    number of measured runs. `n_published` is the number of published runs, or None if the paper
    does not state this number. `counting` is the binomial standard deviation of the metric in a
    single run, or 0 if the metric does not count errors. `same_test_rows` is true if all runs are
    tested on the rows of one official test set.

    Notes
    -----
    The uncertainties printed in the papers are not used, since some are standard deviations, some
    are standard errors, and a few are neither. Published runs are assumed to have the same standard
    deviation as measured runs.

    For random partitions, the measured and the published mean are treated as independent, and their
    difference has the standard error ``sd sqrt(1/n + 1/n_published)``. If `n_published` is None,
    the published mean is treated as exact. For a single run on a random partition, the binomial
    standard deviation replaces `sd`. For an official test set, `sd` only measures how the result
    varies with the random seeds of parameter selection and tie-breaking. The sampling error of the
    official test set is included by adding the variance ``counting^2``.

    On an official test set, the measured and the published machine are tested on the same rows, so
    that their sampling errors have a correlation r. The difference of the two sampling errors has
    the variance ``2 counting^2 (1 - r)``. Two similar machines misclassify mostly the same rows, so
    that r is above one half. Therefore, the added variance ``counting^2`` is an upper bound on ``2
    counting^2 (1 - r)``.

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

    If the two values differ by less than 5e-10, they are treated as equal.

    Examples
    --------
    >>> z_value(90.0, 93.0, 1.5), z_value(90.0, 90.0 + 1e-12, 0.0), z_value(90.0, 91.0, 0.0)
    (2.0, 0.0, inf)
    """
    difference = round(published - measured, 9)
    return difference / se if se else math.copysign(math.inf, difference) if difference else 0.0


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test, given the numbers of test rows that
    only the first and only the second machine classifies correctly.

    Examples
    --------
    >>> round(mcnemar_p(1, 9), 4), mcnemar_p(0, 0)
    (0.0215, 1.0)
    """
    from scipy.special import bdtr  # scipy.stats takes three times as long to import

    return min(1.0, 2 * float(bdtr(min(wins, losses), wins + losses, 0.5)))


#: Significance level of all tests. All tests are two-sided.
LEVEL = 0.05


def welch_p(first: ArrayLike, second: ArrayLike) -> NDArray:
    """Return the two-sided p-values of Welch's t-test. The null hypothesis is that two means are
    equal.

    Each of the arrays `first` and `second` contains the mean, the standard deviation and the size
    of a sample. `first` and `second` have the shape (3,) for one test, and (3, n_tests) for several
    tests. If both standard deviations are 0, the p-value is 1 for equal means, and 0 for different
    means.

    Examples
    --------
    >>> print(welch_p((88.46, 0.85, 100), (89.13, 0.63, 100)).round(8))
    0.0
    >>> print(welch_p((1.0, 0.0, 9), (1.0, 0.0, 9)))
    1.0
    """
    from scipy.stats import ttest_ind_from_stats

    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = ttest_ind_from_stats(*first, *second, equal_var=False).pvalue
    return np.where((first[1] == 0) & (second[1] == 0), first[0] == second[0], p)


def win_tie_loss(first: ArrayLike, second: ArrayLike) -> tuple[int, ...]:
    """Return the numbers of wins, ties and losses of the first against the second machine.

    `first` and `second` have the shape (3, n_datasets). The rows of both arrays contain the mean,
    the standard deviation and the number of splits on each data set. The machine with the larger
    mean on a data set wins if the p-value of Welch's t-test is below `LEVEL`. Otherwise, the
    machines tie.
    """
    signs = np.sign(np.subtract(first, second)[0]) * (welch_p(first, second) < LEVEL)
    return tuple(int(np.sum(signs == sign)) for sign in (1, 0, -1))


def best_and_worst(means: pd.DataFrame, decimals: int | None = 2) -> dict[Any, tuple[int, int]]:
    """For each machine, count the data sets on which the machine has the largest mean, and the data
    sets on which the machine has the smallest mean.

    `means` has one row per data set and one column per machine. Only data sets without missing
    means are counted. Means are rounded to `decimals` decimals before they are compared, unless
    `decimals` is None. If several machines have the same largest or smallest mean, each of them is
    counted. If every data set has a missing mean, an empty dict is returned.
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
    """Mean ranks of machines over data sets, and results of the tests of Friedman and Nemenyi."""

    #: Mean rank by machine, the best machine first. On each data set, the best machine has rank 1,
    #: and machines with equal values have the mean of their ranks.
    means: dict[str, float]
    #: Number of data sets.
    n: int
    #: Friedman's chi-square.
    statistic: float
    #: P-value of Friedman's test. The null hypothesis is that all machines have the same mean rank.
    p: float
    #: Nemenyi's critical difference: the smallest significant difference between two mean ranks.
    critical_difference: float

    def __len__(self) -> int:
        """Return the number of machines."""
        return len(self.means)

    def cliques(self) -> list[tuple[str, ...]]:
        """Return the largest possible groups of machines whose mean ranks do not differ
        significantly.
        """
        groups, order = list[tuple[str, ...]](), list(self.means)
        for k, name in enumerate(order):
            reach = self.means[name] + self.critical_difference
            group = tuple(other for other in order[k:] if self.means[other] < reach)
            if len(group) > 1 and not (groups and group[-1] == groups[-1][-1]):
                groups.append(group)
        return groups


def rank_machines(values: pd.DataFrame, decimals: int = 2) -> Ranks:
    """Return the mean ranks of the machines over data sets, and tests of whether the mean ranks
    differ.

    `values` has one row per data set and one column per machine. Larger values are better. The
    values are rounded to `decimals` decimals before they are ranked. Raises ValueError if `values`
    has fewer than three machines or fewer than two data sets.
    """
    from scipy.stats import friedmanchisquare, rankdata

    n, n_machines = values.shape
    if n_machines < 3 or n < 2:
        raise ValueError("ranks need two data sets with results of the same three or more machines")
    table = np.round(values.to_numpy(), decimals)
    # Friedman's statistic is 0/0 if, on each data set, all machines have the same value.
    statistic, p = (0.0, 1.0) if (table == table[:, :1]).all() else friedmanchisquare(*table.T)
    means = zip(map(str, values), rankdata(-table, axis=1).mean(axis=0).tolist(), strict=True)
    ranks = dict(sorted(means, key=lambda item: item[1]))
    return Ranks(ranks, n, float(statistic), float(p), critical_difference(n_machines, n))


def critical_difference(n_machines: int, n_datasets: int) -> float:
    """Return Nemenyi's critical difference: the smallest significant difference between two mean
    ranks, at the level `LEVEL`.

    Examples
    --------
    Demsar's example: four classifiers on 14 data sets.

    >>> round(critical_difference(4, 14), 2)
    1.25
    """
    spread = math.sqrt(n_machines * (n_machines + 1) / (6 * n_datasets))
    return tukey_factor(n_machines) * spread


@lru_cache
def tukey_factor(m: int) -> float:
    """Return the critical value of the largest difference between two of `m` equal machines, in
    standard errors of a difference, at the level `LEVEL` (Tukey's range).

    Examples
    --------
    >>> [round(tukey_factor(m), 2) for m in (2, 3, 5, 10, 19)]
    [1.96, 2.34, 2.73, 3.16, 3.52]
    """
    from scipy.special import ndtr

    # The range of m normal values is below q with the probability m E[(F(Z) - F(Z - q))^(m - 1)].
    # The trapezoidal rule is exact to rounding for this integrand, and scipy.stats, which has the
    # quantile, would take longer to import than a table takes to print.
    step = 1 / 32
    z = np.arange(-12, 12, step)
    weights = m * step * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    low, high = 0.0, 32.0
    while low < (middle := (low + high) / 2) < high:
        below = weights @ (ndtr(z) - ndtr(z - middle)) ** (m - 1) < 1 - LEVEL
        low, high = (middle, high) if below else (low, middle)
    return low / math.sqrt(2)


#: Number of draws in `rank_stability`.
RANK_DRAWS = 2000


def rank_stability(
    values: pd.DataFrame, covariances: ArrayLike, decimals: int = 2, seed: int = 0
) -> pd.DataFrame:
    """Return how much the order of machines by mean rank depends on chance.

    `values` has one row per data set and one column per machine; larger values are better.
    `covariances` has the shape (n_datasets, n_machines, n_machines), and contains the covariance
    matrices of the values of each data set. Each draw takes as many data sets with replacement,
    adds normal noise with these covariances, and ranks the machines as in `rank_machines`.

    The rows of the returned frame are the machines, sorted by mean rank. The column ``p_first`` is
    the probability of the first place; machines with equal mean ranks share a place. The interval
    from ``place_low`` to ``place_high`` contains the place in 90 % of the draws. ``p_turn`` is the
    probability that the next machine has the smaller mean rank; equal mean ranks count one half.
    """
    import pandas as pd
    from scipy.stats import rankdata

    random, (n, m) = np.random.default_rng(seed), values.shape
    # The signs of eigenvectors depend on the processor; the symmetric square roots V^(1/2) do not.
    variances, vectors = np.linalg.eigh(np.asarray(covariances, dtype=float))
    roots = (vectors * np.sqrt(variances.clip(0))[:, None]) @ vectors.transpose(0, 2, 1)
    noise = np.einsum("kni,nij->knj", random.standard_normal((RANK_DRAWS, n, m)), roots)
    drawn = values.to_numpy() + noise
    ranks = rankdata(-np.round([values.to_numpy(), *drawn], decimals), axis=2)
    times = random.multinomial(n, np.full(n, 1 / n), RANK_DRAWS)
    means = np.einsum("kn,knm->km", [np.ones(n), *times], ranks).round(9)
    order = np.argsort(means[0], kind="stable")
    sums, places = means[1:, order], rankdata(means[1:, order], axis=1)
    first = sums == sums.min(axis=1, keepdims=True)
    low, high = np.quantile(places, (0.05, 0.95), axis=0, method="inverted_cdf")
    turns = np.heaviside(sums[:, :-1] - sums[:, 1:], 0.5).mean(axis=0)
    columns = {
        "mean_rank": means[0, order] / n,
        "p_first": (first / first.sum(axis=1, keepdims=True)).mean(axis=0),
        "place_low": low,
        "place_high": high,
        "p_turn": np.append(turns, np.nan),
    }
    return pd.DataFrame(columns, index=values.columns[order])


def paired_p(differences: ArrayLike) -> float:
    """Return the p-value of a paired t-test, or NaN if there are fewer than two splits.

    `differences` contains, for each split, the difference between the results of two machines. The
    test treats the splits as independent, and reports significant differences too often if splits
    of a data set have rows in common; see `mmbench.results.differences`.

    Examples
    --------
    >>> round(paired_p([1.0, 2.0, 3.0]), 3), paired_p([0.0, 0.0])
    (0.074, 1.0)
    """
    from scipy.special import stdtr

    values = np.atleast_1d(np.asarray(differences, dtype=float))
    if len(values) < 2:
        return math.nan
    mean, se = float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
    return float(2 * stdtr(len(values) - 1, -abs(mean) / se)) if se else float(mean == 0)


def holm(p_values: ArrayLike) -> NDArray:
    """Return the p-values adjusted for multiple tests by Holm's method, in the order of `p_values`.

    A p-value of NaN stays NaN, and is not counted as a test.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(p))
    order, out = known[np.argsort(p[known])], np.full_like(p, np.nan)
    # the smallest of n p-values is multiplied by n, the next by n - 1, and so on
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return out


def wilcoxon_p(differences: ArrayLike) -> float:
    """Return the p-value of Wilcoxon's signed-rank test over data sets.

    `differences` contains, for each data set, the difference between the means of two machines.
    Half of the rank sum of the zero differences is added to the rank sum of the positive
    differences, and half to the rank sum of the negative differences.

    Examples
    --------
    >>> round(wilcoxon_p([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3), wilcoxon_p([0.0, 0.0])
    (0.031, 1.0)
    """
    from scipy.stats import wilcoxon

    values = np.asarray(differences, dtype=float)
    return float(wilcoxon(values, zero_method="zsplit").pvalue) if values.any() else 1.0


def rank_biserial(differences: ArrayLike) -> float:
    """Return the rank-biserial correlation, an effect size of Wilcoxon's signed-rank test.

    The rank-biserial correlation is 1 if all differences are positive, and -1 if all are negative.

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
    """Probabilities that a machine is worse than, practically equivalent to, and better than
    another machine.
    """

    worse: float
    equivalent: float
    better: float

    def __str__(self) -> str:
        return " / ".join(f"{p:.2f}" for p in self)


#: Number of Monte Carlo draws in `signed_rank_posterior`. With this number of draws, the standard
#: errors of the probabilities are below 0.5 %.
DRAWS = 20_000


def signed_rank_posterior(differences: ArrayLike, rope: float) -> Posterior:
    """Return the posterior probabilities of the Bayesian signed-rank test, which compares two
    machines over data sets.

    The posterior probabilities are estimated from Monte Carlo draws. In each draw, the data sets
    are given random weights from a Dirichlet distribution. The prior is an additional data set with
    difference 0. The parameter of the Dirichlet distribution is 1/2 for the additional data set,
    and 1 for every other data set.

    There are three classes of pairs of data sets: "worse", "equivalent" and "better". The class of
    a pair depends on the mean of the differences on its two data sets. The weight of a pair is the
    product of the weights of its two data sets. The outcome of a draw is the class whose pairs have
    the largest sum of weights. The posterior probability of a class is the fraction of draws with
    this class as the outcome.

    `differences` contains, for each data set, the difference between the means of two machines. Two
    machines are practically equivalent on a data set if their difference is between -`rope` and
    `rope`.

    Examples
    --------
    >>> print(signed_rank_posterior([3.0, 4.0, 2.0, 5.0], rope=1.0))
    0.00 / 0.01 / 0.99
    """
    values = np.append(0.0, np.asarray(differences, dtype=float))
    weights, sums = _weights(len(values)), values[:, None] + values
    better, worse = (
        np.einsum("ki,ki->k", weights @ side, weights)
        for side in (np.heaviside(sums - 2 * rope, 0.5), np.heaviside(-sums - 2 * rope, 0.5))
    )
    sides = np.column_stack([worse, 1.0 - worse - better, better])
    return Posterior(*(np.bincount(sides.argmax(axis=1), minlength=3) / DRAWS).tolist())


@lru_cache(maxsize=1)  # one cached array suffices, since most tests in a table have the same n
def _weights(n: int) -> NDArray:
    """Return an array of shape (DRAWS, n): random weights of `n` data sets, drawn from a Dirichlet
    distribution. The first data set is the prior of `signed_rank_posterior`.
    """
    return np.random.default_rng(0).dirichlet(np.append(0.5, np.ones(n - 1)), DRAWS)


# -- the regression line of the MMRM paper ---------------------------------------------------------

#: Minimum number of separable pairs of classes to which a regression line is fitted.
MIN_POINTS = 3


def pair_accuracies(
    pairs: Sequence[Sequence[Any]], arrays: Mapping[str, NDArray]
) -> list[float | None]:
    """Return the accuracy of each pair of classes on the test rows of the two classes, in per cent;
    None for a pair without test rows.

    `arrays` contains ``decisions``, of shape (n_test, n_pairs), and the class labels ``y_test``.
    If a decision value is at least 0, the second class of the pair is predicted.
    """
    truth, found = arrays["y_test"].astype(str), list[float | None]()
    for pair, decisions in zip(pairs, arrays["decisions"].T, strict=True):
        negative, positive = map(str, pair)
        rows = (truth == negative) | (truth == positive)
        hits = (decisions[rows] >= 0) == (truth[rows] == positive)
        found.append(float(100 * np.mean(hits)) if rows.any() else None)
    return found


def pair_points(fits: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a data frame with the margin ratio and the accuracy of each pair of classes.

    Pairs of classes without a margin ratio or without test rows are left out. The columns of the
    data frame are ``pair``, ``ratio``, ``accuracy`` and ``separable``. The margin ratio is computed
    from the training rows of the two classes, and the accuracy from their test rows; see
    `pair_accuracies`. A pair of classes is separable if all slacks of the MMRM are zero.

    `fits` contains the certificates of an MMRM with the entry ``accuracy_pct``.
    """
    import pandas as pd

    points = [
        ("/".join(map(str, fit["pair"])), ratio, fit["accuracy_pct"], bool(separable))
        for fit in fits
        if (ratio := fit["extra"].get("margin_ratio")) is not None
        if fit.get("accuracy_pct") is not None
        for separable in [fit["extra"].get("separable", True)]
    ]
    return pd.DataFrame(points, columns=["pair", "ratio", "accuracy", "separable"])


def fit_line(points: pd.DataFrame) -> Any:
    """Fit a regression line of accuracy on margin ratio by `scipy.stats.linregress`, with one point
    per separable pair of classes.

    Returns None if there are fewer than `MIN_POINTS` separable pairs, or if all of them have the
    same margin ratio.
    """
    from scipy.stats import linregress

    points = points[points.separable]
    if len(points) < MIN_POINTS or np.ptp(points.ratio) == 0:
        return None
    return linregress(points.ratio, points.accuracy)
