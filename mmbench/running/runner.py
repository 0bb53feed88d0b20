"""Run the jobs of an experiment and store their records.

Only the process that calls `run` writes records; a killed run loses only running jobs. A job is
ready if its parents, whose selected parameters it inherits, have a result. Every table cell starts
with one job, so that a table can be printed early. Then the ready job with the longest expected
time starts first, counting the jobs that depend on it; unknown times precede all others. A running
job occupies one slot per thread.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from mmbench.errors import FINISHED, Status, UserError
from mmbench.jobs.choice import choice_of, merged, middle
from mmbench.jobs.identity import identity
from mmbench.jobs.job import Job
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.jobs.planned import grouped, key_of
from mmbench.jobs.record import Content, Record, is_done, new_record
from mmbench.jobs.seal import BadRecord
from mmbench.jobs.store import RecordStore
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
    #: Time of the start on the clock `time.monotonic`, in seconds.
    since: float


class Schedule:
    """The waiting and running jobs of a run, and the order in which jobs start.

    `records` are the records, by key, of jobs that are not run again; `slots` is the number of
    slots of the executor, and `most_threads` limits the threads of a job. `expected` returns the
    expected seconds of a job, or None. `absent` has the reason for each data set that cannot be
    downloaded.
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
        self._begun: set[Hashable] = set()
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
        """Yield the jobs that can start in the free slots, and count them as running."""
        while self._ready and (free := self.slots - sum(self._running.values())) > 0:
            threads = -(-free // sum(map(len, self._ready.values())))
            yield self._start(self._next(), min(threads, self._most_threads or threads))
        if self._alone and self.slots and not self._running:
            yield self._start(self._alone.popleft(), self.slots)

    def _next(self) -> Job:
        """Remove and return the first job of a table cell without results, else the longest job.

        Among jobs with equal expected times, a job whose parent has just finished is returned
        first, and other jobs are returned in the order in which they became ready.
        """

        def rank(cell: Hashable) -> tuple[bool, float, int]:
            # all jobs of a table cell have the same expected time
            number, job = self._ready[cell][0]
            begun = cell in self._begun or self._expected(job) is not None
            return not begun, self._seconds(job), -number

        cell = max(self._ready, key=rank)
        self._begun.add(cell)
        _, job = self._ready[cell].popleft()
        if not self._ready[cell]:
            del self._ready[cell]
        return job

    def impossible(self) -> Iterator[tuple[Job, str]]:
        """Remove and yield the jobs that cannot run, each with the reason."""
        while self._impossible:
            yield self._impossible.popleft()

    def finish(self, record: Content) -> None:
        """Mark the job of a record as ended; if the job failed, jobs that depend on it fail too."""
        self._running.pop(record["key"], None)
        for job in self._blocked.pop(record["key"], []):
            if job.key not in self._waits:  # another parent of this job has already failed
                continue
            self._waits[job.key].discard(record["key"])
            if not is_done(record):
                del self._waits[job.key]
                self._give_up(job, f"has no result: {record['reason']}")
            elif not self._waits[job.key]:
                self._make_ready(job, first=True)

    def again_alone(self, job: Job) -> None:
        """Put a running job back into the schedule; the job starts again when no other job runs."""
        del self._running[job.key]
        self._alone.append(job)

    def _make_ready(self, job: Job, first: bool = False) -> None:
        """Add a job to the list of ready jobs in the same table cell.

        A job whose parent has just finished (`first`) is added at the beginning of the list, since
        the data set of the job is still in memory.
        """
        number, jobs = next(self._number), self._ready[key_of(job)]
        jobs.appendleft((-number, job)) if first else jobs.append((number, job))

    def _seconds(self, job: Job) -> float:
        """Return the expected time of a job, plus the expected time of jobs that depend on it.

        If several chains of jobs depend on the job, only the longest chain is counted.
        """
        seconds = self._expected(job)
        after = max(map(self._seconds, self._blocked.get(job.key, ())), default=0.0)
        return float("inf") if seconds is None else seconds + after

    def _start(self, job: Job, slots: int) -> Start:
        alone = not self._running and slots == self.slots
        self._running[job.key] = slots
        return Start(job, min(slots, self._most_threads or slots), alone, time.monotonic())

    def _give_up(self, job: Job, cause: str) -> None:
        self._impossible.append((job, f"takes its parameters from {job.use}, which {cause}"))


#: Maximum interval between two updates of the progress display, in seconds.
TICK_SECONDS = 1.0

EXIT_DONE, EXIT_FAILED, EXIT_WRONG_INPUT, EXIT_INTERRUPTED = 0, 1, 2, 130


@dataclass
class Summary:
    """The outcome of a run."""

    #: Number of jobs with a result of this run.
    done: int = 0
    #: Number of jobs with a result of an earlier run.
    reused: int = 0
    #: Records of jobs without a result.
    failed: list[Content] = field(default_factory=list)
    #: Numbers of finished jobs with a non-optimal solution, by the most severe status of the job.
    #: Trivial solutions, solutions without a certificate and problems with a single class are not
    #: counted.
    doubtful: Counter[Status] = field(default_factory=Counter)
    #: Number of jobs that have no record, because the run was interrupted before they ended.
    left: int = 0
    #: Number of finished jobs whose records were deleted during the run.
    lost: int = 0
    interrupted: bool = False

    def add(self, record: Content, reused: bool = False) -> None:
        """Count the job of a record as done, reused, failed or doubtful."""
        if not is_done(record):
            self.failed.append(record)
            return
        self.done, self.reused = self.done + (not reused), self.reused + reused
        status = Status(record["status"])
        if status not in (*FINISHED, Status.UNCERTIFIED, Status.ONE_CLASS, Status.TRIVIAL):
            self.doubtful[status] += 1

    @property
    def wrong_input(self) -> list[str]:
        """Reasons why jobs failed because of the user's input, without duplicates."""
        return list(dict.fromkeys(r["reason"] for r in self.failed if r.get("wrong_input")))

    @property
    def exit_code(self) -> int:
        """Exit code of the program.

        The exit code is 0 if all jobs are done, 1 if a job failed or a record was deleted, 2 if the
        user's input was invalid, and 130 if the run was interrupted.
        """
        if self.interrupted or self.wrong_input:
            return EXIT_INTERRUPTED if self.interrupted else EXIT_WRONG_INPUT
        return EXIT_FAILED if self.failed or self.lost else EXIT_DONE


def run(jobs: Collection[Job], store: RecordStore, executor: Executor, **options: Any) -> Summary:
    """Run the jobs that have no result yet, and store their records.

    The `options` are arguments of the class `Run`. Raises UserError if another run is using the
    results folder, or has changed the plan in the folder since this run was planned.
    """
    with store.locked():
        if (planned := options.get("planned")) and (plan := store.plan()) and plan.jobs != planned:
            other = "another run has stored another experiment in it meanwhile"
            raise UserError(f"{store.folder}: {other}; run this one again, or with other --results")
        return Run(jobs, store, executor, **options).go()


class Run:
    """The state of a run: schedule, running tasks and records.

    The parents of each job must be in `jobs`, or have records in `store` or in `source`, the record
    store of another experiment. `data` is the local store of data files, and `mirror` a folder or
    URL. A job that was stopped by a limit runs again only if `limits` has a higher one; with
    ``rerun="changed"``, a finished job runs again if the code of its machine has changed. `planned`
    has the keys of all jobs of the experiment, and `absent` the reason for each data set that
    cannot be downloaded; its jobs fail. If `by_machine` is given, the jobs of a machine start after
    the jobs of the previous machine have ended, which are then the argument of `by_machine`.
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
        by_machine: Callable[[list[Job]], object] | None = None,
        planned: Set[str] = frozenset(),
        absent: Mapping[str, str] = MappingProxyType({}),
    ):
        self.store, self.executor, self.summary = store, executor, Summary()
        self.by_machine, self.absent = by_machine, absent
        self.context = Context(
            data, mirror, limits=limits, remote=executor.remote, scheduler=executor.scheduler
        )
        said: list[str] = []
        keys = dict.fromkeys(key for job in jobs for key in (job.key, *job.parents))
        found = store.recover(keys, said.append)
        if source is not None:
            found |= {k: r for k in keys if k not in found and (r := source.find(k)) is not None}
        self.jobs = unique = {job.key: job for job in jobs}
        self.results = {key: record for key, record in found.items() if is_done(record)}
        changed = made_by_other_sources(unique.values(), self.results)
        if rerun == "changed":
            for key in changed:
                store.set_aside(key)
                del found[key], self.results[key]
        elif changed:
            machines = ", ".join(sorted({unique[key].machine for key in changed}))
            code = "were made by a different source code of the same version"
            again = "or use parameters of such jobs; --rerun changed runs them again"
            said.append(f"{len(changed)} finished jobs ({machines}) {code}, {again}")
        self.stored = {path for key in self.results for path in self._files(key)}
        ended = self.results.keys() | {k for k, r in found.items() if limits.reached_before(r)}
        self.open = {key: job for key, job in unique.items() if key not in ended}
        # these records include failed parents that are not run again; jobs that depend on them fail
        self.ended = {key: record for key, record in found.items() if key not in self.open}
        said += outdated([j for k, j in self.open.items() if k not in changed], store, planned)
        self.time_left = TimeLeft(unique.values())
        for key in [key for key in unique if key in self.ended]:
            self.summary.add(self.ended[key], reused=True)
            self.time_left.end(unique[key])
        for record in self.results.values():
            self.time_left.learn(record)
        self.tasks: dict[Future, Start] = {}
        if self.open and not executor.slots:
            said.append("the cluster has no worker yet; waiting for a worker")
        self.progress = progress(len(self.open))
        for line in said:
            self.progress.say(line)

    def _files(self, key: str) -> set[Path]:
        return {p for s in (".json", ".npz") if (p := self.store.path_of(key, s)).exists()}

    def go(self) -> Summary:
        """Run all open jobs; Ctrl-C ends the run."""
        groups = grouped((job.column if self.by_machine else "", job) for job in self.jobs.values())
        try:
            for jobs in groups.values():
                self._run_group(jobs)
        except (KeyboardInterrupt, UserError) as error:
            for future in [f for f, start in self.tasks.items() if start.job.key in self.open]:
                if future.done() and future.exception() is None:
                    self._end(future)
            if isinstance(error, UserError):
                raise
            self.summary.interrupted = True
            self.summary.left = len(self.open)
        finally:
            self.executor.cancel()
            self.progress.close()
        if lost := len({path.stem for path in self.stored if not path.exists()}):
            self.summary.lost = lost
            again = "during the run; the same command runs their jobs again"
            self.progress.say(f"{lost} records were deleted from {self.store.folder} {again}")
        if self.summary.interrupted:
            kept = self.summary.done + self.summary.reused
            left = f"{self.summary.left} are left; the same command runs the remaining jobs"
            done = f"{kept} finished jobs are kept in {self.store.folder}"
            self.progress.say(f"interrupted: {done}, {left}")
        return self.summary

    def _run_group(self, jobs: list[Job]) -> None:
        """Run the open jobs among `jobs`."""
        known = self.time_left.expected, self.executor.task_threads, self.absent
        opened = [job for job in jobs if job.key in self.open]
        self.schedule = Schedule(opened, self.ended, self.executor.slots, *known)
        while self.schedule.unfinished:
            self._advance()
        if self.by_machine:
            self.by_machine(jobs)

    def _advance(self) -> None:
        """Start jobs in the free slots, then wait until a job ends, at most `TICK_SECONDS`."""
        for job, reason in self.schedule.impossible():
            self._keep(job, new_record(job, Status.FAILED, reason), {})
        slots = self.executor.slots
        if self.schedule.slots and not slots:
            self.progress.say("no worker is left; waiting for a worker")
        self.schedule.slots = slots
        computer_slots = max(1, self.executor.computer_slots)
        for start in self.schedule.starts():
            context = replace(
                self.context,
                threads=start.threads,
                memory_share=1.0 if start.alone else min(1.0, start.threads / computer_slots),
                inherited=tuple(choice_of(self.results[k]["selection"]) for k in start.job.parents),
            )
            task = self.executor.submit(execute, start.job, context, limits=context.limits)
            self.tasks[task] = start
        if self.tasks or not self.executor.slots:
            for future in self.executor.wait(TICK_SECONDS):
                self._end(future)
        if self.tasks:
            task, first = next(iter(self.tasks.items()))  # tasks are in the order of their starts
            left = self.time_left.seconds(self.executor.slots)
            seconds, inside = time.monotonic() - first.since, getattr(task, "progress", "")
            self.progress.running(first.job, seconds, left, inside)

    def _end(self, future: Future) -> None:
        """Store the record of an ended task.

        If memory ran out while other jobs ran, no record is stored, and the job runs again alone.
        """
        start = self.tasks[future]
        record, arrays = self._outcome(start.job, future)
        if record["status"] == Status.MEMORY_LIMIT and not (record["reached"] or start.alone):
            del self.tasks[future]
            self.schedule.again_alone(start.job)
        else:
            self._keep(start.job, record, arrays)
            del self.tasks[future]

    def _outcome(self, job: Job, future: Future) -> tuple[Content, Arrays]:
        """Return the record and the arrays of a job; a failed job's record states the reason."""
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, LimitReached):
            facts = stopped(error.status, self.context.limits, error.reached)
            return new_record(job, error.status, **facts), {}
        if isinstance(error, UserError):  # no worker process can start
            raise error
        reason = str(error) if isinstance(error, WorkerDied) else f"{type(error).__name__}: {error}"
        return new_record(job, Status.FAILED, reason), {}

    def _keep(self, job: Job, record: Content, arrays: Arrays) -> None:
        """Store a record and update the schedule, the summary and the estimates."""
        try:
            self.store.write(record, arrays)
        except FileExistsError as error:
            # another run has written the record, although this run has locked the folder
            self.progress.say(f"{error}; the record of the other run is kept")
            record = self.store.read(job.key)
        self.schedule.finish(record)
        self.ended[job.key] = record
        self.time_left.end(job)
        del self.open[job.key]
        self.summary.add(record)
        if is_done(record):
            self.results[job.key] = record
            self.stored |= self._files(job.key)
            self.time_left.learn(record)
        self.progress.finished(job, record, self.time_left.seconds(self.executor.slots))


