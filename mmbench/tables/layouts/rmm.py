"""Tables of the RMM paper: errors on digits, and the training times of figure 2 as a table.

The paper reports single runs: with several seeds, the table shows the first and the mean. The last
row of times is the exponent of n: the least-squares slope of (log n, log time).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.planned import Key
from mmbench.results.frames import Results
from mmbench.results.pairwise import FIRST, disagreements
from mmbench.results.statistics import mcnemar_p
from mmbench.tables.blocks import total
from mmbench.tables.names import caption_of, columns_of, head, notes_of, printed, shown
from mmbench.tables.text import (
    NOTHING,
    TIMES,
    Column,
    Grid,
    Shown,
    Text,
    measured,
    measured_text,
    numbers,
    once,
    published_text,
    seconds_text,
    words,
)

METRIC = "errors_count"

# -- table 1 -----------------------------------------------------------------------------------


def digits(results: Results) -> list[Grid]:
    """Return table blocks for the digits: error counts, expected errors, McNemar's tests and CPU
    seconds.

    Each of the blocks has one column per kernel.
    """

    def expected(key: Key) -> str:
        value = results.value(key, "errors_expected")
        return NOTHING if value is None else f"{value:.1f}"

    def seconds(key: Key) -> str:
        return seconds_text(total(results, key, ("selection", "training")))

    of_seconds = "CPU seconds of selection and training of all pairs, mean over seeds"
    return [
        _errors(results),
        _grid(results, expected, "Errors expected under random tie-breaking, mean over seeds"),
        _mcnemar(results),
        _grid(results, seconds, of_seconds, TIMES),
    ]


def _errors(results: Results) -> Grid:
    """Return a table block of the measured and the published error counts of each machine.

    If an experiment has several seeds, there are two measured rows: a single run, and the mean over
    seeds.
    """
    rows: list[list[Shown]] = []
    for dataset, machine in product(results.datasets, results.columns):
        keys = _keys(results, dataset, machine)
        found = [results.row(key, METRIC) for key in keys]
        if not any(row.metric for row in found):
            continue
        several, lines = any(row.sd is not None for row in found), dict[str, list[Any]]()
        if several:
            runs = (results.by_split(key, METRIC) for key in keys)
            firsts = ([n for at, n in sorted(own.items()) if at[:2] == FIRST] for own in runs)
            lines["single run"] = [f"{own[0]:.0f}" if own else NOTHING for own in firsts]
        name = head(results, keys[0], printed(results, dataset))
        means = (measured(row, None if row.sd is None else 1, sd=True) for row in found)
        texts = [shown(*pair, kernel=False) for pair in zip(means, found, strict=True)]
        lines["mean" if several else "measured"] = texts
        published = [published_text(row) for row in found]
        if set(published) != {NOTHING}:  # for the larger data sets, the paper omits some machines
            lines["published"] = published
        rows += [[name, results.label(machine), line, *own] for line, own in lines.items()]
    return Grid(_columns(results, "machine", ""), once(rows), "Errors on the test digits")


def _mcnemar(results: Results) -> Grid:
    """Return a table block of McNemar's tests, which compare RMM and SVM in the run with the first
    seed.
    """

    def text(key: Key) -> str:
        counts = disagreements(results, *(key._replace(machine=m) for m in ("rmm", "svm")))
        return "{} : {} ({:.2g})".format(*counts, mcnemar_p(*counts)) if counts else NOTHING

    datasets = results.datasets if {"rmm", "svm"} <= set(results.columns) else ()
    rows = [[printed(results, name), *map(text, _keys(results, name, ""))] for name in datasets]
    caption = (
        "Single run: digits that only the RMM : only the SVM classifies correctly (p-value of "
        "McNemar's exact test)"
    )
    return Grid(_columns(results), rows, caption)


def _grid(results: Results, show: Callable[[Key], str], caption: str, kind: str = "") -> Grid:
    """Return a table block with one row per data set and machine.

    The function `show` returns the text of a table cell.
    """
    rows = []
    for dataset, machine in product(results.datasets, results.columns):
        texts = [show(key) for key in _keys(results, dataset, machine)]
        if set(texts) != {NOTHING}:
            rows.append([printed(results, dataset), results.label(machine), *texts])
    return Grid(_columns(results, "machine"), once(rows), caption, kind)


def _columns(results: Results, *heads: str) -> tuple[Column, ...]:
    kernels = (k.upper() if degree is None else f"{k} {degree}" for k, degree in results.kernels)
    return (*words("data", *heads), *numbers(*kernels))


def _keys(results: Results, dataset: str, machine: str) -> list[Key]:
    return [Key(dataset, kernel, degree, machine) for kernel, degree in results.kernels]


# -- figure 2 ----------------------------------------------------------------------------------

SVM, GRAM = "svm", "Gram matrix"
#: Metrics of CPU seconds: of the Gram matrix, of a training after it, and of a whole training. The
#: times of the Gram matrix and of the SVM are means over all RMMs, since each RMM of the experiment
#: computes both for the same rows. The time of an RMM includes the time of the SVM only in whole
#: trainings.
OF_GRAM, AFTER, WHOLE = "seconds_gram", "seconds_after_gram", "seconds_whole"
#: Metrics of ratios to the SVM's time after the Gram matrix, and to its whole training.
RATIO_AFTER, RATIO_WHOLE = "ratio_after_gram", "ratio_whole"
#: Metrics of exponents k of CPU times proportional to n^k.
EXPONENT = "exponent_of_"


def derived_seconds(results: Results) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield the CPU seconds of Gram matrix, SVM and RMM by training size, the ratios to the SVM's
    times, and the exponents of the number of rows.
    """
    for base in dict.fromkeys(key._replace(machine="", size=None) for key in results.by_cell):
        gram, after, whole = _parts(results, base)
        sides = {OF_GRAM: pd.DataFrame({"": gram}), AFTER: after, WHOLE: whole}
        for side, name in ((after, RATIO_AFTER), (whole, RATIO_WHOLE)):
            if SVM in side:
                sides[name] = side.drop(columns=SVM).div(side[SVM].replace(0.0, np.nan), axis=0)
        for metric, side in sides.items():
            for machine, curve in side.items():
                for size, value in curve.dropna().items():
                    key = base._replace(machine=str(machine), size=int(str(size)))
                    yield key, {"metric": metric, "measured": float(value)}
        for metric in (OF_GRAM, AFTER, WHOLE):
            for machine, curve in sides[metric].items():
                if fit := exponent(curve):
                    entries = {"metric": EXPONENT + metric, "measured": fit[0], "se": fit[1]}
                    yield base._replace(machine=str(machine)), entries


