"""Jobs on a Dask cluster on the loopback address: lost workers, missing data, limits."""

from __future__ import annotations

import hashlib
import os
import pickle
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from helpers.dask_threads import cluster_in_threads
from helpers.serial_executor import SerialExecutor
from helpers.small_run import NO_DATA, make_jobs
from helpers.tasks import hang, nap, segfault
from running.tasks_with_data import read_slowly
from running.test_runner import results

import mmbench
from mmbench.commands.options import Options
from mmbench.commands.run import executor_for
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import dataset_hash
from mmbench.errors import Status, UserError
from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.running import cluster, parcel
from mmbench.running.cluster import DaskExecutor, differences, facts
from mmbench.running.local import LimitReached, WorkerDied
from mmbench.running.parcel import MissingData
from mmbench.running.runner import run
from mmbench.running.worker import Context, execute

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")


HTTP = b"HTTP/1.1 400 Bad Request\r\n\r\n"


@pytest.fixture(scope="module")
def far_store(tmp_path_factory):
    """The store of the workers, which is not that of the run."""
    return tmp_path_factory.mktemp("far")


@pytest.fixture(scope="module")
def executor(far_store):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MMBENCH_DATA", str(far_store))
        with dask.config.set({"distributed.scheduler.allowed-failures": 50}):
            executor = DaskExecutor("local", 1, (), print)
        yield executor
        executor.close()


def drain(executor, count, seconds=120):
    ended, end = [], time.monotonic() + seconds
    while len(ended) < count and time.monotonic() < end:
        ended += executor.wait(1)
    return ended


def lose_workers(executor, count, seed):
    """Kill so many Dask workers at random, each once it has had time to take a task."""
    rng, seen = random.Random(seed), set()
    while count:
        alive = set(executor.client.run(os.getpid, on_error="ignore").values())
        if ready := sorted(alive & seen):
            os.kill(rng.choice(ready), signal.SIGKILL)
            count -= 1
        seen = alive
        time.sleep(rng.uniform(0.3, 0.6))


def test_results_and_exceptions_come_back(executor):
    good, bad = executor.submit(pow, 2, 10), executor.submit(int, "x")
    assert set(drain(executor, 2)) == {good, bad}
    assert good.result() == 1024
    assert isinstance(bad.exception(), ValueError)
    assert executor.slots == 1


@pytest.mark.parametrize("slots", [1, 3])
def test_a_local_cluster_has_one_worker_per_slot(slots, monkeypatch):
    monkeypatch.setattr("distributed.LocalCluster", lambda **options: options)
    assert cluster._local_cluster(slots)["n_workers"] == slots


@pytest.mark.slow
def test_a_worker_that_joins_late_takes_part(executor):
    executor.cluster.scale(2)
    executor.client.wait_for_workers(2)
    end = time.monotonic() + 20
    while executor.slots < 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert executor.slots == executor.computer_slots == 2


def test_limits_and_crashes_are_those_of_a_local_process(executor, monkeypatch):
    pids = set(executor.client.run(os.getpid).values())
    late = executor.submit(hang, limits=Limits(time=0.3))
    crash = executor.submit(segfault)
    drain(executor, 2)
    assert isinstance(late.exception(), LimitReached)
    assert late.exception().status == Status.TIME_LIMIT
    assert isinstance(crash.exception(), WorkerDied)
    assert "SIGSEGV" in str(crash.exception())
    assert set(executor.client.run(os.getpid).values()) == pids


def test_cancel_ends_tasks_at_once_and_the_workers_stay(executor):
    executor.submit(nap, 600)
    processes = []
    while not processes:
        time.sleep(0.1)
        pids = executor.client.run(os.getpid).values()
        processes = [child for pid in pids for child in psutil.Process(pid).children()]
    executor.cancel()
    assert not psutil.wait_procs(processes, timeout=10)[1]
    assert executor.wait(0.1) == []
    after = executor.submit(pow, 2, 3)
    assert drain(executor, 1) == [after]


def test_a_task_whose_process_begins_after_a_cancel_ends_too(monkeypatch):
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.1)
    cluster.stop_here("cancelled")
    task = pickle.dumps((nap, (600,), NO_LIMITS, ()))
    with pytest.raises(WorkerDied):
        cluster.run_here(task, None, "cancelled")
    cluster.stop_here("nothing is left behind")


def test_the_end_of_a_run_ends_no_task_of_another_run_on_the_same_cluster():
    """All clients of a Dask worker share its processes; a kill is never put down to memory."""
    with ThreadPoolExecutor() as threads:
        mine, other = (
            threads.submit(cluster.run_here, pickle.dumps((nap, (s, s), NO_LIMITS, ())), None, name)
            for s, name in ((600, "mine"), (4, "other"))
        )
        while len(cluster.executors.keys() - set(cluster.idle_executors)) < 2:
            time.sleep(0.05)
        time.sleep(1)
        cluster.stop_here("mine")
        with pytest.raises(WorkerDied, match="the run of the task was cancelled"):
            mine.result(timeout=20)
        assert other.result(timeout=20) == 4
    cluster.stop_here("other")


