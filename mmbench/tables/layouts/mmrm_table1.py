"""Table 1 of the MMRM paper: accuracy in per cent, linear and RBF kernel, over random partitions.

Each data set has a line measured here and, below it, the line of the paper.
"""

from mmbench.tables.blocks import METRIC, paired
from mmbench.tables.compose import compose
from mmbench.tables.model import Table, kernel_caption
from mmbench.tables.sheet import Sheet

PUBLISHED = "mmrm_table1"
MACHINES = ("mmrm", "svm", "rmm", "m4", "mpm")
KERNELS = ("linear", "poly", "rbf")


def layout(sheet: Sheet) -> Table:
    """Arrange accuracies as the paper does: a block a kernel, a column a machine."""
    sheet.arrange(MACHINES)
    kernels = sorted(sheet.kernels, key=lambda kernel: KERNELS.index(kernel[0]))
    return compose(
        sheet,
        "Classification accuracies (%), measured and published (MMRM paper, table 1)",
        [paired(sheet, sheet.places_of(k), caption=kernel_caption(*k)) for k in kernels],
        "What the paper calls a standard deviation has the size of a standard error.",
        metric=METRIC,
    )
