"""CPU time, objectives and predictions of mmbench beside other packages, as a CSV table.

    python benchmarks/peers.py OUT.csv [--tasks kernel classes linear programs] [--rows 500 8000]
        [--mirror FOLDER] [--repeats 3] [--seconds 120]

kernel    SVM with an RBF kernel on the parity of digits (MNIST), halves of the alphabet (Letter)
          and Banana, for several C and gamma; SVC, libsvm, Intel's SVC
classes   the same on all classes of Letter and USPS, with predictions of 1 and 10,000 rows
linear    SVM on 20 to 2000 generated features and on documents of 38 among 20,000 words;
          LinearSVC (liblinear) and skglm
programs  RMM, MMRM and M4 on Heart, Pima and German, RBF and linear; their reference solvers
          (Clarabel, HiGHS)

Each measurement is a process with one thread, which first fits a few rows. Contenders alternate,
and the least CPU time of the repeats counts. A contender that fails or exceeds the limit of seconds
is left out of larger problems, and so is a package that is not installed. The objective of an SVM
is recomputed from the coefficients with the best intercept for them; other objectives are those of
the certificates. The excess is relative to the least objective of a problem. Data that are not
embedded are read from the mirror.
"""

import argparse
import csv
import itertools
import json
import os
import subprocess
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np

FIELDS = ["task", "data", "machine", "n", "d", "C", "gamma", "contender", "seconds", "ratio"]
FIELDS += ["predict_1", "predict_10000", "objective", "excess", "status"]
PACKAGES = {"libsvm": "libsvm", "intel": "sklearnex", "skglm": "skglm"}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WARM_UP_ROWS = 20  # of each class


def cells(tasks, rows):
    """Yield the problems of the tasks with the names of their contenders."""
    for n, task in itertools.product(rows, tasks):
        cell = {"task": task, "machine": "svm", "n": n, "gamma": 0.0, "d": 0}
        if task == "kernel":
            for data, C, gamma in itertools.product(
                ("mnist", "letter", "ida_banana"), (1, 100), (1, 16)
            ):
                scaled = gamma / {"mnist": 1024, "letter": 4, "ida_banana": 1}[data]
                names = ("mmbench", "SVC", "libsvm", "intel")
                yield cell | {"data": data, "C": C, "gamma": scaled}, names
        elif task == "classes":
            for data, gamma in (("letter", 4.0), ("usps", 2.0**-7)):
                yield cell | {"data": data, "C": 10, "gamma": gamma}, ("mmbench", "SVC", "intel")
        elif task == "linear":
            for d, C in itertools.product((20, 200, 2000, 20000), (0.01, 1)):
                data = "documents" if d == 20000 else "generated"
                yield cell | {"data": data, "C": C, "d": d}, ("mmbench", "LinearSVC", "skglm")
        else:
            for machine, data in itertools.product(
                ("rmm", "mmrm", "m4"), ("heart", "pima", "german")
            ):
                for gamma in (0.0, 0.05):
                    problem = {"machine": machine, "data": data, "C": 1, "gamma": gamma}
                    yield cell | problem, ("mmbench", "reference")


def problem(cell, mirror):
    """Return training rows and labels, and rows to predict."""
    n, d, name = cell["n"], cell["d"], cell["data"]
    rng = np.random.default_rng(0)
    if name == "documents":
        from sparse_rows import documents

        X, y = documents(n, d, 38)
        return X, y, X
    if name == "generated":
        X = rng.normal(size=(n, d)) / np.sqrt(d)
        y = np.where(X @ rng.normal(size=d) + 0.5 * rng.normal(size=n) > 0, 1, -1)
        return X, y, X
    from mmbench.datasets import load_dataset

    data = load_dataset(name, store="datasets", mirror=mirror, allow_network=False)
    X, y = np.asarray(data.X, dtype=float), np.unique(data.y, return_inverse=True)[1]
    X = X / np.abs(X).max() if name in ("mnist", "letter") else X
    if cell["task"] == "programs":
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    if cell["task"] == "kernel":
        y = np.where(y < 13, 1, -1) if name == "letter" else 1 - 2 * (y % 2)
    order = rng.permutation(len(y))
    train, test = order[:n], np.resize(order[n:] if len(order) > n else order, 10000)
    return X[train], y[train], X[test]


class LibSVM:
    """libsvm-official with the interface of an estimator."""

    def __init__(self, C, gamma):
        self.options = f"-q -t 2 -c {C} -g {gamma} -m 2000"

    def fit(self, X, y):
        """Fit two classes; coefficients are positive for the first label in `y`."""
        from libsvm.svmutil import svm_train

        model = svm_train(y, X, self.options)
        self.support_ = np.array(model.get_sv_indices()) - 1
        self.dual_coef_ = np.array(model.get_sv_coef()).T
        return self


