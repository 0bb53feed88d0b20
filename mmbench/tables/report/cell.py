"""The page of a cell: its splits, the scores of its selection, its confusions and certificates."""

import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import quote

from mmbench.errors import FINISHED, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.export import SPLIT_COLUMNS, split_rows
from mmbench.tables.measures import CONFUSION, measure
from mmbench.tables.records import Experiment
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View, details
from mmbench.tables.rows import Fits, routes_of

#: The most values of an axis of a grid that are shown.
LONGEST = 60


def write_cells(site: Site, view: View) -> None:
    """Write the pages of the cells with records, each with the CSV of its splits."""
    experiment = view.experiment
    if not isinstance(experiment, Experiment):
        return
    confusions = measure(experiment, [CONFUSION]).confusion
    tables: dict[Key, list[Mapping[str, Any]]] = defaultdict(list)
    for row in split_rows([experiment]):
        tables[Key(*(row[name] for name in Key._fields))].append(row)
    keys = list(view.pages)

    def beside(k: int) -> dict[str, str] | None:
        if not 0 <= k < len(keys):
            return None
        return {"name": view.heading(keys[k]), "page": Path(view.pages[keys[k]]).name}

    for k, key in enumerate(keys):
        page = f"{view.folder}/{view.pages[key]}"
        table = page.removesuffix(".html") + ".csv"
        site.csv(table, SPLIT_COLUMNS, tables[key])
        cell, folder = view.cells[key], site.path(page).parent
        splits = [
            {
                **row,
                "parameters": parameters_text(json.loads(row["parameters"])),
                "limits": limits_text(record),
                "href": _href(experiment.store.path_of(record.key), folder),
            }
            for record, row in zip(cell.records, tables[key], strict=True)
        ]
        rows = (row for row in view.sheet.rows if row.key == key and row.n is not None)
        site.page(
            page,
            "cell.html",
            view=view,
            key=key,
            details=details(view, key),
            # Counts of confusions have a table of their own.
            metrics=[row for row in rows if not row.metric.startswith(CONFUSION)],
            splits=splits,
            picture=splits_picture(view, cell),
            surface=surface(cell.done),
            source=_source(view, key),
            confusion=confusions.get(key),
            pairs=pair_lines(cell.done),
            table=Path(table).name,
            before=beside(k - 1),
            after=beside(k + 1),
        )


def parameters_text(parameters: Any) -> str:
    """Return parameters in words; choices of each pair of classes as their number.

    Examples
    --------
    >>> parameters_text({"C": 10, "gamma": 0.0078125}), parameters_text([{"C": 1}, {"C": 10}])
    ('C 10, gamma 0.00781', '2 pairs of classes, 2 choices')
    """
    if isinstance(parameters, list):
        choices = {json.dumps(choice, sort_keys=True) for choice in parameters}
        return f"{len(parameters)} pairs of classes, {len(choices)} choices"
    values = (
        (name, f"{value:.3g}" if isinstance(value, float) else value)
        for name, value in parameters.items()
        if value is not None
    )
    return ", ".join(f"{name} {value}" for name, value in values)


def limits_text(record: Record) -> str:
    """Return which limit stopped a job; empty if none did."""
    reached = record.reached
    if not reached:
        return ""
    memory = f" with {reached['bytes'] / 1e6:.0f} MB" if reached.get("bytes") else ""
    seconds = f" after {reached['seconds']:.0f} s" if reached.get("seconds") else ""
    return f"stopped in {reached.get('stage') or 'the job'}{seconds}{memory}"


def _href(target: Path, folder: Path) -> str:
    """Return the relative address of a file from a folder."""
    return quote(Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix())


def _source(view: View, key: Key) -> dict[str, str] | None:
    """Return the cell whose parameters this one takes over."""
    for column in {record.job.use for record in view.cells[key].records} - {None, key.machine}:
        other = key._replace(machine=str(column))
        return {"name": view.sheet.label(other.machine), "page": view.pages.get(other, "")}
    return None


