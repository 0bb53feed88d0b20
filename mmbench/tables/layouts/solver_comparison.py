"""Comparison of solvers that solve the same problems: objectives, certificates, times and statuses.

Two machines solve the same problem if they differ only in the parameter `solver`. Objectives are
compared with the lowest that any solver reaches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.planned import Key
from mmbench.results.cells import METRIC, counts, counts_text, finished
from mmbench.results.frames import KernelKey, Results
from mmbench.tables.names import caption_of, notes_of
from mmbench.tables.text import NOTHING, Grid, Shown, Text, numbers, small_text, words

#: Names of numeric entries in the certificate of a training.
NUMBERS = ["objective", "gap", "max_violation", "n_support"]
#: Metrics of a solver over all data sets, and of a solver on one data set: median CPU milliseconds
#: of a training. The number of trainings with a status of the solver is a metric with `NATIVE`.
MEDIAN, LARGEST = "excess_median", ("excess_max", "worst_gap", "worst_violation")
SUPPORT, MS, NATIVE = "n_support_mean", "ms_training_median", "solver_status:"


def trainings(results: Results) -> pd.DataFrame:
    """Return a data frame of certificates and CPU milliseconds, one row per training of a pair of
    classes.

    The CPU time of a training is the mean over all pairs of classes of the job. The column
    ``excess`` is the relative difference between the solver's objective and the lowest objective
    that any solver reaches on the problem. Missing numbers are replaced by infinity.
    """
    rows = [
        (
            *(key.kernel, key.degree, row.estimator, _problem(row.parameters), key.machine),
            *(f"{key.dataset} {row.repeat} {row.fold} {row.seed} {fit['pair']}", key.dataset),
            1e3 * row.seconds_training / len(row.certificates),
            *(fit["extra"].get("solver_status"), *map(fit.get, NUMBERS)),
        )
        for key, splits in results.by_cell.items()
        for row in finished(splits)
        for fit in row.certificates or ()
    ]
    columns = ["kernel", "degree", "machine", "params", "solver", "training", "dataset", "ms"]
    found = pd.DataFrame(rows, columns=[*columns, "native", *NUMBERS])
    found[NUMBERS] = found[NUMBERS].astype(float).fillna(np.inf)
    same = found.groupby(["kernel", "machine", "params", "training"])
    value, lowest = found.objective, same.objective.transform("min")
    excess: pd.Series = (value - lowest) / np.maximum(value.abs(), 1e-12)
    return found.assign(excess=excess.where(np.isfinite(value), np.inf))


def _problem(parameters: Mapping[str, Any]) -> str:
    return str([(name, value) for name, value in parameters.items() if name != "solver"])


def derived(results: Results) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Yield the excess, the certificates and the CPU milliseconds of each solver."""
    found = trainings(results)
    for (kernel, solver), own in found.groupby(["kernel", "solver"], sort=False):
        key = Key("", str(kernel), None, str(solver))
        names = zip(LARGEST, ("excess", "gap", "max_violation"), strict=True)
        values = {MEDIAN: own.excess.median(), **{name: own[of].max() for name, of in names}}
        values |= {SUPPORT: own.n_support.mean()}
        natives = Counter(own.native.dropna()).most_common()
        values |= {f"{NATIVE}{status}": n for status, n in natives}
        for metric, value in values.items():
            yield key, {"metric": metric, "measured": float(value), "n": len(own)}
        for dataset, ms in own.groupby("dataset", sort=False).ms:
            entries = {"metric": MS, "measured": float(ms.median()), "n": len(ms)}
            yield key._replace(dataset=str(dataset)), entries


def solvers(results: Results) -> list[Grid]:
    """Return two table blocks for each kernel: certificates, and CPU times."""
    return [grid for kernel in results.kernels for grid in _grids(results, kernel)]


def _grids(results: Results, kernel: KernelKey) -> list[Grid]:
    certificates, times = list[list[Shown]](), list[list[Shown]]()
    natives = [m for m in dict.fromkeys(results.cells.metric) if m.startswith(NATIVE)]
    for solver in results.columns:
        every = (Key(dataset, *kernel, solver) for dataset in results.datasets)
        if not (keys := [key for key in every if results.row(key, METRIC).metric]):
            continue
        total = Key("", kernel[0], None, solver)
        texts, support = [NOTHING] * 6, results.value(total, SUPPORT)
        if support is not None:
            texts = [small_text(results.value(total, name)) for name in (MEDIAN, *LARGEST)]
            found = {m.removeprefix(NATIVE): results.value(total, m) or 0 for m in natives}
            native = counts_text(sorted(found.items(), key=lambda item: -item[1]))
            texts += [f"{support:.1f}", native or NOTHING]
        splits = [row for key in keys for row in results.by_cell.get(key, ())]
        failed = [row for row in splits if row.accuracy_pct is None]
        notes = (notes_of(results.row(key, METRIC), kernel=False) for key in keys if failed)
        done = finished(splits)
        ended = Counter(str(fit["status"]) for row in done for fit in row.certificates or ())
        statuses = (ended or counts(done, "fits")) + Counter(row.status for row in failed)
        cited = tuple(dict.fromkeys(note for own in notes for note in own))
        status = Text(counts_text(statuses.most_common()) or "not run", notes=cited)
        certificates.append([results.label(solver), *texts, status])
        ms = (results.value(Key(d, kernel[0], None, solver), MS) for d in results.datasets)
        texts = [NOTHING if value is None else f"{value:.3g}" for value in ms]
        times.append([results.label(solver), *texts])
    heads = numbers("median excess", "largest excess", "largest gap", "largest violation")
    heads += (*numbers("support vectors"), *words("status of the solver", "recomputed status"))
    caption, first = caption_of(results, kernel), words("solver")
    of_times = f"{caption}: median CPU ms of a training"
    return [
        Grid((*first, *heads), certificates, caption),
        Grid((*first, *numbers(*results.datasets)), times, of_times),
    ]
