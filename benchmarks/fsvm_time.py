"""Training time of the F-SVM's variants against the plain linear SVM's: Ringnorm and Waveform.

    python benchmarks/fsvm_time.py --mirror FOLDER [--splits 5]

The first official splits of the two-class sets of Raetsch (400 training rows), C from 0.01 to 100,
each machine cold at each C. Prints CPU seconds over the SVM's on the same splits and the worst gap:
exact optimum, paper's alternation, and both with the decomposition and the Gram matrix that a grid
shares (training the whole grid as one path, against the SVM's path).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from mmbench.kernels import Kernel
from mmbench.machines import make_machine
from mmbench.machines.base.problem import BinaryProblem

COSTS = [0.01, 0.1, 1.0, 10.0, 100.0]
MACHINES = ("svm", "fsvm_opt", "fsvm_semi", "fsvm", "fsvm_15")


def problems(folder, name, splits):
    data = np.load(f"{folder}/ida/{name}.npz")
    for train in data["train"][:splits]:
        yield data["x"][train], data["t"][train].astype(float)


def fresh(X, y):
    return BinaryProblem(X, y, Kernel("linear"))


def alone(machine, parts):
    """Return CPU seconds of one training a C, none knowing of another, and the worst gap."""
    started, gap = time.process_time(), 0.0
    for X, y in parts:
        for C in COSTS:
            gap = max(gap, machine.with_params({"C": C}).train(fresh(X, y)).fit.gap)
    return time.process_time() - started, gap


def path(machine, parts):
    """Return CPU seconds of the grid as one path, and the worst gap."""
    started, gap = time.process_time(), 0.0
    for X, y in parts:
        models = machine.train_path(fresh(X, y), [{"C": C} for C in COSTS])
        gap = max(gap, *(model.fit.gap for model in models))
    return time.process_time() - started, gap


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--splits", type=int, default=5)
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in ("ringnorm", "waveform"):
            parts = list(problems(options.mirror, name, options.splits))
            for way in (alone, path):
                machines = {m: make_machine(m, kernel="linear") for m in MACHINES}
                for machine in machines.values():
                    way(machine, parts[:1])  # compile
                found = {m: way(machine, parts) for m, machine in machines.items()}
                svm = found["svm"][0]
                texts = [f"{m} {s / svm:.2f}x (gap {g:.1e})" for m, (s, g) in found.items()]
                print(f"{name} {way.__name__}: SVM {svm:.3f} s; {'; '.join(texts)}")


if __name__ == "__main__":
    main()
