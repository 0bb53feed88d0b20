"""Find and read the YAML files of experiments, in the folder ``configs/`` and in the package.

PyYAML follows YAML 1.1 (``1e-3`` is text, ``no`` is false, ``010`` is 8, ``1:30`` is 90), and
accepts repeated keys. This loader reads numbers and truth values as in YAML 1.2, and rejects
repeated keys.
"""

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mmbench.errors import UserError, address_fault, converted, did_you_mean
from mmbench.resources import CONFIGS

#: Folder whose YAML files take precedence over the experiments in the package.
LOCAL = Path("configs")
#: The JSON Schema of configurations, and the beginning of the line that names it for editors.
SCHEMA, SCHEMA_LINE = Path(__file__).with_name("schema.json"), "# yaml-language-server: $schema="
#: Maximum size of a YAML file in bytes. Without a maximum, reading /dev/zero would never end.
MAX_BYTES = 4 * 2**20
#: Maximum number of keys and values after aliases are expanded: nested aliases can be billions.
MAX_NODES = 10**6
#: Default size limits of an experiment, which its key ``limits`` can replace.
MAX_COUNTS = {"entries": 1000, "jobs": 100_000, "grid_points": 10_000}
#: Maximum length of the other lists in a configuration, unless ``limits.entries`` is larger.
MAX_LENGTH = 10_000
#: Maximum number of repeats of the splits, and also maximum number of folds.
MAX_SPLITS = 10_000

#: Regular expressions for the values of each type in YAML 1.2 (core schema).
RESOLVERS = {
    "null": r"~|null|Null|NULL|",
    "bool": r"true|True|TRUE|false|False|FALSE",
    "int": r"[-+]?[0-9]+",
    "float": r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    "merge": r"<<",
}


def refuse_address(path: str | Path) -> None:
    """Raise ValueError if a path is an address such as https://..., which mmbench does not read."""
    if fault := address_fault(path):
        raise ValueError(fault)


def find_config(name: str | Path) -> Path:
    """Return the path of an experiment's YAML file, given its path or the name of the experiment.

    If the path does not exist, the name is searched among the experiments in ``configs/`` and in
    the package. If the path is a results folder, the configuration in this folder is used. If the
    configuration file is missing, it is restored from the plan in the folder.

    Raises
    ------
    UserError
        If no file is found.
    """
    with converted("", ValueError):
        refuse_address(name)
    path, known = Path(name), config_files()
    if path.parent in (Path(), LOCAL) and not path.is_file():
        path = known.get(path.name.removesuffix(".yaml"), path)
    lost = path.name == "experiment.yaml" and path.parent.is_dir() and not path.exists()
    if lost or path.is_dir():
        from mmbench.jobs.store import CONFIG, RecordStore

        path = RecordStore(path.parent if lost else path).folder / CONFIG
    if path.exists():
        return path
    others = path.parent.glob("[!.]*.yaml") if path.suffix else ()
    hint = did_you_mean(path.stem, {other.stem for other in others} or set(known))
    raise UserError(f"{path}: no such file{hint}")


def config_files() -> dict[str, Path]:
    """Return a dict from experiment names to YAML files, in the package and in ``configs/``.

    If an experiment in ``configs/`` and an experiment in the package have the same name, the file
    in ``configs/`` is returned.
    """
    files = [*CONFIGS.glob("[!.]*.yaml"), *LOCAL.glob("[!.]*.yaml")]
    return {path.stem: path for path in sorted(files, key=lambda path: path.stem)}


def read_text(path: Path) -> str:
    """Return the text of a file, which may have at most `MAX_BYTES` bytes.

    Error messages name the file.
    """
    with converted(str(path), OSError), path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise UserError(f"{path}: is larger than {MAX_BYTES // 2**20} MiB; not an experiment")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start})") from None


def template(name: str) -> str:
    """Return the text of an experiment's YAML file, as the beginning of a new file.

    If the first line names the JSON Schema of the repository for editors, the line names the
    installed schema instead, since the new file can be in any folder.
    """
    text = read_text(find_config(name))
    return re.sub(rf"\A{re.escape(SCHEMA_LINE)}.*", f"{SCHEMA_LINE}{SCHEMA}", text)


def load_yaml(name: str | Path, count: bool = False) -> Any:
    """Return the content of an experiment's YAML file, given its path or the name of the
    experiment.

    If `count` is true, `check_counts` checks the numbers of data sets, machines, splits and
    parameter values. The content must not be changed, since later calls return the same object.
    """
    path = find_config(name)
    content = parse_yaml(read_text(path), str(path))
    if count and isinstance(content, Mapping):
        check_counts(content, path)
    return content


