"""Where jobs run: a small interface.

A task is a picklable function with picklable arguments, and its result comes back as a `Future`.
Nothing else is shared with a worker, so a cluster can stand behind the same three verbs.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from mmbench.errors import Status
from mmbench.jobs.limits import NO_LIMITS, Limits


class WorkerDied(Exception):
    """The process that ran a task ended before the task did."""


class LimitReached(WorkerDied):
    """The process that ran a task was ended at a limit of the task.

    Parameters
    ----------
    status : {Status.TIME_LIMIT, Status.MEMORY_LIMIT}
    reached : dict
        "stage" that the task told last, "seconds", and "bytes" where they were limited.
    """

    def __init__(self, status: Status, reached: dict[str, Any]):
        super().__init__(status, reached)
        self.status, self.reached = status, reached


class Executor(Protocol):
    """What the runner needs to know of a place where jobs run."""

    #: Most threads of one task; it takes as many slots.
    task_threads: int
    #: Whether tasks may run on a computer that sees other files than this one.
    remote: bool
    #: Address of the Dask scheduler, for tasks that have tasks of their own.
    scheduler: str | None

    @property
    def slots(self) -> int:
        """Number of tasks that may run at the same time; may grow and shrink during a run."""

    @property
    def computer_slots(self) -> int:
        """Most slots that share the memory of one computer."""

    def submit(
        self, function: Callable[..., Any], *args: Any, limits: Limits = NO_LIMITS
    ) -> Future:
        """Start a task. At most `slots` of them run at any time."""

    def wait(self, timeout: float | None = None) -> list[Future]:
        """Return the tasks that ended; none when `timeout` seconds pass first.

        A task whose worker died or went beyond its limits ends with the exception `WorkerDied`.
        """

    def cancel(self) -> None:
        """Stop every running task at once; the next one may be submitted."""

    def close(self) -> None:
        """Release the workers for good."""
