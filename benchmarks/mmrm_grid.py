"""Statuses and duality gaps of the MMRM at every point of its automatic grid, as a CSV table.

    python benchmarks/mmrm_grid.py --out benchmarks/results/mmrm_grid.csv --mirror FOLDER
        [--splits 1] [--rows 700]

The data are the thirteen sets of Raetsch, Iris, Pima, and Gaussian classes with two or three
features. Each column is scaled to [0, 1] on the training rows. Training sets with more than `rows`
rows are left out. The grid has all values of gamma and C_factor of the grid `auto`. The CSV table
has one row per training set.
"""

import argparse
import csv
import time
import warnings
from itertools import combinations, product
from pathlib import Path

import numpy as np
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

from mmbench.config.grids import expand_auto
from mmbench.datasets.card_files import card_names
from mmbench.datasets.load import load_dataset
from mmbench.datasets.partitions import split_at
from mmbench.datasets.preprocess import make_preprocess
from mmbench.machines import MMRM

FIELDS = ("data", "split", "n", "d", "fits", "optimal", "trivial", "at_limit", "gap", "seconds")


def cloud(n_features, seed):
    """Return 120 rows of two overlapping Gaussian classes."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1], 60)
    return random.normal(size=(120, n_features)) + 1.5 * y[:, None] * (np.arange(n_features) < 1), y


def training_sets(mirror, n_splits):
    """Yield (name, split, rows, labels) of every binary problem."""
    for n_features, seed in product((2, 3), range(n_splits)):
        yield f"cloud{n_features}", seed, *cloud(n_features, seed)
    names = [name for name in card_names() if name.startswith("ida_")]
    for name in [*names, "pima"]:
        data = load_dataset(name, store="datasets", mirror=mirror, allow_network=False)
        rule = "predefined" if name in names else {"kfold": 10}
        for repeat in range(n_splits):
            train = split_at(rule, data, repeat=repeat).train
            yield name, repeat, data.X[train], data.y[train]
    X, y = load_iris(return_X_y=True)
    for pair in combinations(range(3), 2):
        rows = np.isin(y, pair)
        yield f"iris{pair[0]}{pair[1]}", 0, X[rows], y[rows]


def summary(X, y, grid):
    """Return the figures of the fits at all grid points."""
    X = make_preprocess((("minmax", None),)).fit_transform(X.astype(float))
    start = time.process_time()
    fits = [MMRM(gamma=gamma, C_factor=factor).fit(X, y).fits_[0] for gamma, factor in grid]
    statuses = [str(fit.status) for fit in fits]
    gaps = [fit.gap for fit in fits if str(fit.status) != "trivial"]
    return {
        "n": X.shape[0],
        "d": X.shape[1],
        "fits": len(fits),
        "optimal": statuses.count("optimal"),
        "trivial": statuses.count("trivial"),
        "at_limit": sum(bool(fit.extra.get("at_coefficient_limit")) for fit in fits),
        "gap": f"{max(gaps):.2g}",
        "seconds": f"{time.process_time() - start:.3g}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--rows", type=int, default=700, help="largest training set")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    axes = expand_auto(MMRM, {"gamma": "auto", "C": "auto"})
    grid = list(product(axes["gamma"], axes["C_factor"]))
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for name, split, X, y in training_sets(options.mirror, options.splits):
            if len(y) <= options.rows:
                table.writerow({"data": name, "split": split} | summary(X, y, grid))
                file.flush()


if __name__ == "__main__":
    main()
