"""Results folders: which experiments and reference tables are in them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from mmbench import resources
from mmbench.errors import UserError
from mmbench.jobs.store import CONFIG
from mmbench.tables.records import Experiment, Replan, read_experiment
from mmbench.tables.reference import CSV, Reference, read_reference

Item = TypeVar("Item")
Made = TypeVar("Made")

#: The folder of the reference tables beside those of experiments.
REFERENCE = "reference"


def read_results(
    paths: Iterable[Path],
    replan: Replan = lambda folder: None,
    mix: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> list[Experiment | Reference]:
    """Return the experiments in results folders, or those whose folders they are.

    Parameters
    ----------
    paths : iterable of Path
    replan : callable, optional
        Plans a folder that has no plan of its own; see `read_experiment`.
    mix : bool
        Whether records of all settings are taken, not only those that are planned.
    say : callable, optional
        Gets a line for each folder that cannot be read; the others are returned.

    Raises
    ------
    UserError
        If a path is no such folder, or no folder in it can be read.
    """

    def read(folder: Path) -> Experiment | Reference:
        if (folder / CONFIG).is_file():
            return read_experiment(folder, replan, mix)
        return read_reference(folder, replan(folder))

    return each(read, (folder for path in paths for folder in folders_in(path)), say)


def each(
    make: Callable[[Item], Made], items: Iterable[Item], say: Callable[[str], object]
) -> list[Made]:
    """Return what is made of some items; a line is said of each that does not do.

    Raises
    ------
    UserError
        If none of them does.
    """
    made: list[Made] = []
    faults: list[str] = []
    for item in items:
        try:
            made.append(make(item))
        except (UserError, OSError) as error:
            faults.append(" ".join(str(error).split()))
    if not made:
        raise UserError(f"{faults[0]}{f'; so are {len(faults) - 1} others' if faults[1:] else ''}")
    for fault in faults:
        say(fault)
    return made


def folders_in(path: Path) -> list[Path]:
    """Return the folders of experiments in a results folder, or the one that it is.

    Where there is no experiment, those of the reference tables. "reference", where there is no
    such folder, is that of the tables that come with mmbench.

    Raises
    ------
    UserError
        If there is none.
    """
    if path.parts[:1] == (REFERENCE,) and not path.exists():
        path = resources.REFERENCE.joinpath(*path.parts[1:])
    if not path.is_dir():
        kind = "is a file, not a results folder" if path.exists() else "no such folder"
        raise UserError(f"{path}: {kind}")
    for mark in (CONFIG, CSV):
        if (path / mark).is_file():
            return [path]
    for mark in (f"*/{CONFIG}", f"*/{CSV}", f"{REFERENCE}/*/{CSV}"):
        found = sorted(file.parent for file in path.glob(mark) if file.parent.name != REFERENCE)
        if found:
            return found
    raise UserError(
        f"{path}: not a results folder, neither it nor a folder in it has {CONFIG} or {CSV}"
    )
