"""Selection on USPS, 5 folds x 6 C x 5 gamma, against GridSearchCV(SVC) with as many processes.

    python benchmarks/selection_usps.py --mirror FOLDER [--jobs 2] [--rows 7291]

Prints both times, their ratio, and the largest difference of a mean validation score.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mmbench.machines import machine_class
from mmbench.selection import select
from mmbench.selection.folds import inner_splits

GRID = {"C": [0.1, 1, 4, 10, 100, 1000], "gamma": [2.0**k for k in (-9, -8, -7, -6, -5)]}


def ours(X, y, jobs):
    """Return (seconds, scores in the order of the grid points)."""
    start = time.perf_counter()
    found = select(machine_class("svm")(), X, y, GRID, folds=5, seed=0, n_jobs=jobs)
    return time.perf_counter() - start, {
        (row["C"], row["gamma"]): row["score"] for row in found.scores
    }


def theirs(X, y, jobs):
    """Return the same of scikit-learn, on the same folds."""
    splits = inner_splits(y, 5, None, 1, 0)
    start = time.perf_counter()
    search = GridSearchCV(SVC(cache_size=500), GRID, cv=splits, n_jobs=jobs, refit=False).fit(X, y)
    seconds = time.perf_counter() - start
    points = search.cv_results_["params"]
    means = search.cv_results_["mean_test_score"]
    return seconds, {(p["C"], p["gamma"]): m for p, m in zip(points, means, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rows", type=int, default=7291, help="first rows only, for a quick look")
    options = parser.parse_args()
    data = np.load(f"{options.mirror}/usps/usps.npz")
    X = data["X_train"][: options.rows].astype(np.float64)
    y = data["y_train"][: options.rows]
    select(machine_class("svm")(), X[:200], y[:200] > 4, {"C": [1.0]}, folds=2)  # compile
    with threadpool_limits(1):  # one BLAS thread a worker, as in scikit-learn's processes
        our_seconds, our_scores = ours(X, y, options.jobs)
    print(f"mmbench        {our_seconds:8.1f} s", flush=True)
    their_seconds, their_scores = theirs(X, y, options.jobs)
    print(f"scikit-learn   {their_seconds:8.1f} s")
    print(f"ratio          {their_seconds / our_seconds:8.1f}")
    worst = max(abs(our_scores[p] - their_scores[p]) for p in their_scores)
    print(f"largest difference of a mean score  {worst:.1e}")


if __name__ == "__main__":
    main()
