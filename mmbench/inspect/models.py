"""Fitted models of mmbench and of other packages, as binary problems with their solutions."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack, issparse

from mmbench.errors import UserError, converted, listed
from mmbench.inspect.binary import Binary, certificate, certificate_row
from mmbench.inspect.hyperplanes import dense, kernel_function, pair_coefficients
from mmbench.inspect.losses import LOSSES, Optimum
from mmbench.inspect.model_files import read_model
from mmbench.kernels import Kernel
from mmbench.kernels.matrix import PRECOMPUTED, is_given, is_semidefinite

#: Maximum number of training rows for which a kernel matrix is computed.
MAX_KERNEL_ROWS = 20_000

#: Largest sum of a pair's dual variables, relative to the largest; model files have rounded ones.
BALANCE_TOLERANCE = 1e-2

#: Loss by model class; "" if the model states its loss or has the hinge loss.
KNOWN = dict.fromkeys(["SVC", "NuSVC", "LinearSVC", "SGDClassifier", "SimpleNamespace"], "")
KNOWN |= {"PairwiseClassifier": ""}
KNOWN |= dict.fromkeys(["LogisticRegression", "LogisticRegressionCV"], "log_loss")
RIDGE = ["Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV"]
KNOWN |= dict.fromkeys(RIDGE, "squared_error")

#: Largest relative difference of the stored and the recomputed objective of a machine.
OBJECTIVE_TOLERANCE = 1e-3

#: The same for decisions after a new training: the objective has a quadratic term in w.
DECISION_TOLERANCE = OBJECTIVE_TOLERANCE**0.5

#: Largest difference of a kernel value and its transpose, which may be float32, relative to the
#: largest diagonal element.
SYMMETRY_TOLERANCE = 1e-5

_REMEDY = "give the rows and labels of the training"


def certificates(
    model: Any, X: Any, y: ArrayLike, C: float | None, sample_weight: ArrayLike | None
) -> Iterator[dict[str, Any]]:
    """Yield the certificate of each binary problem of a fitted model or model file."""
    model, rows, labels, weights, rounding = validated(model, X, y, sample_weight)
    kind = next((base.__name__ for base in type(model).__mro__ if base.__name__ in KNOWN), None)
    if kind is None:
        kinds = ", ".join(sorted(KNOWN.keys() - {"SimpleNamespace", "PairwiseClassifier"}))
        problem = f"the objective of {type(model).__name__} is not known; known are {kinds}"
        way = "certify(X, y, coef=..., C=...) takes the arrays of other models"
        raise UserError(f"{problem} and the machines of mmbench; {way}")
    regression = kind in ("Ridge", "RidgeCV")
    for name in ("intercept_",) if regression else ("classes_", "intercept_"):
        if not hasattr(model, name):  # ThunderSVM has no `classes_`, but writes files of libsvm
            raise UserError(f"the model has no attribute {name}; save it as a file of libsvm")
    if not regression:
        _check_labels(model, labels, weights)
    if (trained := getattr(model, "shape_fit_", rows.shape)[0]) < rows.shape[0]:
        raise UserError(f"X has {rows.shape[0]} rows, but the training had {trained}; {_REMEDY}")
    for name in ("coef_", "dual_coef_", "intercept_", "gamma", "coef0", "degree"):
        value = getattr(model, name, None)
        if not (value is None or isinstance(value, str) or np.isfinite(dense(value)).all()):
            raise UserError(f"{name} of the model is not finite")
    stored = _stored_penalty(model, kind, len(labels))
    if C is not None and (not C > 0 or (stored and not np.isclose(stored, C, rtol=1e-9, atol=0))):
        raise UserError(f"C={C:g}: the model stores C={stored:g}" if stored else "C must be > 0")
    if (C := C or stored or None) == np.inf:
        raise UserError("C=inf or alpha=0: only models with a finite penalty are certified")
    if hasattr(model, "fits_") and type(model).__name__ != "SVM":
        yield from _by_reference(model, rows, labels, sample_weight)
        return
    if hasattr(model, "dual_coef_") and hasattr(model, "support_vectors_"):
        problems = _kernel_problems(model, rows, labels, weights, C, rounding)
    else:
        problems = _linear_problems(model, kind, rows, labels, weights, C)
    for k, binary in enumerate(problems):
        row = certificate(binary)
        if hasattr(model, "fits_"):
            _check_fit(model.fits_[k], row["objective"], row["optimum"])
        yield row


def semidefinite_gram(model: Any, X: Any, rows: NDArray, k: int, whose: str) -> NDArray:
    """Return the kernel matrix of the given rows of X, of the model's pair of classes k.

    Raises UserError if the matrix is not symmetric or not positive semidefinite.
    """
    kernel = getattr(model, "kernel", "rbf")
    part = rows if kernel == PRECOMPUTED else X[rows]
    gram = np.asarray(dense(kernel_function(model, X, k)(part, part)), dtype=float)
    if kernel in ("linear", "rbf"):
        return gram
    if gram.shape != 2 * rows.shape or not np.isfinite(gram).all():
        raise UserError(f"the kernel of {whose} gives no square matrix of finite numbers")
    allowed = SYMMETRY_TOLERANCE * np.abs(np.diagonal(gram)).max()
    if any(np.abs(gram[k] - gram[:, k]).max() > allowed for k in range(len(gram))):
        raise UserError(f"the kernel matrix of {whose} is not symmetric")
    if not is_semidefinite(gram):
        problem = f"the kernel matrix of {whose} is not positive semidefinite"
        raise UserError(f"{problem}; the problem is not convex, and has no certificate")
    return gram


def check_size(model: Any, X: Any) -> None:
    """Raise UserError if the kernel matrix of the rows is not square, or too large."""
    if getattr(model, "kernel", "rbf") == PRECOMPUTED and X.shape[0] != X.shape[1]:
        raise UserError(f"X has shape {X.shape}, and the kernel matrix of the rows is square")
    if X.shape[0] > MAX_KERNEL_ROWS:
        raise UserError(f"X has {X.shape[0]} rows; at most {MAX_KERNEL_ROWS} can be certified")


def _check_labels(model: Any, labels: NDArray, weights: NDArray) -> None:
    """Raise UserError if the labels are not the classes of the model."""
    known, found = set(np.asarray(model.classes_).tolist()), set(labels[weights > 0].tolist())
    # Only the machines of mmbench leave out rows of weight 0 before they read the labels. Labels of
    # rows of weight 0 may therefore be unknown to a machine of mmbench.
    given = found if hasattr(model, "fits_") else set(labels.tolist())
    if unknown := sorted({repr(label) for label in given - known}):
        raise UserError(f"y has labels that the model does not know: {listed(unknown)}; {_REMEDY}")
    if lacking := sorted(map(repr, known - found)):
        problem = f"y has no row of the model's classes {listed(lacking)} with a positive weight"
        raise UserError(f"{problem}; {_REMEDY}")


def _stored_penalty(model: Any, kind: str, n: int) -> float | None:
    """Return the penalty C of a model, in the objective ``1/2 ||w||^2 + C sum_i l(y_i, f_i)``.

    None or 0 means that the model does not store its penalty.
    """
    if kind in RIDGE:
        alpha = np.unique(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
        if len(alpha) > 1:
            raise UserError(f"{kind} has several values of alpha; certify one target at a time")
        return 0.5 / float(alpha[0]) if alpha[0] else np.inf
    if hasattr(model, "alpha"):
        return 1 / (model.alpha * n) if model.alpha else np.inf
    if hasattr(model, "C_"):  # of LogisticRegressionCV, one C per class
        return float(np.ravel(model.C_)[0])
    return getattr(model, "C", None)  # a NuSVC stores C = 0, and model files contain no C


def validated(
    model: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Any, Any, NDArray, NDArray, float]:
    """Check the arguments of `certify`; `model` may be None.

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
    """Raise UserError if the objective differs from the stored objective, or if the optimum is
    below the stored bound.
    """
    pair, remedy = f"{fit.pair[0]} / {fit.pair[1]}", f"{_REMEDY} with their weights, and a machine"
    problem = f"the optimum of {pair} was {fit.bound:g} in training and is {optimum:g}"
    near = partial(np.isclose, rtol=OBJECTIVE_TOLERANCE, atol=1e-12)
    if not near(objective, fit.objective):
        problem = f"the objective of {pair} was {fit.objective:g} in training and is {objective:g}"
    elif optimum >= fit.bound or near(optimum, fit.bound):
        return
    reason = "; scale the data if kernel values are large, since rounding errors change objectives"
    raise UserError(f"{problem} here; {remedy} with equal parameters for all pairs{reason}")


