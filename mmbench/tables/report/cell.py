"""The page of a table cell in the report: splits, selection scores, confusion matrix and
certificates.
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import quote

from mmbench.errors import FINISHED, Status
from mmbench.jobs.planned import grouped
from mmbench.jobs.record import Record
from mmbench.results.cells import ACCURACY, METRIC, Row, counts_text, finished, routes_text
from mmbench.tables.blocks import label
from mmbench.tables.render import csv_text
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View

#: Maximum number of values of a parameter in the table of selection scores. If a parameter has more
#: values, the page does not show the table.
LONGEST = 60


def write_cells(site: Site, view: View) -> None:
    """For each table cell with splits, write a page, and a CSV file with the splits."""
    results, keys = view.results, [None, *view.pages, None]
    for before, (key, path), after in zip(keys, view.pages.items(), keys[2:], strict=False):
        splits, page = results.by_cell[key], f"{view.folder}/{path}"
        folder = site.path(page).parent.resolve()
        table = view.splits.loc[[row.Index for row in splits]]
        site.text(page.removesuffix(".html") + ".csv", csv_text(table))
        records = (results.path_of(row.record) for row in splits)
        paths = (p and Path(os.path.relpath(p.resolve(), folder)).as_posix() for p in records)
        done = finished(splits)
        site.page(
            page,
            "cell.html",
            view=view,
            key=key,
            links=[path and quote(path) for path in paths],
            picture=splits_picture(view, key),
            surface=surface(done, results.record),
            pairs=pair_lines(done),
            before=before,
            after=after,
        )


def surface(
    splits: Sequence[Row], record_of: Callable[[str], Record | None]
) -> dict[str, Any] | None:
    """Return a table of mean selection scores for the one or two parameters with the largest grids.

    A selection score is the validation result of a grid point on one split. The table has one entry
    per value of one parameter, or per pair of values of two parameters. An entry contains the mean
    score over splits, and the number of times that this value or pair was selected. If the grid has
    further parameters, the score on a split is the best score over the values of these parameters.
    Without records, there are no scores, and the heading is empty.

    The key ``metric`` of the returned dict contains the heading of the scores. Accuracies are
    converted to per cent. Returns None if no parameter is selected, or if a parameter has more than
    `LONGEST` values.
    """
    splits = [row for row in splits if row.grid and row.chosen]
    found = grouped(axis for row in splits for axis in row.grid.items())
    sets = {name: {_hashable(v) for axis in axes for v in axis} for name, axes in found.items()}
    grids = {
        name: sorted(values, key=lambda value: (isinstance(value, str), value))
        for name, values in sets.items()
        if len(values) > 1
    }
    largest = sorted(grids, key=lambda name: -len(grids[name]))[:2]
    if not largest or len(grids[largest[0]]) > LONGEST:
        return None
    # the parameter that is stated first in the grid is on the vertical axis
    down, across = ["", *sorted(largest, key=list(grids).index)][-2:]

    def point(line: Mapping[str, Any]) -> tuple[Any, Any]:
        return _hashable(line.get(down, "")), _hashable(line.get(across, ""))

    best: dict[tuple[Any, Any], dict[str, float]] = {}
    for record in filter(None, (record_of(row.record) for row in splits)):
        for line in record.selection.get("scores", ()):
            if (score := line.get("score")) is not None:
                own = best.setdefault(point(line), {})
                own[record.key] = max(score, own.get(record.key, score))
    metric = splits[0].selection["metric"]
    unit = 100 if metric == ACCURACY else 1
    mean = {at: unit * fmean(own.values()) for at, own in best.items()}
    low, high = min(mean.values(), default=0.0), max(mean.values(), default=0.0)
    chosen = Counter(point(choice) for row in splits for choice in row.chosen)

    def entry(at: tuple[Any, Any]) -> dict[str, Any]:
        heat = (mean[at] - low) / (high - low) if at in mean and high > low else float(at in mean)
        return {"score": mean.get(at), "heat": round(heat, 3), "chosen": chosen[at]}

    rows = grids[down] if down else [""]
    return {
        "metric": label(METRIC if metric == ACCURACY else metric) if mean else "",
        "form": ".2f" if metric == ACCURACY else ".3f",
        "across": across,
        "down": down,
        "columns": [_text(value) for value in grids[across]],
        "rows": [_text(value) for value in rows],
        "points": [[entry((row, column)) for column in grids[across]] for row in rows],
        "others": [name for name in grids if name not in largest],
        "n": len({key for own in best.values() for key in own}),
        "n_choices": chosen.total(),
    }


def _hashable(value: Any) -> Any:
    """Return a number of the grid as a float, and any other value as a text."""
    return float(value) if type(value) in (int, float) else str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _known(fits: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = [fit.get(name) for fit in fits]
    return [float(value) for value in values if value is not None and not math.isnan(value)]


def pair_lines(splits: Sequence[Row]) -> list[dict[str, Any]]:
    """For each pair of classes, return a summary of the certificates on all splits.

    The summary contains the largest duality gap and the largest constraint violation, and the mean
    numbers of support vectors, iterations and seconds. If the dual bound of a training is unknown,
    the duality gap is infinite. Trainings without a certificate are not used for the largest
    duality gap and the largest violation.
    """
    every, lines = (fit for row in splits for fit in row.certificates or ()), []
    for pair, fits in grouped((" / ".join(map(str, fit["pair"])), fit) for fit in every).items():
        ended = Counter(str(fit["status"]) for fit in fits)
        known = [fit for fit in fits if str(fit["status"]) != Status.UNCERTIFIED]
        gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in known if "gap" in fit]
        lines.append({
            "pair": pair,
            "n": len(fits),
            "ended": counts_text(ended.items()),
            "sound": set(ended) <= {*FINISHED, Status.UNCERTIFIED},
            "route": routes_text(Counter(fit["route"] for fit in fits if fit.get("route"))),
            "gap": max(gaps, default=None),
            "violation": max(_known(known, "max_violation"), default=math.nan),
            **{
                name: fmean(_known(fits, name) or [math.nan])
                for name in ("n_support", "iterations", "seconds")
            },
        })  # fmt: skip
    return lines
