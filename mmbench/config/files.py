"""Where experiments are found, in ``configs/`` here or in mmbench, and how their YAML is read.

PyYAML follows YAML 1.1: ``1e-3`` is text there, ``no`` is false, ``010`` is 8, ``1:30`` is 90, and
of two equal keys the last wins silently. Here numbers and truth values are those of YAML 1.2, and
a repeated key is an error. ruamel.yaml would do so without the loader below, but data set cards,
copies of experiments and Dask need PyYAML all the same, and one YAML library is enough.
"""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

from mmbench.errors import UserError, did_you_mean
from mmbench.resources import CONFIGS

#: Folder in which a bare name such as ``quickstart`` is looked up first.
LOCAL = Path("configs")
#: A larger file is no experiment; /dev/zero never ends.
MAX_BYTES = 4 * 2**20
#: Most values and keys after aliases are expanded: a few lines of aliases can stand for billions.
MAX_NODES = 10**6

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


def find_config(name: str | Path) -> Path:
    """Return the file of an experiment given by path or name; ``configs/NAME.yaml`` is a name too.

    Raises
    ------
    UserError
        If there is no such file.
    """
    path = Path(name)
    if path.exists():
        return path
    named = config_files().get(path.stem if path.suffix == ".yaml" else path.name)
    if named is not None and path.parent in (Path(), LOCAL):
        return named
    others = path.parent.glob("[!.]*.yaml") if path.suffix else ()
    hint = did_you_mean(path.stem, {other.stem for other in others} or set(config_files()))
    raise UserError(f"{path}: no such file{hint}")


def config_files() -> dict[str, Path]:
    """Return the files of the experiments that have a name here, by name."""
    files = [*CONFIGS.glob("[!.]*.yaml"), *LOCAL.glob("[!.]*.yaml")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def read_text(path: Path) -> str:
    """Return the text of a file of moderate size; an error names the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UserError(f"{path}: is larger than {MAX_BYTES // 2**20} MiB; not an experiment")
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None


def parse_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML text; an error begins with `where` and names the line."""
    import yaml

    try:
        try:
            loader = _loader_class(fast=True)(text)
            node = loader.get_single_node()
        except yaml.MarkedYAMLError:  # libyaml refuses {svm:, rmm:}, which is valid
            loader = _loader_class(fast=False)(text)
            node = loader.get_single_node()
        if node is None:
            return None
        if _expanded_size(node, where, {}) > MAX_NODES:
            raise UserError(f"{where}: its aliases stand for more than {MAX_NODES} values")
        return loader.construct_document(node)
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


def _expanded_size(node: Any, where: str, sizes: dict[int, float]) -> float:
    """Return the number of nodes with aliases expanded, and refuse repeated keys on the way.

    A node that holds itself has infinite size.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    sizes[id(node)] = math.inf
    parts = [] if isinstance(node.value, str) else node.value
    if node.id == "mapping":
        lines: dict[str, int] = {}
        for key, _ in parts:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines and name != "<<":
                first = f"first in line {lines[name]}"
                raise UserError(f"{where}, line {line}: key {name!r} occurs twice, {first}")
            lines[name] = line
        parts = [part for pair in parts for part in pair]
    sizes[id(node)] = 1 + sum(_expanded_size(part, where, sizes) for part in parts)
    return sizes[id(node)]


@cache
def _loader_class(fast: bool) -> Any:
    """Return a safe loader of PyYAML with the numbers and truth values of YAML 1.2."""
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader) if fast else yaml.SafeLoader

    class Loader(base):  # type: ignore[misc, valid-type]
        yaml_implicit_resolvers: dict[str, list] = {}  # noqa: RUF012 - PyYAML's own interface

        def construct_decimal(self, node: Any) -> int:
            """Read a whole number as decimal, leading zeros or not."""
            return int(self.construct_scalar(node))

    for tag, form, first in RESOLVERS:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{form})$"), first)
    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_decimal)
    return Loader