def signs(labels: NDArray, classes: Any, positive: Any) -> tuple[NDArray, NDArray]:
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

    classes, ours = np.asarray(model.classes_), hasattr(model, "fits_")
    kernel = getattr(model, "kernel", "rbf")
    # scikit-learn stores nu = 0 in an SVC, and C = 0 in a NuSVC
    is_nu = hasattr(model, "nu") and not getattr(model, "C", 0)
    check_size(model, X)
    if not ours:  # scikit-learn removes rows of weight 0 before it numbers the support vectors
        counted = np.flatnonzero(weights)
        X = X[np.ix_(counted, counted)] if kernel == PRECOMPUTED else X[counted]
        labels, weights = labels[counted], weights[counted]
    support, dual_coef = np.asarray(model.support_), np.asarray(dense(model.dual_coef_))
    wrong = support.max(initial=-1) >= X.shape[0]
    if not wrong and not is_given(kernel):
        near, vectors = dense(X[support]), np.asarray(dense(model.support_vectors_), dtype=float)
        size = rounding * np.abs(vectors).max(initial=0.0)
        wrong = near.shape != vectors.shape or not np.allclose(near, vectors, rtol=1e-6, atol=size)
    if wrong:
        problem = "the rows of X at the indices support_ are not the support vectors of the model"
        raise UserError(f"{problem}; give the training rows in the order of the training")
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
        rows, y = signs(labels, pair, pair[1])
        u = np.zeros(len(labels))
        u[support] = coef
        if is_nu and (u[rows] * y).max() <= 0:
            problem = "nu is too small for a margin, or y differs from the training"
            raise UserError(f"no certificate of {pair[0]} / {pair[1]}: {problem}; {_REMEDY}")
        if not np.isin(labels[support[coef != 0]], pair).all() or (u[rows] * y < 0).any():
            raise UserError(f"the signs of dual_coef_ differ from the signs of y; {_REMEDY}")
        u = u[rows]
        if abs(total := float(u.sum())) > BALANCE_TOLERANCE * np.abs(u).max(initial=0.0):
            problem = f"the dual variables of {pair[0]} / {pair[1]} sum to {total:g}"
            warnings.warn(
                f"{problem}, but after a training to 0; is the model damaged?", stacklevel=2
            )
        gram = semidefinite_gram(model, X, rows, k, f"{pair[0]} / {pair[1]}")
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


