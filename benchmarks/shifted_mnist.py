"""LS-SVM and KLDA systems at eight ridges on MNIST 3 against 8: one reduction against its rivals.

    python benchmarks/shifted_mnist.py --mirror FOLDER [--rows 8000]

Digits of unit length, poly divided to trace n, ridges of 1e-6 to 10. CPU seconds of one thread for
``(K + s I) x = y`` at all ridges s, the Gram matrix K given: by a band (what training takes from
2500 rows on), by a tridiagonal matrix, by an eigendecomposition, by one Cholesky factorisation a
ridge, and for degree 1 by a QR factorisation of the rows, which have 785 features. Prints ratios to
the band, and the largest residual at the ridge of 1e-3.

On 8000 rows the tridiagonal matrix takes 1.8 to 2 times as long as the band, the eigendecomposition
3.5 times and the Cholesky factorisations 1.3 times; the features take a fiftieth. All residuals are
those of rounding.
"""

from __future__ import annotations

import argparse

import numpy as np
from rmm_growth import digits, timed
from scipy.linalg import cho_factor, cho_solve, eigh
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines.base import BinaryProblem
from mmbench.machines.kernel_pca import few_features
from mmbench.machines.klda import KLDA
from mmbench.solvers.band import Band
from mmbench.solvers.shifted import Factored, Tridiagonal

RIDGES = KLDA.search_space.auto_grids["eta"][1]
SHOWN = RIDGES.index(1e-3)


def by_reduction(kind, matrix, y):
    """Return x of every ridge, one a column, from a reduced matrix."""
    systems = kind(matrix)
    inside = systems.enter(y[:, None])
    return systems.leave(np.hstack([systems.solve(s, inside) for s in RIDGES]))


def by_eigenvectors(gram, y):
    values, vectors = eigh(gram, check_finite=False)
    return vectors @ ((vectors.T @ y)[:, None] / (values[:, None] + np.array(RIDGES)))


def by_cholesky(gram, y):
    columns = []
    for s in RIDGES:
        shifted = gram.copy()
        shifted.flat[:: len(y) + 1] += s
        columns.append(cho_solve(cho_factor(shifted, overwrite_a=True, check_finite=False), y))
    return np.column_stack(columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--rows", type=int, default=8000)
    options = parser.parse_args()
    X, y = (part[: options.rows] for part in digits(options.mirror))
    for degree in (2, 1):
        problem = BinaryProblem(X, y, Kernel("poly", degree=degree).trace_normalised(X))
        gram, features = problem.gram, few_features(problem)
        routes = {
            "band": (by_reduction, Band, gram),
            "tridiagonal": (by_reduction, Tridiagonal, gram),
        }
        if features is None:
            routes |= {"eigenvectors": (by_eigenvectors, gram), "Cholesky": (by_cholesky, gram)}
        else:
            routes["features"] = (by_reduction, Factored, features)
        first = None
        for name, (solve, *arguments) in routes.items():
            with threadpool_limits(1):
                seconds, x = timed(solve, *arguments, y)
            first = first or seconds
            residual = np.abs(gram @ x[:, SHOWN] + RIDGES[SHOWN] * x[:, SHOWN] - y).max()
            print(
                f"degree {degree}  {name:13s} {seconds:8.2f} s   {seconds / first:6.2f} x the band"
                f"   residual {residual:.0e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
