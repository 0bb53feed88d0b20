"""Declarations of the hyper-parameters of a machine: name, default, valid values and meaning.

    C: float = parameter(1.0, positive(), "Regularization parameter: penalty on slack.")

`Declared` derives the constructor, the section "Parameters" of the docstring, and the check of
values from such class attributes.
"""

import inspect
import math
import numbers
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, dataclass_transform

import numpy as np

from mmbench.errors import did_you_mean
from mmbench.kernels import KERNELS
from mmbench.kernels.matrix import PRECOMPUTED


def parameter(default: Any, valid: "Param", doc: str, after: str | None = None) -> Any:
    """Declare a parameter in the class body of a machine.

    Parameters
    ----------
    default : object
    valid : instance of Param
        The valid values; see also `positive` and `choice`.
    doc : str
        Meaning of the parameter, in full sentences.
    after : str, optional
        Name of the preceding parameter in the signature. By default, the new parameter precedes all
        inherited parameters.

    Returns
    -------
    Any
        The declaration. The return type is Any, since the class attribute is annotated with the
        type of the parameter's value.
    """
    return Parameter(**vars(valid), default=default, doc=doc, after=after)


@dataclass(frozen=True)
class Param:
    """The valid values of one parameter of a machine.

    Parameters
    ----------
    low, high : float
        Inclusive bounds of valid numbers.
    open_low : bool, default=False
        Whether `low` is an exclusive bound.
    integer : bool, default=False
        Whether only whole numbers are valid.
    choices : tuple of str, default=()
        Valid strings. If `numeric` is true, numbers are valid too.
    numeric : bool, default=True
        Whether numbers are valid.
    optional : bool, default=False
        Whether None is valid.
    boolean : bool, default=False
        Whether True and False are valid instead of numbers.
    mapping : bool, default=False
        Whether mappings whose values are positive numbers are valid.
    function : bool, default=False
        Whether a function is valid.
    infinite : bool, default=False
        Whether infinity is valid.
    kinds : tuple of type, default=()
        Classes whose instances are valid.
    useless_to : float, default=0
        Valid values up to this one are of no use in a grid: the solution of the machine is trivial.
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
    infinite: bool = False
    kinds: tuple[type, ...] = ()
    useless_to: float = 0.0

    def problem(self, value: object) -> str | None:
        """Return an error message for an invalid value, and None for a valid value.

        Examples
        --------
        >>> Param(low=0, open_low=True).problem(-1)
        'must be a number > 0, got -1'
        >>> Param(low=0, open_low=True).problem(10) is None
        True
        """
        if (self.optional and value is None) or (isinstance(value, str) and value in self.choices):
            return None
        if (self.function and callable(value)) or isinstance(value, self.kinds):
            return None
        if self.mapping and isinstance(value, Mapping):
            wrong = [number for number in value.values() if positive().problem(number)]
            return f"must map to numbers > 0, got {wrong[0]!r}" if wrong else None
        in_range = self.numeric and self._in_range(value)
        valid = isinstance(value, bool | np.bool_) if self.boolean else in_range
        return None if valid else f"must be {self.describe()}, got {value!r}"

    def _in_range(self, value: object) -> bool:
        kind = numbers.Integral if self.integer else numbers.Real
        if not isinstance(value, kind) or isinstance(value, bool):
            return False
        try:
            number = float(value)
        except OverflowError:  # the integer exceeds the range of float
            return False
        above = number > self.low if self.open_low else number >= self.low
        return above and number <= self.high and (self.infinite or math.isfinite(number))

    def describe(self) -> str:
        """Return a description of the valid values for error messages."""
        bounds = [
            f"{sign} {bound:.10g}"
            for sign, bound in ((">" if self.open_low else ">=", self.low), ("<=", self.high))
            if math.isfinite(bound)
        ]
        number = " ".join(["a whole number" if self.integer else "a number", " and ".join(bounds)])
        words = {
            "True or False": self.boolean,
            number.strip(): self.numeric and not self.boolean,
            "a mapping to numbers > 0": self.mapping,
            "a function": self.function,
            **{f"a {kind.__name__}": True for kind in self.kinds},
            "None": self.optional,
        }
        return " or ".join([*map(repr, self.choices), *(w for w, valid in words.items() if valid)])


def positive(**options: Any) -> Param:
    """Return a `Param` that accepts positive numbers; `options` are other fields of `Param`."""
    return Param(low=0, open_low=True, **options)


def choice(*words: str) -> Param:
    """Return a `Param` whose valid values are the given strings."""
    return Param(numeric=False, choices=words)


def kernel_parameter(default: str = "rbf", more: str = "") -> Any:
    """Declare the parameter `kernel`, with `more` appended to the parameter's documentation."""
    return parameter(
        default,
        Param(numeric=False, choices=(*KERNELS, PRECOMPUTED), function=True),
        'Kernel: ``u\'v`` ("linear"), ``(1 + u\'v)**degree`` ("poly") or '
        '``exp(-gamma ||u - v||^2)`` ("rbf"). With "precomputed", X is the kernel matrix, of shape '
        "(n_samples, n_samples) in `fit` and (n_rows, n_samples) in `predict`. A function takes X "
        f"and Z and returns their kernel matrix.{more}",
    )


