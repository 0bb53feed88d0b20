"""What ``mmbench export`` does: records as a plain table for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mmbench.commands.options import format_of
from mmbench.config.cells import replan
from mmbench.errors import UserError
from mmbench.jobs.store import write_atomically
from mmbench.tables.export import PREDICTION_COLUMNS, SPLIT_COLUMNS, prediction_rows, split_rows
from mmbench.tables.records import Experiment
from mmbench.tables.results import read_results

if TYPE_CHECKING:
    import pandas as pd

FORMATS = {".csv": "csv", ".parquet": "parquet"}


def frame(
    results: Sequence[Path],
    predictions: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> pd.DataFrame:
    """Return the records of results folders, one row a split or, of predictions, a test row.

    Raises
    ------
    UserError
        If no folder holds records.
    """
    import pandas as pd

    found = [e for e in read_results(results, replan, say=say) if isinstance(e, Experiment)]
    if not found:
        raise UserError(f"{results[0]}: holds tables alone, no records to export")
    for experiment in found:
        for remark in experiment.remarks:
            say(f"{experiment.folder}: {remark}")
    make, columns = (
        (prediction_rows, PREDICTION_COLUMNS) if predictions else (split_rows, SPLIT_COLUMNS)
    )
    table = pd.DataFrame(make(found), columns=list(columns)).convert_dtypes()
    types = {"degree": "Int64", "size": "Int64", "seconds_calibration": "Float64"}
    return table.astype({c: types[c] for c in types if c in table})  # also where all are missing


def export(
    results: Sequence[Path],
    fmt: str | None = None,
    output: Path | None = None,
    predictions: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> str:
    """Write the records of results folders to a file; without one return them as CSV.

    Parameters
    ----------
    results : sequence of Path
        Results folders, or folders of experiments in them.
    fmt : {"csv", "parquet"}, optional
        By default what the suffix of `output` says, else CSV.
    output : Path, optional
    predictions : bool
        Whether to export a row for each test row, not one for each split.
    say : callable, optional
        Gets a line for each folder that cannot be read, and for what is wrong with one.

    Raises
    ------
    UserError
        If no folder holds records, or the output cannot be written.
    """
    fmt = format_of(output, fmt, FORMATS)
    if fmt == "parquet" and output is None:
        raise UserError("parquet is no text: name a file with --output")
    table = frame(results, predictions, say)
    if output is None:
        return table.to_csv(index=False)

    def write(file: IO[bytes]) -> None:
        table.to_csv(file, index=False) if fmt == "csv" else table.to_parquet(file, index=False)

    try:
        write_atomically(output, write)
    except ImportError:
        raise UserError("parquet needs pyarrow: pip install pyarrow") from None
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None
    return f"{len(table)} rows written to {output}"
