"""Records to the long tidy table: one row for each cell and metric."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mmbench.jobs.plan import Key
from mmbench.jobs.record import Record
from mmbench.tables.cells import Cell
from mmbench.tables.statistics import counting_sd, in_band, seeds_se, total_se

if TYPE_CHECKING:
    import pandas as pd

#: Columns of the long table, in the order of its CSV.
COLUMNS = (
    "experiment",
    "dataset",
    "kernel",
    "degree",
    "machine",
    "metric",
    "measured",
    "sd",
    "se",
    "n",
    "published",
    "published_spread",
    "in_band",
    "status",
    "note",
)

#: How a note begins that speaks of the published value alone. It ends the note of its cell.
NO_TARGET = "the published value is no target"

#: Column of the training size.
SIZE = "size"

#: Metrics that are averaged over splits: how to read one from a record.
METRICS: dict[str, Callable[[Record], float | None]] = {
    "accuracy_pct": lambda r: r.metrics["accuracy_pct"],
    "errors_count": lambda r: r.metrics["errors_count"],
    "errors_expected": lambda r: r.metrics.get("errors_expected"),
    "n_ties": lambda r: r.metrics.get("n_ties"),
    "seconds_selection": lambda r: r.cpu_seconds["selection"],
    "seconds_training": lambda r: r.cpu_seconds["training"],
    "seconds_test": lambda r: r.cpu_seconds["test"],
    "n_support": lambda r: r.fits.get("n_support_mean"),
}

#: Certificates: a cell shows the worst of its splits.
WORST: dict[str, Callable[[Record], float | None]] = {
    "worst_violation": lambda r: r.fits.get("worst_violation"),
    "worst_gap": lambda r: r.fits.get("worst_gap"),
}

#: Metrics that count errors among the test rows: a single run has a binomial standard error.
COUNTED = {"accuracy_pct", "errors_count", "errors_expected"}

Published = Mapping[tuple[Key, str], Mapping[str, Any]]


def build_frame(experiment: str, cells: list[Cell], published: pd.DataFrame | None) -> pd.DataFrame:
    """Return the long table of an experiment.

    Parameters
    ----------
    experiment : str
    cells : list of Cell
        In the order in which they are to be shown.
    published : DataFrame or None
        A table of `load_published`.

    Returns
    -------
    DataFrame
        With `COLUMNS`, and `SIZE` after the degree where there are several training sizes. A cell
        without results has no `measured`; nothing is imputed.
    """
    import pandas as pd

    known = index_published(published)
    rows = [row for cell in cells for row in _rows(experiment, cell, known)]
    columns = list(COLUMNS)
    types = {"degree": "Int64", "n": "Int64", "in_band": "boolean"}
    if any(cell.key.size is not None for cell in cells):
        columns.insert(columns.index("degree") + 1, SIZE)
        types[SIZE] = "Int64"
    frame = pd.DataFrame(rows, columns=columns)
    numbers = ("measured", "sd", "se", "published", "published_spread")
    return frame.astype(types | dict.fromkeys(numbers, "float64"))


def index_published(published: pd.DataFrame | None) -> Published:
    """Return the numbers of a published table by cell and metric."""
    if published is None:
        return {}
    rows = rows_of(published)
    return {
        (Key(r["dataset"], r["kernel"], r["degree"], r["machine"]), r["metric"]): r for r in rows
    }


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries in which what is missing is None."""
    plain = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in plain.to_dict("records")]


def _rows(experiment: str, cell: Cell, published: Published) -> list[dict[str, Any]]:
    """Return a cell's rows: every metric of a cell that ran, else what is published."""
    metrics = [*METRICS, *WORST] if cell.done else ["accuracy_pct", "errors_count"]
    known = {metric: published.get((cell.key, metric)) for metric in metrics}
    if cell.published_only:
        metrics = [metric for metric in metrics if known[metric]]
    return [
        {"experiment": experiment, **cell.key._asdict(), **_row(cell, metric, known[metric])}
        for metric in metrics
    ]


def _row(cell: Cell, metric: str, published: Mapping[str, Any] | None) -> dict[str, Any]:
    row = {"metric": metric, "status": cell.status, "note": cell.note, **_measured(cell, metric)}
    if published is None:
        return row
    objection = _objection(cell, published)
    row["note"] = "; ".join(part for part in (cell.note, objection) if part)
    row["published"], row["published_spread"] = published["value"], published["std"]
    if "measured" in row and published["value"] is not None and not objection and not cell.failed:
        row["in_band"] = _verdict(cell, metric, row, published)
    return row


def _measured(cell: Cell, metric: str) -> dict[str, Any]:
    """Return value, spread, standard error and count of a metric over the splits that are done."""
    read = METRICS.get(metric) or WORST[metric]
    values = [float(v) for v in map(read, cell.done) if v is not None]
    if not values:
        return {}
    if metric in WORST:
        return {"measured": max(values), "n": len(values)}
    out: dict[str, Any] = {"measured": statistics.fmean(values), "n": len(values)}
    if len(values) > 1:
        out["sd"] = statistics.stdev(values)
        out["se"] = out["sd"] / math.sqrt(len(values))
    elif metric in COUNTED:
        out["se"] = _counting_deviation(cell.done[0], metric)
    return out


def _counting_deviation(record: Record, metric: str) -> float:
    """Return the binomial deviation of a single run, in the metric's own unit."""
    metrics = record.metrics
    n = metrics["n_test"]
    if metric != "accuracy_pct":
        return counting_sd(metrics[metric], n)
    return 100 / n * counting_sd(metrics["errors_count"], n)


def _objection(cell: Cell, published: Mapping[str, Any]) -> str:
    """Return why a published number cannot be held against ours; empty when it can."""
    if not published["usable"]:
        return f"{NO_TARGET}: {published['reason']}"
    for part, verb in (("n_train", "trained"), ("n_test", "tested")):
        sizes = {record.split[part] for record in cell.done}
        # Some papers count the rows of one pair of classes.
        pairs = {record.split.get(f"{part}_pair") for record in cell.done}
        if published[part] not in (None, *pairs) and sizes - {published[part]}:
            ours = " or ".join(str(size) for size in sorted(sizes))
            return f"{verb} on {ours} rows, the paper on {published[part]}: not comparable"
    return ""


def _verdict(
    cell: Cell, metric: str, row: Mapping[str, Any], published: Mapping[str, Any]
) -> bool | None:
    """Return whether the published value lies in our band; None where no error is known."""
    spread = row.get("sd", row.get("se"))
    if spread is None:
        return None
    if cell.same_test_rows and row["n"] > 1:
        counting = _counting_deviation(cell.done[0], metric) if metric in COUNTED else 0.0
        se = seeds_se(spread, row["n"], published["n_splits"], counting)
    else:
        se = total_se(spread, row["n"], published["n_splits"], cell.same_test_rows)
    return in_band(row["measured"], published["value"], se)
