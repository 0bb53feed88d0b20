"""R-SVM+ and R-SVM_mu+: generated pairs against all pairs, and the interior point against Clarabel.

    python benchmarks/rsvm_plus_pairs.py --mirror FOLDER [--rows 200]

Prints, on the first rows of each data set, the CPU time of one cone program with all pairs (the
reference) relative to each route with generated pairs, and the largest difference of objectives.
Then, on the first training part (Sonar: 80 % of the rows), the time of the path over the published
grid of C and lambda at the tolerance of a search: Clarabel relative to the interior point, and the
interior point, per fit, relative to an SVM on its path over C; with the largest gaps.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.datasets import load_dataset, split_at
from mmbench.kernels import Kernel
from mmbench.machines import RSVMMuPlus, RSVMPlus
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.radius.rsvm import GRID
from mmbench.machines.svm import SVM

DATASETS = ("ida_german", "ida_image", "ida_ringnorm", "ida_splice", "ida_waveform")
WHOLE = ("ida_heart", "ida_diabetis", *DATASETS, "fsvm_sonar")
SOLVERS = ("interior", "clarabel")
ROUTES = [(machine, solver) for machine in (RSVMPlus, RSVMMuPlus) for solver in SOLVERS]


def load(name, options, rows=None):
    """Return the first training part, or its first rows, standardised, as a binary problem."""
    data = load_dataset(name, store=options.store, mirror=options.mirror)
    order = np.random.default_rng(0).permutation(len(data.y))
    part = order[: 8 * len(order) // 10]
    train = (part if name == "fsvm_sonar" else split_at("predefined", data).train)[:rows]
    X, signs = data.X[train].astype(float), np.where(data.y[train] == data.classes[1], 1.0, -1.0)
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    return BinaryProblem(X, signs, Kernel("linear"))


def timed(function, *arguments):
    start = time.process_time()
    result = function(*arguments)
    return time.process_time() - start, result


def against_all_pairs(options):
    ratios = {route: [] for route in ROUTES}
    for name in DATASETS:
        problem = load(name, options, options.rows)
        for machine in (RSVMPlus, RSVMMuPlus):
            tol = {"tol": 1e-7, "C": options.C, "lam": options.lam}
            listed, reference = timed(machine(**tol, solver="reference").train, problem)
            for route in (route for route in ROUTES if route[0] is machine):
                seconds, found = timed(machine(**tol, solver=route[1]).train, problem)
                ratios[route].append(listed / seconds)
                apart = abs(found.fit.objective / reference.fit.objective - 1)
                print(
                    f"{name:13} {machine.__name__:10} all pairs {listed:7.2f} s  "
                    f"{route[1]:8} {seconds:.4f} s  {listed / seconds:6.0f}x  "
                    f"objectives apart {apart:.0e}  {found.fit.extra['pairs']} pairs"
                )
    for (machine, route), values in ratios.items():
        mean = np.exp(np.mean(np.log(values)))
        print(f"{machine.__name__} {route}: {mean:.0f} times faster, at least {min(values):.0f}")


def against_clarabel(options):
    points = [{"C": C, "lam": lam} for C in GRID for lam in GRID]
    for name in WHOLE:
        problem = load(name, options)
        svm, _ = timed(SVM(kernel="linear", tol=1e-3).train_path, problem, points[:: len(GRID)])
        for machine in (RSVMPlus, RSVMMuPlus):
            seconds, gaps = {}, {}
            for solver in SOLVERS:
                search = machine(solver=solver, tol=machine.search_space.tol)
                seconds[solver], found = timed(search.train_path, problem, points)
                gaps[solver] = max(model.fit.gap for model in found)
            ratio, each = seconds["clarabel"] / seconds["interior"], svm / len(GRID)
            print(
                f"{name:13} {problem.X.shape} {machine.__name__:10} "
                f"Clarabel {ratio:.1f} times as long "
                f"(gaps {gaps['interior']:.0e}, {gaps['clarabel']:.0e}); interior point "
                f"{seconds['interior'] / len(points) / each:.2g} times the SVM's {each:.4f} s"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--store", default="datasets")
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--lam", type=float, default=1.0)
    options = parser.parse_args()
    with threadpool_limits(1):
        RSVMPlus().train(load(DATASETS[0], options, 50))  # compile
        against_all_pairs(options)
        against_clarabel(options)


if __name__ == "__main__":
    main()
