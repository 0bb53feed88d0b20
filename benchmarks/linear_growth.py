"""Linear machines on many rows of few features: CPU time in units of LinearSVC's, and memory.

    python benchmarks/linear_growth.py [--rows 1000000] [--features 54] [--passes 1000]
                                       [--mirror FOLDER] [--machines svm rmm ...]

Rows are normal, of classes that overlap; with --mirror they are the 60000 training digits of MNIST,
odd against even, on 80 principal components. Each machine is trained in a process of its own on one
thread, at C = 1 where it has that, to tol = 1e-6, and certified: relative gap, largest violation.
LinearSVC minimises the hinge loss of the SVM by coordinate steps to tol = 1e-4, or until its passes
end. Memory is the largest that a process held above what it held before the rows, which it
includes, in units of their size.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

REFERENCE, DIGITS = "LinearSVC", "digits"
MACHINES = (REFERENCE, "svm", "rmm", "mmrm", "sigma_svm", "lssvm", "klda", "m4")


def generated(n_rows, n_features):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, n_features))
    noise = np.sqrt(n_features) * random.normal(size=n_rows)
    return X, (X @ random.normal(size=n_features) + noise > 0).astype(int)


def save_digits(mirror, folder):
    from mmbench.datasets import load_dataset, make_preprocess

    data = load_dataset("mnist", store="datasets", mirror=mirror, allow_network=False)
    train, _ = data.split
    steps = make_preprocess((("divide", 255), ("pca", 80)))
    np.save(folder / "X.npy", steps.fit_transform(data.X[train]))
    np.save(folder / "y.npy", data.y[train].astype(int) % 2)


def built(name, passes):
    if name == REFERENCE:
        from sklearn.svm import LinearSVC

        return LinearSVC(loss="hinge", random_state=0, max_iter=passes)
    from mmbench.machines import make_machine

    return make_machine(name, kernel="linear", tol=1e-6)


def peak():
    """Return the largest resident memory so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def train(options):
    """Print what the training of one machine took and proved."""
    machine = built(options.one, options.passes)
    machine.fit(*generated(1000, 10))  # imports and compiles
    before = peak()
    if options.folder:
        X, y = (np.load(Path(options.folder) / f"{name}.npy") for name in "Xy")
    else:
        X, y = generated(options.rows, options.features)
    start = time.process_time()
    machine.fit(X, y)
    found = {"seconds": time.process_time() - start, "memory": (peak() - before) / X.nbytes}
    if options.one == REFERENCE:
        decisions = machine.decision_function(X)
        slack = np.maximum(0, 1 - np.where(y > 0, 1, -1) * decisions).sum()
        found["objective"] = 0.5 * float((machine.coef_**2).sum()) + float(slack)
        found["status"] = f"{machine.n_iter_} passes"
    else:
        (fit,) = machine.fits_
        found |= {"objective": fit.objective, "gap": fit.gap, "violation": fit.max_violation}
        found["status"] = f"{fit.status}, {fit.iterations} iterations"
    print(json.dumps(found))


def show(name, found, reference):
    times = f"{found['seconds'] / reference:8.4f}" if reference else " " * 8
    proof = (
        f"gap {found['gap']:8.1e}  violation {found['violation']:7.1e}" if "gap" in found else ""
    )
    print(
        f"{name:10} {found['seconds']:8.2f} s {times} x  {found['memory']:5.2f} x memory  "
        f"objective {found['objective']:.9g}  {found['status']}  {proof}",
        flush=True,
    )


def one(options):
    """Do what a child process is for."""
    if options.one == DIGITS:
        save_digits(options.mirror, Path(options.folder))
        return
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=54)
    parser.add_argument("--passes", type=int, default=1000, help="of LinearSVC, at most")
    parser.add_argument("--mirror")
    parser.add_argument("--machines", nargs="*", default=MACHINES)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        given = ["--rows", str(options.rows), "--features", str(options.features)]
        if options.mirror:  # loaded by a child: the peak of others starts from what this one holds
            loading = ["--one", DIGITS, "--mirror", options.mirror, "--folder", folder]
            subprocess.run([sys.executable, __file__, *loading], check=True)
            given = ["--folder", folder]
        reference = None
        for name in options.machines:
            command = [sys.executable, __file__, "--one", name, "--passes", str(options.passes)]
            ended = subprocess.run(command + given, capture_output=True, text=True, check=True)
            found = json.loads(ended.stdout)
            reference = found["seconds"] if name == REFERENCE else reference
            show(name, found, reference)


if __name__ == "__main__":
    main()
