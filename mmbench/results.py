"""Results of runs as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def load(*folders: str | Path, predictions: bool = False) -> pd.DataFrame:
    """Return the records of results folders as a data frame.

    Parameters
    ----------
    *folders : path
        Results folders, or folders of experiments in them; ``results`` without any.
    predictions : bool
        Whether to return a row for each test row, not one for each split.

    Returns
    -------
    DataFrame
        One row a split: data set, kernel, machine, repeat, fold, seed, status, accuracy and errors,
        parameters (JSON), CPU seconds by stage, and certificates. With `predictions` one row a test
        row: its number in the data set, label, prediction, and decision value of two classes.

    Raises
    ------
    UserError
        If a folder holds no records.

    Examples
    --------
    >>> frame = load("results")  # doctest: +SKIP
    >>> frame.groupby(["dataset", "machine"]).accuracy_pct.mean()  # doctest: +SKIP
    """
    from mmbench.commands.outputs import frame

    return frame(folders or ("results",), predictions)
