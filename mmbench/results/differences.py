"""The difference between two machines on one data set: standard error, test and posterior.

In split j, d_j is the metric of the first minus the metric of the second machine on the same rows.
Splits of a pool of rows share test rows and training rows; so a `Difference` counts each row of the
pool once, and adds the variation over training sets. Formulas, and the test for each rule of the
splits (`NEW_DRAWS`: the paired t-test), with Nadeau and Bengio, Machine Learning 52, 2003, and
Tukey 1953: docs/tests_over_splits.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmbench.results.statistics import LEVEL, Posterior, tukey_factor

#: Type of the name of a machine or cell.
Name = TypeVar("Name", bound=Hashable)
#: Minimum number of splits of a test; an official test part needs one split.
MIN_SPLITS = 5
#: Rule of generated data sets that draw new training and test rows for each split. Other rules are
#: the rules of `SplitRef`.
NEW_DRAWS = "new_draws"
#: If there are more training rows than this number times the test rows, the variance over training
#: sets cannot be estimated from overlapping splits.
MAX_TRAIN_TO_TEST = 2
#: If rows are tested less often than this on average, the part of the variance that repeated tests
#: of a row share cannot be estimated.
MIN_TESTS_PER_ROW = 1.5
#: Probability with which a test finds its detectable difference.
POWER = 0.8


class How(StrEnum):
    """How the standard error of a difference is computed, or why there is none."""

    ROWS_AND_SPLITS = "rows and splits"
    ROWS = "rows of the official test part"
    SPLITS = "independent splits"
    RESAMPLED = "corrected resampled t-test"
    FEW_SPLITS = "fewer than 5 splits"
    NO_ROWS = "no counts of right predictions per row"
    TIME_SERIES = "splits in the order of time"


@dataclass(frozen=True)
class Difference:
    """The difference between two machines on one data set, and the parts of its variance.

    The unit of d is a percentage point of accuracy, or the unit of another metric; the unit of a
    variance is its square. The fields and `se`, `df` are the columns of the frame ``pairs``.
    """

    #: Rule of the splits: a rule of `SplitRef`, or `NEW_DRAWS`.
    rule: str
    #: Number of splits, or of seeds on an official test part.
    k: int
    #: Mean numbers of training rows and of test rows per split.
    n_train: float
    n_test: float
    #: Mean difference over the splits: the first minus the second machine.
    d: float
    #: Variance of the differences over the splits; 0 for one split.
    S2: float
    #: Variance of d over samples of test rows; NaN without counts per row.
    V_rows: float
    #: Percentage of test rows that exactly one of the two machines predicts correctly.
    q: float
    #: Variance, over training sets, of the difference between two trained machines; infinite if it
    #: cannot be estimated.
    A: float
    #: Numbers of rows on which the first machine is right in more splits than the second machine,
    #: and in fewer splits. In one split, they are the two counts of McNemar's test.
    wins: int = 0
    losses: int = 0

    @property
    def how(self) -> How:
        """How the standard error is computed, or why there is none."""
        if self.rule == "time_series":
            return How.TIME_SERIES
        if self.rule != "official" and self.k < MIN_SPLITS:
            return How.FEW_SPLITS
        if self.rule == NEW_DRAWS:
            return How.SPLITS
        if not math.isnan(self.V_rows):
            return How.ROWS if self.rule == "official" else How.ROWS_AND_SPLITS
        blind = self.rule == "official" or self.n_train <= MAX_TRAIN_TO_TEST * self.n_test
        return How.NO_ROWS if blind else How.RESAMPLED

    @property
    def tested(self) -> bool:
        """Whether the difference has a standard error."""
        return self.how not in (How.FEW_SPLITS, How.NO_ROWS, How.TIME_SERIES)

    @property
    def se(self) -> float:
        """Standard error of d; NaN without a test."""
        return math.sqrt(self._variance) if self.tested else math.nan

    @property
    def _variance(self) -> float:
        """For partitions, ``max(base, min(base + f A, S2 (1/k + n_test/n_train)))``, where base is
        ``V_rows + S2/k``, and f the fraction of the rows that are training rows.
        """
        splits = self.S2 / self.k
        if self.how == How.SPLITS:
            return splits
        base = self._rows + splits
        if self.how == How.ROWS:
            return base
        resampled = splits + self.S2 * self.n_test / self.n_train
        training = self.n_train / (self.n_train + self.n_test) * self.A
        return max(base, min(base + training, resampled))

    @property
    def _rows(self) -> float:
        known = self.how in (How.ROWS, How.ROWS_AND_SPLITS)
        return self.V_rows if known else 0.0

    @property
    def df(self) -> float:
        """Degrees of freedom by Satterthwaite's formula: the variance over rows is taken as known;
        NaN without a test.
        """
        if not self.tested:
            return math.nan
        estimated = max(self.S2 / self.k, self._variance - self._rows)
        return (self.k - 1) * (self._variance / estimated) ** 2 if estimated else math.inf

    @property
    def p(self) -> float:
        """Two-sided p-value of the null hypothesis that the expected difference is 0; NaN without a
        test.
        """
        from scipy.special import stdtr

        if not self.tested or self.d == 0:
            return 1.0 if self.tested else math.nan
        return float(2 * stdtr(self.df, -abs(self.d) / self.se)) if self.se else 0.0

    def critical(self, m: int = 2) -> float:
        """Return the smallest significant difference between any two of `m` machines, by Tukey's
        range; NaN without a test.
        """
        from scipy.special import stdtrit

        return tukey_factor(m) / tukey_factor(2) * float(stdtrit(self.df, 1 - LEVEL / 2)) * self.se

    def detectable(self, m: int = 2) -> float:
        """Return the difference that the test between `m` machines finds with probability `POWER`;
        NaN without a test.

        Before a run, ``replace(earlier, k=planned)`` takes the variances from earlier results.
        """
        return self.critical(m) + NormalDist().inv_cdf(POWER) * self.se

    def posterior(self, rope: float) -> Posterior | None:
        """Return the posterior probabilities of the Bayesian correlated t-test with this standard
        error and these degrees of freedom; None without a test.

        The machines are practically equivalent if d is between -`rope` and `rope`.
        """
        from scipy.special import stdtr

        if not self.tested:
            return None
        borders = (np.array([-rope, rope]) - self.d) / (self.se or 1e-300)
        worse, not_better = stdtr(self.df, borders).tolist()
        return Posterior(worse, not_better - worse, 1.0 - not_better)


def difference(
    differences: ArrayLike,
    n_train: ArrayLike,
    n_test: ArrayLike,
    rows: ArrayLike | None = None,
    tested: ArrayLike | None = None,
    *,
    rule: str,
    q: float | None = None,
) -> Difference:
    """Return the difference between two machines from results per split and per row.

    Parameters
    ----------
    differences : array of shape (n_splits,)
        Metric of the first minus metric of the second machine on each split that both have.
    n_train, n_test : float or array of shape (n_splits,)
        Numbers of training and test rows.
    rows, tested : array of shape (n_rows,), optional
        For each row of the data set, the number of splits in which the first machine is right minus
        the number of splits in which the second machine is right, and the number of splits that
        test the row. Rows that are never tested may be left out.
    rule : str
        Rule of the splits (`Difference.rule`).
    q : float, optional
        Percentage of test rows that exactly one machine predicts correctly, as mean over splits. By
        default, a lower bound from `differences` and `rows`, which gives a larger standard error.

    Notes
    -----
    A metric without a value per row, such as the AUC, has no `rows`. Two runs of one machine are
    compared as two machines: the later minus the earlier run. Cells of one data set, such as two
    kernels, are compared together by the sums of their `differences` and of their `rows`. With the
    results of one machine as `differences` and `rows`, the result has the standard error of the
    mean of this machine.

    Examples
    --------
    >>> found = difference([1.0, 2.0, 3.0, 2.0, 2.0], 240, 500, rule="new_draws")
    >>> found.d, round(found.se, 3), found.df, round(found.p, 4)
    (2.0, 0.316, 4.0, 0.0032)

    One split of an official test part, with 40 rows that only one machine predicts correctly:

    >>> rows = [1] * 10 + [-1] * 30 + [0] * 960
    >>> round(difference(-2.0, 9000, 1000, rows, [1] * 1000, rule="official").p, 4)
    0.0019
    """
    # rounding errors of equal differences are no variance
    d_j = np.atleast_1d(np.round(np.asarray(differences, dtype=float), 9))
    k = len(d_j)
    n1, n2 = (float(np.asarray(n, dtype=float).mean()) for n in (n_train, n_test))
    S2 = float(d_j.var(ddof=1)) if k > 1 else 0.0
    lowest = float(np.abs(d_j).mean())
    V_rows, wins, losses, n, kbar = math.nan, 0, 0, 0, 1.0
    if rows is not None:
        D, k_i = np.asarray(rows, dtype=float), np.asarray(tested, dtype=float)
        n, K = int(np.count_nonzero(k_i)), float(k_i.sum())
        if not math.isclose(K, np.broadcast_to(n_test, k).sum()):
            raise ValueError("the splits of the rows differ from the splits of the differences")
        r = 100 * row_residuals(D, k_i)
        V_rows, kbar = float(r @ r), K / n
        wins, losses = int((D > 0).sum()), int((D < 0).sum())
        lowest = max(lowest, 100 * float(np.abs(D).sum()) / K)
    q = lowest if q is None else q
    A = 0.0
    if rule not in ("official", NEW_DRAWS):
        A = _training_variance(S2, 100 * q, n * V_rows, kbar, n1, n2)
    if rows is not None:
        # One more row for each machine that only this machine predicts correctly: without them,
        # the variance would be too small if the machines disagree on few rows.
        V_rows += 2 * (100 / len(r)) ** 2
    return Difference(rule, k, n1, n2, float(d_j.mean()), S2, V_rows, q, A, wins, losses)


def row_residuals(rows: NDArray, tested: NDArray) -> NDArray:
    """Return the contribution of each tested row to the error of a mean over all tests. The sum of
    their squares estimates the variance of the mean over samples of rows.

    `rows` has the shape (n_rows,) or (n_rows, n_machines).
    """
    known = tested > 0
    rows, tested = rows[known], tested[known]
    return (rows - np.multiply.outer(tested, rows.sum(axis=0) / tested.sum())) / tested.sum()


def _training_variance(
    S2: float, single: float, clustered: float, kbar: float, n_train: float, n_test: float
) -> float:
    """Return the variance over training sets that the variance `S2` over splits shows.

    `single` is the variance of a single test of a row, `clustered` the variance over rows times the
    number of rows, and `kbar` the mean number of tests per row.
    """
    if n_train > MAX_TRAIN_TO_TEST * n_test:
        return math.inf
    f, repeated = n_train / (n_train + n_test), single
    if kbar > MIN_TESTS_PER_ROW:
        # the part of `single` that all tests of a row share
        repeated = min(max((clustered - single / kbar) / (1 - 1 / kbar), 0.0), single)
    return max(0.0, S2 - (single - (1 - f) * repeated) / n_test) / (1 - f)


def worse_than_best(to_best: Mapping[Name, Difference]) -> list[Name]:
    """Return the machines that are worse than the best machine of a table row by more than chance.

    `to_best` contains each other machine minus the best machine, and only machines with results.
    Since the best machine is selected by the same results, the test is Tukey's range over all
    machines of the row: if all of them are equal, a row has any such machine with a probability of
    at most about `LEVEL`.
    """
    m = len(to_best) + 1
    return [name for name, own in to_best.items() if own.tested and -own.d > own.critical(m)]


def mean_covariance(
    results: NDArray, rows: NDArray | None = None, tested: NDArray | None = None
) -> NDArray:
    """Return the covariance matrix of the mean results of machines on one data set.

    `results` contains the results per split, shape (n_splits, n_machines); `rows` the numbers of
    splits in which a machine is right, shape (n_rows, n_machines); `tested` the number of splits
    that test a row. Without `rows`, only the variation over splits is counted. In one round of
    folds, each row is tested once, so that this variation contains the variation over rows.
    """
    (k, m), V = results.shape, np.zeros((results.shape[1],) * 2)
    if rows is not None and tested is not None:
        r = 100.0 * row_residuals(rows, tested)
        V += r.T @ r
    return V + np.cov(results, rowvar=False).reshape(m, m) / k if k > 1 else V
