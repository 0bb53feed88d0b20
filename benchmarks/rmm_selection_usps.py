"""Selection of the RMM paper on USPS, a choice a pair, against refitting SVC for the SVM's part.

    python benchmarks/rmm_selection_usps.py --mirror FOLDER [--degree 3] [--pairs 45]

Five random 80:20 splits of every pair; 8 C x 6 B here, 8 C in scikit-learn's SVC on the same
splits. Prints CPU seconds of one thread, their ratio for the SVM alone and for the whole search of
the RMM, and the largest difference of a mean validation accuracy of the SVM.

The SVM's search is 11 to 12 times faster than SVC: a pair's splits read one Gram matrix in float32,
of which nothing is copied, and trainings start from those at the C before. The whole search of the
RMM, 48 machines for 8, takes about 1.2 times as long as SVC: it still copies a part for each split.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mmbench.machines import RMM, SVM
from mmbench.machines.base.voting import class_pairs, pair_rows
from mmbench.selection import select
from mmbench.selection.folds import inner_splits

COSTS = [0.1, 0.5, 1, 5, 10, 50, 100, 1000]
FRACTIONS = [1.0, 0.5, 0.25, 0.15, 0.1, 0.07]
SPLITS = {"split": 0.2, "repeats": 5}


def cpu_seconds(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def ours(machine, X, y, grid):
    """Return mean validation accuracies by C, the best over other axes."""
    found = select(
        machine, X, y, grid, folds=None, **SPLITS, scope="pair", tol=machine.search_space.tol
    )
    return [max(row["score"] for row in found.scores if row["C"] == C) for C in grid["C"]]


def theirs(X, y, degree):
    """Refit scikit-learn's SVC for every C and split; its C is ours over 2^degree."""
    splits = inner_splits(y, None, 0.2, 5, 0)
    machine = SVC(kernel="poly", degree=degree, gamma=1.0, coef0=1.0, cache_size=500)
    return [
        np.mean(
            [
                machine.set_params(C=C / 2**degree).fit(X[a], y[a]).score(X[b], y[b])
                for a, b in splits
            ]
        )
        for C in COSTS
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--degree", type=int, default=3)
    parser.add_argument("--pairs", type=int, default=45)
    options = parser.parse_args()
    data = np.load(f"{options.mirror}/usps/usps.npz")
    X, labels = data["X_train"].astype(np.float64), data["y_train"]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    kernel = {"kernel": "poly", "degree": options.degree, "kernel_scaling": "trace"}
    total, worst = np.zeros(3), 0.0
    with threadpool_limits(1):
        small = np.flatnonzero(labels < 2)[:100]
        grid = {"C": COSTS, "B_fraction": FRACTIONS}
        ours(RMM(**kernel), X[small], labels[small], grid)  # compile
        for pair in class_pairs(10)[: options.pairs]:
            rows, signs = pair_rows(labels, *pair)
            own, y = X[rows], (signs > 0).astype(int)
            svm, scores = cpu_seconds(ours, SVM(**kernel), own, y, {"C": COSTS})
            rmm, _ = cpu_seconds(ours, RMM(**kernel), own, y, grid)
            svc, expected = cpu_seconds(theirs, own, y, options.degree)
            total += svm, rmm, svc
            worst = max(worst, float(np.abs(np.subtract(scores, expected)).max()))
    svm, rmm, svc = total
    print(f"SVM {svm:.1f} s, RMM {rmm:.1f} s, SVC refitted for the SVM alone {svc:.1f} s")
    print(f"SVC / SVM {svc / svm:.1f}, SVC / whole RMM search {svc / rmm:.2f}")
    print(f"largest difference of a mean accuracy {worst:.1e}")


if __name__ == "__main__":
    main()