def test_a_run_on_data_that_workers_do_not_see_has_the_records_of_one_process(
    executor, far_store, store, other_store, tmp_path, monkeypatch
):
    path = tmp_path / "mine.csv"
    path.write_text("a,b,label\n" + "".join(f"{k % 7},{k % 5},{k % 2}\n" for k in range(60)))
    ref = DatasetRef("mine", str(path), "label")
    job = replace(make_jobs(1)[0], dataset=ref, dataset_hash=dataset_hash(ref, store=NO_DATA))
    run([job], other_store, SerialExecutor(), data=NO_DATA)
    packed = parcel.pack(job, NO_DATA, None)
    path.unlink()
    monkeypatch.setattr(cluster, "pack", lambda *_: packed)
    assert run([job], store, executor, data=NO_DATA).done == 1
    assert [path.name for path in far_store.rglob("*.csv")] == ["mine.csv"]
    assert results(store) == results(other_store)


def lose_parcel(executor):
    """Kill all workers that hold the sent data files, once a worker holds them."""
    holders, pids = set(), {}
    while not holders or holders - pids.keys():
        executor.wait(0.1)
        sent = [parcel for parcel in executor._parcels.values() if parcel.status == "finished"]
        holders = {worker for at in executor.client.who_has(sent).values() for worker in at}
        pids = executor.client.run(os.getpid, on_error="ignore")
    for worker in holders:
        os.kill(pids[worker], signal.SIGKILL)


@pytest.mark.slow
def test_data_files_are_sent_again_if_all_workers_that_hold_them_are_lost(
    executor, tmp_path, monkeypatch
):
    packed = [("user/mine.csv", hashlib.sha256(b"a,b").hexdigest(), b"a,b")]
    monkeypatch.setattr(cluster, "pack", lambda *_: packed)
    executor._parcels.clear()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    first, second = (Context(tmp_path / name) for name in ("one", "two"))
    task = executor.submit(read_slowly, make_jobs(1)[0], first)
    lose_parcel(executor)  # during the first task
    assert drain(executor, 1) == [task] and task.result() == b"a,b"
    lose_parcel(executor)  # before the second task
    task = executor.submit(read_slowly, make_jobs(1)[0], second)
    assert drain(executor, 1) == [task] and task.result() == b"a,b"


def test_a_task_that_loses_its_data_files_again_and_again_ends():
    lost = SimpleNamespace(status="cancelled")
    executor, future = executor_without_cluster(lost)
    [task] = executor._tasks.values()
    task.sent = [SimpleNamespace(status="cancelled") for _ in range(4)]
    assert executor.wait(1) == [future]
    with pytest.raises(WorkerDied, match="every worker that ran it was lost"):
        future.result()


def test_a_task_waits_for_a_worker_if_none_is_left_for_its_data_files(monkeypatch):
    monkeypatch.setattr(cluster, "pack", lambda *_: [])
    workers, sent = [], []

    def scatter(content, **_):
        if not workers:
            raise TimeoutError("No valid workers found")
        return [SimpleNamespace(status="finished")]

    def submit(function, payload, parcel, *_, **options):
        sent.append(parcel)
        return SimpleNamespace(status="pending", add_done_callback=lambda _: None)

    executor, _ = executor_without_cluster(SimpleNamespace(status="cancelled"))
    executor.client.scatter, executor.client.submit = scatter, submit
    executor.batch, executor._modules = "batch", ()
    [task] = executor._tasks.values()
    task.sent.append(SimpleNamespace(status="cancelled"))
    assert executor.wait(0.1) == [] and sent == [None]
    workers.append("new")
    task.remote = SimpleNamespace(status="error", exception=lambda: MissingData("mine"))
    executor._ended.put(task)
    assert executor.wait(0.1) == [] and sent[1].status == "finished"
    task.remote = SimpleNamespace(status="finished", result=lambda: 8)
    executor._ended.put(task)
    assert executor.wait(0.1) == [task.future] and task.future.result() == 8


