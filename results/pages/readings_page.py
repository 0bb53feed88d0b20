"""Write results/reference/readings.md from its template.

All numbers are computed from readings.csv and from the reference tables of the experiments. A cell
is near in a reading if the published value is within two standard errors of the measured value.

python -m results.pages.readings_page            # writes the page
python -m results.pages.readings_page --check    # exits with 1 if the page differs
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pandas as pd

from mmbench.machines import alias_of
from results.pages.readings import (
    CELL,
    ENOUGH,
    NOT_RUN,
    REFERENCE,
    TABLE,
    Reading,
    place,
    readings,
    reference,
)
from results.pages.reference_text import (
    KERNELS,
    LABELS,
    WIDTH,
    listing,
    name_of,
    rendered,
    write_or_check,
)

TEMPLATE = Path(__file__).with_name("readings.md.jinja")
PAGE = REFERENCE / "readings.md"

Line = Mapping[str, Any]


class Cell:
    """A cell with a published value outside two standard errors, and the readings of the cell.

    Parameters
    ----------
    base : mapping
        Line of the reference run.
    lines : mapping of str to mapping
        Lines of the readings, by the name of the reading.
    """

    def __init__(self, base: Line, lines: Mapping[str, Line]) -> None:
        self.base, self.lines = base, lines
        #: Lines of the readings that were run, by the name of the reading.
        self.tried = {name: line for name, line in lines.items() if line["status"] != NOT_RUN}
        run = self.tried.items()
        #: Names of the readings in which some of the splits were not run.
        self.parts = [name for name, line in run if line["n"] < line["splits"]]
        #: Names of the readings in which the published value is within two standard errors.
        self.near = [name for name, line in run if line["in_band"] == "True"]
        # the published value, reflected about the value of the reference run
        other = 2 * base["measured"] - base["published"]
        #: Names of the readings that are near the mirrored value.
        self.mirrored = [n for n, x in run if abs(x["measured"] - other) <= x["half_width"]]
        #: Names of the near readings that at least halve the distance to the published value or to
        #: the mirrored value. In other near readings, the band is wider, or the distance of the
        #: reference run is small.
        self.closer = self._halfway(self.near, base["published"])
        self.closer_mirrored = self._halfway(self.mirrored, other)

    def _halfway(self, names: list[str], to: float) -> list[str]:
        half = abs(self.base["measured"] - to) / 2
        return [name for name in names if abs(self.tried[name]["measured"] - to) <= half]

    @property
    def redraw(self) -> float:
        """Probability that the published value is near if only the splits are drawn again.

        The old and the new mean both vary. Therefore the difference of the means is normal with the
        standard deviation sqrt(2) se, where se is the standard error of the old mean.
        """
        base = self.base
        error = base["sd"] / base["n"] ** 0.5 if base["n"] > 1 else base["half_width"] / 2
        second = NormalDist(base["measured"], 2**0.5 * error)
        upper, lower = (base["published"] + sign * base["half_width"] for sign in (1, -1))
        return second.cdf(upper) - second.cdf(lower)

    @property
    def redrawn_once(self) -> float:
        """Probability that the published value is near in at least one of several new draws.

        There is one draw per reading that was run; readings with `spread` need no run.
        """
        return 1 - (1 - self.redraw) ** sum(not SPREADS[name] for name in self.tried)


SPREADS = {reading.name: reading.spread for reading in readings()}


class Readings:
    """The table of readings, with the counts that the page states."""

    def __init__(self) -> None:
        cells: dict[tuple[Any, ...], list[Line]] = {}
        for line in pd.read_csv(TABLE, dtype={"in_band": str}).to_dict("records"):
            place = (str(line[column]) for column in ("experiment", *CELL))
            cells.setdefault(tuple(place), []).append(line)
        self.cells = [Cell(base, {x["reading"]: x for x in more}) for base, *more in cells.values()]
        self.experiments = list(dict.fromkeys(cell.base["experiment"] for cell in self.cells))
        #: Readings that select parameters on test rows.
        self.leaks = [reading for reading in readings() if reading.leaks]

    def of(self, experiment: str | None = None) -> list[Cell]:
        """Return the cells of an experiment, or all cells if `experiment` is None."""
        return [c for c in self.cells if experiment in (None, c.base["experiment"])]

    def compared(self) -> int:
        """Return the number of compared cells in the reference tables of `experiments`."""
        lines = (line for experiment in self.experiments for line in reference(experiment))
        return sum(line["in_band"] is not None for line in lines)

    def named(self, end: str) -> list[Reading]:
        """Return the readings whose names end with `end`."""
        return [reading for reading in readings() if reading.name.endswith(end)]

    def later(self, run: bool | None = None) -> list[Reading]:
        """Return the readings marked "later".

        If `run` is True, only readings that were run are returned. If `run` is False, only readings
        that were not run are returned.
        """
        found = [reading for reading in readings() if reading.later]
        return [r for r in found if run in (None, self.count("tried", r) > 0)]

    def count(self, what: str, *of: Reading) -> int:
        """Count pairs of a cell and a reading in `of`.

        A pair counts if the attribute `what` of the cell contains the name of the reading; `what`
        is "lines", "tried", "near" or "mirrored".
        """
        names = {reading.name for reading in of}
        return sum(len(names.intersection(getattr(cell, what))) for cell in self.cells)

    def minutes(self, run: bool, of: Reading | None = None) -> float:
        """Return CPU minutes summed over the pairs of a cell and a reading.

        If `run` is True, the sum is over the pairs that were run. If `run` is False, the estimates
        for the other pairs are summed. `of` restricts the sum to one reading.
        """
        made = {reading.name for reading in readings() if reading.set and of in (None, reading)}
        lines = [x for cell in self.cells for name, x in cell.lines.items() if name in made]
        return sum(x["cpu_minutes"] for x in lines if (x["status"] != NOT_RUN) == run)

    def met_by(self, cells: list[Cell], leaks: bool | None = None) -> list[Cell]:
        """Return the cells that are near in some reading.

        If `leaks` is False, readings that select parameters on test rows do not count.
        """
        barred = {reading.name for reading in self.leaks if leaks is False}
        return [cell for cell in cells if set(cell.near) - barred]

    def above(self) -> list[Cell]:
        """Return the cells whose published value is better than ours."""
        better = {"accuracy_pct": 1, "errors_count": -1}
        bases = ((cell, cell.base) for cell in self.cells)
        return [c for c, x in bases if better[x["metric"]] * (x["published"] - x["measured"]) > 0]

    def whole(self) -> list[Reading]:
        """Return the readings of several cells in which all concerned cells are near."""
        several = [r for r in readings() if self.count("tried", r) > 1]
        return [r for r in several if self.count("near", r) == self.count("lines", r)]

    def kept(self) -> list[str]:
        """For each reading with its own reference table, state how many near cells are near there.

        Only cells that are compared in both tables count.
        """
        texts = []
        for reading in (reading for reading in readings() if reading.run):
            near = {place(x) for x in reference(reading.of) if x["in_band"] is True}
            own = {place(x): x["in_band"] for x in reading.ours(reference(reading.run or ""))}
            both = [own[cell] for cell in near if own.get(cell) is not None]
            texts += [f"`{reading.run}` {sum(both)} of {len(both)}"] if both else []
        return texts

    def best(self, experiment: str) -> str:
        """Return the readings of an experiment with the most near cells, with the counts.

        If more than two readings have equal counts, the number of these readings is stated.
        """
        own = [(r, self.count("near", r)) for r in readings() if r.of == experiment]
        if not (most := max((near for _, near in own), default=0)):
            return "none gives a value in the band"
        best = [r for r, near in own if near == most]
        of = [f"{most} of {self.count('tried', r)}" for r in best]
        if len(best) > 2 and len(set(of)) == 1:
            return f"{len(best)} readings: {of[0]} each"
        return listing([f"{r.reads}: {count}" for r, count in zip(best, of, strict=True)])


def label(cell: Cell) -> str:
    """Return the data set and the kernel of a cell, as printed."""
    kernel, degree = KERNELS[cell.base["kernel"]], cell.base["degree"]
    return f"{name_of(cell.base['dataset'])}, {kernel}" + (
        "" if pd.isna(degree) else f" {degree:g}"
    )


def machine(cell: Cell) -> str:
    """Return the machine of a cell, as printed."""
    name = cell.base["machine"]
    return LABELS.get(name) or alias_of(name).label or name.upper()


def value(cell: Cell, number: float) -> str:
    """Return a measured or published value as it is printed."""
    return f"{number:.0f}" if cell.base["metric"] == "errors_count" else f"{number:.2f}"


def entry(cell: Cell, name: str) -> str:
    """Return the entry of a reading in the row of a cell: value, mark, and n if incomplete."""
    if name not in cell.tried:
        return "not run" if name in cell.lines else ""
    mark = "✓" if name in cell.closer else "(✓)" if name in cell.near else "✗"
    part = f", n = {cell.tried[name]['n']:g}" if name in cell.parts else ""
    return f"{value(cell, cell.tried[name]['measured'])} {mark}{part}"


def page() -> str:
    """Return the page that is rendered from the table and the template."""
    used: tuple[Callable[..., object], ...] = (label, machine, value, entry, readings, sum, len)
    functions = {function.__name__: function for function in used}
    text = rendered(TEMPLATE, t=Readings(), ENOUGH=ENOUGH, **functions)
    blocks = text.strip().split("\n\n")
    return "\n\n".join(_wrapped(block) for block in blocks if block.strip()) + "\n"


def _wrapped(block: str) -> str:
    """Break text into lines of at most `WIDTH` characters; keep tables and headings."""
    block = block.strip("\n")
    return block if block.startswith(("|", "#")) else textwrap.fill(" ".join(block.split()), WIDTH)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
