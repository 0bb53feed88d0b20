"""Figure 2 of the RMM paper as a table: training time of SVM and RMM by the number of rows.

The table shows CPU seconds of one thread without the Gram matrix, test errors, and CPU seconds of
whole trainings including the Gram matrix. The certificate of an RMM holds separate CPU times for
the Gram matrix, for the SVM that determines theta, and for the RMM itself. The last row of a block
shows the exponent of the number of training rows n, fitted by least squares to the logarithms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, join, kernel_caption, measured_text
from mmbench.tables.sheet import Sheet

SVM = "svm"
#: Suffix of the label of an RMM without a warm start at the SVM's solution.
COLD = ", cold"

#: CPU seconds by training size, and one such mapping per machine.
Curve = Mapping[int, float]
Curves = Mapping[str, Curve]


@dataclass(frozen=True)
class Exponent:
    """Slope of a least-squares line through (log n, log seconds), with its standard error."""

    value: float
    error: float | None

    def __str__(self) -> str:
        return f"{self.value:.2f}" + (f" ± {self.error:.2f}" if self.error is not None else "")


def sizes_of(sheet: Sheet, place: Key) -> list[int]:
    """Return the training sizes for a data set and kernel in ascending order."""
    places = (other for other in sheet.places if other._replace(size=None) == place)
    return sorted(other.size for other in places if other.size is not None)


def curves(sheet: Sheet, place: Key) -> dict[str, dict[int, float]]:
    """Return the measured CPU seconds of SVM and RMMs without the Gram matrix.

    Each RMM first trains the SVM on the same rows, and measures its time; the time of the SVM is
    the mean over the RMMs. The time of an RMM excludes its SVM.
    """
    rmms = [machine for machine in sheet.machines if machine != SVM]
    found = {SVM: _curve(sheet, place, "svm_cpu_seconds", rmms)}
    found |= {rmm: _curve(sheet, place, "rmm_cpu_seconds", [rmm]) for rmm in rmms}
    return {machine: curve for machine, curve in found.items() if curve}


def gram_curve(sheet: Sheet, place: Key) -> dict[int, float]:
    """Return the CPU seconds of the Gram matrix, averaged over all RMMs."""
    return _curve(sheet, place, "gram_cpu_seconds", sheet.machines)


def _curve(sheet: Sheet, place: Key, name: str, machines: Sequence[str]) -> dict[int, float]:
    """Return the mean of a field of the certificates over all splits of some machines, by size."""
    found = {}
    for size in sizes_of(sheet, place):
        keys = [place._replace(machine=machine, size=size) for machine in machines]
        splits = (pairs for key in keys for pairs in sheet.per_pair(key).values())
        numbers = [[pair["extra"].get(name) for pair in pairs] for pairs in splits]
        if known := [sum(values) for values in numbers if None not in values]:
            found[size] = fmean(known)
    return found


def whole(times: Curves, gram: Curve) -> dict[str, dict[int, float]]:
    """Return the CPU seconds of whole trainings: Gram matrix, SVM and, for an RMM, the RMM itself.

    Examples
    --------
    >>> whole({"svm": {100: 1.0}, "rmm_b1": {100: 2.0}}, {100: 4.0})
    {'svm': {100: 5.0}, 'rmm_b1': {100: 7.0}}
    """
    before = {n: gram[n] + time for n, time in times.get(SVM, {}).items() if n in gram}
    return {
        machine: {n: before[n] + (machine != SVM) * curve[n] for n in curve if n in before}
        for machine, curve in times.items()
    }


def exponent(curve: Curve) -> Exponent | None:
    """Return the exponent of n in the CPU seconds; None for fewer than two training sizes.

    Examples
    --------
    >>> str(exponent({100: 1.0, 200: 4.0, 400: 16.0}))
    '2.00 ± 0.00'
    >>> str(exponent({100: 1.0, 200: 4.0}))
    '2.00'
    """
    from scipy.stats import linregress

    times = {n: time for n, time in curve.items() if time > 0}
    if len(times) < 2:
        return None
    fit = linregress(np.log(list(times)), np.log(list(times.values())))
    return Exponent(float(fit.slope), float(fit.stderr) if len(times) > 2 else None)


SIZED = True
METRIC = "errors_count"


def layout(sheet: Sheet) -> Table:
    """Return blocks of CPU seconds with errors, of ratios to the SVM, and of whole trainings."""
    bases = dict.fromkeys(place._replace(size=None) for place in sheet.places)
    draw = (_seconds, _ratios, _whole)
    return compose(
        sheet,
        "Training time by the number of training rows (RMM paper, figure 2)",
        [grid(sheet, base) for base in bases for grid in draw],
        "CPU seconds of one thread. The SVM, and the Gram matrix: mean over the RMMs on the "
        "same rows, each of which computes them. The RMM: without the SVM that gives theta.",
        "Whole trainings: Gram matrix, SVM and RMM together. The paper does not say whether "
        "its training times include kernel values.",
        "B₁, B₂, B₃ = 1 + (theta - 1) / {2, 4, 10}, theta = max |f| of the SVM on the "
        "training rows. From the SVM's solution; cold: from zero.",
        "Exponent: slope of log seconds against log rows, ± its standard error.",
    )


def _seconds(sheet: Sheet, base: Key) -> Grid:
    times = curves(sheet, base)
    # An RMM without a warm start has the same solution, so its errors are not repeated.
    tested = [m for m in sheet.machines if not sheet.label(m).endswith(COLD)]
    rows = []
    for size in sizes_of(sheet, base):
        found = sheet.line(base._replace(size=size), METRIC, tested)
        errors = (join(measured_text(row), sheet.cite(row)) for row in found)
        rows.append([str(size), *(_text(curve.get(size)) for curve in times.values()), *errors])
    slopes = (exponent(curve) for curve in times.values())
    rows.append(["exponent", *(str(s or NOTHING) for s in slopes), *["" for _ in tested]])
    columns = (
        Column("rows"),
        *sheet.columns(machines=list(times), group="CPU seconds"),
        *(Column(f"errors {sheet.label(machine)}", group="errors") for machine in tested),
    )
    head = sheet.head(base, name=base.dataset)
    caption = (
        f"{head}, {kernel_caption(base.kernel, base.degree)}: CPU seconds after the Gram matrix"
    )
    return Grid(columns, rows, f"{caption}, errors on the test part")


def _ratios(sheet: Sheet, base: Key) -> Grid:
    """Return the CPU time relative to the SVM, for the RMM alone and for RMM and SVM together."""
    times = curves(sheet, base)
    svm = times.pop(SVM, {})
    rows = [
        [str(size), *(_ratio(curve.get(size), svm.get(size)) for curve in times.values())]
        for size in sizes_of(sheet, base)
    ]
    columns = (Column("rows"), *sheet.columns(machines=list(times)))
    return Grid(columns, rows, "Times the SVM's seconds: the RMM alone / with its SVM")


def _whole(sheet: Sheet, base: Key) -> Grid:
    """Return the CPU seconds of whole trainings, and their ratio to the SVM's whole training."""
    gram = gram_curve(sheet, base)
    times = whole(curves(sheet, base), gram)
    svm = times.get(SVM, {})

    def text(machine: str, size: int) -> str:
        time, own = times[machine].get(size), svm.get(size)
        ratio = f" ({time / own:.2f})" if time and own and machine != SVM else ""
        return _text(time) + ratio

    rows = [
        [str(size), _text(gram.get(size)), *(text(machine, size) for machine in times)]
        for size in sizes_of(sheet, base)
    ]
    slopes = (exponent(curve) for curve in (gram, *times.values()))
    rows.append(["exponent", *(str(slope or NOTHING) for slope in slopes)])
    columns = (Column("rows"), Column("Gram matrix"), *sheet.columns(machines=list(times)))
    return Grid(columns, rows, "CPU seconds of whole trainings (times the SVM's)")


def _text(value: float | None) -> str:
    """Return seconds with three significant digits, because some trainings take milliseconds."""
    return NOTHING if value is None else f"{value:.3g}"


def _ratio(own: float | None, svm: float | None) -> str:
    if own is None or not svm:
        return NOTHING
    return f"{own / svm:.1f} / {1 + own / svm:.1f}"
