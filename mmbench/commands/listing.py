"""What there is, as rows of name and description: machines, data sets, layouts, configs."""

from __future__ import annotations

from pathlib import Path

from mmbench.config.read import CONFIG_FOLDER, config_names

Rows = list[tuple[str, str]]


def machine_rows() -> Rows:
    """Return the machines that run, with the first line of their documentation and kernels."""
    from mmbench.machines import MACHINES, machine_class

    classes = {name: machine_class(name) for name in MACHINES}
    return [
        (name, f"{_first_line(cls)} [{', '.join(cls.kernels)}]") for name, cls in classes.items()
    ]


def dataset_rows() -> Rows:
    """Return the data sets with a card, and their titles."""
    from mmbench.datasets import card_names, load_card

    return [(name, load_card(name).title) for name in card_names()]


def layout_rows() -> Rows:
    """Return the table layouts and what they show."""
    from mmbench.tables import list_layouts

    return list(list_layouts().items())


def config_rows(folder: Path = CONFIG_FOLDER) -> Rows:
    """Return the configurations in a folder, with the comment in their first line."""
    return [(name, _first_comment(folder / f"{name}.yaml")) for name in config_names(folder)]


def _first_line(thing: object) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


def _first_comment(path: Path) -> str:
    """Return the first line of a file without its comment sign, empty if it is no comment."""
    with path.open(encoding="utf-8", errors="replace") as file:
        line = file.readline().strip()
    return line.lstrip("# ") if line.startswith("#") else ""
