"""Results of the reference runs: a table for a machine's page, and a page for each experiment.

All numbers are read from ``results/reference/*/table.csv`` when the pages are built.
"""

from __future__ import annotations

import csv
import html
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.commands.listing import config_rows
from mmbench.config.read import load_config
from mmbench.machines import alias_of
from mmbench.resources import CONFIGS
from mmbench.results.published import published_rows
from mmbench.tables.figures import title_of
from mmbench.tables.layouts import find_layout

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
#: Metric of tables that print error rates in per cent, that is, 100 minus the accuracy.
ERROR_RATE = "error_pct"
UNITS = {"accuracy_pct": "%", ERROR_RATE: "% errors", "errors_count": "errors"}


@cache
def prints_error_rates(experiment: str) -> bool:
    """Return whether the tables of an experiment and of its paper contain error rates."""
    path = CONFIGS / f"{experiment}.yaml"
    paper = find_layout(load_config(path).layout).published if path.is_file() else ""
    return bool(paper) and any(row["metric"] == ERROR_RATE for row in published_rows(paper))


def as_printed(metric: str, value: float, error_rates: bool) -> tuple[str, float]:
    """Return a metric and its value as the table prints them."""
    if error_rates and metric == "accuracy_pct":
        return ERROR_RATE, 100 - value
    return metric, value


@dataclass(frozen=True)
class Cell:
    """One cell of a reference table: a machine on a data set with a kernel."""

    place: tuple[str, ...]
    column: str
    metric: str
    measured: float
    published: float | None
    in_band: bool | None
    status: str

    @property
    def away(self) -> float:
        """Absolute difference between the measured and the published value."""
        return 0.0 if self.published is None else abs(self.measured - self.published)

    def __str__(self) -> str:
        unit = UNITS[self.metric]
        where = ", ".join(part for part in self.place if part)
        return f"{where}: {self.measured:.4g} here, {self.published:g} {unit} published"


def cells(folder: Path) -> list[Cell]:
    """Return the printed cells of an experiment.

    The metric of a cell is the metric in which the paper states results of the same data set and
    kernel, or else the accuracy.
    """
    error_rates = prints_error_rates(folder.name)
    with (folder / "table.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] in UNITS and row["measured"]]
    found, shown, first = [], {}, {}
    for row in rows:
        degree = f"degree {row['degree']}" if row["degree"] else ""
        size = f"{row['size']} rows" if row.get("size") else ""
        metric, measured = as_printed(row["metric"], float(row["measured"]), error_rates)
        published = float(row["published"]) if row["published"] else None
        if published is not None:
            _, published = as_printed(row["metric"], published, error_rates)
        cell = Cell(
            (row["dataset"], row["kernel"], degree, size),
            row["machine"],
            metric,
            measured,
            published,
            {"True": True, "False": False}.get(row["in_band"]),
            row["status"],
        )
        found.append(cell)
        first.setdefault(cell.place, metric)
        if published is not None:
            shown.setdefault(cell.place, metric)
    # all machines of a place are compared by one metric, also machines without a published value
    metrics = {**first, **shown}
    return [cell for cell in found if cell.metric == metrics[cell.place]]


def lines_of(machines: set[str]) -> Iterator[list[str]]:
    """Yield one table row per experiment and column that belongs to one of the machines.

    A variant of a machine is shown only if a paper has results of the variant. Rows without any
    comparison are left out.
    """
    for folder in sorted(REFERENCE.iterdir()):
        if not (folder / "table.csv").is_file():
            continue
        experiment = cells(folder)
        svm = {cell.place: cell for cell in experiment if cell.column == "svm"}
        columns = dict.fromkeys(cell.column for cell in experiment)
        for column in columns:
            own = [cell for cell in experiment if cell.column == column]
            shown = column in machines or any(cell.in_band is not None for cell in own)
            if shown and alias_of(column).machine in machines:
                line = _line(column, own, svm)
                if set(line[2:]) != {"–"}:
                    yield [f"[{folder.name}](/tables/{folder.name})", *line]


def _line(column: str, own: list[Cell], svm: dict[tuple[str, ...], Cell]) -> list[str]:
    compared = [cell for cell in own if cell.in_band is not None]
    near = sum(bool(cell.in_band) for cell in compared)
    farthest = max((c for c in compared if not c.in_band), key=lambda c: c.away, default=None)
    pairs = [(cell, svm[cell.place]) for cell in own if cell.place in svm and column != "svm"]
    wins = sum(_better(cell.measured, other.measured, cell.metric) for cell, other in pairs)
    return [
        alias_of(column).label or column,
        str(len(own)),
        f"{near} of {len(compared)}" if compared else "–",
        str(farthest) if farthest else "–",
        f"{wins} of {len(pairs)}" if pairs else "–",
        _published_wins(pairs),
    ]


def _published_wins(pairs: list[tuple[Cell, Cell]]) -> str:
    both = [
        (a.published, b.published, a.metric)
        for a, b in pairs
        if a.published is not None and b.published is not None
    ]
    wins = sum(_better(ours, theirs, metric) for ours, theirs, metric in both)
    return f"{wins} of {len(both)}" if both else "–"


def _better(ours: float, theirs: float, metric: str) -> bool:
    return ours > theirs if metric == "accuracy_pct" else ours < theirs


HEAD = (
    "experiment",
    "column",
    "cells",
    "in the band",
    "largest difference outside the band",
    "better than the SVM here",
    "better in the paper",
)


class Measured(SphinxDirective):
    """``{measured} MACHINE ...``: the results of machines in the reference runs."""

    required_arguments = 1
    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = list(lines_of(set(self.arguments)))
        if not rows:
            raise self.error(f"no reference run has a column of {' or '.join(self.arguments)}")
        text = [HEAD, ["---"] * len(HEAD), *rows]
        lines = [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in text]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, source="measured"), self.content_offset, node)
        return node.children


