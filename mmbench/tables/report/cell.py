"""The page of a cell: its splits, the scores of its selection, its confusions and certificates."""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import quote

from mmbench.errors import FINISHED, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.export import SPLIT_COLUMNS, split_rows
from mmbench.tables.measures import CONFUSION, measure
from mmbench.tables.records import Cell, Experiment
from mmbench.tables.report import view as words
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View
from mmbench.tables.rows import Row

#: Values of an axis that are still shown.
LONGEST = 60


@dataclass(frozen=True)
class Point:
    """A point of the grid: its mean score (%), how often it was chosen, its place in 0..1."""

    score: float | None
    chosen: int
    heat: float


@dataclass(frozen=True)
class Surface:
    """Mean scores over one or two parameters."""

    #: Names of the parameters; `down` is empty where there is one alone.
    across: str
    down: str
    #: Their values.
    columns: list[str]
    rows: list[str]
    #: One list a row.
    points: list[list[Point]]
    #: Parameters over which the best score is shown.
    others: list[str]
    #: Splits.
    n: int
    #: Splits, or pairs of classes where each has its own choice.
    n_choices: int


def surface(records: Sequence[Record]) -> Surface | None:
    """Return the scores of a cell's selections; None where nothing was selected."""
    records = [record for record in records if record.selection.get("scores")]
    values = _axes(records)
    axes = sorted(values, key=lambda name: -len(values[name]))[:2]
    if not axes or max(len(values[name]) for name in axes) > LONGEST:
        return None
    axes.sort(key=list(values).index)  # C down, gamma across, as in the grid
    across, down = axes[-1], axes[0] if len(axes) == 2 else ""
    scores, choices = _scores(records, axes), _choices(records, axes)
    known = [score for score in scores.values() if score is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)

    def point(at: tuple) -> Point:
        score = scores.get(at)
        heat = 0.0 if score is None else (score - low) / (high - low) if high > low else 1.0
        return Point(score, choices[at], round(heat, 3))

    lines = [(v,) for v in values[down]] if down else [()]
    return Surface(
        across,
        down,
        [_text(v) for v in values[across]],
        [_text(line[0]) if line else "" for line in lines],
        [[point((*line, value)) for value in values[across]] for line in lines],
        [name for name in values if name not in axes],
        len(records),
        choices.total(),
    )


