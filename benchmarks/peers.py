"""CPU time, memory, objectives and predictions of mmbench and other packages, as a CSV table.

    python benchmarks/peers.py --out benchmarks/results/peers.csv --mirror FOLDER
        [--tasks kernel classes linear lda programs search growth first] [--machines svm rmm]
        [--data letter] [--without libsvm] [--rows 500 2000 8000] [--repeats 3] [--seconds 60]

kernel    SVM with an RBF kernel on the parity of digits (MNIST), halves of the alphabet (Letter)
          and Banana, for three C and two gamma; above 8000 rows on Letter with few and with many
          support vectors, and on generated binary features; SVC of scikit-learn, libsvm, SVC of
          Intel
classes   the same on all classes of Letter and USPS and on 3, 10, 26 and 100 generated classes,
          with predictions of 1 and 10,000 rows; also the RMM
linear    SVM on 20, 200 and 2000 generated features and on documents with 38 of 20,000 words,
          the documents alone above 8000 rows; LinearSVC of scikit-learn (liblinear), skglm
lda       LDA on ten times the rows with 500 generated features; LinearDiscriminantAnalysis of
          scikit-learn with the solver "lsqr"
programs  the other machines on Heart, Pima and German, linear and RBF; their reference solvers
          (Clarabel, HiGHS, dense linear algebra); M4, MMRM and MPM for several penalties, and
          the M4 as one cone program of Clarabel; its reference for one penalty
search    five folds of a grid on Image and USPS; GridSearchCV of scikit-learn over the estimator
growth    all machines, RBF on the parity of digits and linear on ten times the rows with 54
          features, relative to the SVM
first     the first fit of each machine, with an empty cache of compiled code

Each measurement runs in a process with one thread. Except in the task `first`, the process first
fits up to 500 of the rows, so that all code is compiled and loaded. Contenders alternate, and the
least CPU time of the repeats counts; the spread is the largest time divided by the least. The ratio
of two least times has a range, from the least to the largest ratio of the same repeat; so has the
ratio of two times of a prediction. A fit that fails or exceeds the limit of seconds is a row
without a time. The contender is left out of larger problems, and of problems whose time,
extrapolated by the square of the rows, exceeds the limit. A package that is not installed is left
out. The objective of an SVM is recomputed from the coefficients with the best intercept for them,
and the objective of an LDA from the coefficients; other objectives are taken from the certificates.
The excess is relative to the least objective of a problem. Memory is the peak of the process. Rows
that are not measured again stay in the file. docs/benchmarks.md shows the file as tables and
pictures.
"""

import argparse
import csv
import itertools
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import mmbench

FIELDS = ["task", "data", "machine", "n", "d", "C", "gamma", "contender", "seconds", "spread"]
FIELDS += ["ratio", "ratio_low", "ratio_high", "memory_mb", "predict_1", "predict_10000"]
FIELDS += ["predict_1_low", "predict_1_high", "predict_10000_low", "predict_10000_high"]
FIELDS += ["objective", "excess", "status", "repeats", "version", "processor"]
#: Contender -> module and distribution of its package; mmbench's machines are contenders too.
PACKAGES = {
    "SVC": ("sklearn", "scikit-learn"),
    "LinearSVC": ("sklearn", "scikit-learn"),
    "LinearDiscriminantAnalysis": ("sklearn", "scikit-learn"),
    "GridSearchCV": ("sklearn", "scikit-learn"),
    "GridSearchCV of SVC": ("sklearn", "scikit-learn"),
    "libsvm": ("libsvm", "libsvm-official"),
    "Intel": ("sklearnex", "scikit-learn-intelex"),
    "skglm": ("skglm", "skglm"),
}
PREDICTIONS = ("predict_1", "predict_10000")
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
WARM_UP_ROWS = 500
#: Machines in the order of the tables; the first is the reference of `growth`.
MACHINES = ("svm", "rmm", "sigma_svm", "mmrm", "m4", "mpm", "mempm", "lda", "fsvm", "rsvm_plus")
MACHINES += ("rsvm_mu_plus", "mrsvm", "klda", "lssvm", "mamc")
LINEAR_ONLY = ("lda",)
#: Parameter in place of C, and its values in the task `programs`. The column C of the file contains
#: the value.
PENALTIES = {
    "m4": ("C_factor", (3, 30, 300)),
    "mmrm": ("C_factor", (3, 30, 300)),
    "mpm": ("ridge", (1e-8, 1e-4, 1e-2)),
}
#: Divisor of gamma, by data set: the number of features, or 1 if they are not scaled to [-1, 1].
WIDTHS = {"mnist": 1024, "letter": 4, "ida_banana": 1}
#: C and gamma of the task `kernel` above 8000 rows, by data set.
LARGE = {
    "letter": ((0.1, 4), (1, 0.05), (1, 2), (1, 60), (10, 8)),
    "binary features": ((1, 0.02), (100, 0.02)),
}
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0]}


