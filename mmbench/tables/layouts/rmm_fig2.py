"""Figure 2 of the RMM paper as a table: training time of SVM and RMM by the number of rows.

CPU seconds of one thread after the Gram matrix, and beside them the errors on the test part; then
those of whole trainings, Gram matrix and all. In the last rows stand the exponents in n, by least
squares on logarithms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.jobs.plan import Key
from mmbench.tables.growth import SVM, TIMED, curves, exponent, gram_curve, whole
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    certificates,
    dataset_label,
    join,
    kernel_caption,
    machine_label,
    measured_text,
    remarks,
)
from mmbench.tables.model import NOTHING, Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

SIZED = True
METRIC = "errors_count"


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange seconds and errors, a line a training size, ratios to the SVM, whole trainings."""
    cells, notes = Cells(frame), Footnotes()
    bases = list(dict.fromkeys(place._replace(size=None) for place in cells.places))
    grids = []
    for base in bases:
        grids += [
            _seconds(cells, base, facts, notes),
            _ratios(cells, base, facts),
            _whole(cells, base, facts),
        ]
    return Table(
        title="Training time by the number of training rows (RMM paper, figure 2)",
        grids=grids,
        notes=[
            "CPU seconds of one thread. The SVM, and the Gram matrix: mean over the RMMs on the "
            "same rows, each of which computes them. The RMM: without the SVM that gives theta.",
            "Whole trainings: Gram matrix, SVM and RMM together. The paper does not say whether "
            "its training times include kernel values.",
            "B₁, B₂, B₃ = 1 + (theta - 1) / {2, 4, 10}, theta = max |f| of the SVM on the "
            "training rows. From the SVM's solution; cold: from zero.",
            "Exponent: slope of log seconds against log rows, ± its standard error.",
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )


def _seconds(cells: Cells, base: Key, facts: Facts, notes: Footnotes) -> Grid:
    sizes = _sizes(cells, base)
    times = curves(base, sizes, facts)
    tested = [m for m in cells.machines if m == SVM or TIMED.get(m, ("", "cold"))[1] == "warm"]
    rows = []
    for size in sizes:
        found = [cells.get(base._replace(machine=m, size=size), METRIC) for m in tested]
        errors = (join(measured_text(row), notes.cite(*remarks(row))) for row in found)
        rows.append([str(size), *(_text(curve.get(size)) for curve in times.values()), *errors])
    slopes = (exponent(curve) for curve in times.values())
    rows.append(["exponent", *(str(s or NOTHING) for s in slopes), *["" for _ in tested]])
    name = dataset_label(base.dataset, base.dataset, facts, notes)
    return Grid(
        (
            Column("rows"),
            *(Column(machine_label(machine), group="CPU seconds") for machine in times),
            *(Column(f"errors {machine_label(machine)}", group="errors") for machine in tested),
        ),
        rows,
        f"{name}, {kernel_caption(base.kernel, base.degree)}: CPU seconds after the Gram matrix, "
        "errors on the test part",
    )


def _ratios(cells: Cells, base: Key, facts: Facts) -> Grid:
    """Return how many times the SVM's time the RMM takes, alone and together with its SVM."""
    sizes = _sizes(cells, base)
    times = curves(base, sizes, facts)
    svm = times.pop(SVM, {})
    columns = (Column("rows"), *(Column(machine_label(machine)) for machine in times))
    rows = [
        [str(size), *(_ratio(curve.get(size), svm.get(size)) for curve in times.values())]
        for size in sizes
    ]
    return Grid(columns, rows, "Times the SVM's seconds: the RMM alone / with its SVM")


def _whole(cells: Cells, base: Key, facts: Facts) -> Grid:
    """Return the seconds of whole trainings, and how many times the SVM's they are."""
    sizes = _sizes(cells, base)
    gram = gram_curve(base, sizes, facts)
    times = whole(curves(base, sizes, facts), gram)
    svm = times.get(SVM, {})

    def text(machine: str, size: int) -> str:
        time, own = times[machine].get(size), svm.get(size)
        ratio = f" ({time / own:.2f})" if time and own and machine != SVM else ""
        return _text(time) + ratio

    rows = [
        [str(size), _text(gram.get(size)), *(text(machine, size) for machine in times)]
        for size in sizes
    ]
    slopes = (exponent(curve) for curve in (gram, *times.values()))
    rows.append(["exponent", *(str(slope or NOTHING) for slope in slopes)])
    labels = ["Gram matrix", *map(machine_label, times)]
    return Grid(
        (Column("rows"), *map(Column, labels)),
        rows,
        "CPU seconds of whole trainings (times the SVM's)",
    )


def _sizes(cells: Cells, base: Key) -> list[int]:
    """Return the training sizes of a place, ascending."""
    places = (place for place in cells.places if place._replace(size=None) == base)
    return sorted(place.size for place in places if place.size is not None)


def _text(value: float | None) -> str:
    """Return seconds with three figures: the shortest trainings take milliseconds."""
    return NOTHING if value is None else f"{value:.3g}"


def _ratio(own: float | None, svm: float | None) -> str:
    if own is None or not svm:
        return NOTHING
    return f"{own / svm:.1f} / {1 + own / svm:.1f}"
