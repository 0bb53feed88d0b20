"""From a file to a checked `Config`: every fault is one line with file, key and what was wrong."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from mmbench.config.checks import check, check_source
from mmbench.config.faults import Fault, dotted, explain
from mmbench.config.files import find_config
from mmbench.config.model import Config
from mmbench.config.overrides import Override, parse_overrides
from mmbench.config.smoke import version_for
from mmbench.config.yaml_text import read_yaml
from mmbench.errors import UserError


def load_configs(
    names: Iterable[str | Path | Config], overrides: Iterable[str] = ()
) -> list[Config]:
    """Return the checked experiments of several files; one fault refuses all.

    Parameters
    ----------
    names : iterable of path or Config
        Files, names of experiments, or experiments that are checked already.
    overrides : iterable of str
        ``KEY=VALUE``, for each of them.

    Raises
    ------
    UserError
        Also if two of the files have one experiment name, and so one folder of results.
    """
    seen: dict[str, Path] = {}
    configs = []
    replaced = parse_overrides(overrides)
    for name in names:
        if isinstance(name, Config):
            configs.append(name)
            continue
        path = find_config(name)
        config = load_config(path, replaced)
        if config.name in seen:
            raise UserError(
                f"{path}: name: {config.name!r} is also the name of {seen[config.name]}"
            )
        seen[config.name] = path
        configs.append(config)
    return configs


def load_config(path: str | Path, overrides: Iterable[Override] = ()) -> Config:
    """Return the experiment that a YAML file states, checked without reading data.

    Parameters
    ----------
    path : path
    overrides : iterable of Override
        Values in place of those of the file.

    Raises
    ------
    UserError
        If the file, or that of the experiment that ``parameters_from`` names, cannot be read, is
        not valid YAML, or is not a valid experiment.
    """
    config = _read(Path(path), overrides)
    if config.parameters_from is None:
        return config
    # the source's own source is not read: it may have none, and a circle would never end
    source = _read(Path(config.parameters_from.experiment))
    with _in_file(path):
        check_source(config, source)
    return config.with_source(version_for(config, source))


def _read(path: Path, overrides: Iterable[Override] = ()) -> Config:
    return config_of(read_yaml(path), path, overrides)


def config_of(content: Any, path: Path, overrides: Iterable[Override] = ()) -> Config:
    """Return the experiment that the content of a file states, checked without reading data.

    Parameters
    ----------
    content : object
        As read from YAML.
    path : Path
        Names the content in messages; other files are found from its folder.
    overrides : iterable of Override

    Raises
    ------
    UserError
    """
    if not isinstance(content, dict):
        raise UserError(f"{path}: must be a mapping of keys such as 'name' and 'datasets'")
    content = deepcopy(content)  # the caller's own stays as it is
    for override in overrides:
        override.apply(content)
    try:
        config = Config.model_validate(content, context={"folder": path.parent})
    except ValidationError as error:
        raise UserError(f"{path}: {explain(error, content)}") from None
    with _in_file(path):
        check(config)
    return config


@contextmanager
def _in_file(path: str | Path) -> Iterator[None]:
    """Name the file of a fault."""
    try:
        yield
    except Fault as fault:
        raise UserError(f"{path}: {dotted(fault.keys)}: {fault}") from None


def to_yaml(config: Config) -> str:
    """Return a configuration as text that `load_config` reads to an equal one, from any folder."""
    content = config.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)
