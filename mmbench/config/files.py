"""Where configurations are found, and by which names."""

from __future__ import annotations

from pathlib import Path

from mmbench.errors import UserError, did_you_mean

#: Where a bare name such as ``quickstart`` is looked up.
CONFIG_FOLDER = Path("configs")


def find_config(name: str | Path) -> Path:
    """Return the path of a configuration given by path, or by its name in ``configs/``.

    Raises
    ------
    UserError
        If there is no such file.
    """
    path = Path(name)
    if path.exists():
        return path
    named = CONFIG_FOLDER / f"{name}.yaml"
    if path.name == str(name) and named.exists():
        return named
    known = config_names(path.parent if path.suffix else CONFIG_FOLDER)
    hint = did_you_mean(path.stem, known) if known else ""
    raise UserError(f"{path}: no such file{hint}")


def config_names(folder: Path = CONFIG_FOLDER) -> list[str]:
    """Return the names of the configurations in a folder."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
