"""CPU and wall-clock seconds of the stages of a job."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Adds up the time of named stages.

    Parameters
    ----------
    *stages : str
        Those that count from the start, with no time; others join when they begin.
    tell : callable, optional
        Gets the name of each stage when it begins.

    Attributes
    ----------
    cpu : dict of str to float
        Seconds of all threads of this process.
    wall : dict of str to float
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

    def __init__(self, *stages: str, tell: Callable[[str], object] | None = None):
        self._tell = tell
        self.now: str | None = None
        self.cpu = dict.fromkeys(stages, 0.0)
        self.wall = dict.fromkeys(stages, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time inside the block, also when it ends by an exception."""
        self.now = name
        if self._tell:
            self._tell(name)
        cpu, wall = time.process_time(), time.perf_counter()
        try:
            yield
        finally:
            self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - cpu
            self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - wall
