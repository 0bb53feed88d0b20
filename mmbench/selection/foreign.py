"""Scores of classifiers that share nothing: one training a grid point and split."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.machines.foreign import ForeignClassifier
from mmbench.selection.folds import SearchRows, Splits
from mmbench.selection.grid import Point


def foreign_scores(
    machine: ForeignClassifier, data: SearchRows, points: list[Point], splits: Splits, n_jobs: int
) -> NDArray:
    """Return the (n_points, n_splits) accuracies."""

    def score(point: Point, train: NDArray, held: NDArray) -> float:
        model = clone(machine).set_params(**point).fit(data.X[train], data.labels[train])
        return float(np.mean(model.predict(data.X[held]) == data.labels[held]))

    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(score)(point, *rows) for point in points for rows in splits
    )
    return np.reshape(found, (len(points), len(splits)))
