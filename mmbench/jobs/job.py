"""A job trains and tests one machine on one split of one data set. Its values are JSON."""

from __future__ import annotations

import hashlib
import json
import marshal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

from mmbench.datasets.dataset import DatasetRef
from mmbench.machines.base.search_space import SelectRef

#: Version of the fields of `Job`; part of every job's key. JOB_SCHEMA is increased if the meaning
#: of a field changes, so that old records are not used as results of new jobs.
JOB_SCHEMA = 1
KEY_LENGTH = 20
#: Degree of a polynomial kernel if the configuration gives no degree.
DEFAULT_DEGREE = 3
#: Number of folds for calibration if parameters are not selected by cross-validation.
CALIBRATION_FOLDS = 5

Pairs = tuple[tuple[str, Any], ...]
#: First element of `SplitRef.max_train` in experiments with several training sizes.
NESTED = "nested"


@dataclass(frozen=True)
class SplitRef:
    """The split of a data set into training and test rows."""

    #: One of "official", "predefined", "kfold", "holdout", "leave_one_out" and "time_series".
    rule: str
    #: Argument of the split rule: number of folds for kfold and time_series, as ``(10,)``; test
    #: fraction for holdout, as ``(0.1,)``; empty for all other split rules.
    args: tuple[float, ...] = ()
    #: Index of the repetition, from 0. For the rule "predefined", `repeat` is the index of the
    #: split in the data set's list of splits.
    repeat: int = 0
    #: Index of the fold in its repetition; 0 for rules without folds.
    fold: int = 0
    #: Master seed of the experiment.
    seed: int = 0
    #: Maximum size of the training subset, or None for all rows: n random stratified rows,
    #: ("per_class", n), or ("nested", n) for the first n rows of a random order, so that larger
    #: nested subsets contain smaller ones.
    max_train: int | tuple[str, int] | None = None

    @property
    def at(self) -> tuple[int, int, int]:
        """The tuple (repeat, fold, seed), which identifies a split for a given training size."""
        return self.repeat, self.fold, self.seed

    @property
    def size(self) -> int | None:
        """The training size if an experiment has several training sizes, else None."""
        subset = self.max_train
        return subset[1] if isinstance(subset, tuple) and subset[0] == NESTED else None


