"""Configurations of bundles: written so that they run on another computer, and read with care.

A user's data files are no part of a bundle, but read from its folder; published rows are a part.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from mmbench.config.files import config_files, parse_yaml, read_text
from mmbench.config.model import Config
from mmbench.config.read import config_of
from mmbench.errors import UserError
from mmbench.results.folder import SETTINGS, folders_in
from mmbench.results.published import own_rows
from mmbench.results.unpack import is_bundle

#: Keys of a data set with the path of a file.
FILES = ("path", "folds")
#: Pattern for the import path of a class; the first group is the package.
CLASS_PATH = re.compile(r"([^\W\d]\w*)([.:][^\W\d]\w*)+")
#: Packages whose classes run without the option ``--trusted``.
KNOWN_PACKAGES = ("mmbench", "sklearn")


def portable(content: Mapping[str, Any], where: Path) -> dict[str, Any]:
    """Return the content of a configuration without what holds only on this computer: the folders
    of data files, the path of a published table, and the cluster.

    Raises UserError if two data files have the same name, if the published table cannot be read, or
    if the configuration takes parameters from an experiment that does not come with mmbench.
    """
    made = deepcopy(dict(content))
    made.pop("cluster", None)
    names = Counter[str]()
    for entry, key in _files(made):
        entry[key] = Path(entry[key]).name
        names[entry[key]] += key == "path"
    if twice := [name for name, count in names.items() if count > 1]:
        raise UserError(f"{where}: two data sets have a file {twice[0]!r}; rename one of the files")
    if isinstance(path := made.get("published"), str):
        made["published"] = [*own_rows(where.parent / Path(path).expanduser(), path)]
    if source := _source(made):
        made["parameters_from"] = {**source, "experiment": Path(source["experiment"]).stem}
        _check_source(made, where)
    return made


def in_place_of_bundles(
    experiments: Iterable[Any], overrides: Iterable[str] = (), trusted: bool = False
) -> list[Any]:
    """Return experiments, with the checked configurations of a bundle in place of its path.

    Raises UserError if a bundle names a file in another folder or the file of a published table,
    or, unless `trusted` is true, a class of another package than mmbench and scikit-learn, since
    its code would run.
    """
    made: list[Any] = []
    for one in experiments:
        if not (isinstance(one, str | Path) and is_bundle(one)):
            made.append(one)
            continue
        bundle = Path(one)
        found = [folder / SETTINGS for folder in folders_in(bundle)]
        if lost := [path for path in found if not path.is_file()]:
            raise UserError(f"{bundle}: {lost[0].parent.name} has no {SETTINGS}, so it cannot run")
        made += [_config(path, bundle, overrides, trusted) for path in found]
    return made


def _config(path: Path, bundle: Path, overrides: Iterable[str], trusted: bool) -> Config:
    content = parse_yaml(read_text(path), f"{bundle}, {path.parent.name}")
    if not isinstance(content, Mapping):
        raise UserError(f"{bundle}: {path.parent.name}: not a configuration")
    content = dict(content)
    content.pop("cluster", None)
    for entry, key in _files(content):
        if entry[key] in ("", ".", "..") or set(entry[key]) & set("/\\:~"):
            reason = "a bundle names data files without folders"
            raise UserError(f"{bundle}: {key}: {entry[key]}: {reason}; give yours with --set")
    if isinstance(named := content.get("published"), str):
        raise UserError(
            f"{bundle}: published: {named}: a bundle contains rows, not the name of a file"
        )
    if _source(content):
        _check_source(content, bundle)
    if not trusted and (names := sorted(set(_classes(content)))):
        advice = "if you trust it, --trusted runs its code"
        raise UserError(f"{bundle}: names {names[0]}, a class of another package; {advice}")
    return config_of(content, bundle, overrides)


def _files(content: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """Yield the data sets with a path, and the key of the path."""
    entries = content.get("datasets")
    for entry in entries if isinstance(entries, list) else ():
        for key in FILES if isinstance(entry, dict) else ():
            if isinstance(entry.get(key), str):
                yield entry, key


def _source(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the key ``parameters_from`` as a mapping, empty without this key."""
    source = content.get("parameters_from") or {}
    source = {"experiment": source} if isinstance(source, str) else source
    return source if isinstance(source, Mapping) and "experiment" in source else {}


def _check_source(content: Mapping[str, Any], where: Path) -> None:
    name = str(_source(content)["experiment"])
    if name not in config_files():
        problem = "a bundle takes parameters only from experiments that come with mmbench"
        raise UserError(f"{where}: parameters_from: {name}: {problem}")


def _classes(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the import paths of classes of other packages in a configuration."""
    entries = content.get("datasets")
    parts = [content.get("machines"), content.get("preprocess")]
    parts += [e.get("preprocess") for e in entries or () if isinstance(e, Mapping)]
    while parts:
        part = parts.pop()
        if isinstance(part, Mapping):
            parts += [value for key, value in part.items() if key != "label"]
            parts += part.keys()
        elif isinstance(part, list):
            parts += part
        elif found := CLASS_PATH.fullmatch(str(part)):
            yield from [found[0]] if found[1] not in KNOWN_PACKAGES else ()
