"""What ``mmbench table`` and ``mmbench figure`` do with a results folder."""

from __future__ import annotations

from pathlib import Path

from mmbench.config.cells import replan
from mmbench.errors import UserError
from mmbench.jobs.files import write_atomically
from mmbench.tables import (
    check_figure,
    check_names,
    draw_figure,
    draw_tables,
    read_experiments,
)


def table(
    results: str | Path,
    fmt: str = "markdown",
    layout: str | None = None,
    output: str | Path | None = None,
    mix: bool = False,
) -> str:
    """Return the tables of a results folder, measured beside published.

    Parameters
    ----------
    results : path
        The results folder, or the folder of one experiment in it.
    fmt : {"markdown", "latex", "csv"}
        ``csv`` is the long tidy table, whatever the layout.
    layout : str, optional
        Layout instead of the one that each experiment's configuration names.
    output : path, optional
        File to write the text to as well.
    mix : bool
        Whether records of different settings may stand in one table.

    Raises
    ------
    UserError
        If the folder holds no records, the layout or format is unknown, or `output` cannot be
        written.
    """
    check_names(fmt, layout)
    text = draw_tables(read_experiments(Path(results), replan, mix), fmt, layout)
    if output is not None:
        _write(Path(output), text)
    return text


def figure(name: str, results: str | Path, output: str | Path) -> str:
    """Draw a figure of a results folder and return its numbers.

    Parameters
    ----------
    name : str
    results : path
        The results folder, or the folder of one experiment in it.
    output : path
        File to write; its suffix (png, pdf, svg) says the format.

    Raises
    ------
    UserError
        If there is no such figure, no suitable record, or the output cannot be written.
    """
    check_figure(name, Path(output))
    return draw_figure(name, read_experiments(Path(results), replan), Path(output))


def _write(path: Path, text: str) -> None:
    if not path.name:
        raise UserError(f"{path}: cannot write the table: it is a folder")
    try:
        write_atomically(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise UserError(f"{path}: cannot write the table: {error.strerror}") from None
