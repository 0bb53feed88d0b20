"""A grid of M4 and MPM with a kernel as a search takes it, against trainings one by one.

    python benchmarks/m4_search.py --mirror FOLDER [--rows 200 720 2000 4000]

The rows are those of twonorm, and of MNIST's 3 and 8 in 80 principal components, at one kernel
width; the points are the ridges 1e-4 and 1e-2, for the M4 each with eight C. CPU seconds of one
thread: of the search, of trainings at each point, and of trainings in diagonal coordinates, which
all points of a ridge share. Kernel values are included once each. The last number is the largest
relative excess of an objective of the search over the bound of the single training.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from m4_growth import mnist_pair, warm_up
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import M4, MPM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.base import train_in_coordinates

RIDGES = (1e-4, 1e-2)
FACTORS = (1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
GRIDS = {
    M4: [{"ridge": ridge, "C_factor": factor} for ridge in RIDGES for factor in FACTORS],
    MPM: [{"ridge": ridge} for ridge in RIDGES],
}

#: Up to this many rows coordinates are timed.
COORDINATE_ROWS = 4000


def twonorm(mirror):
    """Return the rows of twonorm in [0, 1], and their signs."""
    data = np.load(f"{mirror}/ida/twonorm.npz")
    X = data["x"] - data["x"].min(axis=0)
    return X / X.max(axis=0), data["t"].ravel().astype(np.float64)


def timed(function):
    """Return CPU seconds of a call and its result."""
    started = time.process_time()
    result = function()
    return time.process_time() - started, result


def compare(name, X, y, kernel):
    """Print a line for each machine."""
    for cls, grid in GRIDS.items():
        machines = [cls(kernel=kernel.name, **point) for point in grid]
        tol = M4().tol if cls is M4 else cls.search_space.tol
        search = cls(kernel=kernel.name, tol=tol)
        own, found = timed(lambda s=search, g=grid: s.train_path(BinaryProblem(X, y, kernel), g))

        def one_by_one(machines=machines):
            data = BinaryProblem(X, y, kernel)
            return [machine.train(data) for machine in machines]

        apart, exact = timed(one_by_one)
        above = max(
            model.fit.objective / model_exact.fit.bound - 1.0
            for model, model_exact in zip(found, exact, strict=True)
        )
        notes = f"one by one {apart / own:5.1f} times"
        if len(y) <= COORDINATE_ROWS:
            data = BinaryProblem(X, y, kernel)
            shared, _ = timed(lambda m=machines, d=data: train_in_coordinates(m, d))
            notes += f"   in coordinates {shared / own:5.1f} times"
        print(
            f"{name:8} {cls.__name__:4} n {len(y):5}  search {own:8.3f} s   {notes}   "
            f"above the bound {above:.0e}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--rows", nargs="+", type=int, default=[200, 720, 2000, 4000])
    options = parser.parse_args()
    with threadpool_limits(1):
        warm_up()
        for name, read, gamma in (("twonorm", twonorm, 0.5), ("3 and 8", mnist_pair, 0.02)):
            X, y = read(options.mirror)
            order = np.random.RandomState(0).permutation(len(y))
            for n in options.rows:
                compare(name, X[order[:n]], y[order[:n]], Kernel("rbf", gamma=gamma))


if __name__ == "__main__":
    main()
