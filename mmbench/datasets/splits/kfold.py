"""Stratified k-fold cross-validation, repeated with new shuffles; groups stay together."""

import numpy as np

from mmbench.datasets.classes import too_few_rows
from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits import grouped
from mmbench.datasets.splits.base import Cut, Described, IntArray, codes_and_counts, whole_number
from mmbench.datasets.stream import random_stream
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    return whole_number("kfold", arg)


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split."""
    return [(repeat, fold) for repeat in range(repeats or 1) for fold in range(int(arg or 0))]


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return one fold as test rows and the others as training rows."""
    folds = int(arg or 0)
    if data.groups is None:
        of_row = fold_of_row(data, folds, repeat, seed)
    else:
        of_row = grouped.fold_of_row(data, data.groups, folds, random_stream(seed, repeat))
    return Cut(np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold), "drawn")


def fold_of_row(data: Dataset, folds: int, repeat: int, seed: int) -> IntArray:
    """Deal the shuffled rows of one class after another to the folds, as cards are dealt.

    So every fold has its share of each class, and fold sizes differ by at most one.

    Raises
    ------
    UserError
        If a class has fewer rows than there are folds.
    """
    if problem := too_few_rows(data.y, folds):
        raise UserError(f"data set {data.name!r}: {problem}")
    codes, counts = codes_and_counts(data.y)
    random = random_stream(seed, repeat)
    dealt = np.concatenate(
        [random.permutation(np.flatnonzero(codes == k)) for k in range(len(counts))]
    )
    of_row = np.empty(len(codes), dtype=np.intp)
    of_row[dealt] = np.arange(len(codes)) % folds
    return of_row