def cells(task, n):
    """Yield the problems of a task with n rows, and the names of their contenders."""
    cell = {"task": task, "machine": "svm", "n": n, "gamma": 0.0, "d": 0, "C": 1}
    if task == "kernel":
        grid = itertools.product(WIDTHS.items(), (0.1, 1, 100), (1, 16))
        settings = [(data, C, gamma / width) for (data, width), C, gamma in grid]
        if n > 8000:
            settings = [(data, *pair) for data, pairs in LARGE.items() for pair in pairs]
        for data, C, gamma in settings:
            problem = {"data": data, "C": C, "gamma": gamma}
            yield cell | problem, ("mmbench", "SVC", "libsvm", "Intel")
    elif task == "classes":
        generated = ((f"{count} classes", 0.05) for count in (3, 10, 26, 100))
        for data, gamma in (("letter", 4.0), ("usps", 2.0**-7), *generated):
            problem = {"data": data, "C": 10, "gamma": gamma}
            yield cell | problem, ("mmbench", "SVC", "Intel", "rmm")
    elif task == "linear":
        features = (20, 200, 2000, 20000) if n <= 8000 else (20000,)  # sparse rows alone
        for d, C in itertools.product(features, (0.01, 1)):
            data = "documents" if d == 20000 else "generated"
            yield cell | {"data": data, "C": C, "d": d}, ("mmbench", "LinearSVC", "skglm")
    elif task == "lda":
        problem = {"machine": "lda", "data": "generated", "n": 10 * n, "d": 500}
        yield cell | problem, ("mmbench", "LinearDiscriminantAnalysis")
    elif task == "programs":
        for machine, data in itertools.product(MACHINES[1:-1], ("heart", "pima", "german")):
            gammas = (0.0,) if machine in LINEAR_ONLY else (0.0, 0.05)
            gammas = (0.0, 0.05, 0.005) if machine in PENALTIES else gammas
            for C, gamma in itertools.product(PENALTIES.get(machine, ("C", (1,)))[1], gammas):
                problem = {"machine": machine, "data": data, "C": C, "gamma": gamma}
                others = ("reference",)
                if machine == "m4":  # the reference searches over rho, for up to a minute
                    others = ("clarabel", *others * (C == 3))
                yield cell | problem, ("mmbench", *others)
    elif task == "search":
        for machine, data in itertools.product(("svm", "rmm", "lssvm"), ("ida_image", "usps")):
            names = ("mmbench", "GridSearchCV", *["GridSearchCV of SVC"] * (machine == "svm"))
            yield cell | {"machine": machine, "data": data}, names
    elif task == "growth":
        kernels = [name for name in MACHINES if name not in LINEAR_ONLY]
        yield cell | {"data": "mnist", "C": 10, "gamma": 2.0**-6}, ("svm", "rmm 0.1", *kernels[1:])
        yield cell | {"data": "generated", "n": 10 * n, "d": 54}, ("LinearSVC", *MACHINES)
    else:
        for gamma in (0.0, 0.05):
            yield cell | {"data": "generated", "n": 200, "d": 10, "gamma": gamma}, MACHINES


