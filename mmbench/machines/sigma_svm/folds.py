"""Sigma-SVMs of all folds of a search, from one decomposition of the rows of all.

A fold trains on n of the N rows and leaves out the rows h. In coordinates z about the mean of all
rows, in which ``Z'Z`` is diagonal (see `kernel_pca`), the covariance Sigma of those n rows obeys

    (1-D) I + D Sigma = P - (D/n) Z_h' (I + 11'/n) Z_h,    P = (1-D) I + (D/n) Z'Z

so that by Woodbury's formula the kernel (4) of the fold, but for what its bias takes up, is

    B + B_h' S^-1 B_h,    B = Z P^-1 Z',    S = (n/D) (I - 11'/N) - B_hh

with B_h the rows h of B. B serves all folds; what is left for each is a product with its few rows
h. A search wants no more digits than float32 has, and gets no more.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from mmbench.kernels.submatrix import submatrix
from mmbench.machines.kernel_pca import is_flat, spectrum
from mmbench.machines.problem import BinaryModel, BinaryProblem, PartProblem
from mmbench.machines.sigma_svm.train import (
    along_costs,
    centred_gram,
    rounded_gram,
    train_sigma_svm,
    with_gram,
)

#: Folds share a decomposition if each leaves out at most this share of the rows: with more, that of
#: all rows takes longer than those of the folds.
LARGEST_HELD_OUT_SHARE = 0.25

#: Largest eigenvalue of ``D Sigma / (1-D)`` for which float32 is enough: along the direction of
#: most variance a coefficient is a difference of decisions, multiplied by as much.
LARGEST_MAGNIFICATION = 1e3


def shared_folds(problems: Sequence[BinaryProblem]) -> list[PartProblem] | None:
    """Return the problems if they are folds of one stored matrix that should share.

    They have most rows in common, and no cheaper decomposition each (see `is_flat`).
    """
    parts = [problem for problem in problems if isinstance(problem, PartProblem)]
    if len(parts) < max(2, len(problems)) or any(map(is_flat, parts)):
        return None
    if any(part.whole is not parts[0].whole for part in parts):
        return None
    n_rows = len(np.unique(np.concatenate([part.rows for part in parts])))
    return (
        parts
        if min(len(part.rows) for part in parts) >= (1 - LARGEST_HELD_OUT_SHARE) * n_rows
        else None
    )


def train_folds(
    parts: Sequence[PartProblem], penalties: Sequence[tuple[float, float]], tol: float
) -> list[list[BinaryModel]]:
    """Train every fold at several (D, C), each D from its smallest C up.

    Parameters
    ----------
    parts : sequence of PartProblem
        Folds of one stored matrix.
    penalties : sequence of (D, C)
    tol : float

    Returns
    -------
    list of list of BinaryModel
        For each fold one a pair of penalties. `state` is the SVM with the kernel (4).
    """
    started = time.perf_counter()
    rows = np.unique(np.concatenate([part.rows for part in parts]))
    whole = parts[0].whole
    gram = whole.values if len(rows) == whole.n else whole.part(rows, rows)
    gram = gram.astype(np.float64, copy=False)
    places = [np.searchsorted(rows, part.rows) for part in parts]
    scatter = spectrum(BinaryProblem(gram, np.ones(len(rows)), parts[0].kernel, gram))
    centred = centred_gram(scatter, gram)
    shared = (time.perf_counter() - started) / (len(penalties) * len(parts))
    shares = np.zeros((len(rows), len(parts)))
    for fold, own in enumerate(places):
        shares[own, fold] = 1 / len(own)
    origins = [column[own] for column, own in zip((gram @ shares).T, places, strict=True)]
    models: list[dict[int, BinaryModel]] = [{} for _ in parts]
    for D in dict(penalties):
        points = {k: C for k, (own, C) in enumerate(penalties) if own == D}
        if D * scatter.variances[0] >= LARGEST_MAGNIFICATION * (1 - D):  # so always at D = 1
            for fold, part in enumerate(parts):
                alone = train_sigma_svm(part, [penalties[k] for k in points], tol=tol)
                models[fold] |= dict(zip(points, alone, strict=True))
            continue
        for n in {len(own) for own in places}:
            inverse = 1 / ((1 - D) + (D * len(rows) / n) * scatter.variances)
            common = rounded_gram(scatter, inverse, centred)
            for fold in (fold for fold, own in enumerate(places) if len(own) == n):
                own, part = places[fold], parts[fold]
                kernel = _of_fold(common, own, D)
                for k, svm in along_costs(with_gram(part, kernel), points, tol=tol):
                    models[fold][k] = _expanded(svm, D, origins[fold], shared)
    return [[fold[k] for k in range(len(penalties))] for fold in models]


def _of_fold(common: NDArray, own: NDArray, D: float) -> NDArray:
    """Return the matrix of (4) for a fold that trains on the rows `own`, from B of all rows."""
    held = np.setdiff1d(np.arange(len(common)), own)
    kernel = submatrix(common, own, own)
    if D == 0 or not len(held):
        return kernel
    scale = len(own) / D
    small = -submatrix(common, held, held).astype(np.float64)
    small -= scale / len(common)
    small[np.diag_indices_from(small)] += scale
    factor = np.linalg.cholesky(small).astype(kernel.dtype)
    across = submatrix(common, own, held).T  # in the order of memory that it is solved in
    half = solve_triangular(factor, across, lower=True, overwrite_b=True, check_finite=False)
    kernel += half.T @ half
    return kernel


def _expanded(svm: BinaryModel, D: float, origin: NDArray, shared: float) -> BinaryModel:
    """Return the machine over the kernel of the data, whose columns have the means `origin`.

    ``((1-D) I + D Sigma) w = Z'u`` and ``Sigma w = Z'(f - mean f) / n`` give the coefficients
    ``(u - D/n (f - mean f)) / (1-D)`` of w, with f the decisions at the rows of Z.
    """
    assert svm.coef is not None
    decisions = svm.state.f
    mean = float(decisions.mean())
    coef = (svm.coef - D / len(origin) * (decisions - mean)) / (1 - D)
    return BinaryModel(
        intercept=mean - float(origin @ coef),
        fit=replace(svm.fit, seconds=svm.fit.seconds + shared),
        coef=coef,
        state=svm,
    )
