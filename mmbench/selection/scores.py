"""Accuracies of every grid point on every inner split, of one pair of classes or of the vote.

The kernel is the outer loop where all pairs read one stored matrix, so that a single one is alive;
where that matrix is too large, each pair goes through the kernels with its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mmbench.machines.base import PairwiseClassifier
from mmbench.machines.foreign import ForeignClassifier
from mmbench.machines.joint_training import JointClassifier
from mmbench.machines.voting import pair_rows, resolve_votes
from mmbench.selection.folds import Fold, SearchRows, Splits
from mmbench.selection.foreign import foreign_scores
from mmbench.selection.grid import Point, kernel_part, without_kernel
from mmbench.selection.joint import joint_scores
from mmbench.selection.views import Block, View, can_share, pair_blocks, shared_blocks

Machines = list[PairwiseClassifier]
#: Grid points of one kernel, and which held-out rows of each split they call positive.
Signs = list[tuple[list[int], list[NDArray]]]


def pair_scores(
    machines: Machines, data: SearchRows, points: list[Point], n_jobs: int
) -> list[NDArray]:
    """Return one (n_points, n_splits) array of accuracies a pair, on the rows of that pair.

    Parameters
    ----------
    machines : list of PairwiseClassifier
        One a pair, with the parameters that are not searched.
    data : SearchRows
    points : list of dict
    n_jobs : int
        Threads over pairs.
    """
    return Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_scores_of_pair)(machine, data, points, pair)
        for machine, pair in zip(machines, data.pairs, strict=True)
    )


def _scores_of_pair(
    machine: PairwiseClassifier, data: SearchRows, points: list[Point], pair: tuple[int, int]
) -> NDArray:
    rows, signs = pair_rows(data.labels, *pair)
    folds = [Fold(train, signs[train], held) for train, held in data.splits(rows)]
    table = np.empty((len(points), len(folds)))
    n_own, X = int((rows < data.n_train).sum()), data.X[rows]
    if n_own == len(rows):
        blocks = shared_blocks(machine, X, points, data.X_train)
    else:  # values of rows that only validate are not stored
        blocks = pair_blocks(machine, X, np.arange(n_own), points, data.X_train)
    for members, view in blocks:
        path = [points[k] for k in members]
        for s, decisions in enumerate(_decisions(machine, view, folds, path)):
            truth = signs[folds[s].held] > 0
            table[members, s] = ((decisions >= 0) == truth[:, None]).mean(axis=0)
    return table


def vote_scores(
    machines: Machines, data: SearchRows, points: list[Point], n_jobs: int
) -> list[NDArray]:
    """Return the (n_points, n_splits) accuracies of the one-vs-one vote, in a list.

    Parameters
    ----------
    machines, data, points, n_jobs
        As in `pair_scores`.
    """
    n_classes = int(data.labels.max()) + 1
    splits = data.splits(np.arange(len(data.labels)))
    if isinstance(machines[0], ForeignClassifier):
        return [foreign_scores(machines[0], data, points, splits, n_jobs)]
    if isinstance(machines[0], JointClassifier) and n_classes > 2:
        blocks = shared_blocks(machines[0], data.X, points, data.X)
        return [joint_scores(machines[0], blocks, data.labels, points, splits, n_jobs)]
    counts = [np.zeros((len(points), len(held), n_classes), np.int16) for _, held in splits]
    for (i, j), found in _signs_of_pairs(machines, data, points, splits, n_jobs):
        for members, signs in found:
            for count, positive in zip(counts, signs, strict=True):
                count[members, :, j] += positive.T
                count[members, :, i] += ~positive.T
    hits = [
        [np.mean(resolve_votes(votes) == data.labels[held]) for votes in count]
        for count, (_, held) in zip(counts, splits, strict=True)
    ]
    return [np.array(hits).T]


def _signs_of_pairs(
    machines: Machines, data: SearchRows, points: list[Point], splits: Splits, n_jobs: int
) -> Iterator[tuple[tuple[int, int], Signs]]:
    """Yield a pair and what its models say, for every pair and grid point."""
    pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")

    def signs(blocks: Iterable[Iterable[Block]]) -> Iterator[tuple[tuple[int, int], Signs]]:
        tasks = (
            delayed(_signs_of_pair)(machine, data.labels, pair, splits, points, own)
            for machine, pair, own in zip(machines, data.pairs, blocks, strict=True)
        )
        return zip(data.pairs, pool(tasks), strict=True)

    if len(data.X) == data.n_train and _can_share_view(machines, data.X):
        for block in shared_blocks(machines[0], data.X, points, data.X):
            yield from signs([[block]] * len(machines))
    else:
        rows = (np.flatnonzero(np.isin(data.labels[: data.n_train], pair)) for pair in data.pairs)
        yield from signs(
            pair_blocks(machine, data.X, own, points, data.X_train)
            for machine, own in zip(machines, rows, strict=True)
        )


def _can_share_view(machines: Machines, X: NDArray) -> bool:
    kernels = {machine.kernel_for(X) for machine in machines}
    name, single = machines[0].kernel, machines[0].search_space.single_precision
    return len(kernels) == 1 and (name == "linear" or can_share(len(X), name, single))


def _signs_of_pair(
    machine: PairwiseClassifier,
    labels: NDArray,
    pair: tuple[int, int],
    splits: Splits,
    points: list[Point],
    blocks: Iterable[Block],
) -> Signs:
    """Return, per block of grid points and split, which held-out rows are called positive.

    The held-out rows are those of all classes: every pair votes on every row.
    """
    sign_of = np.where(labels == pair[1], 1.0, np.where(labels == pair[0], -1.0, 0.0))
    folds = []
    for train, held in splits:
        own = train[sign_of[train] != 0]
        folds.append(Fold(own, sign_of[own], held))
    out = []
    for members, view in blocks:
        path = [points[k] for k in members]
        out.append((members, [d >= 0 for d in _decisions(machine, view, folds, path)]))
    return out


def _decisions(
    machine: PairwiseClassifier, view: View, folds: list[Fold], points: list[Point]
) -> list[NDArray]:
    """Train at the points of one kernel on each fold; return decisions, (n_held, n_points)."""
    machine = machine.with_params(kernel_part(points[0]))
    problems = (view.problem(fold.train, fold.signs) for fold in folds if fold.both)
    trained = iter(machine.train_folds(problems, [without_kernel(point) for point in points]))
    return [
        view.decisions(next(trained), fold.train, fold.held)
        if fold.both
        else np.full((len(fold.held), len(points)), fold.signs[0])
        for fold in folds
    ]