def kernel_scaling() -> Any:
    """Declare the parameter `kernel_scaling`; some papers scale the polynomial kernel."""
    return parameter(
        "none",
        choice("none", "trace"),
        'Scaling: "trace" divides ``poly`` by the mean of k(x, x) over the training rows.',
        after="degree",
    )


def class_weight(after: str = "C") -> Any:
    """Declare the parameter `class_weight`."""
    return parameter(
        None,
        Param(numeric=False, choices=("balanced",), optional=True, mapping=True),
        'Factors of row weights by class: a dict, or "balanced", ``n / (2 n_class)`` in each pair.',
        after=after,
    )


def cache_size() -> Any:
    """Declare the parameter `cache_size`, the memory for kernel values in training."""
    return parameter(
        None,
        positive(optional=True),
        "Memory for kernel values in MB (10^6 bytes) in the training of a pair of classes; by "
        "default an eighth of the free memory, at most 1000 MB. A kernel matrix of up to 3000 "
        "rows, or of ``rbf`` with up to 64 features, is stored if it fits into this memory; of "
        "another kernel matrix, some rows are stored. Blocks of the kernel matrix use up to 10 MB "
        "in any case. The solution does not depend on this parameter.",
        after="tol",
    )


@dataclass(frozen=True, kw_only=True)
class Parameter(Param):
    """A declared parameter: valid values, default, documentation and position in the signature."""

    default: Any
    doc: str
    after: str | None

    def described(self, name: str, annotation: Any) -> str:
        """Return the numpydoc entry of the parameter."""
        kind = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        values = ", ".join(f'"{word}"' for word in self.choices)
        if self.choices and not self.numeric:
            kind = f"{{{values}}}" + (" or callable" if self.function else "")
        else:
            kinds = [word for word in kind.split(" | ") if word not in ("None", "str")]
            kind = " or ".join([*kinds, values] if values else kinds)
        quoted = f'"{self.default}"' if isinstance(self.default, str) else repr(self.default)
        default = "optional" if self.default is None else f"default={quoted}"
        return f"{name} : {kind}, {default}\n" + textwrap.indent(
            textwrap.fill(self.doc, 90, break_long_words=False, break_on_hyphens=False), "    "
        )


#: Heading of the docstring section on the attributes of a fitted machine.
_ATTRIBUTES = "\n\nAttributes\n----------\n"


@dataclass_transform(eq_default=False, kw_only_default=True)
class Declared:
    """Base class that derives the constructor from the parameters declared in the class body.

    A subclass inherits the parameters of its base class. A redeclared parameter keeps its position
    in the signature. A new parameter follows the parameter `after`, or by default precedes all
    inherited parameters. In the docstring, an entry of the section "Attributes" replaces the
    inherited entry of the same name.
    """

    parameters: ClassVar[dict[str, Any]] = {}
    _annotated: ClassVar[dict[str, Any]] = {}
    #: Entries of the docstring section "Attributes", including inherited entries.
    _attributes: ClassVar[tuple[str, ...]] = ()

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
    new = [name for name in own if name not in inherited]
    names = [*(name for name in new if own[name].after is None), *inherited]
    for name in reversed(new):
        if name not in names:
            names.insert(names.index(own[name].after) + 1, name)  # type: ignore[arg-type]
    return {name: own.get(name) or inherited[name] for name in names}


def _constructor(parameters: Mapping[str, Parameter]) -> Callable[..., None]:
    """Return an ``__init__`` that only stores its arguments, as scikit-learn requires."""
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
    """Return the docstring of a class, completed by the sections "Parameters" and "Attributes"."""
    entries = [p.described(n, cls._annotated.get(n, "object")) for n, p in cls.parameters.items()]
    head, _, rest = inspect.cleandoc(cls.__doc__ or "").partition(_ATTRIBUTES)
    section, gap, rest = rest.partition("\n\n")
    own = re.split(r"\n(?=\S)", section) if section else []
    named = {name for entry in own for name in _names(entry)}
    bases = [base for base in cls.__bases__ if issubclass(base, Declared)]
    known = dict.fromkeys(entry for base in bases for entry in base._attributes)
    inherited = (entry for entry in known if not named & _names(entry))
    cls._attributes = (*inherited, *own)
    parameters, attributes = "\n".join(entries), "\n".join(cls._attributes)
    return f"{head}\n\nParameters\n----------\n{parameters}{_ATTRIBUTES}{attributes}{gap}{rest}\n"


def _names(entry: str) -> set[str]:
    return set(entry.partition(" : ")[0].split(", "))
