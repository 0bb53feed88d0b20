"""The clock that measures the stages of a job, and the current time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime


class Clock:
    """Total CPU time and wall-clock time per stage of a job.

    Parameters
    ----------
    *stages : str
        Stages that are listed even if they never begin; other stages are added when they begin.
    tell : callable, optional
        Called with the name of each stage when the stage begins.

    Attributes
    ----------
    cpu : dict of str to float
        CPU seconds per stage, of all threads of this process.
    wall : dict of str to float
        Wall-clock seconds per stage.
    now : str or None
        The stage that began last.

    Examples
    --------
    >>> clock = Clock("training")
    >>> with clock.stage("training"):
    ...     total = sum(range(1000))
    >>> 0 <= clock.wall["training"] < 1
    True
    """

    def __init__(self, *stages: str, tell: Callable[[str], object] = lambda name: None):
        self._tell = tell
        self.now: str | None = None
        self.cpu, self.wall = dict.fromkeys(stages, 0.0), dict.fromkeys(stages, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block to a stage, even if the block raises an exception."""
        self.now = name
        self._tell(name)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - cpu
            self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - wall


def timestamp() -> str:
    """Return the current date and time in UTC, as ISO 8601 text."""
    return datetime.now(UTC).isoformat(timespec="seconds")
