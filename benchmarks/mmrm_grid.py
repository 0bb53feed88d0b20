"""MMRM at every point of its automatic grid: statuses and duality gaps of the fits.

    python benchmarks/mmrm_grid.py --mirror FOLDER [--splits 3] [--only ida_heart iris] [--log FILE]

The data are the thirteen sets of Raetsch, Iris, Pima, and Gaussian classes with two or three
features. Each column is scaled to [0, 1] on the training rows. The grid has all values of gamma and
C_factor of the grid `auto`. Fits that are in the log are not run again.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from mmbench.config.grids import expand_auto
from mmbench.datasets import card_names, load_dataset, make_preprocess, split_at
from mmbench.machines import MMRM


def cloud(n_features, seed):
    """Return 120 rows of two overlapping Gaussian classes."""
    random = np.random.default_rng(seed)
    y = np.repeat([0, 1], 60)
    return random.normal(size=(120, n_features)) + 1.5 * y[:, None] * (np.arange(n_features) < 1), y


def training_sets(mirror, n_splits):
    """Yield (name, rows, labels) of every binary problem."""
    for n_features, seed in product((2, 3), range(n_splits)):
        yield f"cloud{n_features}/{seed}", *cloud(n_features, seed)
    names = [name for name in card_names() if name.startswith("ida_")]
    for name in [*names, "pima"]:
        data = load_dataset(name, store="datasets", mirror=mirror, allow_network=False)
        rule = "predefined" if name in names else {"kfold": 10}
        for repeat in range(n_splits):
            train = split_at(rule, data, repeat=repeat).train
            yield f"{name}/{repeat}", data.X[train], data.y[train]
    X, y = iris()
    for pair in combinations(range(3), 2):
        rows = np.isin(y, pair)
        yield f"iris/{pair[0]}{pair[1]}", X[rows], y[rows]


def iris():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def fits(name, X, y, grid, done):
    """Yield the record of every grid point that is not in `done`."""
    X = make_preprocess((("minmax", None),)).fit_transform(X.astype(float))
    for gamma, factor in grid:
        if (name, gamma, factor) in done:
            continue
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit = MMRM(gamma=gamma, C_factor=factor).fit(X, y).fits_[0]
        yield {
            "name": name,
            "gamma": gamma,
            "C_factor": factor,
            "status": str(fit.status),
            "gap": float(fit.gap),
            "violation": float(fit.max_violation),
            "at_limit": bool(fit.extra.get("at_coefficient_limit", False)),
            "warned": any(issubclass(one.category, ConvergenceWarning) for one in caught),
            "seconds": time.process_time() - start,
        }


def summary(records):
    counts = Counter(record["status"] for record in records)
    solved = [record for record in records if record["status"] != "trivial"]
    short = [record for record in solved if record["status"] != "optimal"]
    yield f"{len(records)} fits, {sum(r['seconds'] for r in records):.0f} CPU s: {dict(counts)}"
    yield f"at the coefficient limit {sum(record['at_limit'] for record in records)}"
    yield f"largest gap of an optimal fit {max(r['gap'] for r in solved if r not in short):.1e}"
    yield f"not optimal {len(short)} ({100 * len(short) / len(records):.2f} %)"
    for record in short:
        yield f"  {record}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of names")
    parser.add_argument(
        "--log", type=Path, help="file with one line of JSON per fit; its fits are not run again"
    )
    options = parser.parse_args()
    lines = options.log.read_text().splitlines() if options.log and options.log.is_file() else []
    records = [json.loads(line) for line in lines]
    done = {(r["name"], r["gamma"], r["C_factor"]) for r in records}
    axes = expand_auto(MMRM, {"gamma": "auto", "C": "auto"})
    grid = list(product(axes["gamma"], axes["C_factor"]))
    with threadpool_limits(1):
        for name, X, y in training_sets(options.mirror, options.splits):
            if options.only and not name.startswith(tuple(options.only)):
                continue
            start, new = time.process_time(), []
            for record in fits(name, X, y, grid, done):
                new.append(record)
                if options.log:
                    with options.log.open("a") as log:
                        log.write(json.dumps(record) + "\n")
            records += new
            found = Counter(record["status"] for record in new)
            print(f"{name:22} {len(X):5d} rows {time.process_time() - start:7.1f} s {dict(found)}")
    print(*summary(records), sep="\n")


if __name__ == "__main__":
    main()
