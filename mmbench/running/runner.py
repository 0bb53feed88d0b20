"""Run the jobs of an experiment, and keep what is finished whatever happens to the rest.

The process that calls `run` alone writes records; workers only compute. A job whose record is there
is not run again, one without a result is. Ctrl-C stops the workers and keeps all records; a run
that is killed in any other way loses the jobs that were running, and nothing else.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmbench.errors import FINISHED, Status, UserError
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.record import Content, is_done, new_record
from mmbench.jobs.store import RecordStore
from mmbench.running.executor import Executor, LimitReached, WorkerDied
from mmbench.running.progress import Progress, TimeLeft, progress_for
from mmbench.running.schedule import Schedule, Start
from mmbench.running.stopped import stopped
from mmbench.running.worker import Arrays, Context, execute

#: Seconds between two looks at the clock while nothing ends.
TICK_SECONDS = 1.0

#: Statuses of jobs whose fits are as good as they can be.
HARMLESS = (*FINISHED, Status.UNCERTIFIED, Status.ONE_CLASS, Status.TRIVIAL)

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass
class Summary:
    """What became of the jobs of a run."""

    #: Jobs that got their result now, and that had it before.
    done: int = 0
    reused: int = 0
    #: Records of jobs without a result.
    failed: list[Content] = field(default_factory=list)
    #: How many of the jobs with a result have a fit that is worse than optimal, by the worst status
    #: of the job; trivial solutions and single classes are optimal.
    doubtful: Counter[Status] = field(default_factory=Counter)
    #: Jobs that an interruption kept from running.
    left: int = 0
    interrupted: bool = False

    def add(self, record: Content, reused: bool = False) -> None:
        """Count the record of a job."""
        if not is_done(record):
            self.failed.append(record)
            return
        self.done, self.reused = self.done + (not reused), self.reused + reused
        status = Status(record["status"])
        if status not in HARMLESS:
            self.doubtful[status] += 1

    @property
    def wrong_input(self) -> list[str]:
        """What the user can mend, one line each, without repetition."""
        return list(dict.fromkeys(r["reason"] for r in self.failed if r["wrong_input"]))

    @property
    def exit_code(self) -> int:
        """0 all done, 1 some job failed, 2 the user's input was wrong, 130 interrupted."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        if self.wrong_input:
            return EXIT_WRONG_INPUT
        return EXIT_FAILED if self.failed else EXIT_DONE


def run(
    jobs: Sequence[Job],
    store: RecordStore,
    executor: Executor,
    *,
    data: Path,
    mirror: str | None = None,
    limits: Limits = NO_LIMITS,
    source: RecordStore | None = None,
    progress: Callable[[int], Progress] = progress_for,
) -> Summary:
    """Run the jobs that have no result yet, and store their records.

    Parameters
    ----------
    jobs : sequence of Job
        With the jobs whose parameters they use, unless those have their records already.
    store : RecordStore
    executor : Executor
        Its workers are released at the end.
    data : Path
        Local store of data files.
    mirror : str, optional
        Folder or URL that holds data files.
    limits : Limits, optional
        Of each job. A job that they have stopped before is not run again.
    source : RecordStore, optional
        The records of another experiment, whose selected parameters some jobs use.
    progress : callable
        Gets the number of jobs to run.

    Raises
    ------
    UserError
        If another run uses the folder.
    """
    context = Context(
        data, mirror, limits=limits, remote=executor.remote, scheduler=executor.scheduler
    )
    with store.locked():
        return _Run(jobs, store, executor, context, source, progress).go()


