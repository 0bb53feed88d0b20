"""Scores of machines that train all pairs of classes together: the split is the unit of work."""

from collections.abc import Iterable

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from mmbench.allowance import delayed
from mmbench.machines.joint_training import JointClassifier, JointProblem
from mmbench.machines.voting import summed_decisions, votes
from mmbench.selection.folds import SearchRows, Splits
from mmbench.selection.grid import Point, kernel_part, without_kernel
from mmbench.selection.metrics import Metric
from mmbench.selection.views import Block, View


def joint_scores(
    machine: JointClassifier,
    blocks: Iterable[Block],
    data: SearchRows,
    points: list[Point],
    splits: Splits,
    metric: Metric,
    n_jobs: int,
) -> NDArray:
    """Return the (n_points, n_splits) scores of the one-vs-one vote.

    Parameters
    ----------
    machine : JointClassifier
        With the parameters that are not searched.
    blocks : iterable of (list of int, View)
        One a kernel.
    data : SearchRows
    points : list of dict
        The grid.
    splits : list of (ndarray, ndarray)
        Rows to train on and rows to decide on.
    metric : Metric
    n_jobs : int
        Threads over splits.
    """
    table = np.empty((len(points), len(splits)))
    pool = Parallel(n_jobs=n_jobs, prefer="threads")
    for members, view in blocks:
        local = machine.with_params(kernel_part(points[members[0]]))
        path = [without_kernel(points[k]) for k in members]
        columns = pool(
            delayed(_values)(local, view, data, path, train, held, metric) for train, held in splits
        )
        table[members] = np.column_stack(columns)
    return table


def _values(
    machine: JointClassifier,
    view: View,
    data: SearchRows,
    path: list[Point],
    train: NDArray,
    held: NDArray,
    metric: Metric,
) -> NDArray:
    """Return the score on the rows held out at each point of a path."""
    labels = data.labels
    present, own = np.unique(labels[train], return_inverse=True)
    if len(present) == 1:
        nothing = np.zeros((len(held), 1))
        return np.full(len(path), metric.of_votes(labels[held], nothing, nothing, present))
    problem = JointProblem(view.problem(train, np.ones(len(train))), own)
    decided = (view.decisions(m, train, held) for m in machine.train_jointly(problem, path))
    found = np.array([_value(metric, labels[held], values, present) for values in decided])
    data.count(len(path) * len(data.pairs))
    return found


def _value(metric: Metric, truth: NDArray, decisions: NDArray, classes: NDArray) -> float:
    n = len(classes)
    counts, confidence = votes(decisions, n), summed_decisions(decisions, n)
    return metric.of_votes(truth, counts, confidence, classes)
