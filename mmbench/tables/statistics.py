"""Comparison statistics: standard errors, and the band in which a published value counts as met.

Counting rules of the papers (best and worst, win/tie/loss by Welch's t-test) belong beside these
functions: numbers in, numbers out, nothing known of records or layouts.
"""

from __future__ import annotations

import math


def counting_sd(errors: float, n: int) -> float:
    """Return the binomial standard deviation of an error count, ``sqrt(e (1 - e/n))``.

    Parameters
    ----------
    errors : float
        Errors made; an expected number may be fractional.
    n : int
        Test rows.

    Examples
    --------
    >>> counting_sd(100, 2000)
    9.746794344808963
    """
    return math.sqrt(max(0.0, errors * (1 - errors / n)))


def total_se(sd: float, n: int, n_published: int | None, same_test_rows: bool) -> float:
    """Return the standard error of the difference of our mean and a published one.

    Parameters
    ----------
    sd : float
        Our standard deviation over partitions; of a single run, its counting deviation.
    n : int
        Our number of partitions.
    n_published : int or None
        The paper's number of partitions; None where it is not stated.
    same_test_rows : bool
        Whether both tested on the same rows, the data set's official test part.

    Returns
    -------
    float

    Notes
    -----
    The spread that papers print is left out: it is a standard deviation in some, a standard error
    in others, and in a few neither. The paper's partitions are taken to vary as much as ours:

    * Partitions drawn from the data: two independent means, ``sqrt(sd^2/n + sd^2/n_published)``.
      A single random partition is the case n = 1, with the counting deviation for `sd`.
    * The official test part: both counted errors on the same rows, so the luck of the draw is
      shared and must not be added twice. The variance of the difference is ``2 sd^2 (1 - r)``; the
      correlation r of two similar machines' errors is above one half (they fail on the same rows),
      so one counting deviation is still on the wide side.
    """
    ours = sd / math.sqrt(n)
    if same_test_rows or n_published is None:
        return ours
    return math.hypot(ours, sd / math.sqrt(n_published))


def seeds_se(sd: float, n: int, n_published: int | None, counting: float) -> float:
    """Return the standard error of the difference of our mean over seeds and a published one.

    All runs test on the same rows; seeds of inner folds and ties are what varies.

    Parameters
    ----------
    sd : float
        Our standard deviation over seeds.
    n : int
        Our number of seeds.
    n_published : int or None
        The paper's number of runs.
    counting : float
        The counting deviation of one run: what two implementations of one machine may differ by on
        the same rows; see `total_se`.
    """
    return math.hypot(counting, sd / math.sqrt(n), sd / math.sqrt(n_published or math.inf))


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the two-sided p-value of McNemar's exact test.

    Parameters
    ----------
    wins, losses : int
        Test rows that only the first machine has right, and only the second.

    Examples
    --------
    >>> round(mcnemar_p(1, 9), 4), mcnemar_p(0, 0)
    (0.0215, 1.0)
    """
    from scipy.stats import binomtest

    total = wins + losses
    return float(binomtest(wins, total).pvalue) if total else 1.0


def in_band(measured: float, published: float, se: float) -> bool:
    """Return whether a published value lies within two standard errors of the measured one.

    Examples
    --------
    >>> in_band(92, 98, se=9.4), in_band(86.3, 76.0, se=0.8)
    (True, False)
    """
    # Published values are decimals: a value on the edge must not fall out by its binary rounding.
    return abs(measured - published) <= 2 * se + 1e-9
