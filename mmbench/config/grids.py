"""Hyper-parameter grids: how a YAML file states the values of a parameter.

They are a list, ``auto`` for the machine's default values, or a range of powers:
``{log2: [-5, 15, 2]}`` is 2^-5, 2^-3, ..., 2^15.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from mmbench.selection.grid import staged

AUTO = "auto"
LOG_BASES = {"log2": 2.0, "log10": 10.0}
FORMS = "a list of values, 'auto', or powers such as {log2: [-5, 15, 2]}"
#: Maximum number of values of a parameter that are given by powers.
MAX_VALUES = 1000

#: Parameters that have an effect with one kernel only, and the kernel of each parameter.
KERNEL_PARAMETERS = dict.fromkeys(("gamma", "gamma_scaling"), "rbf")
KERNEL_PARAMETERS |= dict.fromkeys(("degree", "kernel_scaling"), "poly")
Axis = str | tuple[Any, ...]


def parse_axis(axis: Any) -> Axis:
    """Return the values of a grid axis that is given in the form of a YAML file.

    The text ``"auto"`` is returned unchanged.

    Examples
    --------
    >>> parse_axis({"log2": [-1, 2, 1]})
    (0.5, 1.0, 2.0, 4.0)
    """
    if axis == AUTO:
        return AUTO
    if isinstance(axis, Mapping):
        return _powers(axis)
    if not isinstance(axis, list | tuple):
        raise ValueError(f"must be {FORMS}, got {axis!r}")
    if not axis:
        raise ValueError("the grid is empty")
    return tuple(distinct([parse_value(value) for value in axis]))


def parse_value(value: Any) -> Any:
    """Return the value of a parameter: a word, a number, a list as tuple, or a mapping as dict.

    The keys of a mapping become texts, as in JSON.

    Examples
    --------
    >>> parse_value({0: 1, "hidden": [20, 10]})
    {'0': 1, 'hidden': (20, 10)}
    """
    if isinstance(value, Mapping):
        return {str(key): parse_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(parse_value, value))
    if value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"must be a word, a number, a list or a mapping, got {value!r}")
    return value


def in_yaml(value: Any) -> Any:
    """Return a value of `parse_value` in the form of a YAML file, with lists for tuples."""
    if isinstance(value, Mapping):
        return {key: in_yaml(part) for key, part in value.items()}
    return list(map(in_yaml, value)) if isinstance(value, tuple) else value


def distinct(values: Sequence[Any], *, hint: str = "") -> Any:
    """Return the values, or raise ValueError if a value occurs twice.

    The message ends with `hint`.
    """
    first: dict[Any, int] = {}
    keys = (repr(value) if isinstance(value, tuple | dict) else value for value in values)
    if twice := [values[k] for k, key in enumerate(keys) if first.setdefault(key, k) != k]:
        raise ValueError(f"{twice[0]!r} occurs twice{hint}")
    return values


def _powers(axis: Mapping) -> tuple[float, ...]:
    if len(axis) != 1 or not LOG_BASES.keys() & axis.keys():
        raise ValueError(f"must be {FORMS}, got {dict(axis)!r}")
    ((name, exponents),) = axis.items()
    numbers = isinstance(exponents, list | tuple) and {type(e) for e in exponents} <= {int, float}
    if not numbers or len(exponents) not in (2, 3):
        raise ValueError(f"{name} must be [first, last] or [first, last, step], got {exponents!r}")
    first, last, step = (*exponents, 1)[:3]
    if not 0 < step <= 600 or not -300 <= first <= 300 or not -300 <= last <= 300:
        ranges = "exponents must be from -300 to 300, and the step above 0 and at most 600"
        raise ValueError(f"{name}: {ranges}, got {exponents!r}")
    steps = (last - first) / step + 1e-9
    if last < first or steps >= MAX_VALUES:
        raise ValueError(f"{name} {exponents!r} is empty or too long (above {MAX_VALUES} values)")
    return tuple(LOG_BASES[name] ** (first + k * step) for k in range(int(steps) + 1))


def expand_auto(cls: Any, grid: Mapping[str, Axis]) -> dict[str, tuple]:
    """Return a grid in which each ``auto`` is replaced by a list of values.

    The list may contain values of another parameter. For example, ``B: auto`` becomes a list of
    values of ``B_fraction``.
    """
    grids = cls.search_space.auto_grids
    axes = (grids[name] if axis == AUTO else (name, axis) for name, axis in grid.items())
    return {name: tuple(axis) for name, axis in axes}


def n_points(grid: Mapping[str, tuple], stages: Sequence[Sequence[str]]) -> int:
    """Return the number of grid points that a search evaluates, summed over the stages of the
    search.
    """
    return sum(prod(map(len, part.values())) for part in staged(grid, stages))


def in_other_words(cls: Any) -> dict[str, str]:
    """Return the parameters for which ``auto`` stands for values of another parameter.

    The returned dict maps each of these parameters to the parameter that replaces it. For example,
    ``B: auto`` becomes a list of values of ``B_fraction``.
    """
    return {n: other for n, (other, _) in cls.search_space.auto_grids.items() if other != n}


def replaced_by(cls: Any, stated: Collection[str]) -> dict[str, str]:
    """Return the items (parameter, replacement) of `in_other_words` whose replacement is in
    `stated`.

    For example, ``B_fraction`` replaces the parameter ``B``. If ``B_fraction`` is set, ``B`` must
    be None, since any other value of ``B`` would contradict ``B_fraction``.
    """
    return {name: other for name, other in in_other_words(cls).items() if other in stated}


def for_kernel(values: Mapping[str, Any], kernel: str) -> dict[str, Any]:
    """Return the parameters in `values` that have an effect with `kernel`.

    Examples
    --------
    >>> for_kernel({"C": (1, 10), "gamma": (0.1, 1)}, "linear")
    {'C': (1, 10)}
    """
    return {n: v for n, v in values.items() if KERNEL_PARAMETERS.get(n, kernel) == kernel}
