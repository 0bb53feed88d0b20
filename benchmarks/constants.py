"""CPU time of trainings with a constant halved and doubled, as a CSV table.

    python benchmarks/constants.py --out benchmarks/results/constants.csv [--repeats 3]

Each row has a constant, a training, and the CPU time relative to the constant as it stands. Rows
are generated. One thread. The trainings alternate, and the least CPU time of the repeats counts.
"""

import argparse
import csv
import time
import warnings
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.machines import make_machine

FIELDS = ("module", "constant", "training", "halved", "doubled")
CONSTANTS = {
    "mmbench.solvers.svm_dual.smo": (
        "SERIES_OVERHEAD BUDGET_FACTOR MOST_KNOTS_MET PATIENCE NEW_ROWS_SHARE LEAST_NEW_ROWS "
        "MANY_ROWS"
    ),
    "mmbench.machines.fsvm.pair_svms": "INTERIOR_ROWS STEPS_PER_ROW MOST_STEPS",
}
#: Machine, parameters, number of rows and of features. ROW_CACHE is too small for the whole kernel
#: matrix, so that working sets are trained.
ROW_CACHE = {"cache_size": 20}
TRAININGS = {
    "mmbench.solvers.svm_dual.smo": [
        ("svm", {"C": 1.0}, 1500, 8),
        ("svm", {"C": 100.0, "kernel": "poly", "degree": 2}, 1000, 8),
        ("svm", {"C": 100.0}, 4000, 4),
        ("svm", {"C": 10.0, **ROW_CACHE}, 3500, 20),
        ("rmm", {"C": 10.0}, 1000, 8),
        ("rmm", {"C": 10.0, "kernel": "poly", "degree": 2}, 600, 8),
        ("rmm", {"C": 1.0, **ROW_CACHE}, 3500, 20),
    ],
    "mmbench.machines.fsvm.pair_svms": [
        ("fsvm", {"C": C, "tol": tol}, n, d)
        for n, d in ((400, 10), (800, 10), (1500, 10), (3000, 40))
        for C in (0.1, 100.0)
        for tol in (1e-3, 1e-6)
    ],
}


def seconds(machine, X, y):
    """Return the CPU time of a training."""
    started = time.process_time()
    machine.fit(X, y)
    return time.process_time() - started


def main():
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1), options.out.open("w", newline="") as file:
        table = csv.DictWriter(file, FIELDS)
        table.writeheader()
        for path, names in CONSTANTS.items():
            module = import_module(path)
            for machine, params, n, d in TRAININGS[path]:
                random = np.random.default_rng(0)
                X = random.normal(size=(n, d))
                y = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n) > 0
                fitted = make_machine(machine, **params)
                seconds(fitted, X, y)
                for name in names.split():
                    value = getattr(module, name)
                    times = {}
                    for factor in options.repeats * (1, 0.5, 2):
                        with patch.object(module, name, type(value)(factor * value)):
                            times.setdefault(factor, []).append(seconds(fitted, X, y))
                    ratios = [f"{min(times[f]) / min(times[1]):.2f}" for f in (0.5, 2)]
                    training = f"{machine} {params} n={n} d={d}"
                    table.writerow(dict(zip(FIELDS, (path, name, training, *ratios), strict=True)))
                    file.flush()


if __name__ == "__main__":
    main()
