"""The function `mmbench.certify`, and the command ``mmbench certify`` for models in files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from mmbench.errors import UserError, check_known, converted
from mmbench.inspect.binary import certificate
from mmbench.inspect.coefficients import Coefficients, problem_of_coefficients
from mmbench.inspect.models import certificates

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["certify"]


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    C: Any = None,
    sample_weight: ArrayLike | None = None,
    **arrays: Unpack[Coefficients],
) -> pd.DataFrame:
    """Measure how close a fitted linear or kernel classifier is to the optimum of its optimization
    problem.

    The call ``certify(model, X, y)`` takes a fitted model, and ``certify(X, y, coef=..., C=...)``
    or ``certify(X, y, dual_coef=..., C=...)`` takes the coefficients of any program.

    Parameters
    ----------
    model : estimator or path
        A fitted SVC, NuSVC, LinearSVC, SGDClassifier, LogisticRegression, Ridge or RidgeClassifier
        of scikit-learn. Classifiers of other packages with the same attributes are also accepted:
        scikit-learn-intelex, and cuML if there are only two class labels. The argument `model` may
        also be a machine of mmbench, the path of a model file of libsvm or liblinear, or a pipeline
        or grid search that contains one of these classifiers.
    X : array-like of shape (n_samples, n_features)
        Training rows. If the kernel is precomputed, the kernel matrix of the training rows.
    y : array-like of shape (n_samples,)
        Class labels, or the targets of a regression.
    C : float or array-like of shape (n_samples,), optional
        Penalty C, needed if the model does not store C. For a NuSVC or a model file of libsvm, the
        default is the largest dual variable. The largest dual variable equals C if a training row
        violates the margin. With coefficients, C is required, and may be one number per row.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the training rows. A model file of libsvm does not contain class weights. If the
        model in the file was trained with class weights, `sample_weight` must contain the weight of
        each row's class.
    coef : array-like of shape (n_features,), optional
        Weights w of a linear decision function. Positive decision values mean the larger label.
    dual_coef : array-like of shape (n_samples,), optional
        Coefficients u_i of the decision function ``sum_i u_i k(x_i, x) + b``, with 0 for rows that
        are no support vectors. For the hinge loss, ``u_i = a_i y_i`` for the dual variables a_i.
    intercept : float, default=0.0
        Intercept b, with `coef` or `dual_coef`.
    fit_intercept : bool, default=True
        Whether the problem of `coef` or `dual_coef` has an intercept without a penalty. If the
        intercept has a penalty, add a constant column to `X` instead.
    kernel : {"linear", "rbf", "precomputed"} or callable, default="linear"
        Kernel of `dual_coef`. A function takes two sets of rows and returns their kernel matrix.
    gamma : float, optional
        Parameter of the RBF kernel ``exp(-gamma ||x - z||^2)``.
    loss : {"hinge", "squared_hinge", "log_loss", "squared_error"}, default="hinge"
        Loss of `coef` or `dual_coef`, see the notes.

    Returns
    -------
    DataFrame
        One row per binary problem, with these columns:

        ===================  ===================================================================
        ``objective``        primal objective of the model
        ``dual``             dual objective at the dual variables of the model; missing for the
                             hinge loss if the model has no dual variables
        ``violation``        largest violation of a dual constraint by these variables
        ``optimum``          objective of mmbench's solution of the same problem
        ``bound``            lower bound that mmbench's solution proves for the optimal objective
        ``gap``              relative difference between ``objective`` and the larger lower bound:
                             ``bound``, or ``dual`` if the dual variables are feasible
        ``decision_change``  largest absolute difference between the decision values of the model
                             and of mmbench's solution, over the training rows
        ``labels_changed``   number of training rows for which these decision values differ in
                             sign; missing for a regression
        ``n_support``        number of the model's support vectors
        ``status``           status of mmbench's solution; it says nothing about the model
        ===================  ===================================================================

    Raises
    ------
    UserError
        If the model is not fitted, if its objective is unknown or not convex, or if `X` and `y`
        evidently are not the data on which the model was trained.

    Notes
    -----
    The objective is ``1/2 ||w||^2 + sum_i C_i l(y_i, f_i)`` with the decision values f_i and the
    loss ``max(0, 1 - y f)`` (hinge), ``max(0, 1 - y f)^2`` (squared hinge), ``log(1 + exp(-y f))``
    (log loss) or ``(y - f)^2`` (squared error). The objective of Ridge is divided by ``2 alpha``,
    and the objective of SGDClassifier by ``alpha``. LinearSVC, and LogisticRegression with the
    solver liblinear, add the squared intercept to ``||w||^2``. For the smooth losses, the model's
    dual variables are ``-C_i dl/df_i``, scaled such that they are feasible.

    Classifiers of other packages store little about their training data. An error is raised if the
    number of rows, the support vectors or the signs of the dual variables contradict `X` and `y`.
    Models without dual variables, and files of liblinear, contain none of these. With such a model,
    or if only the labels of rows that are no support vectors are wrong, other data than the
    training data are not noticed, and the gap is large.

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
    >>> ridge = [-0.2, 0.1]  # solution of another program for w in two columns
    >>> gap = mmbench.certify(X[:, :2], y, coef=ridge, intercept=0.6, C=1, loss="log_loss").gap[0]
    >>> bool(gap > 0.1)
    True
    """
    import pandas as pd

    known = signature(problem_of_coefficients).parameters.keys() - {"X", "y"}
    for name in sorted(arrays):
        check_known(name, known, "certify has no argument")
    if y is None:
        problem = problem_of_coefficients(model, X, C, sample_weight=sample_weight, **arrays)
        rows = [certificate(problem)]
    elif arrays:
        raise UserError(f"{min(arrays)} is stored in the model; certify(X, y, ...) takes arrays")
    else:
        rows = list(certificates(model, X, y, C, sample_weight))
    for row in rows:
        if not np.isfinite(row["gap"]):
            text = f"the objective of {row['pair']} is {row['objective']:g}"
            text = f"{text}, its lower bound is {row['bound']:g}, and their gap is not finite"
            warnings.warn(f"{text}; scale the data", stacklevel=2)
    return pd.DataFrame(rows)


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
