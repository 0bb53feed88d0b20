"""Scores of machines that train all pairs of classes together: the split is the unit of work."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mmbench.machines.joint_training import JointClassifier, JointProblem
from mmbench.machines.voting import resolve_votes, votes
from mmbench.selection.grid import Point, without_kernel
from mmbench.selection.views import View

#: (machine, grid points, view) of one kernel.
Block = tuple[JointClassifier, list[int], View]


def joint_scores(
    blocks: Iterable[Block],
    labels: NDArray,
    points: list[Point],
    splits: list[tuple[NDArray, NDArray]],
    n_jobs: int,
) -> NDArray:
    """Return the (n_points, n_splits) accuracies of the one-vs-one vote.

    Parameters
    ----------
    blocks : iterable of (machine, list of int, View)
        One a kernel.
    labels : ndarray of int of shape (n_samples,)
    points : list of dict
        The grid.
    splits : list of (ndarray, ndarray)
        Rows to train on and rows to decide on.
    n_jobs : int
        Threads over splits.
    """
    table = np.empty((len(points), len(splits)))
    pool = Parallel(n_jobs=n_jobs, prefer="threads")
    for machine, members, view in blocks:
        path = [without_kernel(points[k]) for k in members]
        columns = pool(
            delayed(_accuracies)(machine, view, labels, path, train, held) for train, held in splits
        )
        table[members] = np.column_stack(columns)
    return table


def _accuracies(
    machine: JointClassifier,
    view: View,
    labels: NDArray,
    path: list[Point],
    train: NDArray,
    held: NDArray,
) -> NDArray:
    """Return the accuracy on the rows held out at each point of a path."""
    present, own = np.unique(labels[train], return_inverse=True)
    if len(present) == 1:
        return np.full(len(path), np.mean(labels[held] == present[0]))
    problem = JointProblem(view.problem(train, np.ones(len(train))), own)
    decided = [
        present[resolve_votes(votes(view.decisions(models, train, held), len(present)))]
        for models in machine.train_jointly(problem, path)
    ]
    return np.array([np.mean(labels[held] == one) for one in decided])
