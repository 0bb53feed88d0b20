"""Runs: resumed, interrupted, killed, in parallel; the records are always the same."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from helpers.serial_executor import SerialExecutor
from helpers.small_run import NO_DATA, make_jobs

from mmbench.errors import NotEnoughMemory, Status, UserError
from mmbench.jobs import train
from mmbench.jobs.job import SelectRef
from mmbench.jobs.planned import Plan, PlannedCell, key_of
from mmbench.jobs.record import is_done, new_record
from mmbench.jobs.store import RecordStore
from mmbench.machines import SVM
from mmbench.running import forecast
from mmbench.running.local import LocalExecutor
from mmbench.running.progress import Lines
from mmbench.running.runner import Summary, run

#: The command line, in a process that says when it has begun.
READY = "from mmbench.cli import main; print(flush=True); main()"
SCRIPT = Path(__file__).parents[1] / "helpers" / "small_run.py"
#: What differs between two runs of the same job.
OF_THE_MOMENT = ("cpu_seconds", "wall_seconds", "started", "finished", "environment")


def serial(jobs, store):
    return run(jobs, store, SerialExecutor(), data=NO_DATA)


def results(store):
    """Return what must not depend on how a run went: records, and arrays byte by byte."""
    found = {}
    for record in filter(is_done, map(store.read, store.keys())):
        kept = {name: value for name, value in record.items() if name not in OF_THE_MOMENT}
        kept["per_pair"] = [{**pair, "seconds": None} for pair in record["per_pair"]]
        found[record["key"]] = kept, store.path_of(record["key"], ".npz").read_bytes()
    return found


def written(store):
    """Return when each file of a record was written."""
    return {path: path.stat().st_mtime_ns for path in (store.folder / "records").iterdir()}


def test_a_second_run_reuses_everything(jobs, store):
    summary = serial(jobs, store)
    assert (summary.done, summary.reused, summary.exit_code) == (4, 0, 0)
    before = written(store)
    summary = serial(jobs, store)
    assert (summary.done, summary.reused, summary.exit_code) == (0, 4, 0)
    assert written(store) == before


@pytest.fixture(scope="module")
def two_workers():
    executor = LocalExecutor(2)
    yield executor
    executor.close()


def test_one_process_or_two_give_the_same_records(jobs, store, other_store, two_workers):
    serial(jobs, store)
    summary = run(jobs, other_store, two_workers, data=NO_DATA)
    assert summary.done == len(jobs)
    assert results(store) == results(other_store)


def test_a_lost_record_is_made_again_and_a_corrupted_one_is_put_aside_and_said(jobs, store, capsys):
    serial(jobs, store)
    before = results(store)
    store.path_of(jobs[1].key).unlink()
    path = store.path_of(jobs[2].key)
    path.write_bytes(path.read_bytes()[:100])
    summary = serial(jobs, store)
    assert (summary.done, summary.reused) == (2, 2)
    assert results(store) == before
    assert f"{path}: not complete JSON; moved to" in capsys.readouterr().err


def test_a_failed_job_is_recorded_takes_its_children_along_and_is_retried(
    jobs, store, monkeypatch, capsys
):
    real = train.train

    def broken(job, *rest):
        if job == jobs[0]:
            raise RuntimeError("out of luck")
        return real(job, *rest)

    monkeypatch.setattr(train, "train", broken)
    summary = serial(jobs, store)
    assert (summary.done, len(summary.failed), summary.exit_code) == (2, 2, 1)
    reasons = [store.read(job.key)["reason"] for job in jobs[:2]]
    assert reasons[0] == "RuntimeError: out of luck"
    assert reasons[1].endswith("svm, which has no result: RuntimeError: out of luck")
    assert "out of luck" in capsys.readouterr().err

    monkeypatch.undo()
    summary = serial(jobs, store)
    assert (summary.done, summary.reused, summary.exit_code) == (2, 2, 0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_jobs_with_doubtful_fits_are_counted_named_and_counted_again(
    jobs, store, monkeypatch, capsys
):
    real = SVM.train

    def unbounded(self, problem, warm=None):
        model = real(self, problem, warm)
        status = "optimal" if self.solver == "auto" else "unbounded"
        return replace(model, fit=replace(model.fit, status=status))

    monkeypatch.setattr(SVM, "train", unbounded)
    for _ in range(2):
        summary = serial(jobs, store)
        assert summary.doubtful == {"unbounded": 2}
        assert summary.exit_code == 0
    assert (
        "% correct (unbounded: 3 of 3 pairs, first class_0/class_1 (gap" in capsys.readouterr().err
    )
    assert store.read(jobs[1].key)["reason"].startswith("unbounded: 3 of 3 pairs")


@pytest.mark.parametrize(
    ("status", "counted"),
    [
        (Status.INACCURATE, 1),
        (Status.UNBOUNDED, 1),
        (Status.TRIVIAL, 0),
        (Status.UNCERTIFIED, 0),
        (Status.OPTIMAL, 0),
    ],
)
def test_trivial_and_uncertified_results_are_not_doubtful(job, status, counted):
    summary = Summary()
    summary.add(new_record(job, status, metrics={"accuracy_pct": 90.0}))
    assert (summary.done, summary.doubtful[status]) == (1, counted)


def test_wrong_input_is_told_apart_and_loses_nothing(jobs, store):
    bad = replace(jobs[0], select=SelectRef(folds=60))
    summary = serial([*jobs, bad], store)
    assert (summary.done, summary.exit_code) == (4, 2)
    assert summary.wrong_input == [store.read(bad.key)["reason"]]


def test_a_cluster_without_workers_is_said_once(jobs, store):
    class Late(SerialExecutor):
        looks, task_threads = 0, 1

        @property
        def slots(self):
            self.looks += 1
            return int(self.looks > 9)

    stream = io.StringIO()
    run(jobs[:1], store, Late(), data=NO_DATA, progress=lambda total: Lines(total, stream))
    said = stream.getvalue()
    assert said.count("the cluster has no worker yet; waiting for a worker") == 1


def test_a_job_that_runs_for_a_long_time_is_said_meanwhile(jobs, store, monkeypatch):
    class Slow(SerialExecutor):
        looks = 0

        def wait(self, timeout=None):
            self.looks += 1
            return super().wait(timeout) if self.looks > 3 else []

    monkeypatch.setattr("mmbench.running.progress.LONG_SECONDS", 0.0)
    stream = io.StringIO()
    run(jobs[:1], store, Slow(), data=NO_DATA, progress=lambda total: Lines(total, stream))
    said = stream.getvalue().splitlines()
    assert "wine, split 1.1, svm rbf: still running after" in said[0]
    assert said[-1].startswith("[1/1] wine, split 1.1, svm rbf: ")


def test_a_job_too_large_beside_others_runs_alone(jobs, store, monkeypatch):
    class TwoSlots(SerialExecutor):
        slots = task_threads = computer_slots = 2

    shares = []

    def threads_that_fit(job, sizes, threads, share, limit):
        shares.append(share)
        if share < 1:
            raise NotEnoughMemory("too large")
        return 1

    monkeypatch.setattr(forecast, "threads_that_fit", threads_that_fit)
    summary = run(jobs[::2], store, TwoSlots(), data=NO_DATA)
    assert (summary.done, summary.exit_code) == (2, 0)
    assert shares == [0.5, 0.5, 1, 1]


class KillsTheWorkersOnce(Lines):
    """Kills the workers, one busy and one idle, when the first job has ended."""

    def __init__(self, total, executor):
        super().__init__(total, sys.stderr)
        self.workers = executor.workers

    def finished(self, job, record, left):
        super().finished(job, record, left)
        if self._count == 1:
            for process in [psutil.Process(worker.process.pid) for worker in self.workers]:
                process.kill()
                while process.status() != psutil.STATUS_ZOMBIE:
                    time.sleep(0.01)


def test_a_killed_worker_costs_its_own_job_alone(store, other_store, two_workers):
    long, _ = make_jobs(1, "digits")
    values = tuple(2.0**k for k in range(12))
    long = replace(long, grid=(("C", values), ("gamma", values)))
    jobs = [long, *make_jobs(1)]
    progress = lambda total: KillsTheWorkersOnce(total, two_workers)  # noqa: E731
    summary = run(jobs, store, two_workers, data=NO_DATA, progress=progress)
    assert [record["key"] for record in summary.failed] == [long.key]
    assert "the worker process was ended by SIGKILL" in summary.failed[0]["reason"]
    assert summary.done == 2
    serial(jobs[1:], other_store)
    assert results(store) == results(other_store)


def start_run(store, n_slots, n_splits):
    """Start a run in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(store.folder), str(n_slots), str(n_splits), "digits"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell ignores Ctrl-C in what it runs in the background, and the tests may be that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def first_job(process):
    """Wait for the line of the first job that ends, and return it."""
    return next(line for line in iter(process.stderr.readline, "") if line.startswith("[1/"))


