"""Verification on LFW: mean accuracy and standard error over the ten folds of view 2.

An extension: the F-SVM paper's section on LFW is lost, with its features, protocol and numbers.
"""

from mmbench.tables.blocks import METRIC, by_stage
from mmbench.tables.compose import compose
from mmbench.tables.model import Grid, Table, kernel_text, measured_text
from mmbench.tables.sheet import Sheet

#: How the descriptors of a pair's images are called.
DESCRIPTORS = {"lfw_pairs": "pixels", "lfw_pairs_hog": "HOG", "lfw_pairs_lbp": "LBP"}


def layout(sheet: Sheet) -> Table:
    """Arrange a line for each descriptor and a column for each machine."""
    rows = []
    for place in sheet.places:
        found = sheet.line(place, METRIC)
        cells = [sheet.marked(measured_text(row, 2), row) for row in found]
        head = sheet.head(place, name=DESCRIPTORS.get(place.dataset, place.dataset))
        rows.append([head, kernel_text(place.kernel, place.degree), *cells])
    return compose(
        sheet,
        "Verification accuracy (%) on LFW, view 2, image-restricted (an extension)",
        [Grid(sheet.columns("descriptor", "kernel"), rows), by_stage(sheet)],
        "Nothing published to compare with: the F-SVM paper's section on LFW is lost.",
        metric=METRIC,
        runs="folds",
    )
