"""The page of a table cell: splits, selection scores, confusion matrix and certificates."""

import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from mmbench.errors import FINISHED, Status
from mmbench.jobs.record import Record
from mmbench.tables.frame import CONFUSION, SPLIT_COLUMNS, choices_of, grouped, routes_text
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View, details

#: Maximum number of values of the longest grid axis; grids with a longer axis are not shown.
LONGEST = 60


def write_cells(site: Site, view: View) -> None:
    """Write one page and one CSV of splits for each table cell with records."""
    experiment = view.experiment
    keys = [None, *view.pages, None]
    for before, key, after in zip(keys, view.pages, keys[2:], strict=False):
        page, cell = f"{view.folder}/{view.pages[key]}", view.cells[key]
        table, folder = page.removesuffix(".html") + ".csv", site.path(page).parent.resolve()
        site.table(table, cell.splits, SPLIT_COLUMNS)
        splits = []
        for split in cell.splits:
            path = os.path.relpath(experiment.store.path_of(split["record"]).resolve(), folder)
            limits, chosen = limits_text(split["source"]), json.loads(split["parameters"])
            texts = {"parameters": parameters_text(chosen), "limits": limits}
            splits.append(split | texts | {"href": quote(Path(path).as_posix())})
        metrics = (row for row in view.sheet.rows if row.key == key and row.n is not None)
        used = {record.job.use for record in cell.records} - {None, key.machine}
        site.page(
            page,
            "cell.html",
            view=view,
            key=key,
            details=details(view, key),
            # The confusion matrix is a separate table.
            metrics=[row for row in metrics if not row.metric.startswith(CONFUSION)],
            splits=splits,
            picture=splits_picture(view, cell),
            surface=surface(cell.done),
            source=next((key._replace(machine=str(machine)) for machine in used), None),
            confusion=cell.confusion,
            pairs=pair_lines(cell.done),
            table=Path(table).name,
            before=before,
            after=after,
        )


def parameters_text(parameters: Any) -> str:
    """Return parameters as text; a list (one choice per pair of classes) is only counted.

    Examples
    --------
    >>> parameters_text({"C": 10, "gamma": 0.0078125}), parameters_text([{"C": 1}, {"C": 10}])
    ('C 10, gamma 0.00781', '2 pairs of classes, 2 choices')
    """
    if isinstance(parameters, list):
        choices = {json.dumps(choice, sort_keys=True) for choice in parameters}
        return f"{len(parameters)} pairs of classes, {len(choices)} choices"
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in parameters.items()
        if value is not None
    )


def limits_text(record: Record) -> str:
    """Return stage, time and memory at which a limit stopped a job; empty for other jobs."""
    reached = record.reached
    if not reached:
        return ""
    memory = f" with {reached['bytes'] / 1e6:.0f} MB" if reached.get("bytes") else ""
    seconds = f" after {reached['seconds']:.0f} s" if reached.get("seconds") else ""
    return f"stopped in {reached.get('stage') or 'the job'}{seconds}{memory}"


def surface(records: Sequence[Record]) -> dict[str, Any] | None:
    """Return mean selection scores (%) over the one or two longest axes of the grid.

    A mean is over splits of the best score over all other axes. The result also contains the number
    of selections per grid point. The result is None if there are no scores, or if the longest axis
    is too long.
    """
    records = [record for record in records if record.selection.get("scores")]
    grids = {}
    for name, found in grouped(axis for record in records for axis in record.job.grid).items():
        values = {_hashable(value) for grid in found for value in grid}
        if len(values) > 1:
            grids[name] = sorted(values, key=lambda value: (isinstance(value, str), value))
    axes = sorted(grids, key=lambda name: -len(grids[name]))[:2]
    if not axes or len(grids[axes[0]]) > LONGEST:
        return None
    axes.sort(key=list(grids).index)  # in the order of the grid, for example C down, gamma across
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
    best = 100 * scores.dropna().groupby(["down", "across", "split"]).score.max()
    mean = best.groupby(["down", "across"]).mean()
    heat = (mean - mean.min()) / (mean.max() - mean.min())  # NaN if all scores are equal
    rows = grids[down] if down else [""]
    index = pd.MultiIndex.from_product([rows, grids[across]])
    columns = {"score": mean, "heat": heat.fillna(1.0).round(3), "chosen": choices}
    points = pd.DataFrame({name: values.reindex(index) for name, values in columns.items()})
    points = points.fillna({"heat": 0.0, "chosen": 0}).astype({"chosen": int})
    return {
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
    """Return a grid value in a hashable form: numbers as float, and all other values as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def pair_lines(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return one summary of certificates per pair of classes, over all splits.

    A summary has the largest gap (infinite if the dual bound is unknown), the largest violation,
    and the means of the other numbers.
    """
    every = (fit for record in records for fit in record.per_pair)
    lines = []
    for pair, fits in grouped((" / ".join(map(str, fit["pair"])), fit) for fit in every).items():
        ended = Counter(str(fit["status"]) for fit in fits)
        names = ["max_violation", "n_support", "iterations", "seconds"]
        numbers = pd.DataFrame(fits).reindex(columns=names).astype(float)
        gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in fits if "gap" in fit]
        lines.append({
            "pair": pair,
            "n": len(fits),
            "ended": ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in ended.items()),
            "sound": set(ended) <= {*FINISHED, Status.UNCERTIFIED},
            "route": routes_text(fits),
            "gap": max(gaps, default=None),
            "violation": numbers.max_violation.max(),
            **numbers.mean(),
        })  # fmt: skip
    return lines