def test_a_run_killed_midway_goes_on_to_the_same_records(store, other_store):
    jobs = make_jobs(4, "digits")
    process = start_run(store, 2, 4)
    first_job(process)
    workers = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    assert not psutil.wait_procs(workers, timeout=10)[1]
    kept = store.keys()
    assert 0 < len(kept) < len(jobs)
    expected = results(store)
    summary = serial(jobs, store)
    assert summary.reused == len(kept)
    assert is_done(store.read(jobs[-1].key))
    serial([job for job in jobs if job.key in kept], other_store)  # the rest was made like these
    assert expected == results(other_store)
    assert expected.items() <= results(store).items()


def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(store):
    process = start_run(store, 1, 60)  # more than can be over before the signal comes
    first = first_job(process)
    workers = psutil.Process(process.pid).children()
    os.killpg(process.pid, signal.SIGINT)
    *_, last = (first + process.communicate()[1]).splitlines()
    assert process.returncode == 130
    assert last.startswith(f"interrupted: {len(store.keys())} finished jobs are kept in ")
    assert "the same command runs" in last
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert all(is_done(record) for record in map(store.read, store.keys()))


CONFIG = """
name: small
datasets: [wine]
protocol: {test: {holdout: 0.3}, repeats: 200}
select: {folds: 3}
machines: {svm: {grid: {C: [1, 10]}}}
"""