def documents(n, d, words):
    """Return n sparse rows with words of Zipf's frequencies, weighted as TF-IDF, and labels."""
    from scipy import sparse

    random = np.random.default_rng(0)
    shares = 1 / (np.arange(d) + 10.0)
    columns = random.choice(d, size=n * words, p=shares / shares.sum()).astype(np.int32)
    places = np.repeat(np.arange(n, dtype=np.int32), words), columns
    X = sparse.csr_array((np.ones(n * words), places), shape=(n, d))
    rarity = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d)))
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X.data /= np.repeat(np.sqrt(X.multiply(X).sum(axis=1)), np.diff(X.indptr))
    scores = X @ random.normal(size=d)
    scores = scores + 0.5 * scores.std() * random.normal(size=n)
    return X, np.where(scores > np.quantile(scores, 0.6), 1, -1)


@cache
def loaded(name, mirror):
    """Return a data set of the mirror."""
    from mmbench.datasets.load import load_dataset

    return load_dataset(name, store="datasets", mirror=mirror, allow_network=False)


def problem(cell, mirror):
    """Return training rows and labels, and rows to predict."""
    n, d, name = cell["n"], cell["d"], cell["data"]
    random = np.random.default_rng(0)
    if name == "documents":
        X, y = documents(n, d, 38)
        return X, y, X
    if name == "generated":
        X = random.normal(size=(n, d)) / np.sqrt(d)
        y = np.where(X @ random.normal(size=d) + 0.5 * random.normal(size=n) > 0, 1, -1)
        return X, y, X
    if name == "binary features":  # 14 categories, as in the data set Adult
        types = random.normal(size=(8, 14, 9))[random.integers(8, size=n)]
        values = (types + random.gumbel(size=types.shape)).argmax(axis=2)
        X = (values[:, :, None] == np.arange(9)).reshape(n, -1).astype(float)
        scores = X @ random.normal(size=X.shape[1]) + 2 * random.normal(size=n)
        return X, np.where(scores > np.quantile(scores, 0.75), 1, -1), X
    if name.endswith(" classes"):
        count = int(name.split()[0])
        y = np.resize(np.arange(count), n + 10000)
        X = 1.5 * random.normal(size=(count, 20))[y] + random.normal(size=(len(y), 20))
        return X[:n], y[:n], X[n:]
    data = loaded(name, mirror)
    X, y = np.asarray(data.X, dtype=float), np.unique(data.y, return_inverse=True)[1]
    X = X / np.abs(X).max() if name in ("mnist", "letter") else X
    if cell["task"] in ("programs", "search"):
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    if cell["task"] in ("kernel", "growth"):
        y = np.where(y < 13, 1, -1) if name == "letter" else 1 - 2 * (y % 2)
    order = random.permutation(len(y))
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


class Search:
    """A grid search with five folds, with the interface of an estimator."""

    def __init__(self, machine, contender):
        self.machine, self.contender = machine, contender

    def fit(self, X, y):
        """Search; the objective is the best mean accuracy with its sign reversed."""
        from mmbench.selection import SelectRef, select
        from mmbench.selection.folds import inner_splits

        if self.contender == "mmbench":
            rows = select(self.machine, X, y, GRID, SelectRef(folds=5), seed=0, n_jobs=1).scores
            self.objective = -max(row["score"] for row in rows)
            return self
        from sklearn.model_selection import GridSearchCV

        splits = inner_splits(y, 5, None, 1, 0)
        found = GridSearchCV(self.machine, GRID, cv=splits, refit=False).fit(X, y)
        self.objective = -float(found.cv_results_["mean_test_score"].max())
        return self


def machine_of(cell, contender):
    """Return the name of the machine that a contender trains."""
    name = contender.partition(" ")[0]
    return name if name in MACHINES else cell["machine"]