def estimator(cell, contender):
    """Return an unfitted estimator."""
    C, gamma = cell["C"], cell["gamma"]
    if contender in ("mmbench", "reference"):
        from mmbench.machines import make_machine

        kernel = {"kernel": "rbf", "gamma": gamma} if gamma else {"kernel": "linear"}
        solver = {"solver": "reference"} if contender == "reference" else {}
        return make_machine(cell["machine"], C=C, **kernel, **solver)
    if contender == "libsvm":
        return LibSVM(C, gamma)
    if contender == "skglm":
        from skglm import LinearSVC

        return LinearSVC(C=C)
    if contender == "LinearSVC":
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, loss="hinge", max_iter=1000)
    if contender == "intel":
        from sklearnex.svm import SVC
    else:
        from sklearn.svm import SVC
    return SVC(C=C, gamma=gamma, cache_size=2000)


def objective(model, cell, X, y):
    """Return the objective of the SVM at the fitted w and the best intercept for it."""
    if cell["task"] == "programs":
        return model.fits_[0].objective
    if cell["task"] == "classes":
        return sum(fit.objective for fit in model.fits_) if hasattr(model, "fits_") else None
    if cell["task"] == "linear":
        w = np.asarray(model.coef_).ravel()
        decisions, norm = X @ w, w @ w
    else:
        from mmbench.kernels import Kernel
        from mmbench.machines.base.problem import expand

        u, support = np.asarray(model.dual_coef_), X[model.support_]
        decisions = expand(Kernel("rbf", gamma=cell["gamma"]), X, support, u)[:, 0]
        norm = u[0] @ decisions[model.support_]
        sign = np.sign(decisions @ y - decisions.mean() * y.sum())
        decisions = decisions * sign  # libsvm's positive class is the first label
    kinks = np.sort(y - decisions)
    slopes = np.arange(1, len(y) + 1) - np.count_nonzero(y > 0)
    margins = y * (decisions + kinks[np.argmax(slopes >= 0)])
    return float(0.5 * norm + cell["C"] * np.maximum(0, 1 - margins).sum())


def measure(cell, contender, mirror):
    """Print the figures of one fit: the work of a process of its own."""
    warnings.simplefilter("ignore")
    X, y, rows = problem(cell, mirror)
    few = np.concatenate([np.flatnonzero(y == label)[:WARM_UP_ROWS] for label in np.unique(y)])
    estimator(cell, contender).fit(X[few], y[few])
    model, start = estimator(cell, contender), time.process_time()
    model.fit(X, y)
    found = {"seconds": time.process_time() - start, "d": X.shape[1]}
    if hasattr(model, "fits_"):
        found["status"] = " ".join(sorted({str(fit.status) for fit in model.fits_}))
    if hasattr(model, "predict") and cell["task"] == "classes":
        for n in (1, 10000):
            model.predict(rows[:1])
            start = time.process_time()
            model.predict(rows[:n])
            found[f"predict_{n}"] = time.process_time() - start
    print(json.dumps(found | {"objective": objective(model, cell, X, y)}))


def measured(cell, contender, options):
    """Return the figures of one process, or its failure as the status."""
    command = [sys.executable, __file__, "-", "--one", json.dumps([cell, contender])]
    command += ["--mirror", options.mirror] if options.mirror else []
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    limit = {"timeout": options.seconds, "capture_output": True, "text": True}
    try:
        done = subprocess.run(command, env=environment, check=True, **limit)
    except subprocess.TimeoutExpired:
        return {"seconds": np.inf, "status": "time_limit"}
    except subprocess.CalledProcessError as error:
        return {"seconds": np.inf, "status": error.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def best(runs):
    """Return the run with the least CPU time, with the least times of all predictions."""
    found = dict(min(runs, key=lambda run: run["seconds"]))
    for name in ("predict_1", "predict_10000"):
        if name in found:
            found[name] = min(run.get(name, np.inf) for run in runs)
    return found


def main():
    tasks = ("kernel", "classes", "linear", "programs")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--tasks", nargs="+", choices=tasks, default=tasks)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000, 8000])
    parser.add_argument("--mirror")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*json.loads(options.one), options.mirror)
        return
    slow = set()
    with open(options.out, "w", newline="") as file:
        table = csv.DictWriter(file, FIELDS, extrasaction="ignore")
        table.writeheader()
        for cell, names in cells(options.tasks, sorted(options.rows)):
            own = {key: value for key, value in cell.items() if key != "n"}.values()
            names = [name for name in names if find_spec(PACKAGES.get(name, "sklearn"))]
            names = [name for name in names if (name, *own) not in slow]
            runs = {name: [] for name in names}
            for _, name in itertools.product(range(options.repeats), names):
                if all(np.isfinite(run["seconds"]) for run in runs[name]):
                    runs[name].append(measured(cell, name, options))
            figures = {name: best(runs[name]) for name in names}
            slow |= {(name, *own) for name in names if np.isinf(figures[name]["seconds"])}
            known = [row["objective"] for row in figures.values() if row.get("objective")]
            for name, row in figures.items():
                row["ratio"] = row["seconds"] / figures["mmbench"]["seconds"]
                if row.get("objective"):
                    row["excess"] = row["objective"] / min(known) - 1
                table.writerow(cell | {"contender": name} | row)
            file.flush()


if __name__ == "__main__":
    main()
