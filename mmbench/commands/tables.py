"""What ``mmbench table``, ``figure``, ``report`` and ``clean`` do with results folders."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mmbench.commands.options import format_of
from mmbench.config.cells import replan
from mmbench.errors import UserError
from mmbench.jobs.store import write_atomically
from mmbench.tables.build import check_names, draw_tables
from mmbench.tables.figures import check_figure, choose, draw_figure
from mmbench.tables.records import Experiment
from mmbench.tables.results import Reference, read_results

Say = Callable[[str], object]

#: Formats of tables by the suffix of the file that they are written to.
FORMATS = {".md": "markdown", ".csv": "csv", ".tex": "latex"}


def table(
    results: Sequence[Path],
    fmt: str | None = None,
    layout: str | None = None,
    output: Path | None = None,
    mix: bool = False,
    say: Say = lambda line: None,
    metrics: Sequence[str] = (),
    include_failed: bool = False,
) -> str:
    """Return the tables of results folders, measured beside published.

    Parameters
    ----------
    results : sequence of Path
        Results folders, or folders of experiments in them.
    fmt : {"markdown", "latex", "csv"}, optional
        ``csv`` is the long tidy table, whatever the layout. By default what the suffix of `output`
        says, else Markdown.
    layout : str, optional
        Layout instead of the one that each experiment's configuration names.
    output : path, optional
        File to write the text to as well.
    mix : bool
        Whether records of different settings may stand in one table.
    say : callable, optional
        Gets a line for each folder that cannot be read.
    metrics : sequence of str, default=()
        What is shown, computed from the stored predictions, in place of what the experiments say.
    include_failed : bool, default=False
        Whether splits with a failed fit go into means and tests.

    Raises
    ------
    UserError
        If no folder can be read, the layout, format or a metric is unknown, or `output` cannot be
        written.
    """
    fmt = format_of(output, fmt, FORMATS)
    check_names(fmt, layout, metrics)
    read = read_results(results, replan, mix, say)
    if include_failed:
        read = [replace(e, include_failed=True) if isinstance(e, Experiment) else e for e in read]
    text = draw_tables(read, fmt, layout, say, metrics)
    if output is not None:
        _write(output, text)
    return text


def figure(
    name: str, results: Sequence[Path], output: Path | None = None, say: Say = lambda line: None
) -> str:
    """Draw a figure of results folders and return its numbers.

    Parameters
    ----------
    name : str
    results : sequence of Path
        Results folders, or folders of experiments in them.
    output : path, optional
        File to write; its suffix (png, pdf, svg) says the format. By default ``NAME.png`` beside
        the records, or here for a reference table.
    say : callable, optional
        Gets a line for each folder that cannot be read, and the name of the file.

    Raises
    ------
    UserError
        If there is no such figure, no suitable record, or the output cannot be written.
    """
    check_figure(name, output)
    chosen = choose(name, read_results(results, replan, say=say))
    place = Path() if isinstance(chosen, Reference) else chosen.folder
    output = output or place / f"{name}.png"
    numbers = draw_figure(name, chosen, output)
    say(f"written to {output}")
    return numbers


def report(
    results: Sequence[Path], output: Path, mix: bool = False, say: Say = lambda line: None
) -> Path:
    """Write the report of results folders, a static site, and return its first page.

    Parameters
    ----------
    results : sequence of Path
        Results folders, or folders of experiments in them, reference tables too.
    output : path
        Folder of the report: new, empty, or that of an earlier report.
    mix : bool
        Whether records of different settings may stand in one table.
    say : callable, optional
        Gets a line for each folder that cannot be read.

    Raises
    ------
    UserError
        If no folder can be read, or `output` holds something else or cannot be written to.
    """
    from mmbench.tables.report import write_report

    return write_report(read_results(results, replan, mix, say), output, say)


def clean(results: Sequence[Path], remove: bool = False) -> list[str]:
    """Remove what no current setting uses, and return a line a folder of what that is.

    Parameters
    ----------
    results : sequence of Path
        Results folders, or folders of experiments in them.
    remove : bool
        Whether to remove anything, or only to say what would be.

    Raises
    ------
    UserError
        If a path is no results folder, or one of them is in use.
    """
    from mmbench.jobs.store import CONFIG, RecordStore
    from mmbench.tables.results import folders_in

    folders = [folder for path in results for folder in folders_in(path)]
    lines = []
    for store in [RecordStore(folder) for folder in folders if (folder / CONFIG).is_file()]:
        with store.locked():
            paths = store.unused()
            megabytes = sum(path.lstat().st_size for path in paths or ()) / 1e6
            if remove:
                for path in paths or ():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        verb = "removed" if remove else "would be removed"
        lines.append(
            f"{store.folder}: no intact plan, run it once more before"
            if paths is None
            else f"{store.folder}: {len(paths)} files ({megabytes:.1f} MB) {verb}"
        )
    return lines


def _write(path: Path, text: str) -> None:
    if not path.name:
        raise UserError(f"{path}: cannot write the table: it is a folder")
    try:
        write_atomically(path, lambda file: file.write(text.encode()))
    except OSError as error:
        raise UserError(f"{path}: cannot write the table: {error.strerror}") from None
