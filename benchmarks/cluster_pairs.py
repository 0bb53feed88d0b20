"""The pairs of one large job on a Dask cluster of one and of two workers on this computer.

    python benchmarks/cluster_pairs.py [--rows 4000]

All 45 pairs of the digits of USPS by the MMRM with an RBF kernel, one job without a search. Printed
is how much of its workers' time the job trains in: the seconds of all pairs over the seconds that
the job's training takes times the number of workers, which other programs on the computer slow down
alike. The speed-up beside it holds on a computer with nothing else to do. One worker alone trains
the pairs one after the other, as a local process does; objectives are equal.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from mmbench.datasets import dataset_hash
from mmbench.jobs.job import DatasetRef, Job, SplitRef
from mmbench.jobs.store import RecordStore
from mmbench.machines import MMRM
from mmbench.running.cluster import DaskExecutor
from mmbench.running.executor import Executor
from mmbench.running.pairs import train_items
from mmbench.running.runner import run


def train(executor: Executor, rows: int, store: Path, mirror: str | None) -> dict[str, Any]:
    """Return the record of the job."""
    split = SplitRef("official", max_train=rows)
    given = dataset_hash("usps", store=store, mirror=mirror)
    params = (("C_factor", 10.0), ("gamma", 0.01))
    job = Job("pairs", DatasetRef("usps"), given, split, "mmrm", "rbf", params=params)
    with tempfile.TemporaryDirectory() as folder:
        records = RecordStore.create(Path(folder) / "pairs", "name: pairs\n")
        try:
            warm_up(executor)
            run([job], records, executor, data=store, mirror=mirror)
        finally:
            executor.close()
        return dict(records.read(job.key))


def warm_up(executor: Executor) -> None:
    """Let every worker start its process and compile, as earlier jobs of a run have done."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    left = executor.slots
    for _ in range(left):
        executor.submit(train_items, [(MMRM(gamma=0.5).fit, (X, y), {})])
    while left:
        left -= len(executor.wait(1))


def main() -> None:
    """Print a line for each place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000, help="training rows")
    parser.add_argument("--mirror", default=os.environ.get("MMBENCH_MIRROR"))
    asked = parser.parse_args()
    seconds, found = [], []
    with tempfile.TemporaryDirectory() as store:
        for workers in (1, 2):
            executor = DaskExecutor("local", workers, (), print)
            record = train(executor, asked.rows, Path(store), asked.mirror)
            pairs, wall = record["per_pair"], record["wall_seconds"]["training"]
            busy = sum(pair["seconds"] for pair in pairs) / (workers * wall)
            cpu = record["cpu_seconds"]["training"]
            print(f"{workers} worker(s): {wall:.1f} s, {cpu:.1f} CPU s, efficiency {busy:.0%}")
            seconds.append(wall)
            found.append([pair["objective"] for pair in pairs])
    equal = "equal" if found[0] == found[1] else "differ"
    print(f"speed-up {seconds[0] / seconds[1]:.2f}; objectives of {len(found[0])} pairs {equal}")


if __name__ == "__main__":
    main()
