"""The style of all figures, and the parts that several share.

Figures fit a column or a page of a two-column paper, with letters of 8 points and titles of 9.
Machines differ in marks or dashes as well as in colour. A PDF keeps text as text, and equal results
give equal files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of one column and of a page, in inches.
COLUMN, PAGE = 3.4, 7.0

#: The colour-blind safe palette of Okabe and Ito; the light colours are darkened to a contrast of
#: 3 on white and on near-black.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b97900", "#6b7785", "#7a5fb5", "#4c8c2b")
MARKS = ("o", "s", "D", "^", "P", "*", "X", "h")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))

#: Settings of matplotlib; sizes of text that are not named follow ``font.size``.
SETTINGS: Any = {
    "font.size": 8,
    "axes.titlesize": 9,
    "figure.titlesize": 9,
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
#: File metadata without the date.
METADATA = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def colour(k: int) -> str:
    """Return the colour of the kth machine."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int) -> str:
    """Return the mark of the kth machine."""
    return MARKS[k % len(MARKS)]


@contextmanager
def drawing(output: Path, width: float, height: float) -> Iterator[Figure]:
    """Provide a figure in the style of the papers, and write it at the end.

    The suffix of `output` (pdf, png, svg) is the format; `width` (`COLUMN` or `PAGE`) and `height`
    are in inches.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(SETTINGS):
        canvas = Figure(figsize=(width, height), layout="constrained")
        yield canvas
        canvas.savefig(output, metadata=METADATA.get(output.suffix.lower()))


def name_lines(axes: Axes, names: Sequence[str], downwards: bool = False) -> None:
    """Write names along the y axis, one per line, from below or `downwards` from the top."""
    ends = (-0.6, len(names) - 0.4)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(*(ends[::-1] if downwards else ends))
    axes.grid(visible=False, axis="y")
