"""Limits on the time, the memory and the BLAS threads of a computation.

A solver calls `time_is_up` between iterations, and returns its best solution. New threads do not
inherit the limits of `within`; `delayed` passes them to joblib's.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, partial
from threading import Lock
from typing import Any

LOGGER = logging.getLogger("mmbench")

#: Seconds between two progress messages of a training; see `time_is_up`.
MESSAGE_SECONDS = 10.0


class OutOfTime(Exception):
    """A grid search or a calibration reached the time limit before all trainings were completed.

    Parameters
    ----------
    done, planned : int
        Numbers of completed and of planned trainings. A grid search counts one binary training per
        grid point, inner split and pair of classes.
    """

    def __init__(self, done: int, planned: int):
        super().__init__(done, planned)
        self.done, self.planned = done, planned

    def __str__(self) -> str:
        return f"{self.done} of {self.planned} trainings of pairs done"


class NoTimeLeft(OutOfTime):
    """The preparation of a training reached the time limit, so that there is no solution."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def __str__(self) -> str:
        return "no solution yet: a matrix of the training takes more time"


@dataclass
class Allowance:
    """Time and memory limits of one computation.

    A pickled `Allowance` contains the remaining seconds instead of `end`, since another process may
    have another clock.
    """

    #: Deadline on the clock `time.monotonic`, in seconds; infinite without a time limit.
    end: float = math.inf
    #: Maximum private resident memory of this process, in bytes.
    memory: float = math.inf
    #: Whether `time_is_up` or `no_time_for` has returned True, so that a solver stopped early.
    exceeded: bool = False
    #: Name of the training in progress messages; without a name, there are no messages.
    name: str = ""
    #: Step of the computation that progress messages name.
    stage: str = "training"
    #: Time of the next progress message on the clock `time.monotonic`, in seconds.
    next_message: float = field(default_factory=lambda: time.monotonic() + MESSAGE_SECONDS)

    @property
    def seconds(self) -> float:
        """Remaining time in seconds, at least 0."""
        return max(0.0, self.end - time.monotonic())

    def __getstate__(self) -> tuple[float, float]:
        return self.seconds, self.memory

    def __setstate__(self, state: tuple[float, float]) -> None:
        seconds, self.memory = state
        self.__init__(time.monotonic() + seconds, self.memory)  # type: ignore[misc]


_NO_LIMIT = Allowance()
_current: ContextVar[Allowance] = ContextVar("allowance", default=_NO_LIMIT)


def allowed(seconds: float | None = None, memory: float | None = None) -> Allowance:
    """Return the current limits, reduced to at most `seconds` from now and `memory` bytes.

    If `seconds` or `memory` is None, the current limit is kept.

    Examples
    --------
    >>> with within(allowed(seconds=0.0)):
    ...     allowed(seconds=60.0).seconds
    0.0
    """
    around = _current.get()
    end = math.inf if seconds is None else time.monotonic() + seconds
    most = math.inf if memory is None else memory
    return Allowance(min(end, around.end), min(most, around.memory))


@contextmanager
def within(allowance: Allowance) -> Iterator[Allowance]:
    """Run a ``with`` block under the time and memory limits of an `Allowance`."""
    token = _current.set(allowance)
    try:
        yield allowance
    finally:
        _current.reset(token)


def time_left() -> float:
    """Return the remaining seconds (infinity without a limit), as a time limit for a solver."""
    return _current.get().seconds


def time_is_up(**state: float) -> bool:
    """Return whether the time limit is reached (a call takes about 0.3 microseconds).

    Also True after a computation for which `no_time_for` has left no time. Every MESSAGE_SECONDS,
    the name and the `state` of the training are logged, for example ``iterations=7, gap=0.1``.
    """
    allowance, now = _current.get(), time.monotonic()
    if allowance.name and now >= allowance.next_message:
        allowance.next_message = now + MESSAGE_SECONDS
        text = "".join(f", {name} {value:.3g}" for name, value in state.items())
        LOGGER.info("%s: %s%s", allowance.name, allowance.stage, text)
    if not allowance.exceeded and now < allowance.end:
        return False
    allowance.exceeded = True
    return True


