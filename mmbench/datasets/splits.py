"""Splits of a data set into training rows and test rows. `RULES` lists all split rules.

Every split can be computed independently of the others: it depends on the data, the rule, the seed
and the numbers of repeat and fold. Random numbers come from ``SeedSequence(seed,
spawn_key=(repeat,))``, so additional repeats do not change earlier repeats, and all folds of one
repeat use the same permutation of the rows.

A file of folds is a CSV file with one line per row of the data. Each column is one partition, and
each table cell contains the fold (a number or a word) in which the row is a test row. If the table
cell is empty, the row is always a training row. A first line of column names is skipped.
"""

import csv
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.card import PredefinedSplits
from mmbench.datasets.dataset import Dataset, DatasetRef, Rows, random_stream, too_few_rows
from mmbench.datasets.parsers.text import is_number
from mmbench.errors import UserError, did_you_mean

IntArray = NDArray[np.intp]
#: A data set or its reference; functions use its name, card and file of folds.
Described = DatasetRef | Dataset
#: Argument of a split rule; None for rules without argument.
Arg = float | None
#: Split rule in a configuration: ``"official"`` or ``{"kfold": 10}``.
RuleSpec = str | Mapping[str, float]
#: Maximum number of training rows: n in total; ``("per_class", n)``, n per class; or
#: ``("nested", n)``, the first n rows of one fixed permutation.
MaxTrain = int | tuple[str, int] | None
#: Purpose number of `random_stream` for the subset of `max_train`, so that the random numbers of
#: the subset are independent of the random numbers of the split.
SUBSET_STREAM = 1


# The functions ``_..._cut`` return the training and test rows of one split, and raise ValueError
# if the data do not allow the split.


# official: the split that all publications use. All repeats use the same split and differ in other
# random choices, such as the subset for `max_train`.


def _official_repeats(data: Described, repeats: int | None) -> int:
    split = data.split if isinstance(data, Dataset) else data.card and data.card.expect.official
    if split is None:
        raise UserError(f"data set {data.name!r} has no official split; use kfold or holdout")
    return repeats or 1


def _official_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    _official_repeats(data, repeat)
    return cast(Rows, data.split)


# predefined: the splits of the card or of a file of folds. If the source does not contain all
# splits of the card, random splits of the same sizes are added; like the official splits, the
# random splits are not stratified.


def _predefined_repeats(data: Described, repeats: int | None) -> int:
    """Return the requested number of splits (default all); 0 if a file of folds is not read yet."""
    if data.folds is None:
        plan = _plan(data, repeats or 0)
        return plan.count if repeats is None else repeats
    given = len(data.predefined or ()) if isinstance(data, Dataset) else 0
    if repeats and given and repeats > given:
        raise UserError(f"{data.folds}: gives {given} splits, not protocol.repeats {repeats}")
    return min(given, repeats or given)


def _predefined_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    if _is_official("predefined", data, repeat):
        return (data.predefined or [])[repeat]
    plan = _plan(data, repeat + 1)
    order, n_train = random_stream(seed, repeat).permutation(len(data.y)), plan.train or 0
    return np.sort(order[:n_train]), np.sort(order[n_train : n_train + (plan.test or 0)])


def _is_official(rule: str, data: Dataset, repeat: int) -> bool:
    """Return whether a split is distributed with the data, and not drawn at random."""
    return rule == "official" or (rule == "predefined" and repeat < len(data.predefined or ()))


def _plan(data: Described, wanted: int) -> PredefinedSplits:
    """Return the card's `PredefinedSplits`. UserError: if fewer than `wanted` are available."""
    plan = data.card.expect.predefined if data.card else None
    if plan is None:
        hint = "use kfold or holdout, or state a file of folds"
        raise UserError(f"data set {data.name!r} has no predefined splits; {hint}")
    if wanted > plan.count and not plan.train:
        message = f"data set {data.name!r} has {plan.count} predefined splits, not {wanted}"
        raise UserError(f"{message}; set protocol.repeats to at most {plan.count}")
    return plan


# kfold: stratified cross-validation with a new permutation of the rows in each repeat; all rows of
# a group are in the same fold.


