"""Scores of classifiers that share nothing: one training a grid point and split."""

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.allowance import delayed
from mmbench.machines.foreign import ForeignClassifier
from mmbench.selection.folds import SearchRows, Splits
from mmbench.selection.grid import Point
from mmbench.selection.metrics import Metric


def foreign_scores(
    machine: ForeignClassifier,
    data: SearchRows,
    points: list[Point],
    splits: Splits,
    metric: Metric,
    n_jobs: int,
) -> NDArray:
    """Return the (n_points, n_splits) values of a metric."""

    def score(point: Point, train: NDArray, held: NDArray) -> float:
        model = clone(machine).set_params(**point).fit(data.X[train], data.labels[train])
        data.count(len(data.pairs))
        truth, X = data.labels[held], data.X[held]
        given = model.predict(X) if metric.source == "predictions" else model.class_scores(X)
        if given is None:
            raise ValueError(
                f"{metric.label} needs class scores, which {type(model).__name__} lacks"
            )
        return metric.compute(truth, given, model.classes_)

    found = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(score)(point, *rows) for point in points for rows in splits
    )
    return np.reshape(found, (len(points), len(splits)))
