"""MMRM on the 45 pairs of USPS against the whole program of each pair in HiGHS.

    python benchmarks/mmrm_usps.py --mirror FOLDER [--pairs 3/5 4/9] [--gamma 0.0078125] [--C 10]

Prints a line a pair, both total CPU times (kernel matrices excluded, the SVM that seeds ours
included), their ratio, and the largest relative difference of an objective.
"""

from __future__ import annotations

import argparse
import time
from itertools import combinations

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import machine_class
from mmbench.machines.base.problem import BinaryProblem


def problem(X, y, pair, kernel):
    rows = np.flatnonzero(np.isin(y, pair))
    found = BinaryProblem(X[rows], np.where(y[rows] == pair[1], 1.0, -1.0), kernel)
    assert found.gram.shape == (len(rows), len(rows))  # computed here, outside the clocks
    return found


def timed(machine, pair_problem):
    """Return (CPU seconds, certificate)."""
    start = time.process_time()
    model = machine.train(pair_problem)
    return time.process_time() - start, model.fit


def parsed(pairs):
    if not pairs:
        return list(combinations(range(10), 2))
    return [tuple(sorted(int(digit) for digit in pair.split("/"))) for pair in pairs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--pairs", nargs="*", help="as 3/5; default all 45")
    parser.add_argument("--gamma", type=float, default=2.0**-7)
    parser.add_argument("--C", type=float, default=10.0)
    options = parser.parse_args()
    data = np.load(f"{options.mirror}/usps/usps.npz")
    X, y = data["X_train"].astype(np.float64), data["y_train"]
    kernel = Kernel("rbf", gamma=options.gamma)
    ours = machine_class("mmrm")(C=options.C)
    whole = machine_class("mmrm")(C=options.C, solver="reference")
    timed(ours, problem(X[:300], y[:300], (0, 1), kernel))  # compile
    seconds, worst, certified = np.zeros(2), 0.0, 0
    with threadpool_limits(1):
        for pair in parsed(options.pairs):
            pair_problem = problem(X, y, pair, kernel)
            fast, fit = timed(ours, pair_problem)
            slow, reference = timed(whole, pair_problem)
            difference = abs(fit.objective - reference.objective) / reference.objective
            seconds += fast, slow
            worst, certified = max(worst, difference), certified + (fit.status == "optimal")
            print(
                f"{pair[0]}/{pair[1]}  rows {len(pair_problem.y):5d}  support {fit.n_support:4d}  "
                f"{fit.route:10s} {fast:6.2f} s  HiGHS {slow:6.2f} s  "
                f"objective {fit.objective:.9f}  gap {fit.gap:.0e}  difference {difference:.0e}",
                flush=True,
            )
    print(f"mmbench      {seconds[0]:8.1f} s CPU, {certified} certified")
    print(f"HiGHS whole  {seconds[1]:8.1f} s CPU")
    print(f"ratio        {seconds[1] / seconds[0]:8.1f}")
    print(f"largest relative difference of an objective  {worst:.1e}")


if __name__ == "__main__":
    main()
