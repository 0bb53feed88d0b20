"""CPU time of the runner outside solvers and kernels, as a CSV table.

    python benchmarks/runner.py --out benchmarks/results/runner.csv --mirror FOLDER

A whole run is ``mmbench run configs/usps_rbf.yaml --jobs 1`` and ``mmbench table``, with all
processes that they start. The recorded CPU times of preparation, selection, training and test are
its work; loading compiled code is recorded once per worker. All other CPU time is the time of
starting Python three times, imports, planning, records and tables. Submitting a job is the CPU time
of the process that submits an empty job, on local processes and on a Dask cluster on this computer.
The share is relative to the whole run. The last parts are per record of an experiment with 100,000
records: printing its table, and reading its records before a run continues.
"""

import argparse
import csv
import gc
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import mmbench
from mmbench.jobs.job import Job
from mmbench.jobs.planned import Plan
from mmbench.jobs.seal import sealed
from mmbench.jobs.store import RecordStore
from mmbench.running.cluster import DaskExecutor
from mmbench.running.local import LocalExecutor

CONFIG = Path(__file__).resolve().parents[1] / "configs" / "usps_rbf.yaml"
WORK = ("preparation", "selection", "training", "test")
FIELDS = ("part", "seconds", "share")
JOBS = 200
#: Number of records in the folder of many records, and its machines.
RECORDS, MACHINES = 100_000, ("svm", "rmm", "lssvm", "klda", "sigma_svm")
SMALL = {
    "name": "small",
    "datasets": ["iris"],
    "protocol": {"test": {"kfold": 5}},
    "machines": {"svm": {"params": {"C": 1, "gamma": 1}}},
}


def seconds(*arguments):
    """Run Python and return the CPU seconds of its processes; bytecode is stored, as by default."""
    keep = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=keep)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def whole_run(mirror):
    """Yield the parts of a whole run and their CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        run = ["-m", "mmbench", "run", str(CONFIG), "--mirror", mirror]
        seconds(*run, "--dry-run")  # from now on the files are in memory
        total = seconds(*run, "--jobs", "1", "--results", folder)
        total += seconds("-m", "mmbench", "table", f"{folder}/{CONFIG.stem}")
        records = [json.loads(path.read_text()) for path in Path(folder).glob("*/records/*.json")]
    times = [record["cpu_seconds"] for record in records]
    work = sum(own[stage] for own in times for stage in WORK)
    warm_up = sum(own["warm_up"] for own in times)
    yield "whole run", total
    yield "work", work
    yield "compiled code", warm_up
    yield "other", total - work - warm_up


def submission(executor):
    """Return the CPU seconds of this process per job that it submits and waits for."""
    start = 0.0
    for k in range(JOBS + 1):
        if k == 1:  # the first job starts the processes
            start = time.process_time()
        executor.submit(pow, 2, 3)
        while not executor.wait(1):
            continue
    used = time.process_time() - start
    executor.close()
    return used / JOBS


def many_records(n):
    """Yield the CPU seconds per record of a table, and of the scan before a run continues."""
    with tempfile.TemporaryDirectory() as folder:
        [small] = mmbench.run(SMALL, folder, jobs=1, say=lambda line: None)
        store = RecordStore(small.folder)
        first = store.read(store.keys()[0])
        arrays, job = store.path_of(first["key"], ".npz").read_bytes(), Job.from_dict(first["job"])
        splits = [replace(job.split, repeat=k) for k in range(n // len(MACHINES))]
        jobs = [replace(job, machine=m, split=split) for split in splits for m in MACHINES]
        many = Path(folder) / "many"
        store = RecordStore.create(many, "name: many\n", Plan("many").filled(jobs))
        for job in jobs:
            record = {**first, "key": job.key, "job": job.to_dict()}
            store.path_of(job.key).write_bytes(sealed(record, indent=1))
            store.path_of(job.key, ".npz").write_bytes(arrays)
        nothing = seconds("-m", "mmbench", "table", str(small.folder))
        yield "table per record", (seconds("-m", "mmbench", "table", str(many)) - nothing) / n
        gc.set_threshold(100_000)  # as in the command line
        start = time.process_time()
        store.recover(store.keys(), print)
        yield "scan per record", (time.process_time() - start) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mirror", required=True)
    options = parser.parse_args()
    rows = list(whole_run(options.mirror))
    total = rows[0][1]
    rows = [(part, value, f"{value / total:.3g}") for part, value in rows]
    rows.append(("local submission", submission(LocalExecutor(2)), ""))
    rows.append(("Dask submission", submission(DaskExecutor("local", 2, (), print)), ""))
    rows += [(part, value, "") for part, value in many_records(RECORDS)]
    with options.out.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(FIELDS)
        table.writerows((part, f"{value:.3g}", share) for part, value, share in rows)


if __name__ == "__main__":
    main()
