"""The frozen job: one machine, one data set, one split. A job's key names its record.

Planning writes jobs, running executes them and tables read them back from records, so this module
is the lowest of the experiment layer, and every value survives JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from mmbench.datasets.dataset import ADDED, DatasetRef

#: Raised when the meaning of a field changes, so that no old record answers for a new job.
JOB_SCHEMA = 1
KEY_LENGTH = 20
#: Degree of a polynomial kernel where a configuration does not say.
DEFAULT_DEGREE = 3
#: Folds of a calibration where parameters are chosen otherwise than by folds.
CALIBRATION_FOLDS = 5

Pairs = tuple[tuple[str, Any], ...]
#: First word of `SplitRef.max_train` where an experiment has several training sizes.
NESTED = "nested"


@dataclass(frozen=True)
class SplitRef:
    """Which rows train and which test."""

    #: "official", "predefined", "kfold", "holdout", "leave_one_out" or "time_series".
    rule: str
    #: ``(10,)`` for kfold and time_series, ``(0.1,)`` for holdout, else empty.
    args: tuple[float, ...] = ()
    #: Counts partitions; for ``predefined`` the number of the split in the card's list.
    repeat: int = 0
    #: Counts the folds of one partition; 0 for rules without folds.
    fold: int = 0
    #: Master seed of the experiment.
    seed: int = 0
    #: Train on a seeded stratified subset of at most so many rows, or of so many of each class; or
    #: on the first so many rows of one seeded order, so that smaller subsets lie in larger:
    #: an int, ("per_class", int) or ("nested", int).
    max_train: int | tuple[str, int] | None = None

    @property
    def at(self) -> tuple[int, int, int]:
        """What tells it from the other splits of an experiment: repeat, fold and seed."""
        return self.repeat, self.fold, self.seed

    @property
    def size(self) -> int | None:
        """The training size, where an experiment has several."""
        subset = self.max_train
        return subset[1] if isinstance(subset, tuple) and subset[0] == NESTED else None


@dataclass(frozen=True)
class SelectRef:
    """How hyper-parameters are chosen inside the training part."""

    #: Cross-validation with so many folds.
    folds: int | None = 5
    #: Validation fraction of repeated random splits. Where both are None, the training rows that
    #: ``max_train`` leaves out are the validation rows.
    split: float | None = None
    #: Repeats of the folds or of the split.
    repeats: int = 1
    #: One choice for all pairs of classes ("global"), one for each ("pair"), or one for all by the
    #: test rows ("test"): a leak.
    scope: str = "global"
    #: Which of equally good grid points wins, where it differs from the machine's own order: as
    #: (parameter, "small" or "large").
    prefer: tuple[tuple[str, str], ...] = ()
    #: What the choice goes by; see `mmbench.selection.metrics`.
    metric: str = field(default="accuracy", metadata=ADDED)


@dataclass(frozen=True)
class Job:
    """One unit of work; equal jobs have equal keys, in any process and on any computer."""

    #: Name of the experiment; not part of the key.
    experiment: str
    dataset: DatasetRef
    #: Content hash of the data set.
    dataset_hash: str
    split: SplitRef
    machine: str
    kernel: str
    #: Fixed parameters of the machine; holds ``degree`` when the kernel is ``poly``. They take
    #: precedence over inherited ones, and the grid over both.
    #: Sorted by name.
    params: Pairs = ()
    #: Parameters to select, sorted by name; ``auto`` is expanded. Empty: nothing to select.
    grid: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    #: Column of the machine whose selected parameters this one inherits.
    use: str | None = None
    #: Key of that machine's job; of several splits' jobs, of whose choices this one has the median.
    parent: str | tuple[str, ...] | None = None
    select: SelectRef = SelectRef()
    #: Rule for equal votes: "lowest", "random" or "expected".
    ties: str = "lowest"
    #: Version of the machine's code.
    machine_version: int = 1
    #: Name of the machine's column in tables, where that is not the machine's own.
    variant: str = field(default="", metadata=ADDED)
    #: Parameters of the estimator that are neither fixed here nor selected: its defaults.
    defaults: Pairs = field(default=(), metadata=ADDED)
    #: How decisions are mapped to probabilities, which are stored beside them: "sigmoid" or
    #: "isotonic".
    calibrate: str | None = field(default=None, metadata=ADDED)

    @cached_property
    def key(self) -> str:
        """Hash of everything that may alter the result."""
        return _digest(self._content())

    @property
    def parents(self) -> tuple[str, ...]:
        """Keys of the jobs whose selected parameters this one inherits."""
        if self.parent is None:
            return ()
        return (self.parent,) if isinstance(self.parent, str) else self.parent

    @property
    def shares(self) -> bool:
        """Whether it has one choice with the other splits."""
        return isinstance(self.parent, tuple)

    @property
    def column(self) -> str:
        """Name of the machine's column in tables: that of the machine, unless it has another."""
        return self.variant or self.machine

    @property
    def calibration_folds(self) -> int | None:
        """Folds of the training part by which probabilities are made: those of the selection."""
        return (self.select.folds or CALIBRATION_FOLDS) if self.calibrate else None

    @property
    def validates_on_rest(self) -> bool:
        """Whether selection is by the training rows that `max_train` leaves out."""
        nothing = self.select.folds is None and self.select.split is None
        return bool(self.grid) and nothing and not self.validates_on_test

    @property
    def validates_on_test(self) -> bool:
        """Whether selection is by the test rows: a leak, to measure what it is worth."""
        return bool(self.grid) and self.select.scope == "test"

    @property
    def cell_digest(self) -> str:
        """Hash of all but the split's number: records that may be averaged share it.

        The parent's key names a split and is left out too; its settings are in `use` and, through
        the records of that machine, in that machine's own cell.
        """
        one = replace(self, parent=None, split=replace(self.split, repeat=0, fold=0))
        return _digest(one._content())

    @property
    def degree(self) -> int | None:
        """Degree of a polynomial kernel."""
        return dict(self.params).get("degree") if self.kernel == "poly" else None

    @property
    def n_points(self) -> int:
        """Number of grid points; 1 when nothing is selected."""
        count = 1
        for _, values in self.grid:
            count *= len(values)
        return count

    def to_dict(self) -> dict[str, Any]:
        """Return the job as JSON types; `from_dict` reads it back."""
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Return the job that `to_dict` described.

        Raises
        ------
        KeyError, TypeError
            If a field is missing or unknown.
        """
        values = dict(values)
        parts = {
            "dataset": _from_dict(DatasetRef, values.pop("dataset")),
            "split": _from_dict(SplitRef, values.pop("split")),
            "select": _from_dict(SelectRef, values.pop("select")),
        }
        return _from_dict(cls, {**values, **parts})

    def _content(self) -> dict[str, Any]:
        dataset, content = _filled(self.dataset), _filled(self)
        dataset.pop("folds", None)
        del dataset["path"], content["experiment"]
        return {**content, "dataset": dataset, "schema": JOB_SCHEMA}


def _filled(part: Any) -> dict[str, Any]:
    """Return the fields of a dataclass, but for those added later that are at their default."""
    return {
        f.name: getattr(part, f.name)
        for f in fields(part)
        if not f.metadata.get("added") or getattr(part, f.name) != f.default
    }


def _from_dict(cls: type, values: Mapping[str, Any]) -> Any:
    """Build a dataclass from JSON types; every field must be there, so nothing is guessed."""
    missing = {f.name for f in fields(cls) if not f.metadata.get("added")} - set(values)
    if missing:
        raise KeyError(f"{cls.__name__} without {', '.join(sorted(missing))}")
    return cls(**{name: _frozen(value) for name, value in values.items()})


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _digest(content: Any) -> str:
    text = json.dumps(_canonical(content), sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def _canonical(value: Any) -> Any:
    """Return JSON types in which 10 and 10.0 are the same number."""
    if value is None or type(value) in (str, float, bool):  # nearly all there is: no further test
        return value
    if type(value) is int:
        return float(value)
    if is_dataclass(value):
        return {name: _canonical(item) for name, item in _filled(value).items()}
    if isinstance(value, Mapping):
        return {name: _canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
