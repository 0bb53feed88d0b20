"""Gaps, changed labels and CPU time of classifiers by several packages at their default tolerances.

    MMBENCH_MIRROR=... python benchmarks/audit_svms.py --out benchmarks/results/audit_svms.csv

Each of `CONTENDERS` is trained on the six two-class problems of `DATA`, standardised, with the five
penalties of `PENALTIES`, and certified by `mmbench.certify`: against the optimum of the problem
that this contender solves. RBF kernels have gamma "scale". The NuSVC has the nu for which its
optimum is the optimum of the SVM with C. Models of libsvm and liblinear are certified from the
files that they write; writing is not measured, the conversion of the rows is.

One thread. The least CPU time of the repeats counts; a fit of more than a second is not repeated.
`warned` is 1 if the package warns that it has not converged. A contender that is not installed is
left out. docs/certify.md shows the file as tables.
"""

import argparse
import csv
import itertools
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

import mmbench
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError

DATA = ("sonar", "ionosphere", "breast_cancer", "german", "digits", "ida_image")
PENALTIES = (0.01, 0.1, 1, 10, 100)
REPEATS = 3
FIELDS = ("kernel", "loss", "data", "n", "d", "C", "solver", "package", "seconds", "objective")
FIELDS += ("gap", "decision_change", "labels_changed", "warned", "processor")


class Problem(NamedTuple):
    """A two-class problem with standardised rows and labels -1 and 1."""

    X: np.ndarray
    y: np.ndarray
    C: float
    kernel: str

    @property
    def gamma(self):
        """The value of scikit-learn's gamma="scale"."""
        return 1 / (self.X.shape[1] * self.X.var())

    @property
    def alpha(self):
        """The weight of the penalty in SGDClassifier."""
        return 1 / (len(self.y) * self.C)


class Contender(NamedTuple):
    """A solver: its package, kernels and loss, and how it is trained and certified.

    `training` returns a function without arguments that trains a model.
    """

    package: str
    kernels: tuple[str, ...]
    loss: str
    training: Callable[[Problem], Callable[[], Any]]
    certify: Callable[[Any, Problem], Any] = lambda model, p: mmbench.certify(model, p.X, p.y)


def estimator(path, **given):
    """Return the trainings of the class at a path; callable arguments take the problem."""

    def training(p):
        module, name = path.rsplit(".", 1)
        options = {key: value(p) if callable(value) else value for key, value in given.items()}
        return partial(getattr(import_module(module), name)(**options).fit, p.X, p.y)

    return training


def file_of(module, options, save):
    """Return the trainings by the Python package of libsvm or liblinear, and a function that
    certifies the file of the model.
    """

    def training(p):
        package = import_module(module)
        train = package.svm_train if save == "svm_save_model" else package.train
        return partial(train, p.y, p.X, options(p))

    def certify(model, p):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model")
            getattr(import_module(module), save)(str(path), model)
            return mmbench.certify(path, p.X, p.y, C=p.C)

    return training, certify


def of_coefficients(model, p):
    """Certify the weights of skglm's LinearSVC, whose problem has no intercept."""
    return mmbench.certify(p.X, p.y, coef=model.coef_, C=p.C, fit_intercept=False)


def equivalent_nu(p):
    """Return the nu for which the NuSVC has the decision of the SVM with C, up to its scale."""
    svm = mmbench.SVM(C=p.C, kernel=p.kernel, tol=1e-9).fit(p.X, p.y)
    return np.abs(svm.dual_coef_).sum() / (len(p.y) * p.C)


