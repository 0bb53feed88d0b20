"""Composition of a table: blocks of results, parameters and certificates, followed by the legend
and the notes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from mmbench.jobs.planned import grouped
from mmbench.results.cells import (
    ALL_IN_BAND,
    IN_BAND,
    OUT_OF_BAND,
    PUBLISHED_ONLY,
    differences,
)
from mmbench.results.frames import Results
from mmbench.results.published import is_result
from mmbench.tables.blocks import emphasized, fits_grid, parameters, search_space
from mmbench.tables.names import about, printed
from mmbench.tables.protocol import protocol, remarks
from mmbench.tables.text import NOTHING, Grid, Table, cited, kernel_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Layout", "compose"]

#: For each rule of the train/test splits, name of the runs over which a mean is computed.
RUNS = {
    "official": "seeds of the selection",
    "predefined": "splits",
    "kfold": "folds",
    "holdout": "random partitions",
    "leave_one_out": "splits with one row or group left out",
    "time_series": "parts in time",
}
#: Names in `RUNS` of the runs that have training rows in common.
SHARING = (RUNS["kfold"], RUNS["holdout"], RUNS["predefined"])
BINOMIAL = "sqrt(e (1 - e/N)), the binomial standard deviation of e errors on N test rows"


def compose(
    results: Results,
    title: str,
    grids: Sequence[Grid],
    *notes: str,
    metric: str | Sequence[str] = "",
    sd: bool = False,
    runs: str = "",
    choices: bool = True,
) -> Table:
    """Return a table with the blocks `grids`, followed by blocks of parameters and certificates.

    A block without rows is left out.

    Parameters
    ----------
    results : Results
        The frames of the experiment.
    title : str
        Title of the table.
    grids : sequence of Grid
        Blocks of results, from top to bottom.
    *notes : str
        Sentences below the table.
    metric : str or sequence of str
        Metrics whose marks and standard errors the legend explains. If `metric` is empty, the table
        has no legend. If it is a sequence, the table shows these metrics alone, and the legend
        names other published ones.
    sd : bool
        Whether the uncertainty of a mean is shown as standard deviation instead of standard error.
    runs : str
        Word of the legend for the runs over which a mean is computed, such as "folds". The default
        word depends on the rule of the train/test splits; see `RUNS`.
    choices : bool
        Whether the table has a block of selected parameters.
    """
    explained = legend(results, metric, sd, runs) if metric else []
    grids, signs = emphasized(results, grids)
    texts = [*signs, *explained, *notes, *protocol(results), *remarks(results)]
    below = [search_space(results), *([parameters(results)] if choices else []), fits_grid(results)]
    shown, found = cited(g for g in (*grids, *below) if g.rows)
    footnotes = [
        f"{about(results, keys)}: {text}" if keys else text for text, keys in found.items()
    ]
    return Table(title, shown, texts, footnotes)


def legend(results: Results, metric: str | Sequence[str], sd: bool, runs: str) -> list[str]:
    """Return sentences that explain the comparison marks and the uncertainties of metrics in a
    table.

    If `sd` is true, the table shows standard deviations instead of standard errors. For `metric`
    and `runs`, see `compose`.
    """
    names = [metric] if isinstance(metric, str) else metric
    frame = results.cells[results.cells.metric.isin(names)]
    runs = runs or RUNS.get(results.rule, "splits")
    lines = _marks(results, frame, runs)
    if counts := sorted(set(frame.n[frame.sd.notna()].dropna())):
        spread = "After ±: standard deviation" if sd else "In parentheses: standard error"
        lines.append(f"{spread} over {' or '.join(map(str, counts))} {runs}.")
        if not sd and runs in SHARING:
            lines[-1] += f" It underestimates the uncertainty, as {runs} share training rows."
    if PUBLISHED_ONLY in set(frame.status):
        lines.append(f"{NOTHING}: not run; only the published value is shown.")
    if lost := _not_shown(results, () if isinstance(metric, str) else metric):
        lines.append(f"Published, but not in this table: {', '.join(lost)}.")
    return lines


def _not_shown(results: Results, metrics: Sequence[str]) -> list[str]:
    """Return the names of data sets and kernels in the user's published table that are not run, and
    the options that show its metrics other than `metrics`.
    """
    run = {(printed(results, key.dataset), key.kernel, key.degree) for key in results.keys}
    rows = [row for row in results.published if results.plan.published and is_result(row)]
    places = dict.fromkeys((r["printed_dataset"], r["kernel"], r["degree"]) for r in rows)
    lost = grouped((name, kernel_text(*kernel)) for name, *kernel in places.keys() - run)
    known = {name for name, *_ in run}
    others = {row["metric"] for row in rows} - {*metrics} if metrics else ()
    return [
        *(
            f"{name} ({', '.join(filter(None, sorted(kernels)))})" if name in known else name
            for name, kernels in sorted(lost.items())
        ),
        *(f"{name} (--metric {name})" for name in sorted(n.removesuffix("_pct") for n in others)),
    ]


def _marks(results: Results, frame: pd.DataFrame, runs: str) -> list[str]:
    """Return sentences that explain the comparison marks and count the table cells with each mark.
    The last sentence states the standard error of the difference between the measured and the
    published value.
    """
    compared = frame[frame.in_band.notna()]
    if compared.empty:
        return []
    same, marks = results.rule == "official", list(compared.mark)
    m = "" if same else _published_splits(results, compared)
    errors = {_standard_error(n, same, runs, m): None for n in compared.n.fillna(1)}
    counts = ", ".join(f"{marks.count(m)} {m}" for m in (IN_BAND, ALL_IN_BAND, OUT_OF_BAND))
    published, same_sign, beyond_noise = differences(frame)
    return [
        f"{IN_BAND} The published value is within 2 standard errors of the difference, and the "
        "published value of another compared machine on the data set is not.",
        f"{ALL_IN_BAND} The published values of all compared machines on the data set are within 2 "
        "standard errors: the comparison does not distinguish the machines.",
        f"{OUT_OF_BAND} The published value is outside 2 standard errors. No mark: not compared.",
        f"Compared cells: {len(compared)}, of these {counts}.",
        f"Published differences between machines above noise: {published}, of these {same_sign} "
        f"with the same sign here, {beyond_noise} also above noise here. Noise: 2 standard errors "
        "of the difference of two means measured here.",
        f"Standard error of the difference: {'; '.join(errors)}.",
    ]


def _published_splits(results: Results, compared: pd.DataFrame) -> str:
    """Return the numbers of splits behind the published means of compared cells, as text; empty if
    they are unknown.
    """
    m = {row["dataset"]: row["n_splits"] for row in results.published}
    names = grouped((m.get(name), printed(results, name)) for name in compared.dataset.unique())
    (most, _), *others = sorted(names.items(), key=lambda entry: -len(entry[1]))
    texts = [f"{n or 'unknown'} for {', '.join(own)}" for n, own in others]
    return f"m = {'; '.join([str(most), *texts])}" if most or others else ""


def _standard_error(n: int, same_test_rows: bool, runs: str, m: str) -> str:
    """Return the formula for the standard error of the difference between the measured and the
    published value, as text.
    """
    if n == 1:
        return f"for a single run, {BINOMIAL}" + ", combined for both values" * (not same_test_rows)
    numbers = f"n and m are the numbers of {runs} here and in the paper"
    numbers += f" ({m})" if m else ""
    text = f"sd sqrt(1/n + 1/m), where sd is our standard deviation, and {numbers}"
    return f"for a mean over {runs}, {text}; combined with {BINOMIAL}" if same_test_rows else text


#: Pattern for the name of a machine in a layout's note. If a note names machines, but the table has
#: no column for any of these machines, the note is left out.
MACHINE = r"\{(\w+)\}"


@dataclass(frozen=True)
class Layout:
    """A table layout, defined by an entry of ``layouts/layouts.yaml`` or by the module of a
    plug-in.

    Attributes
    ----------
    about : str
        One line that describes the layout in the output of ``mmbench list layouts``.
    blocks : str
        Name of the function that returns the blocks of the table for `Results`, in the form
        ``module:function``.
    options : mapping
        Further arguments of this function.
    title : str
        Title of the table.
    machines : sequence of str
        Names of the paper's machines, in the order of the paper's table.
    others : bool
        Whether the table also has columns for machines that are not in `machines`.
    notes : sequence of str
        Sentences below the table. In a note, ``{svm}`` is replaced by the label of the machine
        ``svm``.
    metric, sd, runs, choices : str, bool, str, bool
        Arguments of the function `compose`.
    published : str, optional
        Name of the published table with which the results are compared.
    sized : bool
        Whether the layout can show several training sizes.
    any_metric : bool
        Whether the layout can show other metrics than the accuracy.
    layout : str
        Name of the function that returns the whole table, in the form ``module:function``. If
        `layout` is given, `blocks` is not used.
    derive : str
        Name of a function that returns further rows of the frame ``cells``, which only this layout
        shows.
    """

    about: str
    blocks: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
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
    derive: str = ""

    def draw(self, results: Results) -> Table:
        """Return the table of an experiment in this layout."""
        if self.layout:
            return resolve_name(self.layout)(results)
        notes = (
            re.sub(MACHINE, lambda found: results.label(found[1]), note)
            for note in self.notes
            if not (named := re.findall(MACHINE, note)) or set(named) & set(results.columns)
        )
        told = {name: getattr(self, name) for name in ("metric", "sd", "runs", "choices")}
        grids = resolve_name(self.blocks)(results, **self.options)
        return compose(results, self.title, [*grids], *notes, **told)

    def order(self, machines: list[str]) -> list[str]:
        """Return machines in the order of the table's columns."""
        first = [machine for machine in self.machines if machine in machines]
        rest = [machine for machine in machines if machine not in first]
        return first + (rest if self.others or not self.machines else [])
