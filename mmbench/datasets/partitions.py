"""Splits of a data set into training rows and test rows.

A split depends only on the data, the split rule, the seed, and the numbers of repetition and fold:
repetition ``repeat`` has the generator ``SeedSequence(seed, spawn_key=(repeat,))``, so that more
repetitions do not change the first ones. The folds of a repetition share one permutation.

A file of folds is a CSV file (comma, semicolon or tab) with a line per row of the data, optional
for rows without label or group. Each column is one partition; a cell names the fold whose test set
contains the row, and is empty if this is always a training row. A first line of words that do not
occur below is a header.
"""

import csv
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.card import PredefinedSplits
from mmbench.datasets.dataset import Dataset, DatasetRef, Rows, random_stream, too_few_rows
from mmbench.errors import UserError, check_known, converted
from mmbench.reader.file_text import is_number

IntArray = NDArray[np.intp]
#: A data set, or a reference to a data set.
Described = DatasetRef | Dataset
#: Argument of a split rule, or None if the rule has no argument.
Arg = float | None
#: Split rule in a configuration, such as ``"official"`` or ``{"kfold": 10}``.
RuleSpec = str | Mapping[str, float]
#: Maximum number of training rows: n in total, ``("per_class", n)``, or ``("nested", n)`` for a
#: subset that is contained in all larger nested subsets.
MaxTrain = int | tuple[str, int] | None
#: Argument `purpose` of `random_stream` for the random subset of the training rows. With this
#: argument, the random numbers for the subset are independent of the random numbers for the split.
SUBSET_STREAM = 1


#: Type of the argument of each split rule: no argument, a count (integer) or a share (fraction).
RULES = {
    "official": "none",
    "predefined": "none",
    "kfold": "count",
    "holdout": "share",
    "leave_one_out": "none",
    "time_series": "count",
}


def _n_repeats(rule: str, data: Described, repeats: int | None) -> int:
    """Return the number of repetitions of a split rule; 0 if the splits must be read first.

    All repetitions of the official split have the same rows, but differ in random choices, such as
    a random subset of the training rows.
    """
    if rule == "official":
        split = data.split if isinstance(data, Dataset) else data.card and data.card.expect.official
        if split is None:
            raise UserError(f"data set {data.name!r} has no official split; use kfold or holdout")
    if rule != "predefined":
        return repeats or 1
    if data.splits_source is None:
        plan = _plan(data, repeats or 0)
        return plan.count if repeats is None else repeats
    given = len(data.predefined or ()) if isinstance(data, Dataset) else 0
    if repeats and given and repeats > given:
        raise UserError(
            f"{data.splits_source}: has {given} splits; lower protocol.repeats {repeats}"
        )
    return min(given, repeats or given)


def _is_official(rule: str, data: Dataset, repeat: int) -> bool:
    """Return whether a split is distributed with the data (and not drawn at random)."""
    return rule == "official" or (rule == "predefined" and repeat < len(data.predefined or ()))


def _plan(data: Described, wanted: int) -> PredefinedSplits:
    """Return the number and the sizes of the predefined splits, as stated in the card.

    Raises UserError if the card states no predefined splits, or fewer than `wanted` without sizes
    for random splits.
    """
    plan = data.card.expect.predefined if data.card else None
    if plan is None:
        hint = "use kfold or holdout, or set folds to a file of folds"
        raise UserError(f"data set {data.name!r} has no predefined splits; {hint}")
    # splits beyond the predefined splits are drawn at random, with the sizes in the card
    if wanted > plan.count and not plan.train:
        message = f"data set {data.name!r} has {plan.count} predefined splits, not {wanted}"
        raise UserError(f"{message}; set protocol.repeats to at most {plan.count}")
    return plan


def _units(data: Dataset) -> NDArray:
    """Return the group number of each row. If the data have no groups, each row is a group."""
    return np.arange(len(data.y)) if data.groups is None else data.groups


