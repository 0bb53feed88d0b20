"""Seconds that a place where jobs run takes for a job that does nothing, and to its first job.

    python benchmarks/cluster_overhead.py

Local processes against a Dask cluster of as many workers on this computer.
"""

from __future__ import annotations

import time

from mmbench.running.cluster import DaskExecutor
from mmbench.running.executor import Executor
from mmbench.running.local import LocalExecutor

SLOTS, TASKS = 2, 200


def one_after_the_other(executor: Executor, count: int) -> float:
    """Return the seconds of so many tasks, one at a time."""
    start = time.perf_counter()
    for _ in range(count):
        executor.submit(pow, 2, 3)
        while not executor.wait(1):
            continue
    return time.perf_counter() - start


def main() -> None:
    """Print a line for each place."""
    for name in ("local processes", "Dask cluster"):
        start = time.perf_counter()
        cluster = name == "Dask cluster"
        executor = DaskExecutor("local", SLOTS, (), print) if cluster else LocalExecutor(SLOTS)
        one_after_the_other(executor, 1)
        first = time.perf_counter() - start
        each = one_after_the_other(executor, TASKS) / TASKS
        print(f"{name:16} first task after {first:.2f} s, then {1e3 * each:.1f} ms a task")
        executor.close()


if __name__ == "__main__":
    main()
