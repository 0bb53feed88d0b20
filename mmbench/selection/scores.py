"""Scores of all grid points on all inner splits.

If the kernel matrix of all rows can be stored, the outer loop is over kernels, otherwise over pairs
of classes.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product

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
from mmbench.selection.grid import GridPoint, kernel_part, without_kernel
from mmbench.selection.metrics import Metric
from mmbench.selection.views import Block, KernelView, is_stored, kernel_blocks, kernels_of

#: Class indices of a pair of classes.
Pair = tuple[int, int]
#: One tuple per kernel: the indices of its grid points and, for each inner split, the decision
#: values on the held-out rows, shape (n_held, n_points); or booleans (True for values >= 0) if the
#: metric depends only on the signs.
Decided = list[tuple[list[int], list[NDArray]]]


class GridScores:
    """Values of a metric at all grid points, computed in `n_jobs` threads."""

    def __init__(self, data: SearchRows, points: list[GridPoint], metric: Metric, n_jobs: int):
        self.data, self.points, self.metric = data, points, metric
        self._threads = partial(Parallel, n_jobs=n_jobs, prefer="threads")

    def of_pairs(self, machines: list[PairwiseClassifier]) -> list[NDArray]:
        """Return the scores of the binary classifier of each pair, on the rows of the pair.

        `machines` contains one machine per pair, in which all parameters outside the grid are set.
        Returns one array of scores, shape (n_points, n_splits), per pair of classes.
        """
        pairs = zip(machines, self.data.pairs, strict=True)
        return self._threads()(delayed(self._of_pair)(machine, pair) for machine, pair in pairs)

    def _of_pair(self, machine: PairwiseClassifier, pair: Pair) -> NDArray:
        data = self.data
        rows, signs = pair_rows(data.labels, *pair)
        names = tuple(data.classes[[*pair]].tolist())
        folds = [Fold(train, signs[train], held, names) for train, held in data.splits(rows)]
        table = np.empty((len(self.points), len(folds)))
        n_own = int((rows < data.n_train).sum())
        # kernel values of rows that are used for validation only are not stored
        kept = None if n_own == len(rows) else np.arange(n_own)
        for members, view in kernel_blocks(machine, data.X[rows], self.points, data.X_train, kept):
            for s, decisions in enumerate(self._decisions(machine, view, folds, members)):
                truth = (signs[folds[s].held] > 0).astype(int)
                for k, values in zip(members, decisions.T, strict=True):
                    table[k, s] = self._value(truth, values[:, None], np.arange(2))
        return table

    def of_votes(self, machines: list[PairwiseClassifier]) -> list[NDArray]:
        """Return the scores of the one-vs-one classifier on the held-out rows of all classes.

        The returned list contains one array of scores, shape (n_points, n_splits).
        """
        data, points, metric, machine = self.data, self.points, self.metric, machines[0]
        n_classes = int(data.labels.max()) + 1
        splits = data.splits(np.arange(len(data.labels)))
        if isinstance(machine, ForeignClassifier):
            found = self._threads()(
                delayed(self._of_foreign)(machine, point, *rows)
                for point, rows in product(points, splits)
            )
            return [np.reshape(found, (len(points), len(splits)))]
        if isinstance(machine, JointClassifier) and n_classes > 2:
            table = np.empty((len(points), len(splits)))
            for block in kernel_blocks(machine, data.X, points, data.X_train, shared=True):
                columns = self._threads()(
                    delayed(self._of_joint)(machine, block, *rows) for rows in splits
                )
                table[block[0]] = np.column_stack(columns)
            return [table]
        ranked = metric.source == "scores"
        counts = [np.zeros((len(points), len(held), n_classes), np.int16) for _, held in splits]
        confidence = [np.zeros(count.shape if ranked else (len(points), 0)) for count in counts]
        for (i, j), found in self._decided_by_pairs(machines, splits):
            for members, decided in found:
                for count, total, values in zip(counts, confidence, decided, strict=True):
                    positive = values >= 0 if ranked else values
                    count[members, :, j] += positive.T
                    count[members, :, i] += ~positive.T
                    if ranked:
                        total[members, :, j] += values.T
                        total[members, :, i] -= values.T
        table = np.empty((len(splits), len(points)))
        for s, (_, held) in enumerate(splits):
            for k, point in enumerate(zip(counts[s], confidence[s], strict=True)):
                table[s, k] = metric.of_votes(data.labels[held], *point, np.arange(n_classes))
        return [table.T]

    def _of_foreign(
        self, machine: ForeignClassifier, point: GridPoint, train: NDArray, held: NDArray
    ) -> float:
        data, metric, X = self.data, self.metric, self.data.X[held]
        if len(present := np.unique(data.labels[train])) == 1:
            return self._of_one_class(held, present)
        model = clone(machine).set_params(**point).fit(data.X[train], data.y[train])
        data.count(len(data.pairs))
        given = model.predict(X) if metric.source == "predictions" else model.class_scores(X)
        if given is None:
            name = type(model).__name__
            raise ValueError(f"{metric.label} needs class scores, which {name} lacks")
        return metric.compute(data.y[held], given, model.classes_)

    def _of_one_class(self, held: NDArray, present: NDArray) -> float:
        """Return the score on held-out rows if the training rows belong to a single class."""
        nothing = np.zeros((len(held), 1))
        return self.metric.of_votes(self.data.labels[held], nothing, nothing, present)

    def _of_joint(
        self, machine: JointClassifier, block: Block, train: NDArray, held: NDArray
    ) -> NDArray:
        """Return one score per grid point of a jointly trained machine, on the held-out rows."""
        members, view = block
        data, path = self.data, [without_kernel(self.points[k]) for k in members]
        machine = machine.with_params(kernel_part(self.points[members[0]]))
        truth = data.labels[held]
        present, own = np.unique(data.labels[train], return_inverse=True)
        if len(present) == 1:
            return np.full(len(path), self._of_one_class(held, present))
        names = tuple(data.classes[present].tolist())
        problem = JointProblem(view.problem(train, np.ones(len(train)), names), own)
        models = machine.train_jointly(problem, path)
        found = [self._value(truth, view.decisions(m, train, held), present) for m in models]
        data.count(len(path) * len(data.pairs))
        return np.array(found)

    def _value(self, truth: NDArray, decisions: NDArray, classes: NDArray) -> float:
        n = len(classes)
        counts, confidence = votes(decisions, n), summed_decisions(decisions, n)
        return self.metric.of_votes(truth, counts, confidence, classes)

    def _decided_by_pairs(
        self, machines: list[PairwiseClassifier], splits: Splits
    ) -> Iterator[tuple[Pair, Decided]]:
        """Yield each pair of classes with the decision values of its binary classifiers.

        The decision values are computed on the held-out rows of all classes.
        """
        data, points = self.data, self.points
        pool = self._threads(return_as="generator")
        kernels = {machine.kernel_for(data.X_train) for machine in machines}
        found = kernels_of(machines[0], data.X, points, data.X_train)
        fits = (k.name == "linear" or is_stored(data.n_train, k.name, s, True) for _, k, s in found)
        if data.X.shape[0] == data.n_train and len(kernels) == 1 and all(fits):
            shared = kernel_blocks(machines[0], data.X, points, data.X, shared=True)
            rounds: Iterable[Iterable] = ([[block]] * len(machines) for block in shared)
        else:
            rows = (pair_rows(data.labels[: data.n_train], *pair)[0] for pair in data.pairs)
            own = zip(machines, rows, strict=True)
            rounds = [(kernel_blocks(m, data.X, points, data.X_train, part) for m, part in own)]
        for blocks in rounds:
            each = zip(machines, data.pairs, blocks, strict=True)
            tasks = (delayed(self._decided_by_pair)(*given, splits) for given in each)
            yield from zip(data.pairs, pool(tasks), strict=True)

    def _decided_by_pair(
        self, machine: PairwiseClassifier, pair: Pair, blocks: Iterable[Block], splits: Splits
    ) -> Decided:
        """Return the decision values of the binary classifiers of one pair of classes.

        The decision values are computed on the held-out rows of all classes.
        """
        labels, signs_only = self.data.labels, self.metric.source != "scores"
        sign_of = np.where(labels == pair[1], 1.0, np.where(labels == pair[0], -1.0, 0.0))
        owns = [train[sign_of[train] != 0] for train, _ in splits]
        names = tuple(self.data.classes[[*pair]].tolist())
        each = zip(owns, splits, strict=True)
        folds = [Fold(own, sign_of[own], held, names) for own, (_, held) in each]
        out = []
        for members, view in blocks:
            decisions = self._decisions(machine, view, folds, members)
            out.append((members, [v >= 0 if signs_only else v for v in decisions]))
        return out

    def _decisions(
        self, machine: PairwiseClassifier, view: KernelView, folds: list[Fold], members: list[int]
    ) -> list[NDArray]:
        """Train a machine on the training rows of each fold, at all grid points of one kernel.

        Returns one array of decision values on held-out rows, shape (n_held, n_points), per fold.
        """
        machine = machine.with_params(kernel_part(self.points[members[0]]))
        path = [without_kernel(self.points[k]) for k in members]
        decided = [np.empty((len(fold.held), len(path))) for fold in folds]
        weights = [point.get("class_weight") for point in path]
        # grid points are grouped by class weights, since warm starts need equal class weights
        for weight in {repr(w): w for w in weights}.values():
            own = [k for k, other in enumerate(weights) if other == weight]
            both = (fold for fold in folds if fold.both)
            problems = (view.problem(fold.train, fold.signs, fold.classes) for fold in both)
            trained = iter(machine.train_folds(problems, [path[k] for k in own]))
            for fold, values in zip(folds, decided, strict=True):
                # If one class of the pair has training rows, the decision value is its label, -1 or
                # +1. If neither has, 0 has no influence: both lose against all classes with
                # training rows.
                values[:, own] = (
                    view.decisions(next(trained), fold.train, fold.held)
                    if fold.both
                    else np.sign(fold.signs.sum())
                )
                self.data.count(len(own))
        return decided
