"""From a file to a checked `Config`: every fault is one line with file, key and what was wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from mmbench.config.checks import Fault, check, check_source
from mmbench.config.files import find_config
from mmbench.config.model import Config
from mmbench.config.yaml_text import read_yaml
from mmbench.errors import UserError, did_you_mean

MAX_SHOWN = 60


def load_configs(names: Iterable[str | Path]) -> list[Config]:
    """Return the checked experiments of several files; one fault refuses all.

    Raises
    ------
    UserError
        Also if two of the files have one experiment name, and so one folder of results.
    """
    seen: dict[str, Path] = {}
    configs = []
    for path in map(find_config, names):
        config = load_config(path)
        if config.name in seen:
            raise UserError(
                f"{path}: name: {config.name!r} is also the name of {seen[config.name]}"
            )
        seen[config.name] = path
        configs.append(config)
    return configs


def load_config(path: str | Path) -> Config:
    """Return the experiment that a YAML file states, checked without reading data.

    Raises
    ------
    UserError
        If the file cannot be read, is not valid YAML, or is not a valid experiment.
    """
    path = Path(path)
    config = _read(path)
    if config.parameters_from is not None:
        # the source's own source is not read: it may have none, and a circle would never end
        source = _read(Path(config.parameters_from))
        try:
            check_source(config, source)
        except Fault as fault:
            raise UserError(f"{path}: {dotted(fault.keys)}: {fault}") from None
    return config


def _read(path: Path) -> Config:
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a mapping of keys such as 'name' and 'datasets'")
    try:
        config = Config.model_validate(content, context={"folder": path.parent})
        check(config)
    except ValidationError as error:
        raise UserError(f"{path}: {_explain(error)}") from None
    except Fault as fault:
        raise UserError(f"{path}: {dotted(fault.keys)}: {fault}") from None
    return config


def to_yaml(config: Config) -> str:
    """Return a configuration as text that `load_config` reads to an equal one, from any folder."""
    content = config.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)


def dotted(keys: Iterable[Any]) -> str:
    """Return a key path as people write it.

    Examples
    --------
    >>> dotted(("datasets", 0, "path"))
    'datasets[0].path'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def _explain(error: ValidationError) -> str:
    """Put the first fault in one line; unknown keys first, since they explain missing ones."""
    faults = error.errors()
    fault = min(faults, key=lambda f: f["type"] != "extra_forbidden")
    keys, kind = fault["loc"], fault["type"]
    if kind == "extra_forbidden":
        parent = dotted(keys[:-1])
        where = f"{parent}: " if parent else ""
        return f"{where}unknown key {keys[-1]!r}{did_you_mean(keys[-1], known_keys(keys[:-1]))}"
    if kind == "invalid_key" or keys[-1] == "[key]":
        parent = dotted(keys[: -1 if kind == "invalid_key" else -2])
        return f"{parent}: " * bool(parent) + f"key {fault['input']!r} is not text"
    if kind == "missing":
        return f"{dotted(keys)}: is missing"
    if kind == "value_error":
        return f"{dotted(keys)}: {fault['ctx']['error']}"
    return f"{dotted(keys)}: {_plain(fault)}"


def _plain(fault: Any) -> str:
    """Put pydantic's words into those of a YAML file."""
    message = fault["msg"].replace("Input should be", "must be")
    for theirs, ours in (
        ("a valid dictionary", "a mapping"),
        ("a valid list", "a list"),
        ("a valid integer", "a whole number"),
        ("a valid number", "a number"),
        ("a valid string", "text"),
    ):
        message = message.replace(theirs, ours)
    if fault["type"] == "too_short":
        return "is empty"
    if fault["type"] == "model_type":
        message = "must be a mapping of keys"
    if fault["type"] == "string_pattern_mismatch":
        message = "must be letters, digits, '-', '_' and '.', beginning with a letter or digit"
    shown = "nothing" if fault["input"] is None else repr(fault["input"])
    shown = shown if len(shown) <= MAX_SHOWN else shown[:MAX_SHOWN] + "..."
    return f"{message}, got {shown}"


def known_keys(keys: Iterable[Any]) -> list[str]:
    """Return the valid keys of the part of a file that a key path leads to.

    Examples
    --------
    >>> known_keys(("machines", "svm"))
    ['params', 'grid', 'use', 'kernel']
    """
    model: type[BaseModel] = Config
    for key in keys:
        if key in model.model_fields:
            model = next(_models(model.model_fields[key].annotation), model)
    return list(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models inside an annotation such as ``dict[str, MachineEntry]``."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
