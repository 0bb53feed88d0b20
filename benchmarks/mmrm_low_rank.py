"""MMRM where the kernel matrix has a low numerical rank: with a factor of it, and as a whole.

    python benchmarks/mmrm_low_rank.py [--rows 1000 2000] [--more 4000 10000] [--features 2]

Two Gaussian classes that overlap, one of them rare (3 %); the default width of RBF. CPU seconds of
one thread, relative gaps, and the ratio of the times; with more rows only with the factor.
"""

from __future__ import annotations

import argparse
import time
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.machines import MMRM
from mmbench.machines.mmrm import program


def classes(n, n_features):
    random = np.random.default_rng(0)
    y = (random.random(n) < 0.03).astype(int)
    return random.normal(size=(n, n_features)) + 0.8 * y[:, None], y


def trained(X, y, most_rank=program.MOST_RANK):
    """Return CPU seconds and the certificate."""
    with patch.object(program, "MOST_RANK", most_rank):
        start = time.process_time()
        fit = MMRM().fit(X, y).fits_[0]
        return time.process_time() - start, fit


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1000, 2000])
    parser.add_argument("--more", type=int, nargs="*", default=[4000, 10000])
    parser.add_argument("--features", type=int, default=2)
    options = parser.parse_args()
    with threadpool_limits(1):
        trained(*classes(100, options.features))  # compiles
        for n in (*options.rows, *options.more):
            X, y = classes(n, options.features)
            seconds, fit = trained(X, y)
            print(f"{n:6d} rows, factor: {seconds:6.1f} s, {fit.status}, gap {fit.gap:.0e}", end="")
            if n in options.rows:
                dense, other = trained(X, y, most_rank=0)
                print(f"; whole: {dense:6.1f} s, gap {other.gap:.0e}; ratio {dense / seconds:.1f}")
            else:
                print()


if __name__ == "__main__":
    main()
