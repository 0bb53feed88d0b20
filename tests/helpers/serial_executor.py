"""An executor without processes."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

from mmbench.commands import run as launch
from mmbench.jobs.limits import NO_LIMITS, Limits


class SerialExecutor:
    """Runs each task in this process, at the moment it is submitted."""

    slots = task_threads = computer_slots = 1
    remote = False
    scheduler: tuple[str, str] | None = None

    def __init__(self) -> None:
        self._ended: list[Future] = []

    def submit(
        self, function: Callable[..., Any], *args: Any, limits: Limits = NO_LIMITS
    ) -> Future:
        """Run a task; nothing ends it at a limit but itself."""
        future: Future = Future()
        try:
            future.set_result(function(*args))
        except Exception as error:
            future.set_exception(error)
        self._ended.append(future)
        return future

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def cancel(self) -> None:
        """Forget results that nobody asked for."""
        self._ended = []

    close = cancel


@contextmanager
def no_processes() -> Iterator[None]:
    """Let commands run their jobs in this process.

    A worker imports for two CPU seconds before its first job. Tests of processes, limits and
    interrupts start some; those of what a run plans, says and stores need none.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "executor_for", lambda *_: SerialExecutor())
        yield
