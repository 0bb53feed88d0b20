"""The experiment as its YAML file states it: keys, types and ranges.

What can be judged from the file alone is judged here; what needs the declarations of machines,
data sets and layouts is in `check`. Neither reads data.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)

from mmbench.config.grids import parse_axis
from mmbench.datasets import RULES, DatasetRef, parse_rule, parse_steps
from mmbench.datasets.card import one_or_more
from mmbench.datasets.reference import Scalar, Steps
from mmbench.errors import UserError, did_you_mean
from mmbench.jobs.job import NESTED, SelectRef
from mmbench.kernels import KERNELS

#: More repeats or folds than this are a mistake; their jobs would fill the memory.
MAX_SPLITS = 10_000
#: Folders below results/ that are no experiment's.
TAKEN_NAMES = ("reference",)
NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"


def _plain_steps(steps: Steps) -> list[str | dict[str, Scalar]]:
    """Return preprocessing as YAML states it: ``[{"divide": 255}, {"pca": 80}]``."""
    return [name if arg is None else {name: arg} for name, arg in steps]


def _parse_kernels(value: Any) -> list[str]:
    """Read a kernel or a list of them."""
    names = one_or_more(value)
    if not names:
        raise ValueError("names no kernel")
    for k, name in enumerate(names):
        if name not in KERNELS:
            raise ValueError(f"unknown kernel {name!r}{did_you_mean(name, KERNELS)}")
        if name in names[:k]:
            raise ValueError(f"holds {name!r} twice")
    return names


def _resolve(path: str, info: ValidationInfo) -> str:
    """Resolve a path from the folder of the configuration, whatever the current one is."""
    full = Path((info.context or {}).get("folder", "."), path).resolve()
    if not full.is_file():
        raise ValueError(f"{path}: no such file")
    return str(full)


def _parse_max_train(value: Any) -> MaxTrain:
    """Read ``1000``, ``{per_class: 500}`` or a list of sizes."""
    if isinstance(value, list):
        if not value:
            raise ValueError("the list of training sizes is empty")
        sizes = sorted(_whole(size, 2) for size in value)
        if twice := {size for size in sizes if sizes.count(size) > 1}:
            raise ValueError(f"holds the size {min(twice)} twice")
        return Sizes(sizes)
    if isinstance(value, dict):
        if list(value) != ["per_class"]:
            raise ValueError(f"must be {MAX_TRAIN_FORMS}, got {value!r}")
        return ("per_class", _whole(value["per_class"], 1))
    return None if value is None else _whole(value, 2)


def _whole(value: Any, low: int) -> int:
    if type(value) is not int or value < low:
        raise ValueError(f"must be {MAX_TRAIN_FORMS}, from {low} on, got {value!r}")
    return value


def _plain_max_train(value: MaxTrain) -> Any:
    if isinstance(value, Sizes):
        return list(value)
    return dict([value]) if isinstance(value, tuple) else value


def _parse_classes(value: Any) -> tuple[str, ...]:
    """Read ``[3, 8]`` as ``("3", "8")``: labels are compared as text, in any order."""
    if not isinstance(value, list):
        raise ValueError(f"must be a list of classes, got {value!r}")
    for label in value:
        if isinstance(label, bool):
            raise ValueError(f"holds a truth value; put the class in quotes: {str(label).lower()}")
        if not isinstance(label, str | int | float):
            raise ValueError(f"a class is a name or a number, got {label!r}")
    names = sorted(map(str, value))
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"holds the class {min(twice)!r} twice")
    if len(names) < 2:
        raise ValueError(f"needs at least two classes, got {value!r}")
    return tuple(names)


def _parse_fixed(value: Any) -> Scalar | bool:
    """Read the value of a fixed parameter."""
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"must be a word or a number, got {value!r}; a list belongs in 'grid'")
    return value


def _empty_if_none(value: Any) -> Any:
    """Read a bare ``svm:`` as a machine with nothing to say."""
    return {} if value is None else value


class Sizes(tuple[int, ...]):
    """Several training sizes, ascending."""


#: A number of rows, of rows of each class as ``("per_class", n)``, or several numbers of rows.
MaxTrain = int | tuple[str, int] | Sizes | None
MAX_TRAIN_FORMS = "a number of rows, a list of such numbers, or {per_class: NUMBER}"

Positive = Annotated[int, Field(ge=1, le=MAX_SPLITS)]
StepList = Annotated[
    Any, PlainValidator(parse_steps), PlainSerializer(_plain_steps, return_type=Any)
]
Kernels = Annotated[list[str], PlainValidator(_parse_kernels)]
Degrees = Annotated[list[Positive], BeforeValidator(one_or_more), Field(min_length=1)]
Classes = Annotated[
    Any, PlainValidator(_parse_classes), PlainSerializer(list, return_type=list[str])
]
MaxTrainKey = Annotated[
    Any,
    PlainValidator(_parse_max_train),
    PlainSerializer(_plain_max_train, return_type=Any),
]
#: Axes as `grids.Axis`; pydantic need not know more.
Grid = dict[str, Annotated[Any, PlainValidator(parse_axis)]]


class Strict(BaseModel):
    """Base of all parts: no key unknown, no value converted, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DatasetEntry(Strict):
    """A data set: the name of a card, or a user's file with its target column.

    ``classes`` leaves out the rows of all others. ``grid`` replaces, for this data set, axes of the
    machines' grids. ``published_as`` names the lines of a published table to compare with, where
    they have another name.
    """

    name: str | None = Field(default=None, pattern=NAME_PATTERN)
    path: str | None = None
    target: str | None = None
    classes: Classes = ()
    preprocess: StepList | None = None
    grid: Grid = {}
    published_as: str | None = None

    @field_validator("path", mode="after")
    @classmethod
    def _absolute(cls, path: str | None, info: ValidationInfo) -> str | None:
        return None if path is None else _resolve(path, info)

    @model_validator(mode="after")
    def _card_or_file(self) -> DatasetEntry:
        if self.path is None and self.name is None:
            raise ValueError("needs a name (a card) or a path and a target (a file)")
        if (self.path is None) != (self.target is None):
            raise ValueError("path and target go together")
        if not re.fullmatch(NAME_PATTERN, self.label):
            raise ValueError(f"{self.label!r} cannot name the data in tables; give it a 'name'")
        return self

    @property
    def label(self) -> str:
        """The name in tables: that of the card, or of the file without its suffix."""
        return self.name if self.name is not None else Path(str(self.path)).stem

    def ref(self, steps: Steps) -> DatasetRef:
        """Return the part of a job's identity that this is, with the steps that apply."""
        return DatasetRef(self.label, self.path, self.target, steps, self.classes)


