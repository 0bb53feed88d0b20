"""Jobs that hang, grow without end, crash or print without end cost one cell, and say why."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import psutil
import pytest
from helpers.small_run import NO_DATA
from helpers.tasks import (
    grow_without_end,
    hang,
    leave,
    map_a_file,
    print_much,
    segfault,
    start_a_process,
    start_a_process_that_grows,
    wait_in_python,
)

from mmbench.errors import Status, UserError
from mmbench.jobs.limits import Limits, parse_limits
from mmbench.jobs.record import is_done, new_record
from mmbench.machines.base.problem import Fit
from mmbench.running import local, runner
from mmbench.running.local import LimitReached, LocalExecutor, WorkerDied
from mmbench.running.worker import best_reached, execute
from mmbench.running.worker import stopped as what_stopped


@pytest.fixture
def executor(monkeypatch):
    monkeypatch.setattr(local, "GRACE_SECONDS", 0.2)
    executor = LocalExecutor(1)
    yield executor
    executor.close()


def ended(executor, function, limits):
    """Return the exception of a task, once the worker has shown that it serves another."""
    future = executor.submit(function, limits=limits)
    while not executor.wait(10):
        continue
    after = executor.submit(pow, 2, 3, limits=limits)
    while not executor.wait(10):
        continue
    assert after.result() == 8
    return future.exception()


TIME, MEMORY = Limits(time=0.5), Limits(memory=3e8)


@pytest.mark.parametrize(
    "function, limits, status",
    [
        (wait_in_python, TIME, Status.TIME_LIMIT),
        (hang, TIME, Status.TIME_LIMIT),
        (grow_without_end, MEMORY, Status.MEMORY_LIMIT),
    ],
)
def test_a_task_beyond_its_limit_is_ended_and_the_next_one_runs(function, limits, status, executor):
    error = ended(executor, function, limits)
    assert isinstance(error, LimitReached)
    assert error.status == status
    assert 0 < error.reached["seconds"] < 30
    if status == Status.MEMORY_LIMIT:
        assert error.reached["bytes"] > limits.memory
    else:
        assert error.reached["stage"] == ("selection" if function is wait_in_python else "training")


def wait_for(executor):
    while not (ended := executor.wait(10)):
        continue
    return ended[0]


@pytest.mark.parametrize("end", ["limit", "cancel"])
def test_processes_that_a_task_has_started_end_with_it(end, executor, tmp_path):
    executor.submit(
        start_a_process, tmp_path / "pid", limits=Limits(time=3.0 if end == "limit" else 600)
    )
    if end == "limit":
        assert isinstance(wait_for(executor).exception(), LimitReached)
    else:
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            executor.wait(0.1)
        executor.cancel()
    child = int((tmp_path / "pid").read_text())
    end_of_wait = time.monotonic() + 10
    while psutil.pid_exists(child) and psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < end_of_wait
        time.sleep(0.05)


def test_the_memory_of_these_processes_counts(executor):
    executor.submit(start_a_process_that_grows, limits=MEMORY)
    error = wait_for(executor).exception()
    assert isinstance(error, LimitReached) and error.status is Status.MEMORY_LIMIT


def test_a_mapped_file_is_no_memory_of_the_task(executor, tmp_path):
    with open(tmp_path / "large", "wb") as file:
        file.truncate(2**29)
    executor.submit(map_a_file, tmp_path / "large", 2**29, limits=MEMORY)
    future = wait_for(executor)
    assert future.exception() is None and future.result() == 0


@pytest.mark.parametrize("module, name", local.POSIX)
def test_a_system_without_a_call_of_posix_is_one_line(module, name, monkeypatch):
    monkeypatch.delattr(module, name)
    with pytest.raises(UserError, match=rf"worker processes need {module.__name__}.{name}, which"):
        LocalExecutor(1)


@pytest.mark.parametrize(
    "function, words", [(segfault, "ended by SIGSEGV"), (leave, "exit status 3")]
)
def test_a_task_that_ends_its_worker_ends_alone(function, words, executor):
    error = ended(executor, function, Limits())
    assert isinstance(error, WorkerDied)
    assert words in str(error)


@pytest.mark.parametrize(
    "function, limits, words",
    [
        (hang, TIME, "time limit of 0.5 s reached after"),
        (grow_without_end, MEMORY, "memory limit of 286 MiB reached after"),
        (segfault, TIME, "ended by SIGSEGV"),
    ],
)
def test_its_record_says_what_stopped_it_and_where(
    function, limits, words, jobs, store, executor, monkeypatch
):
    monkeypatch.setattr(runner, "execute", function)
    summary = runner.run(jobs[:1], store, executor, data=NO_DATA, limits=limits)
    assert summary.exit_code == 1
    record = store.read(jobs[0].key)
    assert words in record["reason"]
    assert not is_done(record)
    if function is segfault:
        assert record["reached"] == {}
        return
    assert record["limits"] == {"time": limits.time, "memory": limits.memory}
    assert record["reached"]["seconds"] > 0


def stopped(job, status=Status.TIME_LIMIT, **limits):
    limits = {"time": None, "memory": None} | limits
    reached = {"stage": "training", "seconds": 2.0}
    return new_record(job, status, "time limit reached", limits=limits, reached=reached)


@pytest.mark.parametrize(
    ("stage", "word"),
    [(None, "preparation"), ("warm_up", "a first training on 24 rows"), ("test", "test")],
)
def test_the_reason_names_the_stage_in_words(stage, word):
    said = what_stopped(Status.TIME_LIMIT, Limits(time=2), {"stage": stage, "seconds": 7.1})
    assert said["reason"] == f"time limit of 2.0 s reached after 7.1 s in {word}"


def test_a_larger_limit_runs_the_job_again_an_equal_one_does_not(job):
    record = stopped(job, time=60.0)
    assert Limits(time=60).reached_before(record)
    assert Limits(time=30, memory=1e9).reached_before(record)
    assert not Limits(time=61).reached_before(record)
    assert not Limits().reached_before(record)
    grown = stopped(job, Status.MEMORY_LIMIT, time=60.0, memory=1e9)
    assert Limits(memory=1e9).reached_before(grown)
    assert not Limits(time=60).reached_before(grown)
    assert not Limits(memory=2e9).reached_before(grown)


def test_too_little_free_memory_is_no_limit_of_the_users(job):
    record = new_record(job, Status.MEMORY_LIMIT, "needs about 9 GiB", limits={"memory": 1e9})
    assert not Limits(memory=1e9).reached_before(record)


def test_a_stopped_job_stays_a_failure_until_the_limit_grows(jobs, store, executor, monkeypatch):
    store.write(stopped(jobs[0], time=60.0))
    monkeypatch.setattr(runner, "execute", leave)  # it must not be called
    summary = runner.run(jobs[:2], store, executor, data=NO_DATA, limits=Limits(time=60))
    assert (summary.done, len(summary.failed), summary.exit_code) == (0, 2, 1)
    assert "has no result: time limit reached" in store.read(jobs[1].key)["reason"]
    monkeypatch.setattr(runner, "execute", execute)
    summary = runner.run(jobs[:2], store, LocalExecutor(1), data=NO_DATA, limits=Limits(time=61))
    assert (summary.done, summary.exit_code) == (2, 0)


@pytest.mark.parametrize(
    "text, seconds", [("1h", 3600), ("90 s", 90), ("1.5 min", 90), (5, 5), ("2 d", 172800)]
)
def test_times_are_read_as_people_write_them(text, seconds):
    assert parse_limits(time=text).time == seconds


@pytest.mark.parametrize("text, size", [("8 GB", 8e9), ("4GiB", 2**32), ("500 mb", 5e8)])
def test_sizes_are_read_as_people_write_them(text, size):
    assert parse_limits(memory=text).memory == size


@pytest.mark.parametrize(
    "wrong", [{"time": "soon"}, {"time": 0}, {"time": "-1 h"}, {"memory": "8"}, {"memory": True}]
)
def test_other_limits_are_refused_with_an_example(wrong):
    with pytest.raises(UserError, match="such as"):
        parse_limits(**wrong)


# -- what a worker prints, and workers that cannot start -------------------------------------------


def test_output_without_end_is_cut_and_said(executor, capsys, monkeypatch):
    monkeypatch.setattr(local, "OUTPUT_BYTES", 10_000)
    for n_bytes in (500_000, 2048):
        executor.submit(print_much, n_bytes)
        while not executor.wait(10):
            continue
    shown = capsys.readouterr().err
    assert len(shown) < 25_000
    assert shown.count("a worker printed more than 10000 bytes") == 1
    assert shown.endswith("x\n")  # the task after it may print again


def test_a_worker_that_cannot_import_is_the_users_to_mend(capsys):
    executor = LocalExecutor(1, ("mmbench.no_such_module",))
    executor.submit(pow, 2, 3)
    with pytest.raises(UserError, match="cannot start: ModuleNotFoundError"):
        executor.wait(10)
    executor.cancel()


FEW_FILES = """
import resource, sys
from mmbench.errors import UserError
from mmbench.running.local import LocalExecutor
resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))
executor = LocalExecutor(40)
try:
    for _ in range(40):
        executor.submit(pow, 2, 3)
