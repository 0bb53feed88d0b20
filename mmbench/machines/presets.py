"""Presets: a named variant of a machine, which differs by the defaults of some parameters.

A table may hold one estimator several times under several names. Each name is a subclass with a
docstring, class attributes where it needs them, and this decorator instead of a copied `__init__`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Machine = TypeVar("Machine", bound=type)


def preset(**defaults: Any) -> Callable[[Machine], Machine]:
    """Give a subclass other defaults for parameters of its base class.

    Parameters
    ----------
    **defaults
        Values by the names of constructor parameters.

    Returns
    -------
    callable
        A class decorator. The decorated class has a signature of its own, so `get_params`,
        `clone` and documentation see the new defaults, and its `fixed` lists them: a
        configuration that names the preset may not set them otherwise.

    Examples
    --------
    >>> from mmbench.machines import LSSVM
    >>> @preset(C=10.0)
    ... class Stiff(LSSVM):
    ...     pass
    >>> Stiff().C, Stiff(C=1.0).C
    (10.0, 1.0)
    >>> Stiff.fixed
    {'C': 10.0}
    """

    def decorate(cls: Machine) -> Machine:
        base: Callable[..., None] = cls.__init__  # type: ignore[misc]
        signature = inspect.signature(base)
        unknown = set(defaults) - set(signature.parameters)
        if unknown:
            raise TypeError(f"{cls.__name__} has no parameter {', '.join(sorted(unknown))}")

        @wraps(base)
        def __init__(self, *args, **kwargs):
            given = signature.bind_partial(self, *args, **kwargs).arguments
            base(**{**defaults, **given})

        __init__.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[
                p.replace(default=defaults.get(name, p.default))
                for name, p in signature.parameters.items()
            ]
        )
        cls.__init__ = __init__  # type: ignore[misc]
        cls.fixed = {**cls.fixed, **defaults}  # type: ignore[attr-defined]
        return cls

    return decorate