#: Page that explains the results of an experiment, by the name of the experiment.
EXPLAINED = {
    "geometry": "geometry",
    "solvers": "solvers",
    "verdict": "verdict",
    "verdict_large": "verdict",
}
#: A table is folded if it has more than ROWS rows, and a note if it has at least LETTERS letters.
ROWS, LETTERS = 10, 400
#: Beginnings of the captions of tables that are folded at any size.
FOLDED = ("Parameter grids", "Selected parameters", "Certificates")
TABLE = re.compile(r"^(?:\|.*\n)+", re.M)
CAPTIONED = re.compile(r"^\*\*(.+)\*\*\n\n((?:\|.*\n)+)", re.M)


def folded(section: str) -> str:
    """After the first table of a section, fold long tables, `FOLDED` tables and long notes."""
    first = TABLE.search(section)
    end = first.end() if first else 0
    below = CAPTIONED.sub(_fold_table, section[end:])
    return section[:end] + re.sub(rf"^- (.{{{LETTERS},}})$", _fold_note, below, flags=re.M)


def _fold_table(table: re.Match[str]) -> str:
    rows = table[2].count("\n") - 2
    if rows <= ROWS and not table[1].startswith(FOLDED):
        return table[0]
    return fold(f"{table[1]} ({rows} rows)", table[2]) + "\n"


def _fold_note(note: re.Match[str]) -> str:
    return "- " + fold(f"{note[1][:90].rpartition(' ')[0]} …", note[1]).replace("\n\n", "\n\n  ")


def fold(summary: str, text: str) -> str:
    """Return a text that is hidden until the reader clicks on its summary."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{text}\n\n</details>"


def write_pages(app: Sphinx) -> None:
    """Write a page for each reference table, with its figures, into ``docs/tables``."""
    target = Path(app.srcdir) / "tables"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    names = sorted(path.parent.name for path in REFERENCE.glob("*/table.md"))
    about = dict(config_rows())
    for name in names:
        text = (REFERENCE / name / "table.md").read_text(encoding="utf-8")
        title, _, body = re.sub(r"^## [\w-]+: ", "", text).partition("\n")
        pictures = []
        for figure in sorted((REFERENCE / name).glob("*.[ps][nv]g")):
            shutil.copy(figure, target / f"{name}_{figure.name}")
            shown = title_of(name if figure.stem == "figure" else figure.stem).rstrip(".")
            pictures.append(f"![{shown}]({name}_{figure.name})\n\n*{shown}.*\n")
        head = f"# {about[name]}\n\nThe experiment `{name}`: {title}. "
        head += f"Run again with `mmbench run {name}`."
        head += f" Explained in [](/{EXPLAINED[name]}.md).\n\n" if name in EXPLAINED else "\n\n"
        sections = "\n## More of ".join(map(folded, body.split("\n## ")))
        page = head + "\n".join(pictures) + sections
        (target / f"{name}.md").write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the pages."""
    app.add_directive("measured", Measured)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
