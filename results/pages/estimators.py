"""Classifiers for readings (see `readings.py`) that mmbench's machines do not provide.

The configuration of a reading names its classifier by
``estimator: results.pages.estimators.CLASS``. `mmbench run` then imports the class from the root of
the repository.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.utils.validation import check_is_fitted, validate_data

from mmbench.machines import MPM, SVM
from mmbench.machines.fsvm.fsvm import within_scatter
from mmbench.solvers.cones import ConeProgram, solve_socp

#: Constant that the authors' code of the F-SVM adds to eigenvalues and to diagonals of matrices.
EPSILON = 1e-5


class TwoClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of two classes with the decision ``w'x + b``; subclasses compute w and b."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Any:
        """Fit w and b to rows X of shape (n_samples, n_features) and labels y."""
        X, y = validate_data(self, X, y, dtype=float)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(f"{type(self).__name__}: {len(self.classes_)} classes, two are needed")
        self.coef_, self.intercept_ = self._train(X, 2.0 * codes - 1.0)
        return self

    def decision_function(self, X: ArrayLike) -> NDArray:
        """Return ``w'x + b`` of each row of X, shape (n_samples,)."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=float, reset=False) @ self.coef_ + self.intercept_

    def predict(self, X: ArrayLike) -> NDArray:
        """Return the label of each row of X, shape (n_samples,)."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _train(self, X: NDArray, t: NDArray) -> tuple[NDArray, float]:
        raise NotImplementedError


class AbsoluteRidgeMPM(TwoClassifier):
    """Linear minimax probability machine (MPM) with an absolute ridge.

    The covariance matrix Sc of class c is replaced by ``Sc + ridge I``. The MPM of mmbench uses a
    relative ridge instead: ``Sc + ridge tr(Sc)/d I`` for d features.
    """

    def __init__(self, ridge: float = 1e-2):
        self.ridge = ridge

    def _train(self, X: NDArray, t: NDArray) -> tuple[NDArray, float]:
        # 2 d rows per class whose mean and covariance matrix are m_c and Sc + ridge I
        n_features = X.shape[1]
        steps = [
            sign * np.sqrt(n_features) * root
            for root in _roots(X, t, self.ridge)
            for sign in (1, -1)
        ]
        means = np.repeat([X[t == side].mean(axis=0) for side in (1, -1)], 2 * n_features, axis=0)
        machine = MPM(ridge=0.0).fit(means + np.vstack(steps), np.repeat([1, -1], 2 * n_features))
        return machine.coef_[0], float(machine.intercept_[0])


class AbsoluteRidgeM4(TwoClassifier):
    """Linear maxi-min margin machine (M4) with an absolute ridge and the normalization "margin".

    The covariance matrix Sc of class c is replaced by ``Sc + ridge I``.
    """

    def __init__(self, C: float = 1.0, ridge: float = 1e-2):
        self.C = C
        self.ridge = ridge

    def _train(self, X: NDArray, t: NDArray) -> tuple[NDArray, float]:
        # variables w, sx, sy, b, xi: t_i (w'x_i + b) + xi_i >= 1, xi_i >= 0, ||L'w|| <= sx and sy
        (n, d), one = X.shape, [[-1.0]]
        roots, slacks = _roots(X, t, self.ridge), -sparse.eye_array(n)
        blocks = [
            [-t[:, None] * X, None, None, -t[:, None], slacks],
            [None, None, None, None, slacks],
            [None, one, None, None, None],
            [-roots[0], None, None, None, None],
            [None, None, one, None, None],
            [-roots[1], None, None, None, None],
        ]
        G = sparse.block_array(blocks, format="csc")
        h = np.append(np.full(n, -1.0), np.zeros(G.shape[0] - n))
        cost = np.r_[np.zeros(d), 1.0, 1.0, 0.0, np.full(n, self.C)]
        A, cones = sparse.csc_array(np.zeros((0, len(cost)))), (d + 1, d + 1)
        found = solve_socp(ConeProgram(cost, A, np.zeros(0), G, h, 2 * n, cones))
        gap = abs(found.value - found.bound) / max(1.0, abs(found.value))
        if max(gap, found.violation) > 1e-6:
            reached = f"gap {gap:.1e}, violation {found.violation:.1e}"
            raise RuntimeError(f"{reached}, status {found.status}")
        return found.x[:d], float(found.x[d + 2])


def _roots(X: NDArray, t: NDArray, ridge: float) -> list[NDArray]:
    """Return the transposed Cholesky factor L' of ``Sc + ridge I = L L'`` for both classes."""
    return [
        np.linalg.cholesky(
            np.cov(X[t == side], rowvar=False, bias=True) + ridge * np.eye(X.shape[1])
        ).T
        for side in (1, -1)
    ]


class ReleasedFSVM(TwoClassifier):
    """F-SVM with a linear kernel, by the steps of the code that the authors released in 2018.

    Like algorithm 1 of the paper, the code alternates between an SVM and a gradient step of the
    matrix M. The code differs from algorithm 1 in these points:

    - After each step of M, the transformation of the rows is ``L = diag(eigenvalues of M) U'``. The
      columns of U are the eigenvectors of the first scatter matrix S.
    - In the step of M, w is scaled to length one. With ``scatter="total"``, the entries of the
      first w are standardised instead.
    - The k-th step of M has the length 0.1 0.9^k (k = 0, 1, ...); there is no line search.
    - The alternation ends after 15 rounds, or if the objective does not decrease by more than 1e-3.

    With ``scatter="total"``, S is first the scatter matrix of all rows, and after each step the
    scatter matrix of the transformed rows. With ``scatter="within"``, S is the matrix of the
    F-SVM of mmbench with the same parameter.

    C is selected as in the released code, by five-fold cross-validation of an SVM with the kernel
    ``exp(-||x - z||^2 / d)`` on semi-whitened rows with d features. The smallest C with the highest
    accuracy is taken.
    """

    def __init__(self, rho: float = 1.0, scatter: str = "total"):
        self.rho = rho
        self.scatter = scatter

    def _train(self, X: NDArray, t: NDArray) -> tuple[NDArray, float]:
        self.C_ = _chosen_C(X.tobytes(), t.tobytes(), X.shape)
        total = self.scatter == "total"
        S = np.cov(X, rowvar=False, bias=True) if total else within_scatter(X, t)
        values, U = np.linalg.eigh(S)
        M = (U * ((values + EPSILON) * self.rho) ** -0.5) @ U.T
        U, eye = U[:, ::-1], EPSILON * np.eye(len(S))  # in decreasing order of the eigenvalues
        w = self._svm(X, t)[0]
        penalty = self.rho / np.linalg.norm(w)
        if total:
            w = (w - w.mean()) / np.std(w, ddof=1)
        else:
            w /= np.linalg.norm(w)
        step, before = 0.1, np.inf
        for _ in range(15):
            inverse = np.linalg.inv(M)
            M = M - step * (penalty * S - 0.5 * inverse @ (np.outer(w, w) + eye) @ inverse) + eye
            M = 0.5 * (M + M.T)
            eigenvalues, vectors = np.linalg.eigh(M)
            L = eigenvalues[::-1, None] * U.T
            Z = X @ L.T
            v, b, value = self._svm(Z, t)
            w = L.T @ v
            coef, penalty = w, self.rho / np.linalg.norm(w)
            w = w / np.linalg.norm(w)
            if total:
                objective = 0.5 * abs(float((vectors.T @ w) ** 2 @ (1.0 / eigenvalues)))
                S = np.cov(Z, rowvar=False, bias=True)
            else:
                objective = value + penalty * float(np.trace(S @ M))
            if before - objective <= 1e-3:
                break
            step, before = 0.9 * step, objective
        return coef, b

    def _svm(self, X: NDArray, t: NDArray) -> tuple[NDArray, float, float]:
        machine = SVM(kernel="linear", C=self.C_).fit(X, t)
        return machine.coef_[0].copy(), float(machine.intercept_[0]), machine.fits_[0].objective


@lru_cache(maxsize=4)
def _chosen_C(X: bytes, t: bytes, shape: tuple[int, int]) -> float:
    """Return the smallest C from 2^-10 to 2^20 with the highest cross-validation accuracy, or 1 if
    no accuracy exceeds 55 %. Since bytes are hashable, the cache selects C once for all rho.
    """
    rows, labels = np.frombuffer(X).reshape(shape), np.frombuffer(t)
    values, U = np.linalg.eigh(np.cov(rows, rowvar=False, bias=True))
    whitened = (rows - rows.mean(axis=0)) @ U * (values + EPSILON) ** -0.25
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    best, chosen = 0.55, 1.0
    for exponent in range(-10, 21):
        machine = SVM(kernel="rbf", gamma=1.0 / shape[1], C=2.0**exponent)
        score = float(np.mean(cross_val_score(machine, whitened, labels, cv=folds)))
        if score > best:
            best, chosen = score, 2.0**exponent
    return chosen
