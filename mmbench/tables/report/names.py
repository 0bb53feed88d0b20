"""Names of files and folders for whatever data sets and machines are called."""

import re

from mmbench.jobs.store import Key
from mmbench.tables.text import join, kernel_text

#: Characters of a name; file systems allow 255 bytes, and folders come before it.
LENGTH = 80


class Names:
    """Gives out names that are safe in any file system and in an address, each one once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def free(self, text: str) -> str:
        """Return a name made of a text, numbered where it is taken.

        Examples
        --------
        >>> names = Names()
        >>> names.free("USPS <rbf>/svm"), names.free("usps rbf svm"), names.free("../..")
        ('usps-rbf-svm', 'usps-rbf-svm-2', 'unnamed')
        """
        base = re.sub(r"[^a-z0-9_]+", "-", text.lower())[:LENGTH].strip("-_") or "unnamed"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}-{count}"
        self._taken.add(name)
        return name


def place_text(key: Key) -> str:
    """Return where a cell stands, in words: data set, kernel and training size.

    Examples
    --------
    >>> place_text(Key("usps", "poly", 2, "svm", 1000))
    'usps (poly 2, 1000 rows)'
    """
    size = [] if key.size is None else [f"{key.size} rows"]
    return join(key.dataset, f"({', '.join([kernel_text(key.kernel, key.degree), *size])})")
