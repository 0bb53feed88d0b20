"""Composition of a table from blocks of results, parameters and certificates, legend and notes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from mmbench.tables.blocks import fits_grid, parameters, search_space
from mmbench.tables.frame import ALL_IN_BAND, IN_BAND, OUT_OF_BAND, PUBLISHED_ONLY, differences
from mmbench.tables.model import NOTHING, Grid, Table
from mmbench.tables.protocol import protocol
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Layout", "compose"]

#: Word for the runs of a table cell in the legend, for each rule of the train/test splits.
RUNS = {
    "official": "seeds of the selection",
    "predefined": "splits",
    "kfold": "folds",
    "holdout": "random partitions",
    "leave_one_out": "splits with one row or group left out",
    "time_series": "parts in time",
}
#: Words for runs that have training rows in common.
SHARING = (RUNS["kfold"], RUNS["holdout"])
BINOMIAL = "sqrt(e (1 - e/N)), the binomial deviation of e errors on N test rows"


def compose(
    sheet: Sheet,
    title: str,
    grids: Sequence[Grid],
    *notes: str,
    metric: str = "",
    sd: bool = False,
    runs: str = "",
    choices: bool = True,
) -> Table:
    """Return a table with the given blocks, and with blocks of parameters and certificates below.

    Blocks without rows are left out.

    Parameters
    ----------
    sheet : Sheet
        The long table of the experiment.
    title : str
        Title of the table.
    grids : sequence of Grid
        Blocks of results, from top to bottom.
    *notes : str
        Notes of the layout on the table.
    metric : str
        Metric whose marks and uncertainties the legend explains. If empty, the table has no legend.
    sd : bool
        Whether means are shown with standard deviations instead of standard errors.
    runs : str
        Word for the runs of a table cell in the legend. The default is the word in `RUNS` for the
        rule of the train/test splits.
    choices : bool
        Whether the table has a block of selected parameters.
    """
    explained = legend(sheet, metric, sd, runs) if metric else []
    texts = [*explained, *notes, *protocol(sheet.jobs, sheet.label), *sheet.remarks]
    below = [search_space(sheet), *([parameters(sheet)] if choices else []), fits_grid(sheet)]
    grids = [*grids, *below]
    return Table(title, [grid for grid in grids if grid.rows], texts, sheet.footnotes)


def legend(sheet: Sheet, metric: str, sd: bool, runs: str) -> list[str]:
    """Return texts that explain the marks and uncertainties in the results of a metric.

    If `sd` is true, means are shown with standard deviations instead of standard errors. `runs` is
    the word for runs in these texts, such as "folds". If `runs` is empty, the word is the entry of
    `RUNS` for the rule of the train/test splits.
    """
    frame = sheet.frame[sheet.frame.metric == metric]
    runs = runs or RUNS.get(sheet.rule, "splits")
    lines = _marks(sheet, frame, runs)
    if counts := sorted(set(frame.n[frame.sd.notna()])):
        spread = "After ±: standard deviation" if sd else "In parentheses: standard error"
        lines.append(f"{spread} over {' or '.join(map(str, counts))} {runs}.")
        if not sd and runs in SHARING:
            lines[-1] += f" It underestimates the uncertainty, as {runs} share training rows."
    if PUBLISHED_ONLY in set(frame.status):
        lines.append(f"{NOTHING}: not run; only the published value is shown.")
    return lines


def _marks(sheet: Sheet, frame: pd.DataFrame, runs: str) -> list[str]:
    """Return sentences that explain the comparison marks, count the table cells with each mark, and
    state the standard error of measured minus published value.
    """
    compared = frame[frame.in_band.notna()]
    if compared.empty:
        return []
    same, marks = sheet.rule == "official", list(compared.mark)
    errors = {_standard_error(n, same, runs): None for n in compared.n.fillna(1)}
    counts = ", ".join(f"{marks.count(m)} {m}" for m in (IN_BAND, ALL_IN_BAND, OUT_OF_BAND))
    published, same_sign, beyond_noise = differences(frame)
    return [
        f"{IN_BAND} The published value is within 2 standard errors of the difference, and the "
        "published value of another machine on the data set is not.",
        f"{ALL_IN_BAND} The published values of all machines on the data set are within 2 standard "
        "errors: the comparison does not distinguish the machines.",
        f"{OUT_OF_BAND} The published value is outside 2 standard errors. No mark: not compared.",
        f"Compared cells: {len(compared)}, of these {counts}.",
        f"Published differences between machines above noise: {published}, of these {same_sign} "
        f"with the same sign here, {beyond_noise} also above noise here. Noise: 2 standard errors "
        "of the difference of two means measured here.",
        f"Standard error of the difference: {'; '.join(errors)}.",
    ]


def _standard_error(n: int, same_test_rows: bool, runs: str) -> str:
    """Return as text the formula for the standard error of measured minus published value."""
    if n == 1:
        both = "" if same_test_rows else ", for the measured and the published value"
        return f"of a single run {BINOMIAL}{both}"
    text = f"sd sqrt(1/n + 1/m) with our standard deviation sd, n {runs} here, m in the paper"
    return f"of a mean over {runs} {text}, combined with {BINOMIAL}" if same_test_rows else text


#: Pattern for the name of a machine in a note. A note is left out if the table has none of the
#: machines in the note.
MACHINE = r"\{(\w+)\}"


@dataclass(frozen=True)
class Layout:
    """A table layout, which is an entry of ``layouts/layouts.yaml`` or the module of a plug-in.

    Attributes
    ----------
    about : str
        Description of the layout in ``mmbench list layouts``, one line.
    blocks : str
        Function that returns the blocks of the table for a `Sheet`, as ``module:function``.
    title : str
        Title of the table.
    machines : sequence of str
        Machines in the order of the paper.
    others : bool
        Whether the table shows other machines after the machines of the paper.
    notes : sequence of str
        Notes on the table. In a note, ``{name}`` stands for the label of the machine `name`.
    metric, sd, runs, choices : str, bool, str, bool
        Arguments of the function `compose`.
    published : str, optional
        Name of the published table with which results are compared.
    sized : bool
        Whether the layout can show several training sizes.
    any_metric : bool
        Whether the layout can show other metrics than the accuracy.
    layout : str
        Function that returns the whole table in place of `blocks`, as ``module:function``.
    """

    about: str
    blocks: str = ""
    title: str = ""
    machines: Sequence[str] = ()
    others: bool = True
    notes: Sequence[str] = ()
    metric: str = ""
    sd: bool = False
    runs: str = ""
    choices: bool = True
    published: str | None = None
    sized: bool = False
    any_metric: bool = False
    layout: str = ""

    def draw(self, sheet: Sheet) -> Table:
        """Return the table of a sheet in this layout."""
        if self.layout:
            return resolve_name(self.layout)(sheet)
        first = [machine for machine in self.machines if machine in sheet.machines]
        rest = [machine for machine in sheet.machines if machine not in first]
        sheet.machines = first + (rest if self.others else [])
        grids = list(resolve_name(self.blocks)(sheet))
        notes = (
            re.sub(MACHINE, lambda found: sheet.label(found[1]), note)
            for note in self.notes
            if not (named := re.findall(MACHINE, note)) or set(named) & set(sheet.machines)
        )
        options = {name: getattr(self, name) for name in ("metric", "sd", "runs", "choices")}
        return compose(sheet, self.title, grids, *notes, **options)