def made_by_other_sources(jobs: Iterable[Job], records: Mapping[str, Content]) -> set[str]:
    """Return the keys of records that the present source code might not reproduce.

    The code of the machine or of a preprocessing step has changed, the inherited parameters differ
    from the parents' records, or a parent's key is returned. In `jobs`, each job must follow its
    parents.
    """
    found: set[str] = set()
    for job in (job for job in jobs if job.key in records):
        then, today = records[job.key].get("code", {}), identity(job)
        differs = any(then.get(p) not in (None, "", today.get(p)) for p in ("fingerprint", "steps"))
        if differs or found.intersection(job.parents) or not _inherits(job, records):
            found.add(job.key)
    return found


def _inherits(job: Job, records: Mapping[str, Content]) -> bool:
    """Return whether the inherited parameters in a job's record equal the parameters in the records
    of its parents.

    Parameters that the job selects itself are not compared.
    """
    choices = [choice_of(records[key]["selection"]) for key in job.parents if key in records]
    used, own = choice_of(records[job.key]["selection"]), [dict.fromkeys(n for n, _ in job.grid)]
    with suppress(ValueError):  # the records have different numbers of pairs of classes
        given = middle(choices) if choices and len(choices) == len(job.parents) else [{}]
        return merged(merged(used, given), own) == merged(used, own)
    return False


