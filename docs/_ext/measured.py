"""Results of the reference runs: a table for a machine's page, and a page for each experiment.

All numbers are rows of the frame ``cells`` of ``results/reference/*`` when the pages are built.
"""

from __future__ import annotations

import html
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from textwrap import indent, shorten

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.commands.listing import config_rows
from mmbench.machines import alias_of
from mmbench.results.cells import METRIC, Row, rows_of
from mmbench.results.folder import FACTS, read_reference
from mmbench.results.frames import Results
from mmbench.tables.build import laid_out, tables_of
from mmbench.tables.figures import title_of
from mmbench.tables.figures.published_values import DIFFERENCES, ERROR_RATE, prints_error_rates
from mmbench.tables.render import markdown_grid, to_markdown
from mmbench.tables.text import CERTIFICATES, SETTINGS, Grid, Table, join, plain

REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
#: Names of the reference runs.
NAMES = sorted(path.parent.name for path in REFERENCE.glob(f"*/{FACTS}"))
UNITS = {METRIC: "%", ERROR_RATE: "% errors", "errors_count": "errors"}


@cache
def reference(name: str) -> Results:
    """Return the results of a reference run in the layout of its experiment."""
    return laid_out(read_reference(REFERENCE / name))


def printed_rows(results: Results) -> list[Row]:
    """Return the rows of the frame ``cells`` with the metric that the table of a place prints.

    This metric is the metric in which the paper states results of the place, or else the accuracy.
    """
    cells = results.cells[results.cells.metric.isin([*DIFFERENCES])]
    rows = [row for row in rows_of(cells) if row.measured is not None]
    # all machines of a place are compared by one metric, also machines without a published value
    stated = [row for row in rows if row.published is not None]
    metrics = {place_of(row): row.metric for row in reversed([*stated, *rows])}
    return [row for row in rows if row.metric == metrics[place_of(row)]]


def place_of(row: Row) -> tuple:
    """Return the place of a row."""
    return row.key._replace(machine="")


def lines_of(machines: set[str]) -> Iterator[list[str]]:
    """Yield one table row per experiment and column that belongs to one of the machines.

    A variant of a machine is shown only if a paper has results of the variant. Rows without any
    comparison are left out.
    """
    for name in NAMES:
        results = reference(name)
        rows = printed_rows(results)
        svm = {place_of(row): row for row in rows if row.machine == "svm"}
        for column in dict.fromkeys(row.machine for row in rows):
            own = [row for row in rows if row.machine == column]
            shown = column in machines or any(row.in_band is not None for row in own)
            if shown and alias_of(column).machine in machines:
                compared = _compared(results, own, {} if column == "svm" else svm)
                if {*compared} != {"–"}:
                    label = alias_of(column).label or column
                    yield [f"[{name}](/tables/{name})", label, str(len(own)), *compared]


def _compared(results: Results, own: list[Row], svm: dict[tuple, Row]) -> list[str]:
    """Return how the rows of a column compare with published values and with the SVM."""
    near = [row.in_band for row in own if row.in_band is not None]
    outside = [row for row in own if row.in_band is False]
    farthest = max(outside, key=lambda row: abs(row.measured - row.published), default=None)
    pairs = [(row, svm[place_of(row)]) for row in own if place_of(row) in svm]
    both = [(a, b) for a, b in pairs if None not in (a.published, b.published)]
    return [
        _share(near),
        text_of(farthest, prints_error_rates(results.layout)) if farthest else "–",
        _share([better(a.measured, b.measured, a.metric) for a, b in pairs]),
        _share([better(a.published, b.published, a.metric) for a, b in both]),
    ]


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags)} of {len(flags)}" if flags else "–"


def better(ours: float, theirs: float, metric: str) -> bool:
    """Return whether the first value of a metric is better than the second."""
    return ours > theirs if metric == METRIC else ours < theirs


def text_of(row: Row, error_rates: bool) -> str:
    """Return the place, the measured and the published value of a row as its table prints them."""
    metric, values = row.metric, (row.measured, row.published)
    if error_rates and metric == METRIC:
        metric, values = ERROR_RATE, (100 - row.measured, 100 - row.published)
    degree = f"degree {row.degree}" if row.degree else ""
    size = f"{row.size} rows" if row.size else ""
    place = ", ".join(filter(None, (row.dataset, row.kernel, degree, size)))
    return f"{place}: {values[0]:.4g} here, {values[1]:g} {UNITS[metric]} published"


HEAD = (
    "experiment",
    "column",
    "cells",
    "in the band",
    "largest difference outside the band",
    "better than the SVM here",
    "better in the paper",
)


def parsed(directive: SphinxDirective, lines: Sequence[str]) -> list[nodes.Node]:
    """Return lines of Markdown as nodes."""
    node = nodes.container()
    source = StringList(lines, source=directive.name)
    directive.state.nested_parse(source, directive.content_offset, node)
    return node.children


def parsed_table(
    directive: SphinxDirective, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> list[nodes.Node]:
    """Return a table with cells in Markdown as nodes."""
    text = [head, ["---"] * len(head), *rows]
    return parsed(
        directive, [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in text]
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
        return parsed_table(self, HEAD, rows)


#: Page that explains the results of an experiment, by the name of the experiment.
EXPLAINED = {
    "geometry": "geometry",
    "solvers": "solvers",
    "verdict": "verdict",
    "verdict_large": "verdict",
}
#: A block is folded if it has more than ROWS rows, and a note if it has at least LETTERS letters.
ROWS, LETTERS = 10, 400


def folded(table: Table, part: Grid | str, text: str) -> str:
    """Return the Markdown text of a block or a note, folded if the part is long.

    Blocks of settings and certificates are folded at any size. The first block is never folded.
    """
    if isinstance(part, str):
        if len(part) < LETTERS:
            return text
        return indent(fold(shorten(part, 90, placeholder=" …"), text), "  ").lstrip()
    small = len(part.rows) <= ROWS and part.kind not in (SETTINGS, CERTIFICATES)
    if part is table.grids[0] or small:
        return text
    return fold(join(plain(part.caption), f"({len(part.rows)} rows)"), markdown_grid(part))


def fold(summary: str, text: str) -> str:
    """Return a text that is hidden until the reader clicks on its summary."""
    return f"<details><summary>{html.escape(summary)}</summary>\n\n{text}\n\n</details>"


def write_pages(app: Sphinx) -> None:
    """Write a page for each reference table, with its figures, into ``docs/tables``."""
    target = Path(app.srcdir) / "tables"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    about = dict(config_rows())
    for name in NAMES:
        head = f"# {about[name]}\n\nThe experiment `{name}`. Run again with `mmbench run {name}`."
        head += f" Explained in [](/{EXPLAINED[name]}.md)." if name in EXPLAINED else ""
        parts = [f"{head}\n"]
        for figure in sorted((REFERENCE / name).glob("*.[ps][nv]g")):
            shutil.copy(figure, target / f"{name}_{figure.name}")
            shown = title_of(name if figure.stem == "figure" else figure.stem).rstrip(".")
            parts.append(f"![{shown}]({name}_{figure.name})\n\n*{shown}.*\n")
        for table in tables_of(reference(name)):
            parts.append(to_markdown(replace(table, experiment=""), partial(folded, table)))
        (target / f"{name}.md").write_text("\n".join(parts), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the pages."""
    app.add_directive("measured", Measured)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