def _parts(results: Results, base: Key) -> tuple[pd.Series, pd.DataFrame, pd.DataFrame]:
    """Return the CPU seconds of the Gram matrix, of trainings after it, and of whole trainings, by
    training size.
    """
    keys = [key for key in results.by_cell if key._replace(machine="", size=None) == base]
    fits = [(k, row.certificates) for k in keys for row in results.by_cell[k] if row.certificates]
    rows = [
        (key.size, key.machine, part, sum(fit["extra"][f"{part}_cpu_seconds"] for fit in own))
        for key, own in fits
        for part in ("gram", "svm", "rmm")
        if all(fit["extra"].get(f"{part}_cpu_seconds") is not None for fit in own)
    ]
    found = pd.DataFrame(rows, columns=["size", "machine", "part", "seconds"])
    sizes = sorted({key.size for key in keys if key.size is not None})

    def mean(part: str, machines: list[str]) -> pd.Series:
        chosen = found[(found.part == part) & found.machine.isin(machines)]
        return chosen.astype({"seconds": float}).groupby("size").seconds.mean().reindex(sizes)

    machines = list(dict.fromkeys(key.machine for key in keys))
    rmms = [machine for machine in machines if machine != SVM]
    curves = {SVM: mean("svm", rmms), **{rmm: mean("rmm", [rmm]) for rmm in rmms}}
    after = pd.DataFrame(curves).dropna(axis=1, how="all")
    gram = mean("gram", machines)
    whole = {m: gram + curves[SVM] + (curve if m != SVM else 0.0) for m, curve in after.items()}
    return gram, after, pd.DataFrame(whole)


def exponent(curve: pd.Series) -> tuple[float, float] | None:
    """Return the exponent k of CPU times proportional to n^k, and its standard error.

    The index of `curve` contains the numbers n of training rows, and the values of `curve` are CPU
    seconds. The exponent k is the slope of the least-squares line through the points (log n, log
    seconds). The standard error is NaN for two values. For a single value, the result is None.

    Examples
    --------
    >>> import pandas as pd
    >>> exponent(pd.Series({100: 1.0, 200: 4.0, 400: 16.0}))
    (2.0, 0.0)
    """
    from scipy.stats import linregress

    times = curve[curve > 0]
    if len(times) < 2:
        return None
    fit = linregress(np.log(list(times.index)), np.log(times.to_numpy()))
    error = round(float(fit.stderr), 12) if len(times) > 2 else math.nan
    return round(float(fit.slope), 12), error


