"""Table 2 of the MMRM paper: test errors on large data sets, with sizes, ties and CPU seconds.

Below the paper's table stands what it leaves out: votes that were tied, the expected number of
errors under random tie-breaking, and where the time went.
"""

from mmbench.jobs.store import Key
from mmbench.tables.blocks import STAGES, beside, stages
from mmbench.tables.compose import compose
from mmbench.tables.model import NOTHING, Column, Grid, Table, measured_text, seconds_text
from mmbench.tables.sheet import Sheet

PUBLISHED = "mmrm_table2"
MACHINES = ("mmrm", "rmm", "svm")
METRIC = "errors_count"
SIZES = {
    "n_train": "#train",
    "n_test": "#test",
    "n_features": "#features",
    "n_classes": "#classes",
}


def layout(sheet: Sheet) -> Table:
    """Arrange errors as the paper does: data info, then a column a machine."""
    sheet.arrange(MACHINES)
    return compose(
        sheet,
        "Classification errors on the test part (MMRM paper, table 2)",
        [_errors(sheet), _details(sheet)],
        "C and gamma taken over from the SVM were searched once, in the SVM's selection time.",
        metric=METRIC,
    )


def _errors(sheet: Sheet) -> Grid:
    rows = []
    for place in sheet.places:
        sizes = sheet.facts.sizes.get(place.dataset, {})
        info = [str(sizes.get(size, NOTHING)) for size in SIZES]
        cells = (beside(sheet, row) for row in sheet.line(place, METRIC))
        rows.append([sheet.head(place), *info, *cells])
    columns = (
        *sheet.columns("data set", machines=()),
        *(Column(name, group="Data info") for name in SIZES.values()),
        *sheet.columns(group="Errors: measured / published"),
    )
    return Grid(columns, rows, caption="Errors: measured / published")


def _details(sheet: Sheet) -> Grid:
    columns = (
        *sheet.columns("data set", "machine", machines=()),
        Column("ties"),
        Column("expected errors"),
        *(Column(name, group="CPU seconds") for name in STAGES),
        Column("support vectors a pair"),
    )
    rows = []
    for place in sheet.places:
        head = sheet.name(place)
        for machine in sheet.machines:
            key = place._replace(machine=machine)
            if sheet.value(key, METRIC) is not None:
                rows.append([head, sheet.label(machine), *_detail_cells(sheet, key)])
                head = ""
    caption = "Tied votes, errors expected under random tie-breaking, CPU seconds"
    return Grid(columns, rows, caption)


def _detail_cells(sheet: Sheet, key: Key) -> list[str]:
    return [
        measured_text(sheet.row(key, "n_ties")),
        measured_text(sheet.row(key, "errors_expected"), 1),
        *map(seconds_text, stages(sheet, key)),
        measured_text(sheet.row(key, "n_support"), 0),
    ]
