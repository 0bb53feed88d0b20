"""MMRM on the 45 pairs of MNIST, PCA to 80 dimensions, every pair with its certificate.

    python benchmarks/mmrm_mnist.py --mirror FOLDER [--jobs 2] [--pairs 3/8 4/9] [--float32]

Pixels are divided by 255 and projected on the principal components of the 60000 training images.
Prints a line a pair as it ends (wall and CPU seconds of its thread, kernel matrix included in
neither), then the wall time of all, how many are certified, and the largest memory of the process.
"""

from __future__ import annotations

import argparse
import resource
import time
from itertools import combinations

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from mmbench.datasets import load_dataset, make_preprocess
from mmbench.kernels import Kernel
from mmbench.machines import machine_class
from mmbench.machines.base.problem import BinaryProblem


def images(mirror):
    data = load_dataset("mnist", store="datasets", mirror=mirror, allow_network=False)
    train, _ = data.split
    steps = make_preprocess((("divide", 255), ("pca", 80)))
    return steps.fit_transform(data.X[train]), data.y[train].astype(int)


def trained(machine, X, y, pair, kernel, dtype):
    """Return (pair, CPU seconds of this thread, certificate)."""
    rows = np.flatnonzero(np.isin(y, pair))
    signs = np.where(y[rows] == pair[1], 1.0, -1.0)
    problem = BinaryProblem(X[rows], signs, kernel, kernel(X[rows], X[rows], dtype))
    start = time.thread_time()
    fit = machine.train(problem).fit
    return pair, time.thread_time() - start, fit


def show(pair, seconds, fit):
    print(
        f"{pair[0]}/{pair[1]}  {fit.status:10s} objective {fit.objective:.9f}  gap {fit.gap:.0e}  "
        f"violation {fit.max_violation:.0e}  support {fit.n_support:4d}  {fit.route:10s}  "
        f"rho {fit.extra['margin_ratio']:.3f}  wall {fit.seconds:6.1f} s  CPU {seconds:6.1f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--pairs", nargs="*", help="as 3/8; default all 45")
    parser.add_argument("--gamma", type=float, default=0.02)
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--float32", action="store_true", help="store kernel matrices in float32")
    options = parser.parse_args()
    pairs = list(combinations(range(10), 2))
    if options.pairs:
        pairs = [tuple(sorted(int(digit) for digit in pair.split("/"))) for pair in options.pairs]
    X, y = images(options.mirror)
    kernel = Kernel("rbf", gamma=options.gamma)
    machine = machine_class("mmrm")(C=options.C)
    dtype = np.float32 if options.float32 else np.float64
    start, fits = time.perf_counter(), []
    with threadpool_limits(1):
        results = Parallel(options.jobs, prefer="threads", return_as="generator_unordered")(
            delayed(trained)(machine, X, y, pair, kernel, dtype) for pair in pairs
        )
        for pair, seconds, fit in results:
            show(pair, seconds, fit)
            fits.append(fit)
    certified = sum(fit.status == "optimal" for fit in fits)
    print(f"{len(fits)} pairs, {certified} certified, {(time.perf_counter() - start) / 60:.1f} min")
    print(f"largest memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
