"""Grid search in which the unit of work is a pair of classes and a kernel width.

A generic grid search refits from raw features at every point and fold. Here one Gram matrix per
width serves every fold and every other axis of the grid, and trainings that differ in C alone
start from one another. The scores are those of the plain search: tests hold the two together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mmbench.kernels.matrix import is_given
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.selection.folds import InnerSplits, SearchRows
from mmbench.selection.grid import GridPoint, best_point, grid_points, staged
from mmbench.selection.metrics import METRICS, check_selectable
from mmbench.selection.scores import GridScores


@dataclass(frozen=True)
class Selection:
    """The result of a search.

    Attributes
    ----------
    params : dict or list of dict
        The chosen grid point; for scope "pair" one per pair, in the order of `class_pairs`.
    scores : list of dict
        Every grid point with the mean of the metric over the inner splits ("score") and its
        standard deviation ("sd"). For scope "pair" the mean over pairs.
    best_score : float
        The score of the choice, for scope "pair" the mean over pairs.
    """

    params: GridPoint | list[GridPoint]
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
    pair_params: Sequence[GridPoint] | None = None,
    tol: float | None = None,
    stages: Sequence[Sequence[str]] = (),
    metric: str = "accuracy",
    groups: NDArray | None = None,
    ordered: bool = False,
) -> Selection:
    """Choose the grid point that is best on rows that were not trained on.

    Parameters
    ----------
    machine : PairwiseClassifier
        Carries the parameters that are not searched.
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    grid : mapping of str to sequence
        Values per parameter.
    folds : int or None, default=5
        Folds of the cross-validation.
    split : float, optional
        Share of rows held out, for repeated random splits instead of folds. If `folds` and
        `split` are both None, the rows after the first `n_train` are held out.
    repeats : int, default=1
        Repetitions of the folds, or number of random splits.
    scope : {"global", "pair"}, default="global"
        One choice by the score of the whole one-vs-one classifier, or one per pair of classes by
        the score of its binary machine on the pair.
    prefer : mapping of str to {"small", "large", "near_one"}, optional
        Tie rule, before the machine's own.
    seed : int, default=0
        Seed of the inner splits.
    n_jobs : int, default=1
        Threads; they share the Gram matrices. Results do not depend on it.
    n_train : int, optional
        Number of training rows, which come first; others are used for validation only. All when
        not given.
    pair_params : sequence of dict, optional
        Parameters fixed per pair beforehand (inherited from another machine's selection).
    tol : float, optional
        Tolerance of the trainings of the search, by default the machine's.
    stages : sequence of sequences of str, default=()
        Axes that are searched one group after the other, each with the choices of earlier groups
        and the machine's own values of later axes. Axes in no group belong to the first.
    metric : str, default="accuracy"
        The metric to maximise, one of `mmbench.selection.metrics.SELECTABLE`.
    groups : ndarray of shape (n_samples,), optional
        Group of each row: no inner split separates rows of one group.
    ordered : bool, default=False
        Whether rows are in the order of time: rows held out lie after the rows trained on.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If the grid is empty, a class has fewer rows than folds, or the metric has no value on some
        inner split.
    UserError
        If there is no such metric.
    OutOfTime
        If the time that was allowed is up before every training is done.
    """
    check_selectable(metric)
    if is_given(getattr(machine, "kernel", None)):  # a classifier of another kind may have none
        raise ValueError(
            "select takes kernels by name; search with a kernel matrix or function in "
            "scikit-learn's GridSearchCV"
        )
    parts = [grid_points(part) for part in staged(grid, stages)]
    if tol is not None:
        machine = machine.with_params({"tol": tol})
    data = SearchRows(X, y, n_train, InnerSplits(folds, split, repeats, seed, groups, ordered))
    data.plan(sum(map(len, parts)))
    own = machine.search_space.prefer.items()
    rule = {**(prefer or {}), **{k: v for k, v in own if k not in (prefer or {})}}
    given = [dict(params) for params in pair_params or [{}] * len(data.pairs)]
    chosen: GridPoint = {}  # in earlier parts, for all pairs
    scores: list[dict[str, Any]] = []
    for points in parts:
        machines = [clone(machine).set_params(**params) for params in given]
        found = GridScores(data, points, METRICS[metric], n_jobs)
        tables = found.of_pairs(machines) if scope == "pair" else found.of_votes(machines)
        if np.isnan(tables).any():
            raise ValueError(f"{metric} has no value where the rows held out are of one class")
        winners = [best_point(points, table.mean(axis=1), rule) for table in tables]
        best = float(np.mean([t[k].mean() for t, k in zip(tables, winners, strict=True)]))
        scores += _score_rows([{**chosen, **point} for point in points], np.mean(tables, axis=0))
        if scope == "pair":
            given = [{**own, **points[k]} for own, k in zip(given, winners, strict=True)]
        else:
            chosen = {**chosen, **points[winners[0]]}
            given = [{**own, **chosen} for own in given]
    per_pair = scope == "pair" or pair_params is not None
    return Selection(given if per_pair else chosen, scores, best)


def _score_rows(points: list[GridPoint], table: NDArray) -> list[dict[str, Any]]:
    means, deviations = table.mean(axis=1), table.std(axis=1)
    return [
        {**point, "score": float(mean), "sd": float(sd)}
        for point, mean, sd in zip(points, means, deviations, strict=True)
    ]