class _Run:
    """One run: a schedule, the tasks under way, and what is known so far."""

    def __init__(
        self,
        jobs: Sequence[Job],
        store: RecordStore,
        executor: Executor,
        context: Context,
        source: RecordStore | None,
        progress: Callable[[int], Progress],
    ):
        said: list[str] = []
        keys = dict.fromkeys(key for job in jobs for key in (job.key, *job.parents))
        found = store.recover(keys, said.append)
        if source is not None:
            elsewhere = {key: source.find(key) for key in keys if key not in found}
            found |= {key: record for key, record in elsewhere.items() if record is not None}
        self.results = {key: record for key, record in found.items() if is_done(record)}
        stopped = {k: r for k, r in found.items() if context.limits.reached_before(r)}
        unique = {job.key: job for job in jobs}
        settled = {**self.results, **stopped}
        self.open = {key: job for key, job in unique.items() if key not in settled}
        self.summary = Summary()
        for key in unique:
            if key in settled:
                self.summary.add(settled[key], reused=True)
        self.store, self.executor, self.context = store, executor, context
        self.time_left = TimeLeft(self.open.values())
        for record in self.results.values():
            self.time_left.learn(record)
        self.schedule = Schedule(
            self.open.values(),
            settled,
            executor.slots,
            self.time_left.expected,
            executor.task_threads,
        )
        self.tasks: dict[Future, Start] = {}
        self.progress = progress(len(self.open))
        for line in said:
            self.progress.say(line)

    def go(self) -> Summary:
        try:
            while self.schedule.unfinished:
                self._advance()
        except KeyboardInterrupt:
            self.summary.interrupted = True
            self.summary.left = len(self.open)
        finally:
            self.executor.cancel()
            self.progress.close()
        if self.summary.interrupted:
            self.progress.say(_farewell(self.summary, self.store))
        return self.summary

    def _advance(self) -> None:
        """Start what can start, then wait for something to end."""
        for job, reason in self.schedule.impossible():
            self._keep(job, new_record(job, Status.FAILED, reason), {})
        if not self.executor.slots and self.schedule.slots:
            self.progress.say("no worker is left; waiting for one to join")
        self.schedule.slots = self.executor.slots
        for start in self.schedule.starts():
            self._start(start)
        for future in (
            self.executor.wait(TICK_SECONDS) if self.tasks or not self.executor.slots else ()
        ):
            self._end(self.tasks.pop(future), future)
        self.progress.tick(self._left())

    def _start(self, start: Start) -> None:
        context = replace(
            self.context,
            threads=start.threads,
            memory_share=min(1.0, start.threads / max(1, self.executor.computer_slots)),
            inherited=tuple(self.results[k]["selection"]["params"] for k in start.job.parents),
        )
        self.time_left.start(start.job)
        task = self.executor.submit(execute, start.job, context, limits=context.limits)
        self.tasks[task] = start

    def _end(self, start: Start, future: Future) -> None:
        record, arrays = _outcome(start.job, future, self.context.limits)
        full = record["status"] == Status.MEMORY_LIMIT and not record["reached"]
        if full and not start.alone:
            self.schedule.again_alone(start.job)
        else:
            self._keep(start.job, record, arrays)

    def _keep(self, job: Job, record: Content, arrays: Arrays) -> None:
        """Store a record, then let the rest of the run know of it."""
        self.store.write(record, arrays)
        self.schedule.finish(record)
        self.time_left.end(job)
        del self.open[job.key]
        self.summary.add(record)
        if is_done(record):
            self.results[job.key] = record
            self.time_left.learn(record)
        self.progress.finished(job, record, self._left())

    def _left(self) -> float | None:
        return self.time_left.seconds(self.executor.slots)


def _outcome(job: Job, future: Future, limits: Limits) -> tuple[Content, Arrays]:
    """Return what a task brought, or a record of its death."""
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, LimitReached):
        return new_record(job, error.status, **stopped(error.status, limits, error.reached)), {}
    if isinstance(error, UserError):  # no worker can run anything
        raise error
    reason = str(error) if isinstance(error, WorkerDied) else f"{type(error).__name__}: {error}"
    return new_record(job, Status.FAILED, reason), {}


def _farewell(summary: Summary, store: RecordStore) -> str:
    kept = summary.done + summary.reused
    return (
        f"interrupted: {kept} finished jobs are kept in {store.folder}, {summary.left} are left; "
        "the same command goes on from there"
    )