def estimator(cell, contender):
    """Return an unfitted estimator."""
    C, gamma = cell["C"], cell["gamma"]
    if cell["task"] == "search":
        other = contender == "GridSearchCV of SVC"
        machine = estimator(cell | {"task": "", "gamma": 1.0}, "SVC" if other else "mmbench")
        return Search(machine, contender)
    if contender not in PACKAGES:
        from mmbench.machines import make_machine

        given = {"kernel": "rbf", "gamma": gamma} if gamma else {"kernel": "linear"}
        if contender in ("reference", "clarabel"):
            given["solver"] = contender
        machine, share = machine_of(cell, contender), contender.partition(" ")[2]
        if share:
            given["B_fraction"] = float(share)
        if machine in PENALTIES and cell["task"] == "programs":
            given[PENALTIES[machine][0]] = C
        elif machine not in PENALTIES and "C" in make_machine(machine).get_params():
            given["C"] = C
        return make_machine(machine, **given)
    if contender == "libsvm":
        return LibSVM(C, gamma)
    if contender == "skglm":
        from skglm import LinearSVC

        return LinearSVC(C=C)
    if contender == "LinearDiscriminantAnalysis":
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

        return LinearDiscriminantAnalysis(solver="lsqr")
    if contender == "LinearSVC":
        from sklearn.svm import LinearSVC

        return LinearSVC(C=C, loss="hinge", max_iter=1000)
    if contender == "Intel":
        from sklearnex.svm import SVC
    else:
        from sklearn.svm import SVC
    return SVC(C=C, gamma=gamma, cache_size=2000)


def objective(model, cell, X, y):
    """Return the objective of the SVM or the LDA at the fitted w, with the best intercept."""
    if cell["task"] in ("growth", "first"):
        return None
    if cell["task"] == "search":
        return model.objective
    if cell["task"] == "programs":
        return model.fits_[0].objective
    if cell["task"] == "classes":
        own = type(model).__name__ == "SVM"
        return sum(fit.objective for fit in model.fits_) if own else None
    if cell["task"] == "lda":
        scores = X @ np.ravel(model.coef_)
        x, y = scores[y > 0], scores[y < 0]
        return float(np.sqrt(x.var() + y.var()) / abs(x.mean() - y.mean()))
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


def peak_mb():
    """Return the peak memory of this process, without the peak of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return ""
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def measure(cell, contender, path):
    """Print the measurements of one fit; this process runs no other fit than the warm-up."""
    warnings.simplefilter("ignore")
    with open(path, "rb") as file:
        X, y, rows = pickle.load(file)
    if cell["task"] != "first":
        few = np.unique(y, return_index=True)[1]
        few = np.union1d(few, np.arange(min(len(y), WARM_UP_ROWS)))
        estimator(cell, contender).fit(X[few], y[few])
    model, start = estimator(cell, contender), time.process_time()
    model.fit(X, y)
    found = {"seconds": time.process_time() - start, "memory_mb": peak_mb()}
    if hasattr(model, "fits_"):
        found["status"] = " ".join(sorted({str(fit.status) for fit in model.fits_}))
    if cell["task"] == "classes":
        for n in (1, 10000):
            model.predict(rows[:1])
            start = time.process_time()
            model.predict(rows[:n])
            found[f"predict_{n}"] = time.process_time() - start
    print(json.dumps(found | {"objective": objective(model, cell, X, y)}))


def measured(cell, contender, folder, options):
    """Return the figures of one process, or its failure as the status.

    `folder` holds the rows in the file ``rows``.
    """
    one = json.dumps([cell, contender, str(folder / "rows")])
    command = [sys.executable, __file__, "--one", one]
    environment = {**os.environ, **dict.fromkeys(THREADS, "1")}
    limit = {"timeout": 3 * options.seconds + 60, "capture_output": True, "text": True}
    if cell["task"] == "first":
        environment["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(dir=folder)
    try:
        done = subprocess.run(command, env=environment, check=True, **limit)
    except subprocess.TimeoutExpired:
        return {"seconds": np.inf, "status": "time limit"}
    except subprocess.CalledProcessError as error:
        return {"seconds": np.inf, "status": (error.stderr.strip() or "killed").split("\n")[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def best(runs):
    """Return the run with the least CPU time, with the least times of all predictions."""
    found = dict(min(runs, key=lambda run: run["seconds"]))
    for name in PREDICTIONS:
        if name in found:
            found[name] = min(run.get(name, np.inf) for run in runs)
    found["spread"] = max(run["seconds"] for run in runs) / found["seconds"]
    found["repeats"] = len(runs)
    return found


def compared(cell, names, options, before):
    """Return one row per contender; `before` holds the last n and seconds of each, and is updated.

    A contender is left out if its time, extrapolated from `before`, exceeds the limit.
    """
    settings = tuple(value for name, value in cell.items() if name != "n")

    def fits_in(name):
        n, seconds = before.get((name, *settings), (cell["n"], 0.0))
        return seconds * (cell["n"] / n) ** 2 <= options.seconds

    module = {name: PACKAGES.get(name, ("mmbench", "mmbench"))[0] for name in names}
    runs = {name: [] for name in names if find_spec(module[name]) and fits_in(name)}
    data = problem(cell, options.mirror)
    cell = cell | dict(zip("nd", data[0].shape, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/rows", "wb") as file:
            pickle.dump(data, file)
        for _, name in itertools.product(range(options.repeats), list(runs)):
            if all(np.isfinite(run["seconds"]) for run in runs[name]):
                runs[name].append(measured(cell, name, Path(folder), options))
    figures = {name: best(run) for name, run in runs.items()}
    before |= {(name, *settings): (cell["n"], row["seconds"]) for name, row in figures.items()}
    known = [row["objective"] for row in figures.values() if row.get("objective")]
    first = runs.get("svm" if cell["task"] == "growth" else "mmbench", [])
    least = min((run["seconds"] for run in first), default=np.inf)
    rows = []
    for name, row in figures.items():
        if np.isinf(row["seconds"]):
            row |= {"seconds": "", "spread": ""}
        elif np.isfinite(least):
            row["ratio"] = row["seconds"] / least
            for start, field in (("ratio", "seconds"), *((name, name) for name in PREDICTIONS)):
                if field in row:
                    row |= extremes(start, field, runs[name], first)
        if row.get("objective"):
            row["excess"] = (row["objective"] - min(known)) / max(abs(min(known)), 1e-12)
        row |= {"version": version_of(name), "processor": processor()}
        rows.append(cell | {"contender": name} | row)
    return rows


def extremes(start, field, runs, others):
    """Return the least and the largest ratio of two times of the same repeat."""
    pairs = zip(runs, others, strict=False)  # a contender that fails has fewer runs
    ratios = np.array([own.get(field, np.inf) / other[field] for own, other in pairs])
    ratios = ratios[np.isfinite(ratios) & (ratios > 0)]
    return {f"{start}_low": float(ratios.min()), f"{start}_high": float(ratios.max())}


def version_of(contender):
    """Return the name and version of a contender's package."""
    if contender not in PACKAGES:
        return f"mmbench {mmbench.__version__}"
    package = PACKAGES[contender][1]
    return f"{package} {metadata.version(package)}"


