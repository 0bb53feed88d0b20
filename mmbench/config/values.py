"""Types of the values of a YAML file: valid forms, parsing and serialization."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)

from mmbench.config.files import config_files
from mmbench.config.grids import distinct, parse_axis
from mmbench.datasets import parse_steps
from mmbench.datasets.card import one_or_more
from mmbench.datasets.dataset import Scalar, Steps
from mmbench.errors import did_you_mean
from mmbench.kernels import KERNELS

#: Maximum number of repeats, and maximum number of folds.
MAX_SPLITS = 10_000


def _plain_steps(steps: Steps) -> list[str | dict[str, Scalar]]:
    """Return preprocessing steps in the form of YAML: ``[{"divide": 255}, {"pca": 80}]``."""
    plain = ((name, dict(arg) if isinstance(arg, tuple) else arg) for name, arg in steps)
    return [name if arg is None else {name: arg} for name, arg in plain]


def _parse_kernels(value: Any) -> list[str]:
    """Read the name of a kernel or a list of names."""
    names = one_or_more(value)
    if not names:
        raise ValueError("names no kernel")
    for name in names:
        if name not in KERNELS:
            raise ValueError(f"unknown kernel {name!r}{did_you_mean(name, KERNELS)}")
    return distinct(names, "holds {!r} twice")


def resolve(path: str, info: ValidationInfo) -> str:
    """Return the absolute path of a file given relative to the folder of the configuration."""
    full = Path((info.context or {}).get("folder", "."), path).resolve()
    if not full.is_file():
        raise ValueError(f"{path}: no such file")
    return str(full)


def _file_of_experiment(name: str, info: ValidationInfo) -> str:
    """Return the file of another experiment, given by a path or by a name.

    A name is searched in the folder of the configuration, then among `config_files`.
    """
    if name.endswith(".yaml"):
        return resolve(name, info)
    path = Path((info.context or {}).get("folder", "."), f"{name}.yaml")
    if not path.is_file() and name in config_files():
        return str(config_files()[name].resolve())
    return resolve(f"{name}.yaml", info)


def _parse_max_train(value: Any) -> MaxTrain:
    """Read ``1000``, ``{per_class: 500}`` or a list of sizes."""
    if isinstance(value, list):
        if not value:
            raise ValueError("the list of training sizes is empty")
        sizes = sorted(_whole(size, 2) for size in value)
        return TrainingSizes(distinct(sizes, "holds the size {} twice"))
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
    if isinstance(value, TrainingSizes):
        return list(value)
    return dict([value]) if isinstance(value, tuple) else value


def _parse_classes(value: Any) -> tuple[str, ...]:
    """Read ``[3, 8]`` as ``("3", "8")``; class labels are compared as text, and are sorted."""
    if not isinstance(value, list):
        raise ValueError(f"must be a list of classes, got {value!r}")
    for label in value:
        if isinstance(label, bool):
            raise ValueError(f"holds a truth value; put the class in quotes: {str(label).lower()}")
        if not isinstance(label, str | int | float):
            raise ValueError(f"a class is a name or a number, got {label!r}")
    if len(value) < 2:
        raise ValueError(f"needs at least two classes, got {value!r}")
    return tuple(distinct(sorted(map(str, value)), "holds the class {!r} twice"))


def parse_fixed(value: Any) -> Scalar | bool:
    """Return the value of a fixed parameter; raise ValueError if it is a list or a mapping."""
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"must be a word or a number, got {value!r}; a list belongs in 'grid'")
    return value


def parse_seeds(value: Any) -> int | list[int]:
    """Read a seed or a list of seeds."""
    seeds = one_or_more(value)
    for seed in seeds:
        if type(seed) is not int or not 0 <= seed < 2**32:
            raise ValueError(f"must be a whole number from 0 to 2^32 - 1, got {seed!r}")
    if not seeds:
        raise ValueError("the list of seeds is empty")
    return seeds[0] if len(seeds) == 1 else distinct(seeds, "holds the seed {} twice")


class TrainingSizes(tuple[int, ...]):
    """Several training sizes, ascending."""


#: Number of training rows; number of training rows per class as ``("per_class", n)``; or several
#: numbers of training rows.
MaxTrain = int | tuple[str, int] | TrainingSizes | None
MAX_TRAIN_FORMS = "a number of rows, a list of such numbers, or {per_class: NUMBER}"

Positive = Annotated[int, Field(ge=1, le=MAX_SPLITS)]
StepList = Annotated[Any, PlainValidator(parse_steps), PlainSerializer(_plain_steps)]
Kernels = Annotated[list[str], PlainValidator(_parse_kernels)]
Degrees = Annotated[
    list[Positive],
    BeforeValidator(one_or_more),
    Field(min_length=1),
    AfterValidator(lambda degrees: distinct(degrees, "degree {} occurs twice")),
]
Classes = Annotated[Any, PlainValidator(_parse_classes), PlainSerializer(list)]
MaxTrainKey = Annotated[Any, PlainValidator(_parse_max_train), PlainSerializer(_plain_max_train)]
#: Grid axes by parameter; values of type `grids.Axis`.
Grid = dict[str, Annotated[Any, PlainValidator(parse_axis)]]
#: Path of the YAML file of another experiment.
ExperimentFile = Annotated[str, AfterValidator(_file_of_experiment)]