@pytest.mark.parametrize("source", ["sklearn:wine", "openml:61"])
def test_a_parcel_has_the_folds_of_a_table_that_is_no_file(source, tmp_path):
    folds = tmp_path / "folds.csv"
    folds.write_text("fold\n1\n2\n")
    ref = DatasetRef("table", source, folds=str(folds))
    job = replace(make_jobs(1)[0], dataset=ref, dataset_hash="0" * 64)
    packed = parcel.pack(job, NO_DATA, None)
    assert [text for _, _, text in packed] == [b"fold\n1\n2\n"]
    (tmp_path / "far").mkdir()
    parcel.unpack(packed, tmp_path / "far")
    folds.unlink()
    there, _, _ = parcel.at_hand(job, tmp_path / "far", None)
    assert there.dataset.path == source
    assert Path(str(there.dataset.folds)).read_text() == "fold\n1\n2\n"


def test_a_damaged_parcel_is_refused(tmp_path):
    with pytest.raises(UserError, match="damaged on its way"):
        parcel.unpack([("a/b.csv", "0" * 64, b"content")], tmp_path)
    assert not list(tmp_path.rglob("*.csv"))


def test_workers_with_other_code_are_named_in_one_line():
    assert differences(facts()) == []
    other = {**facts(), "numpy": "1.0", "the code of mmbench": "0"}
    [line] = differences(other)
    assert line.startswith("workers differ: the code of mmbench 0, but ")
    assert "numpy 1.0, but" in line
    [line] = differences(ModuleNotFoundError("No module named 'mmbench'"))
    assert line.startswith("a worker cannot run mmbench: ModuleNotFoundError")


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UserError, match=r"install 'mmbench\[dask\]'"):
        DaskExecutor("local", 1, (), print)


@pytest.mark.parametrize(
    ("name", "hint"), [("slurmm", "; did you mean 'slurm'?"), ("host", "; valid: .*local.*slurm")]
)
def test_a_scheduler_that_is_no_address_gets_a_hint(name, hint):
    with pytest.raises(UserError, match=f"--scheduler {name}: an address needs a port{hint}"):
        executor_for(Options(scheduler=name), (), print)