def check_counts(content: Mapping[str, Any], where: str | Path) -> None:
    """Raise UserError if a configuration has more data sets, machines, preprocessing steps, splits
    or values of a parameter than its key ``limits`` allows, or another list that is too long.

    These numbers are checked first, since the other checks import libraries, and would take a
    minute for many thousand entries. Error messages begin with `where`.
    """
    sections = {key: _items(content.get(key)) for key in ("datasets", "machines")}
    counted = [(key, "entries", len(entries)) for key, entries in sections.items()]
    for key, entries in sections.items():
        for name, entry in entries.items():
            axes = map(_items, _items(_items(entry).get("grid")).values())
            counted += [(f"{key}.{name}.grid", "grid_points", len(axis)) for axis in axes]
            steps = _items(_items(entry).get("preprocess"))
            counted.append((f"{key}.{name}.preprocess", "entries", len(steps)))
    counted.append(("preprocess", "entries", len(_items(content.get("preprocess")))))
    protocol = _items(content.get("protocol"))
    times: list[Any] = [_items(protocol.get("test")).get("kfold"), protocol.get("repeats")]
    times = [n for n in times if type(n) is int and n <= MAX_SPLITS]
    splits = math.prod([len(_items(protocol.get("seed"))) or 1, *times])
    counted.append(("protocol", "jobs", splits))
    checked = [(*one, 0) for one in counted]
    # all other lists, such as names of columns
    checked += [
        (k, "entries", n, MAX_LENGTH) for k, part in content.items() for n in _lengths(part)
    ]
    for place, limit, n, least in checked:
        given = _items(content.get("limits")).get(limit)
        most = max(least, given if type(given) is int else MAX_COUNTS[limit])
        if n > most:
            option = f"more than {most} need --set limits.{limit}={n}"
            raise UserError(f"{where}: {place}: has {n} {limit.replace('_', ' ')}; {option}")


def _lengths(value: Any) -> Iterator[int]:
    """Yield the lengths of all lists and mappings in a part of a configuration, without grids."""
    if items := _items(value):
        yield len(items)
        for key, part in items.items():
            if isinstance(part, list | Mapping) and key != "grid":
                yield from _lengths(part)


def _items(value: Any) -> Mapping:
    """Return a mapping unchanged, a list as a dict with indices as keys, and any other value as an
    empty dict.
    """
    if isinstance(value, list):
        return dict(enumerate(value))
    return value if isinstance(value, Mapping) else {}


# cached, since `mmbench run` reads each file twice: before and after the import of libraries
@lru_cache(maxsize=16)
def parse_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML text. Error messages begin with `where` and state the line.

    The content must not be changed, since later calls return the same object.
    """
    import yaml

    try:
        loader = yaml_class("CSafeLoader" if hasattr(yaml, "CSafeLoader") else "SafeLoader")(text)
        try:
            node = loader.get_single_node()
        except yaml.MarkedYAMLError:  # the fast loader rejects {svm:, rmm:}, which is valid YAML
            loader = yaml_class("SafeLoader")(text)
            node = loader.get_single_node()
        if node is None:
            return None
        if _expanded_size(node, where, {}) > MAX_NODES:
            raise UserError(f"{where}: its aliases expand to more than {MAX_NODES} values")
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise UserError(f"{where}{line}: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{where}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise UserError(f"{where}: nested too deeply") from None
    except (ValueError, LookupError, AttributeError) as error:  # for example, !!int x
        raise UserError(f"{where}: contains a value that cannot be read ({error})") from None


def _expanded_size(node: Any, where: str, sizes: dict[int, float]) -> float:
    """Return the number of nodes of a YAML document after its aliases are expanded, or infinity if
    a node contains itself.

    Raises UserError if a key is repeated.
    """
    if id(node) in sizes:
        return sizes[id(node)]
    sizes[id(node)] = math.inf
    parts = [] if isinstance(node.value, str) else node.value
    if node.id == "mapping":
        lines: dict[str, int] = {}
        for key, _ in parts:
            name, line = key.value, key.start_mark.line + 1
            if not isinstance(name, str):
                raise UserError(f"{where}, line {line}: a key is a list or a mapping, not text")
            if name in lines and name != "<<":
                first = f"first in line {lines[name]}"
                raise UserError(f"{where}, line {line}: key {name!r} occurs twice, {first}")
            lines[name] = line
        parts = [part for pair in parts for part in pair]
    sizes[id(node)] = 1 + sum(_expanded_size(part, where, sizes) for part in parts)
    return sizes[id(node)]


def yaml_text(content: Mapping[str, Any]) -> str:
    """Return a configuration as YAML text."""
    import yaml

    form: Any = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None}
    return yaml.dump(dict(content), Dumper=yaml_class("SafeDumper"), **form)


@cache
def yaml_class(name: str) -> Any:
    """Return PyYAML's loader or dumper class `name`, changed to treat numbers and truth values as
    in YAML 1.2.
    """
    import yaml

    made: Any = type(name, (getattr(yaml, name),), {"yaml_implicit_resolvers": {}})
    for tag, form in RESOLVERS.items():
        made.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{form})$"), None)
    if name.endswith("Loader"):
        # an integer with a leading zero, such as 010, is a decimal number
        made.add_constructor("tag:yaml.org,2002:int", lambda self, n: int(self.construct_scalar(n)))
    return made