# -- selection ---------------------------------------------------------------------------------


def surface(records: Sequence[Record]) -> dict[str, Any] | None:
    """Return mean scores (%) over the one or two longest axes of a grid, and the choices.

    Over the other parameters the best score counts. None if nothing was selected.
    """
    records = [record for record in records if record.selection.get("scores")]
    values = _axes(records)
    axes = sorted(values, key=lambda name: -len(values[name]))[:2]
    if not axes or max(len(values[name]) for name in axes) > LONGEST:
        return None
    axes.sort(key=list(values).index)  # C down, gamma across, as in the grid
    across, down = axes[-1], axes[0] if len(axes) == 2 else ""
    scores, choices = _scores(records, axes), _choices(records, axes)
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=1.0)

    def point(at: tuple) -> dict[str, Any]:
        score = scores.get(at)
        heat = 0.0 if score is None else (score - low) / (high - low) if high > low else 1.0
        return {"score": score, "chosen": choices[at], "heat": round(heat, 3)}

    lines = [(value,) for value in values[down]] if down else [()]
    return {
        "across": across,
        "down": down,
        "columns": [_text(value) for value in values[across]],
        "rows": [_text(line[0]) if line else "" for line in lines],
        "points": [[point((*line, value)) for value in values[across]] for line in lines],
        "others": [name for name in values if name not in axes],
        "n": len(records),
        "n_choices": choices.total(),
    }


def _axes(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the sorted values of every parameter that has several."""
    found: dict[str, set] = {}
    for record in records:
        for name, values in record.job.grid:
            found.setdefault(name, set()).update(map(_hashable, values))
    return {
        name: sorted(values, key=lambda value: (isinstance(value, str), value))
        for name, values in found.items()
        if len(values) > 1
    }


def _scores(records: Iterable[Record], axes: Sequence[str]) -> dict[tuple, float]:
    """Return the mean over splits, in per cent, of the best score at each point."""
    found: dict[tuple, list[float]] = {}
    for record in records:
        best: dict[tuple, float] = {}
        for line in record.selection["scores"]:
            at, score = _at(line, axes), line.get("score")
            if score is not None and None not in at:
                best[at] = max(score, best.get(at, score))
        for at, score in best.items():
            found.setdefault(at, []).append(100 * score)
    return {at: fmean(scores) for at, scores in found.items()}


def _choices(records: Iterable[Record], axes: Sequence[str]) -> Counter[tuple]:
    chosen = (record.selection.get("params") or {} for record in records)
    flat = (choice for made in chosen for choice in (made if isinstance(made, list) else [made]))
    return Counter(at for choice in flat if None not in (at := _at(choice, axes)))


def _at(line: Mapping[str, Any], axes: Sequence[str]) -> tuple:
    return tuple(_hashable(line.get(name)) for name in axes)


def _hashable(value: Any) -> Any:
    """Return a value that compares with others of its axis: a number, or its text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None if value is None else str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# -- certificates ------------------------------------------------------------------------------


def pair_lines(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return the certificates of each pair of classes over all splits, in the records' order.

    The largest gap (infinite without a bound) and violation; means of the other numbers.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for fit in record.per_pair:
            found.setdefault(" / ".join(map(str, fit["pair"])), []).append(fit)
    lines = []
    for pair, fits in found.items():
        ended = Counter(str(fit["status"]) for fit in fits)
        known = {
            name: [fit[name] for fit in fits if fit.get(name) is not None]
            for name in ("max_violation", "n_support", "iterations", "seconds")
        }
        gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in fits if "gap" in fit]
        lines.append({
            "pair": pair,
            "n": len(fits),
            "ended": ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in ended.items()),
            "sound": set(ended) <= {*FINISHED, Status.UNCERTIFIED},
            "route": Fits(routes=routes_of(fits)).routes_text(),
            "gap": max(gaps, default=None),
            "violation": max(known.pop("max_violation"), default=None),
            **{name: fmean(values) if values else None for name, values in known.items()},
        })  # fmt: skip
    return lines
