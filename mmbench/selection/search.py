"""Grid search in which the unit of work is a pair of classes and a kernel width.

A generic grid search refits from raw features at every point and fold. Here one Gram matrix per
width serves every fold and every other axis of the grid, and trainings that differ in C alone
start from one another. The scores are those of the plain search: tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.machines.base import PairwiseClassifier, pair_rows
from mmbench.machines.joint_training import JointClassifier
from mmbench.machines.voting import class_pairs, resolve_votes
from mmbench.selection.folds import inner_splits
from mmbench.selection.grid import (
    Point,
    best_point,
    grid_points,
    group_by_kernel,
    kernel_part,
    staged,
    without_kernel,
)
from mmbench.selection.joint import joint_scores
from mmbench.selection.views import Base, LinearView, PairView, SharedView, View, can_share

Splits = list[tuple[NDArray, NDArray]]
Pairs = list[tuple[int, int]]
PairBlocks = Iterator[tuple[list[int], View]]
Signs = list[tuple[list[int], list[NDArray]]]


class Fold(NamedTuple):
    """Rows to train on with their signs, and rows to decide on."""

    train: NDArray
    signs: NDArray
    held: NDArray

    @property
    def both(self) -> bool:
        """Whether both classes are there to train on."""
        return bool((self.signs != self.signs[0]).any())


@dataclass(frozen=True)
class Selection:
    """What a search found.

    Attributes
    ----------
    params : dict or list of dict
        The chosen grid point; for scope "pair" one a pair, in the order of `class_pairs`.
    scores : list of dict
        Every grid point tried with its mean validation accuracy ("score") and its standard
        deviation over the inner splits ("sd"). For scope "pair" the mean over pairs.
    best_score : float
        Mean validation accuracy of the choice (the mean over pairs for scope "pair").
    """

    params: Point | list[Point]
    scores: list[dict[str, Any]] = field(repr=False)
    best_score: float

    @property
    def n_points(self) -> int:
        """Number of grid points searched."""
        return len(self.scores)


def select(
    machine: PairwiseClassifier,
    X: NDArray,
    y: NDArray,
    grid: Mapping[str, Sequence[Any]],
    *,
    folds: int | None = 5,
    split: float | None = None,
    repeats: int = 1,
    scope: str = "global",
    prefer: Mapping[str, str] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    n_train: int | None = None,
    pair_params: Sequence[Point] | None = None,
    tol: float | None = None,
) -> Selection:
    """Choose the grid point with the best accuracy on rows that were not trained on.

    Parameters
    ----------
    machine : PairwiseClassifier
        Carries the parameters that are not searched.
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    grid : mapping of str to sequence
        Values per parameter. A machine with `stages` is searched on one part after the other.
    folds : int or None, default=5
        Folds of the cross-validation.
    split : float, optional
        Share of rows held out, for repeated random splits instead of folds. Where `folds` and
        `split` are both None, the rows after the first `n_train` are held out.
    repeats : int, default=1
        Repetitions of the folds, or number of random splits.
    scope : {"global", "pair"}, default="global"
        One choice by the accuracy of the whole one-vs-one classifier, or one per pair of classes
        by the accuracy of its binary machine on that pair.
    prefer : mapping of str to {"small", "large", "near_one"}, optional
        Tie rule, before the machine's own.
    seed : int, default=0
        Of the inner splits.
    n_jobs : int, default=1
        Threads; they share the Gram matrices. Results do not depend on it.
    n_train : int, optional
        Number of training rows, which come first; others are used for validation only. All when
        not given.
    pair_params : sequence of dict, optional
        Parameters fixed per pair beforehand (inherited from another machine's selection).
    tol : float, optional
        Tolerance of the trainings of the search, where it differs from that of the machine.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If the grid is empty or a class has fewer rows than folds.
    """
    parts = [grid_points(part) for part in staged(grid, machine.search_space.stages)]
    if tol is not None:
        machine = machine.with_params({"tol": tol})
    n_train = len(y) if n_train is None else n_train
    classes = np.unique(y[:n_train])
    labels = np.where(np.isin(y, classes), np.searchsorted(classes, y), -1)
    pairs = class_pairs(len(classes))
    fixed = list(pair_params) if pair_params is not None else [{}] * len(pairs)
    rule = {
        **(prefer or {}),
        **{k: v for k, v in machine.search_space.prefer.items() if k not in (prefer or {})},
    }
    X = np.asarray(X, dtype=np.float64)
    if folds is not None or split is not None:
        X, labels = X[:n_train], labels[:n_train]

    def cut(rows: NDArray) -> Splits:
        if folds is None and split is None:
            return [(np.flatnonzero(rows < n_train), np.flatnonzero(rows >= n_train))]
        return inner_splits(labels[rows], folds, split, repeats, seed)

    common: Point = {}
    scores: list[dict[str, Any]] = []
    for points in parts:
        machines = [clone(machine).set_params(**params) for params in fixed]
        if scope == "pair":
            tables = _pair_scores(machines, X, labels, pairs, points, cut, n_train, n_jobs)
        else:
            splits = cut(np.arange(len(labels)))
            tables = [_global_scores(machines, X, labels, pairs, points, splits, n_train, n_jobs)]
        chosen = [best_point(points, table.mean(axis=1), rule) for table in tables]
        best = float(np.mean([t[k].mean() for t, k in zip(tables, chosen, strict=True)]))
        scores += _score_rows([{**common, **point} for point in points], np.mean(tables, axis=0))
        if scope == "pair":
            fixed = [{**given, **points[k]} for given, k in zip(fixed, chosen, strict=True)]
        else:
            common |= points[chosen[0]]
            fixed = [{**given, **points[chosen[0]]} for given in fixed]
    per_pair = scope == "pair" or pair_params is not None
    return Selection(fixed if per_pair else common, scores, best)


def _score_rows(points: list[Point], table: NDArray) -> list[dict[str, Any]]:
    means, deviations = table.mean(axis=1), table.std(axis=1)
    return [
        {**point, "score": float(mean), "sd": float(sd)}
        for point, mean, sd in zip(points, means, deviations, strict=True)
    ]


# -- scope "pair": every pair is a problem of its own ------------------------------------------


def _pair_scores(
    machines: list[PairwiseClassifier],
    X: NDArray,
    labels: NDArray,
    pairs: Pairs,
    points: list[Point],
    cut: Callable[[NDArray], Splits],
    n_train: int,
    n_jobs: int,
) -> list[NDArray]:
    """Return one (n_points, n_splits) array of accuracies a pair."""

    def one(machine: PairwiseClassifier, pair: tuple[int, int]) -> NDArray:
        rows, signs = pair_rows(labels, *pair)
        splits = cut(rows)
        folds = [Fold(train, signs[train], held) for train, held in splits]
        table = np.empty((len(points), len(folds)))
        own = int((rows < n_train).sum())
        for local, members, view in _blocks(machine, X[rows], own, points, X[:n_train]):
            path = [without_kernel(points[k]) for k in members]
            for s, decisions in enumerate(_decisions(local, view, folds, path)):
                truth = signs[folds[s].held] > 0
                table[members, s] = ((decisions >= 0) == truth[:, None]).mean(axis=0)
        return table

    return Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(one)(machine, pair) for machine, pair in zip(machines, pairs, strict=True)
    )


# -- scope "global": the accuracy of the vote of all pairs -------------------------------------


def _global_scores(
    machines: list[PairwiseClassifier],
    X: NDArray,
    labels: NDArray,
    pairs: Pairs,
    points: list[Point],
    splits: Splits,
    n_train: int,
    n_jobs: int,
) -> NDArray:
    """Return the (n_points, n_splits) accuracies of the one-vs-one vote."""
    n_classes = int(labels.max()) + 1
    if isinstance(machines[0], JointClassifier) and n_classes > 2:
        blocks = _shared_blocks(machines[0], X, points, X)
        return joint_scores(blocks, labels, points, splits, n_jobs)
    counts = [np.zeros((len(points), len(held), n_classes), np.int16) for _, held in splits]
    said = _signs_of_pairs(machines, X, labels, pairs, points, splits, n_train, n_jobs)
    for (i, j), found in said:
        for members, signs in found:
            for count, positive in zip(counts, signs, strict=True):
                count[members, :, j] += positive.T
                count[members, :, i] += ~positive.T
    hits = [
        [np.mean(resolve_votes(votes) == labels[held]) for votes in count]
        for count, (_, held) in zip(counts, splits, strict=True)
    ]
    return np.array(hits).T


def _signs_of_pairs(
    machines: list[PairwiseClassifier],
    X: NDArray,
    labels: NDArray,
    pairs: Pairs,
    points: list[Point],
    splits: Splits,
    n_train: int,
    n_jobs: int,
) -> Iterator[tuple[tuple[int, int], Signs]]:
    """Yield a pair and what its models say, for every pair and grid point.

    The kernel is the outer loop where all pairs read one stored matrix, so that a single one is
    alive; where that matrix is too large, each pair goes through the kernels with its own.
    """
    pool = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    if len(X) == n_train and _can_share_view(machines, X):
        for _, members, view in _shared_blocks(machines[0], X, points, X):
            yield from zip(
                pairs,
                pool(
                    delayed(_pair_signs)(m, labels, pair, splits, points, [(members, view)])
                    for m, pair in zip(machines, pairs, strict=True)
                ),
                strict=True,
            )
        return

    def own_blocks(machine: PairwiseClassifier, pair: tuple[int, int]) -> PairBlocks:
        rows = np.flatnonzero(np.isin(labels[:n_train], pair))
        return _pair_blocks(machine, X, rows, points, X[:n_train])

    yield from zip(
        pairs,
        pool(
            delayed(_pair_signs)(m, labels, pair, splits, points, own_blocks(m, pair))
            for m, pair in zip(machines, pairs, strict=True)
        ),
        strict=True,
    )


def _can_share_view(machines: list[PairwiseClassifier], X: NDArray) -> bool:
    kernels = {machine.kernel_for(X) for machine in machines}
    name, single = machines[0].kernel, machines[0].search_space.single_precision
    return len(kernels) == 1 and (name == "linear" or can_share(len(X), name, single))


def _pair_signs(
    machine: PairwiseClassifier,
    labels: NDArray,
    pair: tuple[int, int],
    splits: Splits,
    points: list[Point],
    blocks: Iterable[tuple[list[int], View]],
) -> Signs:
    """Return, per block of grid points and split, which held-out rows are called positive.

    The held-out rows are those of all classes: every pair votes on every row.
    """
    sign_of = np.where(labels == pair[1], 1.0, np.where(labels == pair[0], -1.0, 0.0))
    folds = []
    for train, held in splits:
        mine = train[sign_of[train] != 0]
        folds.append(Fold(mine, sign_of[mine], held))
    out = []
    for members, view in blocks:
        local = machine.with_params(kernel_part(points[members[0]]))
        path = [without_kernel(points[k]) for k in members]
        out.append((members, [d >= 0 for d in _decisions(local, view, folds, path)]))
    return out


# -- blocks of grid points that share a kernel, and the folds of one pair -----------------------


def _shared_blocks(
    machine: PairwiseClassifier, X: NDArray, points: list[Point], reference: NDArray
) -> Iterator[tuple[PairwiseClassifier, list[int], View]]:
    """Yield (machine, grid points, view) per kernel; one base matrix of `X` serves them all.

    `reference` holds the rows by which ``gamma="scale"`` is set: those of the final fit.
    """
    base = Base(X, machine.search_space.single_precision)
    groups = group_by_kernel(points)
    for g, (kernel_params, members) in enumerate(groups):
        local = machine.with_params(kernel_params)
        kernel = local.kernel_for(reference)
        if kernel.name == "linear":
            yield local, members, LinearView(X, kernel)
        else:
            gram = base.gram(kernel, last=g == len(groups) - 1)
            yield local, members, SharedView(X, kernel, gram)


def _blocks(
    machine: PairwiseClassifier,
    X: NDArray,
    n_train: int,
    points: list[Point],
    reference: NDArray,
) -> Iterator[tuple[PairwiseClassifier, list[int], View]]:
    """Yield (machine, grid points, view) per kernel; values of validation rows are not stored.

    `reference` is that of `_shared_blocks`.
    """
    if len(X) == n_train:
        yield from _shared_blocks(machine, X, points, reference)
        return
    for members, view in _pair_blocks(machine, X, np.arange(n_train), points, reference):
        yield machine.with_params(kernel_part(points[members[0]])), members, view


def _pair_blocks(
    machine: PairwiseClassifier,
    X: NDArray,
    rows: NDArray,
    points: list[Point],
    reference: NDArray,
) -> PairBlocks:
    """Yield (grid points, view) per kernel, with a stored matrix of some rows only."""
    for kernel_params, members in group_by_kernel(points):
        kernel = machine.with_params(kernel_params).kernel_for(reference)
        if kernel.name == "linear":
            yield members, LinearView(X, kernel)
        else:
            yield members, PairView(X, kernel, rows, machine.search_space.single_precision)


def _decisions(
    machine: PairwiseClassifier, view: View, folds: list[Fold], path: list[Point]
) -> list[NDArray]:
    """Train a path on each fold and return its decisions there, shape (n_held, n_points)."""
    problems = (view.problem(fold.train, fold.signs) for fold in folds if fold.both)
    trained = iter(machine.train_folds(problems, path))
    return [
        view.decisions(next(trained), fold.train, fold.held)
        if fold.both
        else np.full((len(fold.held), len(path)), fold.signs[0])
        for fold in folds
    ]
