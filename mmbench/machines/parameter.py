"""What values a hyper-parameter may take: one declaration for estimators and YAML files."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Param:
    """The valid values of one parameter of a machine.

    Parameters
    ----------
    low, high : float
        Closed bounds for numbers, open at `low` when `positive`-style ranges need it.
    open_low : bool, default=False
        Whether `low` itself is excluded.
    integer : bool, default=False
        Whether only whole numbers are valid.
    choices : tuple of str, default=()
        Valid words; with ``numeric=False`` the only valid values.
    numeric : bool, default=True
        Whether numbers are valid at all.
    optional : bool, default=False
        Whether None is valid.
    boolean : bool, default=False
        Whether True and False are the valid values, instead of numbers.
    mapping : bool, default=False
        Whether a mapping to numbers greater than zero is valid.
    """

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    integer: bool = False
    choices: tuple[str, ...] = ()
    numeric: bool = True
    optional: bool = False
    boolean: bool = False
    mapping: bool = False

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value, or None when it is valid.

        Examples
        --------
        >>> Param(low=0, open_low=True).problem(-1)
        'must be a number > 0, got -1'
        >>> Param(low=0, open_low=True).problem(10) is None
        True
        """
        if (self.optional and value is None) or (isinstance(value, str) and value in self.choices):
            return None
        if self.mapping and isinstance(value, Mapping):
            wrong = [number for number in value.values() if positive().problem(number)]
            return f"must map to numbers > 0, got {wrong[0]!r}" if wrong else None
        if self.boolean:
            return None if isinstance(value, bool) else f"must be {self.describe()}, got {value!r}"
        if self.numeric and isinstance(value, numbers.Real) and not isinstance(value, bool):
            whole = not self.integer or isinstance(value, numbers.Integral)
            number = _as_float(value)
            above = number > self.low if self.open_low else number >= self.low
            if whole and above and number <= self.high and math.isfinite(number):
                return None
        return f"must be {self.describe()}, got {value!r}"

    def describe(self) -> str:
        """Return the valid values in words."""
        parts = [repr(choice) for choice in self.choices]
        if self.boolean:
            parts.append("True or False")
        elif self.numeric:
            parts.append(self._describe_number())
        if self.mapping:
            parts.append("a mapping to numbers > 0")
        if self.optional:
            parts.append("None")
        return " or ".join(parts)

    def _describe_number(self) -> str:
        text = "a whole number" if self.integer else "a number"
        if math.isfinite(self.low):
            text += f" {'>' if self.open_low else '>='} {self.low:g}"
        if math.isfinite(self.high):
            text += f"{' and' if math.isfinite(self.low) else ''} <= {self.high:g}"
        return text


def _as_float(value: numbers.Real) -> float:
    """Return a number as a float, a whole number that is too large for one as infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def positive(**options: Any) -> Param:
    """Return the declaration of a number greater than zero."""
    return Param(low=0, open_low=True, **options)


def choice(*words: str) -> Param:
    """Return the declaration of a parameter that takes one of a few words."""
    return Param(numeric=False, choices=words)
