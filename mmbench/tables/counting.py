"""Counting rules of the MAMC paper: best and worst of a row, and win/tie/loss by Welch's t-test.

Numbers in, numbers out: the rules are held to the published means and deviations, whose averages
and win/tie/loss counts the paper prints.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

Name = TypeVar("Name")

#: Level of the test, two-sided.
LEVEL = 0.05


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


def win_tie_loss(pairs: Iterable[tuple[Sample, Sample]], level: float = LEVEL) -> Counts:
    """Count on how many data sets the first machine is significantly better, the same, worse.

    Parameters
    ----------
    pairs : iterable of (Sample, Sample)
        One a data set; larger means are better.
    level : float, default=0.05
        Below this p-value a difference counts.
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

    Parameters
    ----------
    rows : sequence of mapping of name to value
        One a data set.
    decimals : int or None, default=2
        Values are compared as they are printed; equal ones all count. None: as they are.

    Returns
    -------
    dict of name to (best, worst)

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
