"""What a computation may still take: time, for which solvers ask between iterations, and memory.

Whoever starts a computation allows it some (`within`); a solver that learns that `time_is_up` ends
with the best that it has. Threads do not inherit an allowance: `delayed` hands it to them.

How many threads of BLAS a training may take.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any


class OutOfTime(Exception):
    """A search ended between two of its trainings, as its time was up.

    Parameters
    ----------
    done, planned : int
        Trainings of pairs of classes.
    """

    def __init__(self, done: int, planned: int):
        super().__init__(done, planned)
        self.done, self.planned = done, planned

    def __str__(self) -> str:
        return f"{self.done} of {self.planned} trainings of pairs done"


@dataclass
class Allowance:
    """The time and the memory of one computation. What is pickled is the time that is left."""

    #: On the clock `time.monotonic`; infinite where there is no limit.
    end: float = math.inf
    #: Resident bytes of this process.
    memory: float = math.inf
    #: Whether anybody has asked for time after the end, and so ended before it was done.
    exceeded: bool = False

    @property
    def seconds(self) -> float:
        """What is left, 0 at least."""
        return max(0.0, self.end - time.monotonic())

    def __getstate__(self) -> tuple[float, float]:
        return self.seconds, self.memory

    def __setstate__(self, state: tuple[float, float]) -> None:
        seconds, self.memory = state
        self.end, self.exceeded = time.monotonic() + seconds, False


_NO_LIMIT = Allowance()
_current: ContextVar[Allowance] = ContextVar("allowance", default=_NO_LIMIT)


def allowed(seconds: float | None = None, memory: float | None = None) -> Allowance:
    """Return an allowance from now on, of no more than there is; None for all of that.

    Examples
    --------
    >>> with within(allowed(seconds=0.0)):
    ...     allowed(seconds=60.0).seconds
    0.0
    """
    around = _current.get()
    end = math.inf if seconds is None else time.monotonic() + seconds
    return Allowance(
        min(end, around.end), min(math.inf if memory is None else memory, around.memory)
    )


@contextmanager
def within(allowance: Allowance) -> Iterator[Allowance]:
    """Run a block with an allowance."""
    token = _current.set(allowance)
    try:
        yield allowance
    finally:
        _current.reset(token)


def time_left() -> float:
    """Return the seconds that are left, infinity without a limit: for solvers that take a limit."""
    return _current.get().seconds


def time_is_up() -> bool:
    """Whether a solver has to end now. To ask costs about 0.3 microseconds."""
    allowance = _current.get()
    if time.monotonic() < allowance.end:
        return False
    allowance.exceeded = True
    return True


def memory_limit() -> float:
    """Return the resident bytes that this process may have, infinity without a limit."""
    return _current.get().memory


@dataclass(frozen=True)
class _Handed:
    """A function that runs with an allowance."""

    function: Callable[..., Any]
    allowance: Allowance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with within(self.allowance):
            return self.function(*args, **kwargs)


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what `joblib.delayed` does, for calls with the allowance of this thread."""
    import joblib

    return joblib.delayed(_Handed(function, _current.get()))


#: Rows of the largest pair of classes from which BLAS may take several threads: an MMRM on 200 rows
#: takes forty times as long with two as with one.
BLAS_THREADS_FROM_ROWS = 1000


@contextmanager
def blas_threads_for(n_rows: int) -> Iterator[None]:
    """Limit BLAS to one thread where matrices are so small that threads cost more than they do."""
    if n_rows >= BLAS_THREADS_FROM_ROWS:
        yield
    else:
        with blas().limit(limits=1):
            yield


@cache
def blas() -> Any:
    """Return the controller of the BLAS libraries; to find them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
