"""Accuracy of the RMM with and without unlabelled rows, minus the accuracy of the SVM.

    python -m benchmarks.unlabelled    # prints the table of docs/machines/rmm.md

From at most 800 rows of a data set, 5 to 50 rows with labels are drawn, 20 times. All other rows
are the unlabelled rows of the RMM, and the test rows of all machines (transduction). The parameters
are fixed: a linear kernel, C = 10, and B_fraction = 0.25, as for B_2 in figure 2 of the paper.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
from sklearn.preprocessing import scale

from mmbench.datasets.load import load_dataset
from mmbench.machines import RMM, SVM

MOST_ROWS, DRAWS, LABELLED = 800, 20, (5, 10, 20, 50)
PROBLEMS = (
    ("usps", (3, 5)),
    ("usps", (3, 8)),
    ("usps", (4, 9)),
    ("ida_heart", ()),
    ("ida_german", ()),
    ("ida_image", ()),
    ("ida_splice", ()),
    ("ida_twonorm", ()),
)
FIXED = {"kernel": "linear", "C": 10.0}


def rows_of(name: str, classes: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels -1, 1 of a data set; pixels are not scaled."""
    mirror = os.environ.get("MMBENCH_MIRROR")
    data = load_dataset(name, store=Path("datasets"), mirror=mirror)
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y)
    X = X if classes else scale(X)
    own = np.isin(y, classes or np.unique(y))
    own = np.random.RandomState(0).permutation(np.flatnonzero(own))[:MOST_ROWS]
    return X[own], np.where(y[own] == np.unique(y[own])[0], -1, 1)


def differences(X: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    """Return the accuracy of the SVM and the differences of both RMMs, one row per draw."""
    found = []
    for draw in range(DRAWS):
        order = np.random.RandomState(draw).permutation(len(y))
        # the last labelled row is replaced if it is needed for the second class
        other = order[np.flatnonzero(y[order] != y[order[0]])[0]]
        known = order[:n] if len(set(y[order[:n]])) == 2 else np.append(order[: n - 1], other)
        rest = np.setdiff1d(order, known)
        rmm = RMM(B_fraction=0.25, **FIXED)
        accuracies = [
            SVM(**FIXED).fit(X[known], y[known]).score(X[rest], y[rest]),
            rmm.fit(X[known], y[known]).score(X[rest], y[rest]),
            rmm.fit(X[known], y[known], unlabelled=X[rest]).score(X[rest], y[rest]),
        ]
        found.append([accuracies[0], *(a - accuracies[0] for a in accuracies[1:])])
    return 100 * np.array(found)


def main() -> None:
    """Print one row per data set: differences with unlabelled rows, then without, with errors."""
    warnings.simplefilter("ignore")
    print("| data set |", " | ".join(f"{n} labelled rows" for n in LABELLED), "|")
    print("| --- |", " | ".join(["---:"] * len(LABELLED)), "|")
    for name, classes in PROBLEMS:
        X, y = rows_of(name, classes)
        cells = [f"{name}, {classes[0]} and {classes[1]}" if classes else name]
        for n in LABELLED:
            found = differences(X, y, n)
            errors = found.std(axis=0) / np.sqrt(DRAWS)
            plain, more = (f"{found[:, k].mean():+.1f} ± {errors[k]:.1f}" for k in (1, 2))
            cells.append(f"{more} ({plain})")
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
