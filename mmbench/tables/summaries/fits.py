"""The certificates of many fits together: how they ended, and gaps against what was asked."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from mmbench.errors import SEVERITY, Status
from mmbench.jobs.record import Record


@dataclass(frozen=True)
class Fits:
    """What is known of the fits of some records."""

    #: How many ended how.
    statuses: Counter[str] = field(default_factory=Counter)
    #: Relative gap of each that was asked for one; infinite where there is no bound.
    gaps: tuple[float, ...] = ()
    #: The largest relative gap and constraint violation.
    worst_gap: float | None = None
    worst_violation: float | None = None
    #: The relative gap that was asked; None where none was, or where it is not known.
    gap_tolerance: float | None = None
    #: How many have coefficients at the limit that the machine sets them.
    n_limited: int = 0

    @property
    def median_gap(self) -> float | None:
        """The gap that half of the fits do not exceed."""
        return median(self.gaps) if self.gaps else None

    @property
    def n_above(self) -> int | None:
        """How many gaps are larger than asked."""
        if self.gap_tolerance is None or not self.gaps:
            return None
        return sum(gap > self.gap_tolerance for gap in self.gaps)

    def ended(self) -> str:
        """Return how many fits ended how, the gravest first.

        Examples
        --------
        >>> Fits(Counter(optimal=7, trivial=1, one_class=2)).ended()
        '1 trivial, 2 one class, 7 optimal'
        >>> Fits(Counter(optimal=7), n_limited=3).ended()
        '7 optimal (3 at the coefficient limit)'
        """
        order = sorted(self.statuses, key=lambda status: -SEVERITY.index(Status(status)))
        ended = ", ".join(f"{self.statuses[s]} {s.replace('_', ' ')}" for s in order)
        return f"{ended} ({self.n_limited} at the coefficient limit)" if self.n_limited else ended


def fits_of(records: Iterable[Record]) -> Fits:
    """Return what is known of the fits of finished records."""
    records = [record for record in records if record.done]
    asked = (p for r in records for p in r.per_pair if p.get("status") != Status.UNCERTIFIED)
    stored = (pair["gap"] for pair in asked if "gap" in pair)
    gaps = tuple(math.inf if gap is None else gap for gap in stored)
    return Fits(
        sum((Counter(record.fits["statuses"]) for record in records), Counter()),
        gaps,
        max(gaps) if gaps else _largest(records, "worst_gap"),
        _largest(records, "worst_violation"),
        _largest(records, "gap_tolerance"),
        sum(
            pair.get("extra", {}).get("at_coefficient_limit", False)
            for record in records
            for pair in record.per_pair
        ),
    )


def _largest(records: Iterable[Record], name: str) -> float | None:
    values = (record.fits.get(name) for record in records)
    return max((value for value in values if value is not None), default=None)
