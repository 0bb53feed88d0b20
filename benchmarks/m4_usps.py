"""Kernel M4 on one USPS pair against the SVM, once the factor of the Gram matrix exists.

    python benchmarks/m4_usps.py --mirror FOLDER [--pair 4 9] [--gamma 0.0078125]

CPU seconds of one thread, best of several runs. The SVM is trained by libsvm and by our own steps;
the M4 from a cold start at several C, to 1e-6, in diagonal coordinates, whose time is shown apart;
then as an estimator trains it, over the Gram matrix, everything included, on a path of C (a search)
and at single C. Ratios are to the SVM with its Gram matrix, and to our SVM's steps alone.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import M4, SVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.minimax.coordinates import KernelCoordinates

RIDGE = 1e-3
FACTORS = (1.5, 3.0, 10.0, 30.0, 100.0)


def read(mirror, negative, positive):
    """Return the training rows of a pair, and their signs."""
    data = np.load(f"{mirror}/usps/usps.npz")
    rows = np.isin(data["y_train"], (negative, positive))
    X, y = data["X_train"][rows].astype(np.float64), data["y_train"][rows]
    return X, np.where(y == positive, 1.0, -1.0)


def best(function, repeats=5):
    """Return the smallest CPU seconds of some calls, and the last result."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        result = function()
        seconds.append(time.process_time() - started)
    return min(seconds), result


def svm_seconds(X, y, kernel, gram, gram_seconds):
    """Return CPU seconds of the two SVMs with the Gram matrix, and of our steps; print them."""
    out = {}
    for name, solver in (("libsvm", "reference"), ("ours", "auto")):
        machine = SVM(C=10.0, solver=solver)
        seconds, model = best(lambda m=machine: m.train(BinaryProblem(X, y, kernel, gram)))
        out[name] = seconds + gram_seconds
        print(
            f"SVM, {name:7} {seconds:8.4f} s   with the Gram matrix {out[name]:8.4f} s   "
            f"{model.fit.n_support} support vectors"
        )
    return out | {"steps": out["ours"] - gram_seconds}


def ratios_to(svm, seconds):
    """Return the ratios of a time to those of the SVMs, to print."""
    return "   ".join(f"{seconds / own:5.1f} ({name})" for name, own in svm.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--pair", nargs=2, type=int, default=[4, 9])
    parser.add_argument("--gamma", type=float, default=2.0**-7)
    options = parser.parse_args()
    X, y = read(options.mirror, *options.pair)
    kernel = Kernel("rbf", options.gamma)
    print(f"USPS {options.pair[0]} against {options.pair[1]}, {len(y)} rows, gamma {kernel.gamma}")
    with threadpool_limits(1):
        gram_seconds, gram = best(lambda: kernel(X, X))
        print(f"Gram matrix  {gram_seconds:8.4f} s")
        svm = svm_seconds(X, y, kernel, gram, gram_seconds)
        seconds, coordinates = best(lambda: KernelCoordinates(BinaryProblem(X, y, kernel)), 2)
        print(f"its factor   {seconds:8.4f} s   kernel values included")
        seconds, data = best(lambda: coordinates.diagonal(RIDGE), 2)
        print(f"coordinates  {seconds:8.4f} s")
        for factor in FACTORS:
            machine = M4(kernel="rbf", C_factor=factor, ridge=RIDGE)
            seconds, model = best(lambda m=machine: m.solve(data, None))
            fit = model.fit
            print(
                f"M4, C_factor {factor:5.1f} {seconds:8.4f} s   ratio {ratios_to(svm, seconds)}   "
                f"{fit.iterations} rounds, gap {fit.gap:.0e}"
            )
        path = [{"C_factor": factor, "ridge": RIDGE} for factor in FACTORS]
        seconds, _ = best(lambda: M4(kernel="rbf").train_path(BinaryProblem(X, y, kernel), path), 2)
        seconds /= len(path)
        print(f"M4, searched, a C {seconds:8.4f} s   ratio {ratios_to(svm, seconds)}")
        for factor in FACTORS:
            machine = M4(kernel="rbf", C_factor=factor, ridge=RIDGE)
            seconds, _ = best(lambda m=machine: m.train(BinaryProblem(X, y, kernel)), 2)
            print(f"M4, all, {factor:5.1f} {seconds:8.4f} s   ratio {ratios_to(svm, seconds)}")


if __name__ == "__main__":
    main()
