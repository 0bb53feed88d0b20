"""The identity of the code behind a record: version, commit, fingerprint, default parameters.

The fingerprint of a machine is a hash of the syntax trees, without docstrings, of the module that
defines it and of every module of the same package that this one imports, directly or not. Comments,
docstrings and formatting leave it as it is.
"""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mmbench
from mmbench import machines

#: Parameters that say how a fit is executed, set by the runner or by a job's seed.
EXECUTION = {"n_jobs", "random_state", "time_limit", "cache_size"}


def identity(machine: str, version: int) -> dict[str, Any]:
    """Return the version, commit and fingerprint of a machine's code, for its record."""
    return {"version": version, "commit": commit(), "fingerprint": fingerprint(machine)}


@cache
def fingerprint(machine: str) -> str:
    """Return the fingerprint of the sources behind a machine.

    Empty for a class of an installed package, whose version is in the record.
    """
    cls = machines.machine_class(machine)
    module = getattr(cls, "make", cls).__module__
    installed = "site-packages" in Path(getattr(sys.modules[module], "__file__", "") or "").parts
    if installed and module.partition(".")[0] != mmbench.__name__:
        return ""
    digest = hashlib.sha256()
    for name in sorted(modules_behind(module)):
        digest.update(f"{name} {_source(name)[0]}\n".encode())
    return digest.hexdigest()[:12]


def modules_behind(module: str) -> set[str]:
    """Return a module and those of mmbench and of its own package that it imports, to the end."""
    packages = {mmbench.__name__, module.partition(".")[0]}
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name not in seen and name.partition(".")[0] in packages:
            seen.add(name)
            todo += _source(name)[1]
    return seen


@cache
def _source(module: str) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a module's syntax tree, and the modules that it imports."""
    spec = find_spec(module)
    if spec is None or not str(spec.origin).endswith(".py"):
        return "", ()
    tree = ast.parse(Path(str(spec.origin)).read_bytes())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            own = node.module.partition(".")[0] == module.partition(".")[0]
            imported |= {node.module} | {name for name in within if own and _is_module(name)}
    text = without_docstrings(tree)
    return hashlib.sha256(text.encode()).hexdigest(), tuple(sorted(imported))


def without_docstrings(tree: ast.Module) -> str:
    """Return a syntax tree as text, which comments, layout and docstrings do not change."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
    return ast.dump(tree)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # a name inside a module that is no package
        return False


@cache
def commit() -> str | None:
    """Return the commit of the checkout that mmbench runs from; None if it is installed."""
    git = Path(mmbench.__file__).resolve().parents[1] / ".git"
    try:
        if git.is_file():  # a worktree
            git = Path(git.read_text().partition(":")[2].strip())
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref: "):
            return head
        common = git / "commondir"
        shared = (git / common.read_text().strip()).resolve() if common.exists() else git
        name = head.removeprefix("ref: ")
        for folder in (git, shared):
            if (folder / name).exists():
                return (folder / name).read_text().strip()
        packed = (shared / "packed-refs").read_text().splitlines()
        return next((line.split()[0] for line in packed if line.endswith(name)), None)
    except OSError:
        return None


def parameters_of(machine: Any) -> dict[str, Any]:
    """Return the parameters of an estimator in JSON types, without those of its execution."""
    estimator = getattr(machine, "estimator", machine)
    return {
        name: _plain(value)
        for name, value in sorted(estimator.get_params(deep=False).items())
        if name not in EXECUTION
    }


def _plain(value: Any) -> Any:
    """Return JSON types; an object that has none is represented by its text."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError):
        return " ".join(repr(value).split())