def processor():
    """Return the name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def text_of(value):
    """Return a number as text with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else value


def key_of(row):
    """Return the problem and the contender of a row."""
    return tuple(str(row[name]) for name in FIELDS[:8])


def main():
    tasks = ("kernel", "classes", "linear", "lda", "programs", "search", "growth", "first")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tasks", nargs="*", choices=tasks, default=tasks)
    parser.add_argument("--machines", nargs="*", choices=MACHINES, default=MACHINES)
    parser.add_argument("--data", nargs="*", help="only problems with these data")
    parser.add_argument("--without", nargs="*", default=[], help="contenders that are left out")
    parser.add_argument("--rows", type=int, nargs="*", default=[500, 2000, 8000])
    parser.add_argument("--mirror")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60, help="limit of one fit")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*json.loads(options.one))
        return
    rows, before = {}, {}
    if options.out.exists():
        with options.out.open(newline="") as file:
            rows = {key_of(row): row for row in csv.DictReader(file)}
    options.out.parent.mkdir(exist_ok=True)
    for task, n in itertools.product(options.tasks, options.rows):
        for cell, names in cells(task, n):
            if options.data and cell["data"] not in options.data:
                continue
            names = [name for name in names if machine_of(cell, name) in options.machines]
            names = [name for name in names if name not in options.without]
            for row in compared(cell, names, options, before):
                row = {name: text_of(value) for name, value in row.items()}
                rows[key_of(row)] = row
            with options.out.open("w", newline="") as file:
                table = csv.DictWriter(file, FIELDS, restval="", lineterminator="\n")
                table.writeheader()
                table.writerows(rows.values())
            print(task, cell["data"], cell["machine"], cell["n"], len(rows), flush=True)


if __name__ == "__main__":
    main()
