"""Time of an empty job, and time until the first job, on local processes and on a Dask cluster.

    python benchmarks/cluster_overhead.py

The Dask cluster runs on this computer, with as many workers as there are local processes. The
output contains wall-clock times, which other programs increase, and the CPU seconds of the process
that submits the jobs.
"""

from __future__ import annotations

import time

from mmbench.running.cluster import DaskExecutor
from mmbench.running.local import LocalExecutor

SLOTS, TASKS = 2, 200


def one_after_the_other(executor: LocalExecutor | DaskExecutor, count: int) -> float:
    """Return the wall-clock seconds of `count` tasks, run one at a time."""
    start = time.perf_counter()
    for _ in range(count):
        executor.submit(pow, 2, 3)
        while not executor.wait(1):
            continue
    return time.perf_counter() - start


def main() -> None:
    """Print one line for local processes and one line for the cluster."""
    for name in ("local processes", "Dask cluster"):
        start = time.perf_counter()
        cluster = name == "Dask cluster"
        executor = DaskExecutor("local", SLOTS, (), print) if cluster else LocalExecutor(SLOTS)
        one_after_the_other(executor, 1)
        first = time.perf_counter() - start
        cpu = time.process_time()
        each = one_after_the_other(executor, TASKS) / TASKS
        cpu = (time.process_time() - cpu) / TASKS
        print(
            f"{name:16} first task after {first:.2f} s, then {1e3 * each:.1f} ms a task, of which "
            f"{1e3 * cpu:.2f} ms CPU here"
        )
        executor.close()


if __name__ == "__main__":
    main()
