"""A hyper-parameter of a machine, declared once: name, default, valid values and meaning.

A machine declares its parameters as class attributes,

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")

and `Declared` makes of them the constructor that scikit-learn expects, the checks of estimators and
of YAML files, and the docstring's section on parameters.
"""

import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mmbench.errors import did_you_mean


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
    function : bool, default=False
        Whether a function is valid.
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
    function: bool = False

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
        if self.function and callable(value):
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
        if self.function:
            parts.append("a function")
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


@dataclass(frozen=True)
class Parameter:
    """One declared parameter."""

    default: Any
    #: Its valid values.
    valid: Param
    #: What it means, in sentences.
    doc: str
    #: The parameter that it follows in the signature; new ones come first where it is not given.
    after: str | None = None

    @property
    def numeric(self) -> bool:
        """Whether numbers are valid."""
        return self.valid.numeric

    def problem(self, value: object) -> str | None:
        """Return what is wrong with a value, or None when it is valid."""
        return self.valid.problem(value)

    def described(self, name: str, annotation: Any) -> str:
        """Return the entry of the parameter in a numpydoc section."""
        kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        values = ", ".join(f'"{word}"' for word in self.valid.choices)
        if self.valid.choices and not self.valid.numeric:
            kind = f"{{{values}}}" + (" or callable" if self.valid.function else "")
        else:
            kinds = [word for word in kind.split(" | ") if word not in ("None", "str")]
            kind = " or ".join([*kinds, values] if values else kinds)
        default = "optional" if self.default is None else f"default={_quoted(self.default)}"
        return f"{name} : {kind}, {default}\n" + textwrap.indent(
            textwrap.fill(self.doc, 90, break_long_words=False, break_on_hyphens=False), "    "
        )


def parameter(default: Any, valid: Param, doc: str, after: str | None = None) -> Any:
    """Declare a parameter in the body of a machine; see `Parameter`.

    The return type is Any, since the attribute of an instance is the parameter's value.
    """
    return Parameter(default, valid, doc, after)


#: The head of the section that lists what a fitted machine holds.
_ATTRIBUTES = "\n\nAttributes\n----------\n"


class Declared:
    """Base of classes whose constructor arguments are the parameters declared in their bodies.

    A subclass inherits the parameters of its base. One that it declares again keeps its place in
    the signature; new ones come first, or where their `after` says. The attributes of its
    docstring join those of its base in the same way.
    """

    parameters: ClassVar[dict[str, Any]] = {}
    _annotated: ClassVar[dict[str, Any]] = {}
    _attributes: ClassVar[dict[tuple[str, ...], str]] = {}

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        own = {name: value for name, value in vars(cls).items() if isinstance(value, Parameter)}
        if own:
            for name in own:
                delattr(cls, name)
            cls.parameters = _ordered(own, cls.parameters)
            cls._annotated = {**cls._annotated, **inspect.get_annotations(cls)}
            cls.__init__ = _constructor(cls.parameters)  # type: ignore[method-assign]
        if vars(cls).get("__doc__"):
            cls.__doc__ = _documented(cls)


def _ordered(own: Mapping[str, Parameter], inherited: Mapping[str, Any]) -> dict[str, Any]:
    names = list(inherited)
    front = [name for name in own if name not in names and own[name].after is None]
    names = front + names
    for name in reversed([name for name in own if name not in names]):
        names.insert(names.index(own[name].after) + 1, name)  # type: ignore[arg-type]
    return {name: own.get(name) or inherited[name] for name in names}


def _constructor(parameters: Mapping[str, Parameter]) -> Callable[..., None]:
    """Return an ``__init__`` that stores its arguments, as scikit-learn asks of an estimator."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter("self", kind)]
        + [inspect.Parameter(name, kind, default=p.default) for name, p in parameters.items()]
    )

    def __init__(self, *args, **kwargs):
        for name in kwargs.keys() - parameters.keys():
            words = f"{type(self).__name__} has no parameter {name!r}"
            raise TypeError(words + did_you_mean(name, parameters))
        given = signature.bind(self, *args, **kwargs)
        given.apply_defaults()
        for name in parameters:
            setattr(self, name, given.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _documented(cls: type[Declared]) -> str:
    """Return the docstring of a class with sections on its parameters and its attributes."""
    text = inspect.cleandoc(cls.__doc__ or "")
    entries = [p.described(n, cls._annotated.get(n, "object")) for n, p in cls.parameters.items()]
    section = "Parameters\n----------\n" + "\n".join(entries)
    head, _, rest = text.partition(_ATTRIBUTES)
    own, gap, rest = rest.partition("\n\n")
    cls._attributes = _overriding(cls._attributes, _entries(own))
    attributes = _ATTRIBUTES + "\n".join(cls._attributes.values())
    return f"{head}\n\n{section}{attributes}{gap}{rest}\n"


def _entries(section: str) -> dict[tuple[str, ...], str]:
    """Return the entries of a numpydoc section by the names that they are about."""
    texts = re.split(r"\n(?=\S)", section) if section else []
    return {tuple(text.partition(" : ")[0].split(", ")): text for text in texts}


def _overriding(
    inherited: Mapping[tuple[str, ...], str], own: Mapping[tuple[str, ...], str]
) -> dict[tuple[str, ...], str]:
    """Return inherited entries, each replaced by the one of `own` that is about the same names."""
    merged, left = {}, dict(own)
    for names, text in inherited.items():
        about = [other for other in own if set(other) & set(names)]
        merged.update({other: left.pop(other) for other in about if other in left})
        if not about:
            merged[names] = text
    return {**merged, **left}


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
