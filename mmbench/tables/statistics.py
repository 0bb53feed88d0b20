"""Comparison statistics: standard errors, and the band in which a published value counts as met.

Counting rules of the papers (best and worst, win/tie/loss by Welch's t-test) belong beside these
functions: numbers in, numbers out, nothing known of records or layouts.
"""

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


def difference_se(
    sd: float | None, n: int, n_published: int | None, counting: float, same_test_rows: bool
) -> float:
    """Return the standard error of the difference of our mean and a published one.

    Parameters
    ----------
    sd : float or None
        Our standard deviation over runs; None for a single one.
    n, n_published : int or None
        Our number of runs, and the paper's; None where it is not stated.
    counting : float
        The binomial deviation of the errors of one run; 0 for what is no count.
    same_test_rows : bool
        Whether all runs, and the paper's, tested on the same rows: the official test part.

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

    Published values are decimals: what differs by binary rounding alone is equal.

    Examples
    --------
    >>> z_value(90.0, 93.0, 1.5), z_value(90.0, 90.0 + 1e-12, 0.0), z_value(90.0, 91.0, 0.0)
    (2.0, 0.0, inf)
    """
    difference = round(published - measured, 9)
    return difference / se if se else math.copysign(math.inf, difference) if difference else 0.0


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
