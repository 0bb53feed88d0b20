"""The exception for invalid user input, and the statuses of trainings."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

__all__ = ["NotEnoughMemory", "Status", "UserError"]

#: Maximum lengths of a quoted value, a word and a message, in characters. Longer text is shortened.
MAX_VALUE, MAX_WORD, MAX_LINE = 120, 300, 2000
#: Maximum number of valid names that an error message lists.
MAX_NAMES = 40
#: Characters that move the cursor, change the direction of text, or are no valid Unicode.
CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    "|\r(?!\n)"
)
LONG = re.compile(rf"(?<![\w'])'[^']{{{MAX_VALUE},}}'(?!\w)|\S{{{MAX_WORD},}}")


class UserError(Exception):
    """An error in the input that the user can correct.

    The error message is a single line that states the error. If the error is in a file, the message
    names the file. If a name is unknown, the message suggests the most similar valid name. The
    command line prints the message without a traceback and exits with code 2.
    """

    def __init__(self, message: str):
        super().__init__(readable(message))


@contextmanager
def converted(
    problem: str, *kinds: type[Exception], to: type[Exception] = UserError
) -> Iterator[None]:
    """Replace an exception in a ``with`` block by an exception of type `to` with a message of one
    line. The message consists of `problem` and the reason of the original exception.

    Examples
    --------
    >>> with converted("my.csv: cannot be read", OSError):
    ...     raise FileNotFoundError(2, "No such file or directory", "my.csv")
    Traceback (most recent call last):
    mmbench.errors.UserError: my.csv: cannot be read: No such file or directory
    """
    try:
        yield
    except kinds as error:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise to(f"{problem}: {text.splitlines()[0]}".removeprefix(": ")) from error


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Replace an ImportError in a ``with`` block by a UserError that names the missing package.

    If a package is installed but cannot be imported, the error may name no package.
    """
    try:
        yield
    except ImportError as error:
        broken = f"a package that cannot be imported ({error})"
        package = f"the package {error.name.partition('.')[0]}" if error.name else broken
        raise UserError(f"{feature} needs {package}: pip install 'mmbench[{name}]'") from None


def readable(message: str) -> str:
    """Return a message as one line in which very long values are shortened.

    Examples
    --------
    >>> readable(f"unknown key '{'x' * 200_000}'; valid: grid")
    "unknown key 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... (200002 characters); valid: grid"
    """
    message = visible(re.sub(r"\s*[\r\n]\s*", " ", message.strip()))
    message = LONG.sub(lambda m: f"{m[0][: MAX_VALUE // 3]}... ({len(m[0])} characters)", message)
    if len(message) <= MAX_LINE:
        return message
    return f"{message[: MAX_LINE * 3 // 4]} ... {message[-MAX_LINE // 4 :]}"


def visible(text: str) -> str:
    r"""Return a text with escape sequences in place of control characters (except ``\n`` and
    ``\t``).

    Class labels, file names, and messages of other packages may contain control characters. Text is
    converted by this function before it is written to a terminal, a table or a page.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return a hint for an unknown name: a similar known name, else all known names.

    Examples
    --------
    >>> did_you_mean("swm", ["svm", "rmm"])
    "; did you mean 'svm'?"
    >>> did_you_mean("SVM", ["svm", "rmm"])
    "; did you mean 'svm'?"
    >>> did_you_mean("forest", ["svm", "rmm"])
    '; valid: rmm, svm'
    """
    names = sorted(known)
    same = [other for other in names if other.lower() == str(name).lower()]  # differs in case only
    close = same or difflib.get_close_matches(str(name)[:MAX_WORD], names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; valid: " + listed(names) if names else ""


def check_known(
    name: Any, known: Iterable[str], problem: str, kind: type[Exception] = UserError
) -> None:
    """Raise an error that begins with `problem` if a name is not among the known names."""
    if name not in known:
        raise kind(f"{problem} {name!r}{did_you_mean(name, known)}")


def listed(names: Sequence[str]) -> str:
    """Return names separated by commas, shortened if there are more than MAX_NAMES names.

    Examples
    --------
    >>> listed(["svm", "rmm"])
    'svm, rmm'
    >>> listed([f"x{j}" for j in range(400)])[-17:]
    ', ..., x398, x399'
    """
    if len(names) > MAX_NAMES:
        names = [*names[: MAX_NAMES - 3], "...", *names[-2:]]
    return ", ".join(names)


def address_fault(path: object) -> str:
    """Return the message that a path is an address such as https://..., which mmbench does not
    read, or an empty string.
    """
    if not re.match("[A-Za-z][A-Za-z0-9+.-]+:/", str(path)):  # a drive of Windows has one letter
        return ""
    address = re.sub(":/(?!/)", "://", str(path), count=1)  # `Path` removes a slash
    return f"{address}: is an address; download the file, and give its path"


class NotEnoughMemory(ValueError, MemoryError):
    """A computation needs more memory than is free; the message states a remedy."""


class BeyondLimit(NotEnoughMemory):
    """A computation exceeds the memory limit of this process."""


@contextmanager
def memory_of(solver: str) -> Iterator[None]:
    """Replace a MemoryError in a ``with`` block by an error that names the solver.

    Examples
    --------
    >>> with memory_of("HiGHS"):
    ...     raise MemoryError("std::bad_alloc")
    Traceback (most recent call last):
    mmbench.errors.NotEnoughMemory: HiGHS ran out of memory; use fewer rows
    """
    try:
        yield
    except NotEnoughMemory:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(f"{solver} ran out of memory; use fewer rows") from error


class Status(StrEnum):
    """Outcome of the training of a classifier. The statuses are ordered from harmless to fatal.

    - ``optimal``: the duality gap and the constraint violation are within the tolerances.
    - ``stopped_by_rule``: the stopping rule of the paper's algorithm ended the training before the
      optimum.
    - ``uncertified``: the classifier has no certificate of optimality.
    - ``one_class``: the training rows have a single class; occurs only in records of earlier
      versions.
    - ``trivial``: the weight vector w = 0 is optimal, so that every row gets the same class.
    - ``inaccurate``: the duality gap or the constraint violation exceeds its tolerance.
    - ``iteration_limit``, ``time_limit``: the training ended at a limit.
    - ``unbounded``, ``infeasible``: the problem has no solution.
    - ``memory_limit``: the training ended at the memory limit.
    - ``failed``: the solver stopped with an error.
    """

    OPTIMAL = "optimal"
    STOPPED_BY_RULE = "stopped_by_rule"
    UNCERTIFIED = "uncertified"
    ONE_CLASS = "one_class"
    TRIVIAL = "trivial"
    INACCURATE = "inaccurate"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    UNBOUNDED = "unbounded"
    INFEASIBLE = "infeasible"
    MEMORY_LIMIT = "memory_limit"
    FAILED = "failed"


#: Statuses from harmless to fatal.
SEVERITY = tuple(Status)

#: Statuses of trainings that ended as intended, without a warning.
FINISHED = (Status.OPTIMAL, Status.STOPPED_BY_RULE)


def worst(statuses: Iterable[Status | str]) -> Status:
    """Return the most severe status.

    Examples
    --------
    >>> worst(["optimal", "inaccurate", "trivial"])
    <Status.INACCURATE: 'inaccurate'>
    """
    return max(map(Status, statuses), key=SEVERITY.index)
