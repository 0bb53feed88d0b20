"""Training the pairs of one large job in one process, and spread over a local Dask cluster.

    python benchmarks/cluster_pairs.py [--rows 6000]

The MMRM with an RBF kernel is trained on all 45 pairs of the digits of MNIST, reduced to 80
principal components, with the first training rows. First, this process alone trains one pair at a
time. Then this process and one worker of the cluster train two pairs at a time. Wall-clock times
depend on other programs, so CPU seconds of one thread are compared. The critical path is the larger
of the CPU seconds of this process and of the worker: the time of the job if no other program runs.
The speed-up is the time in this process alone, divided by the critical path. The cost of the
cluster is the sum of the CPU seconds of both, minus the CPU seconds in this process alone. The
wall-clock speed-up is printed too.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets import DatasetRef, load_dataset, make_preprocess
from mmbench.jobs.limits import NO_LIMITS
from mmbench.machines import MMRM
from mmbench.running.cluster import DaskExecutor, Spread, train_items


def rows_of_mnist(n_rows: int, mirror: str | None) -> tuple[NDArray, NDArray]:
    """Return the first training rows."""
    with tempfile.TemporaryDirectory() as store:
        mnist = load_dataset(DatasetRef("mnist"), store=Path(store), mirror=mirror)
    steps = make_preprocess((("divide", 255), ("pca", 80)))
    return steps.fit_transform(mnist.X[:n_rows]), mnist.y[:n_rows]


def warm_up(executor: DaskExecutor) -> None:
    """Start the process of every worker and compile, as earlier jobs of a run would do."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    MMRM(gamma=0.5).fit(X, y)
    left = executor.slots
    for _ in range(left):
        executor.submit(train_items, [(MMRM(gamma=0.5).fit, (X, y), {})])
    while left:
        left -= len(executor.wait(1))


def main() -> None:
    """Print the CPU seconds of both trainings, the speed-up and the cost of the cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6000, help="training rows")
    parser.add_argument("--mirror", default=os.environ.get("MMBENCH_MIRROR"))
    asked = parser.parse_args()
    X, y = rows_of_mnist(asked.rows, asked.mirror)
    machine = MMRM(C_factor=10.0, gamma=0.02)
    executor = DaskExecutor("local", 2, (), print)
    try:
        warm_up(executor)
        start, clock = time.process_time(), time.perf_counter()
        alone = [fit.objective for fit in machine.fit(X, y).fits_]
        one, by_clock = time.process_time() - start, time.perf_counter() - clock
        spread = Spread(executor.scheduler, np.unique(y, return_counts=True)[1], NO_LIMITS)
        start, clock = time.process_time(), time.perf_counter()
        with spread:
            together = [fit.objective for fit in machine.fit(X, y).fits_]
        by_clock /= time.perf_counter() - clock
        here, there = time.process_time() - start, sum(spread.backend.cpu_seconds)
    finally:
        executor.close()
    longest, both = max(here, there), here + there
    print(f"alone {one:.1f} CPU s; spread {here:.1f} here, {there:.1f} there")
    print(f"speed-up of the critical path {one / longest:.2f}, efficiency {one / longest / 2:.0%}")
    print(f"speed-up by the clock {by_clock:.2f}, efficiency {by_clock / 2:.0%}")
    print(f"the cluster adds {both / one - 1:.0%}; objectives equal: {alone == together}")


if __name__ == "__main__":
    main()
