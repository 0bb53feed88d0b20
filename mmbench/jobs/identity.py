"""The identity of the code that made a record: version, commit, fingerprint and parameters.

A fingerprint covers all modules behind a machine in mmbench or the machine's package. A parameter's
description is an argument of a call, and changes the fingerprint.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType
from typing import Any

import mmbench
from mmbench import machines
from mmbench.datasets.preprocess import is_path
from mmbench.jobs.job import Job

#: Estimator parameters that are left out of records. Most of these parameters, such as `n_jobs`,
#: control the execution. The parameter `random_state` follows from the job's seed.
EXECUTION = {"n_jobs", "random_state", "time_limit", "cache_size"}

#: Estimator parameters that change `predict` and `decision_function`, but not the pairwise decision
#: values in a record. Records do not contain these parameters.
PREDICTION = {"break_ties", "decision_function_shape"}


def identity(job: Job) -> dict[str, Any]:
    """Return the version, the commit and the fingerprint of the code that a job's machine uses.

    If preprocessing steps are given by import paths, the entry "steps" contains the fingerprints of
    the steps' modules.
    """
    modules = {name.rpartition(".")[0] for name, _ in job.dataset.preprocess if is_path(name)}
    steps = " ".join(filter(None, map(module_fingerprint, sorted(modules))))
    code = {"version": job.machine_version, "commit": commit()}
    return {**code, "fingerprint": fingerprint(job.machine)} | ({"steps": steps} if steps else {})


def fingerprint(machine: str) -> str:
    """Return the fingerprint of a machine's code."""
    path = machines.MACHINES.get(machines.alias_of(machine).machine, "")
    if path.startswith(f"{mmbench.__name__}."):  # without an import, which takes seconds
        return module_fingerprint(path.partition(":")[0])
    cls = machines.machine_class(machine)
    return module_fingerprint(getattr(cls, "make", cls).__module__)


@cache
def module_fingerprint(module: str) -> str:
    """Return the fingerprint of a module with its imports.

    The fingerprint of a module of another installed package is the name and the version of the
    package. For scikit-learn, the fingerprint is empty, since all records contain the version of
    scikit-learn.
    """
    package, origin = module.partition(".")[0], getattr(_spec(module), "origin", None)
    if "site-packages" in Path(origin or "").parts and package != mmbench.__name__:
        names = packages_distributions().get(package, ()) if package != "sklearn" else ()
        return " ".join(f"{name} {version(name)}" for name in sorted(set(names)))
    text = "".join(f"{name} {source_of(name)[0]}\n" for name in sorted(modules_behind(module)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def modules_behind(module: str) -> set[str]:
    """Return the names of a module and of its direct and indirect imports. Imports from other
    packages than mmbench and the module's package are left out.
    """
    packages = {mmbench.__name__, module.partition(".")[0]}
    found = [module]
    for name in found:  # the list grows during the loop
        own = [other for other in source_of(name)[1] if other.partition(".")[0] in packages]
        found += [other for other in own if other not in found]
    return set(found)


@cache
def source_of(module: str) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a module's syntax tree, and the names of the imported modules."""
    spec = _spec(module)
    if spec is None or not str(spec.origin).endswith(".py"):
        return "", ()
    tree = ast.parse(Path(str(spec.origin)).read_bytes())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parent = spec.name if spec.submodule_search_locations else spec.parent
            with suppress(ImportError):  # raised by a relative import outside a package
                base = resolve_name("." * node.level + (node.module or ""), parent)
                within = {f"{base}.{alias.name}" for alias in node.names}
                own = base.partition(".")[0] == module.partition(".")[0]
                # only packages have submodules; `find_spec` imports what comes before the last dot
                package = own and getattr(_spec(base), "submodule_search_locations", None)
                imported |= {base} | {name for name in within if package and _spec(name)}
    return hashlib.sha256(without_docstrings(tree).encode()).hexdigest(), tuple(sorted(imported))


def without_docstrings(tree: ast.Module) -> str:
    """Return a syntax tree as text that does not depend on comments, formatting and docstrings.

    The returned text is the same in all versions of Python from 3.11 on.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:]
            if vars(node).get("type_params") == []:  # Python 3.12 added the field `type_params`
                del vars(node)["type_params"]
        # in the syntax trees of some f-strings, Python 3.12 adds constants that are empty strings
        elif isinstance(node, ast.JoinedStr):
            node.values = [part for part in node.values if getattr(part, "value", None) != ""]
    # from Python 3.13 on, `ast.dump` omits empty lists by default
    return ast.dump(tree, **({"show_empty": True} if sys.version_info >= (3, 13) else {}))


def _spec(module: str) -> Any:
    """Return the import specification of a module, or None if there is no such module."""
    with suppress(Exception):  # the parent module is not a package, or cannot be imported
        return find_spec(module)
    return None


@cache
def commit() -> str | None:
    """Return the commit of the Git checkout that contains mmbench, or None outside a checkout."""
    root = Path(mmbench.__file__).resolve().parents[1]
    if (root / ".git").exists():  # mmbench may be installed inside another repository
        with suppress(OSError):  # git is not installed
            call = ["git", "-c", "safe.directory=*", "-C", str(root), "rev-parse", "HEAD"]
            return subprocess.run(call, capture_output=True, text=True).stdout.strip() or None
    return None


def parameters_of(machine: Any) -> dict[str, Any]:
    """Return the estimator parameters that affect the record of a job, in JSON types."""
    estimator = getattr(machine, "estimator", machine)
    params = estimator.get_params(deep=False)
    # in another package, parameters with the names of the other parameters may change the result
    left_out = {"n_jobs", "random_state"}
    if estimator is machine:  # `machine` wraps no classifier of another package
        left_out = EXECUTION | PREDICTION
    return {name: _plain(params[name]) for name in sorted(params.keys() - left_out)}


def _plain(value: Any) -> Any:
    """Return a value in JSON types; an object without a JSON type becomes text.

    The text is the same in all processes: a function becomes its name, and any other object becomes
    its ``repr`` without memory addresses.
    """
    if hasattr(value, "tolist"):  # the `repr` of an array rounds and omits numbers
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, set | frozenset):  # the order of strings in a set differs by process
        return _plain(sorted(value, key=repr))
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    # the `repr` of a nested estimator omits parameters with default values
    if hasattr(value, "get_params") and not isinstance(value, type):
        params = value.get_params(deep=False)
        return [str(type(value)), {k: _plain(params[k]) for k in sorted(params.keys() - EXECUTION)}]
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        if isinstance(value, Mapping):
            return {str(name): _plain(one) for name, one in value.items()}
        return re.sub(" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))
