"""Run the jobs of an experiment and store their records.

Only the process that calls `run` writes records; workers only compute. Jobs without a result are
run again, and jobs with a result are not. Ctrl-C stops the workers and keeps all records. If a run
is killed in any other way, only the running jobs are lost.

A job is ready if its parents (the jobs whose selected parameters it inherits) have their records.
The ready job with the longest expected time starts first. The expected time includes the jobs that
depend on the job; an unknown time counts as infinite. The free slots are divided among the ready
jobs as threads: many ready jobs run on one thread each, and a single ready job runs on all free
slots.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mmbench.errors import FINISHED, Status, UserError
from mmbench.jobs.identity import fingerprint
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.record import Content, is_done, new_record
from mmbench.jobs.store import RecordStore, key_of
from mmbench.running.local import LimitReached, LocalExecutor, WorkerDied
from mmbench.running.progress import Lines, TimeLeft, progress_for
from mmbench.running.worker import Arrays, Context, execute, stopped

if TYPE_CHECKING:
    from mmbench.running.cluster import DaskExecutor

    Executor = LocalExecutor | DaskExecutor


class Start(NamedTuple):
    """A job to start, and its number of threads."""

    job: Job
    threads: int
    #: Whether no other job runs at the same time, so that the job may use all memory.
    alone: bool


class Schedule:
    """The waiting and running jobs of a run, and the order in which jobs start.

    `records` contains the records of jobs that are not run again, by key. `expected` returns the
    expected seconds of a job, or None if they are unknown. `most_threads` is the maximum number of
    threads of one job. `absent` contains reasons why the jobs of a data set cannot run.
    """

    def __init__(
        self,
        jobs: Collection[Job],
        records: Mapping[str, Content],
        slots: int,
        expected: Callable[[Job], float | None] = lambda job: None,
        most_threads: int | None = None,
        absent: Mapping[str, str] = MappingProxyType({}),
    ):
        self.slots, self._expected, self._most_threads = slots, expected, most_threads
        self._ready: dict[Hashable, deque[tuple[int, Job]]] = defaultdict(deque)
        self._number = itertools.count()
        self._alone: deque[Job] = deque()
        self._blocked: dict[str, list[Job]] = defaultdict(list)
        self._waits: dict[str, set[str]] = {}
        self._impossible: deque[tuple[Job, str]] = deque()
        self._running: dict[str, int] = {}
        coming = {job.key for job in jobs}
        for job in jobs:
            if job.dataset.name in absent:
                self._impossible.append((job, absent[job.dataset.name]))
            elif not job.parents:
                self._make_ready(job)
            elif any(key not in records and key not in coming for key in job.parents):
                self._give_up(job, "is not among the jobs")
            else:
                self._waits[job.key] = set(job.parents)
                for key in job.parents:
                    self._blocked[key].append(job)
        for key in [key for key in self._blocked if key in records]:
            self.finish(records[key])

    @property
    def unfinished(self) -> bool:
        """Whether any job waits or runs."""
        return any((self._ready, self._alone, self._blocked, self._impossible, self._running))

    def starts(self) -> Iterator[Start]:
        """Yield the jobs to start now; yielded jobs count as running."""
        while self._ready and (free := self.slots - sum(self._running.values())) > 0:
            threads = -(-free // sum(map(len, self._ready.values())))
            yield self._start(self._longest(), min(threads, self._most_threads or threads))
        if self._alone and not self._running:
            yield self._start(self._alone.popleft(), self.slots)

    def _longest(self) -> Job:
        """Remove and return the ready job with the longest expected time.

        Among jobs with equal expected times, jobs whose parent has just finished come first, then
        the job that became ready first. Jobs of one table cell have the same expected time, so only
        the first job of each cell is compared.
        """
        first = {cell: jobs[0] for cell, jobs in self._ready.items()}
        cell = max(first, key=lambda cell: (self._seconds(first[cell][1]), -first[cell][0]))
        _, job = self._ready[cell].popleft()
        if not self._ready[cell]:
            del self._ready[cell]
        return job

    def impossible(self) -> Iterator[tuple[Job, str]]:
        """Yield and remove the jobs that cannot run, with the reason."""
        while self._impossible:
            yield self._impossible.popleft()

    def finish(self, record: Content) -> None:
        """Mark a job as finished; jobs that depend on it become ready, or fail without a result."""
        self._running.pop(record["key"], None)
        for job in self._blocked.pop(record["key"], []):
            if job.key not in self._waits:  # the job failed before, because of another parent
                continue
            self._waits[job.key].discard(record["key"])
            if not is_done(record):
                del self._waits[job.key]
                self._give_up(job, f"has no result: {record['reason']}")
            elif not self._waits[job.key]:
                self._make_ready(job, first=True)

    def again_alone(self, job: Job) -> None:
        """Put a running job back into the schedule; it starts again when no other job runs."""
        del self._running[job.key]
        self._alone.append(job)

    def _make_ready(self, job: Job, first: bool = False) -> None:
        """Add a job to the ready jobs; with `first`, before all jobs of its table cell.

        Jobs whose parent has just finished are added first, since their data set is still in
        memory.
        """
        number, jobs = next(self._number), self._ready[key_of(job)]
        jobs.appendleft((-number, job)) if first else jobs.append((number, job))

    def _seconds(self, job: Job) -> float:
        """Return the expected seconds of a job and of the longest chain of dependent jobs."""
        seconds = self._expected(job)
        after = max(map(self._seconds, self._blocked.get(job.key, ())), default=0.0)
        return float("inf") if seconds is None else seconds + after

    def _start(self, job: Job, slots: int) -> Start:
        alone = not self._running and slots == self.slots
        self._running[job.key] = slots
        return Start(job, min(slots, self._most_threads or slots), alone)

    def _give_up(self, job: Job, cause: str) -> None:
        self._impossible.append((job, f"takes its parameters from {job.use}, which {cause}"))


#: Maximum interval between two updates of the progress display, in seconds.
TICK_SECONDS = 1.0

#: Statuses of jobs that count as optimal in `Summary.doubtful`.
HARMLESS = (*FINISHED, Status.UNCERTIFIED, Status.ONE_CLASS, Status.TRIVIAL)

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass
class Summary:
    """The outcome of a run."""

    #: Number of jobs with a result of this run, and number of jobs with a result of an earlier run.
    done: int = 0
    reused: int = 0
    #: Records of jobs without a result.
    failed: list[Content] = field(default_factory=list)
    #: Numbers of jobs that have a result but also a fit that is not optimal, by the worst status of
    #: the job; trivial solutions and problems with a single class count as optimal.
    doubtful: Counter[Status] = field(default_factory=Counter)
    #: Number of jobs without a record because of an interruption.
    left: int = 0
    #: Number of finished jobs whose records were deleted during the run.
    lost: int = 0
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
        """Reasons of jobs that failed because of the user's input, without duplicates."""
        return list(dict.fromkeys(r["reason"] for r in self.failed if r["wrong_input"]))

    @property
    def exit_code(self) -> int:
        """0: all jobs done; 1: a job failed; 2: input of a job was not valid; 130: interrupted."""
        if self.interrupted or self.wrong_input:
            return EXIT_INTERRUPTED if self.interrupted else EXIT_WRONG_INPUT
        return EXIT_FAILED if self.failed or self.lost else EXIT_DONE