class TestRule(Strict):
    """What is tested on: a rule and its argument."""

    rule: str
    arg: int | float | None = None

    @property
    def spec(self) -> str | dict[str, float]:
        """The rule as YAML states it."""
        return self.rule if self.arg is None else {self.rule: self.arg}


def _parse_test(value: Any) -> dict[str, Any]:
    if not isinstance(value, str | dict):
        raise ValueError(f"must be a rule: {', '.join(RULES)}; got {value!r}")
    try:
        rule, arg = parse_rule(value)
    except (UserError, OverflowError) as error:
        raise ValueError(str(error)) from None
    if arg is not None and arg > MAX_SPLITS:
        raise ValueError(f"{rule} of more than {MAX_SPLITS} parts, got {arg!r}")
    return {"rule": rule, "arg": arg}


class Protocol(Strict):
    """How training and test rows are cut, how often, and from which seed.

    ``repeats`` of the official split repeat what is random in the rest: inner folds and ties.
    ``max_train`` trains on a seeded stratified subset of at most so many rows, or so many a class;
    with a list of sizes the smaller subsets lie in the larger ones.
    """

    test: Annotated[TestRule, BeforeValidator(_parse_test)]
    repeats: Positive | None = None
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    max_train: MaxTrainKey = None

    @property
    def subsets(self) -> list[int | tuple[str, int] | None]:
        """``max_train`` as the jobs have it, one entry a training size."""
        if isinstance(self.max_train, Sizes):
            return [(NESTED, size) for size in self.max_train]
        return [self.max_train]

    @field_serializer("test")
    def _plain_test(self, test: TestRule) -> Any:
        return test.spec


