"""Time and memory limits of a job, given as ``1h``, ``90 s`` or ``8 GB``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmbench.errors import Status, UserError

#: Units of time and of memory in lower case, since the case of a unit is ignored.
UNIT_SECONDS = {"": 1, "s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
BYTES = {"mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30, "tb": 10**12, "tib": 2**40}


@dataclass(frozen=True)
class Limits:
    """Time and memory limit of a job; None means unlimited."""

    #: Wall-clock time of the job, in seconds.
    time: float | None = None
    #: Private resident memory of the job's process and its child processes, in bytes.
    memory: float | None = None

    def over(self, other: Limits) -> Limits:
        """Return a copy of `self` with the limits of `other` in place of limits that are None."""
        return Limits(self.time or other.time, self.memory or other.memory)

    def reached_before(self, record: Mapping[str, Any]) -> bool:
        """Whether a limit stopped the job of `record`, and the same limit in `self` is not higher.

        Returns False for a job that ended because too little memory was free, since more memory may
        be free in the next run.
        """
        if not record.get("reached"):
            return False
        limit = "time" if record["status"] == Status.TIME_LIMIT else "memory"
        return (now := getattr(self, limit)) is not None and now <= record["limits"][limit]


NO_LIMITS = Limits()


def parse_limits(time: object = None, memory: object = None) -> Limits:
    """Return the time and memory limits in a configuration or in command-line options.

    Raises
    ------
    UserError
        If a limit is not a positive number with a known unit. A time without a unit is in seconds;
        a memory size must have a unit.

    Examples
    --------
    >>> parse_limits("1h", "8 GB")
    Limits(time=3600.0, memory=8000000000.0)
    >>> parse_limits(90)
    Limits(time=90.0, memory=None)
    """
    return Limits(_amount("time", time, UNIT_SECONDS), _amount("memory", memory, BYTES))


def _amount(name: str, value: object, units: Mapping[str, int]) -> float | None:
    """Return a time in seconds or a memory size in bytes; only a time may have no unit."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([A-Za-z]*)", str(value).strip())
    number, unit = match.groups() if match else ("0", "")
    if float(number) > 0 and unit.lower() in units:
        return float(number) * units[unit.lower()]
    example = "90 s, 30 min or 1 h" if name == "time" else "500 MB, 8 GB or 4 GiB"
    raise UserError(f"{name} limit {str(value)[:40]!r}: not an amount such as {example}")