def _axes(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the values of every parameter of which the grid has several, sorted."""
    found: dict[str, set] = {}
    for record in records:
        for name, values in record.job.grid:
            found.setdefault(name, set()).update(map(_hashable, values))
    return {
        name: sorted(values, key=lambda value: (isinstance(value, str), value))
        for name, values in found.items()
        if len(values) > 1
    }


def _scores(records: Iterable[Record], axes: Sequence[str]) -> dict[tuple, float | None]:
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
    flat = (one for many in chosen for one in (many if isinstance(many, list) else [many]))
    return Counter(at for one in flat if None not in (at := _at(one, axes)))


def _at(line: Mapping[str, Any], axes: Sequence[str]) -> tuple:
    return tuple(_hashable(line.get(name)) for name in axes)


def _hashable(value: Any) -> Any:
    """Return a value that compares with others of its axis: a number, or its text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None if value is None else str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class PairLine:
    """What is known of the fits of one pair of classes."""

    pair: str
    #: Fits.
    n: int
    #: How many ended how.
    ended: str
    #: Whether all of them are optimal.
    sound: bool
    #: The largest; an infinite gap where there is no bound.
    gap: float | None
    violation: float | None
    #: Means.
    n_support: float | None
    seconds: float | None
    iterations: float | None


def pair_lines(records: Sequence[Record]) -> list[PairLine]:
    """Return a line a pair of classes, in the order of the records."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        for fit in record.per_pair:
            found.setdefault(" / ".join(map(str, fit["pair"])), []).append(fit)
    return [_line(pair, fits) for pair, fits in found.items()]


def _line(pair: str, fits: Sequence[Mapping[str, Any]]) -> PairLine:
    ended = Counter(str(fit["status"]) for fit in fits)
    gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in fits if "gap" in fit]
    return PairLine(
        pair,
        len(fits),
        ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in ended.items()),
        set(ended) <= {*FINISHED, Status.UNCERTIFIED},
        max(gaps, default=None),
        max(_values(fits, "max_violation"), default=None),
        *(_mean(fits, name) for name in ("n_support", "seconds", "iterations")),
    )


def _values(fits: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [fit[name] for fit in fits if fit.get(name) is not None]


def _mean(fits: Sequence[Mapping[str, Any]], name: str) -> float | None:
    values = _values(fits, name)
    return fmean(values) if values else None


def write_cells(site: Site, view: View) -> None:
    """Write the pages of the cells with records, each with the CSV of its splits."""
    experiment = view.experiment
    if not isinstance(experiment, Experiment):
        return
    confusions = measure(experiment, [CONFUSION]).confusion
    tables = _by_cell(split_rows([experiment]))
    keys = list(view.pages)
    for k, key in enumerate(keys):
        page = f"{view.folder}/{view.pages[key]}"
        table = page.removesuffix(".html") + ".csv"
        site.csv(table, SPLIT_COLUMNS, tables[key])
        cell = view.cells[key]
        site.page(
            page,
            "cell.html",
            view=view,
            key=key,
            details=words.details(view, key),
            metrics=_metrics(view, key),
            splits=split_lines(experiment, cell, tables[key], site.path(page).parent),
            picture=splits_picture(view, cell),
            surface=surface(cell.done),
            source=_source(view, key),
            confusion=confusions.get(key),
            pairs=pair_lines(cell.done),
            table=Path(table).name,
            before=_beside(view, keys, k - 1),
            after=_beside(view, keys, k + 1),
        )


def _metrics(view: View, key: Key) -> list[Row]:
    """Return the rows of a cell, but for counts of confusions, which have a table of their own."""
    rows = (row for row in view.sheet.rows if row.key == key and row.n is not None)
    return [row for row in rows if not row.metric.startswith(CONFUSION)]


def _by_cell(rows: Iterable[Mapping[str, Any]]) -> dict[Key, list[Mapping[str, Any]]]:
    found: dict[Key, list[Mapping[str, Any]]] = {}
    for row in rows:
        key = Key(*(row[name] for name in Key._fields))
        found.setdefault(key, []).append(row)
    return found


def split_lines(
    experiment: Experiment, cell: Cell, table: Sequence[Mapping[str, Any]], folder: Path
) -> list[dict[str, Any]]:
    """Return a line a split, each with the way from the page's folder to its record."""
    return [
        {
            **row,
            "parameters": parameters_text(json.loads(row["parameters"])),
            "limits": limits_text(record),
            "href": _href(experiment.store.path_of(record.key), folder),
        }
        for record, row in zip(cell.records, table, strict=True)
    ]


def parameters_text(parameters: Any) -> str:
    """Return parameters in words; those of pairs of classes are told by how many choices differ.

    Examples
    --------
    >>> parameters_text({"C": 10, "gamma": 0.0078125}), parameters_text([{"C": 1}, {"C": 10}])
    ('C 10, gamma 0.00781', '2 pairs of classes, 2 choices')
    """
    if isinstance(parameters, list):
        choices = {json.dumps(one, sort_keys=True) for one in parameters}
        return f"{len(parameters)} pairs of classes, {len(choices)} choices"
    values = (
        (name, f"{value:.3g}" if isinstance(value, float) else value)
        for name, value in parameters.items()
        if value is not None
    )
    return ", ".join(f"{name} {value}" for name, value in values)


def limits_text(record: Record) -> str:
    """Return what stopped a job; empty where nothing did."""
    reached = record.reached
    if not reached:
        return ""
    memory = f" with {reached['bytes'] / 1e6:.0f} MB" if reached.get("bytes") else ""
    seconds = f" after {reached['seconds']:.0f} s" if reached.get("seconds") else ""
    return f"stopped in {reached.get('stage') or 'the job'}{seconds}{memory}"


def _href(target: Path, folder: Path) -> str:
    """Return the way from a folder to a file as a relative address."""
    return quote(Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix())


def _source(view: View, key: Key) -> dict[str, str] | None:
    """Return the cell whose parameters this one takes over."""
    uses = {record.job.use for record in view.cells[key].records} - {None, key.machine}
    for column in uses:
        other = key._replace(machine=str(column))
        return {"name": view.sheet.label(other.machine), "page": view.pages.get(other, "")}
    return None


def _beside(view: View, keys: Sequence[Key], k: int) -> dict[str, str] | None:
    if not 0 <= k < len(keys):
        return None
    return {"name": view.heading(keys[k]), "page": Path(view.pages[keys[k]]).name}
