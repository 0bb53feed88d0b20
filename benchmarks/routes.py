"""CPU time of special methods of mmbench and of the general methods they replace, as a CSV table.

    python benchmarks/routes.py --out benchmarks/results/routes.csv [--rows 1000 2000]
        [--repeats 3]

inverse   Sigma-SVM, RBF: the kernel by an inverse, beside a decomposition of the Gram matrix
low rank  MMRM on two overlapping classes in the plane: a factor of the Gram matrix, beside the
          whole matrix
ridge path  KLDA, eight values of eta: factors in float32 and conjugate gradients, beside a factor
            in float64 for each eta

Rows are generated. One thread. The two methods alternate, and the least CPU time of the repeats
counts; the ratio has a range, from the least to the largest ratio of the same repeat. The
difference is relative.
"""

import argparse
import csv
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import KLDA, MMRM, SigmaSVM, sigma_svm
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.mmrm import program
from mmbench.solvers import ridge

FIELDS = ("route", "n", "seconds", "general_seconds", "ratio", "ratio_low", "ratio_high")
FIELDS += ("difference",)


def classes(n, d, share):
    """Return rows of two overlapping classes, and labels; `share` is the fraction of label 1."""
    random = np.random.default_rng(0)
    y = np.where(random.random(n) < share, 1.0, -1.0)
    return random.normal(size=(n, d)) + 0.4 * y[:, None], y


def inverse(n, general):
    """Return a function that trains a Sigma-SVM and returns its objective."""
    X, y = classes(n, 20, 0.5)
    kernel = Kernel("rbf", 0.05)
    problem = BinaryProblem(X, y, kernel, kernel(X, X))
    without = {"new": lambda problem, D: None} if general else {"new": sigma_svm.inverse_kernel}

    def train():
        with patch.object(sigma_svm, "inverse_kernel", **without):
            return SigmaSVM(D=0.5, C=10.0, tol=1e-3).train(problem).fit.objective

    return train


def low_rank(n, general):
    """Return a function that trains an MMRM and returns its objective."""
    X, y = classes(n, 2, 0.03)

    def train():
        with patch.object(program, "MOST_RANK", 0 if general else program.MOST_RANK):
            return MMRM().fit(X, y).fits_[0].objective

    return train


def ridge_path(n, general):
    """Return a function that trains the KLDA for eight values of eta and returns objectives."""
    X, y = classes(n, 20, 0.5)
    kernel = Kernel("rbf", 0.05)
    problem = BinaryProblem(X, y, kernel, kernel(X, X))
    points = [{"eta": 10.0**k} for k in range(-6, 2)]

    def train():
        with patch.object(ridge, "SINGLE_ROWS", np.inf if general else 0):
            return [model.fit.objective for model in KLDA().train_path(problem, points)]

    return train


def timed(call):
    """Return CPU seconds and the value of a call."""
    start = time.process_time()
    value = np.asarray(call())
    return time.process_time() - start, value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 2000])
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for make in (inverse, low_rank, ridge_path):
            make(120, False)()  # compiles
            for n in options.rows:
                pairs = [
                    (timed(make(n, False)), timed(make(n, True))) for _ in range(options.repeats)
                ]
                (_, one), (_, two) = pairs[0]
                difference = float(np.abs(one / two - 1).max())
                ours, general = (min(pair[k][0] for pair in pairs) for k in (0, 1))
                ratios = [slow / fast for (fast, _), (slow, _) in pairs]
                name = make.__name__.replace("_", " ")
                values = (ours, general, general / ours, min(ratios), max(ratios), difference)
                texts = [f"{value:.3g}" for value in values]
                table.writerow(dict(zip(FIELDS, (name, n, *texts), strict=True)))
                file.flush()


if __name__ == "__main__":
    main()