def test_no_scheduler_at_the_address_is_one_line(monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    with pytest.raises(UserError, match="no answer"):
        DaskExecutor("tcp://127.0.0.1:1", 1, (), print)


@pytest.mark.parametrize(
    "address", ["tls://127.0.0.1:1", "ucx://127.0.0.1:1", "tcp://a:b", "tcp://[::1", "x y"]
)
def test_addresses_that_cannot_be_used_are_one_line(address, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    with pytest.raises(UserError, match=re.escape(f"scheduler {address}: no answer")):
        DaskExecutor(address, 1, (), print)


@pytest.mark.parametrize(
    "greeting, words",
    [
        (b"", "no answer within"),
        (bytes([30, *bytes(7)]), "no answer within"),
        (HTTP, "not a Dask scheduler"),
    ],
)
def test_servers_that_are_no_scheduler_are_one_line(greeting, words, monkeypatch):
    monkeypatch.setattr(cluster, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as threads:
        port = server.getsockname()[1]
        accepted = threads.submit(server.accept)
        if greeting:
            threads.submit(lambda: accepted.result()[0].sendall(greeting))
        with pytest.raises(UserError, match=words):
            DaskExecutor(f"127.0.0.1:{port}", 1, (), print)


def executor_without_cluster(remote):
    """Return an executor whose only task has ended, and whose connection is lost or not."""
    executor = object.__new__(DaskExecutor)
    executor.client, executor._address = SimpleNamespace(status="running"), "here:8786"
    executor._parcels, executor._ended = {}, queue.SimpleQueue()
    [job, *_] = make_jobs(1)
    job = replace(job, dataset=replace(job.dataset, path="/nowhere/mine.csv"))
    task = cluster._Task(pow, (job, Context(NO_DATA)), NO_LIMITS, Future(), remote, [None])
    executor._tasks = {task.future: task}
    executor._ended.put(task)
    return executor, task.future


def test_results_that_arrived_before_the_connection_was_lost_are_kept():
    executor, future = executor_without_cluster(
        SimpleNamespace(status="finished", result=lambda: 8)
    )
    executor.client.status = "closed"
    assert executor.wait(1) == [future] and future.result() == 8
    with pytest.raises(UserError, match="no connection to the scheduler here:8786"):
        executor.wait(0.1)


def test_a_task_that_was_cancelled_elsewhere_is_an_error_after_the_results_before_it():
    done = SimpleNamespace(status="finished", result=lambda: 8)
    executor, future = executor_without_cluster(done)
    [(_, task)] = executor._tasks.items()
    cancelled = replace(task, future=Future(), remote=SimpleNamespace(status="cancelled"))
    executor._tasks[cancelled.future] = cancelled
    executor._ended.put(cancelled)
    assert executor.wait(1) == [future]
    with pytest.raises(UserError, match="no connection to the scheduler here:8786"):
        executor.wait(0.1)


def test_a_data_file_that_cannot_be_sent_costs_its_own_job():
    missing = SimpleNamespace(status="error", exception=lambda: MissingData("mine"))
    executor, future = executor_without_cluster(missing)
    assert executor.wait(1) == [future]
    with pytest.raises(WorkerDied, match=r"its data cannot be sent to a worker: .*mine\.csv"):
        future.result()


def test_a_limit_that_a_pair_reached_on_another_worker_is_one_of_the_job(monkeypatch):
    def beyond(*_):
        raise LimitReached(Status.MEMORY_LIMIT, {"stage": None, "seconds": 3.0, "bytes": 9e9})

    monkeypatch.setattr("mmbench.running.worker._run", beyond)
    record, _ = execute(make_jobs(1)[0], Context(NO_DATA, limits=Limits(None, 8e9)))
    assert record["status"] == Status.MEMORY_LIMIT and record["traceback"] == ""
    assert record["reached"]["bytes"] == 9e9 and "7.5 GiB reached after 3.0 s" in record["reason"]


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=None) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(main())
"""

CLIENT = """
import os, signal, sys
from mmbench.errors import UserError
from mmbench.running.cluster import DaskExecutor
executor = DaskExecutor(sys.argv[1], 1, (), print)
print(executor.slots)
executor.submit(pow, 2, 3)
os.kill(int(sys.argv[2]), signal.SIGKILL)
try:
    while True:
        executor.wait(1)
except UserError as error:
    print(error)
finally:
    executor.cancel()
    executor.close()
"""


def test_a_scheduler_that_is_killed_leaves_no_traceback():
    with subprocess.Popen(
        [sys.executable, "-c", SCHEDULER], stdout=subprocess.PIPE, text=True
    ) as s:
        address = s.stdout.readline().strip()
        command = [sys.executable, "-c", CLIENT, address, str(s.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    slots, line = done.stdout.splitlines()
    assert (slots, done.stderr) == ("0", "")
    assert line.startswith(f"no connection to the scheduler {address}; finished jobs are stored")


@pytest.mark.slow
def test_fifty_lost_workers_lose_no_record(store, other_store, monkeypatch):
    """Kills go on from another thread while a run computes real jobs."""
    from threading import Thread

    jobs = make_jobs(40)
    with dask.config.set({"distributed.scheduler.allowed-failures": 50}):
        executor = DaskExecutor("local", 2, (), print)
    try:
        killer = Thread(target=lose_workers, args=(executor, 50, 7))
        killer.start()
        summary = run(jobs, store, executor, data=NO_DATA)
        killer.join()
    finally:
        executor.close()
    assert (summary.done, summary.failed) == (len(jobs), [])
    run(jobs, other_store, SerialExecutor(), data=NO_DATA)
    assert results(store) == results(other_store)


def test_a_scheduler_that_dies_is_one_line():
    with cluster_in_threads(1) as executor:
        executor.submit(nap, 600)
        executor.cluster.close()
        with pytest.raises(UserError, match="; finished jobs are stored"):
            drain(executor, 1)
        cluster.stop_here(executor.batch)


SCRIPT = """\
import os
import mmbench
experiment = {"name": "a", "datasets": ["iris"], "protocol": {"test": {"kfold": 2}}}
experiment["machines"] = {"lda": {"kernel": "linear"}}
def main():
    before = dict(os.environ)
    (finished,) = mmbench.run(experiment, "results", scheduler="local", jobs=1)
    changed = {k for k in os.environ if os.environ[k] != before.get(k)}
    print(finished.done, [k for k in changed if "THREADS" in k or k.startswith("PYTHON")])
"""


GUARDED = pytest.param("if __name__ == '__main__': ", marks=pytest.mark.slow, id="guarded")


@pytest.mark.parametrize("guard", ["", GUARDED])
def test_a_script_restores_its_environment_or_is_told_what_it_lacks(guard: str, tmp_path):
    """Each worker imports the script: without a guard, it would start another run."""
    (tmp_path / "script.py").write_text(f"{SCRIPT}{guard}main()\n")
    names = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED"}
    env = {name: value for name, value in os.environ.items() if name not in names}
    env["PYTHONPATH"] = str(Path(mmbench.__file__).parents[1])
    command = [sys.executable, "script.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    if guard:
        assert done.stdout == "2 []\n", done.stderr
    else:
        *_, last = done.stderr.strip().splitlines()
        assert "no worker can be started" in last and "if __name__ == '__main__':" in last


def test_only_holders_of_the_certificates_can_connect(monkeypatch):
    said: list[str] = []
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert cluster._certificates(said.append) is None
    assert "pip install cryptography" in said[0]
    monkeypatch.undo()
    pytest.importorskip("cryptography", reason="needs the package cryptography")
    security = cluster._certificates(said.append)
    assert security.require_encryption and len(said) == 1