def _linear_problems(
    model: Any, kind: str, X: Any, labels: NDArray, weights: NDArray, C: float | None
) -> Iterator[Binary]:
    """Yield the one-vs-one or one-vs-rest problems of a linear model without dual variables."""
    from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

    loss = KNOWN[kind] or getattr(model, "loss", "hinge")
    _check_objective(model, kind, loss)
    coef = np.atleast_2d(np.asarray(dense(model.coef_), dtype=float))
    if coef.shape[1] != X.shape[1]:
        raise UserError(f"X has {X.shape[1]} columns, and the model {coef.shape[1]}")
    intercepts = np.broadcast_to(np.ravel(model.intercept_), len(coef))
    has_intercept = bool(getattr(model, "fit_intercept", True))
    # LinearSVC of scikit-learn penalises its intercept. LinearSVC of cuML penalises its intercept
    # only if `penalized_intercept` is true.
    scaling = getattr(model, "intercept_scaling", getattr(model, "penalized_intercept", 0) or None)
    if getattr(model, "solver", "liblinear") != "liblinear":
        scaling = None
    free = has_intercept and scaling is None
    if C is None:
        raise UserError("the model does not store its penalty C; give it: C=1.0, or --C 1.0")
    if has_intercept and scaling is not None:
        column = np.full((X.shape[0], 1), float(scaling))
        X = csr_array(hstack([X, csr_array(column)])) if issparse(X) else np.hstack([X, column])
        coef, intercepts = np.column_stack([coef, intercepts / scaling]), np.zeros(len(coef))
    if not hasattr(model, "classes_"):
        targets, f, w = labels.astype(float), X @ coef[0] + intercepts[0], coef[0]
        yield Binary(("y",), X, targets, C * weights, f, float(w @ w), None, free, loss)
        return
    classes, ours = np.asarray(model.classes_), hasattr(model, "fits_")
    one_vs_rest = len(classes) > 2 and not ours
    pairs = [("rest", c) for c in classes] if one_vs_rest else list(combinations(classes, 2))
    class_weight: Any = getattr(model, "class_weight", None)
    if kind in RIDGE:  # also the rows of the rest have the weights of their classes
        weights, class_weight = weights * compute_sample_weight(class_weight, labels), None
    elif not ours:
        # With class_weight="balanced", a class weight depends on the size of the class. The size is
        # the sum of the row weights for LinearSVC, and the number of rows for SGDClassifier.
        balanced = {} if hasattr(model, "alpha") else {"sample_weight": weights}
        factors = compute_class_weight(class_weight, classes=classes, y=labels, **balanced)
        class_weight = dict(zip(classes.tolist(), factors, strict=True))
    for pair, w, b in zip(pairs, coef, intercepts, strict=True):
        rows, y = signs(labels, classes if one_vs_rest else pair, pair[1])
        part = X[rows]
        # in a one-vs-rest problem, only the positive class has a class weight
        weighted = (None, pair[1]) if one_vs_rest else pair
        penalties = C * _relative_penalties(weighted, y, weights[rows], class_weight)
        yield Binary(pair, part, y, penalties, part @ w + b, float(w @ w), None, free, loss)