except UserError as error:
    print(error)
executor.cancel()
"""


def test_too_few_descriptors_are_one_line():
    done = subprocess.run([sys.executable, "-c", FEW_FILES], capture_output=True, text=True)
    assert "no worker process can be started (Too many open files)" in done.stdout
    assert done.stderr == ""


# -- limits that a job is asked to keep ------------------------------------------------------------


def asked_to_stop(job, context, seconds=1e-9, **limits):
    context = replace(context, limits=Limits(time=seconds, **limits))
    content, arrays = execute(job, context)
    assert not is_done(content) and not arrays
    assert context.limits.reached_before(content)
    assert not Limits(time=60).reached_before(content)
    return content


def test_a_search_that_is_asked_to_stop_says_how_far_it_came(job, context):
    record = asked_to_stop(job, context)
    assert record["status"] == Status.TIME_LIMIT
    assert record["reached"]["stage"] == "selection"
    assert 0 < record["reached"]["trainings"] < record["reached"]["planned"] == 4 * 3 * 3
    assert "of 36 trainings of pairs done" in record["reason"]


def test_a_training_whose_time_is_up_begins_no_further_pair(job, context):
    record = asked_to_stop(replace(job, grid=()), context)
    reached = record["reached"]
    assert (record["status"], reached["stage"]) == (Status.TIME_LIMIT, "training")
    assert (reached["pairs"], reached["pairs_begun"], reached["pairs_solved"]) == (3, 0, 0)
    assert record["reason"].endswith("0 of 3 pairs solved, 0 begun")


def test_a_training_that_is_asked_to_stop_leaves_the_certificate_of_its_worst_pair():
    ended = [(Status.OPTIMAL, 1.0, 1.0), (Status.TIME_LIMIT, 2.0, 1.5), (Status.TIME_LIMIT, 2.0, 1)]
    fits = [Fit(*each, 0.0, 7, 0.1, 3, pair=("a", k)) for k, each in enumerate(ended)]
    fits.append(Fit(Status.TIME_LIMIT, np.inf, -np.inf, 0.0, 0, 0.0, 0, pair=("a", 3)))
    reached, words = best_reached(fits, 1e-3)
    assert reached["pair"] == ["a", 2] and reached["iterations"] == 7
    assert (reached["objective"], reached["bound"], reached["gap"]) == (2.0, 1.0, 0.5)
    assert words == (
        "1 of 4 pairs solved, 3 begun; a/2 has a gap of 5.0e-01 (tolerance 1.0e-03) after "
        "7 iterations"
    )


def test_memory_is_asked_for_before_it_is_taken(job, context, monkeypatch):
    from mmbench import memory

    monkeypatch.setattr(memory, "LEAST_CHECKED_BYTES", 0)
    monkeypatch.setattr(memory, "allowed_bytes", lambda: 1000.0)
    job = replace(job, machine="lssvm", grid=())
    context = replace(context, limits=Limits(memory=1e9))
    record, _ = execute(job, context)
    assert record["status"] == Status.MEMORY_LIMIT
    assert record["reason"].startswith("memory limit of 954 MiB reached after")
    assert "LSSVM on " in record["reason"] and "its limit leaves" in record["reason"]
    assert Limits(memory=1e9).reached_before(record)
    assert not Limits(memory=2e9).reached_before(record)