def _cut(rule: str, arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Rows:
    """Return the training and test rows of one split.

    Raises ValueError if the data do not allow the split.
    """
    random = random_stream(seed, repeat)
    if rule == "kfold":
        return _kfold(int(arg or 0), data, fold, random)
    if rule == "holdout":
        return _holdout(float(arg or 0), data, random)
    if rule == "leave_one_out":  # the test set is one row or one group
        held = _units(data) == np.unique(_units(data))[fold]
        return np.flatnonzero(~held), np.flatnonzero(held)
    if rule == "time_series":
        from sklearn.model_selection import TimeSeriesSplit

        # the test set is a block of rows that are successive in time and later than all training
        # rows
        time = np.arange(len(data.y)) if data.time is None else data.time
        order = np.argsort(time, kind="stable")
        train, test = (order[i] for i in list(TimeSeriesSplit(int(arg or 0)).split(order))[fold])
        return train[time[train] < time[test[0]]], test
    if rule == "official":
        _n_repeats(rule, data, None)
        return cast(Rows, data.split)
    if _is_official(rule, data, repeat):
        return (data.predefined or [])[repeat]
    # the source lacks this predefined split, which is replaced by a random split of the same size
    plan = _plan(data, repeat + 1)
    order, n_train = random.permutation(len(data.y)), plan.train or 0
    return np.sort(order[:n_train]), np.sort(order[n_train : n_train + (plan.test or 0)])


def _kfold(folds: int, data: Dataset, fold: int, random: np.random.RandomState) -> Rows:
    """Return the training and test rows of one fold, stratified by class.

    If the data have groups, all rows of a group are in the same fold.
    """
    if data.groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        if (n := len(np.unique(data.groups))) < folds:
            fewer = f"; --set protocol.test.kfold={n}" if n > 1 else ""
            raise ValueError(f"{n} groups, fewer than {folds} folds{fewer}")
        cutter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
        return list(cutter.split(data.y, data.y, data.groups))[fold]
    if problem := too_few_rows(data.y, folds):
        n = np.unique(data.y, return_counts=True)[1].min()
        way = f"--set protocol.test.kfold={n}" if n > 1 else "leave it out (key classes)"
        raise ValueError(f"{problem}; {way}")
    # The rows are ordered by class, shuffled within each class, and assigned to the folds in turn.
    # The numbers of rows of any two folds differ by at most 1, in total and in each class.
    rows = [random.permutation(np.flatnonzero(data.y == label)) for label in np.unique(data.y)]
    dealt = np.concatenate(rows)
    test = np.sort(dealt[fold::folds])
    return np.setdiff1d(dealt, test), test


def _holdout(share: float, data: Dataset, random: np.random.RandomState) -> Rows:
    """Return the rows of a split stratified by class; `share` is the fraction of test rows.

    If the data have groups, `share` is the fraction of groups in the test set, and the split is not
    stratified.
    """
    if data.groups is None:
        _, codes, counts = np.unique(data.y, return_inverse=True, return_counts=True)
        test = pick_stratified(codes, allocate(counts, round(share * len(codes))), random)
        train = np.setdiff1d(np.arange(len(codes)), test)
    else:
        from sklearn.model_selection import GroupShuffleSplit

        cutter = GroupShuffleSplit(1, test_size=share, random_state=random)
        train, test = next(cutter.split(data.y, data.y, data.groups))
    if len(lacking := np.setdiff1d(data.classes, data.y[train])):
        raise ValueError(f"holdout {share:g} leaves no training row of class {lacking[0]!s}")
    return train, test


@dataclass(frozen=True)
class Split:
    """One split of a data set into training and test rows."""

    #: Row numbers of the training rows and of the test rows.
    train: IntArray
    test: IntArray
    #: Hash of the row numbers, computed by `split_digest`.
    digest: str
    #: Origin of the split, "official" if the split is distributed with the data, otherwise "drawn".
    origin: str
    #: Row numbers of the training rows that `max_train` excluded.
    rest: IntArray = field(default_factory=lambda: np.empty(0, np.intp))


class SplitRule(NamedTuple):
    """Name and argument of a split rule. The argument is None if the rule has no argument."""

    rule: str
    arg: Arg = None

    @property
    def spec(self) -> RuleSpec:
        """The split rule as written in a configuration, such as ``{"kfold": 10}``."""
        return self.rule if self.arg is None else {self.rule: self.arg}


def parse_rule(spec: RuleSpec) -> SplitRule:
    """Return the name and the argument of a split rule; raise UserError if either is invalid.

    Examples
    --------
    >>> parse_rule({"kfold": 10})
    SplitRule(rule='kfold', arg=10)
    """
    rule: Mapping[str, Any] = {spec: None} if isinstance(spec, str) else spec
    if len(rule) != 1:
        raise UserError(f"a split rule is a name or {{name: number}}, got {dict(rule)!r}")
    ((name, arg),) = rule.items()
    check_known(name, RULES, "unknown split rule")
    number = isinstance(arg, int | float) and not isinstance(arg, bool)
    fits, needs, example = {
        "none": (arg is None, "takes no number", name),
        "count": (number and arg >= 2 and arg % 1 == 0, "needs a whole number of at least 2", 5),
        "share": (number and 0 < arg < 1, "needs a share of the rows between 0 and 1", 0.2),
    }[RULES[name]]
    if not fits:
        example = example if example == name else f"{{{name}: {example}}}"
        raise UserError(f"{name} {needs}, as in {example}; got {spec!r}")
    return SplitRule(name, arg)


def split_rules(data: Described) -> list[str]:
    """Return the names of the split rules applicable to a data set, without reading its data."""
    expect = data.card.expect if data.card else None
    splits = expect and expect.predefined
    given = {"official": expect and expect.official, "predefined": splits or data.splits_source}
    return [name for name in RULES if given.get(name, True)]


def split_slots(
    spec: RuleSpec, data: Described, repeats: int | None = None
) -> list[tuple[int, int]]:
    """Return the pair (repeat, fold) of every split.

    The list is empty if the number of splits depends on data that have not been loaded. If
    `repeats` is None, the list contains all splits of the rule ``predefined``, and one repetition
    of every other rule.
    """
    rule, arg = parse_rule(spec)
    if rule in ("leave_one_out", "time_series") and repeats not in (None, 1):
        raise UserError(f"{rule} has a single partition; remove protocol.repeats")
    folds = int(arg or 1) if RULES[rule] == "count" else 1
    if rule == "leave_one_out":
        folds = len(np.unique(_units(data))) if isinstance(data, Dataset) else 0
    repeats = _n_repeats(rule, data, repeats)
    return [(repeat, fold) for repeat in range(repeats) for fold in range(folds)]


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
    """Return one split of a data set into training and test rows.

    Parameters
    ----------
    spec : str or mapping
        Split rule. If `args` contains the argument of the rule, `spec` is only the name of the
        rule.
    dataset : Dataset
    args : sequence of float
        Argument of the split rule; empty if the rule has no argument, or if `spec` contains the
        argument.
    repeat, fold, seed : int
    max_train : int, ("per_class", int) or ("nested", int), optional
        Size of a random stratified subset that replaces the training rows: n for at most n rows in
        total, ("per_class", n) for at most n rows per class, or ("nested", n) for exactly n rows.
        Up to rounding, a nested subset has the class proportions of the training rows. A nested
        subset contains all smaller nested subsets.

    Raises
    ------
    UserError
        If the data do not allow the split. Examples: the data set has no official split, a class
        has fewer rows than the number of folds, there is no test row, or a group has both training
        and test rows.
    """
    name, arg = parse_rule({spec: args[0]} if isinstance(spec, str) and args else spec)
    with converted(f"data set {dataset.name!r}", ValueError):
        whole, test = _cut(name, arg, dataset, repeat, fold, seed)
        if not len(whole) or not len(test):
            rule, part = f"{name} {arg or ''}".strip(), "test" if len(whole) else "training"
            raise ValueError(f"{rule} of {len(dataset.y)} rows leaves no {part} row")
        if (units := dataset.groups) is not None and np.isin(units[whole], units[test]).any():
            raise ValueError("a group has training and test rows; remove groups or change folds")
        train = training_subset(whole, dataset.y, max_train, seed, repeat)
    rest, digest = np.setdiff1d(whole, train), split_digest(train, test)
    origin = "official" if _is_official(name, dataset, repeat) else "drawn"
    return Split(train, test, digest, origin, rest)


def training_subset(
    train: IntArray, y: NDArray, size: MaxTrain, seed: int, repeat: int = 0
) -> IntArray:
    """Return a random subset of the training rows, of the size that `split_at` takes as
    `max_train`. Raises ValueError if a class would lose all its rows.
    """
    if size is None:
        return train
    _, codes, counts = np.unique(y[train], return_inverse=True, return_counts=True)
    kind, number = size if isinstance(size, tuple) else ("all", size)
    if kind == "nested" and number > len(train):
        raise ValueError(f"max_train {number} exceeds the {len(train)} training rows")
    shares: dict[str, Any] = {"all": allocate, "nested": allocate_nested, "per_class": np.minimum}
    share = shares[kind](counts, min(number, len(train)))
    if share.sum() == len(train):
        return train
    if share.min() == 0:
        raise ValueError(f"max_train {number} leaves a class without training rows")
    return train[pick_stratified(codes, share, random_stream(seed, repeat, SUBSET_STREAM))]


def split_digest(train: IntArray, test: IntArray) -> str:
    """Return a hash of the row numbers of a split; another order of the rows changes the hash."""
    digest = hashlib.sha256()
    for rows in (train, test):
        digest.update(f"{len(rows)}\n".encode() + np.asarray(rows, dtype="<i8").tobytes())
    return digest.hexdigest()[:20]


def allocate(counts: IntArray, total: int) -> IntArray:
    """Distribute `total` rows over classes in proportion to `counts` (largest remainder method).

    Examples
    --------
    >>> allocate(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    exact = counts * (total / counts.sum())
    share = np.floor(exact).astype(np.intp)
    share[np.argsort(share - exact, kind="stable")[: total - share.sum()]] += 1
    return share


def allocate_nested(counts: IntArray, total: int) -> IntArray:
    """Distribute `total` rows over classes so that no class gets fewer rows if `total` increases.

    Row r = 0, ..., n - 1 of a class of n rows has the value ``(r + 1/2) / n``; the `total` smallest
    values are counted per class. `allocate` may give a class fewer rows if `total` increases.

    Examples
    --------
    >>> allocate_nested(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    codes = np.repeat(np.arange(len(counts)), counts)
    position = np.concatenate([(np.arange(n) + 0.5) / n for n in counts.tolist()])
    return np.bincount(codes[np.argsort(position, kind="stable")[:total]], minlength=len(counts))


def pick_stratified(codes: IntArray, share: IntArray, random: np.random.RandomState) -> IntArray:
    """Return the sorted row numbers of ``share[k]`` random rows of each class k."""
    rows = [np.flatnonzero(codes == k) for k in range(len(share))]
    picked = [random.permutation(part)[:n] for part, n in zip(rows, share, strict=True)]
    return np.sort(np.concatenate(picked))


# Files of folds


def with_folds(data: Dataset, path: str) -> Dataset:
    """Return the data set with predefined splits that are read from a file of folds.

    The file has one line per row of the data, or one line per row of the user's table, including
    rows without a label or group. Raises UserError for any other number of lines.
    """
    table, n_rows = _read_folds(path), len(data.y)
    labelled = np.full(n_rows, True) if data.labelled is None else data.labelled
    columns = list(zip(*table, strict=True))
    words = any(cell and not is_number(cell) for _, *below in columns for cell in below)
    named = [not is_number(name) and name not in ("", *below) for name, *below in columns]
    heads = ((0, 1) if words else (1,)) if named and all(named) else (0,)
    # a blank line at the end of the file may stand for a row that is in no fold, or for no row
    last = max((k for k, line in enumerate(table, 1) if any(line)), default=0)
    fits = [(h, n) for h in heads for n in {n_rows, len(labelled)} if last <= h + n <= len(table)]
    if len(fits) != 1:
        size = f"has {len(table)} lines, but {data.name!r} has {n_rows} rows"
        advice = "names in the first line cannot be numbers or folds; remove blank lines at the end"
        raise UserError(f"{path}: {size} ({advice})")
    [(head, n)] = fits
    table = table[head : head + n]
    for k, line in enumerate(table):
        if fraction := next((cell for cell in line if "." in cell and is_number(cell)), None):
            raise UserError(f"{path}: row {k + 1} of the data: {fraction!r} is not a fold")
    if n > n_rows:
        table = list(compress(table, labelled))
    splits: list[Rows] = []
    for k, column in enumerate(zip(*table, strict=True), 1):
        cells = np.array(column)
        names = sorted(set(column) - {""}, key=lambda name: (len(name), name))  # "2" before "10"
        if {name.casefold() for name in names} == {"train", "test"}:
            advice = "write a fold in the rows of the test part only, and nothing in the other rows"
            raise UserError(f"{path}: column {k} has the words train and test; {advice}")
        if len(names) == len(cells) and len(columns) > 1:
            raise UserError(f"{path}: column {k} has another fold in each row; remove row names")
        splits += [(np.flatnonzero(cells != name), np.flatnonzero(cells == name)) for name in names]
    if not splits:
        raise UserError(f"{path}: all cells are empty, so there are no test rows")
    content = hash_with_folds(data.content_hash, path)
    return replace(
        data, predefined=splits, split_deviations=(), splits_source=path, content_hash=content
    )


def hash_with_folds(content_hash: str, path: str) -> str:
    """Return one hash for the content of the data and of a file of folds."""
    with converted(path, OSError):
        folds = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    # if a change of the code changes the folds that are read, increase the number in "folds 2"
    return hashlib.sha256(f"{content_hash}\nfolds 2 {folds}".encode()).hexdigest()


def _read_folds(path: str) -> list[list[str]]:
    """Return the cells of each line of a file of folds; the cells of a blank line are empty."""
    with (
        converted(f"{path}: not a file of folds", OSError, UnicodeDecodeError, csv.Error),
        Path(path).open(encoding="utf-8-sig", newline="") as file,
    ):
        separator = max(",;\t", key=file.read().count)
        file.seek(0)
        lines = [[cell.strip() for cell in line] for line in csv.reader(file, delimiter=separator)]
    width = next(filter(None, map(len, lines)), 0)
    for k, line in enumerate(lines):
        if len(line) not in (0, width):
            raise UserError(f"{path}: line {k + 1} has {len(line)} cells, not {width}")
    return [line or [""] * width for line in lines]
