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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.card import PredefinedSplits
from mmbench.datasets.dataset import Dataset, DatasetRef, Rows, random_stream, too_few_rows
from mmbench.datasets.parsers.text import is_number
from mmbench.errors import UserError, did_you_mean

IntArray = NDArray[np.intp]
#: Argument of functions that need only the name, the card and the file of folds of a data set.
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


class Cut(NamedTuple):
    """Row numbers of one split; ``origin`` is "official" or "drawn" (computed)."""

    train: IntArray
    test: IntArray
    origin: str


def _refused(data: Dataset, reason: str) -> UserError:
    return UserError(f"data set {data.name!r}: {reason}")


# official: the split that all publications use. All repeats use the same split and differ in other
# random choices, such as the subset for `max_train`.


def _official_repeats(data: Described, repeats: int | None) -> int:
    if not (data.card and data.card.expect.official):
        raise _no_official(data)
    return repeats or 1


def _official_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    if data.split is None:
        raise _no_official(data)
    return Cut(*data.split, "official")


def _no_official(data: Described) -> UserError:
    return UserError(f"data set {data.name!r} has no official split; use kfold or holdout")


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


def _predefined_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    official = data.predefined or []
    if repeat < len(official):
        return Cut(*official[repeat], "official")
    plan = _plan(data, repeat + 1)
    order = random_stream(seed, repeat).permutation(len(data.y))
    train, test = np.split(order, [plan.train or 0, (plan.train or 0) + (plan.test or 0)])[:2]
    return Cut(np.sort(train), np.sort(test), "drawn")


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


def _kfold_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    folds, random = int(arg or 0), random_stream(seed, repeat)
    of_row = np.empty(len(data.y), dtype=np.intp)
    if data.groups is not None:
        from sklearn.model_selection import StratifiedGroupKFold

        n_groups = len(np.unique(data.groups))
        if n_groups < folds:
            raise _refused(data, f"{n_groups} groups are fewer than {folds} folds")
        cutter = StratifiedGroupKFold(folds, shuffle=True, random_state=random)
        for k, (_, test) in enumerate(cutter.split(data.y, data.y, data.groups)):
            of_row[test] = k
    else:
        if problem := too_few_rows(data.y, folds):
            raise _refused(data, problem)
        # The rows, ordered by class and shuffled within each class, are assigned to the folds in
        # turn: fold sizes differ by at most one, and so do the numbers of rows of a class per fold.
        codes, counts = codes_and_counts(data.y)
        classes = range(len(counts))
        dealt = np.concatenate([random.permutation(np.flatnonzero(codes == k)) for k in classes])
        of_row[dealt] = np.arange(len(codes)) % folds
    return Cut(np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold), "drawn")


# holdout: repeated stratified random splits; a fraction of the rows (or groups) is the test set.


def _holdout_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return a split with round(arg * n) stratified test rows, or with a fraction of the groups."""
    share, random = float(arg or 0), random_stream(seed, repeat)
    if data.groups is None:
        of, (codes, counts) = "", codes_and_counts(data.y)
        n_test = round(share * len(codes))
        if n_test == 0:
            raise _refused(data, f"holdout {arg:g} of {len(codes)} rows leaves no test row")
        test = pick_stratified(codes, allocate(counts, n_test), random)
        train = np.setdiff1d(np.arange(len(codes)), test)
    else:
        from sklearn.model_selection import GroupShuffleSplit

        of, cutter = " of the groups", GroupShuffleSplit(1, test_size=share, random_state=random)
        try:
            train, test = next(cutter.split(data.y, data.y, data.groups))
        except ValueError:
            n_groups = len(np.unique(data.groups))
            reason = f"holdout {arg:g} of {n_groups} groups leaves a part empty"
            raise _refused(data, reason) from None
    lacking = np.setdiff1d(data.classes, data.y[train])
    if len(lacking):
        raise _refused(data, f"holdout {arg:g}{of} leaves no training row of class {lacking[0]!s}")
    return Cut(train, test, "drawn")


# leave_one_out: each test set is one row or, if there are groups, one group.


def _units(data: Dataset) -> NDArray:
    """Return the group of each row; if the data have no groups, each row is a group."""
    return np.arange(len(data.y)) if data.groups is None else data.groups


def _n_units(arg: Arg, data: Described) -> int:
    """Return the number of rows or groups; 0 if the data are not loaded yet."""
    return len(np.unique(_units(data))) if isinstance(data, Dataset) else 0


def _leave_one_out_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    units = np.unique(_units(data))
    if len(units) < 2:
        raise _refused(data, "leave_one_out needs two groups, there is one")
    held = _units(data) == units[fold]
    return Cut(np.flatnonzero(~held), np.flatnonzero(held), "drawn")


# time_series: the rows are divided into successive blocks of time; the training rows of a block are
# all rows before this block.


def _time_series_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return one split; rows are ordered by time, or as in the file if there is no time column."""
    from sklearn.model_selection import TimeSeriesSplit

    time = np.arange(len(data.y)) if data.time is None else data.time
    order = np.argsort(time, kind="stable")
    try:
        parts = list(TimeSeriesSplit(int(arg or 0)).split(order))
    except ValueError:
        reason = f"{len(order)} rows are too few for time_series {arg:g}"
        raise _refused(data, reason) from None
    train, test = parts[fold]
    return Cut(order[train], order[test], "drawn")