def run(jobs: Collection[Job], store: RecordStore, executor: Executor, **options: Any) -> Summary:
    """Run the jobs that have no result yet, and store their records; `options` are passed to `Run`.

    Raises UserError if another run uses the results folder.
    """
    with store.locked():
        return Run(jobs, store, executor, **options).go()


class Run:
    """The state of a run: schedule, running tasks and records.

    The parents of all jobs must be among `jobs`, or have records in `store` or in `source`, the
    records of another experiment. `data` is the local store of data files, and `mirror` is a folder
    or URL with data files. If a limit stopped a job in an earlier run and `limits` would stop it
    again, the job is not run again. With ``rerun="changed"``, finished jobs run again if the source
    code of their machine has changed. The outcome is added to `summary`. `planned` contains keys of
    jobs. `planned` and `time_left` may include the jobs of other runs. `absent` contains the data
    sets that cannot be downloaded, with the reasons; their jobs fail.
    """

    def __init__(
        self,
        jobs: Collection[Job],
        store: RecordStore,
        executor: Executor,
        *,
        data: Path,
        mirror: str | None = None,
        limits: Limits = NO_LIMITS,
        source: RecordStore | None = None,
        rerun: str | None = None,
        progress: Callable[[int], Lines] = progress_for,
        summary: Summary | None = None,
        time_left: TimeLeft | None = None,
        planned: Set[str] = frozenset(),
        absent: Mapping[str, str] = MappingProxyType({}),
    ):
        self.store, self.executor, self.summary = store, executor, summary or Summary()
        self.context = Context(
            data, mirror, limits=limits, remote=executor.remote, scheduler=executor.scheduler
        )
        said: list[str] = []
        keys = dict.fromkeys(key for job in jobs for key in (job.key, *job.parents))
        found = store.recover(keys, said.append)
        if source is not None:
            found |= {k: r for k in keys if k not in found and (r := source.find(k)) is not None}
        unique = {job.key: job for job in jobs}
        done = [key for key in unique if key in found and is_done(found[key])]
        changed = [k for k in done if has_other_sources(unique[k], found[k].get("code", {}))]
        if rerun == "changed":
            for key in changed:
                store.set_aside(key)
                del found[key]
        elif changed:
            machines = ", ".join(sorted({unique[key].machine for key in changed}))
            said.append(
                f"{len(changed)} finished jobs ({machines}) were made by a different source code "
                "of the same version; --rerun changed runs them again"
            )
        self.results = {key: record for key, record in found.items() if is_done(record)}
        self.stored = {path for key in self.results for path in self._files(key)}
        settled = {k: r for k, r in found.items() if is_done(r) or limits.reached_before(r)}
        self.open = {key: job for key, job in unique.items() if key not in settled}
        said += outdated(self.open.values(), store, planned)
        self.time_left = time_left or TimeLeft(unique.values())
        for key in [key for key in unique if key in settled]:
            self.summary.add(settled[key], reused=True)
            self.time_left.end(unique[key])
        for record in self.results.values():
            self.time_left.learn(record)
        known = self.time_left.expected, executor.task_threads, absent
        self.schedule = Schedule(self.open.values(), settled, executor.slots, *known)
        self.tasks: dict[Future, Start] = {}
        self.waits = False
        self.progress = progress(len(self.open))
        for line in said:
            self.progress.say(line)

    def _files(self, key: str) -> set[Path]:
        paths = (self.store.path_of(key, suffix) for suffix in (".json", ".npz"))
        return {path for path in paths if path.exists()}

    def go(self) -> Summary:
        """Run all open jobs; Ctrl-C ends the run."""
        try:
            while self.schedule.unfinished:
                self._advance()
        except KeyboardInterrupt:
            self.summary.interrupted = True
            self.summary.left += len(self.open)
        finally:
            self.executor.cancel()
            self.progress.close()
        if lost := len({path.stem for path in self.stored if not path.exists()}):
            self.summary.lost += lost
            self.progress.say(
                f"{lost} records were deleted from {self.store.folder} during the "
                "run; the same command runs their jobs again"
            )
        if self.summary.interrupted:
            kept = self.summary.done + self.summary.reused
            self.progress.say(
                f"interrupted: {kept} finished jobs are kept in {self.store.folder}, "
                f"{self.summary.left} are left; the same command runs the remaining jobs"
            )
        return self.summary

    def _advance(self) -> None:
        """Start jobs in the free slots, then wait until a job ends or a tick has passed."""
        for job, reason in self.schedule.impossible():
            self._keep(job, new_record(job, Status.FAILED, reason), {})
        slots = self.executor.slots
        if not slots and (self.schedule.slots or not self.waits):
            self.waits = True
            left = "no worker is left" if self.schedule.slots else "the cluster has no worker yet"
            self.progress.say(f"{left}; waiting for a worker")
        self.schedule.slots = slots
        for start in self.schedule.starts():
            self._start(start)
        if self.tasks or not self.executor.slots:
            for future in self.executor.wait(TICK_SECONDS):
                self._end(self.tasks.pop(future), future)
        self.progress.tick(self.time_left.seconds(self.executor.slots))

    def _start(self, start: Start) -> None:
        context = replace(
            self.context,
            threads=start.threads,
            memory_share=min(1.0, start.threads / max(1, self.executor.computer_slots)),
            inherited=tuple(self.results[k]["selection"]["params"] for k in start.job.parents),
        )
        task = self.executor.submit(execute, start.job, context, limits=context.limits)
        self.tasks[task] = start

    def _end(self, start: Start, future: Future) -> None:
        record, arrays = self._outcome(start.job, future)
        full = record["status"] == Status.MEMORY_LIMIT and not record["reached"]
        if full and not start.alone:
            self.schedule.again_alone(start.job)
        else:
            self._keep(start.job, record, arrays)

    def _outcome(self, job: Job, future: Future) -> tuple[Content, Arrays]:
        """Return the record and arrays of a task; without a result, the record has a reason."""
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, LimitReached):
            facts = stopped(error.status, self.context.limits, error.reached)
            return new_record(job, error.status, **facts), {}
        if isinstance(error, UserError):  # workers cannot run any task
            raise error
        reason = str(error) if isinstance(error, WorkerDied) else f"{type(error).__name__}: {error}"
        return new_record(job, Status.FAILED, reason), {}

    def _keep(self, job: Job, record: Content, arrays: Arrays) -> None:
        """Store a record and update the schedule, the summary and the estimates."""
        try:
            self.store.write(record, arrays)
        except FileExistsError as error:
            # the record was written by another run, which did not see the lock
            self.progress.say(f"{error}; the record of the other run is kept")
            record = self.store.read(job.key)
        self.schedule.finish(record)
        self.time_left.end(job)
        del self.open[job.key]
        self.summary.add(record)
        if is_done(record):
            self.results[job.key] = record
            self.stored |= self._files(job.key)
            self.time_left.learn(record)
        self.progress.finished(job, record, self.time_left.seconds(self.executor.slots))


