"""Results of runs as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load"]


def load(*folders: str | Path, predictions: bool = False) -> pd.DataFrame:
    """Return the records of results folders as a data frame.

    Parameters
    ----------
    *folders : path
        Results folders, folders of experiments inside a results folder, or reference tables with
        a file ``splits.csv.gz``; ``results`` by default.
    predictions : bool
        Whether the data frame has one row per test row instead of one row per split.

    Returns
    -------
    DataFrame
        One row per split with the columns data set, kernel, machine, repeat, fold, seed, status,
        accuracy and errors, parameters (JSON), CPU seconds by stage, and certificates. With
        `predictions`, one row per test row with the columns row number in the data set, label,
        prediction, and (for two classes) decision value.

    Raises
    ------
    UserError
        If a folder contains no records.

    Examples
    --------
    >>> frame = load("results")  # doctest: +SKIP
    >>> frame.groupby(["dataset", "machine"]).accuracy_pct.mean()  # doctest: +SKIP
    """
    from mmbench.commands.outputs import frame

    return frame(folders or ("results",), predictions)