class Rule(NamedTuple):
    """A split rule; by default there is one fold per repeat, and one repeat."""

    #: Type of the argument: "none", "count" (integer) or "share" (fraction between 0 and 1).
    argument: str
    #: Function (argument, data, repeat, fold, seed) -> row numbers of one split.
    cut: Callable[[Arg, Dataset, int, int, int], Cut]
    #: Function (argument, data) -> number of folds.
    n_folds: Callable[[Arg, Described], int] = lambda arg, data: 1
    #: Function (data, requested number of repeats or None) -> number of repeats.
    n_repeats: Callable[[Described, int | None], int] = lambda data, repeats: repeats or 1
    #: Whether the rule has a single, deterministic partition and does not allow repeats.
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
    #: Numbers of the training rows that `max_train` excluded.
    rest: IntArray = field(default_factory=lambda: np.empty(0, np.intp))


def parse_rule(spec: RuleSpec) -> tuple[str, Arg]:
    """Return name and argument of a rule. UserError: if the name or the argument is not valid.

    Examples
    --------
    >>> parse_rule("official"), parse_rule({"kfold": 10})
    (('official', None), ('kfold', 10))
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
    return name, arg


def split_rules(data: Described) -> list[str]:
    """Return the names of the split rules that are available for a data set; no data are read."""
    expect = data.card.expect if data.card else None
    missing = {
        "official": not (expect and expect.official),
        "predefined": not ((expect and expect.predefined) or data.folds),
    }
    return [name for name in RULES if not missing.get(name)]


def known_beforehand(spec: RuleSpec, ref: DatasetRef) -> bool:
    """Return whether the number of splits is known before the data are read."""
    name, _ = parse_rule(spec)
    return not (name == "leave_one_out" or (name == "predefined" and ref.folds is not None))


def split_slots(
    spec: RuleSpec, data: Described, repeats: int | None = None
) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split; `data` must be loaded unless `known_beforehand`.

    If `repeats` is None, the rule ``predefined`` returns all splits, and other rules one repeat.
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
        The split rule; or only its name, if `args` contains its argument (as in a job).
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
    train, test, origin = RULES[name].cut(arg, dataset, repeat, fold, seed)
    if not len(train) or not len(test):
        part = "test" if len(train) else "training"
        raise _refused(dataset, f"split {repeat} has no {part} row")
    whole = train
    if max_train is not None:
        train = _subset(whole, dataset, max_train, repeat, seed)
    rest = np.setdiff1d(whole, train)
    return Split(train, test, name, repeat, fold, seed, split_digest(train, test), origin, rest)


def _subset(
    train: IntArray, data: Dataset, size: int | tuple[str, int], repeat: int, seed: int
) -> IntArray:
    codes, counts = codes_and_counts(data.y[train])
    kind, number = size if isinstance(size, tuple) else ("all", size)
    if kind == "nested" and number > len(train):
        reason = f"max_train {number}, but there are {len(train)} rows to train on"
        raise _refused(data, reason)
    if kind == "per_class":
        share = np.minimum(counts, number)
    else:
        share_out = allocate_nested if kind == "nested" else allocate
        share = share_out(counts, min(number, len(train)))
    if share.sum() == len(train):
        return train
    if share.min() == 0:
        raise _refused(data, f"max_train {number} leaves a class without training row")
    return train[pick_stratified(codes, share, random_stream(seed, repeat, SUBSET_STREAM))]


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
        raise UserError(f"{path}: no row is tested")
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
