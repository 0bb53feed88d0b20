"""Reading YAML without its traps.

PyYAML follows YAML 1.1: ``1e-3`` is text there, ``no`` is false, ``010`` is 8, ``1:30`` is 90, and
of two equal keys the last wins silently. Here numbers and truth values are those of YAML 1.2, and
a repeated key is an error.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from mmbench.config.files import read_text
from mmbench.errors import UserError

#: The core schema of YAML 1.2: tag, form, and the first characters that make the form possible.
RESOLVERS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)


class _StrictLoader(yaml.SafeLoader):
    """A safe loader with the numbers of YAML 1.2 and without repeated keys."""

    yaml_implicit_resolvers: dict[str, list] = {}  # noqa: RUF012 - PyYAML's own interface

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        """Read a whole number as decimal, leading zeros or not."""
        return int(self.construct_scalar(node))

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Read a mapping; two equal keys are an error."""
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines and name != "<<":
                problem = f"key {name!r} occurs twice, first in line {lines[name]}"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            lines[name] = line
        return node


for _tag, _form, _first in RESOLVERS:
    _StrictLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_form})$"), _first
    )
_StrictLoader.add_constructor("tag:yaml.org,2002:int", _StrictLoader.construct_decimal)


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file.

    Raises
    ------
    UserError
        If the file cannot be read or is not valid YAML; the message names file and line.
    """
    return parse_yaml(read_text(path), str(path))


def parse_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML text.

    Raises
    ------
    UserError
        If it is not valid YAML; the message begins with `where` and names the line.
    """
    try:
        return yaml.load(text, _StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{line}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError(f"{where}: nested too deeply") from None
    except (ValueError, LookupError, AttributeError) as error:  # !!int x, !!bool x, !!timestamp x
        raise UserError(f"{where}: holds a value that cannot be read ({error})") from None
