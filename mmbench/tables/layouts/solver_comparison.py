"""Comparison of solvers that solve the same problems: objectives, certificates, CPU times and
statuses.

Two machines solve the same problem if they differ only in the parameter `solver` in the
configuration. The objective of each solver is compared with the lowest objective that any solver
reaches on the problem.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd

from mmbench.jobs.store import Key
from mmbench.tables.frame import METRIC
from mmbench.tables.sheet import KernelKey, Sheet
from mmbench.tables.table import NOTHING, Grid, join, numbers, small_text, words

#: Names of numeric entries in the certificate of a training.
NUMBERS = ["objective", "gap", "max_violation", "n_support"]


def trainings(sheet: Sheet, kernel: KernelKey) -> pd.DataFrame:
    """Return a data frame of certificates and CPU milliseconds, one row per training of a pair of
    classes.

    The CPU time of a training is the mean over all pairs of classes of the job. The column
    ``excess`` is the relative difference between the solver's objective and the lowest objective
    that any solver reaches on the problem. Missing numbers are replaced by infinity.
    """
    rows = [
        (
            *(record.job.machine, str([p for p in record.job.params if p[0] != "solver"])),
            *(key.machine, f"{key.dataset} {record.at} {pair['pair']}", key.dataset),
            1e3 * record.cpu_seconds["training"] / len(record.per_pair),
            *(pair["extra"].get("solver_status"), pair["status"], *map(pair.get, NUMBERS)),
        )
        for key, cell in sheet.cells.items()
        if (key.kernel, key.degree) == kernel
        for record in cell.done
        for pair in record.per_pair
    ]
    columns = ["machine", "params", "solver", "training", "dataset", "ms", "native", "status"]
    found = pd.DataFrame(rows, columns=[*columns, *NUMBERS])
    found[NUMBERS] = found[NUMBERS].astype(float).fillna(np.inf)
    same = found.groupby(["machine", "params", "training"])
    value, lowest = found.objective, same.objective.transform("min")
    excess: pd.Series = (value - lowest) / np.maximum(value.abs(), 1e-12)
    return found.assign(excess=excess.where(np.isfinite(value), np.inf))


def solvers(sheet: Sheet) -> list[Grid]:
    """Return two table blocks for each kernel: certificates, and CPU times."""
    return [grid for kernel in sheet.kernels for grid in _grids(sheet, kernel)]


def _grids(sheet: Sheet, kernel: KernelKey) -> list[Grid]:
    found, certificates, times = trainings(sheet, kernel), [], []
    for solver in sheet.machines:
        every = (Key(dataset, *kernel, solver) for dataset in sheet.datasets)
        if not (keys := [key for key in every if key in sheet.cells]):
            continue
        own, texts = found[found.solver == solver], [NOTHING] * 6
        if len(own):
            largest = own[["excess", "gap", "max_violation"]].max()
            texts = [small_text(number) for number in (own.excess.median(), *largest)]
            texts += [f"{own.n_support.mean():.1f}", _counts(own.native.dropna()) or NOTHING]
        failed = [record.status for key in keys for record in sheet.cells[key].failed]
        notes = [sheet.cite(sheet.row(key, METRIC), kernel=False) for key in keys if failed]
        name, statuses = sheet.label(solver), _counts([*own.status, *failed])
        certificates.append([name, *texts, join(statuses or "not run", *dict.fromkeys(notes))])
        ms = own.groupby("dataset").ms.median().reindex(sheet.datasets)
        times.append([name, *(NOTHING if np.isnan(value) else f"{value:.3g}" for value in ms)])
    heads = (
        *numbers("median excess", "largest excess", "largest gap", "largest violation"),
        *numbers("support vectors"),
        *words("status of the solver", "recomputed status"),
    )
    caption, first = sheet.caption(kernel), words("solver")
    return [
        Grid((*first, *heads), certificates, caption),
        Grid((*first, *numbers(*sheet.datasets)), times, f"{caption}: median CPU ms of a training"),
    ]


def _counts(statuses: Iterable[str]) -> str:
    counts = Counter(statuses).most_common()
    return ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts)
