"""The certificates of each pair of classes, all splits together."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mmbench.errors import FINISHED, Status
from mmbench.jobs.record import Record


@dataclass(frozen=True)
class PairLine:
    """What is known of the fits of one pair of classes."""

    pair: str
    #: Fits.
    n: int
    #: How many ended how.
    ended: str
    #: Whether all of them are optimal.
    sound: bool
    #: The largest; an infinite gap where there is no bound.
    gap: float | None
    violation: float | None
    #: Means.
    n_support: float | None
    seconds: float | None
    iterations: float | None


def pair_lines(records: Sequence[Record]) -> list[PairLine]:
    """Return a line a pair of classes, in the order of the records."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for fit in record.per_pair:
            found.setdefault(" / ".join(map(str, fit["pair"])), []).append(fit)
    return [_line(pair, fits) for pair, fits in found.items()]


def _line(pair: str, fits: Sequence[Mapping[str, Any]]) -> PairLine:
    ended = Counter(str(fit["status"]) for fit in fits)
    gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in fits if "gap" in fit]
    return PairLine(
        pair,
        len(fits),
        ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in ended.items()),
        set(ended) <= {*FINISHED, Status.UNCERTIFIED},
        max(gaps, default=None),
        max(_values(fits, "max_violation"), default=None),
        *(_mean(fits, name) for name in ("n_support", "seconds", "iterations")),
    )


def _values(fits: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [fit[name] for fit in fits if fit.get(name) is not None]


def _mean(fits: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = _values(fits, name)
    return fmean(values) if values else None
