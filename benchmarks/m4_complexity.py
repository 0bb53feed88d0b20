"""CPU time of the M4 by the number of rows N and of features n, as a CSV table.

    python benchmarks/m4_complexity.py --out benchmarks/results/m4_complexity.csv
        [--rows 1000 2000 4000] [--features 20 40 80] [--seconds 5] [--repeats 3]

interior point   the default algorithm
cone program     one program, with one cone per class, by Clarabel
rho search       the reference: one program per value of rho
cone per row     one program for one value of rho, with one cone per row as in the paper

The rows are generated: two normal classes of equal size that overlap. The numbers of rows are
measured with the least number of features, and the numbers of features with the least number of
rows. An algorithm that takes more than the limit of seconds is left out of larger sizes. One
thread; the algorithms alternate, and the least CPU time of the repeats counts.
"""

import argparse
import csv
import itertools
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from mmbench.machines import M4
from mmbench.solvers.cones import ConeProgram, solve_socp

FIELDS = ("series", "route", "n", "d", "seconds", "spread")
SOLVERS = {"interior point": "auto", "cone program": "clarabel", "rho search": "reference"}


def classes(n, d):
    """Return rows of two overlapping classes with different covariances, and labels."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(n, d)), np.where(np.arange(n) % 2, 1, -1)
    X[y > 0] *= np.linspace(0.5, 2.0, d)
    return X + 1.5 / np.sqrt(d) * y[:, None], y


def cone_per_row(X, y, rho=0.5):
    """Solve the program of the M4 paper for one rho, normalised by ``w'(xm - ym) = 1``."""
    (n, d), roots = X.shape, {}
    for label in (-1, 1):
        roots[label] = np.linalg.cholesky(np.cov(X[y == label].T, bias=True)).T
    blocks = []
    for k, (row, label) in enumerate(zip(X, y, strict=True)):
        head = sparse.csr_array(np.append(label * row, label)[None] / rho)
        slack = sparse.csr_array(([1 / rho], ([0], [k])), shape=(1, n))
        blocks.append(sparse.hstack([head, slack]))
        blocks.append(sparse.csr_array(np.pad(roots[label], ((0, 0), (0, 1 + n)))))
    positive = sparse.hstack([sparse.csr_array((n, d + 1)), sparse.eye_array(n)])
    means = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    program = ConeProgram(
        c=np.append(np.zeros(d + 1), np.ones(n)),
        A=sparse.csc_array(np.append(means, np.zeros(1 + n))[None]),
        b=np.ones(1),
        G=sparse.csc_array(-sparse.vstack([positive, *blocks])),
        h=np.zeros(n * (d + 2)),
        n_linear=n,
        cones=(1 + d,) * n,
    )
    return solve_socp(program)


def seconds(route, X, y):
    """Return the CPU seconds of one solution."""
    start = time.process_time()
    if route == "cone per row":
        cone_per_row(X, y)
    else:
        M4(solver=SOLVERS[route]).fit(X, y)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, nargs="*", default=[1000 * 2**k for k in range(6)])
    parser.add_argument("--features", type=int, nargs="*", default=[20 * 2**k for k in range(5)])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    rows, features = sorted(options.rows), sorted(options.features)
    series = {
        "rows": [(n, features[0]) for n in rows],
        "features": [(rows[0], d) for d in features],
    }
    routes = (*SOLVERS, "cone per row")
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for route in routes:
            seconds(route, *classes(100, 5))  # compiles
        for name, shapes in series.items():
            left = list(routes)
            for n, d in shapes:
                X, y = classes(n, d)
                times = {route: [] for route in left}
                for _, route in itertools.product(range(options.repeats), left):
                    times[route].append(seconds(route, X, y))
                for route, own in times.items():
                    texts = (f"{value:.3g}" for value in (min(own), max(own) / min(own)))
                    table.writerow(dict(zip(FIELDS, (name, route, n, d, *texts), strict=True)))
                file.flush()
                left = [route for route in left if min(times[route]) <= options.seconds]


if __name__ == "__main__":
    main()
