"""The one exception that means "the input was wrong", and the nearest-name hint."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Input that the user can correct.

    The message is one line: which file and key, what was wrong, and the nearest valid name where
    there is one. The command line prints it alone and exits with code 2.
    """


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'svm'?"`` for a near miss, else the list of valid names.

    Parameters
    ----------
    name : object
        What the user wrote.
    known : iterable of str
        The valid names.

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
    close = same or difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return "; valid: " + ", ".join(names) if names else ""
