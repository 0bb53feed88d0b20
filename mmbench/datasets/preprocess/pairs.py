"""Preprocessing of rows that hold two images side by side, ``(a, b)``.

A pair is the same pair when its images are exchanged, so each step treats both alike, and the last
one, `pair_features`, gives the same row for (a, b) and (b, a).
"""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA


def halves(X: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the first and the second image of each row.

    Raises
    ------
    ValueError
        If rows have an odd number of columns.
    """
    X = np.asarray(X)
    if X.shape[1] % 2:
        raise ValueError(f"rows of pairs have an even number of columns, not {X.shape[1]}")
    return X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :]


class PairPCA(TransformerMixin, BaseEstimator):
    """Principal components of single images, fitted on both images of the training rows.

    Parameters
    ----------
    n_components : int

    Examples
    --------
    >>> X = np.array([[0.0, 0.0, 2.0, 2.0], [4.0, 4.0, 6.0, 6.0]])
    >>> np.abs(PairPCA(1).fit_transform(X)).round(3).tolist()
    [[4.243, 1.414], [1.414, 4.243]]
    """

    def __init__(self, n_components: int):
        self.n_components = n_components

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Fit on 2 n_samples images."""
        # By the eigenvalues of the covariance matrix: exact, and no random numbers.
        self.pca_ = PCA(self.n_components, svd_solver="covariance_eigh").fit(np.vstack(halves(X)))
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """Return the components of both images, shape (n_samples, 2 n_components)."""
        return np.hstack([self.pca_.transform(half) for half in halves(X)])


def pair_features(X: ArrayLike) -> NDArray:
    """Return ``|a - b|`` and the elementwise product of a and b, side by side.

    Examples
    --------
    >>> pair_features([[1.0, 2.0, 3.0, -1.0]]).tolist()
    [[2.0, 3.0, 3.0, -2.0]]
    """
    a, b = (half.astype(np.float64) for half in halves(X))
    return np.hstack([np.abs(a - b), a * b])
