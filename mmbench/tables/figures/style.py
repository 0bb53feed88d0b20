"""The one style of all figures: fit for a column of a paper, for colour-blind eyes, and for grey.

Sizes are those of two-column papers, letters of 8 points, 9 in titles. Machines differ in marks or
dashes as well as in colour. A PDF holds letters as letters; the same results give the same file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Inches: the width of one column, and of a page of two.
COLUMN, PAGE = 3.4, 7.0

#: After Okabe and Ito, apart for colour-blind eyes; the light ones are darkened, so that each has
#: a contrast of 3 on white and on near-black.
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#b97900",
    "#6b7785",
    "#7a5fb5",
    "#4c8c2b",
)
MARKS = ("o", "s", "D", "^", "P", "*", "X", "h")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))

SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
    "axes.labelsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.title_fontsize": 8,
    "legend.frameon": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.hashsalt": "mmbench",
}
#: What files hold beside the picture: nothing that changes from day to day.
METADATA = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def colour(k: int) -> str:
    """Return the colour of the kth machine."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int) -> str:
    """Return the mark of the kth machine."""
    return MARKS[k % len(MARKS)]


def dashes(k: int) -> Any:
    """Return the dashes of the kth machine."""
    return DASHES[k % len(DASHES)]


@contextmanager
def drawing(output: Path, width: float, height: float) -> Iterator[Figure]:
    """Give a figure to draw on, in the style; at the end it is written.

    The suffix of `output` (pdf, png, svg) says the format; `width` (`COLUMN` or `PAGE`) and
    `height` are in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        canvas = Figure(figsize=(width, height), layout="constrained")
        yield canvas
        canvas.savefig(output, metadata=METADATA.get(output.suffix.lower()))