C = {"C": lambda p: p.C}
KERNEL = C | {"kernel": lambda p: p.kernel}
NU = {"nu": equivalent_nu, "kernel": lambda p: p.kernel}
SGD = {"alpha": lambda p: p.alpha, "random_state": 0}
BOTH, LINEAR, SKLEARN = ("linear", "rbf"), ("linear",), "scikit-learn"
LIBSVM = file_of(
    "libsvm.svmutil",
    lambda p: f"-q -t {2 if p.kernel == 'rbf' else 0} -c {p.C} -g {p.gamma}",
    "svm_save_model",
)
LIBLINEAR = file_of("liblinear.liblinearutil", lambda p: f"-q -s 3 -B 1 -c {p.C}", "save_model")
LINEAR_SVC, SGD_CLASSIFIER = "sklearn.svm.LinearSVC", "sklearn.linear_model.SGDClassifier"
CONTENDERS = {
    "mmbench SVM": Contender("mmbench", BOTH, "hinge", estimator("mmbench.SVM", **KERNEL)),
    "SVC": Contender(SKLEARN, BOTH, "hinge", estimator("sklearn.svm.SVC", **KERNEL)),
    "NuSVC": Contender(SKLEARN, BOTH, "hinge", estimator("sklearn.svm.NuSVC", **NU)),
    "SVC of Intel": Contender(
        "scikit-learn-intelex", BOTH, "hinge", estimator("sklearnex.svm.SVC", **KERNEL)
    ),
    "libsvm file": Contender("libsvm-official", BOTH, "hinge", *LIBSVM),
    "liblinear file": Contender("liblinear-official", LINEAR, "hinge", *LIBLINEAR),
    "LinearSVC": Contender(
        SKLEARN, LINEAR, "hinge", estimator(LINEAR_SVC, loss="hinge", random_state=0, **C)
    ),
    "skglm LinearSVC": Contender(
        "skglm", LINEAR, "hinge", estimator("skglm.LinearSVC", **C), of_coefficients
    ),
    "SGDClassifier": Contender(SKLEARN, LINEAR, "hinge", estimator(SGD_CLASSIFIER, **SGD)),
    "LinearSVC, squared": Contender(
        SKLEARN, LINEAR, "squared_hinge", estimator(LINEAR_SVC, random_state=0, **C)
    ),
    "LogisticRegression": Contender(
        SKLEARN, LINEAR, "log_loss", estimator("sklearn.linear_model.LogisticRegression", **C)
    ),
    "RidgeClassifier": Contender(
        SKLEARN,
        LINEAR,
        "squared_error",
        estimator("sklearn.linear_model.RidgeClassifier", alpha=lambda p: 0.5 / p.C),
    ),
}


def problems():
    """Yield the name and the problem of each data set, kernel and penalty."""
    mirror = os.environ.get("MMBENCH_MIRROR")
    for name, kernel in itertools.product(DATA, BOTH):
        data = load_dataset(name, store="datasets", mirror=mirror)
        y = np.unique(data.y, return_inverse=True)[1]
        X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
        for penalty in PENALTIES:  # digits: odd or even
            yield name, Problem(scale(X), np.where(y % 2, 1, -1), penalty, kernel)


def timed(train):
    """Return the least CPU seconds of the repeats, the model, and whether its package warned."""
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        while len(seconds) < REPEATS and (not seconds or seconds[-1] < 1):
            start = time.process_time()
            model = train()
            seconds.append(time.process_time() - start)
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return min(seconds), model, warned


def measured(contender, problem):
    """Return the measured columns of a row; None if nu is infeasible or has no certificate."""
    try:
        seconds, model, warned = timed(contender.training(problem))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (row,) = contender.certify(model, problem).itertuples()
    except (ValueError, UserError):
        return None
    numbers = [f"{v:.3g}" for v in (seconds, row.objective, row.gap, row.decision_change)]
    return [*numbers, row.labels_changed, int(warned)]


def installed(package):
    """Return the name and version of a package, or None."""
    if package == "mmbench":
        return f"mmbench {mmbench.__version__}"
    try:
        return f"{package} {metadata.version(package)}"
    except metadata.PackageNotFoundError:
        return None


def rows():
    """Yield one row per problem and contender."""
    from peers import processor

    for name, problem in problems():
        for solver, contender in CONTENDERS.items():
            package = installed(contender.package)
            if problem.kernel not in contender.kernels or package is None:
                continue
            if (found := measured(contender, problem)) is not None:
                place = (problem.kernel, contender.loss, name, *problem.X.shape, problem.C)
                values = (*place, solver, package, *found, processor())
                yield dict(zip(FIELDS, values, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.parent.mkdir(exist_ok=True)
    with options.out.open("w", newline="") as file, threadpool_limits(1):
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        table.writeheader()
        for row in rows():
            table.writerow(row)
            print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
