"""``mmbench audit``: the faults of a printed table of classifiers, from the table alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names
from mmbench.errors import UserError, did_you_mean, listed, visible
from mmbench.jobs.planned import grouped
from mmbench.results.published import (
    COUNTS,
    OPTIONAL,
    REQUIRED,
    printed_frame,
    published_tables,
)

if TYPE_CHECKING:
    import pandas as pd

    from mmbench.tables.text import Table

__all__ = ["Audit", "audit"]


@dataclass(frozen=True)
class Audit:
    """The outcome of `audit`, which a notebook shows as HTML.

    Attributes
    ----------
    tables : tuple of str
        Names of the tables.
    findings : DataFrame
        One row per finding, with the columns ``check``, ``sure`` (certain, likely or possible),
        ``cells`` (list of names), ``reason`` and ``chance``. The chance estimates the probability
        that an honest table leads to such a finding; it is NaN if there is no estimate.
    checks : DataFrame
        One row per check: its name, the number of cells or comparisons that could be checked, the
        number of findings, and the columns that the check needs.
    recomputed : DataFrame
        One row per table, metric and machine: number of cells, mean, and numbers of cells in which
        the machine has the best or the worst value of its row. Rows with empty cells do not count.
    """

    tables: tuple[str, ...]
    findings: pd.DataFrame
    checks: pd.DataFrame
    recomputed: pd.DataFrame

    @property
    def exit_code(self) -> int:
        """0 if nothing was found, and 1 otherwise."""
        return int(len(self.findings) > 0)

    def markdown(self) -> str:
        """Return the report as Markdown."""
        from mmbench.tables.render import to_markdown

        return "\n".join(map(to_markdown, self._report()))

    def html(self) -> str:
        """Return the report as an HTML page."""
        title = self._report()[0].title
        head = (
            f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        )
        return head + self._repr_html_()

    def _repr_html_(self) -> str:
        from mmbench.tables.report import tables_as_html

        return tables_as_html(self._report())

    def _report(self) -> list[Table]:
        """Return the report as tables: the findings as notes, then the checks and the counts."""
        from mmbench.results.printed_cells import lines
        from mmbench.tables.text import Grid, Table, numbers, words

        notes = [
            f"{r.check}, {r.sure}{'' if r.chance != r.chance else f' (chance {r.chance:.1g})'}: "
            f"{r.reason}. Cells: {listed(r.cells)}."
            for r in lines(self.findings)
        ]
        n = len(notes)
        title = f"{', '.join(self.tables)}: {n or 'no'} finding{'s' if n != 1 else ''}"
        checks = [[str(cell) for cell in row] for row in self.checks.itertuples(index=False)]
        counts = [
            [r.table, r.metric, r.machine, str(r.cells), f"{r.mean:.2f}", str(r.best), str(r.worst)]
            for r in lines(self.recomputed)
        ]
        named = (*words("Check"), *numbers("Checked", "Findings"), *words("Needs"))
        columns = words("Table", "Metric", "Machine") + numbers("Cells", "Mean", "Best", "Worst")
        return [
            Table(title, [], notes),
            Table("Checks", [Grid(named, checks)]),
            Table("Recomputed means and counts", [Grid(columns, counts)]),
        ]


def audit(
    *tables: str | Path | pd.DataFrame,
    contains: Mapping[str, Iterable[str]] | None = None,
    output: str | Path | None = None,
) -> Audit:
    """Search printed tables of classifiers for faults that the tables alone reveal.

    Parameters
    ----------
    *tables : path, str or DataFrame
        CSV files or data frames, or names of the published tables of mmbench. The columns
        ``dataset``, ``machine`` and ``value`` are required. The columns ``metric`` (default
        ``accuracy_pct``), ``kernel``, ``degree``, ``std``, ``std_is`` (``sd`` or ``se``),
        ``n_train``, ``n_test`` and ``n_splits`` allow more checks. In a data frame, numbers should
        be text with all printed decimals. Several tables are also compared with one another.
    contains : dict, optional
        Further machines, and the machines that each of them contains, as in ``{"mine": ["svm"]}``.
    output : path, optional
        File to which the report is written: HTML if the name ends in ``.html``, else Markdown.

    Returns
    -------
    Audit
        Findings, numbers of checked cells, and recomputed means and counts.

    Raises
    ------
    UserError
        If a table cannot be read, or if the file cannot be written.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = [("iris", "svm", "97.3", 50, 1), ("iris", "rmm", "96.0", 50, 1)]
    >>> frame = pd.DataFrame(rows, columns=["dataset", "machine", "value", "n_test", "n_splits"])
    >>> print(audit(frame).findings.reason[0])
    97.3 would be 48.65 of 50 test rows; the nearest possible values are 96 and 98
    """
    import pandas as pd

    from mmbench.jobs.disk import write_output
    from mmbench.results.plausibility import Finding, recomputed, search
    from mmbench.results.printed_cells import CONTAINS, cells_of

    names = _names(tables)
    frames = [_read(t, name).assign(table=name) for t, name in zip(tables, names, strict=True)]
    frame = pd.concat(frames)
    both = {key: [*CONTAINS.get(key, ()), *(contains or {}).get(key, ())]
            for key in (*CONTAINS, *(contains or {}))}  # fmt: skip
    cells = cells_of(frame.reset_index(drop=True), _facts(frame.dataset.unique()), both)
    findings, checks = search(cells)
    result = Audit(
        names,
        pd.DataFrame(findings, columns=Finding._fields),
        pd.DataFrame(checks, columns=["check", "checked", "findings", "needs"]),
        recomputed(cells),
    )
    if output is not None:
        text = result.html() if str(output).lower().endswith(".html") else result.markdown()
        write_output(Path(output), text.encode(), "the report cannot be written")
    return result


def _names(tables: tuple[Any, ...]) -> tuple[str, ...]:
    """Return a name for each table: the name of its file, made unique by a number."""
    from pandas import DataFrame

    if not tables:
        raise UserError("no table is given; give a CSV file with dataset, machine and value")
    names = ["table" if isinstance(t, DataFrame) else visible(Path(t).stem) for t in tables]
    return tuple(
        f"{name} ({names[:k].count(name) + 1})" if names.count(name) > 1 else name
        for k, name in enumerate(names)
    )


def _read(source: str | Path | pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a table as a frame with all columns; ``value`` and ``std`` are checked text."""
    if isinstance(source, str | Path):
        source, name = _path(source), str(source)
    frame = printed_frame(source, name)
    return frame[[*REQUIRED, *OPTIONAL, *COUNTS]]


