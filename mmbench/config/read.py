"""Read a YAML file as a checked `Config`.

``--set machines.svm.grid.C=[1,10]`` replaces a value before the check. An error is one line with
file, key and problem.
"""

import os
import re
from collections.abc import Iterable, Iterator, KeysView, Mapping, ValuesView
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

from pydantic import ValidationError

from mmbench.config.checks import check, check_source
from mmbench.config.faults import Fault, at, dotted, explain, shown
from mmbench.config.files import check_counts, find_config, load_yaml, parse_yaml, yaml_text
from mmbench.config.grids import distinct
from mmbench.config.model import Config, DatasetEntry
from mmbench.config.smoke import version_for
from mmbench.datasets.fetch import NoAnswer, NotAvailable, Places
from mmbench.datasets.openml import find_suite
from mmbench.errors import UserError, converted

KEY_PATH = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")
#: Characters that are no valid YAML alone: values of ``--set``, such as a decimal comma, are text.
INDICATORS = frozenset(",|>&*!%@`?:-")


def load_configs(
    names: Iterable[str | Path | Mapping | Config], overrides: Iterable[str] = ()
) -> list[Config]:
    """Return the checked configurations of several experiments.

    Parameters
    ----------
    names : iterable of path, mapping or Config
        YAML files, names of experiments, contents of YAML files, or checked configurations.
    overrides : iterable of str
        Replacements ``KEY=VALUE`` of values in every YAML file and mapping.

    Raises
    ------
    UserError
        If a configuration has a fault, or if two experiments have the same name and would therefore
        use the same results folder.
    """
    seen: dict[str, Path] = {}
    configs = []
    for name in names:
        if isinstance(name, Config):
            configs.append(name)
            continue
        path = Path("experiment") if isinstance(name, Mapping) else find_config(name)
        config = config_of(name if isinstance(name, Mapping) else load_yaml(path), path, overrides)
        if (other := seen.setdefault(config.name, path)) is not path:
            raise UserError(f"{path}: name: {config.name!r} is also the name of {other}")
        configs.append(config)
    return configs


