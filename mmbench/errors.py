"""The exception that means "the input was wrong", and the statuses in which a fit may end."""

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum

#: Longest quoted value, unbroken word and line, in characters; longer ones are cut.
MAX_VALUE, MAX_WORD, MAX_LINE = 120, 300, 2000
#: Largest number of names that an error lists.
MAX_NAMES = 40
LONG = re.compile(rf"(?<![\w'])'[^']{{{MAX_VALUE},}}'(?!\w)|\S{{{MAX_WORD},}}")


class UserError(Exception):
    """Input that the user can correct.

    The message is one line of readable length: which file and key, what was wrong, and the nearest
    valid name where there is one. The command line prints it alone and exits with code 2.
    """

    def __init__(self, message: str):
        super().__init__(readable(message))


@contextmanager
def extra(name: str, feature: str) -> Iterator[None]:
    """Turn a failed import inside into a `UserError` that names the extra to install."""
    try:
        yield
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        text = f"{feature} needs the package {package}: pip install 'mmbench[{name}]'"
        raise UserError(text) from None


def readable(message: str) -> str:
    """Return a message as one line in which values of absurd length are cut.

    Examples
    --------
    >>> readable(f"unknown key '{'x' * 200_000}'; valid: grid")
    "unknown key 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... (200002 characters); valid: grid"
    """
    message = re.sub(r"\s*[\r\n]\s*", " ", message.strip())
    message = LONG.sub(lambda m: f"{m[0][: MAX_VALUE // 3]}... ({len(m[0])} characters)", message)
    if len(message) <= MAX_LINE:
        return message
    return f"{message[: MAX_LINE * 3 // 4]} ... {message[-MAX_LINE // 4 :]}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'svm'?"`` for a near miss, else the list of known names.

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
    same = [other for other in names if other.lower() == str(name).lower()]  # SVM, RBF
    close = same or difflib.get_close_matches(str(name)[:MAX_WORD], names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; valid: " + listed(names) if names else ""


def listed(names: Sequence[str]) -> str:
    """Return names with commas between them; of many, only the first and the last.

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


class NotEnoughMemory(ValueError, MemoryError):
    """A computation does not fit into memory; the message states its need and a remedy."""


class BeyondLimit(NotEnoughMemory):
    """A computation does not fit into the memory limit of this process."""


@contextmanager
def memory_of(solver: str) -> Iterator[None]:
    """Name the solver that ran out of memory, in one line; also decorates functions.

    Examples
    --------
    >>> with memory_of("HiGHS"):
    ...     raise MemoryError("std::bad_alloc")
    Traceback (most recent call last):
    mmbench.errors.NotEnoughMemory: HiGHS ran out of memory; fewer rows take less
    """
    try:
        yield
    except NotEnoughMemory:
        raise
    except MemoryError as error:
        raise NotEnoughMemory(f"{solver} ran out of memory; fewer rows take less") from error


class Status(StrEnum):
    """How a fit ended. Every native solver status is translated to one of these.

    ``stopped_by_rule``: the paper's algorithm ends by a rule of its own, short of the optimum.
    """

    OPTIMAL = "optimal"
    STOPPED_BY_RULE = "stopped_by_rule"
    UNCERTIFIED = "uncertified"
    INACCURATE = "inaccurate"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    TRIVIAL = "trivial"
    ONE_CLASS = "one_class"
    ITERATION_LIMIT = "iteration_limit"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    FAILED = "failed"


#: From harmless to fatal.
SEVERITY = (
    Status.OPTIMAL,
    Status.STOPPED_BY_RULE,
    Status.UNCERTIFIED,
    Status.ONE_CLASS,
    Status.TRIVIAL,
    Status.INACCURATE,
    Status.ITERATION_LIMIT,
    Status.TIME_LIMIT,
    Status.UNBOUNDED,
    Status.INFEASIBLE,
    Status.MEMORY_LIMIT,
    Status.FAILED,
)

#: Statuses of a training that did as asked; no warning follows.
FINISHED = (Status.OPTIMAL, Status.STOPPED_BY_RULE)


def worst(statuses: Iterable[Status | str]) -> Status:
    """Return the most severe of some statuses.

    Examples
    --------
    >>> worst(["optimal", "inaccurate", "trivial"])
    <Status.INACCURATE: 'inaccurate'>
    """
    return max(map(Status, statuses), key=SEVERITY.index)
