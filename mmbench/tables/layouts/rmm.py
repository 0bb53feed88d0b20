"""Tables of the RMM paper: errors on digits, and the training times of figure 2 as a table.

For digits, the paper reports the results of single runs. If an experiment repeats the parameter
selection with several seeds, the table shows the run with the first seed and the mean over seeds.

The certificate of an RMM states three CPU times: for the Gram matrix, for the SVM that is trained
first, and for the RMM itself. The CPU time is assumed to be proportional to a power of the number n
of training rows. The last row of a table of times contains the exponent of n. The exponent is the
slope of the least-squares line through the points (log n, log time).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.store import Key
from mmbench.results.statistics import mcnemar_p, wins_and_losses
from mmbench.tables.blocks import FIRST, total
from mmbench.tables.sheet import Sheet
from mmbench.tables.table import (
    NOTHING,
    Column,
    Grid,
    join,
    measured_text,
    numbers,
    once,
    published_text,
    seconds_text,
    words,
)

METRIC = "errors_count"

# -- table 1 -----------------------------------------------------------------------------------


def digits(sheet: Sheet) -> list[Grid]:
    """Return table blocks for the digits: error counts, expected errors, McNemar's tests and CPU
    seconds.

    Each of the blocks has one column per kernel.
    """

    def expected(key: Key) -> str:
        value = sheet.value(key, "errors_expected")
        return NOTHING if value is None else f"{value:.1f}"

    def seconds(key: Key) -> str:
        return seconds_text(total(sheet, key, ("selection", "training")))

    of_seconds = "CPU seconds of selection and training of all pairs, mean over seeds"
    return [
        _errors(sheet),
        _grid(sheet, expected, "Errors expected under random tie-breaking, mean over seeds"),
        _mcnemar(sheet),
        _grid(sheet, seconds, of_seconds),
    ]


def _errors(sheet: Sheet) -> Grid:
    """Return a table block of the measured and the published error counts of each machine.

    If an experiment has several seeds, there are two measured rows: a single run, and the mean over
    seeds.
    """
    rows = []
    for dataset, machine in product(sheet.datasets, sheet.machines):
        keys = _keys(sheet, dataset, machine)
        found = [sheet.row(key, METRIC) for key in keys]
        if not any(row.metric for row in found):
            continue
        several, lines = any(row.sd is not None for row in found), {}
        if several:
            hits = (sheet.hits(key, FIRST) for key in keys)
            lines["single run"] = [NOTHING if h is None else str((~h).sum()) for h in hits]
        heads = [sheet.head(keys[0], sheet.printed(dataset)), sheet.label(machine)]
        means = (measured_text(row, None if row.sd is None else 1, sd=True) for row in found)
        texts = [sheet.marked(*pair, kernel=False) for pair in zip(means, found, strict=True)]
        lines["mean" if several else "measured"] = texts
        published = [published_text(row) for row in found]
        if set(published) != {NOTHING}:  # for the larger data sets, the paper omits some machines
            lines["published"] = published
        rows += [[*heads, head, *texts] for head, texts in lines.items()]
    return Grid(_columns(sheet, "machine", ""), once(rows), "Errors on the test digits")


def _mcnemar(sheet: Sheet) -> Grid:
    """Return a table block of McNemar's tests, which compare RMM and SVM in the run with the first
    seed.
    """

    def text(key: Key) -> str:
        ours, theirs = (sheet.hits(key._replace(machine=m), FIRST) for m in ("rmm", "svm"))
        if ours is None or theirs is None:
            return NOTHING
        wins, losses = wins_and_losses(ours, theirs)
        return f"{wins} : {losses} ({mcnemar_p(wins, losses):.2g})"

    datasets = sheet.datasets if {"rmm", "svm"} <= set(sheet.machines) else ()
    rows = [[sheet.printed(name), *map(text, _keys(sheet, name, ""))] for name in datasets]
    caption = (
        "Single run: digits that only the RMM : only the SVM classifies correctly (p-value of "
        "McNemar's exact test)"
    )
    return Grid(_columns(sheet), rows, caption)


def _grid(sheet: Sheet, show: Callable[[Key], str], caption: str) -> Grid:
    """Return a table block with one row per data set and machine.

    The function `show` returns the text of a table cell.
    """
    rows = []
    for dataset, machine in product(sheet.datasets, sheet.machines):
        texts = [show(key) for key in _keys(sheet, dataset, machine)]
        if set(texts) != {NOTHING}:
            rows.append([sheet.printed(dataset), sheet.label(machine), *texts])
    return Grid(_columns(sheet, "machine"), once(rows), caption)


def _columns(sheet: Sheet, *heads: str) -> tuple[Column, ...]:
    kernels = (k.upper() if degree is None else f"{k} {degree}" for k, degree in sheet.kernels)
    return (*words("data", *heads), *numbers(*kernels))


def _keys(sheet: Sheet, dataset: str, machine: str) -> list[Key]:
    return [Key(dataset, kernel, degree, machine) for kernel, degree in sheet.kernels]


# -- figure 2 ----------------------------------------------------------------------------------

SVM, GRAM = "svm", "Gram matrix"
#: End of the label of an RMM that starts from zero instead of the SVM's solution (no warm start).
COLD = ", cold"


def seconds(sheet: Sheet, base: Key) -> tuple[Any, Any]:
    """Return two data frames of CPU seconds: times without the Gram matrix, and times of whole
    trainings.

    Each data frame has one row per training size and one column per machine. The data frame of
    whole trainings has an additional first column, `GRAM`, for the Gram matrix. Each RMM of the
    experiment computes the Gram matrix and the SVM for the same rows. The times of the Gram matrix
    and of the SVM are means over all RMMs. The time of an RMM includes the time of the SVM only in
    the data frame of whole trainings.
    """
    keys = [key for key in sheet.keys if key._replace(machine="", size=None) == base]
    rows = [
        (key.size, key.machine, part, sum(pair["extra"][f"{part}_cpu_seconds"] for pair in pairs))
        for key in keys
        for pairs in sheet.per_pair(key).values()
        for part in ("gram", "svm", "rmm")
        if all(pair["extra"].get(f"{part}_cpu_seconds") is not None for pair in pairs)
    ]
    found = pd.DataFrame(rows, columns=["size", "machine", "part", "seconds"])
    sizes = sorted({key.size for key in keys if key.size is not None})

    def mean(part: str, machines: list[str]) -> pd.Series:
        chosen = found[(found.part == part) & found.machine.isin(machines)]
        return chosen.astype({"seconds": float}).groupby("size").seconds.mean().reindex(sizes)

    rmms = [machine for machine in sheet.machines if machine != SVM]
    curves = {SVM: mean("svm", rmms), **{rmm: mean("rmm", [rmm]) for rmm in rmms}}
    after = pd.DataFrame(curves).dropna(axis=1, how="all")
    gram = mean("gram", sheet.machines)
    whole = {m: gram + curves[SVM] + (curve if m != SVM else 0.0) for m, curve in after.items()}
    return after, pd.DataFrame({GRAM: gram, **whole})


def exponent(curve: pd.Series) -> str:
    """Return the exponent k of CPU times proportional to n^k, as text with its standard error.

    The index of `curve` contains the numbers n of training rows, and the values of `curve` are CPU
    seconds. The exponent k is the slope of the least-squares line through the points (log n, log
    seconds). If `curve` has only two values, the text has no standard error. If `curve` has only
    one value, the text is empty.

    Examples
    --------
    >>> import pandas as pd
    >>> exponent(pd.Series({100: 1.0, 200: 4.0, 400: 16.0}))
    '2.00 ± 0.00'
    >>> exponent(pd.Series({100: 1.0, 200: 4.0}))
    '2.00'
    """
    from scipy.stats import linregress

    times = curve[curve > 0]
    if len(times) < 2:
        return ""
    fit = linregress(np.log(list(times.index)), np.log(times.to_numpy()))
    return f"{fit.slope:.2f}" + (f" ± {fit.stderr:.2f}" if len(times) > 2 else "")


def times(sheet: Sheet) -> Iterator[Grid]:
    """Yield three table blocks for each data set and kernel.

    The first block contains error counts and CPU seconds; these seconds exclude the computation of
    the Gram matrix. The second block contains the ratio of each RMM's CPU seconds to the SVM's.
    The third block contains the CPU seconds of whole trainings.
    """
    for base in dict.fromkeys(place._replace(size=None) for place in sheet.places):
        yield from _times_of(sheet, base)


def _times_of(sheet: Sheet, base: Key) -> list[Grid]:
    after, whole = seconds(sheet, base)
    machines, rmms = list(after), [machine for machine in after if machine != SVM]
    # An RMM makes the same errors with and without a warm start. Therefore, its errors are shown
    # only once.
    tested = [m for m in sheet.machines if not sheet.label(m).endswith(COLD)]
    parts, ratios, totals = [], [], []
    for size, own in after.iterrows():
        found, svm = sheet.line(base._replace(size=size), METRIC, tested), own.get(SVM)
        errors = (join(measured_text(row), sheet.cite(row)) for row in found)
        parts.append([str(size), *map(_seconds_text, own), *errors])
        times = (own[machine] / svm if svm else np.nan for machine in rmms)
        ratios.append([str(size), *(_seconds_text(t, f"{t:.1f} / {1 + t:.1f}") for t in times)])
        total = whole.loc[size]
        relative = {m: f" ({total[m] / total[SVM]:.2f})" for m in rmms if total.get(SVM)}
        texts = (_seconds_text(t, f"{t:.3g}{relative.get(name, '')}") for name, t in total.items())
        totals.append([str(size), *texts])
    of_parts, of_totals = ([exponent(c) or NOTHING for _, c in t.items()] for t in (after, whole))
    parts.append(["exponent", *of_parts, *[""] * len(tested)])
    totals.append(["exponent", *of_totals])
    errors_of = numbers(*(f"errors {sheet.label(m)}" for m in tested), group="errors")
    trained = (*numbers(GRAM), *sheet.columns(machines=machines))
    head = f"{sheet.head(base, name=base.dataset)}, {sheet.caption((base.kernel, base.degree))}"
    caption = f"{head}: CPU seconds after the Gram matrix, errors on the test part"
    columns = {
        caption: (*sheet.columns(machines=machines, group="CPU seconds"), *errors_of),
        "Times the SVM's seconds: RMM alone / RMM with its SVM": sheet.columns(machines=rmms),
        "CPU seconds of whole trainings (relative to the SVM)": trained,
    }
    return [
        Grid((*numbers("rows"), *own), rows, caption)
        for (caption, own), rows in zip(columns.items(), (parts, ratios, totals), strict=True)
    ]


def _seconds_text(value: float, text: str = "") -> str:
    """Return `text`, or the CPU seconds `value` with three digits if `text` is empty.

    If `value` is NaN, return a dash.
    """
    return NOTHING if np.isnan(value) else text or f"{value:.3g}"
