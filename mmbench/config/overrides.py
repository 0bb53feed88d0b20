"""``--set machines.svm.grid.C=[1,10]``: values in place of those in the files of experiments."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mmbench.config.yaml_text import parse_yaml
from mmbench.errors import UserError

PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
#: Characters that mean nothing alone in YAML: as a value, such as a decimal mark, they are text.
INDICATORS = frozenset(",|>&*!%@`?:-")
PATH = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[\d+\])*")


@dataclass(frozen=True)
class Override:
    """One value and the path of keys that leads to it."""

    #: As given, for messages.
    option: str
    keys: tuple[str | int, ...]
    value: Any

    def apply(self, content: Any) -> None:
        """Set the value in the content of a file; mappings on the way to it are made.

        Raises
        ------
        UserError
            If the path leads through something that has no such key.
        """
        for key, following in zip(self.keys, (*self.keys[1:], None), strict=True):
            fits = isinstance(content, list) if isinstance(key, int) else isinstance(content, dict)
            if not fits or (isinstance(key, int) and key >= len(content)):
                raise UserError(f"--set {self.option}: there is no place for {key!r} in the file")
            if following is None:
                content[key] = self.value
            elif isinstance(content, dict) and content.get(key) is None:
                content[key] = {}
            content = content[key]


def parse_overrides(options: Iterable[str]) -> list[Override]:
    """Return the overrides that ``KEY=VALUE`` options state; values are YAML.

    Raises
    ------
    UserError
        If an option has another form.

    Examples
    --------
    >>> [found] = parse_overrides(["datasets[0].grid.C=[1, 1e3]"])
    >>> found.keys, found.value
    (('datasets', 0, 'grid', 'C'), [1, 1000.0])
    """
    return [_parse(option) for option in options]


def _parse(option: str) -> Override:
    path, equals, text = option.partition("=")
    if not equals or not PATH.fullmatch(path):
        raise UserError(f"--set {option}: must be KEY=VALUE, as machines.svm.grid.C=[1,10]")
    keys = tuple(int(index) if index else name for name, index in PART.findall(path))
    value = text if text in INDICATORS else parse_yaml(text, f"--set {option}")
    return Override(option, keys, value)
