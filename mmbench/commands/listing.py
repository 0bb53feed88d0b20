"""``mmbench list``: machines, data sets, layouts, figures and experiments, with descriptions.

Docstrings are read from the source files, since importing all modules takes seconds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import mmbench
from mmbench.config.files import SCHEMA_LINE, config_files

if TYPE_CHECKING:
    from mmbench.tables.catalogue import Entry


def machine_rows(aliases: bool = False) -> list[tuple]:
    """Return names and descriptions of the machines, with their aliases if `aliases` is true."""
    from mmbench.machines import ALIASES, MACHINES

    rows: list[tuple] = [(name, _first_line(path)) for name, path in MACHINES.items()]
    for name, alias in ALIASES.items() if aliases else ():
        params = ", ".join(f"{key}={value!r}" for key, value in alias.params.items())
        axes = " then ".join(", ".join(stage) for stage in alias.stages)
        search = f", {axes} searched" if axes else ""
        rows.append((name, f"{alias.label}: {alias.machine} with {params}{search}"))
    return rows


def dataset_rows() -> list[tuple]:
    """Return the name and the title of each data set with a card (description file)."""
    from mmbench.datasets.card_files import card_names, read_card

    return [(name, read_card(name)[1].get("title", "")) for name in card_names()]


def layout_rows() -> list[tuple]:
    """Return the name and the description of each table layout."""
    from mmbench.tables.layouts import LAYOUTS

    return [(name, _first_line(path)) for name, path in LAYOUTS.items()]


def figure_rows() -> list[tuple]:
    """Return the name and the description of each figure."""
    from mmbench.tables.figures import FIGURES

    return [(name, _first_line(path)) for name, path in FIGURES.items()]


def config_rows() -> list[tuple]:
    """Return the name and the description of each experiment.

    The description is the first sentence of the comment at the beginning of the experiment's file.
    A colon also ends the description.
    """
    texts = {name: path.read_text("utf-8", "replace") for name, path in config_files().items()}
    known = re.compile(f"(?:{re.escape(SCHEMA_LINE)}.*\n)?((?:#.*\n?)*)")
    heads = {name: known.match(text)[1] for name, text in texts.items()}  # type: ignore[index]
    lines = {name: re.sub(r"\s*#\s*|\s+", " ", head).strip() for name, head in heads.items()}
    return [(k, re.split(r":(?: |$)|\.(?: (?=[A-Za-z])|$)", line)[0]) for k, line in lines.items()]


def aligned(rows: Sequence[Sequence[object]], n_words: int | None = None) -> list[str]:
    """Return rows as lines of text with aligned columns.

    The first `n_words` columns are aligned to the left, and the other columns to the right. By
    default, all columns are aligned to the left.

    Examples
    --------
    >>> aligned([("svm", 5), ("mmrm", 12)], n_words=1)
    ['svm    5', 'mmrm  12']
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<" if n_words is None or k < n_words else ">" for k in range(len(widths))]
    return [
        "  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip()
        for row in cells
    ]


def _first_line(entry: Entry) -> str:
    """Return the description of a machine, a layout or a figure.

    The argument `entry` is a dict with the key "about", or the path of a module or class
    (``module:class``) with the description in the first line of its docstring.
    """
    if not isinstance(entry, str):
        return entry["about"]
    name, _, attribute = entry.partition(":")
    tree = ast.parse(_source(name))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    described = classes.get(attribute) if attribute else tree
    return ((described and ast.get_docstring(described)) or "").partition("\n")[0]


def _source(name: str) -> bytes:
    """Return the source code of a module.

    For a module outside mmbench, `find_spec` imports the parent packages of the module.
    """
    if name.startswith("mmbench."):
        root = Path(mmbench.__file__).parents[1]
        return root.joinpath(*name.split(".")).with_suffix(".py").read_bytes()
    try:
        return Path(str(getattr(find_spec(name), "origin", None))).read_bytes()
    except (ImportError, OSError):
        return b'"""not found: its package is incomplete"""'
