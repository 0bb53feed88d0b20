"""Machines, data set cards, table layouts and figures from other installed packages.

A package declares them as entry points ``mmbench.machines``, ``mmbench.layouts``,
``mmbench.figures`` and ``mmbench.cards`` (docs/extending/index.md). Modules are imported at first
use. The folders `FOLDERS` are on the import path only while a module is imported that a
configuration names by its path.
"""

import sys
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import entry_points
from types import FunctionType
from typing import Any

from mmbench.errors import UserError

#: Folders searched last for named modules: in commands that run machines, the current folder.
FOLDERS: list[str] = []


def with_plugins(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the machines, cards, layouts or figures of mmbench and of installed packages.

    `own` maps the names of mmbench's items of this `kind` to their values. An item of another
    package is a string ``module`` or ``module:attribute``, and is ignored with a warning if its
    name is taken.
    """
    found = dict(own)
    for entry in entry_points(group=f"mmbench.{kind}"):
        if found.setdefault(entry.name, entry.value) != entry.value:
            package = entry.dist.name if entry.dist else "another package"
            text = f"{package}: {entry.name!r} is left out of the {kind}, as the name is taken"
            warnings.warn(text, stacklevel=2)
    return found


@contextmanager
def folders_searched() -> Iterator[None]:
    """Context manager: imports inside the block also search the folders `FOLDERS`."""
    added = [folder for folder in FOLDERS if folder not in sys.path]
    sys.path += added
    try:
        yield
    finally:
        for folder in added:
            with suppress(ValueError):  # the imported module may have changed the list
                sys.path.remove(folder)


def import_path(name: str) -> str:
    """Return the import path ``module:name``, given this path or ``module.name``.

    Examples
    --------
    >>> import_path("sklearn.svm.SVC"), import_path("sklearn.svm:SVC"), import_path("svm")
    ('sklearn.svm:SVC', 'sklearn.svm:SVC', 'svm')
    """
    return name if ":" in name else ":".join(name.rsplit(".", 1))


def imported(path: str) -> Any:
    """Return the object at ``module:name``, or raise UserError if the import fails."""
    module, _, name = path.partition(":")
    if module == "__main__":
        way = "move it to a file such as mine.py"
        raise UserError(
            f"{name} is defined in the script or notebook that is running, which worker processes "
            f"cannot import; {way}, and name it mine.{name}"
        )
    try:
        with folders_searched():
            return getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # importing a module may raise any exception
        raise UserError(f"{path!r} cannot be imported: {error}") from None


def in_declared_types(params: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator, in which tuples stand for the lists of a configuration.

    A tuple becomes a list, unless the default value of the parameter is a tuple.

    Examples
    --------
    >>> in_declared_types({"sizes": (20, 10), "priors": (0.5, 0.5)}, {"sizes": (100,)})
    {'sizes': (20, 10), 'priors': [0.5, 0.5]}
    """

    def listed(value: Any) -> Any:
        return list(map(listed, value)) if isinstance(value, tuple) else value

    return {n: v if isinstance(defaults.get(n), tuple) else listed(v) for n, v in params.items()}


def estimator_maker(path: str, methods: Sequence[str], kind: str) -> Callable[..., Any]:
    """Return the class or factory function at ``module:name``, which creates estimators.

    A class must have the methods `methods`. A function is called to find out what it returns;
    therefore functions of Python, mmbench and installed packages need a return annotation of such a
    class. Raises UserError, with the name `kind`, if the object is not accepted.
    """
    make = imported(path)

    def is_estimator_class(found: Any) -> bool:
        return isinstance(found, type) and all(hasattr(found, method) for method in methods)

    if is_estimator_class(make):
        return make
    if isinstance(make, FunctionType):
        package = make.__module__.partition(".")[0]
        origin = str(getattr(sys.modules.get(package), "__file__", None))
        installed = "site-packages" in origin or package == __name__.partition(".")[0]
        if not installed and package not in sys.stdlib_module_names:
            return make
        with suppress(Exception):  # an annotation may have a name that does not exist
            if is_estimator_class(typing.get_type_hints(make).get("return")):
                return make
    wanted = f"an estimator class with {' and '.join(methods)} nor a function that makes one"
    raise UserError(f"{path!r} is not a {kind}: it is neither {wanted}")