@pytest.mark.parametrize(
    "when, number",
    [
        ("at once", signal.SIGINT),
        pytest.param("before a job", signal.SIGINT, marks=pytest.mark.slow),
        ("after a job", signal.SIGTERM),
    ],
)
def test_twenty_interrupts_are_as_good_as_one(when, number, tmp_path):
    (tmp_path / "small.yaml").write_text(CONFIG)
    process = subprocess.Popen(
        [sys.executable, "-c", READY, "run", str(tmp_path / "small.yaml"), "--jobs", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    if when == "after a job":
        first_job(process)
    else:
        (process.stdout if when == "at once" else process.stderr).readline()
    time.sleep(0.1)
    for _ in range(20):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        time.sleep(0.005)
    errors = process.communicate()[1]
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "interrupted" in errors


@pytest.mark.parametrize("files", ["*", "*.npz"])
def test_records_deleted_during_a_run_are_not_called_done(jobs, store, files):
    class Deleting(SerialExecutor):
        def wait(self, timeout=None):
            for path in store.folder.glob(f"records/{files}"):
                path.unlink()
            return super().wait(timeout)

    summary = run(jobs[:2], store, Deleting(), data=NO_DATA)
    assert (summary.lost, summary.exit_code) == (1, 1)


def test_a_record_that_another_run_wrote_is_kept(jobs, store):
    serial(jobs[:1], store)
    record, path = store.read(jobs[0].key), store.path_of(jobs[0].key)
    content = path.read_bytes()
    path.unlink()

    class Late(SerialExecutor):
        def wait(self, timeout=None):
            path.write_bytes(content)
            return super().wait(timeout)

    assert run(jobs[:1], store, Late(), data=NO_DATA).done == 1
    assert store.read(jobs[0].key) == record


def test_a_record_of_a_later_version_is_passed_over(jobs, store, monkeypatch):
    serial(jobs, store)
    record = store.read(jobs[0].key)
    path = store.path_of(record["key"])
    path.unlink()
    other = {**record, "key": "0" * 20, "job": {**record["job"], "added_later": 1}}
    store.write(other)
    assert serial([replace(job, machine_version=9) for job in jobs[:1]], store).done == 1


def test_a_job_that_runs_alone_may_use_all_memory(jobs, store):
    class FourSlots(SerialExecutor):
        slots, task_threads, computer_slots = 4, 1, 4

        def submit(self, function, job, context, limits):
            shares.append(context.memory_share)
            lacking = new_record(job, Status.MEMORY_LIMIT, "needs 5 GiB")
            return super().submit(lambda: (lacking, {}))

    shares = []
    summary = run(jobs[:1], store, FourSlots(), data=NO_DATA)
    assert shares == [0.25, 1.0] and len(summary.failed) == 1


def test_an_interrupt_keeps_the_results_that_have_arrived(jobs, store, monkeypatch):
    independent = [job for job in make_jobs(2) if not job.parents]

    class TwoSlots(SerialExecutor):
        slots = 2

    real, written_before = store.write, []

    def write(record, arrays):
        written_before.append(record["key"])
        if len(written_before) == 1:
            raise KeyboardInterrupt
        real(record, arrays)

    monkeypatch.setattr(store, "write", write)
    summary = run(independent, store, TwoSlots(), data=NO_DATA)
    assert summary.interrupted and summary.done == 2 == len(store.keys())


def test_results_that_arrived_with_an_error_of_the_executor_are_kept(store):
    independent = [job for job in make_jobs(2) if not job.parents]

    first, _ = independent

    def fail(*_):
        raise UserError("no worker process can start")

    class FirstFails(SerialExecutor):
        slots = 2

        def submit(self, function, *args, **options):
            return super().submit(fail if args[0] is first else function, *args, **options)

    with pytest.raises(UserError, match="no worker process"):
        run(independent, store, FirstFails(), data=NO_DATA)
    assert len(store.keys()) == 1


def test_a_parent_that_failed_in_an_earlier_run_is_the_reason(jobs, store, monkeypatch):
    [child] = [job for job in jobs[:2] if job.parents]
    parent = jobs[0]
    store.write(new_record(parent, Status.FAILED, "out of luck"))
    summary = serial([child], store)
    assert summary.failed[0]["reason"].endswith("svm, which has no result: out of luck")


def test_output_that_cannot_be_written_does_not_end_a_run(store, two_workers, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("no space left")

    monkeypatch.setattr(sys, "stderr", Full())
    future = two_workers.submit(print, "hello")
    while not two_workers.wait(1):
        pass
    assert future.result() is None


def test_a_plan_that_another_run_has_replaced_is_not_run(jobs, tmp_path):
    cells = (PlannedCell(key_of(jobs[0]), 2, (jobs[0].key,)),)
    store = RecordStore.create(tmp_path / "small", "name: small\n", Plan("small", cells=cells))
    others = frozenset({jobs[1].key})
    with pytest.raises(UserError, match="another run has stored another experiment"):
        run(jobs[1:2], store, SerialExecutor(), data=NO_DATA, planned=others)
    done = run(jobs[:1], store, SerialExecutor(), data=NO_DATA, planned=store.plan().jobs)
    assert done.done == 1
