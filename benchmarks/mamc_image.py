"""MAMC against the SVM on Image: CPU seconds of selection and training on one official split.

    python benchmarks/mamc_image.py --mirror FOLDER [--data image] [--split 0]

All use the grids of the MAMC paper and five folds, on one thread. "libsvm" is the SVM by its
reference route. Prints seconds, their ratio to the MAMC's, and test accuracy.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.machines import make_machine
from mmbench.machines.lssvm import COSTS
from mmbench.machines.lssvm import GAMMAS as SHORT
from mmbench.machines.mamc import GAMMAS, SLOPES
from mmbench.selection import select

GRIDS = {
    "mamc": {"gamma": GAMMAS},
    "mamc_b": {"gamma": GAMMAS},
    "mamc_bs": {"gamma": GAMMAS, "Cm": SLOPES},
    "mamc_bsg": {"gamma": GAMMAS, "Cm": SLOPES},
    "emamc": {"gamma": SHORT, "C": COSTS},
    "svm": {"gamma": SHORT, "C": COSTS},
    "libsvm": {"gamma": SHORT, "C": COSTS},
}


def read(mirror, name, split):
    """Return the training and test part of an official split, scaled to [0, 1]."""
    data = np.load(f"{mirror}/ida/{name}.npz")
    train, test = data["train"][split], data["test"][split]
    X, y = data["x"].astype(np.float64), data["t"]
    low, span = X[train].min(axis=0), np.ptp(X[train], axis=0)
    X = (X - low) / np.where(span > 0, span, 1)
    return X[train], y[train], X[test], y[test]


def run(name, repeats, X, y, X_test, y_test):
    """Return CPU seconds of selection and training (the best of several), and test accuracy."""
    machine = make_machine("svm" if name == "libsvm" else name, gamma_scaling="per_feature")
    machine.set_params(solver="reference" if name == "libsvm" else "auto")
    select(machine, X[:60], y[:60], {"tol": [machine.tol]}, folds=2)  # compile and import
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = select(machine, X, y, GRIDS[name], folds=5, seed=0, tol=machine.search_space.tol)
        machine.set_params(**found.params).fit(X, y)
        seconds.append(time.process_time() - start)
    return min(seconds), 100 * machine.score(X_test, y_test)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--data", default="image")
    parser.add_argument("--split", type=int, default=0)
    parser.add_argument("--machines", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    parts = read(options.mirror, options.data, options.split)
    unit = None
    with threadpool_limits(1):
        for name in options.machines:
            seconds, accuracy = run(name, options.repeats, *parts)
            unit = unit or seconds
            print(
                f"{name:9} {seconds:8.2f} s   {seconds / unit:7.1f}   {accuracy:6.2f} %", flush=True
            )


if __name__ == "__main__":
    main()
