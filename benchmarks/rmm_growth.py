"""How the training time of SVM and RMM grows with the rows: figure 2 of the RMM paper.

    python benchmarks/rmm_growth.py --mirror FOLDER [--rows 1000 2000 4000 8000 10000]

MNIST 3 against 8, digits of unit length, poly of degree 2 divided to trace n, C = 1000, tolerance
0.001, B = 1 + (theta - 1) / {2, 4, 10}; the RMM from the SVM's solution (warm, the time of the SVM
not counted) and from zero (cold). Prints CPU seconds of one thread without the Gram matrix, the
ratio to the SVM, and the exponent in n by least squares on log-log axes. With --figure FILE it is
drawn.

Beside them stand the support vectors, and as a measure of what the smallest bound asks for, one
Cholesky factorisation in float32 of the Gram matrix of its support vectors.

At 10000 rows the warm RMM takes about 1.3, 3.5 and 25 times the SVM's time, with 1.25, 2.2 and 5
times its support vectors; the exponents are near 1.7 for the SVM and 1.6, 1.6 and 2.0 for the RMMs.
At most 3 times the SVM's time is therefore met for the first bound alone, an exponent at most 0.2
above the SVM's for the first two. With the smallest bound the one factorisation takes 5 times the
SVM's time by itself: no method that solves for these rows at once could come to 3.
"""

from __future__ import annotations

import argparse
import gzip
import time

import numpy as np
from scipy.linalg import cholesky
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines.base import BinaryProblem
from mmbench.machines.rmm import Point, train_rmm
from mmbench.machines.svm import train_svm

C, TOL = 1000.0, 1e-3
DIVISORS = (2, 4, 10)
FACTOR = "one Cholesky"


def digits(mirror):
    """Return the training digits 3 and 8 in random order, of unit length, and their signs."""
    with gzip.open(f"{mirror}/mnist/train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read()[8:], dtype=np.uint8)
    rows = np.random.RandomState(0).permutation(np.flatnonzero((labels == 3) | (labels == 8)))
    with gzip.open(f"{mirror}/mnist/train-images-idx3-ubyte.gz") as file:
        X = np.frombuffer(file.read()[16:], dtype=np.uint8).reshape(-1, 784)[rows].astype(float)
    return X / np.linalg.norm(X, axis=1, keepdims=True), np.where(labels[rows] == 8, 1.0, -1.0)


def timed(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def measure(problem):
    """Return CPU seconds and support vectors by machine, start included in the name."""
    seconds, support = {}, {}
    seconds["SVM"], svm = timed(train_svm, problem, C, "auto", TOL)
    support["SVM"] = svm.fit.n_support
    theta = float(np.abs(svm.state + svm.intercept).max())
    for divisor in DIVISORS:
        B = 1 + (theta - 1) / divisor
        for word, start in (("warm", [Point(svm.coef, svm.state)]), ("cold", None)):
            name = f"RMM /{divisor} {word}"
            seconds[name], rmm = timed(train_rmm, problem, C, B, "auto", TOL, start)
            support[name] = rmm.fit.n_support
    seconds[FACTOR], _ = timed(factor, problem.gram, np.flatnonzero(rmm.coef))
    support[FACTOR] = support[name]
    return seconds, support


def factor(gram, rows):
    """Factor one block of the Gram matrix, a trace of ridge added."""
    block = gram[np.ix_(rows, rows)].astype(np.float32)
    block[np.diag_indices_from(block)] *= 1 + 1e-3
    return cholesky(block, lower=True, overwrite_a=True, check_finite=False)


def growth(sizes, table):
    """Return the exponent in n of each row, by least squares on log-log axes."""
    return {name: np.polyfit(np.log(sizes), np.log(row), 1)[0] for name, row in table.items()}


def draw(sizes, table, exponents, path):
    from matplotlib.figure import Figure

    axes = (canvas := Figure(figsize=(6.4, 5), layout="constrained")).subplots()
    for name, seconds in table.items():
        style = "--" if name.endswith("cold") else "-"
        axes.loglog(
            sizes, seconds, style, marker="o", ms=3, label=f"{name}: n^{exponents[name]:.2f}"
        )
    axes.set(xlabel="training digits", ylabel="CPU seconds", title="MNIST 3 against 8, degree 2")
    axes.legend(fontsize=8, frameon=False)
    canvas.savefig(path, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000, 4000, 8000, 10000])
    parser.add_argument("--figure")
    options = parser.parse_args()
    X, y = digits(options.mirror)
    kernel = Kernel("poly", degree=2).trace_normalised(X)
    table, supports = {}, {}
    with threadpool_limits(1):
        small = BinaryProblem(X[:100], y[:100], kernel)
        measure(small)  # compile
        for n in options.rows:
            problem = BinaryProblem(X[:n], y[:n], kernel, kernel(X[:n], X[:n]))
            seconds, support = measure(problem)
            for name, one in seconds.items():
                table.setdefault(name, []).append(max(one, 1e-6))
                supports.setdefault(name, []).append(support[name])
    exponents, of_support = growth(options.rows, table), growth(options.rows, supports)
    for name, seconds in table.items():
        ratio = seconds[-1] / table["SVM"][-1]
        shown = "  ".join(f"{value:8.3f}" for value in seconds)
        print(
            f"{name:14s} {shown}   {ratio:5.2f} x SVM   exponent {exponents[name]:.2f}"
            f"   {supports[name][-1]} support vectors, exponent {of_support[name]:.2f}"
        )
    if options.figure:
        draw(options.rows, table, exponents, options.figure)


if __name__ == "__main__":
    main()
