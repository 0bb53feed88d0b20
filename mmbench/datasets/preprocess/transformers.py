"""The transformer behind each preprocessing step, by the step's name and its argument.

Functions belong to modules, so that fitted pipelines can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from mmbench.datasets.preprocess.pairs import PairPCA, pair_features


def square_root(X: ArrayLike) -> NDArray[np.float64]:
    """Return square roots; a negative value keeps its sign."""
    X = np.asarray(X, dtype=np.float64)
    return np.sign(X) * np.sqrt(np.abs(X))


def true_divide(X: NDArray, by: float) -> NDArray[np.float64]:
    """Divide as float64."""
    return X / float(by)


TRANSFORMERS: dict[str, Callable[[Any], Any]] = {
    "none": lambda _: FunctionTransformer(),
    "standard": lambda _: StandardScaler(),
    "minmax": lambda _: MinMaxScaler(),
    "unit_norm": lambda _: Normalizer("l2"),
    "sqrt": lambda _: FunctionTransformer(square_root),
    # By the eigenvalues of the covariance matrix: exact, and no random numbers.
    "pca": lambda number: PCA(int(number), svd_solver="covariance_eigh"),
    "divide": lambda number: FunctionTransformer(true_divide, kw_args={"by": number}),
    "pair_pca": lambda number: PairPCA(int(number)),
    "pair_features": lambda _: FunctionTransformer(pair_features),
}