def begin_stage(text: str) -> None:
    """Replace the word "training" in the progress messages of this computation."""
    _current.get().stage = text


@contextmanager
def messages_to(say: Callable[[str], object]) -> Iterator[None]:
    """Call `say` with each progress message of the trainings in a ``with`` block."""
    handler, level = logging.Handler(), LOGGER.level
    handler.emit = lambda record: say(record.getMessage())  # type: ignore[method-assign, assignment]
    LOGGER.setLevel(logging.INFO)
    LOGGER.addHandler(handler)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)


#: Computations with fewer operations are never refused.
BRIEF = 1e8
#: Order and number of the matrix products that measure the speed of this computer.
MEASURED_ORDER, MEASURED_PRODUCTS = 512, 6


@cache
def _speed() -> float:
    """Measure how many multiplications of a matrix product BLAS does per CPU second."""
    import numpy as np

    matrix = np.ones((MEASURED_ORDER, MEASURED_ORDER))
    with ONE_BLAS_THREAD:
        started = time.thread_time()
        for _ in range(MEASURED_PRODUCTS):
            matrix @ matrix
        # the clock of Windows has steps of 0.016 seconds
        seconds = max(time.thread_time() - started, 0.016)
    return MEASURED_PRODUCTS * MEASURED_ORDER**3 / seconds


def no_time_for(operations: float) -> bool:
    """Return whether a computation that cannot be interrupted would end after the time limit.

    A computation of n operations takes as long as n multiplications of a matrix product.
    """
    if operations <= BRIEF or math.isinf(time_left()):
        return False
    threads = max((library.num_threads or 1 for library in blas().lib_controllers), default=1)
    refused = operations / (threads * _speed()) > time_left()
    _current.get().exceeded |= refused
    return refused


def check_time(operations: float) -> None:
    """Raise NoTimeLeft if a computation would end after the time limit; see `no_time_for`."""
    if no_time_for(operations):
        raise NoTimeLeft


def memory_limit() -> float:
    """Return the maximum private memory of this process in bytes (infinity without a limit)."""
    return _current.get().memory


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `joblib.delayed(function)`, which runs `function` under the limits of this thread."""
    import joblib

    return joblib.delayed(partial(_call_within, _current.get(), function))


def _call_within(allowance: Allowance, function: Callable, *args: Any, **kwargs: Any) -> Any:
    with within(allowance):
        return function(*args, **kwargs)


class Shared:
    """A process-wide setting that several threads may change and restore at the same time.

    The first thread that enters the ``with`` block enters the context manager of `make`, and the
    last one leaves it. With one context manager per thread, the second thread would save the
    changed setting, and restore it last.
    """

    def __init__(self, make: Callable[[], AbstractContextManager]):
        self._make, self._lock, self._setting, self._inside = make, Lock(), ExitStack(), 0

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._setting.enter_context(self._make())
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._setting.close()


#: On 200 rows, an MMRM takes forty times as long with two BLAS threads as with one.
BLAS_THREADS_FROM_ROWS = 1000


def blas_threads_for(n_rows: int) -> AbstractContextManager:
    """Limit BLAS to one thread in a ``with`` block if `n_rows` is below BLAS_THREADS_FROM_ROWS."""
    return nullcontext() if n_rows >= BLAS_THREADS_FROM_ROWS else ONE_BLAS_THREAD


@cache
def blas() -> Any:
    """Return threadpoolctl's controller of the BLAS libraries that are loaded at the first call."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    with blas().limit(limits=1):
        yield
        # since version 3.8, threadpoolctl only lets the thread that set the limit of OpenBLAS
        # restore it, as long as this thread is alive
        for library in blas().lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


ONE_BLAS_THREAD = Shared(_one_blas_thread)
