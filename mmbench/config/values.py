"""Types of the values in an experiment's YAML file, and functions that parse and write them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    PlainValidator,
    ValidationInfo,
)

from mmbench.config.files import MAX_SPLITS, config_files, read_text, refuse_address
from mmbench.config.grids import AUTO, LOG_BASES, distinct, in_yaml, parse_axis, parse_value
from mmbench.datasets.dataset import Steps
from mmbench.datasets.preprocess import STEP_NAMES, parse_steps
from mmbench.errors import UserError, check_known, converted
from mmbench.jobs.planned import PublishedRow
from mmbench.kernels import KERNELS
from mmbench.reader.keys import Forms, no_file, of_kind, one_or_list, one_or_more
from mmbench.results.published import own_rows


def _plain_steps(steps: Steps) -> list[Any]:
    """Return preprocessing steps in the form of a YAML file, such as ``[{"divide": 255}]``."""
    plain = ((name, dict(arg) if isinstance(arg, tuple) else arg) for name, arg in steps)
    return [name if arg is None else {name: arg} for name, arg in plain]


def _known_kernel(name: str) -> str:
    check_known(name, KERNELS, "unknown kernel", ValueError)
    return name


def _text(path: Any) -> Any:
    return os.fspath(path) if isinstance(path, os.PathLike) else path


def _resolved(path: str, info: ValidationInfo) -> str:
    """Return the absolute path of a file, given its path relative to the folder of the
    configuration.
    """
    refuse_address(path)
    full = Path((info.context or {}).get("folder", "."), os.path.expanduser(path)).resolve()
    if not full.is_file():
        raise ValueError(no_file(path, full))
    return str(full)


def _file_of_experiment(name: str, info: ValidationInfo) -> str:
    """Return the YAML file of another experiment, given its path or its name.

    The name of an experiment is searched in the folder of the configuration first, then among the
    experiments in `config_files`.
    """
    path, known = name.removesuffix(".yaml") + ".yaml", config_files()
    if name in known and not Path((info.context or {}).get("folder", "."), path).is_file():
        return str(known[name].resolve())
    return _resolved(path, info)


def _parse_max_train(value: Any) -> MaxTrain:
    """Return the value of ``max_train``: a number of training rows, a number of rows per class, or
    a sorted list of training sizes.
    """
    if value == []:
        raise ValueError("the list of training sizes is empty")
    if isinstance(value, list):
        return sorted(distinct([_whole(size, 2) for size in value]))
    if isinstance(value, dict) and list(value) == ["per_class"]:
        return {"per_class": _whole(value["per_class"], 1)}
    return None if value is None else _whole(value, 2)


def _whole(value: Any, low: int) -> int:
    if type(value) is not int or value < low:
        forms = "a number of rows, a list of such numbers, or {per_class: NUMBER}"
        raise ValueError(f"must be {forms}, with numbers of at least {low}, got {value!r}")
    return value


def _parse_classes(value: Any) -> tuple[str, ...]:
    """Return class labels as a sorted tuple of texts, for example ``("3", "8")`` for ``[3, 8]``."""
    if not isinstance(value, list):
        raise ValueError(f"must be a list of classes, got {value!r}")
    problem = "a class is a number or a name in quotes"
    labels = [str(of_kind(label, problem, str | int | float)) for label in value]
    if len(value) < 2:
        raise ValueError(f"must have at least two classes, got {value!r}")
    return tuple(distinct(sorted(labels)))


def _parse_published(value: Any, info: ValidationInfo) -> tuple[PublishedRow, ...]:
    """Return the rows of a published table, given the path of a CSV file, a data frame or rows."""
    import pandas as pd

    if value is None:
        return ()
    with converted("", UserError, to=ValueError):
        if isinstance(value, str):
            return own_rows(io.StringIO(read_text(Path(_resolved(value, info)))), value)
        if not isinstance(value, pd.DataFrame):
            rows = value if isinstance(value, list | tuple) else [value]
            problem = "must be the path of a CSV file, or a list of rows"
            value = pd.DataFrame([of_kind(row, problem, dict) for row in rows])
        return own_rows(value, "the rows")


#: JSON Schema of a mapping with one key.
ONE_KEY: dict[str, Any] = {"type": "object", "minProperties": 1, "maxProperties": 1}
#: Type of ``max_train``: number of training rows, rows per class, or a sorted list of sizes.
MaxTrain = int | dict[str, int] | list[int] | None

T = TypeVar("T")
#: Type of a list of distinct values. A single value stands for a list of one value.
Several = Annotated[
    list[T],
    BeforeValidator(one_or_more),
    Field(min_length=1),
    AfterValidator(distinct),
    Forms(single=True),
]
Positive = Annotated[int, Field(ge=1, le=MAX_SPLITS)]
Step = {"anyOf": [{"enum": [*STEP_NAMES]}, {"type": "string", "pattern": r"\."}, ONE_KEY]}
StepList = Annotated[
    Any, PlainValidator(parse_steps), PlainSerializer(_plain_steps), one_or_list(Step)
]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Kernel = Annotated[str, AfterValidator(_known_kernel), Forms(({"enum": [*KERNELS]},))]
Classes = Annotated[
    Any,
    PlainValidator(_parse_classes),
    PlainSerializer(list),
    Forms(({"type": "array", "items": {"type": ["string", "number"]}, "minItems": 2},)),
]
_PER_CLASS = {**ONE_KEY, "properties": {"per_class": {"type": "integer"}}}
MaxTrainKey = Annotated[
    Any,
    PlainValidator(_parse_max_train),
    Forms((_PER_CLASS, {"type": ["integer", "array", "null"], "items": {"type": "integer"}})),
]
#: Type of a grid: the values of each parameter, or ``auto``.
_POWERS = {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 3}
Grid = dict[
    str,
    Annotated[
        Any,
        PlainValidator(parse_axis),
        PlainSerializer(in_yaml),
        Forms(
            (
                {"const": AUTO},
                {"type": "array", "minItems": 1},
                {**ONE_KEY, "properties": dict.fromkeys(LOG_BASES, _POWERS)},
            )
        ),
    ],
]
#: Type of the value of a fixed parameter.
Value = Annotated[Any, PlainValidator(parse_value), PlainSerializer(in_yaml), Forms(({},))]
#: Type of a published table; a configuration in a results folder contains its rows.
PublishedTable = Annotated[
    Any,
    PlainValidator(_parse_published),
    PlainSerializer(list),
    Forms(({"type": ["string", "null"]}, {"type": "array", "items": {"type": "object"}})),
]
#: Types of the absolute paths of a data file and of another experiment's YAML file.
DataFile = Annotated[str, BeforeValidator(_text), AfterValidator(_resolved)]
ExperimentFile = Annotated[str, BeforeValidator(_text), AfterValidator(_file_of_experiment)]