def _path(source: str | Path) -> Any:
    """Return the file of a table: a path, or else a published table of mmbench."""
    if not Path(source).exists():
        if str(source) in published_tables():
            return files("mmbench.results").joinpath("published", f"{source}.csv")
        raise UserError(f"no file {str(source)!r}{did_you_mean(source, published_tables())}")
    return source


def _facts(names: Iterable[str]) -> dict[tuple[str, str], float]:
    """Return numbers of rows and classes, and shares of the largest class, from the cards."""
    from mmbench.results.printed_cells import dataset_key

    known, found = card_names(), {}
    for name in {*names} & {*known}:
        expect, key = load_card(name).expect, dataset_key(name)
        found[key, "n_samples"] = float(expect.shape[0])
        found[key, "n_classes"] = float(expect.n_classes)
        if len(expect.classes) == expect.n_classes:
            found[key, "majority_pct"] = 100 * max(expect.classes.values()) / expect.shape[0]
    return found


def pairs_of(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the argument `contains` of `audit` for texts like ``rmm=svm``."""
    pairs = {text: text.partition("=")[::2] for text in texts}
    if wrong := [text for text, pair in pairs.items() if not all(pair)]:
        raise UserError(f"--contains {wrong[0]!r} is not of the form MACHINE=OTHER")
    return grouped(pairs.values())
