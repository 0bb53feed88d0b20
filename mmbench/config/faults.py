"""Messages about faults in a configuration: the path of keys, the problem, and a similar valid
name.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pydantic import BaseModel, ValidationError

from mmbench.config.model import (
    NAME_FORM,
    QUEUES,
    Config,
    DatasetEntry,
    JobLimits,
    MachineEntry,
    ParametersFrom,
    Protocol,
    QueueJobs,
    Select,
    keys_of,
)
from mmbench.datasets.partitions import RULES
from mmbench.errors import UserError, did_you_mean
from mmbench.machines import machine_class

#: Maximum length of a value in a message, in characters.
MAX_SHOWN = 60
#: Pydantic models of the sections in the YAML file of an experiment, by the key of the section.
SECTIONS: dict[str, type[BaseModel]] = {
    "protocol": Protocol,
    "select": Select,
    "machines": MachineEntry,
    "datasets": DatasetEntry,
    "limits": JobLimits,
    "cluster": QueueJobs,
    "parameters_from": ParametersFrom,
}
#: Phrases in the messages of pydantic, and the phrases that replace them for users.
WORDS = {
    "Input should be": "must be",
    "a valid dictionary": "a mapping",
    "a valid list": "a list",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid string": "text",
    "a valid boolean": "true or false",
}
#: For some error types of pydantic, the message that replaces pydantic's message.
MESSAGES = {
    "model_type": "must be a mapping of keys",
    "string_pattern_mismatch": f"must be {NAME_FORM}",
}


class Fault(ValueError):
    """A fault in a configuration, with the path of keys that leads to the faulty value."""

    def __init__(self, message: str, *keys: Any):
        super().__init__(message)
        self.keys = keys


@contextmanager
def at(*keys: Any) -> Iterator[None]:
    """Context manager: convert an error inside the block to a `Fault`, whose path of keys begins
    with `keys`.
    """
    try:
        yield
    except (ValueError, UserError) as error:
        raise Fault(str(error), *keys, *getattr(error, "keys", ())) from None


def check_known(name: Any, known: Iterable[str], problem: str, *keys: Any) -> None:
    """Raise `Fault` if a name is not among the known names.

    The error message suggests a similar known name.
    """
    if name not in known:
        raise Fault(f"{problem} {name!r}{did_you_mean(name, known)}", *keys)


def dotted(keys: Iterable[Any]) -> str:
    """Return a path of keys as text.

    Examples
    --------
    >>> dotted(("datasets", 0, "path"))
    'datasets[0].path'
    """
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def explain(error: ValidationError, content: Mapping[str, Any]) -> str:
    """Return a one-line message about one of the faults that pydantic reports.

    If a key is unknown, the message is about this key. A misspelled key causes two faults: the key
    is unknown, and the correct key is missing.
    """
    fault = min(error.errors(), key=lambda f: f["type"] != "extra_forbidden")
    keys, kind, value = fault["loc"], fault["type"], fault["input"]
    if kind == "extra_forbidden":
        keys, problem = keys[:-1], _unknown_key(keys, value, content)
    elif kind == "invalid_key" or keys[-1] == "[key]":
        keys, problem = keys[: -1 if kind == "invalid_key" else -2], f"key {value!r} is not text"
        if isinstance(value, str):
            problem = f"unknown batch system {value!r}{did_you_mean(value, QUEUES)}"
    elif kind == "value_error":
        problem = str(fault["ctx"]["error"])
    elif kind in ("missing", "too_short"):
        problem = "is missing" if kind == "missing" else "is empty"
    else:
        problem = MESSAGES.get(kind, fault["msg"])
        for theirs, ours in WORDS.items():
            problem = problem.replace(theirs, ours)
        example = " such as {C: auto}" if kind == "dict_type" and keys[-1] == "grid" else ""
        problem += f"{example}, got {shown(value)}"
    return f"{dotted(keys)}: {problem}".removeprefix(": ")


def _unknown_key(keys: tuple, value: Any, content: Mapping[str, Any]) -> str:
    """Return a message about an unknown key.

    It names the section in which the key is valid, or suggests a similar valid key.
    """
    key, given = keys[-1], "VALUE" if value is None else shown(value)
    if keys[0] == "machines":
        machine = content["machines"][keys[1]].get("machine") or keys[1]
        with suppress(UserError):
            if isinstance(machine, str) and key in machine_class(machine).parameters:
                forms = f"params: {{{key}: {given}}} or grid: {{{key}: [{given}, ...]}}"
                forms = f"grid: {{{key}: {given}}}" if isinstance(value, list | dict) else forms
                return f"{key!r} is a parameter; write {forms}"
    if keys == ("protocol", key) and key in RULES:
        rule = key if RULES[key] == "none" else f"{{{key}: {given}}}"
        return f"{key!r} is a split rule; write test: {rule}"
    known = keys_of(SECTIONS[keys[0]] if keys[1:] else Config)
    if keys[1:] and key in Config.model_fields:
        return f"key {key!r} belongs at the top level of the file, not in {keys[0]}"
    for section in ("protocol", "select", "machines"):
        if key in SECTIONS[section].model_fields and section != keys[0]:
            name = ".NAME" * (section == "machines")
            return f"unknown key {key!r}; did you mean {section}{name}.{key}?"
    return f"unknown key {key!r}{did_you_mean(key, known)}"


def shown(value: Any) -> str:
    """Return a value as text, cut off after `MAX_SHOWN` characters.

    Examples
    --------
    >>> shown(None), shown("rbf"), len(shown("x" * 1000))
    ('nothing', "'rbf'", 63)
    """
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."
