"""The page of a table cell in the report: splits, selection scores, confusion matrix and
certificates.
"""

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from mmbench.errors import FINISHED, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key, PlannedCell, grouped
from mmbench.tables.blocks import label
from mmbench.tables.frame import (
    ACCURACY,
    METRIC,
    SPLIT_COLUMNS,
    Cell,
    choices_of,
    routes_text,
    rows_of,
)
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View
from mmbench.tables.results_folder import Experiment

#: Maximum number of values of a parameter in the table of selection scores. If a parameter has more
#: values, the page does not show the table.
LONGEST = 60


def write_cells(site: Site, view: View) -> None:
    """For each table cell with records or stored rows of the split table, write a page of the
    report, and a CSV file with the rows of the split table.
    """
    experiment, keys = view.experiment, [None, *view.pages, None]
    cells = view.cells or dict(stored_cells(experiment) if view.pages else ())
    metrics = grouped((row.key, row) for row in view.sheet.rows if row.measured is not None)
    for before, (key, path), after in zip(keys, view.pages.items(), keys[2:], strict=False):
        cell, page = cells[key], f"{view.folder}/{path}"
        table, folder = page.removesuffix(".html") + ".csv", site.path(page).parent.resolve()
        site.table(table, cell.splits, SPLIT_COLUMNS)
        records = (experiment.store.path_of(record.key).resolve() for record in cell.records)
        paths = (Path(os.path.relpath(record, folder)).as_posix() for record in records)
        used = {record.job.use for record in cell.records} - {None, key.machine}
        site.page(
            page,
            "cell.html",
            view=view,
            key=key,
            cell=cell,
            links=list(map(quote, paths)),
            picture=splits_picture(view, cell),
            surface=surface(cell.done),
            source=next((key._replace(machine=str(machine)) for machine in used), None),
            pairs=pair_lines(cell.done),
            metrics=metrics.get(key, []),
            before=before,
            after=after,
        )


def stored_cells(experiment: Experiment) -> Iterator[tuple[Key, Cell]]:
    """Yield the table cells of a reference table, with rows of the split table, but no records."""
    table = pd.read_csv(str(experiment.splits)).reindex(columns=[*SPLIT_COLUMNS])
    rows = rows_of(table.convert_dtypes())
    for key, lines in experiment.stored_splits.items():
        cell = Cell(PlannedCell(key, 1), (), experiment)
        cell.splits = own = [rows[line.Index]._asdict() for line in lines]
        cell.counted = [s for s in own if s[METRIC] is not None and Status.FAILED not in s["fits"]]
        yield key, cell


def surface(records: Sequence[Record]) -> dict[str, Any] | None:
    """Return a table of mean selection scores for the one or two parameters with the largest grids.

    A selection score is the validation result of a grid point on one split. The table has one entry
    per value of one parameter, or per pair of values of two parameters. An entry contains the mean
    score over splits, and the number of times that this value or pair was selected. If the grid has
    further parameters, the score on a split is the best score over the values of these parameters.

    The key ``metric`` of the returned dict contains the heading of the scores. Accuracies are
    converted to per cent. Returns None if there are no selection scores, or if a parameter has more
    than `LONGEST` values.
    """
    records, grids = [record for record in records if record.selection.get("scores")], {}
    for name, found in grouped(axis for record in records for axis in record.job.grid).items():
        values = {_hashable(value) for grid in found for value in grid}
        if len(values) > 1:
            grids[name] = sorted(values, key=lambda value: (isinstance(value, str), value))
    axes = sorted(grids, key=lambda name: -len(grids[name]))[:2]
    if not axes or len(grids[axes[0]]) > LONGEST:
        return None
    # the parameter that is stated first in the grid is on the vertical axis
    axes.sort(key=list(grids).index)
    across, down = axes[-1], axes[0] if len(axes) == 2 else ""

    def point(line: Mapping[str, Any]) -> dict[str, Any]:
        return {"down": _hashable(line.get(down, "")), "across": _hashable(line.get(across, ""))}

    scores = pd.DataFrame(
        {**point(line), "split": k, "score": line.get("score")}
        for k, record in enumerate(records)
        for line in record.selection["scores"]
    )
    chosen = (point(choice) for record in records for choice in choices_of(record))
    choices = pd.DataFrame(chosen, columns=["down", "across"]).value_counts()
    metric = records[0].job.select.metric
    best = scores.dropna().groupby(["down", "across", "split"]).score.max()
    mean = (100 if metric == ACCURACY else 1) * best.groupby(["down", "across"]).mean()
    heat = (mean - mean.min()) / (mean.max() - mean.min())  # NaN (0/0) if all scores are equal
    rows = grids[down] if down else [""]
    index = pd.MultiIndex.from_product([rows, grids[across]])
    columns = {"score": mean, "heat": heat.fillna(1.0).round(3), "chosen": choices}
    points = pd.DataFrame({name: values.reindex(index) for name, values in columns.items()})
    points = points.fillna({"heat": 0.0, "chosen": 0}).astype({"chosen": int})
    return {
        "metric": label(METRIC if metric == ACCURACY else metric),
        "across": across,
        "down": down,
        "columns": [_text(value) for value in grids[across]],
        "rows": [_text(value) for value in rows],
        "points": [list(points.loc[[value]].itertuples()) for value in rows],
        "others": [name for name in grids if name not in axes],
        "n": len(records),
        "n_choices": int(choices.sum()),
    }


def _hashable(value: Any) -> Any:
    """Return a number of the grid as a float, and any other value as a text."""
    return float(value) if type(value) in (int, float) else str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pair_lines(records: Sequence[Record]) -> list[dict[str, Any]]:
    """For each pair of classes, return a summary of the certificates on all splits.

    The summary contains the largest duality gap and the largest constraint violation, and the mean
    numbers of support vectors, iterations and seconds. If the dual bound of a training is unknown,
    the duality gap is infinite. Trainings without a certificate are not used for the largest
    duality gap and the largest violation.
    """
    every, lines = (fit for record in records for fit in record.per_pair), []
    for pair, fits in grouped((" / ".join(map(str, fit["pair"])), fit) for fit in every).items():
        ended = Counter(str(fit["status"]) for fit in fits)
        numbers = pd.DataFrame(fits).reindex(columns=["n_support", "iterations", "seconds"])
        known = [fit for fit in fits if str(fit["status"]) != Status.UNCERTIFIED]
        gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in known if "gap" in fit]
        lines.append({
            "pair": pair,
            "n": len(fits),
            "ended": ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in ended.items()),
            "sound": set(ended) <= {*FINISHED, Status.UNCERTIFIED},
            "route": routes_text(fits),
            "gap": max(gaps, default=None),
            "violation": pd.Series([fit.get("max_violation") for fit in known], dtype=float).max(),
            **numbers.astype(float).mean(),
        })  # fmt: skip
    return lines
