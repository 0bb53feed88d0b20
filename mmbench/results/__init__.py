"""Results of experiments as data frames."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load"]


def load(*folders: str | Path, predictions: bool = False) -> pd.DataFrame:
    """Return the records of experiments as a data frame.

    Parameters
    ----------
    *folders : path
        Results folder of an experiment, folder of several results folders (such as the default
        ``results``), or folder of a reference table with a file ``splits.csv.gz``.
    predictions : bool
        If true, the data frame has one row per test row instead of one row per split.

    Returns
    -------
    DataFrame
        One row per split, with data set, kernel, machine, repeat, fold, seed, status, accuracy,
        errors, parameters (JSON), CPU seconds per stage of the job, and certificates. Repeats and
        folds are counted from 1. If `predictions` is true, the data frame has one row per test row,
        with the label, the prediction, the index of the row in the data set and, for two classes,
        the decision value.

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