def has_other_sources(job: Job, code: Mapping[str, Any]) -> bool:
    """Whether the source code of a job's machine differs from the `code` entry of its record."""
    return code.get("fingerprint") not in (None, "", fingerprint(job.machine))


def outdated(jobs: Iterable[Job], store: RecordStore, planned: Set[str]) -> list[str]:
    """Return messages about records made with another machine version or other default values.

    The jobs of these records run again; the records are kept. `planned` contains keys of jobs,
    whose records are not outdated.
    """
    waiting = {_place(job): job for job in jobs}
    known, counts = {job.key for job in waiting.values()} | planned, Counter[str]()
    for key in store.keys() if waiting else ():
        record = {} if key in known else store.find(key) or {}
        if not record or not is_done(record):
            continue
        then = Job.from_dict(record["job"])
        job = waiting.get(_place(then))
        if job is not None and (difference := _difference(then, job)):
            counts[f"{job.column}: {difference}"] += 1
    return [f"{text}: {count} finished jobs run again" for text, count in sorted(counts.items())]


def _place(job: Job) -> Hashable:
    """Return data set, kernel, degree, column and split of a job, but not its parameters."""
    return job.dataset_hash, job.kernel, job.degree, job.column, job.split


def _difference(then: Job, now: Job) -> str:
    """Return a description of the difference between two jobs in machine version or defaults.

    The description is empty if other fields of the jobs differ too.
    """
    if replace(then, defaults=now.defaults, machine_version=now.machine_version).key != now.key:
        return ""
    if then.machine_version != now.machine_version:
        return f"version {then.machine_version} of the machine, {now.machine_version} today"
    if not then.defaults:
        return "recorded without the defaults of the parameters"
    old, new = dict(then.defaults), dict(now.defaults)
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"default {n}={old.get(n)!r}, {new.get(n)!r} today" for n in names)