def _kfold_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    folds, random = int(arg or 0), random_stream(seed, repeat)
    if data.groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        if len(np.unique(data.groups)) < folds:
            raise ValueError(f"{len(np.unique(data.groups))} groups are fewer than {folds} folds")
        cutter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
        return list(cutter.split(data.y, data.y, data.groups))[fold]
    if problem := too_few_rows(data.y, folds):
        raise ValueError(problem)
    # The rows, ordered by class and shuffled within each class, are assigned to the folds in turn:
    # fold sizes differ by at most one, and so do the numbers of rows of a class per fold.
    codes, counts = codes_and_counts(data.y)
    classes = range(len(counts))
    dealt = np.concatenate([random.permutation(np.flatnonzero(codes == k)) for k in classes])
    test = np.sort(dealt[fold::folds])
    return np.setdiff1d(dealt, test), test


# holdout: repeated stratified random splits; a fraction of the rows (or groups) is the test set.


def _holdout_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    """Return a split with round(arg * n) stratified test rows, or with a fraction of the groups."""
    share, random = float(arg or 0), random_stream(seed, repeat)
    if data.groups is None:
        codes, counts = codes_and_counts(data.y)
        test = pick_stratified(codes, allocate(counts, round(share * len(codes))), random)
        train = np.setdiff1d(np.arange(len(codes)), test)
    else:
        from sklearn.model_selection import GroupShuffleSplit

        cutter = GroupShuffleSplit(1, test_size=share, random_state=random)
        train, test = next(cutter.split(data.y, data.y, data.groups))
    lacking = np.setdiff1d(data.classes, data.y[train])
    if len(lacking):
        raise ValueError(f"holdout {arg:g} leaves no training row of class {lacking[0]!s}")
    return train, test


# leave_one_out: each test set is one row or, if there are groups, one group.


def _units(data: Dataset) -> NDArray:
    """Return the group of each row; if the data have no groups, each row is a group."""
    return np.arange(len(data.y)) if data.groups is None else data.groups


def _n_units(arg: Arg, data: Described) -> int:
    """Return the number of rows or groups; 0 if the data are not loaded yet."""
    return len(np.unique(_units(data))) if isinstance(data, Dataset) else 0


def _leave_one_out_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    held = _units(data) == np.unique(_units(data))[fold]
    return np.flatnonzero(~held), np.flatnonzero(held)


# time_series: the rows are divided into successive blocks of time; the training rows of a block are
# all rows before this block.


def _time_series_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    """Return one split; rows are ordered by time, or as in the file if there is no time column."""
    from sklearn.model_selection import TimeSeriesSplit

    time = np.arange(len(data.y)) if data.time is None else data.time
    order = np.argsort(time, kind="stable")
    train, test = list(TimeSeriesSplit(int(arg or 0)).split(order))[fold]
    return order[train], order[test]


class Rule(NamedTuple):
    """A split rule; by default there is one fold per repeat, and one repeat."""

    #: Type of the argument: "none", "count" (integer) or "share" (fraction between 0 and 1).
    argument: str
    #: Function (argument, data, repeat, fold, seed) -> training and test rows of one split.
    cut: Callable[[Arg, Dataset, int, int, int], Rows]
    #: Function (argument, data) -> number of folds.
    n_folds: Callable[[Arg, Described], int] = lambda arg, data: 1
    #: Function (data, requested number of repeats or None) -> number of repeats.
    n_repeats: Callable[[Described, int | None], int] = lambda data, repeats: repeats or 1
    #: Whether the rule has only one partition, so that repeats are not allowed.
    fixed: bool = False


def _stated(arg: Arg, data: Described) -> int:
    return int(arg or 0)


#: Split rules by their names in configurations.
RULES = {
    "official": Rule("none", _official_cut, n_repeats=_official_repeats),
    "predefined": Rule("none", _predefined_cut, n_repeats=_predefined_repeats),
    "kfold": Rule("count", _kfold_cut, _stated),
    "holdout": Rule("share", _holdout_cut),
    "leave_one_out": Rule("none", _leave_one_out_cut, _n_units, fixed=True),
    "time_series": Rule("count", _time_series_cut, _stated, fixed=True),
}


@dataclass(frozen=True)
class Split:
    """One split of a data set."""

    #: Row numbers of the training rows and of the test rows.
    train: IntArray
    test: IntArray
    rule: str
    #: Arguments of `split_at`.
    repeat: int
    fold: int
    seed: int
    #: Hash of the row numbers, from `split_digest`.
    digest: str
    #: "official" if the split is distributed with the data, "drawn" if it is computed.
    origin: str
    #: Row numbers of the training rows that `max_train` excluded.
    rest: IntArray = field(default_factory=lambda: np.empty(0, np.intp))


