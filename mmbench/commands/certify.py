"""The function `mmbench.certify` recomputes the objective, a lower bound and the constraint
violation of a fitted SVM from the training data.

A binary problem either separates two classes (one-vs-one), or one class from all other classes
(one-vs-rest). For labels y_i = -1 or 1 and penalties C_i, the binary problem has

    primal objective    P(w, b) = 1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i f(x_i))
    decision value      f(x)    = w'phi(x) + b
    dual objective      D(a)    = sum_i a_i - 1/2 ||sum_i a_i y_i phi(x_i)||^2
    dual constraints    0 <= a_i <= C_i,   sum_i a_i y_i = 0

By weak duality, D(a) <= P(w, b) for all feasible dual variables a. The optimal value lies between
D(a) and P(w, b), and differs from these values by at most the duality gap P(w, b) - D(a) (Boyd and
Vandenberghe, Convex Optimization, section 5.5.1). LinearSVC minimises another primal objective: it
adds b^2 to ||w||^2, and may square the losses. The dual objective of LinearSVC differs accordingly.

The objective of a model can be far from the optimal value even if the decision values or the
predicted labels of the model are nearly optimal. The solver libsvm stops if the optimality
conditions are satisfied to within a tolerance. When libsvm stops, the relative duality gap may be
0.9 although all predicted labels agree with the optimal solution.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack, issparse, vstack

from mmbench.errors import Status, UserError, converted, listed
from mmbench.kernels import Kernel
from mmbench.kernels.geometry import kernel_function, pair_coefficients

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["certify"]

#: Maximum number of training rows for which `certify` computes a kernel matrix.
MAX_KERNEL_ROWS = 20_000

#: The dual objective of a model is used as a lower bound if the violation of each dual constraint
#: is at most DUAL_TOLERANCE times the largest penalty C_i.
DUAL_TOLERANCE = 1e-9

#: During a training, the dual variables of a pair sum to 0. `certify` warns if the sum exceeds
#: BALANCE_TOLERANCE times the largest dual variable. Numbers in model files are rounded.
BALANCE_TOLERANCE = 1e-2

#: Names of the model classes that `certify` accepts, in mmbench, scikit-learn and compatible
#: packages. A SimpleNamespace is a model that `read_model` returns.
KNOWN = {"SVC", "NuSVC", "LinearSVC", "SGDClassifier", "SimpleNamespace", "PairwiseClassifier"}

#: Maximum relative difference between the stored objective of a machine of mmbench and the
#: objective recomputed from the training data.
OBJECTIVE_TOLERANCE = 1e-3

#: Maximum difference between the decision values of a machine of mmbench before and after a new
#: training, relative to the largest decision value. The objective contains ``1/2 ||w||^2``, so the
#: difference of two weight vectors is of the order of the square root of the difference of their
#: objectives.
DECISION_TOLERANCE = OBJECTIVE_TOLERANCE**0.5


class Binary(NamedTuple):
    """A binary problem, and the solution that a fitted model contains."""

    #: Labels of the negative class and of the positive class.
    pair: tuple[Any, Any]
    #: Kernel matrix, shape (n, n), for a model with dual variables. Training rows, shape (n, d),
    #: for a model without dual variables.
    X: Any
    #: Labels y_i of the training rows, -1 or 1. Shape (n,).
    y: NDArray
    #: Penalties C_i of the training rows. Shape (n,).
    C: NDArray
    #: Decision values of the model at the training rows. Shape (n,).
    f: NDArray
    #: Squared norm ``||w||^2`` of the model, plus the squared intercept if the intercept is
    #: penalised.
    square: float
    #: Products a_i y_i of the model's dual variables and the labels, shape (n,). None for a model
    #: without dual variables.
    u: NDArray | None = None
    #: Whether the binary problem has an intercept without a penalty.
    free_intercept: bool = True
    squared_loss: bool = False


def certify(
    model: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    C: float | None = None,
    sample_weight: ArrayLike | None = None,
) -> pd.DataFrame:
    """Measure how close a fitted support vector machine is to the optimum of its optimization
    problem.

    Parameters
    ----------
    model : estimator or path
        A fitted SVC, NuSVC, LinearSVC or SGDClassifier (hinge loss) of scikit-learn. Classifiers
        of other packages with the same attributes are also accepted: scikit-learn-intelex, and
        cuML if there are only two class labels. The argument `model` may also be a machine of
        mmbench, the path of a model file of libsvm or liblinear, or a pipeline or grid search that
        contains one of these classifiers.
    X : array-like of shape (n_samples, n_features)
        Training rows. If the model's kernel is precomputed, the kernel matrix of the training rows.
    y : array-like of shape (n_samples,)
        Class labels.
    C : float, optional
        Penalty C, needed if the model does not store C. For a NuSVC or a model file of libsvm, the
        default is the largest dual variable. The largest dual variable equals C if a training row
        violates the margin.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the training rows. A model file of libsvm does not contain class weights. If the
        model in the file was trained with class weights, `sample_weight` must contain the weight of
        each row's class.

    Returns
    -------
    DataFrame
        One row per binary problem. The column ``objective`` is the primal objective of the model.
        The column ``dual`` is the dual objective of the model's dual variables, and ``violation``
        is the largest violation of a dual constraint by these variables. The values ``dual`` and
        ``violation`` are missing for a model without dual variables. The column ``optimum`` is the
        objective of mmbench's solution of the same problem. The column ``bound`` is the lower bound
        that mmbench's solution proves for the optimal objective, and ``status`` is the status of
        this solution. The column ``gap`` is the relative difference between ``objective`` and the
        larger value of ``dual`` and ``bound``. If the dual variables violate a constraint, ``dual``
        is no lower bound, and is not used for ``gap``. The column ``decision_change`` is the
        largest absolute difference, over the training rows, between the decision values of the
        model and of mmbench's solution. The column ``labels_changed`` is the number of training
        rows for which the decision values of the model and of mmbench's solution differ in sign.
        The column ``n_support`` is the number of the model's support vectors.

    Raises
    ------
    UserError
        If the model is not fitted, if its objective is unknown or not convex, or if `X` and `y`
        evidently are not the data on which the model was trained.

    Notes
    -----
    Classifiers of other packages store little about their training data. An error is raised if the
    number of rows, the support vectors or the signs of the dual variables contradict `X` and `y`.
    LinearSVC, SGDClassifier and files of liblinear contain none of these. With such a model, or if
    only the labels of rows that are no support vectors are wrong, other data than the training data
    are not noticed, and the gap is large.

    If the model is a machine of mmbench other than the SVM, the columns ``objective``, ``dual`` and
    ``violation`` contain values that the machine stores: objective, lower bound and largest
    violation. Two further trainings check the stored values. A training with the same parameters
    must reproduce the objective and the decision values. A training with ``solver="reference"``
    computes the columns ``optimum`` and ``bound``.

    Examples
    --------
    >>> import mmbench
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from sklearn.svm import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> result = mmbench.certify(SVC(C=1e3).fit(X, y), X, y)
    >>> bool(result.gap[0] > 1e-3), int(result.labels_changed[0])
    (True, 0)
    """
    import pandas as pd

    model, rows, labels, weights, rounding = _validated(model, X, y, sample_weight)
    if not KNOWN & {base.__name__ for base in type(model).__mro__}:
        kinds = "SVC, NuSVC, LinearSVC, SGDClassifier and the machines of mmbench"
        raise UserError(f"the objective of {type(model).__name__} is not known; known are {kinds}")
    for name in ("classes_", "intercept_"):
        if not hasattr(model, name):  # ThunderSVM has no `classes_`, but writes files of libsvm
            raise UserError(f"the model has no attribute {name}; save it as a file of libsvm")
    known, found = set(np.asarray(model.classes_).tolist()), set(labels[weights > 0].tolist())
    # Only the machines of mmbench leave out rows of weight 0 before they read the labels. Labels of
    # rows of weight 0 may therefore be unknown to a machine of mmbench.
    given = found if hasattr(model, "fits_") else set(labels.tolist())
    if unknown := sorted({repr(label) for label in given - known}):
        raise UserError(f"y has labels that the model does not know: {listed(unknown)}; {_REMEDY}")
    if lacking := sorted(map(repr, known - found)):
        problem = f"y has no row of the model's classes {listed(lacking)} with a positive weight"
        raise UserError(f"{problem}; {_REMEDY}")
    if (trained := getattr(model, "shape_fit_", rows.shape)[0]) < rows.shape[0]:
        raise UserError(f"X has {rows.shape[0]} rows, but the training had {trained}; {_REMEDY}")
    stored = getattr(model, "C", None)  # a NuSVC stores C = 0, and model files contain no C
    if hasattr(model, "alpha"):
        stored = 1 / (model.alpha * len(labels)) if model.alpha else np.inf
    if C is not None and (not C > 0 or (stored and not np.isclose(stored, C, rtol=1e-9, atol=0))):
        raise UserError(f"C={C:g}: the model stores C={stored:g}" if stored else "C must be > 0")
    for name in ("coef_", "dual_coef_", "intercept_", "gamma", "coef0", "degree"):
        value = _dense(getattr(model, name, None))
        if not (value is None or isinstance(value, str) or np.isfinite(value).all()):
            raise UserError(f"{name} of the model is not finite")
    if (C := C or stored or None) == np.inf:
        raise UserError("C=inf or alpha=0: only models with a finite penalty are certified")
    if hasattr(model, "fits_") and type(model).__name__ != "SVM":
        return pd.DataFrame(_by_reference(model, rows, labels, sample_weight))
    if hasattr(model, "dual_coef_") and hasattr(model, "support_vectors_"):
        problems = _kernel_problems(model, rows, labels, weights, C, rounding)
    else:
        problems = _linear_problems(model, rows, labels, weights, C)
    table = []
    for k, binary in enumerate(problems):
        table.append(row := _certificate(binary))
        if not np.isfinite(row["gap"]):
            problem = f"the objective of {row['pair']} is {row['objective']:g}"
            problem = f"{problem}, its lower bound is {row['bound']:g}, and their gap is not finite"
            warnings.warn(f"{problem}; scale the data", stacklevel=2)
        if hasattr(model, "fits_"):
            _check_fit(model.fits_[k], table[k]["objective"], table[k]["optimum"])
    return pd.DataFrame(table)


def _validated(
    model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Any, Any, NDArray, NDArray, float]:
    """Check the arguments of `certify`.

    Returns the fitted classifier, the training rows, labels and row weights, and a bound on the
    rounding errors of the features, relative to the largest feature value.
    """
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import (
        _check_sample_weight,
        check_array,
        check_is_fitted,
        column_or_1d,
    )

    from mmbench.machines.base.estimator import refuse_masks

    rounding = 1e-9
    with converted("", TypeError, ValueError):
        refuse_masks(X, y, sample_weight)
        while isinstance(model, Pipeline) or hasattr(model, "best_estimator_"):
            if hasattr(model, "best_estimator_"):
                model = model.best_estimator_
                continue
            check_is_fitted(model)
            for step in model.get_params().values():
                if hasattr(step, "fit_resample") or type(step).__name__ == "TargetEncoder":
                    problem = f"{type(step).__name__}.transform does not give the training rows"
                    raise ValueError(f"{problem}; give the last step, and its rows and labels")
            if len(model) > 1:  # PCA.transform and fit_transform differ by rounding errors
                X, rounding = model[:-1].transform(X), 1e-5
            model = model[-1]
        names = getattr(model, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns") and list(X.columns) != list(names):
            raise ValueError(f"X needs the columns of the training in this order: {listed(names)}")
        words = X.select_dtypes(exclude=["number", "bool"]) if hasattr(X, "select_dtypes") else ()
        for name in words:
            problem = f"column {name!r} contains categories, and the model encodes no categories"
            raise ValueError(f"{problem}; give the table with categories encoded as in training")
        rows = check_array(X, accept_sparse="csr", dtype=float)
        rows = csr_array(rows) if issparse(rows) else rows
        labels = column_or_1d(y)
        weights = _check_sample_weight(sample_weight, rows, dtype=float, ensure_non_negative=True)
        if hasattr(model, "__sklearn_tags__"):
            check_is_fitted(model)
    if len(labels) != rows.shape[0]:
        raise UserError(f"X has {rows.shape[0]} rows, but y has {len(labels)} labels")
    if isinstance(model, str | Path):
        with suppress(ValueError):  # the labels in model files are numbers
            labels = labels.astype(float)
        # as in scikit-learn, rows of weight 0 are removed before the support vectors are numbered
        rows, labels, weights = (part[weights > 0] for part in (rows, labels, weights))
        model = read_model(Path(model), rows, labels)
    return model, rows, labels, weights, rounding


def _check_fit(fit: Any, objective: float, optimum: float) -> None:
    """Raise UserError if a recomputed objective differs from the objective that the training
    stored, or if the optimum is below the lower bound that the training stored.
    """
    pair, remedy = f"{fit.pair[0]} / {fit.pair[1]}", f"{_REMEDY} with their weights, and a machine"
    problem = f"the optimum of {pair} was {fit.bound:g} in training and is {optimum:g}"
    if not np.isclose(objective, fit.objective, rtol=OBJECTIVE_TOLERANCE, atol=1e-12):
        problem = f"the objective of {pair} was {fit.objective:g} in training and is {objective:g}"
    elif optimum >= fit.bound * (1 - OBJECTIVE_TOLERANCE) - 1e-12:
        return
    reason = "; scale the data if kernel values are large, since rounding errors change objectives"
    raise UserError(f"{problem} here; {remedy} with equal parameters for all pairs{reason}")


def certify_file(
    path: Path,
    data: Path,
    target: str | int | None,
    C: float | None,
    trusted: bool,
    overrides: Iterable[str] = (),
) -> pd.DataFrame:
    """Return the result of `certify` for a model that is stored in a file.

    The strings `overrides` are settings for reading the data, in the form ``KEY=VALUE`` as for
    ``mmbench easy --set``. Files of joblib and pickle are only read if `trusted` is true, since
    reading such a file runs code.
    """
    import pandas as pd

    from mmbench.commands.easy import data_of, experiment_of
    from mmbench.config.read import config_of
    from mmbench.reader.keys import inner_path

    if not path.is_file():
        raise UserError(f"{path}: no such file")
    model: Any = path
    if inner_path(path).suffix in (".joblib", ".pkl", ".pickle"):
        if not trusted:
            raise UserError(f"{path}: reading it runs code stored in it; if trusted, add --trusted")
        import joblib

        # reading a damaged file may raise any exception
        with converted(f"{path}: cannot be read", Exception):
            model = joblib.load(path)
    content = experiment_of(data, target, overrides)
    training = data_of(config_of(content, Path(f"certify {data.name}"), overrides))
    for remark in training.warnings:
        warnings.warn(f"{data}: {remark}", stacklevel=2)
    X: Any = training.X
    names = [*map(str, getattr(model, "feature_names_in_", ()))]
    known = bool(names) and set(names) <= set(training.columns or ())
    if known or training.n_categorical:
        # names of categories instead of their codes, which are in the last columns of X
        own = training.columns
        X = pd.DataFrame(X, columns=sorted(own, key=lambda name: own[name] is not None))
        for name in [name for name in own if own[name] is not None]:
            X[name] = X[name].map(dict(enumerate(own[name] or ())))
        X = X[names if known else list(own)]
    # Labels are compared as texts, since a class of the model may be the value True although the
    # data file contains the text "True".
    classes = {str(label): label for label in np.asarray(getattr(model, "classes_", ())).tolist()}
    return certify(model, X, [classes.get(str(label), label) for label in training.y.tolist()], C=C)


#: A solution that mmbench computed: decision values, objective, lower bound and status.
Optimum = tuple[NDArray, float, float, str]


def _certificate(problem: Binary) -> dict[str, Any]:
    """Return the row of one binary problem in the result of `certify`."""
    y, C, u = problem.y, problem.C, problem.u
    slack = np.maximum(0.0, 1.0 - y * problem.f)
    losses = slack**2 if problem.squared_loss else slack
    model = {"objective": 0.5 * problem.square + float(C @ losses), "dual": np.nan}
    model |= {"violation": np.nan, "n_support": int(np.count_nonzero(slack if u is None else u))}
    own = -np.inf
    if u is not None:
        a = u * y
        violation = max(0.0, float((-a).max()), float((a - C).max()), abs(float(u.sum())))
        model |= {"dual": float(a.sum()) - 0.5 * problem.square, "violation": violation}
        own = model["dual"] if violation <= DUAL_TOLERANCE * float(C.max()) else own
    optimum = _squared(problem) if problem.squared_loss else _optimum(problem)
    return _row(problem.pair, model, own, problem.f, optimum)


def _optimum(problem: Binary) -> Optimum:
    """Solve a binary problem with hinge loss by the SVM of mmbench."""
    from mmbench.machines import SVM

    X, y, C = (problem.X, problem.y, problem.C) if problem.free_intercept else _mirrored(problem)
    if len(present := np.unique(y[C > 0])) == 1:  # only one class has penalties > 0, so w = 0
        return np.full(len(problem.y), present[0]), 0.0, 0.0, Status.TRIVIAL
    kernel = "linear" if problem.u is None else "precomputed"
    machine = SVM(kernel=kernel, C=float(C.max()), tol=1e-6)
    fit = machine.fit(X, y, sample_weight=C / C.max()).fits_[0]
    b = 0.0 if problem.free_intercept else machine.intercept_[0]
    return machine.decision_function(X)[: len(problem.y)] - b, fit.objective, fit.bound, fit.status


def _mirrored(problem: Binary) -> tuple[Any, NDArray, NDArray]:
    """Return the rows x_i and -x_i, with the labels y_i and -y_i and the penalties C_i / 2.

    The mirrored problem has the optimal intercept 0, and therefore the same optimal w as the given
    problem without an intercept.
    """
    # in the mirrored problem, both classes have positive penalties, even if one class of the given
    # problem has none
    X, y, C = problem.X, problem.y, problem.C
    X = csr_array(vstack([X, -X])) if issparse(X) else np.vstack([X, -X])
    return X, np.append(y, -y), np.append(C, C) / 2


def _row(
    pair: tuple[Any, Any], model: dict[str, Any], own: float, f: NDArray, optimum: Optimum
) -> dict[str, Any]:
    """Return the row of one binary problem in the result of `certify`.

    The dict `model` contains the columns that depend only on the model, `f` contains the model's
    decision values, and `own` is the lower bound from the model's dual variables.
    """
    from mmbench.solvers.result import relative_gap

    optimal_f, objective, bound, status = optimum
    return {
        "pair": f"{pair[0]} / {pair[1]}",
        **{name: model[name] for name in ("objective", "dual", "violation")},
        "optimum": objective,
        "bound": bound,
        "gap": max(0.0, relative_gap(model["objective"], max(own, bound))),
        "decision_change": float(np.abs(optimal_f - f).max()),
        "labels_changed": int(np.count_nonzero((optimal_f > 0) != (f > 0))),
        "n_support": model["n_support"],
        "status": str(status),
    }


def _squared(problem: Binary) -> Optimum:
    """Minimise ``1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i w'x_i)^2`` by liblinear's Newton method.

    The lower bound is the dual objective
    ``sum_i a_i - 1/2 ||sum_i a_i y_i x_i||^2 - sum_i a_i^2 / (4 C_i)`` at
    ``a_i = 2 C_i max(0, 1 - y_i w'x_i)``.
    """
    from sklearn.svm import LinearSVC

    from mmbench.solvers.libsvm_ import QUIET

    X, y, C = _mirrored(problem)
    options = {"dual": False, "fit_intercept": False, "tol": 1e-12, "random_state": 0}
    newton = LinearSVC(C=C.max(), max_iter=1000, **options)
    with QUIET:  # the status replaces the warning
        w = newton.fit(X, y, sample_weight=C / C.max()).coef_[0]
    slack = np.maximum(0.0, 1.0 - y * (X @ w))
    # for these dual variables `a`, the sum of a_i^2 / (4 C_i) equals the sum of the losses
    a, losses = 2 * C * slack, float(C @ slack**2)
    v = X.T @ (a * y)
    objective, bound = 0.5 * float(w @ w) + losses, float(a.sum() - 0.5 * v @ v) - losses
    solved = objective - bound <= 1e-6 * objective
    return problem.X @ w, objective, bound, "optimal" if solved else "inaccurate"


def _signs(labels: NDArray, classes: Any, positive: Any) -> tuple[NDArray, NDArray]:
    """Return the indices of the rows that belong to `classes`, and the new labels of these rows.

    The new label is 1 for the class `positive`, and -1 for the other classes.
    """
    rows = np.flatnonzero(np.isin(labels, classes))
    return rows, np.where(labels[rows] == positive, 1.0, -1.0)


def _kernel_problems(
    model: Any, X: Any, labels: NDArray, weights: NDArray, C: float | None, rounding: float
) -> Iterator[Binary]:
    """Yield one binary problem per pair of classes, for a model with dual variables.

    The rows of `X` at the indices `support_` must equal the support vectors, up to `rounding` times
    the largest absolute value of the support vectors.
    """
    from sklearn.utils.class_weight import compute_class_weight

    from mmbench.kernels.matrix import is_given, is_semidefinite

    classes, ours = np.asarray(model.classes_), hasattr(model, "fits_")
    kernel = getattr(model, "kernel", "rbf")
    # scikit-learn stores nu = 0 in an SVC, and C = 0 in a NuSVC
    is_nu = hasattr(model, "nu") and not getattr(model, "C", 0)
    if kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise UserError(f"X has shape {X.shape}, and the kernel matrix of the rows is square")
    if not ours:  # scikit-learn removes rows of weight 0 before it numbers the support vectors
        counted = np.flatnonzero(weights)
        X = X[np.ix_(counted, counted)] if kernel == "precomputed" else X[counted]
        labels, weights = labels[counted], weights[counted]
    support, dual_coef = np.asarray(model.support_), np.asarray(_dense(model.dual_coef_))
    wrong = support.max(initial=-1) >= X.shape[0]
    if not wrong and not is_given(kernel):
        near, vectors = _dense(X[support]), np.asarray(_dense(model.support_vectors_), dtype=float)
        size = rounding * np.abs(vectors).max(initial=0.0)
        wrong = near.shape != vectors.shape or not np.allclose(near, vectors, rtol=1e-6, atol=size)
    if wrong:
        problem = "the rows of X at the indices support_ are not the support vectors of the model"
        raise UserError(f"{problem}; give the training rows in the order of the training")
    if X.shape[0] > MAX_KERNEL_ROWS:
        raise UserError(f"X has {X.shape[0]} rows; at most {MAX_KERNEL_ROWS} can be certified")
    per_class = getattr(model, "class_weight", None)
    if not ours:  # NuSVC ignores class weights
        factors = compute_class_weight(None if is_nu else per_class, classes=classes, y=labels)
        factors = factors if is_nu else getattr(model, "class_weight_", factors)
        per_class = dict(zip(classes.tolist(), factors, strict=True))
    duals = np.abs(dual_coef) / weights[support]
    if isinstance(model, SimpleNamespace) and not is_nu:
        _warn_of_class_weights(model.n_support_, duals)
    largest = 0.0 if is_nu else float(duals.max(initial=0.0))
    for k, (pair, coef, intercept) in enumerate(pair_coefficients(model)):
        rows, y = _signs(labels, pair, pair[1])
        u = np.zeros(len(labels))
        u[support] = coef
        if is_nu and (u[rows] * y).max() <= 0:
            problem = "nu is too small for a margin, or y differs from the training"
            raise UserError(f"no certificate of {pair[0]} / {pair[1]}: {problem}; {_REMEDY}")
        if not np.isin(labels[support[coef != 0]], pair).all() or (u[rows] * y < 0).any():
            raise UserError(f"the signs of dual_coef_ differ from the signs of y; {_REMEDY}")
        u, part = u[rows], rows if kernel == "precomputed" else X[rows]
        if abs(total := float(u.sum())) > BALANCE_TOLERANCE * np.abs(u).max(initial=0.0):
            problem = f"the dual variables of {pair[0]} / {pair[1]} sum to {total:g}"
            warnings.warn(
                f"{problem}, but after a training to 0; is the model damaged?", stacklevel=2
            )
        gram = np.asarray(_dense(kernel_function(model, X, k)(part, part)), dtype=float)
        if not (kernel in ("linear", "rbf") or is_semidefinite(gram)):
            problem = f"the kernel matrix of {pair[0]} / {pair[1]} is not positive semidefinite"
            raise UserError(f"{problem}; the problem is not convex, and has no certificate")
        # a nu-SVM has one margin rho per pair of classes, and the penalty C = 1 / rho
        own_C = C or largest or float((np.abs(u) / weights[rows]).max())
        penalties = own_C * _relative_penalties(pair, y, weights[rows], per_class)
        values = gram @ u
        yield Binary(pair, gram, y, penalties, values + intercept, float(u @ values), u)


def _warn_of_class_weights(n_support: Sequence[int], duals: NDArray) -> None:
    """Warn if the dual variables of a libsvm model seem to have different upper bounds per class.

    If the largest dual variable of a class occurs twice, it is assumed to be the upper bound of the
    class, which is C times the class weight.
    """
    parts = np.split(duals, np.cumsum(n_support)[:-1], axis=1)
    tops = [np.sort(part, axis=None)[-2:] for part in parts]
    bounds = [top[0] for top in tops if len(top) == 2 and top[0] == top[1]]
    if bounds and min(bounds) < (1 - 1e-6) * duals.max():
        warnings.warn(
            f"the largest dual variables of two classes are {min(bounds):g} and {duals.max():g}, "
            "as with class weights, which the file lacks; give them in Python as sample_weight",
            stacklevel=2,
        )


_REMEDY = "give the rows and labels of the training"


def _dense(values: Any) -> Any:
    return values.toarray() if issparse(values) else values


def _linear_problems(
    model: Any, X: Any, labels: NDArray, weights: NDArray, C: float | None
) -> Iterator[Binary]:
    """Yield the one-vs-one or one-vs-rest problems of a linear model without dual variables."""
    from sklearn.utils.class_weight import compute_class_weight

    classes, kind = np.asarray(model.classes_), type(model).__name__
    coef = np.atleast_2d(np.asarray(_dense(model.coef_), dtype=float))
    loss = getattr(model, "loss", "hinge")
    # passive-aggressive steps ("pa1", "pa2") minimise no sum of losses and a penalty
    other = getattr(model, "penalty", "l2") != "l2" or loss not in ("hinge", "squared_hinge")
    if other or getattr(model, "learning_rate", None) in ("pa1", "pa2"):
        kind = loss if kind == "SimpleNamespace" else kind
        raise UserError(f"{kind} minimises another objective than a support vector machine")
    if getattr(model, "early_stopping", False):
        raise UserError("early_stopping=True: the rows held out of the training are not known")
    if coef.shape[1] != X.shape[1]:
        raise UserError(f"X has {X.shape[1]} columns, and the model {coef.shape[1]}")
    if getattr(model, "multi_class", "ovr") != "ovr":
        raise UserError("the objective of multi_class='crammer_singer' is not known here")
    intercepts = np.broadcast_to(np.ravel(model.intercept_), len(coef))
    has_intercept = bool(getattr(model, "fit_intercept", True))
    # LinearSVC of scikit-learn penalises its intercept. LinearSVC of cuML penalises its intercept
    # only if `penalized_intercept` is true.
    scaling = getattr(model, "intercept_scaling", getattr(model, "penalized_intercept", 0) or None)
    free = has_intercept and scaling is None
    if free and loss == "squared_hinge":
        raise UserError("squared losses with a free intercept are not certified")
    if C is None:
        raise UserError("the model does not store its penalty C; give it: C=1.0, or --C 1.0")
    if has_intercept and scaling is not None:
        column = np.full((X.shape[0], 1), float(scaling))
        X = csr_array(hstack([X, csr_array(column)])) if issparse(X) else np.hstack([X, column])
        coef, intercepts = np.column_stack([coef, intercepts / scaling]), np.zeros(len(coef))
    ours = hasattr(model, "fits_")
    one_vs_rest = len(classes) > 2 and not ours
    pairs = [("rest", c) for c in classes] if one_vs_rest else list(combinations(classes, 2))
    class_weight: Any = getattr(model, "class_weight", None)
    if not ours:
        # With class_weight="balanced", a class weight depends on the size of the class. The size is
        # the sum of the row weights for LinearSVC, and the number of rows for SGDClassifier.
        balanced = {} if hasattr(model, "alpha") else {"sample_weight": weights}
        factors = compute_class_weight(class_weight, classes=classes, y=labels, **balanced)
        class_weight = dict(zip(classes.tolist(), factors, strict=True))
    for pair, w, b in zip(pairs, coef, intercepts, strict=True):
        rows, y = _signs(labels, classes if one_vs_rest else pair, pair[1])
        part = X[rows]
        # in a one-vs-rest problem, only the positive class has a class weight
        weighted = (None, pair[1]) if one_vs_rest else pair
        penalties = C * _relative_penalties(weighted, y, weights[rows], class_weight)
        f, square = part @ w + b, float(w @ w)
        yield Binary(pair, part, y, penalties, f, square, None, free, loss == "squared_hinge")


def _relative_penalties(pair: tuple, y: NDArray, weights: NDArray, class_weight: Any) -> NDArray:
    """Return the penalties C_i of the rows of a binary problem, divided by C."""
    from mmbench.machines.base.estimator import row_weights
    from mmbench.machines.base.problem import BinaryProblem

    problem = BinaryProblem(y[:, None], y, Kernel("linear"), classes=pair, weights=weights)
    return np.asarray(row_weights(problem, class_weight))


def _by_reference(
    model: Any, X: Any, labels: NDArray, sample_weight: ArrayLike | None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of the result of `certify` for a machine of mmbench.

    The optimum is computed by the machine's reference solver.
    """
    from sklearn.base import clone

    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    with converted("", TypeError, ValueError):
        again = clone(model).fit(X, labels, **weights)
        for fit, new in zip(model.fits_, again.fits_, strict=True):
            _check_fit(fit, new.objective, new.objective)
        reference = clone(model).set_params(solver="reference").fit(X, labels, **weights)
        f, g, h = (one.pairwise_decision_function(X) for one in (model, reference, again))
    if np.abs(f - h).max() > DECISION_TOLERANCE * np.abs(h).max() + 1e-12:
        problem = "a training with the parameters of the model has other decision values; several"
        problem += " solutions are optimal, coefficients or intercept were changed"
        raise UserError(f"{problem}, or X and y differ from the training data")
    for k, (fit, other) in enumerate(zip(model.fits_, reference.fits_, strict=True)):
        rows, _ = _signs(labels, fit.pair, fit.pair[1])
        own = {"objective": fit.objective, "dual": fit.bound, "violation": fit.max_violation}
        own["n_support"] = fit.n_support
        optimum = g[rows, k], other.objective, other.bound, other.status
        yield _row(fit.pair, own, fit.bound, f[rows, k], optimum)


def read_model(path: Path, X: Any, labels: NDArray) -> SimpleNamespace:
    """Read a model file of libsvm or liblinear as an object with the attributes of a fitted
    scikit-learn estimator.

    A file of libsvm contains the support vectors, but not their row indices. The index of a support
    vector is the index of an equal row of `X` with the same label. A support vector and a row are
    treated as equal if they agree in eight significant digits, since older versions of libsvm write
    only eight digits.
    """
    problem = f"{path}: no model file of libsvm or liblinear"
    # `read_text` raises ValueError if the file is not text, or if the path contains a null
    # character
    with converted(problem, OSError, ValueError):
        lines = path.read_text().splitlines()
    start = next((k for k, line in enumerate(lines) if line.strip() in ("SV", "w")), None)
    head = {words[0]: words[1:] for words in map(str.split, lines[:start]) if words[1:]}
    try:
        if "solver_type" in head:
            return _liblinear_model(head, lines[(start or 0) + 1 :])
        return _libsvm_model(head, lines[(start or 0) + 1 :], X, labels)
    except (KeyError, IndexError, ValueError, OverflowError) as error:
        raise UserError(f"{problem}: {error!r}") from None


def _liblinear_model(head: dict[str, list[str]], lines: list[str]) -> SimpleNamespace:
    losses = {"L2R_L2LOSS_SVC": "squared_hinge", "L2R_L1LOSS_SVC": "hinge"}
    kind, bias = head["solver_type"][0], float(head["bias"][0])
    w = np.array([line.split() for line in lines if line.strip()], dtype=float).T
    if len(w) != (len(head["label"]) if len(head["label"]) > 2 else 1):
        raise ValueError(f"{len(w)} weights per feature for {len(head['label'])} classes")
    if len(head["label"]) == 2:  # liblinear predicts the first of its two labels if w'x is positive
        w = -w
    return SimpleNamespace(
        classes_=np.array(head["label"], dtype=float),
        coef_=w[:, :-1] if bias >= 0 else w,  # the file has a row for the bias even if bias = 0
        intercept_=w[:, -1] * max(bias, 0.0),
        fit_intercept=bias > 0,
        intercept_scaling=bias,
        loss=losses.get(kind.removesuffix("_DUAL"), kind),
    )


def _libsvm_model(
    head: dict[str, list[str]], lines: list[str], X: Any, labels: NDArray
) -> SimpleNamespace:
    from mmbench.reader.file_text import read_svmlight

    if head["svm_type"][0] not in ("c_svc", "nu_svc"):
        raise ValueError(f"svm_type {head['svm_type'][0]}")
    kernel = head["kernel_type"][0]
    if kernel not in ("linear", "polynomial", "rbf", "sigmoid"):
        raise UserError(f"a model file of libsvm with the kernel {kernel} is not certified")
    classes, sizes = np.array(head["label"], dtype=float), np.array(head["nr_sv"], dtype=int)
    dense = _dense(X)
    if sizes.sum() != len(lines) or len(sizes) != len(classes):
        raise ValueError(f"{len(lines)} support vectors instead of {sizes.sum()}")
    if len(head["rho"]) != len(classes) * (len(classes) - 1) // 2:
        raise ValueError(f"{len(head['rho'])} values of rho for {len(classes)} classes")
    free: dict[Any, list[int]] = {}
    for row in reversed(range(len(labels))):
        free.setdefault((labels[row], _digits(dense[row])), []).append(row)
    support, n_coef = [], len(classes) - 1
    words = [line.split() for line in lines]
    text = "\n".join(" ".join(["0", *fields[n_coef:]]) for fields in words)
    vectors = read_svmlight(text.encode())[0]
    n, d = vectors.shape
    if d > dense.shape[1]:
        raise UserError(f"a support vector has feature {d}, but X has {dense.shape[1]} columns")
    vectors.resize(n, dense.shape[1])
    for vector, label in zip(vectors.toarray(), np.repeat(classes, sizes), strict=True):
        if not (found := free.get((label, _digits(vector)))):
            raise UserError(f"a support vector is not a row of X with the label {label:g}")
        support.append(found.pop())
    sign = -1.0 if len(classes) == 2 else 1.0  # for two classes, scikit-learn stores opposite signs
    option: dict[str, Any] = {"gamma": 1.0, "coef0": 0.0, "degree": 3.0}
    option |= {key: float(head[key][0]) for key in option if key in head}
    option |= {"nu": None} if head["svm_type"][0] == "nu_svc" else {}
    return SimpleNamespace(
        **option,
        classes_=classes,
        support_=np.array(support, dtype=int),
        n_support_=sizes,
        support_vectors_=dense[support],
        dual_coef_=sign * np.array([fields[:n_coef] for fields in words], dtype=float).T,
        intercept_=-sign * np.array(head["rho"], dtype=float),
        kernel="poly" if kernel == "polynomial" else kernel,
    )


def _digits(row: NDArray) -> tuple[str, ...]:
    """Return the numbers in a row as texts with eight significant digits."""
    return tuple(f"{value:.8g}" for value in row + 0.0)
