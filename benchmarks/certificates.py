"""Gap and CPU time of SVMs by several packages at their default tolerances, as a CSV table.

    python benchmarks/certificates.py --out benchmarks/results/certificates.csv [--repeats 3]

Data are the two-class problems of the sets inside scikit-learn: breast cancer, wine (the first kind
or not) and digits (odd or even), standardised. Kernels are linear and RBF with gamma "scale".

SVM            mmbench
SVC            scikit-learn (libsvm)
libsvm         libsvm-official, from the model file that it writes
NuSVC          scikit-learn, with the nu for which its optimum is the optimum of the SVM with C
LinearSVC      scikit-learn (liblinear), hinge loss; linear kernel, penalises the intercept
SGDClassifier  scikit-learn, hinge loss, alpha = 1 / (n C); linear kernel

`mmbench.certify` recomputes the gap of each model to the optimum of the problem of this model. One
thread. The first fit of each solver is not measured; the solvers alternate, and the least CPU time
of the repeats counts. `warned` is 1 if the solver warns that it has not converged. A package that
is not installed is left out. docs/certify.md shows the file as tables.
"""

import argparse
import csv
import itertools
import tempfile
import time
import warnings
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, NuSVC
from threadpoolctl import threadpool_limits

import mmbench
from mmbench import SVM
from mmbench.errors import UserError

FIELDS = ("kernel", "data", "n", "d", "C", "solver", "seconds", "spread", "gap", "labels_changed")
FIELDS += ("warned", "version", "processor")
PENALTIES = (1, 30, 1000)


def problems():
    """Yield the name, the standardised rows and the labels of each problem."""
    X, y = load_wine(return_X_y=True)
    yield "wine", scale(X), np.where(y == 0, 1, -1)
    X, y = load_breast_cancer(return_X_y=True)
    yield "breast cancer", scale(X), np.where(y == 1, 1, -1)
    X, y = load_digits(return_X_y=True)
    yield "digits", scale(X), np.where(y % 2 == 1, 1, -1)


def equivalent_nu(X, y, C, kernel):
    """Return the nu for which the NuSVC has the decision of the SVM with C, up to its scale."""
    return np.abs(SVM(C=C, kernel=kernel, tol=1e-9).fit(X, y).dual_coef_).sum() / (len(y) * C)


def train_libsvm(X, y, C, kernel, gamma):
    """Return a model of libsvm; the conversion of the rows is part of the training."""
    from libsvm.svmutil import svm_train

    return svm_train(y, X, f"-q -t {2 if kernel == 'rbf' else 0} -c {C} -g {gamma}")


def solvers(X, y, C, kernel):
    """Return a function that trains a model, by the name of the solver."""
    estimators = {
        "SVM": SVM(C=C, kernel=kernel),
        "SVC": SVC(C=C, kernel=kernel),
        "NuSVC": NuSVC(nu=equivalent_nu(X, y, C, kernel), kernel=kernel),
    }
    if kernel == "linear":
        estimators["LinearSVC"] = LinearSVC(loss="hinge", C=C, random_state=0)
        estimators["SGDClassifier"] = SGDClassifier(alpha=1 / (len(y) * C), random_state=0)
    found = {name: partial(estimator.fit, X, y) for name, estimator in estimators.items()}
    if find_spec("libsvm"):
        gamma = 1 / (X.shape[1] * X.var())
        found["libsvm"] = partial(train_libsvm, X, y, C, kernel, gamma)
    return found


def timed(train):
    """Return CPU seconds, the model, and whether the solver warned; None if the training failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.process_time()
        try:
            model = train()
        except ValueError:  # nu is infeasible
            return None
        seconds = time.process_time() - start
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return seconds, model, warned


def certificate(model, X, y, C):
    """Return the gap of a model and its number of changed labels, missing without certificate."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if type(model).__name__ == "svm_model":
            from libsvm.svmutil import svm_save_model

            path = Path(folder, "model")
            svm_save_model(str(path), model)
            model = path
        try:
            result = mmbench.certify(model, X, y, C=None if isinstance(model, NuSVC) else C)
        except UserError:  # the margin of a NuSVC is not positive
            return "", ""
    return f"{result.gap[0]:.3g}", result.labels_changed[0]


def version_of(solver):
    """Return the name and version of a solver's package."""
    names = {"SVM": "mmbench", "libsvm": "libsvm-official"}
    name = names.get(solver, "scikit-learn")
    return f"{name} {mmbench.__version__ if solver == 'SVM' else metadata.version(name)}"


def rows_of(kernel, name, X, y, C, repeats):
    """Yield one row per solver."""
    from peers import processor

    trainings = solvers(X, y, C, kernel)
    runs = {solver: [] for solver in trainings}
    for _, solver in itertools.product(range(repeats + 1), trainings):
        runs[solver].append(timed(trainings[solver]))
    for solver, found in runs.items():
        if None in found:
            continue
        seconds = [run[0] for run in found[1:]]
        figures = (f"{min(seconds):.3g}", f"{max(seconds) / min(seconds):.3g}")
        gap = certificate(found[-1][1], X, y, C)
        source = (int(found[-1][2]), version_of(solver), processor())
        values = (kernel, name, *X.shape, C, solver, *figures, *gap, *source)
        yield dict(zip(FIELDS, values, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for kernel, problem, C in itertools.product(("linear", "rbf"), problems(), PENALTIES):
            for row in rows_of(kernel, *problem, C, options.repeats):
                table.writerow(row)
                print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