def seconds(results: Results, base: Key, metric: str) -> pd.DataFrame:
    """Return CPU seconds or ratios, with one row per training size and one column per machine."""
    sizes = sorted({key.size for key in results.keys if key.size is not None})
    machines = [SVM, *(machine for machine in results.configured if machine != SVM)]
    values = {
        m: {s: results.value(base._replace(machine=m, size=s), metric) for s in sizes}
        for m in (machines if metric != OF_GRAM else [""])
    }
    return pd.DataFrame(values, dtype=float).dropna(axis=1, how="all")


def exponent_text(results: Results, base: Key, machine: str, metric: str) -> str:
    """Return the exponent of a machine's CPU time with its standard error, or an empty text."""
    row = results.row(base._replace(machine=machine), EXPONENT + metric)
    error = "" if row.se is None else f" ± {row.se:.2f}"
    return "" if row.measured is None else f"{row.measured:.2f}{error}"


def starts_cold(results: Results, machine: str) -> bool:
    """Return whether an RMM starts from zero instead of the SVM's solution (no warm start)."""
    rows = (r for key, own in results.by_cell.items() if key.machine == machine for r in own)
    return any((row.parameters or {}).get("timing") == "cold" for row in rows)


def times(results: Results) -> Iterator[Grid]:
    """Yield three table blocks for each data set and kernel.

    The first block contains error counts and CPU seconds; these seconds exclude the computation of
    the Gram matrix. The second block contains the ratio of each RMM's CPU seconds to the SVM's.
    The third block contains the CPU seconds of whole trainings.
    """
    for base in dict.fromkeys(place._replace(size=None) for place in results.places):
        yield from _times_of(results, base)


def _times_of(results: Results, base: Key) -> list[Grid]:
    sizes, machines = (list(part) for part in seconds(results, base, AFTER).axes)
    rmms = [machine for machine in machines if machine != SVM]
    # An RMM makes the same errors with and without a warm start. Therefore, its errors are shown
    # only once.
    tested = [m for m in results.columns if not starts_cold(results, m)]

    def text(machine: str, size: Any, metric: str, form: str = "{:.3g}") -> str:
        value = results.value(base._replace(machine=machine, size=size), metric)
        return NOTHING if value is None else form.format(value, 1 + value)

    def errors(size: Any) -> Iterator[Text]:
        for row in (results.row(base._replace(machine=m, size=size), METRIC) for m in tested):
            yield Text(measured_text(row), notes=notes_of(row))

    def whole(machine: str, size: Any) -> str:
        both = text(machine, size, WHOLE), text(machine, size, RATIO_WHOLE, " ({:.2f})")
        return "".join(both) if NOTHING not in both else both[0]

    def powers(metric: str, names: list[str]) -> list[str]:
        return [exponent_text(results, base, name, metric) or NOTHING for name in names]

    after = [[str(s), *(text(m, s, AFTER) for m in machines), *errors(s)] for s in sizes]
    after.append(["exponent", *powers(AFTER, machines), *[""] * len(tested)])
    ratios = [[str(s), *(text(m, s, RATIO_AFTER, "{:.1f} / {:.1f}") for m in rmms)] for s in sizes]
    totals = [[str(s), text("", s, OF_GRAM), *(whole(m, s) for m in machines)] for s in sizes]
    totals.append(["exponent", *powers(OF_GRAM, [""]), *powers(WHOLE, machines)])
    heads, kernel = numbers("rows"), caption_of(results, (base.kernel, base.degree))
    errors_of = numbers(*(f"errors {results.label(m)}" for m in tested), group="errors")
    columns = (*heads, *columns_of(results, machines=machines, group="CPU seconds"), *errors_of)
    tail = f", {kernel}: CPU seconds after the Gram matrix, errors on the test part"
    of_ratios = "Times the SVM's seconds: RMM alone / RMM with its SVM"
    of_totals = "CPU seconds of whole trainings (relative to the SVM)"
    trained = (*heads, *numbers(GRAM), *columns_of(results, machines=machines))
    return [
        Grid(columns, after, replace(head(results, base, name=base.dataset), tail=tail)),
        Grid((*heads, *columns_of(results, machines=rmms)), ratios, Text(of_ratios)),
        Grid(trained, totals, Text(of_totals), TIMES),
    ]
