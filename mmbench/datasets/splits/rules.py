"""The table of rules, and what callers use: list and make splits."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.reference import DatasetRef
from mmbench.datasets.splits import (
    holdout,
    kfold,
    leave_one_out,
    official,
    predefined,
    time_series,
)
from mmbench.datasets.splits.base import (
    Described,
    IntArray,
    Rule,
    allocate,
    allocate_nested,
    codes_and_counts,
    pick_stratified,
)
from mmbench.datasets.stream import random_stream
from mmbench.errors import UserError, did_you_mean

#: Name in YAML -> rule.
RULES: dict[str, Rule] = {
    "official": official,
    "predefined": predefined,
    "kfold": kfold,
    "holdout": holdout,
    "leave_one_out": leave_one_out,
    "time_series": time_series,
}
#: How a rule is written: ``"official"`` or ``{"kfold": 10}``.
RuleSpec = str | Mapping[str, float]

#: Rows to train on at most: of all classes together, ``("per_class", n)``, or ``("nested", n)``,
#: the first n of one order.
MaxTrain = int | tuple[str, int] | None

#: Keeps the random numbers of `max_train` apart from those that cut the split.
SUBSET_STREAM = 1


@dataclass(frozen=True)
class Split:
    """One split of a data set."""

    #: Row numbers.
    train: IntArray
    test: IntArray
    rule: str
    #: What the split was made from.
    repeat: int
    fold: int
    seed: int
    #: Hash of the row numbers, in order.
    digest: str
    #: Whether the rows come with the data or from the seed: "official" or "drawn".
    origin: str
    #: Training rows that `max_train` left out.
    rest: IntArray = field(default_factory=lambda: np.empty(0, np.intp))


def parse_rule(spec: RuleSpec) -> tuple[str, float | None]:
    """Return name and argument of a rule.

    Raises
    ------
    UserError
        If there is no such rule or its argument is wrong.

    Examples
    --------
    >>> parse_rule("official"), parse_rule({"kfold": 10})
    (('official', None), ('kfold', 10))
    """
    if isinstance(spec, str):
        name, arg = spec, None
    elif len(spec) == 1:
        name, arg = next(iter(spec.items()))
    else:
        raise UserError(f"a split rule is a name or {{name: number}}, got {dict(spec)!r}")
    if name not in RULES:
        raise UserError(f"unknown split rule {name!r}{did_you_mean(name, RULES)}")
    problem = RULES[name].check(arg)
    if problem:
        raise UserError(problem)
    return name, arg


def split_rules(data: Described) -> list[str]:
    """Return the names of the rules that a data set allows; no data are read."""
    expect = data.card.expect if data.card else None
    missing = {
        "official": not (expect and expect.official),
        "predefined": not ((expect and expect.predefined) or data.folds),
    }
    return [name for name in RULES if not missing.get(name)]


def known_beforehand(spec: RuleSpec, ref: DatasetRef) -> bool:
    """Return whether the splits of a data set can be counted without reading it."""
    name, _ = parse_rule(spec)
    return not (name == "leave_one_out" or (name == "predefined" and ref.folds is not None))


def split_slots(
    spec: RuleSpec, data: Described, repeats: int | None = None
) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split; see `known_beforehand`.

    Parameters
    ----------
    spec : str or mapping
        The rule.
    data : DatasetRef or Dataset
    repeats : int, optional
        Number of partitions; the whole list for ``predefined`` and 1 for other rules when not
        given.

    Raises
    ------
    UserError
        If the data set does not allow the rule.
    """
    name, arg = parse_rule(spec)
    return RULES[name].slots(arg, data, repeats)


def split_at(
    spec: RuleSpec,
    dataset: Dataset,
    *,
    args: Sequence[float] = (),
    repeat: int = 0,
    fold: int = 0,
    seed: int = 0,
    max_train: MaxTrain = None,
) -> Split:
    """Return one split, made alone.

    Parameters
    ----------
    spec : str or mapping
        The rule; or its name, with its argument in `args` as a job stores it.
    dataset : Dataset
    args : sequence of float
        Argument of the rule.
    repeat, fold, seed : int
    max_train : int, ("per_class", int) or ("nested", int), optional
        Train on a seeded stratified subset of at most so many of the training rows, or on so many
        of each class; or on the first so many of one seeded order, in which the classes are mixed
        in proportion from its beginning: of two such subsets the smaller lies in the larger.

    Raises
    ------
    UserError
        If the data do not allow the split: no such split, a class with fewer rows than folds, no
        test row.
    """
    name, arg = parse_rule({spec: args[0]} if isinstance(spec, str) and args else spec)
    train, test, origin = RULES[name].cut(arg, dataset, repeat, fold, seed)
    if not len(train) or not len(test):
        part = "training" if not len(train) else "test"
        raise UserError(f"data set {dataset.name!r}: split {repeat} has no {part} row")
    whole = train
    if max_train is not None:
        train = _subset(whole, dataset, max_train, repeat, seed)
    rest = np.setdiff1d(whole, train)
    return Split(train, test, name, repeat, fold, seed, split_digest(train, test), origin, rest)


def _subset(
    train: IntArray, data: Dataset, size: int | tuple[str, int], repeat: int, seed: int
) -> IntArray:
    codes, counts = codes_and_counts(data.y[train])
    if not isinstance(size, tuple):
        share = allocate(counts, min(size, len(train)))
    elif size[0] == "nested":
        if size[1] > len(train):
            message = f"max_train {size[1]}, but there are {len(train)} rows to train on"
            raise UserError(f"data set {data.name!r}: {message}")
        share = allocate_nested(counts, size[1])
    else:
        share = np.minimum(counts, size[1])
    if share.sum() == len(train):
        return train
    if share.min() == 0:
        number = size[1] if isinstance(size, tuple) else size
        message = f"max_train {number} leaves a class without training row"
        raise UserError(f"data set {data.name!r}: {message}")
    return train[pick_stratified(codes, share, random_stream(seed, repeat, SUBSET_STREAM))]


def split_digest(train: IntArray, test: IntArray) -> str:
    """Return the hash of the row numbers, in order."""
    digest = hashlib.sha256()
    for rows in (train, test):
        digest.update(f"{len(rows)}\n".encode() + np.asarray(rows, dtype="<i8").tobytes())
    return digest.hexdigest()[:20]