class SplitRule(NamedTuple):
    """Name and argument of a split rule; the argument is None for rules without argument."""

    rule: str
    arg: Arg = None

    @property
    def spec(self) -> RuleSpec:
        """The rule in the form of a configuration."""
        return self.rule if self.arg is None else {self.rule: self.arg}


def parse_rule(spec: RuleSpec) -> SplitRule:
    """Return name and argument of a rule. UserError: if the name or the argument is not valid.

    Examples
    --------
    >>> parse_rule({"kfold": 10})
    SplitRule(rule='kfold', arg=10)
    """
    rule: Mapping[str, Any] = {spec: None} if isinstance(spec, str) else spec
    if len(rule) != 1:
        raise UserError(f"a split rule is a name or {{name: number}}, got {dict(rule)!r}")
    ((name, arg),) = rule.items()
    if name not in RULES:
        raise UserError(f"unknown split rule {name!r}{did_you_mean(name, RULES)}")
    number = isinstance(arg, int | float) and not isinstance(arg, bool)
    fits, needs = {
        "none": (arg is None, "takes no number"),
        "count": (number and arg >= 2 and arg % 1 == 0, "must be a whole number of at least 2"),
        "share": (number and 0 < arg < 1, "must be a share of the rows between 0 and 1"),
    }[RULES[name].argument]
    if not fits:
        raise UserError(f"{name} {needs}, got {arg!r}")
    return SplitRule(name, arg)


def split_rules(data: Described) -> list[str]:
    """Return the names of the split rules that are available for a data set; no data are read."""
    expect = data.card.expect if data.card else None
    missing = {
        "official": not (expect and expect.official),
        "predefined": not ((expect and expect.predefined) or data.folds),
    }
    return [name for name in RULES if not missing.get(name)]


def split_slots(
    spec: RuleSpec, data: Described, repeats: int | None = None
) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split.

    The list is empty if the number of splits depends on data that are not loaded yet. If `repeats`
    is None, the rule ``predefined`` returns all splits, and other rules one repeat.
    """
    name, arg = parse_rule(spec)
    rule = RULES[name]
    if rule.fixed and repeats not in (None, 1):
        raise UserError(f"{name} has one partition; leave out repeats {repeats}")
    folds = range(rule.n_folds(arg, data))
    return [(repeat, fold) for repeat in range(rule.n_repeats(data, repeats)) for fold in folds]


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
    """Return one split.

    Parameters
    ----------
    spec : str or mapping
        The split rule, or the name of the rule if `args` contains its argument, as in a job.
    dataset : Dataset
    args : sequence of float
        Argument of the rule; empty if the rule has no argument or `spec` contains it.
    repeat, fold, seed : int
    max_train : int, ("per_class", int) or ("nested", int), optional
        Train on a random stratified subset of the training rows: at most n rows in total; at most
        n rows per class; or ("nested") the first n rows of one random permutation that mixes the
        classes in proportion, so that smaller subsets are contained in larger subsets.

    Raises
    ------
    UserError
        If the data do not allow the split, for example because the data set has no such split, a
        class has fewer rows than there are folds, or there is no test row.
    """
    name, arg = parse_rule({spec: args[0]} if isinstance(spec, str) and args else spec)
    try:
        whole, test = RULES[name].cut(arg, dataset, repeat, fold, seed)
        if not len(whole) or not len(test):
            rule, part = f"{name} {arg or ''}".strip(), "test" if len(whole) else "training"
            raise ValueError(f"{rule} of {len(dataset.y)} rows leaves no {part} row")
        random = random_stream(seed, repeat, SUBSET_STREAM)
        train = whole if max_train is None else _subset(whole, dataset.y, max_train, random)
    except ValueError as error:
        raise UserError(f"data set {dataset.name!r}: {error}") from None
    rest, digest = np.setdiff1d(whole, train), split_digest(train, test)
    origin = "official" if _is_official(name, dataset, repeat) else "drawn"
    return Split(train, test, name, repeat, fold, seed, digest, origin, rest)


def _subset(
    train: IntArray, y: NDArray, size: int | tuple[str, int], random: np.random.RandomState
) -> IntArray:
    """Return the training rows that `max_train` keeps."""
    codes, counts = codes_and_counts(y[train])
    kind, number = size if isinstance(size, tuple) else ("all", size)
    if kind == "nested" and number > len(train):
        raise ValueError(f"max_train {number}, but there are {len(train)} rows to train on")
    if kind == "per_class":
        share = np.minimum(counts, number)
    else:
        share_out = allocate_nested if kind == "nested" else allocate
        share = share_out(counts, min(number, len(train)))
    if share.sum() == len(train):
        return train
    if share.min() == 0:
        raise ValueError(f"max_train {number} leaves a class without training row")
    return train[pick_stratified(codes, share, random)]


def split_digest(train: IntArray, test: IntArray) -> str:
    """Return the hash of the row numbers of a split; the order of the rows matters."""
    digest = hashlib.sha256()
    for rows in (train, test):
        digest.update(f"{len(rows)}\n".encode() + np.asarray(rows, dtype="<i8").tobytes())
    return digest.hexdigest()[:20]


def codes_and_counts(y: NDArray) -> tuple[IntArray, IntArray]:
    """Return the class number of each row, and the number of rows of each class."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return codes.ravel(), counts


