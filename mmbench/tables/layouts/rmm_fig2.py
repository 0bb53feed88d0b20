"""Figure 2 of the RMM paper as a table: training time of SVM and RMM by the number of rows.

CPU seconds of one thread after the Gram matrix, and beside them the errors on the test part; then
those of whole trainings, Gram matrix and all. In the last rows stand the exponents in n, by least
squares on logarithms.
"""

from mmbench.jobs.store import Key
from mmbench.tables.compose import compose
from mmbench.tables.growth import COLD, SVM, curves, exponent, gram_curve, sizes_of, whole
from mmbench.tables.model import NOTHING, Column, Grid, Table
from mmbench.tables.sheet import Sheet
from mmbench.tables.text import join, kernel_caption, measured_text

SIZED = True
METRIC = "errors_count"


def layout(sheet: Sheet) -> Table:
    """Arrange seconds and errors, a line a training size, ratios to the SVM, whole trainings."""
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
    # an RMM from zero makes the same errors
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
    """Return how many times the SVM's time the RMM takes, alone and together with its SVM."""
    times = curves(sheet, base)
    svm = times.pop(SVM, {})
    rows = [
        [str(size), *(_ratio(curve.get(size), svm.get(size)) for curve in times.values())]
        for size in sizes_of(sheet, base)
    ]
    columns = (Column("rows"), *sheet.columns(machines=list(times)))
    return Grid(columns, rows, "Times the SVM's seconds: the RMM alone / with its SVM")


def _whole(sheet: Sheet, base: Key) -> Grid:
    """Return the seconds of whole trainings, and how many times the SVM's they are."""
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
    """Return seconds with three figures: the shortest trainings take milliseconds."""
    return NOTHING if value is None else f"{value:.3g}"


def _ratio(own: float | None, svm: float | None) -> str:
    if own is None or not svm:
        return NOTHING
    return f"{own / svm:.1f} / {1 + own / svm:.1f}"
