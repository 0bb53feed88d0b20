"""What there is, as rows of name and description: machines, data sets, layouts, figures, configs.

Descriptions are read from the source: importing what they describe takes seconds.
"""

import ast
from importlib.util import find_spec
from pathlib import Path

import mmbench
from mmbench.config.files import config_files, find_config, read_text

Rows = list[tuple[str, str]]


def machine_rows() -> Rows:
    """Return the machines with the first line of their documentation, then the aliases."""
    from mmbench.machines import ALIASES, MACHINES

    rows = [(name, _first_line(path)) for name, path in MACHINES.items()]
    for name, alias in ALIASES.items():
        params = ", ".join(f"{key}={value!r}" for key, value in alias.params.items())
        axes = " then ".join(", ".join(stage) for stage in alias.stages)
        search = f", {axes} searched" if axes else ""
        rows.append((name, f"{alias.label}: {alias.machine} with {params}{search}"))
    return rows


def dataset_rows() -> Rows:
    """Return the data sets with a card, and their titles."""
    from mmbench.datasets import card_names, load_card

    return [(name, load_card(name).title) for name in card_names()]


def layout_rows() -> Rows:
    """Return the table layouts and what they show."""
    from mmbench.tables.layouts import list_layouts

    return list(list_layouts().items())


def figure_rows() -> Rows:
    """Return the figures and what they show."""
    from mmbench.tables.figures import FIGURES

    return [(name, _first_line(path)) for name, path in FIGURES.items()]


def config_rows() -> Rows:
    """Return the experiments that have a name here, with the comment in their first line."""
    return [(name, _first_comment(path)) for name, path in config_files().items()]


def config_text(name: str) -> str:
    """Return the file of an experiment.

    Raises
    ------
    UserError
        If there is none, or it is no text.
    """
    return read_text(find_config(name))


def _first_line(path: str) -> str:
    """Return the first line of the docstring of ``module`` or ``module:Class``."""
    name, _, cls = path.partition(":")
    module = ast.parse(_source(name))
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    text = ast.get_docstring(classes[cls] if cls else module) if cls in (*classes, "") else None
    return (text or "").partition("\n")[0]


def _source(name: str) -> bytes:
    """Return the source of a module; of another package its parents are imported to find it."""
    if name.startswith("mmbench."):
        root = Path(mmbench.__file__).parents[1]
        return root.joinpath(*name.split(".")).with_suffix(".py").read_bytes()
    try:
        spec = find_spec(name)
        return Path(str(spec and spec.origin)).read_bytes()
    except (ImportError, OSError):
        return b'"""not found: its package is not whole"""'


def _first_comment(path: Path) -> str:
    """Return the first line of a file without its comment sign, empty if it is no comment."""
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline().strip()
    return line.lstrip("# ") if line.startswith("#") else ""
