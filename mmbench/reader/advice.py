"""Names of columns and cells in messages, and the advice to set a key."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from mmbench.errors import did_you_mean
from mmbench.reader.file_text import is_number
from mmbench.reader.keys import Column, FileOptions

#: Pattern of text that needs no quotes in YAML.
WORD = re.compile(r"(?!(null|true|false|yes|no|on|off|y|n)$)[^\W\d][\w-]*", re.I)


def column_name(column: Column, names: Sequence[str], what: str = "column") -> str:
    """Return the name of a column, given by name or number; raise ValueError if it does not exist.

    Examples
    --------
    >>> column_name(-1, ["age", "kind"]), column_name("age", ["age", "kind"])
    ('kind', 'age')
    """
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"no {what} {column!r}{did_you_mean(column, names)}")
        return column
    if not 1 <= abs(column) <= len(names):
        hint = f"; if it is a name, write '{column}' in quotes" * (str(column) in names)
        raise ValueError(f"no {what} {column}; columns are numbered from 1 to {len(names)}{hint}")
    return names[column - (column > 0)]


def cell_name(row: int, column: object) -> str:
    """Return the row and the column of a table cell as text for messages."""
    return f"data row {row + 1}, column {column!r}"


def check_width(n_columns: int, most: int) -> None:
    """Raise ValueError if a table has more than `most` columns."""
    if n_columns > most:
        option = setting("max_columns", n_columns)
        raise ValueError(f"{n_columns} columns, and at most {most} are read; {option}")


def setting(key: str, value: object) -> str:
    """Return the advice to set a key of a user's table, in the YAML file or by ``--set``."""
    text = in_yaml(value)
    return f"write {key}: {text} (--set {shlex.quote(f'datasets[0].{key}={text}')})"


def in_yaml(value: object) -> str:
    """Return a value as YAML text, with quotes if YAML could read a string as another type.

    Examples
    --------
    >>> print(in_yaml(["age", "no", 3]), in_yaml(","), in_yaml(False))
    [age, "no", 3] "," false
    """
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_yaml, value))}]"
    word = isinstance(value, str) and WORD.fullmatch(value)
    # invisible characters, such as a no-break space, are escaped
    return str(value) if word else json.dumps(value, ensure_ascii=not str(value).isprintable())


def not_names(options: FileOptions) -> str:
    """Return the advice to skip one more line before the column names or the data."""
    option = setting("skip_lines", options.skip_lines + 1)
    content = "name the columns" if options.header else "contain data"
    return f"if the first line does not {content}, {option}"


def check_names(names: Sequence[str], options: FileOptions | None = None) -> None:
    """Raise ValueError if a name is empty, if two names are equal, or if all names are numbers.

    If the options of a user's table are given, the message states how to exclude the columns
    without a unique name.
    """
    first = {name: k for k, name in reversed([*enumerate(names, 1)])}
    if faulty := [k for k, name in enumerate(names, 1) if not name or first[name] < k]:
        name = names[faulty[0] - 1]
        problem = f"two columns are named {name!r}" if name else f"column {faulty[0]} has no name"
        hint = f"if the first line is a data row, {setting('header', False)}"
        if options and not is_number(name):
            hint = f"to leave it out, {setting('drop', [*options.drop, *faulty])}"
            if options.index is None and (not names[0] or faulty == [len(names)]):
                hint += f"; if the first field names the row, {setting('index', 1)}"
            hint += f"; {not_names(options)}; or set separator"
        raise ValueError(f"{problem}; {hint}" if options or is_number(name) else problem)
    if len(names) > 1 and all(map(is_number, names)):
        hint = f"if it does not name the columns, {setting('header', False)}"
        raise ValueError(f"the first line contains only numbers; {hint}")


def wrong_fields(wanted: int, row: int, count: int) -> str:
    """Return the message about a row with a wrong number of fields."""
    return f"data row {row} has {count} fields, not {wanted}"
