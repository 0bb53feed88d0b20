"""LS-SVM selection on an IDA set, 11 widths x 8 C x 5 folds, against solving each linear system.

    python benchmarks/lssvm_selection.py --mirror FOLDER [--data image german]

Two plain routes solve one dense linear system per width, C and fold. "search" is GridSearchCV over
the estimator with ``solver="reference"``: what a user would write. "bare" is the least that a
script could do: kernel values, one call of LAPACK, and a prediction, without checks, certificates
or a scorer. Prints CPU seconds (one thread), ratios, and the largest difference of a mean score.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import make_machine
from mmbench.machines.lssvm import COSTS, GAMMAS
from mmbench.selection import select
from mmbench.selection.folds import inner_splits

GRID = {"C": COSTS, "gamma": GAMMAS}
MACHINES = {"gram": "lssvm", "empirical": "emamc"}


def read(mirror, name, split=0):
    """Return the training part of an official split, scaled to [0, 1]."""
    data = np.load(f"{mirror}/ida/{name}.npz")
    X, y = data["x"][data["train"][split]].astype(np.float64), data["t"][data["train"][split]]
    span = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(span > 0, span, 1), y.astype(np.float64)


def ours(X, y, reading):
    """Return CPU seconds, and scores by (C, gamma)."""
    machine = make_machine(MACHINES[reading], gamma_scaling="per_feature")
    start = time.process_time()
    found = select(machine, X, y, GRID, folds=5, seed=0)
    seconds = time.process_time() - start
    return seconds, {(row["C"], row["gamma"]): row["score"] for row in found.scores}


def search(X, y, reading):
    """Return the same of a plain grid search over the reference route, on the same folds."""
    folds = inner_splits((y > 0).astype(int), 5, None, 1, 0)
    machine = make_machine(MACHINES[reading], gamma_scaling="per_feature", solver="reference")
    grid = {name: list(values) for name, values in GRID.items()}
    start = time.process_time()
    found = GridSearchCV(machine, grid, cv=folds, refit=False).fit(X, y).cv_results_
    seconds = time.process_time() - start
    scores = zip(found["params"], found["mean_test_score"], strict=True)
    return seconds, {(p["C"], p["gamma"]): score for p, score in scores}


def bare(X, y, reading):
    """Return the same of nothing but the linear systems."""
    folds = inner_splits((y > 0).astype(int), 5, None, 1, 0)
    solve = {"gram": solve_gram, "empirical": solve_empirical}[reading]
    start = time.process_time()
    scores = {
        (C, gamma): np.mean(
            [np.mean((solve(X[a], y[a], X[h], C, gamma) >= 0) == (y[h] > 0)) for a, h in folds]
        )
        for gamma in GAMMAS
        for C in COSTS
    }
    return time.process_time() - start, scores


def solve_gram(X, y, Z, C, gamma):
    """Return decisions at Z of the dual system ``[[0, 1'], [1, K + I/C]] [b; a] = [0; y]``."""
    kernel = Kernel("rbf", gamma / X.shape[1])
    n = len(y)
    system = np.ones((n + 1, n + 1))
    system[0, 0] = 0
    system[1:, 1:] = kernel(X, X)
    system.flat[n + 2 :: n + 2] += 1 / C
    b, *a = np.linalg.solve(system, np.append(0, y))
    return kernel(Z, X) @ a + b


def solve_empirical(X, y, Z, C, gamma):
    """Return decisions at Z of the printed system (36), (37)."""
    kernel = Kernel("rbf", gamma / X.shape[1])
    K = kernel(X, X)
    n = len(y)
    system = np.empty((n + 1, n + 1))
    system[:n, :n] = K @ K
    system.flat[: n * (n + 1) : n + 2] += 1 / C
    system[n, :n] = system[:n, n] = K.sum(axis=0)
    system[n, n] = n
    *w, b = np.linalg.solve(system, np.append(K @ y, y.sum()))
    return kernel(Z, X) @ w + b


def report(name, reading, X, y):
    """Run the three routes and print a line for each."""
    ours_seconds, scores = ours(X, y, reading)
    print(f"{name:8} {MACHINES[reading]:6} mmbench {ours_seconds:7.2f} s", flush=True)
    for route in (search, bare):
        seconds, others = route(X, y, reading)
        worst = max(abs(scores[p] - others[p]) for p in others)
        print(
            f"{'':16}{route.__name__:7} {seconds:7.2f} s   ratio {seconds / ours_seconds:5.1f}   "
            f"largest difference of a score {worst:.1e}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--data", nargs="+", default=["image", "german"])
    parser.add_argument("--reading", nargs="+", default=list(MACHINES), choices=list(MACHINES))
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.data:
            X, y = read(options.mirror, name)
            for reading in options.reading:
                report(name, reading, X, y)


if __name__ == "__main__":
    main()
