"""Kernel PCA of many rows: its first components by Lanczos steps against a reduction of the matrix.

    python benchmarks/kernel_pca.py --mirror FOLDER [--rows 2000 4000 6000]

Ringnorm, three widths, as many components as an F-SVM asks for. Prints the CPU seconds of the whole
decomposition, centring included, as a ratio, the largest difference of a variance, and what share
of one F-SVM's training the decomposition takes either way.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import FSVM, kernel_pca
from mmbench.machines.base.problem import BinaryProblem


def timed(call):
    started = time.process_time()
    return call(), time.process_time() - started


def decompose(X, gamma, components, lanczos):
    """Return variances and CPU seconds of the components, and the seconds of an F-SVM on them."""
    X, y = X
    kernel_pca.LANCZOS_ROWS = 0 if lanczos else np.inf
    problem = BinaryProblem(X, y, Kernel("rbf", gamma))
    _ = problem.gram
    found, seconds = timed(lambda: kernel_pca.spectrum(problem, components))
    machine = FSVM(kernel="rbf", gamma=gamma, n_components=components, tol=1e-3)
    return found.variances, seconds, timed(lambda: machine.fit(X, y))[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 4000, 6000])
    options = parser.parse_args()
    data = np.load(f"{options.mirror}/ida/ringnorm.npz")
    with threadpool_limits(1):
        decompose((data["x"][:200], data["t"][:200]), 0.1, 2, True)  # compile
        for n in options.rows:
            rows = data["x"][:n], data["t"][:n].astype(float)
            for components in (20, 100):
                if components > kernel_pca.LANCZOS_SHARE * n:
                    continue
                for gamma in (2.0**-9, 2.0**-5, 2.0**-1):
                    plain, slow, whole = decompose(rows, gamma, components, False)
                    few, fast, less = decompose(rows, gamma, components, True)
                    print(
                        f"{n} rows, {components} components, gamma {gamma:.3g}: {slow:.2f} s, "
                        f"{slow / fast:.1f} times faster, variances equal to "
                        f"{np.abs(few / plain - 1).max():.0e}; F-SVM {whole / less:.1f} times",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
