"""Scores of classifiers that share nothing: one training a grid point and split.

Scores of machines that train all pairs of classes together: the split is the unit of work.

Scores of every grid point on every inner split, of one pair of classes or of the vote.

The kernel is the outer loop where all pairs read one stored matrix, so that a single one is alive;
where that matrix is too large, each pair goes through the kernels with its own.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.allowance import delayed
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.foreign import ForeignClassifier
from mmbench.machines.base.joint_training import JointClassifier, JointProblem
from mmbench.machines.base.voting import pair_rows, summed_decisions, votes
from mmbench.selection.folds import Fold, SearchRows, Splits
from mmbench.selection.grid import Point, kernel_part, without_kernel
from mmbench.selection.metrics import Metric
from mmbench.selection.views import Block, View, can_share, pair_blocks, shared_blocks


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


Machines = list[PairwiseClassifier]
#: Grid points of one kernel, and their decisions on the held-out rows of each split, (n_held,
#: n_points): whether they are positive, where no more is asked for.
Decided = list[tuple[list[int], list[NDArray]]]


def pair_scores(
    machines: Machines, data: SearchRows, points: list[Point], metric: Metric, n_jobs: int
) -> list[NDArray]:
    """Return one (n_points, n_splits) array of scores a pair, on the rows of that pair.

    Parameters
    ----------
    machines : list of PairwiseClassifier
        One a pair, with the parameters that are not searched.
    data : SearchRows
    points : list of dict
    metric : Metric
    n_jobs : int
        Threads over pairs.
    """
    return Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_scores_of_pair)(machine, data, points, pair, metric)
        for machine, pair in zip(machines, data.pairs, strict=True)
    )


def _scores_of_pair(
    machine: PairwiseClassifier,
    data: SearchRows,
    points: list[Point],
    pair: tuple[int, int],
    metric: Metric,
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
        for s, decisions in enumerate(_decisions(machine, view, folds, path, data)):
            truth = (signs[folds[s].held] > 0).astype(int)
            table[members, s] = [_of_pair(metric, truth, values) for values in decisions.T]
    return table


def _of_pair(metric: Metric, truth: NDArray, decisions: NDArray) -> float:
    values = decisions[:, None]
    return metric.of_votes(truth, votes(values, 2), summed_decisions(values, 2), np.arange(2))


def vote_scores(
    machines: Machines, data: SearchRows, points: list[Point], metric: Metric, n_jobs: int
) -> list[NDArray]:
    """Return the (n_points, n_splits) scores of the one-vs-one vote, in a list.

    Parameters
    ----------
    machines, data, points, metric, n_jobs
        As in `pair_scores`.
    """
    n_classes = int(data.labels.max()) + 1
    splits = data.splits(np.arange(len(data.labels)))
    if isinstance(machines[0], ForeignClassifier):
        return [foreign_scores(machines[0], data, points, splits, metric, n_jobs)]
    if isinstance(machines[0], JointClassifier) and n_classes > 2:
        blocks = shared_blocks(machines[0], data.X, points, data.X)
        return [joint_scores(machines[0], blocks, data, points, splits, metric, n_jobs)]
    ranked = metric.source == "scores"
    counts = [np.zeros((len(points), len(held), n_classes), np.int16) for _, held in splits]
    confidence = [
        np.zeros(count.shape if ranked else (len(points), 0), np.float32) for count in counts
    ]
    for (i, j), found in _decided_by_pairs(machines, data, points, splits, ranked, n_jobs):
        for members, decided in found:
            for count, total, values in zip(counts, confidence, decided, strict=True):
                positive = values >= 0 if ranked else values
                count[members, :, j] += positive.T
                count[members, :, i] += ~positive.T
                if ranked:
                    total[members, :, j] += values.T
                    total[members, :, i] -= values.T
    columns = [
        [
            metric.of_votes(data.labels[held], *point, np.arange(n_classes))
            for point in zip(count, total, strict=True)
        ]
        for count, total, (_, held) in zip(counts, confidence, splits, strict=True)
    ]
    return [np.array(columns).T]


def _decided_by_pairs(
    machines: Machines,
    data: SearchRows,
    points: list[Point],
    splits: Splits,
    ranked: bool,
    n_jobs: int,
) -> Iterator[tuple[tuple[int, int], Decided]]:
    """Yield a pair and what its models say, for every pair and grid point."""
    pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")

    def decided(blocks: Iterable[Iterable[Block]]) -> Iterator[tuple[tuple[int, int], Decided]]:
        tasks = (
            delayed(_decided_by_pair)(machine, data, pair, splits, points, own, ranked)
            for machine, pair, own in zip(machines, data.pairs, blocks, strict=True)
        )
        return zip(data.pairs, pool(tasks), strict=True)

    if data.X.shape[0] == data.n_train and _can_share_view(machines, data.X):
        for block in shared_blocks(machines[0], data.X, points, data.X):
            yield from decided([[block]] * len(machines))
    else:
        rows = (np.flatnonzero(np.isin(data.labels[: data.n_train], pair)) for pair in data.pairs)
        yield from decided(
            pair_blocks(machine, data.X, own, points, data.X_train)
            for machine, own in zip(machines, rows, strict=True)
        )


def _can_share_view(machines: Machines, X: NDArray) -> bool:
    kernels = {machine.kernel_for(X) for machine in machines}
    name, single = machines[0].kernel, machines[0].search_space.single_precision
    return len(kernels) == 1 and (name == "linear" or can_share(X.shape[0], name, single))


def _decided_by_pair(
    machine: PairwiseClassifier,
    data: SearchRows,
    pair: tuple[int, int],
    splits: Splits,
    points: list[Point],
    blocks: Iterable[Block],
    ranked: bool,
) -> Decided:
    """Return, per block of grid points and split, the decisions on held-out rows or their signs.

    The held-out rows are those of all classes: every pair votes on every row.
    """
    labels = data.labels
    sign_of = np.where(labels == pair[1], 1.0, np.where(labels == pair[0], -1.0, 0.0))
    folds = []
    for train, held in splits:
        own = train[sign_of[train] != 0]
        folds.append(Fold(own, sign_of[own], held))
    out = []
    for members, view in blocks:
        path = [points[k] for k in members]
        decisions = _decisions(machine, view, folds, path, data)
        out.append((members, [values if ranked else values >= 0 for values in decisions]))
    return out


def _decisions(
    machine: PairwiseClassifier,
    view: View,
    folds: list[Fold],
    points: list[Point],
    data: SearchRows,
) -> list[NDArray]:
    """Train at the points of one kernel on each fold; return decisions, (n_held, n_points)."""
    machine = machine.with_params(kernel_part(points[0]))
    problems = (view.problem(fold.train, fold.signs) for fold in folds if fold.both)
    trained = iter(machine.train_folds(problems, [without_kernel(point) for point in points]))
    decided = []
    for fold in folds:
        if fold.both:
            decided.append(view.decisions(next(trained), fold.train, fold.held))
        else:
            decided.append(np.full((len(fold.held), len(points)), fold.signs[0]))
        data.count(len(points))
    return decided
