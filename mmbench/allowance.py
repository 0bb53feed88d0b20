"""Limits of a computation: time, which solvers check between iterations, memory, BLAS threads.

The caller sets the limits of a block (`within`); a solver ends with its best solution if
`time_is_up`. Threads do not inherit an allowance: `delayed` passes it to them.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, partial
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
    """The time and the memory of one computation; pickled with the time that is left."""

    #: On the clock `time.monotonic`; infinite where there is no limit.
    end: float = math.inf
    #: Resident bytes of this process.
    memory: float = math.inf
    #: Whether `time_is_up` has been true, so that some computation ended early.
    exceeded: bool = False

    @property
    def seconds(self) -> float:
        """The seconds left, at least 0."""
        return max(0.0, self.end - time.monotonic())

    def __getstate__(self) -> tuple[float, float]:
        return self.seconds, self.memory

    def __setstate__(self, state: tuple[float, float]) -> None:
        seconds, self.memory = state
        self.end, self.exceeded = time.monotonic() + seconds, False


_NO_LIMIT = Allowance()
_current: ContextVar[Allowance] = ContextVar("allowance", default=_NO_LIMIT)


def allowed(seconds: float | None = None, memory: float | None = None) -> Allowance:
    """Return an allowance from now on, within the current one; None for all that is left.

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
    """Whether a solver has to end now; a call takes about 0.3 microseconds."""
    allowance = _current.get()
    if time.monotonic() < allowance.end:
        return False
    allowance.exceeded = True
    return True


def memory_limit() -> float:
    """Return the resident bytes that this process may have, infinity without a limit."""
    return _current.get().memory


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `joblib.delayed` of a function that is called with the allowance of this thread."""
    import joblib

    return joblib.delayed(partial(_call_within, _current.get(), function))


def _call_within(
    allowance: Allowance, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    with within(allowance):
        return function(*args, **kwargs)


#: Least rows of the largest pair of classes for several threads of BLAS: an MMRM on 200 rows takes
#: forty times as long with two threads.
BLAS_THREADS_FROM_ROWS = 1000


@contextmanager
def blas_threads_for(n_rows: int) -> Iterator[None]:
    """Limit BLAS to one thread if matrices are small."""
    if n_rows >= BLAS_THREADS_FROM_ROWS:
        yield
    else:
        with blas().limit(limits=1):
            yield


@cache
def blas() -> Any:
    """Return the controller of the BLAS libraries, which takes milliseconds to find them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
