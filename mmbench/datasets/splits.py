"""Test splits: rows to train on and rows to test on. Each rule is one entry of `RULES`.

Every split can be made alone: it depends on the labels, the rule, the seed, and the numbers of its
repeat and fold. Random numbers come from ``SeedSequence(seed, spawn_key=(repeat,))``, so a further
repeat never alters an earlier one, and all folds of one repeat share one shuffle.

A file of folds is a CSV file with one line per row of the data. Each cell names the fold in which
the row is tested, by a number or a word; with an empty cell the row is always trained on. A first
line of names is skipped.
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
#: A data set of which only name and card need be known.
Described = DatasetRef | Dataset
#: Argument of a rule as YAML states it.
Arg = float | None
#: How a rule is written: ``"official"`` or ``{"kfold": 10}``.
RuleSpec = str | Mapping[str, float]
#: Upper bound on the training rows: of all classes together, ``("per_class", n)``, or
#: ``("nested", n)``, the first n of one order.
MaxTrain = int | tuple[str, int] | None
#: Keeps the random numbers of `max_train` apart from those of the split.
SUBSET_STREAM = 1


class Cut(NamedTuple):
    """Rows of one split; ``origin`` is "official" or "drawn"."""

    train: IntArray
    test: IntArray
    origin: str


def _refused(data: Dataset, reason: str) -> UserError:
    return UserError(f"data set {data.name!r}: {reason}")


# official: the split that all publications use; its repeats differ in the rest of an experiment


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


# predefined: the splits of the card or of a file of folds. If the source lacks some of them, the
# list is completed by random splits of the same sizes, not stratified, as the official ones are.


def _predefined_repeats(data: Described, repeats: int | None) -> int:
    """Return the number of splits asked for, by default all; 0 before a file of folds is read."""
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
    """Return the card's list, which must hold `wanted` splits or state the sizes of more."""
    plan = data.card.expect.predefined if data.card else None
    if plan is None:
        hint = "use kfold or holdout, or state a file of folds"
        raise UserError(f"data set {data.name!r} has no predefined splits; {hint}")
    if wanted > plan.count and not plan.train:
        message = f"data set {data.name!r} has {plan.count} predefined splits, not {wanted}"
        raise UserError(f"{message}; set protocol.repeats to at most {plan.count}")
    return plan


# kfold: stratified cross-validation, repeated with new shuffles; groups stay together


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
        # The shuffled rows of one class after another are dealt to the folds in turn: fold sizes
        # differ by at most one, and so do the rows of a class.
        codes, counts = codes_and_counts(data.y)
        classes = range(len(counts))
        dealt = np.concatenate([random.permutation(np.flatnonzero(codes == k)) for k in classes])
        of_row[dealt] = np.arange(len(codes)) % folds
    return Cut(np.flatnonzero(of_row != fold), np.flatnonzero(of_row == fold), "drawn")


# holdout: repeated stratified random splits that hold out a share of the rows, or of the groups


def _holdout_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return round(arg * n) test rows, each class in proportion; or a share of the groups."""
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


# leave_one_out: every row, or every group, is tested once


def _units(data: Dataset) -> NDArray:
    """Return the group of each row; without groups, each row is its own."""
    return np.arange(len(data.y)) if data.groups is None else data.groups


def _n_units(arg: Arg, data: Described) -> int:
    """Return the number of rows or groups; 0 before the rows are known."""
    return len(np.unique(_units(data))) if isinstance(data, Dataset) else 0


def _leave_one_out_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    units = np.unique(_units(data))
    if len(units) < 2:
        raise _refused(data, "leave_one_out needs two groups, there is one")
    held = _units(data) == units[fold]
    return Cut(np.flatnonzero(~held), np.flatnonzero(held), "drawn")


# time_series: successive parts in time, each tested by a machine trained on all rows before it


def _time_series_cut(arg: Arg, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return rows in the order of time, or of the file if there is no column of time."""
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
    """A split rule; its defaults are one fold per repeat, and one repeat."""

    #: Argument: "none", "count" or "share".
    argument: str
    #: Return the rows of one split, given argument, data, repeat, fold and seed.
    cut: Callable[[Arg, Dataset, int, int, int], Cut]
    #: Return the number of folds, given the argument.
    n_folds: Callable[[Arg, Described], int] = lambda arg, data: 1
    #: Return the number of repeats, given the number asked for.
    n_repeats: Callable[[Described, int | None], int] = lambda data, repeats: repeats or 1
    #: Whether there is one partition, which no repeat alters.
    fixed: bool = False


def _stated(arg: Arg, data: Described) -> int:
    return int(arg or 0)


#: Name in YAML -> rule.
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

    #: Row numbers.
    train: IntArray
    test: IntArray
    rule: str
    #: Arguments from which the split was made.
    repeat: int
    fold: int
    seed: int
    #: Hash of the row numbers, in order.
    digest: str
    #: Whether the rows come with the data or from the seed: "official" or "drawn".
    origin: str
    #: Training rows that `max_train` left out.
    rest: IntArray = field(default_factory=lambda: np.empty(0, np.intp))


def parse_rule(spec: RuleSpec) -> tuple[str, Arg]:
    """Return name and argument of a rule; a UserError names a wrong one.

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
    """Return the names of the rules that a data set allows, without reading the data."""
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

    Without `repeats`, ``predefined`` gives the whole list and other rules one partition.
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
        Train on a seeded stratified subset of at most this many training rows, or of this many
        rows per class; or on the first rows of one seeded order that mixes the classes in
        proportion from its beginning, so that a smaller subset lies in a larger one.

    Raises
    ------
    UserError
        If the data do not allow the split: no such split, a class with fewer rows than folds, no
        test row.
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
    """Return the hash of the row numbers, in order."""
    digest = hashlib.sha256()
    for rows in (train, test):
        digest.update(f"{len(rows)}\n".encode() + np.asarray(rows, dtype="<i8").tobytes())
    return digest.hexdigest()[:20]


def codes_and_counts(y: NDArray) -> tuple[IntArray, IntArray]:
    """Return class numbers and the number of rows of each class."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return codes.ravel(), counts


def allocate(counts: IntArray, total: int) -> IntArray:
    """Share out `total` rows over classes in proportion, by the largest remainders.

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
    """Share out at most `total` rows in proportion, never fewer to a class if `total` grows.

    Row r of a class of n rows has the position ``(r + 1/2) / n`` in an order of all rows. By the
    largest remainders (`allocate`) a class could lose a row if `total` grows.

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
    """Return sorted positions of ``share[k]`` random rows of each class k."""
    picked = [
        random.permutation(np.flatnonzero(codes == k))[:n] for k, n in enumerate(share.tolist())
    ]
    return np.sort(np.concatenate(picked))


# Files of folds


def with_folds(data: Dataset, path: str) -> Dataset:
    """Return a data set whose predefined splits are given by a file of folds."""
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
        names = sorted(set(column) - {""}, key=lambda name: (len(name), name))  # 2 before 10
        splits += [(np.flatnonzero(cells != name), np.flatnonzero(cells == name)) for name in names]
    if not splits:
        raise UserError(f"{path}: no row is tested")
    content = hash_with_folds(data.content_hash, path)
    return replace(data, predefined=splits, split_deviations=(), folds=path, content_hash=content)


def hash_with_folds(content_hash: str, path: str) -> str:
    """Return the hash of data together with their file of folds."""
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
