"""Transformers of the preprocessing steps.

Imported only when a pipeline is constructed, since scikit-learn takes a second. Functions are at
module level, so that pipelines can be pickled.
"""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)


def halves(X: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the two images of each row: the first and the second half of the row."""
    X = np.asarray(X)
    if X.shape[1] % 2:
        raise ValueError(f"rows of pairs have an even number of columns, not {X.shape[1]}")
    return X[:, : X.shape[1] // 2], X[:, X.shape[1] // 2 :]


class PairPCA(TransformerMixin, BaseEstimator):
    """Principal component analysis of single images, for rows that contain two images.

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
        """Fit the principal components to all images of the rows, two per row."""
        # this solver of PCA is exact and uses no random numbers
        self.pca_ = PCA(self.n_components, svd_solver="covariance_eigh").fit(np.vstack(halves(X)))
        return self

    def transform(self, X: ArrayLike) -> NDArray:
        """Return the components of both images, shape (n_samples, 2 * n_components)."""
        return np.hstack([self.pca_.transform(half) for half in halves(X)])


def pair_features(X: ArrayLike) -> NDArray:
    """Return ``|a - b|`` and the elementwise product ``a * b`` for the images a and b of each row.

    Examples
    --------
    >>> pair_features([[1.0, 2.0, 3.0, -1.0]]).tolist()
    [[2.0, 3.0, 3.0, -2.0]]
    """
    a, b = (half.astype(np.float64) for half in halves(X))
    return np.hstack([np.abs(a - b), a * b])


def transformer(name: str, value: Any, n_categorical: int) -> Any:
    """Return the unfitted transformer of a step for data with `n_categorical` category columns."""
    if name in ON_ALL_COLUMNS:
        return ON_ALL_COLUMNS[name](value)
    if name in ENCODERS:
        on_numbers, on_categories = FunctionTransformer(), ENCODERS[name]()
    else:
        fill = partial(SimpleImputer, keep_empty_features=True)
        on_numbers = fill(strategy=value, add_indicator=name == "impute_indicator")
        on_categories = fill(strategy="most_frequent")
    if not n_categorical:
        return on_numbers
    numbers = partial(columns_of_numbers, n_categorical=n_categorical)
    categories = ("categories", on_categories, slice(-n_categorical, None))
    return ColumnTransformer([("numbers", on_numbers, numbers), categories])


def columns_of_numbers(X: NDArray, n_categorical: int) -> list[int]:
    """Return the indices of the numeric columns, which are the first columns."""
    # the result is a list, since `ColumnTransformer` skips an empty list, but not an empty slice
    return list(range(X.shape[1] - n_categorical))


def square_root(X: ArrayLike) -> NDArray[np.float64]:
    """Return ``sign(X) * sqrt(|X|)`` elementwise."""
    X = np.asarray(X, dtype=np.float64)
    return np.sign(X) * np.sqrt(np.abs(X))


def true_divide(X: NDArray, by: float) -> NDArray[np.float64]:
    """Return ``X / by`` as float64."""
    return X / float(by)


#: Constructors of the transformers that are applied to all columns alike. The keys are step names.
ON_ALL_COLUMNS = {
    "none": lambda _: FunctionTransformer(),
    "standard": lambda _: StandardScaler(),
    "minmax": lambda _: MinMaxScaler(),
    "unit_norm": lambda _: Normalizer("l2"),
    "sqrt": lambda _: FunctionTransformer(square_root),
    # this solver of PCA is exact and uses no random numbers
    "pca": lambda number: PCA(int(number), svd_solver="covariance_eigh"),
    "divide": lambda number: FunctionTransformer(true_divide, kw_args={"by": number}),
    "pair_pca": lambda number: PairPCA(int(number)),
    "pair_features": lambda _: FunctionTransformer(pair_features),
}
#: Constructors of the encoders of categories. The encoders are applied to categorical columns only.
#: A category that does not occur in the training rows is encoded by zeros in ``one_hot`` and by -1
#: in ``ordinal``.
ENCODERS: dict[str, Any] = {
    "one_hot": partial(OneHotEncoder, handle_unknown="ignore", sparse_output=False),
    "ordinal": partial(OrdinalEncoder, handle_unknown="use_encoded_value", unknown_value=-1),
}