def load_config(path: str | Path, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration in a YAML file, checked without reading data."""
    return config_of(load_yaml(path), Path(path), overrides)


def config_of(content: Any, path: Path, overrides: Iterable[str] = ()) -> Config:
    """Return the configuration with the content of a YAML file, checked without reading data.

    Relative paths in the content are relative to the folder of `path`. Messages name `path`.
    """
    config = _checked(content, path, overrides)
    if config.parameters_from is None:
        return config
    # `check_source` raises an error if the other experiment itself has the key `parameters_from`
    other = Path(config.parameters_from.experiment)
    source = _checked(load_yaml(other), other)
    with _in_file(path, content):
        check_source(config, source)
    return config.with_source(version_for(config, source))


def _checked(content: Any, path: Path, overrides: Iterable[str] = ()) -> Config:
    if not isinstance(content, Mapping):
        raise UserError(f"{path}: must be a mapping of keys such as 'name' and 'datasets'")
    content = _plain(content)
    if "machines" in content:
        with _in_file(path, content):
            content["machines"] = _as_mapping(content["machines"])
    for option in overrides:
        key, equals, text = option.partition("=")
        if not equals or not KEY_PATH.fullmatch(key):
            raise UserError(f"--set {option}: must be KEY=VALUE, such as select.folds=3")
        value = text if text in INDICATORS else parse_yaml(text, f"--set {option}")
        set_value(content, key, _plain(value), option)
    check_counts(content, path)
    with _in_file(path, content):
        config = Config.model_validate(content, context={"folder": path.parent})
        check(config)
    return config


def _plain(value: Any) -> Any:
    """Return a copy of a value in the types of a YAML file.

    Classes and functions become their import paths; mappings shared by anchors or merge keys are
    copied separately.
    """
    if isinstance(value, Mapping):
        return {_plain(key): _plain(part) for key, part in value.items()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type | FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, range | KeysView | ValuesView):
        value = list(value)
    value = value.tolist() if hasattr(value, "tolist") else value
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _as_mapping(machines: Any) -> Any:
    """Return ``machines`` as a mapping, given a mapping, or a list of names and of mappings.

    Examples
    --------
    >>> _as_mapping(["svm", {"rmm": {"use": "svm"}}])
    {'svm': None, 'rmm': {'use': 'svm'}}
    """
    if not isinstance(machines, list | tuple):
        return machines
    if wrong := [entry for entry in machines if not isinstance(entry, str | dict)]:
        raise Fault(f"a machine is a name or {{name: settings}}, got {wrong[0]!r}", "machines")
    entries = [
        pair
        for entry in machines
        for pair in (entry.items() if isinstance(entry, dict) else [(entry, None)])
    ]
    with at("machines"):
        distinct([name for name, _ in entries])
    return dict(entries)


def set_value(content: Any, key: str, value: Any, option: str) -> None:
    """Set the value at a path of keys in the content of a YAML file.

    Missing mappings on the path are created.

    Examples
    --------
    >>> content = {"datasets": [{"name": "iris"}]}
    >>> set_value(content, "datasets[0].grid.C", [1], "datasets[0].grid.C=[1]")
    >>> content
    {'datasets': [{'name': 'iris', 'grid': {'C': [1]}}]}
    """
    parts = re.findall(r"([^.\[\]]+)|\[(\d+)\]", key)
    keys = [int(index) if index else name for name, index in parts]
    for k, part in enumerate(keys):
        kind, name = (list, "list") if isinstance(part, int) else (dict, "mapping")
        if not isinstance(content, kind):
            problem = f"{dotted(keys[:k])} is {shown(content)} in the file, not a {name}"
            raise UserError(f"--set {option}: {problem}")
        if isinstance(part, int) and part >= len(content):
            problem = f"the file has no {dotted(keys[: k + 1])}; the first entry is [0]"
            raise UserError(f"--set {option}: {problem}")
        if k == len(keys) - 1:
            content[part] = value
        elif isinstance(content, dict) and content.get(part) is None:
            content[part] = {}
        content = content[part]


@contextmanager
def _in_file(path: Path, content: Mapping[str, Any]) -> Iterator[None]:
    """Context manager: convert a fault inside the block to a UserError that names the YAML file."""
    try:
        yield
    except Fault as fault:
        raise UserError(f"{path}: {dotted(fault.keys)}: {fault}") from None
    except ValidationError as error:
        raise UserError(f"{path}: {explain(error, content)}") from None


def with_tasks(config: Config, places: Places) -> tuple[Config, list[str], dict[str, str]]:
    """Return a configuration with one data set per task in place of each suite, a message for each
    suite with tasks that are left out, and the reason for each suite that cannot be downloaded.

    The other keys of the suite are keys of each task. Raises UserError if a suite has no task that
    can be used, if no data set is left, or if a task occurs twice.
    """
    entries: list[DatasetEntry] = []
    messages, absent = list[str](), dict[str, str]()
    for entry in config.datasets:
        if entry.openml_suite is None:
            entries.append(entry)
            continue
        source = str(entry.source)
        try:
            with converted(source, ValueError), converted(source, NoAnswer, to=NotAvailable):
                suite = find_suite(entry.openml_suite, places)
        except NotAvailable as error:
            absent[source] = str(error)
            continue
        for task in suite.tasks:
            entries.append(entry.model_copy(update={"openml_suite": None, "openml_task": task}))
        if suite.left_out:
            tasks = ", ".join(f"task {task} ({why})" for task, why in suite.left_out.items())
            messages.append(f"{entry.source}: left out: {tasks}")
        if not suite.tasks:
            raise UserError(messages[-1] if suite.left_out else f"{entry.source}: has no tasks")
    if not entries:
        raise UserError(next(iter(absent.values())))
    expanded = config.model_copy(update={"datasets": entries})
    with converted(config.name, Fault):
        check(expanded)
    if config.source is None:
        return expanded, messages, absent
    return expanded.with_source(with_tasks(config.source, places)[0]), messages, absent


def to_yaml(config: Config) -> str:
    """Return a configuration as YAML text, from which `load_config` reads an equal configuration.

    The paths in the text are absolute, so that the text can be stored in any folder.
    """
    return yaml_text(config.model_dump(exclude_defaults=True))
