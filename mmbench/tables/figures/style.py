"""Style of all figures, and drawing functions that several figures use.

Machines differ in markers or dashes as well as in colours. Equal results give identical files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmbench.errors import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of a figure that fills a column, and width of a figure that fills a page, in inches.
COLUMN, PAGE = 3.4, 7.0

#: Colours of the machines, from the colour-blind safe palette of Okabe and Ito. Light colours are
#: darkened: on white and on almost black backgrounds, the contrast ratio is at least 3.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b97900", "#6b7785", "#7a5fb5", "#4c8c2b")
MARKS = ("o", "s", "D", "^", "P", "v", "X", "h")
#: Index of the colour and marker of each machine, the same in all figures. Machines with the same
#: colour have different markers.
LOOKS = {
    "svm": 0, "rmm": 1, "mpm": 2, "m4": 3, "mmrm": 4, "sigma_svm": 5, "klda": 6, "lda": 30,
    "rmm_c_equals_d": 7, "mamc": 10, "mamc_b": 11, "mamc_bs": 12, "mamc_bsg": 13, "emamc": 14,
    "fsvm": 18, "rsvm_plus": 19, "rsvm_mu_plus": 20, "mrsvm": 21, "lssvm": 28, "mempm": 31,
    "ldm": 22,
}  # fmt: skip
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))

#: Name of the matplotlib style in the file ``paper.mplstyle``.
STYLE = "mmbench.tables.figures.paper"
#: For each suffix of a figure file, metadata settings that omit the date, so that equal results
#: give identical files.
METADATA = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def colour(k: int) -> str:
    """Return the colour with index k."""
    return COLOURS[k % len(COLOURS)]


def mark(k: int, marks: Sequence[str] = MARKS) -> str:
    """Return the marker with index k.

    Indices with the same colour have different markers.
    """
    return marks[(k + k // len(COLOURS)) % len(marks)]


def looks(machines: Collection[Any]) -> dict[Any, int]:
    """Return the index of each machine's colour and marker: the index in `LOOKS`, or another index
    for other machines, if possible with an unused colour.
    """
    used = {colour(LOOKS[name]) for name in machines if name in LOOKS}
    free = iter(sorted(range(32, 40 + 8 * len(machines)), key=lambda k: colour(k) in used))
    return {name: LOOKS[name] if name in LOOKS else next(free) for name in machines}


def data_names(datasets: Iterable[Any]) -> dict[Any, str]:
    """Return readable names of the data sets of a figure: the beginnings of the titles of cards.

    Data sets without a card, and data sets whose readable names would be equal, keep their names.
    """
    from mmbench.datasets.card import load_card
    from mmbench.datasets.card_files import card_names

    names = {name: load_card(name).title if name in card_names() else name for name in datasets}
    short = {name: re.split("[,:] ", title)[0] for name, title in names.items()}
    texts = list(short.values())
    return {name: text if texts.count(text) == 1 else name for name, text in short.items()}


@contextmanager
def drawing(output: Path, width: float, height: float) -> Iterator[Figure]:
    """Context manager that creates a figure in the common style, and writes the figure to a file on
    exit.

    The suffix of the file name `output` (pdf, png or svg) determines the format. The arguments
    `width` (`COLUMN` or `PAGE`) and `height` are in inches.
    """
    with extra("report", "a figure"):
        from matplotlib import style
        from matplotlib.figure import Figure

    with style.context(STYLE):
        canvas = Figure(figsize=(width, height), layout="constrained")
        yield canvas
        canvas.savefig(output, metadata=METADATA.get(output.suffix.lower()))


def draw_panels(
    output: Path,
    found: Mapping[str, Any],
    panel: Callable[[Any, str, Any], str],
    line: float,
    frame: float,
    ratios: Sequence[float] = (1,),
    width: float = PAGE,
) -> str:
    """Write a figure with one panel per entry of the dict `found`, and return the texts of all
    panels.

    The function `panel` draws one panel and returns the panel's text. The arguments of `panel` are
    the axes, and the key and the value of an entry of `found`. The value of an entry of `found` has
    one element per machine. A panel has one line per machine. The height of a panel is `frame` plus
    `line` times the number of its lines, in inches. If a panel has several axes side by side,
    `ratios` contains the relative widths of these axes. The width of the figure is in inches.
    """
    heights = [frame + line * len(rows) for rows in found.values()]
    with drawing(output, width, sum(heights)) as canvas:
        grid = canvas.subplots(
            len(heights), len(ratios), squeeze=False, height_ratios=heights, width_ratios=ratios
        )
        axes = grid if len(ratios) > 1 else grid[:, 0]
        return "\n".join(panel(own, *x) for own, x in zip(axes, found.items(), strict=True))


def name_lines(axes: Axes, names: Sequence[str], downwards: bool = False) -> None:
    """Write `names` at the ticks of the y axis, from bottom to top.

    If `downwards` is true, write the names from top to bottom.
    """
    ends = (-0.6, len(names) - 0.4)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(*(ends[::-1] if downwards else ends))
    axes.grid(visible=False, axis="y")
