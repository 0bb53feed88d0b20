"""Model files of libsvm and liblinear."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.errors import UserError, converted
from mmbench.inspect.hyperplanes import dense


def read_model(path: Path, X: Any, labels: NDArray) -> SimpleNamespace:
    """Read a model file of libsvm or liblinear as an object with the attributes of a fitted
    scikit-learn estimator.

    A file of libsvm has the support vectors without row indices. They are compared with the rows of
    `X` of the same label to eight significant digits, since older versions of libsvm write only
    eight.
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
        lacks = f"there is no line {error}" if isinstance(error, KeyError) else f"{error!r}"
        raise UserError(f"{problem}: {lacks}") from None


def _liblinear_model(head: dict[str, list[str]], lines: list[str]) -> SimpleNamespace:
    losses = {"L2R_L2LOSS_SVC": "squared_hinge", "L2R_L1LOSS_SVC": "hinge", "L2R_LR": "log_loss"}
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
    rows = dense(X)
    if sizes.sum() != len(lines) or len(sizes) != len(classes):
        raise ValueError(f"{len(lines)} support vectors instead of {sizes.sum()}")
    if len(head["rho"]) != len(classes) * (len(classes) - 1) // 2:
        raise ValueError(f"{len(head['rho'])} values of rho for {len(classes)} classes")
    free: dict[Any, list[int]] = {}
    for row in reversed(range(len(labels))):
        free.setdefault((labels[row], _digits(rows[row])), []).append(row)
    support, n_coef = [], len(classes) - 1
    words = [line.split() for line in lines]
    text = "\n".join(" ".join(["0", *fields[n_coef:]]) for fields in words)
    vectors = read_svmlight(text.encode())[0]
    n, d = vectors.shape
    if d > rows.shape[1]:
        raise UserError(f"a support vector has feature {d}, but X has {rows.shape[1]} columns")
    vectors.resize(n, rows.shape[1])
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
        support_vectors_=rows[support],
        dual_coef_=sign * np.array([fields[:n_coef] for fields in words], dtype=float).T,
        intercept_=-sign * np.array(head["rho"], dtype=float),
        kernel="poly" if kernel == "polynomial" else kernel,
    )


def _digits(row: NDArray) -> tuple[str, ...]:
    """Return the numbers in a row as texts with eight significant digits."""
    return tuple(f"{value:.8g}" for value in row + 0.0)
