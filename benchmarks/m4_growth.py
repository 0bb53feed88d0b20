"""How the M4's training time and memory grow with the number of rows.

    python benchmarks/m4_growth.py --mirror FOLDER [--kernel linear rbf] [--rows 500 1000 2000]

The rows are those of ringnorm (linear) and of MNIST's 3 and 8 in 80 principal components (rbf). One
training, kernel values and factor included, in CPU seconds of one thread. Memory is the peak of
arrays alive at once, in units of one n x n matrix of doubles; it is measured in a second run, up to
4000 rows. Prints the route of each training, the exponent of time between neighbours, and the
least-squares exponent over all.
"""

from __future__ import annotations

import argparse
import gzip
import time
import tracemalloc

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import M4, SVM
from mmbench.machines.base.problem import BinaryProblem

#: Up to this many rows memory is measured too.
MEMORY_ROWS = 4000

SETTINGS = {
    "linear": {"C_factor": 10.0, "ridge": 1e-6},
    "rbf": {"C_factor": 10.0, "ridge": 1e-3},
}


def mnist_pair(mirror, negative=3, positive=8, components=80):
    """Return MNIST's training rows of a pair in principal components, and their signs."""
    with gzip.open(f"{mirror}/mnist/train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read()[8:], dtype=np.uint8)
    rows = np.flatnonzero(np.isin(labels, (negative, positive)))
    with gzip.open(f"{mirror}/mnist/train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 784)[rows]
    X = images / 255.0
    X -= X.mean(axis=0)
    _, vectors = np.linalg.eigh(X.T @ X)
    return X @ vectors[:, -components:], np.where(labels[rows] == positive, 1.0, -1.0)


def ringnorm(mirror):
    """Return the rows of ringnorm, some of them twice with noise to make up 8000."""
    data = np.load(f"{mirror}/ida/ringnorm.npz")
    X, y = data["x"], data["t"].ravel().astype(np.float64)
    extra = np.random.RandomState(0).randint(len(X), size=8000 - len(X))
    noise = 0.1 * np.random.RandomState(1).normal(size=(len(extra), X.shape[1]))
    return np.vstack([X, X[extra] + noise]), np.append(y, y[extra])


def seconds_of(X, y, kernel):
    """Return CPU seconds of one training, and its certificate."""
    machine = M4(kernel=kernel.name, **SETTINGS[kernel.name])
    started = time.process_time()
    fit = machine.train(BinaryProblem(X, y, kernel)).fit
    return time.process_time() - started, fit


def peak_of(X, y, kernel):
    """Return the peak of a training's arrays in n x n doubles."""
    tracemalloc.start()
    M4(kernel=kernel.name, **SETTINGS[kernel.name]).train(BinaryProblem(X, y, kernel))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (8 * len(y) ** 2)


def warm_up():
    """Compile what is compiled, outside the measurement."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(40, 2)), np.repeat([1.0, -1.0], 20)
    for machine in (M4(kernel="rbf", ridge=1e-2), M4(), SVM()):
        machine.fit(X, y)


def report(name, X, y, sizes):
    """Print a line for each number of rows, and the exponent over all."""
    order = np.random.RandomState(0).permutation(len(y))
    kernel, times = Kernel(name, gamma=0.02), []
    for n in sizes:
        part = order[:n]
        seconds, fit = seconds_of(X[part], y[part], kernel)
        times.append(seconds)
        notes = [fit.route, f"gap {fit.gap:.0e}", f"{fit.n_support} active rows"]
        if n <= MEMORY_ROWS:
            notes.append(f"peak {peak_of(X[part], y[part], kernel):.2f} n x n")
        if len(times) > 1:
            notes.append(f"exponent {slope(sizes[len(times) - 2 : len(times)], times[-2:]):.2f}")
        print(f"{name:7} n {n:5}  {seconds:9.3f} s   {'   '.join(notes)}", flush=True)
    print(f"{name:7} exponent over all {slope(sizes, times):.2f}")


def slope(rows, times):
    """Return the least-squares slope of log time in log rows."""
    return float(np.polyfit(np.log(rows), np.log(times), 1)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--kernel", nargs="+", default=["linear", "rbf"])
    parser.add_argument("--rows", nargs="+", type=int, default=[500, 1000, 2000, 4000, 8000])
    options = parser.parse_args()
    read = {"linear": ringnorm, "rbf": mnist_pair}
    with threadpool_limits(1):
        warm_up()
        for name in options.kernel:
            report(name, *read[name](options.mirror), options.rows)


if __name__ == "__main__":
    main()
