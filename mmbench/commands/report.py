"""What ``mmbench report`` does: results folders to a static site."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mmbench.config.cells import replan
from mmbench.tables import read_results, write_report


def report(
    results: Sequence[Path],
    output: Path,
    mix: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> Path:
    """Write the report of results folders and return its first page.

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
    return write_report(read_results(results, replan, mix, say), output, say)
