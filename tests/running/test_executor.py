"""Worker processes: results, deaths and cancellation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from helpers.serial_executor import SerialExecutor

from mmbench.errors import UserError
from mmbench.running.local import LocalExecutor, WorkerDied, show


def drain(executor, count, timeout=60):
    """Return the first `count` ended tasks."""
    ended, deadline = [], time.monotonic() + timeout
    while len(ended) < count and time.monotonic() < deadline:
        ended += executor.wait(1)
    return ended


@pytest.fixture
def local():
    executor = LocalExecutor(2)
    yield executor
    executor.close()


def test_results_and_exceptions_come_back(local):
    good, bad = local.submit(pow, 2, 10), local.submit(int, "x")
    assert set(drain(local, 2)) == {good, bad}
    assert good.result() == 1024
    assert isinstance(bad.exception(), ValueError)


def test_a_task_shows_its_progress(local):
    task = local.submit(show, "gap 0.1")
    drain(local, 1)
    assert task.progress == "gap 0.1"


def test_more_tasks_than_slots_are_refused(local):
    local.submit(time.sleep, 30)
    local.submit(time.sleep, 30)
    with pytest.raises(RuntimeError, match="all 2 slots"):
        local.submit(time.sleep, 30)


def test_a_killed_worker_ends_only_its_own_task(local):
    doomed = local.submit(signal.raise_signal, signal.SIGKILL)
    other = local.submit(time.sleep, 0.5)
    drain(local, 2)
    assert isinstance(doomed.exception(), WorkerDied)
    assert "SIGKILL, perhaps because memory ran out" in str(doomed.exception())
    assert other.exception() is None
    again = local.submit(pow, 2, 3)
    drain(local, 1)
    assert again.result() == 8


def test_the_death_of_a_worker_is_noticed_while_a_process_that_it_has_started_lives(local):
    start = time.monotonic()
    doomed = local.submit(_fork_and_die)
    assert local.wait() == [doomed]
    assert "SIGKILL" in str(doomed.exception())
    assert time.monotonic() - start < 30


def _fork_and_die():
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    signal.raise_signal(signal.SIGKILL)


def test_a_worker_that_cannot_start_leaves_its_slot_free():
    executor = LocalExecutor(1, ("no_such_module",))
    for _ in range(2):
        executor.submit(pow, 2, 3)
        with pytest.raises(UserError, match=r"cannot start: .*no_such_module"):
            executor.wait()


def test_a_worker_that_cannot_be_started_again_leaves_its_slot_free(monkeypatch):
    executor = LocalExecutor(1)
    pid = executor.submit(os.getpid)
    drain(executor, 1)
    os.kill(pid.result(), signal.SIGKILL)  # while it is idle
    executor.submit(pow, 2, 3)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "Popen", lambda *_, **__: os.open("/no/such/file", os.O_RDONLY))
        with pytest.raises(UserError, match="no worker process can be started"):
            executor.wait()
    again = executor.submit(pow, 2, 3)
    assert executor.wait() == [again] and again.result() == 8
    executor.close()


def test_unpicklable_results_are_told_in_words(local):
    future = local.submit(compile, "x", "name", "eval")
    drain(local, 1)
    assert "cannot be sent" in str(future.exception())


def test_idle_workers_outlive_a_cancelled_task_and_are_used_again(local):
    first = local.submit(os.getpid)
    drain(local, 1)
    local.cancel()
    again = local.submit(os.getpid)
    drain(local, 1)
    assert again.result() == first.result()
    local.close()
    assert not psutil.pid_exists(first.result())


def test_cancel_kills_the_workers_at_once(local):
    pid = local.submit(os.getpid)
    drain(local, 1)
    local.submit(time.sleep, 60)
    local.cancel()
    assert not psutil.pid_exists(pid.result())


def test_workers_ignore_the_interrupt_of_a_terminal(local):
    pid = local.submit(os.getpid)
    drain(local, 1)
    task = local.submit(time.sleep, 0.3)
    os.kill(pid.result(), signal.SIGINT)
    drain(local, 1)
    assert task.exception() is None


MASK = """
import signal
from mmbench.running.local import LocalExecutor

if __name__ == "__main__":
    executor = LocalExecutor(1)
    mask = executor.submit(signal.pthread_sigmask, signal.SIG_BLOCK, ())
    executor.wait()
    executor.close()
    print(signal.SIGINT in mask.result())
"""


def test_the_first_worker_of_a_process_ignores_it_too(tmp_path):
    script = tmp_path / "mask.py"
    script.write_text(MASK)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_a_serial_executor_keeps_the_promises_of_the_interface():
    executor = SerialExecutor()
    good, bad = executor.submit(pow, 2, 3), executor.submit(int, "x")
    assert executor.wait() == [good, bad]
    assert executor.wait() == []
    assert good.result() == 8
    assert isinstance(bad.exception(), ValueError)


ORPHAN = """
import os, time
from mmbench.running.local import LocalExecutor

if __name__ == "__main__":
    executor = LocalExecutor(1)
    pid = executor.submit(os.getpid)
    executor.wait()
    print(pid.result(), flush=True)
    executor.submit(time.sleep, 600)
    time.sleep(600)
"""


def test_a_busy_worker_dies_with_its_killed_parent(tmp_path):
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    worker = psutil.Process(int(parent.stdout.readline()))
    time.sleep(0.2)
    parent.kill()
    parent.communicate()
    worker.wait(timeout=10)


def test_a_process_started_early_has_imported_what_it_was_told_to():
    executor = LocalExecutor(1, ("sqlite3",))
    try:
        future = executor.submit(_is_imported, "sqlite3")
        drain(executor, 1)
        assert future.result()
    finally:
        executor.close()


def _is_imported(name):
    return name in sys.modules