def allocate(counts: IntArray, total: int) -> IntArray:
    """Distribute `total` rows over the classes in proportion, by the largest remainder method.

    Examples
    --------
    >>> allocate(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    exact = counts * (total / counts.sum())
    share = np.floor(exact).astype(np.intp)
    order = np.argsort(-(exact - share), kind="stable")
    share[order[: total - share.sum()]] += 1
    return share


def allocate_nested(counts: IntArray, total: int) -> IntArray:
    """Distribute at most `total` rows in proportion; no class loses rows if `total` increases.

    Row r of a class of n rows gets the value ``(r + 1/2) / n``, and the `total` rows of smallest
    value are counted. The largest remainder method (`allocate`) does not have this monotonicity.

    Examples
    --------
    >>> allocate_nested(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    codes = np.repeat(np.arange(len(counts)), counts)
    position = np.concatenate([(np.arange(n) + 0.5) / n for n in counts.tolist()])
    first = np.argsort(position, kind="stable")[:total]
    return np.bincount(codes[first], minlength=len(counts))


def pick_stratified(codes: IntArray, share: IntArray, random: np.random.RandomState) -> IntArray:
    """Return the sorted indices of ``share[k]`` random rows of each class k."""
    picked = [
        random.permutation(np.flatnonzero(codes == k))[:n] for k, n in enumerate(share.tolist())
    ]
    return np.sort(np.concatenate(picked))


# Files of folds


def with_folds(data: Dataset, path: str) -> Dataset:
    """Return the data set with the predefined splits of a file of folds."""
    table = _read_folds(path)
    n_rows = len(data.y)
    if len(table) == n_rows + 1:
        table = table[1:]
    if len(table) != n_rows:
        raise UserError(f"{path}: {len(table)} lines of folds for {n_rows} rows of {data.name!r}")
    for k, line in enumerate(table):
        if fraction := next((cell for cell in line if "." in cell and is_number(cell)), None):
            raise UserError(f"{path}: row {k + 1} of the data: {fraction!r} is no fold")
    splits: list[Rows] = []
    for column in zip(*table, strict=True):
        cells = np.array(column)
        names = sorted(set(column) - {""}, key=lambda name: (len(name), name))  # "2" before "10"
        splits += [(np.flatnonzero(cells != name), np.flatnonzero(cells == name)) for name in names]
    if not splits:
        raise UserError(f"{path}: no row is a test row")
    content = hash_with_folds(data.content_hash, path)
    return replace(data, predefined=splits, split_deviations=(), folds=path, content_hash=content)


def hash_with_folds(content_hash: str, path: str) -> str:
    """Return the hash of data together with their file of folds, from the hash of the data."""
    try:
        folds = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
    return hashlib.sha256(f"{content_hash}\nfolds {folds}".encode()).hexdigest()


def _read_folds(path: str) -> list[list[str]]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in line] or [""] for line in csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a file of folds ({error})") from None
    for k, line in enumerate(lines):
        if len(line) != len(lines[0]):
            cells = f"{len(line)} cells where line 1 has {len(lines[0])}"
            raise UserError(f"{path}: line {k + 1} has {cells}")
    return lines
