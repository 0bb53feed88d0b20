"""Cells to the rows of the long tidy table: one for each cell and metric."""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.cells import Cell
from mmbench.tables.statistics import counting_sd, difference_se, z_value
from mmbench.tables.summaries.fits import fits_of
from mmbench.tables.summaries.selected import selected

#: How a remark begins that speaks of the published value alone.
NO_TARGET = "the published value is no target"

#: Metrics that are averaged over splits: how to read one from a record.
METRICS: dict[str, Callable[[Record], float | None]] = {
    "accuracy_pct": lambda r: r.metrics["accuracy_pct"],
    "errors_count": lambda r: r.metrics["errors_count"],
    "errors_expected": lambda r: r.metrics.get("errors_expected"),
    "n_ties": lambda r: r.metrics.get("n_ties"),
    "seconds_selection": lambda r: r.cpu_seconds["selection"],
    "seconds_training": lambda r: r.cpu_seconds["training"],
    "seconds_test": lambda r: r.cpu_seconds["test"],
    "seconds_calibration": lambda r: r.cpu_seconds.get("calibration"),
    "n_support": lambda r: r.fits.get("n_support_mean"),
}

#: Metrics of machines that were asked for them.
ASKED = {"seconds_calibration"}

#: Metrics of all fits of a cell together, as in `Fits`.
OF_FITS = {
    "worst_violation": lambda fits: fits.worst_violation,
    "worst_gap": lambda fits: fits.worst_gap,
    "median_gap": lambda fits: fits.median_gap,
    "gap_tolerance": lambda fits: fits.gap_tolerance,
    "gaps_above_tolerance": lambda fits: fits.n_above,
}

#: Begins the metric of a parameter of a machine's own grid, as ``selected_C``.
SELECTED = "selected_"

#: Metrics that count errors among the test rows: a single run has a binomial standard error.
COUNTED = {"accuracy_pct", "errors_count", "errors_expected"}

#: A row of a published table.
Published = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """One metric of one cell."""

    key: Key
    metric: str
    #: Of the cell; the worst that happened, and what is not as it should be.
    status: str
    note: str = ""
    #: Why the published value is no target.
    objection: str = ""
    #: Mean over splits, standard deviation and standard error; None without results.
    measured: float | None = None
    sd: float | None = None
    se: float | None = None
    #: Number of splits.
    n: int | None = None
    #: What the paper prints.
    published: float | None = None
    published_spread: float | None = None
    #: Of the band in which a published value counts as met, two standard errors of the difference;
    #: None where they are not compared.
    half_width: float | None = None
    #: Standard errors that the published value lies above the measured one.
    z: float | None = None
    #: Whether the published value counts as met.
    in_band: bool | None = None


def build_rows(
    cells: Iterable[Cell], published: Iterable[Published], compare: bool = True
) -> list[Row]:
    """Return the long table of an experiment.

    Parameters
    ----------
    cells : iterable of Cell
        In the order in which they are to be shown.
    published : iterable of mapping
        The rows of a published table.
    compare : bool
        Whether they are held against ours, or only shown beside them.

    Returns
    -------
    list of Row
        A cell without results has nothing measured; nothing is imputed.
    """
    known = {
        (Key(p["dataset"], p["kernel"], p["degree"], p["machine"]), p["metric"]): p
        for p in published
    }
    return [row for cell in cells for row in _rows(cell, known, compare)]


def _rows(cell: Cell, known: Mapping[tuple[Key, str], Published], compare: bool) -> list[Row]:
    """Return a cell's rows: every metric of a cell that ran, else what is published."""
    metrics = list(METRICS) if cell.done else ["accuracy_pct", "errors_count"]
    found = {metric: known.get((cell.key, metric)) for metric in metrics}
    if cell.planned.published_only:
        metrics = [metric for metric in metrics if found[metric]]
    rows = [_row(cell, metric, found[metric], compare) for metric in metrics]
    rows = [row for row in rows if row.metric not in ASKED or row.measured is not None]
    return [*rows, *_rows_of_fits(cell), *_rows_of_parameters(cell)] if cell.done else rows


def _rows_of_fits(cell: Cell) -> list[Row]:
    """Return the certificates of a cell's fits, as far as they are known."""
    fits = fits_of(cell.done)
    values = {metric: read(fits) for metric, read in OF_FITS.items()}
    return [
        Row(cell.key, metric, cell.status, cell.note, measured=float(value), n=len(cell.done))
        for metric, value in values.items()
        if value is not None
    ]


def _rows_of_parameters(cell: Cell) -> list[Row]:
    """Return the parameters that a cell's machine has selected from its own grid."""
    return [
        Row(cell.key, f"{SELECTED}{one.name}", cell.status, one.note, measured=one.median, n=one.n)
        for one in selected(cell.done)
    ]


def _row(cell: Cell, metric: str, published: Published | None, compare: bool) -> Row:
    row = Row(cell.key, metric, cell.status, cell.note, **_measured(cell, metric))
    if published is None:
        return row
    row = replace(row, published=published["value"], published_spread=published["std"])
    if not published["usable"]:
        return replace(row, objection=f"{NO_TARGET}: {published['reason']}")
    if not compare:
        return row
    if other_sizes := _other_sizes(cell, published):
        return replace(row, note="; ".join(filter(None, [row.note, other_sizes])))
    whole = not cell.failed and len(cell.counted) == len(cell.done)
    return _compared(cell, row, published["n_splits"]) if whole else row


def _measured(cell: Cell, metric: str) -> dict[str, Any]:
    """Return value, spread, standard error and count of a metric over the splits that count."""
    values = [float(v) for v in map(METRICS[metric], cell.counted) if v is not None]
    if not values:
        return {}
    out: dict[str, Any] = {"measured": statistics.fmean(values), "n": len(values)}
    if len(values) > 1:
        out["sd"] = statistics.stdev(values)
        out["se"] = out["sd"] / math.sqrt(len(values))
    elif metric in COUNTED:
        out["se"] = _counting_deviation(cell, metric, out["measured"])
    return out


def _counting_deviation(cell: Cell, metric: str, mean: float) -> float:
    """Return the binomial deviation of a run that errs as often as the mean, in its own unit."""
    if metric not in COUNTED:
        return 0.0
    n = cell.done[0].metrics["n_test"]
    unit = 100 / n if metric == "accuracy_pct" else 1.0
    return unit * counting_sd((100 - mean) / unit if metric == "accuracy_pct" else mean, n)


def _other_sizes(cell: Cell, published: Published) -> str:
    """Return in which sizes our splits differ from the paper's; empty if in none."""
    for part, verb in (("n_train", "trained"), ("n_test", "tested")):
        sizes = {record.split[part] for record in cell.done}
        # Some papers count the rows of one pair of classes.
        pairs = {record.split.get(f"{part}_pair") for record in cell.done}
        if published[part] not in (None, *pairs) and sizes - {published[part]}:
            ours = " or ".join(str(size) for size in sorted(sizes))
            return f"{verb} on {ours} rows, the paper on {published[part]}: not comparable"
    return ""


def _compared(cell: Cell, row: Row, n_published: int | None) -> Row:
    """Return a row with the comparison; as it is where a value or its error is not known."""
    if row.measured is None or row.published is None or row.n is None or row.se is None:
        return row
    counting = _counting_deviation(cell, row.metric, row.measured)
    se = difference_se(row.sd, row.n, n_published, counting, cell.same_test_rows)
    z = z_value(row.measured, row.published, se)
    return replace(row, half_width=2 * se, z=z, in_band=abs(z) <= 2 + 1e-9)
