"""Grid search that computes each kernel matrix only once and uses warm starts along C."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length

from mmbench.kernels.matrix import is_given
from mmbench.machines.base.estimator import PairwiseClassifier
from mmbench.machines.base.search_space import SearchSpace, SelectRef
from mmbench.selection.folds import SearchRows
from mmbench.selection.grid import GridPoint, best_point, grid_points, staged
from mmbench.selection.metrics import METRICS, check_selectable
from mmbench.selection.scores import GridScores


@dataclass(frozen=True)
class Selection:
    """The result of a grid search.

    Attributes
    ----------
    params : list of dict
        The fixed and the selected parameters: a single dict for all pairs of classes; with scope
        "pair", or if fixed parameters differ, one dict per pair, in the order of `class_pairs`.
    scores : list of dict
        All grid points, each with the mean ("score") and the standard deviation ("sd") of the
        metric over the inner splits. With scope "pair", the metric is first averaged over pairs.
    best_score : float
        Score of the selected grid point. With scope "pair", the scores of the selected grid points
        are averaged over pairs.
    """

    params: list[GridPoint]
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
    how: SelectRef | None = None,
    *,
    space: SearchSpace | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    n_train: int | None = None,
    pair_params: Sequence[GridPoint] = ({},),
    stages: Sequence[Sequence[str]] = (),
    groups: NDArray | None = None,
    ordered: bool = False,
    steps: Pipeline | None = None,
) -> Selection:
    """Select the grid point with the best mean metric on held-out rows.

    Parameters
    ----------
    machine : PairwiseClassifier
        Unfitted machine, in which all parameters outside the grid are set.
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
    grid : mapping of str to sequence
        Values of each searched parameter.
    how : SelectRef, optional
        Settings of the selection, by default a five-fold cross-validation. If its `folds` and
        `split` are both None, the rows after the first `n_train` rows are held out.
    space : SearchSpace, optional
        Tolerance of the trainings in the search, and preferred values of parameters that are not in
        ``how.prefer``; by default the machine's `search_space`. The tolerance does not replace
        values of `tol` in the grid, or a `tol` of the machine other than the machine's default.
    seed : int, default=0
        Seed of the inner splits.
    n_jobs : int, default=1
        Number of threads, which share the Gram matrices. Results do not depend on `n_jobs`.
    n_train : int, optional
        Number of training rows. The first `n_train` rows are training rows, and the remaining rows
        are used for validation only. By default, all rows are training rows.
    pair_params : sequence of dict, default=({},)
        Fixed parameters, such as parameters selected for another machine: one dict per pair of
        classes, or a single dict for all pairs.
    stages : sequence of sequences of str, default=()
        Groups of parameters that are searched one after the other, one group per stage. In each
        stage, the parameters of earlier groups have their selected values, and the parameters of
        later groups have the values set in `machine`. Parameters of the grid that are in no group
        are searched in the first stage.
    groups : ndarray of shape (n_samples,), optional
        Group of each row; rows of one group are never separated by an inner split.
    ordered : bool, default=False
        Whether the rows are in temporal order; held-out rows then follow the training rows.
    steps : Pipeline, optional
        Unfitted preprocessing steps that use labels. They are fitted on the training rows of each
        inner split, so that they do not see the labels of held-out rows.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If the grid is empty or contains a wrong name or value of a parameter, `X`, `y` and `groups`
        have different lengths, there is only one class, a class has fewer rows than there are
        folds, or the metric is undefined on an inner split.
    UserError
        If the metric is unknown.
    OutOfTime
        If the time limit is reached before all trainings are done.
    """
    how, space = how or SelectRef(), space or machine.search_space
    check_selectable(how.metric)
    if is_given(getattr(machine, "kernel", "")):  # other packages' classifiers may have no kernel
        other = "for a kernel matrix or function use scikit-learn's GridSearchCV"
        raise ValueError(f"select needs a kernel given by name; {other}")
    check_consistent_length(X, y, groups)
    y = np.asarray(y)
    parts = [grid_points(part) for part in staged(grid, stages)]
    for point in chain(*parts):  # wrong names and values raise ValueError before any training
        tried = clone(machine).set_params(**point)
        if isinstance(tried, PairwiseClassifier):
            tried._check_parameters()
    searched = space.tol is not None and "tol" not in grid
    if searched and machine.tol == machine.parameters["tol"].default:
        machine = clone(machine).set_params(tol=space.tol)
    own = None if groups is None else np.asarray(groups)
    data = SearchRows(X, y, n_train, sum(map(len, parts)), how, seed, own, ordered, steps)
    # ties are resolved first by the parameters in `prefer`, then by the machine's preferences
    prefer = dict(how.prefer)
    rule = {**prefer, **space.prefer, **prefer}
    pairwise = how.scope == "pair"
    given = [dict(params) for params in pair_params]
    if pairwise and len(given) == 1:
        given *= len(data.pairs)
    scores: list[dict[str, Any]] = []
    earlier: GridPoint = {}  # parameters selected in earlier stages
    for points in parts:
        machines = [clone(machine).set_params(**params) for params in given]
        for one in machines:
            one._searching = True
        machines *= len(data.pairs) // len(machines)
        found = []
        for rows in data.parts():
            scores_of = GridScores(rows, points, METRICS[how.metric], n_jobs)
            found.append((scores_of.of_pairs if pairwise else scores_of.of_votes)(machines))
        tables = [np.hstack(of_parts) for of_parts in zip(*found, strict=True)]
        if np.isnan(tables).any():
            raise ValueError(f"{how.metric} is undefined if the held-out rows belong to one class")
        winners = [best_point(points, table.mean(axis=1), rule) for table in tables]
        best = float(np.mean([t[k].mean() for t, k in zip(tables, winners, strict=True)]))
        scores += [
            {**earlier, **point, "score": float(row.mean()), "sd": float(row.std())}
            for point, row in zip(points, np.mean(tables, axis=0), strict=True)
        ]
        if not pairwise:
            earlier = {**earlier, **points[winners[0]]}
            winners *= len(given)
        given = [{**own, **points[k]} for own, k in zip(given, winners, strict=True)]
    return Selection(given, scores, best)