class Select(Strict):
    """Inner model selection: folds, repeated random splits, or the rows that max_train leaves.

    ``validation: test`` chooses by the accuracy on the test part. That is a leak; it is there to
    measure the optimism of published results that have it, and every table says so.
    """

    folds: Annotated[int, Field(ge=2, le=MAX_SPLITS)] | None = None
    split: Annotated[float, Field(gt=0, lt=1)] | None = None
    validation: Literal["rest", "test"] | None = None
    repeats: Positive = 1
    scope: Literal["global", "pair"] = "global"
    prefer: dict[str, Literal["small", "large"]] = {}

    @model_validator(mode="after")
    def _one_way(self) -> Select:
        stated = [n for n in ("folds", "split", "validation") if getattr(self, n) is not None]
        if len(stated) > 1:
            raise ValueError(f"{' and '.join(stated)} exclude each other")
        if self.validation is not None and self.repeats > 1:
            raise ValueError("validation is made once; repeats belong to folds and split")
        if self.validation == "test" and self.scope == "pair":
            raise ValueError("validation on the test part is of all classes, scope global")
        return self

    @property
    def ref(self) -> SelectRef:
        """The part of a job's identity that this is; five folds when nothing is said."""
        nothing = self.folds is None and self.split is None and self.validation is None
        folds = 5 if nothing else self.folds
        scope = "test" if self.validation == "test" else self.scope
        return SelectRef(folds, self.split, self.repeats, scope, tuple(self.prefer.items()))


class MachineEntry(Strict):
    """One column of the table: a machine, its parameters and grid, and whose selection it takes.

    ``machine`` may be left out where the column has a machine's name; ``label`` heads the column.
    """

    machine: str | None = None
    params: dict[str, Annotated[Any, PlainValidator(_parse_fixed)]] = {}
    grid: Grid = {}
    use: str | None = None
    kernel: Kernels | None = None
    label: Annotated[str, Field(min_length=1)] | None = None


class Config(Strict):
    """An experiment."""

    name: str = Field(pattern=NAME_PATTERN)
    datasets: list[DatasetEntry] = Field(min_length=1)
    preprocess: StepList = ()
    kernel: Kernels = ["rbf"]
    degree: Degrees | None = None
    gamma_scaling: Literal["none", "per_feature"] = "none"
    kernel_scaling: Literal["none", "trace"] = "none"
    protocol: Protocol
    select: Select = Select()
    ties: Literal["lowest", "random", "expected"] = "lowest"
    machines: dict[str, Annotated[MachineEntry, BeforeValidator(_empty_if_none)]] = Field(
        min_length=1
    )
    parameters_from: str | None = None
    published_only: list[str] = []
    layout: str = "generic"
    _source: Config | None = PrivateAttr(default=None)

    @field_validator("name", mode="after")
    @classmethod
    def _not_taken(cls, name: str) -> str:
        if name in TAKEN_NAMES:
            raise ValueError(f"{name!r} is the folder of the reference tables")
        return name

    @field_validator("datasets", mode="before")
    @classmethod
    def _names_are_entries(cls, value: Any) -> Any:
        if not isinstance(value, list):
            raise ValueError(f"must be a list of data sets, got {value!r}")
        return [{"name": item} if isinstance(item, str) else item for item in value]

    @field_validator("parameters_from", mode="after")
    @classmethod
    def _file_of_experiment(cls, name: str | None, info: ValidationInfo) -> str | None:
        """Find the file of another experiment: beside this one, unless it is a path."""
        if name is None:
            return None
        return _resolve(name if name.endswith(".yaml") else f"{name}.yaml", info)

    @property
    def source(self) -> Config | None:
        """The experiment that ``parameters_from`` names, None if this one selects its own."""
        return self._source

    def with_source(self, source: Config) -> Config:
        """Return a copy that takes its parameters from another experiment."""
        copy = self.model_copy()
        copy._source = source
        return copy

    def machine_of(self, column: str) -> str:
        """Return the machine of a column, whose name it has where it does not say another."""
        return self.machines[column].machine or column

    def kernels_of(self, column: str) -> list[str]:
        """Return the kernels that the machine of a column runs with."""
        return self.machines[column].kernel or self.kernel

    def steps_of(self, entry: DatasetEntry) -> Steps:
        """Return the preprocessing of a data set."""
        return self.preprocess if entry.preprocess is None else entry.preprocess