@dataclass(frozen=True)
class Job:
    """The training and test of one machine on one split of one data set.

    Equal jobs have equal keys, in any process and on any computer.
    """

    #: Name of the experiment; not part of the key.
    experiment: str
    dataset: DatasetRef
    #: Content hash of the data set.
    dataset_hash: str
    split: SplitRef
    machine: str
    kernel: str
    #: Fixed parameters of the machine as (name, value), sorted by name, with ``degree`` for
    #: ``poly``. They replace inherited parameters of the same names; parameters in `grid` are not
    #: fixed.
    params: Pairs = ()
    #: Searched parameters as (name, values), sorted by name; empty if no parameter is searched. If
    #: the configuration gives ``auto`` for a parameter, `grid` contains the list of values that
    #: replaces ``auto``.
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    #: Name of the entry of ``machines`` in the configuration whose selected parameters this job
    #: inherits.
    use: str | None = None
    #: Key of the job whose selected parameters this job inherits. If this job inherits the medians
    #: of parameters over several splits, `parent` contains the key of one job per split.
    parent: str | tuple[str, ...] | None = None
    select: SelectRef = field(default_factory=SelectRef)
    #: Rule for tied votes: "lowest" predicts the first of the tied classes, "random" draws one of
    #: them, and "expected" counts the expected errors of a random draw.
    ties: str = "lowest"
    #: Version of the machine's code.
    machine_version: int = 1
    #: Name of the job's entry of ``machines`` in the configuration, if this name differs from the
    #: name of the machine.
    variant: str = ""
    #: Default values of the estimator's parameters that are neither fixed nor selected.
    defaults: Pairs = ()
    #: Method of calibration, "sigmoid" or "isotonic", or None if no probabilities are computed.
    calibrate: str | None = None

    @cached_property
    def key(self) -> str:
        """Hash of all fields that may change the result."""
        dataset, content = _fields(self.dataset), _fields(self)
        del dataset["folds"]
        del dataset["path"], content["experiment"]
        content = _canonical({**content, "dataset": dataset, "schema": JOB_SCHEMA})
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    @property
    def parents(self) -> tuple[str, ...]:
        """Keys of the jobs whose selected parameters this job inherits."""
        return (self.parent,) if isinstance(self.parent, str) else self.parent or ()

    @property
    def shares(self) -> bool:
        """Whether the jobs of all splits inherit the same parameters (medians over the splits)."""
        return isinstance(self.parent, tuple)

    @property
    def column(self) -> str:
        """Name of the job's entry of ``machines`` in the configuration."""
        return self.variant or self.machine

    @property
    def has_kernel(self) -> bool:
        """Whether the machine uses the job's `kernel`, which classifiers of other packages ignore.

        A class that is given by its import path ``module:Class`` uses the kernel if it has the
        parameter `ties`, which all machines of mmbench have.
        """
        return ":" not in self.machine or "ties" in dict(self.defaults)

    @property
    def calibration_folds(self) -> int | None:
        """Number of folds for calibration, or None without calibration.

        The number is ``select.folds``, or `CALIBRATION_FOLDS` if the selection uses no folds.
        """
        return (self.select.folds or CALIBRATION_FOLDS) if self.calibrate else None

    @property
    def validates_on_rest(self) -> bool:
        """Whether selection validates on the rows that `max_train` excludes from training."""
        nothing = self.select.folds is None and self.select.split is None
        return bool(self.grid) and nothing and not self.validates_on_test

    @property
    def validates_on_test(self) -> bool:
        """Whether parameters are selected on the test rows; this selection leaks test data."""
        return bool(self.grid) and self.select.scope == "test"

    @property
    def cell_digest(self) -> str:
        """Hash of the fields that determine the key, without the parent, repeat, fold and seed.

        Results of jobs with equal hashes may be averaged. The key of the parent job is not hashed,
        since the jobs of different splits have different parents.
        """
        split = replace(self.split, repeat=0, fold=0, seed=0)
        return replace(self, parent=None, split=split).key

    @property
    def degree(self) -> int | None:
        """Degree of the kernel ``poly``; None for any other kernel or for a degree in `grid`."""
        return dict(self.params).get("degree") if self.kernel == "poly" else None

    def to_dict(self) -> dict[str, Any]:
        """Return the job in JSON types; `from_dict` is the inverse."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Create a job from the dict that `to_dict` returns.

        Raises
        ------
        KeyError, TypeError
            If a field is missing or unknown.
        """
        own = {**values}
        split, parent = _from_dict(SplitRef, own.pop("split")), _frozen(own.pop("parent"))
        return cls(**_shared(marshal.dumps(own, 2)), split=split, parent=parent)


@lru_cache(maxsize=1000)
def _shared(values: bytes) -> dict[str, Any]:
    """Return the fields of a job without its split and parent, which many jobs share."""
    own = marshal.loads(values)
    parts = {"dataset": DatasetRef, "select": SelectRef}
    own |= {name: _from_dict(part, own[name]) for name, part in parts.items()}
    return _arguments(Job, own, field_names(Job) - {"split", "parent"})


def _fields(part: Any) -> dict[str, Any]:
    """Return the dataclass fields by name, without cached properties."""
    return {f.name: getattr(part, f.name) for f in fields(part)}


def _from_dict(cls: type, values: Mapping[str, Any]) -> Any:
    """Return a dataclass from JSON types; raise KeyError if a field is missing."""
    return cls(**_arguments(cls, values, field_names(cls)))


def _arguments(cls: type, values: Mapping[str, Any], needed: frozenset[str]) -> dict[str, Any]:
    if missing := needed - values.keys():
        raise KeyError(f"{cls.__name__} without {', '.join(sorted(missing))}")
    return {name: _frozen(value) for name, value in values.items()}


@cache
def field_names(cls: type) -> frozenset[str]:
    """Return the names of the fields of a dataclass."""
    return frozenset(f.name for f in fields(cls))


def _frozen(value: Any) -> Any:
    # the most frequent types are tested first, for speed
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, dict):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _canonical(value: Any) -> Any:
    """Return a value in JSON types; integers become floats, so 10 and 10.0 have the same hash."""
    # the most frequent types are tested first, for speed
    if value is None or type(value) in (str, float, bool):
        return value
    if isinstance(value, int):
        return float(value)
    if is_dataclass(value):
        value = _fields(value)
    if isinstance(value, Mapping):
        return {name: _canonical(item) for name, item in value.items()}
    return [_canonical(item) for item in value] if isinstance(value, list | tuple) else value