def _check_objective(model: Any, kind: str, loss: str) -> None:
    """Raise UserError if a linear model minimises no sum of a known loss and ``1/2 ||w||^2``."""
    penalty = getattr(model, "penalty", "l2")
    ratio = np.max(getattr(model, "l1_ratio_", getattr(model, "l1_ratio", None)) or 0.0)
    losses = {"SGDClassifier": ("hinge", "squared_hinge", "log_loss")}.get(kind, LOSSES)
    # passive-aggressive steps ("pa1", "pa2") minimise no sum of losses and a penalty
    steps = getattr(model, "learning_rate", None)
    l1 = penalty not in ("l2", "deprecated") or (penalty == "deprecated" and ratio)
    if l1 or loss not in losses or steps in ("pa1", "pa2") or getattr(model, "positive", False):
        kind = loss if kind == "SimpleNamespace" else kind
        known = f"1/2 ||w||^2 and a loss of {', '.join(LOSSES)}"
        raise UserError(f"{kind} minimises another objective than {known}")
    if getattr(model, "early_stopping", False):
        raise UserError("early_stopping=True: the rows held out of the training are not known")
    several = getattr(model, "multi_class", None)
    if kind.startswith("Logistic") and several != "ovr" and model.solver != "liblinear":
        several = "multinomial" if len(model.classes_) > 2 else None
    if several == "multinomial" or several == "crammer_singer":
        way = "certify the models of two classes, as in OneVsRestClassifier(...).estimators_"
        raise UserError(f"the {several} objective of {kind} is not known here; {way}")


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
        rows, _ = signs(labels, fit.pair, fit.pair[1])
        own = {"objective": fit.objective, "dual": fit.bound, "violation": fit.max_violation}
        own["n_support"] = fit.n_support
        optimum = Optimum(g[rows, k], other.objective, other.bound, other.status)
        yield certificate_row(fit.pair, own, fit.bound, f[rows, k], optimum)
