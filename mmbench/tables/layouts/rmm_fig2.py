"""Figure 2 of the RMM paper as a table: training time of SVM and RMM by the number of rows.

The table shows CPU seconds of one thread without the Gram matrix, test errors, and CPU seconds of
whole trainings including the Gram matrix. The certificate of an RMM holds separate CPU times for
the Gram matrix, for the SVM that determines theta, and for the RMM itself. The last row of a block
shows the exponent of the number of training rows n, fitted by least squares to the logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.compose import compose
from mmbench.tables.model import (
    NOTHING,
    Grid,
    Table,
    join,
    kernel_caption,
    measured_text,
    numbers,
)
from mmbench.tables.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd

SVM, GRAM = "svm", "Gram matrix"
#: Suffix of the label of an RMM without a warm start at the SVM's solution.
COLD = ", cold"
SIZED = True
METRIC = "errors_count"


def seconds(sheet: Sheet, base: Key) -> tuple[Any, Any]:
    """Return two data frames of CPU seconds: without the Gram matrix, and of whole trainings.

    Both data frames have one row per training size and one column per machine; the second frame
    starts with the column `GRAM`. Each RMM computes the Gram matrix and trains the SVM on the same
    rows; the times of the Gram matrix and of the SVM are means over the RMMs. The time of an RMM
    includes its SVM in the second frame only.
    """
    import pandas as pd

    keys = [key for key in sheet.keys if key._replace(machine="", size=None) == base]
    rows = [
        (key.size, key.machine, part, sum(pair["extra"][f"{part}_cpu_seconds"] for pair in pairs))
        for key in keys
        for pairs in sheet.per_pair(key).values()
        for part in ("gram", "svm", "rmm")
        if all(pair["extra"].get(f"{part}_cpu_seconds") is not None for pair in pairs)
    ]
    found = pd.DataFrame(rows, columns=["size", "machine", "part", "seconds"])
    found = found.astype({"seconds": float})
    sizes = sorted({key.size for key in keys if key.size is not None})

    def mean(part: str, machines: list[str]) -> pd.Series:
        chosen = found[(found.part == part) & found.machine.isin(machines)]
        return chosen.groupby("size").seconds.mean().reindex(sizes)

    rmms = [machine for machine in sheet.machines if machine != SVM]
    curves = {SVM: mean("svm", rmms), **{rmm: mean("rmm", [rmm]) for rmm in rmms}}
    after = pd.DataFrame(curves).dropna(axis=1, how="all")
    gram = mean("gram", sheet.machines)
    before = gram + curves[SVM]
    whole = {m: before + (curve if m != SVM else 0.0) for m, curve in after.items()}
    return after, pd.DataFrame({GRAM: gram, **whole})


def exponent(curve: pd.Series) -> str:
    """Return the exponent of n in the CPU seconds with its standard error; empty for one size.

    `curve` are the CPU seconds by training size. The exponent is the slope of the least-squares
    line through (log n, log seconds); two sizes have no standard error.

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


def layout(sheet: Sheet) -> Table:
    """Return blocks of CPU seconds with errors, of ratios to the SVM, and of whole trainings."""
    bases = dict.fromkeys(place._replace(size=None) for place in sheet.places)
    return compose(
        sheet,
        "Training time by the number of training rows (RMM paper, figure 2)",
        [grid for base in bases for grid in _grids(sheet, base)],
        "CPU seconds of one thread. SVM and Gram matrix: mean over the RMMs on the same rows, each "
        "of which computes both. RMM: without the SVM that determines theta.",
        "Whole trainings: Gram matrix, SVM and RMM. The paper does not state whether its training "
        "times include kernel values.",
        "B₁, B₂, B₃ = 1 + (theta - 1) / {2, 4, 10}, theta = max |f(x)| of the SVM.",
        "Starting point: solution of the SVM; cold: zero.",
        "Exponent: slope of log seconds against log rows ± standard error.",
    )


def _grids(sheet: Sheet, base: Key) -> list[Grid]:
    after, whole = seconds(sheet, base)
    machines, rmms = list(after), [machine for machine in after if machine != SVM]
    # An RMM without a warm start has the same solution, so its errors are not repeated.
    tested = [m for m in sheet.machines if not sheet.label(m).endswith(COLD)]
    parts, ratios, totals = [], [], []
    for size, own in after.iterrows():
        found, svm = sheet.line(base._replace(size=size), METRIC, tested), own.get(SVM)
        errors = (join(measured_text(row), sheet.cite(row)) for row in found)
        parts.append([str(size), *map(_text, own), *errors])
        times = (own[machine] / svm if svm else np.nan for machine in rmms)
        ratios.append([str(size), *(_text(t, f"{t:.1f} / {1 + t:.1f}") for t in times)])
        total = whole.loc[size]
        relative = {m: f" ({total[m] / total[SVM]:.2f})" for m in rmms if total.get(SVM)}
        texts = (_text(t, f"{t:.3g}{relative.get(name, '')}") for name, t in total.items())
        totals.append([str(size), *texts])
    exponents = ([exponent(curve) or NOTHING for _, curve in t.items()] for t in (after, whole))
    of_parts, of_totals = exponents
    parts.append(["exponent", *of_parts, *[""] * len(tested)])
    totals.append(["exponent", *of_totals])
    errors_of = numbers(*(f"errors {sheet.label(m)}" for m in tested), group="errors")
    seconds_of = sheet.columns(machines=machines, group="CPU seconds")
    head = f"{sheet.head(base, name=base.dataset)}, {kernel_caption(base.kernel, base.degree)}"
    caption = f"{head}: CPU seconds after the Gram matrix, errors on the test part"
    columns = {
        caption: (*seconds_of, *errors_of),
        "Times the SVM's seconds: RMM alone / RMM with its SVM": sheet.columns(machines=rmms),
        "CPU seconds of whole trainings (relative to the SVM)": (
            *numbers(GRAM),
            *sheet.columns(machines=machines),
        ),
    }
    return [
        Grid((*numbers("rows"), *own), rows, caption)
        for (caption, own), rows in zip(columns.items(), (parts, ratios, totals), strict=True)
    ]


def _text(value: float, text: str = "") -> str:
    """Return `text`, by default three significant digits, as some trainings take milliseconds."""
    return NOTHING if np.isnan(value) else text or f"{value:.3g}"
