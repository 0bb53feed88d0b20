"""The page of a cell: its splits, the scores of its selection, its confusions and certificates."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.cells import Cell
from mmbench.tables.export import SPLIT_COLUMNS, split_rows
from mmbench.tables.metrics import CONFUSION, measure
from mmbench.tables.records import Experiment
from mmbench.tables.report import words
from mmbench.tables.report.pairs import pair_lines
from mmbench.tables.report.pictures import splits_picture
from mmbench.tables.report.site import Site
from mmbench.tables.report.surface import surface
from mmbench.tables.report.view import View
from mmbench.tables.rows import Row


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
