"""Verification on LFW: mean accuracy and standard error over the ten folds of view 2.

An extension: the F-SVM paper's section on LFW is lost, with its features, protocol and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmbench.tables.layouts.generic import seconds
from mmbench.tables.layouts.parts import (
    Cells,
    Footnotes,
    certificates,
    dataset_label,
    join,
    kernel_text,
    legend,
    machine_label,
    measured_text,
    remarks,
)
from mmbench.tables.model import Column, Facts, Grid, Table

if TYPE_CHECKING:
    import pandas as pd

METRIC = "accuracy_pct"

#: How the descriptors of a pair's images are called.
DESCRIPTORS = {"lfw_pairs": "pixels", "lfw_pairs_hog": "HOG", "lfw_pairs_lbp": "LBP"}


def layout(frame: pd.DataFrame, facts: Facts) -> Table:
    """Arrange a line for each descriptor and a column for each machine."""
    cells, notes = Cells(frame), Footnotes()
    heads = [Column("descriptor", align="left"), Column("kernel", align="left")]
    columns = (*heads, *(Column(machine_label(machine)) for machine in cells.machines))
    rows = []
    for place in cells.places:
        name = DESCRIPTORS.get(place.dataset, place.dataset)
        found = [cells.get(place._replace(machine=m), METRIC) for m in cells.machines]
        texts = [join(measured_text(row, 2), notes.cite(*remarks(row))) for row in found]
        label = dataset_label(place.dataset, name, facts, notes)
        rows.append([label, kernel_text(place.kernel, place.degree), *texts])
    return Table(
        title="Verification accuracy (%) on LFW, view 2, image-restricted (an extension)",
        grids=[Grid(columns, rows), seconds(cells)],
        notes=[
            "Nothing published to compare with: the F-SVM paper's section on LFW is lost.",
            *legend(cells, METRIC, "In parentheses: standard error over {} folds."),
            *certificates(cells),
            *facts.remarks,
        ],
        footnotes=notes.texts,
    )
