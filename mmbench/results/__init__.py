"""Results of experiments as data frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["load"]


def load(
    *folders: str | Path,
    predictions: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> pd.DataFrame:
    """Return the records of experiments as a data frame.

    Parameters
    ----------
    *folders : path
        Results folder of an experiment, folder of several results folders (such as the default
        ``results``), or reference folder with a file ``splits.csv.gz``.
    predictions : bool
        If true, the data frame has one row per test row instead of one row per split.
    say : callable, optional
        Called with a line for each folder that cannot be read, and for damaged records.

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
    import pandas as pd

    from mmbench.errors import UserError
    from mmbench.results.folder import as_text, read_results
    from mmbench.results.splits import IDENTIFIED, PREDICTIONS, prediction_rows

    paths, parts = [Path(path) for path in folders or ("results",)], []
    for item in read_results(paths, say=say):
        if item.has_records:
            for remark in item.remarks:
                say(f"{item.folder}: {remark}")
            known, changed = item.facts["with_code"], item.facts["by_other_code"]
            if changed:
                say(f"{item.folder}: {changed} of {known} records are by other code")
        if not len(item.splits) or (predictions and not item.has_records):
            continue
        table = as_text("splits", item.splits, item.foreign)
        if predictions:
            splits: list[dict[str, Any]] = table.to_dict("records")  # type: ignore[assignment]
            found = (r for s in splits for r in prediction_rows(s, item.arrays(s["record"])))
            table = pd.DataFrame(found, columns=[*IDENTIFIED, *PREDICTIONS, "record"])
        parts.append(table)
    if not parts:
        raise UserError(f"{paths[0]}: contains only tables, no records to export")
    rows = pd.concat([part.astype(object) for part in parts], ignore_index=True).convert_dtypes()
    types = {name: "Float64" for name in rows if rows[name].isna().all()}
    types |= {"degree": "Int64", "size": "Int64", "fingerprint": "string"}
    return rows.astype({name: types[name] for name in types if name in rows})
