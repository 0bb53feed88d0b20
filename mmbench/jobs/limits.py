"""How long a job may take, and how much memory: ``1h``, ``90 s``, ``8 GB``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mmbench.errors import Status, UserError

SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
BYTES = {"MB": 10**6, "MiB": 2**20, "GB": 10**9, "GiB": 2**30, "TB": 10**12, "TiB": 2**40}


@dataclass(frozen=True)
class Limits:
    """Time and memory limit of a job; None means unlimited."""

    #: Seconds on the clock, from the start of the job to its end.
    time: float | None = None
    #: Private resident bytes of the process that runs it and of all that this one has started.
    memory: float | None = None

    def over(self, other: Limits) -> Limits:
        """Return these limits, and those of `other` where these are none."""
        return Limits(self.time or other.time, self.memory or other.memory)

    def reached_before(self, record: Mapping[str, Any]) -> bool:
        """Whether a job that a limit has stopped would be stopped by these limits too.

        A job that found too little free memory is not meant: there may be more now.
        """
        limits = record.get("limits") or {}
        if not record.get("reached"):
            return False
        time = record["status"] == Status.TIME_LIMIT
        was, now = (limits["time"], self.time) if time else (limits["memory"], self.memory)
        return now is not None and now <= was


NO_LIMITS = Limits()


def parse_limits(time: object = None, memory: object = None) -> Limits:
    """Return the limits that a user wrote.

    Raises
    ------
    UserError
        If one of them is no positive amount with a unit; the message says which.

    Examples
    --------
    >>> parse_limits("1h", "8 GB")
    Limits(time=3600.0, memory=8000000000.0)
    >>> parse_limits(90)
    Limits(time=90.0, memory=None)
    """
    return Limits(
        None if time is None else _amount("time", time, SECONDS, "s"),
        None if memory is None else _amount("memory", memory, BYTES, "MB"),
    )


def _amount(name: str, value: object, units: Mapping[str, int], default: str) -> float:
    """Return a number of seconds or bytes; the unit may be left out for seconds only."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?(?:e\d+)?)\s*([A-Za-z]*)", str(value).strip())
    number, unit = match.groups() if match else ("0", "")
    known = {known.lower(): size for known, size in units.items()}
    if default == "s":
        known[""] = 1
    if float(number) > 0 and unit.lower() in known:
        return float(number) * known[unit.lower()]
    example = "90 s, 30 min or 1 h" if default == "s" else "500 MB, 8 GB or 4 GiB"
    raise UserError(f"{name} limit {str(value)[:40]!r}: not an amount such as {example}")