def outdated(jobs: Iterable[Job], store: RecordStore, planned: Set[str]) -> list[str]:
    """Return messages about jobs that run again because of a new machine version or new defaults.

    The older records of these jobs are kept. Records whose keys are in the set `planned` are not
    reported, since they belong to the present plan.
    """
    waiting = {_place(job): job for job in jobs}
    known, counts = {job.key for job in waiting.values()} | planned, dict[str, set[str]]()
    for key in store.keys() if waiting else ():
        with suppress(BadRecord, FileNotFoundError):
            record = Record.of(store.read(key)) if key not in known else None
            job = waiting.get(_place(record.job)) if record and record.done else None
            if record and job and (difference := _difference(record.job, job)):
                counts.setdefault(f"{job.column}: {difference}", set()).add(job.key)
    return [f"{text}: {len(keys)} finished jobs run again" for text, keys in sorted(counts.items())]


def _place(job: Job) -> Hashable:
    """Return the data hash, kernel, degree, entry of ``machines`` and split of a job."""
    return job.dataset_hash, job.kernel, job.degree, job.column, job.split


def _difference(then: Job, now: Job) -> str:
    """Return a text that states how two jobs differ in machine version or default values.

    The returned text is empty if the two jobs also differ in any other field.
    """
    if replace(then, defaults=now.defaults, machine_version=now.machine_version).key != now.key:
        return ""
    if then.machine_version != now.machine_version:
        return f"version {then.machine_version} of the machine, {now.machine_version} today"
    old, new = (dict(job.to_dict()["defaults"]) for job in (then, now))  # JSON types, as in records
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"default {n}={old.get(n)!r}, {new.get(n)!r} today" for n in names)
