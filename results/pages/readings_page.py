"""Write results/reference/readings.md from the table of readings: every figure comes from it.

python -m results.pages.readings_page            # writes the page
python -m results.pages.readings_page --check    # exits with 1 if the page is another
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
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
    outside,
    place,
    readings,
    reference,
)
from results.pages.reference_text import (
    KERNELS,
    LABELS,
    listing,
    name_of,
    rendered,
    write_or_check,
)

TEMPLATE = Path(__file__).with_name("readings.md.jinja")
PAGE = REFERENCE / "readings.md"
WIDTH = 112


Line = Mapping[str, Any]


@dataclass(frozen=True)
class Cell:
    """A published value outside the band, as it was run and in its readings.

    Attributes
    ----------
    base : mapping
        The line of the table as the experiment was run.
    lines : mapping of str to mapping
        The lines of its readings, by their names.
    """

    base: Line
    lines: Mapping[str, Line]

    @cached_property
    def tried(self) -> Mapping[str, Line]:
        """The readings that were run."""
        return {name: line for name, line in self.lines.items() if line["status"] != NOT_RUN}

    @cached_property
    def parts(self) -> list[str]:
        """The readings that were run on a part of their splits."""
        return [name for name, line in self.tried.items() if line["n"] < line["splits"]]

    @cached_property
    def near(self) -> list[str]:
        """The readings in which the published value is within two standard errors."""
        return [name for name, line in self.tried.items() if line["in_band"] == "True"]

    @cached_property
    def closer(self) -> list[str]:
        """Those of them whose mean comes half the way to the published one, or more.

        In the others it is the band that is wider, or had little to go.
        """
        return self._halfway(self.near, self.base["published"])

    @cached_property
    def mirrored(self) -> list[str]:
        """The readings that are near the value as far on the other side of ours."""
        lines = self.tried.items()
        return [n for n, x in lines if abs(x["measured"] - self._other) <= x["half_width"]]

    @cached_property
    def closer_mirrored(self) -> list[str]:
        """Those of them whose mean comes half the way to that value, or more."""
        return self._halfway(self.mirrored, self._other)

    @property
    def _other(self) -> float:
        return 2 * self.base["measured"] - self.base["published"]

    def _halfway(self, names: list[str], to: float) -> list[str]:
        half = abs(self.base["measured"] - to) / 2
        return [name for name in names if abs(self.tried[name]["measured"] - to) <= half]

    @cached_property
    def redraw(self) -> float:
        """The probability that a new draw of all splits alone brings the value into the band.

        The mean of a second draw differs from ours by the standard errors of both.
        """
        base = self.base
        error = base["sd"] / base["n"] ** 0.5 if base["n"] > 1 else base["half_width"] / 2
        second = NormalDist(base["measured"], 2**0.5 * error)
        ends = (base["published"] + sign * base["half_width"] for sign in (1, -1))
        upper, lower = (second.cdf(end) for end in ends)
        return upper - lower

    @cached_property
    def redrawn_once(self) -> float:
        """The probability of that in at least one of as many new draws as runs were made."""
        runs = [name for name in self.tried if not SPREADS[name]]
        return 1 - (1 - self.redraw) ** len(runs)


SPREADS = {reading.name: reading.spread for reading in readings()}


class Readings:
    """The table of readings."""

    def __init__(self) -> None:
        cells: dict[tuple[Any, ...], list[Line]] = {}
        for line in pd.read_csv(TABLE, dtype={"in_band": str}).to_dict("records"):
            place = (str(line[column]) for column in ("experiment", *CELL))
            cells.setdefault(tuple(place), []).append(line)
        self.cells = [Cell(base, {x["reading"]: x for x in more}) for base, *more in cells.values()]
        self.experiments = list(dict.fromkeys(cell.base["experiment"] for cell in self.cells))

    def of(self, experiment: str | None = None) -> list[Cell]:
        """Return the cells of an experiment, or all."""
        return [c for c in self.cells if experiment in (None, c.base["experiment"])]

    def compared(self) -> int:
        """Return how many cells of these experiments are compared with the paper."""
        lines = (line for experiment in self.experiments for line in reference(experiment))
        return sum(line["in_band"] is not None for line in lines)

    def readings(self, experiment: str) -> list[Reading]:
        """Return the readings of an experiment."""
        return [reading for reading in readings() if reading.of == experiment]

    def named(self, end: str) -> list[Reading]:
        """Return the readings whose names end so."""
        return [reading for reading in readings() if reading.name.endswith(end)]

    def later(self, run: bool | None = None) -> list[Reading]:
        """Return the readings that were added later; with `run`, those that were run, or not."""
        found = [reading for reading in readings() if reading.later]
        return [r for r in found if run in (None, bool(self.tried(r)))]

    def count(self, what: str, of: list[Reading]) -> int:
        """Return for how many pairs of a cell and one of these readings something holds."""
        names = {reading.name for reading in of}
        return sum(len(names.intersection(getattr(cell, what))) for cell in self.cells)

    def tried(self, reading: Reading) -> list[Cell]:
        """Return the cells for which a reading was run."""
        return [cell for cell in self.cells if reading.name in cell.tried]

    def concerned(self, reading: Reading) -> list[Cell]:
        """Return the cells that a reading is about."""
        return [cell for cell in self.cells if reading.name in cell.lines]

    def near(self, reading: Reading) -> int:
        """Return how many cells a reading brings near."""
        return sum(reading.name in cell.near for cell in self.cells)

    def mirrored(self, reading: Reading) -> int:
        """Return how many it would bring near with the published values mirrored."""
        return sum(reading.name in cell.mirrored for cell in self.cells)

    def minutes(self, run: bool, of: Reading | None = None) -> float:
        """Return the CPU minutes of all runs, or of one reading's, or the estimate of the rest."""
        made = {reading.name for reading in readings() if reading.set and of in (None, reading)}
        lines = [x for cell in self.cells for name, x in cell.lines.items() if name in made]
        return sum(x["cpu_minutes"] for x in lines if (x["status"] != NOT_RUN) == run)

    def met_by(self, cells: list[Cell], leaks: bool | None = None) -> list[Cell]:
        """Return the cells that some reading brings near; with `leaks` False one without a leak."""
        leaky = {reading.name for reading in readings() if reading.leaks}
        barred = leaky if leaks is False else set()
        return [cell for cell in cells if set(cell.near) - barred]

    def leaking(self, what: str) -> int:
        """Return how many pairs of a cell and a reading that leaks were tried, or are near."""
        return self.count(what, [reading for reading in readings() if reading.leaks])

    def above(self) -> list[Cell]:
        """Return the cells whose published value is better than ours."""
        better = {"accuracy_pct": 1, "errors_count": -1}
        bases = ((cell, cell.base) for cell in self.cells)
        return [c for c, x in bases if better[x["metric"]] * (x["published"] - x["measured"]) > 0]

    def whole(self) -> list[Reading]:
        """Return the readings that bring all their cells near, of those run for several."""
        several = [r for r in readings() if len(self.tried(r)) > 1]
        return [r for r in several if self.near(r) == len(self.concerned(r))]

    def kept(self) -> list[str]:
        """Return for each reading with a table of its own what it keeps near, and of how many."""
        texts = []
        for reading in (reading for reading in readings() if reading.run):
            near = {place(x) for x in reference(reading.of) if x["in_band"] is True}
            own = {place(x): x["in_band"] for x in reading.ours(reference(reading.run or ""))}
            both = [own[cell] for cell in near if own.get(cell) is not None]
            texts += [f"`{reading.run}` {sum(both)} of {len(both)}"] if both else []
        return texts

    def best(self, experiment: str) -> str:
        """Return the readings of an experiment that bring most cells near, with the counts.

        More than two of them are only counted.
        """
        own = [r for r in self.readings(experiment) if self.tried(r)]
        most = max((self.near(r) for r in own), default=0)
        if not most:
            return "none brings one near"
        best = [r for r in own if self.near(r) == most]
        of = [f"{most} of {len(self.tried(r))}" for r in best]
        if len(best) > 2 and len(set(of)) == 1:
            return f"{len(best)} readings: {of[0]} each"
        return listing([f"{r.reads}: {count}" for r, count in zip(best, of, strict=True)])


def label(cell: Cell) -> str:
    """Return data set and kernel of a cell."""
    kernel, degree = KERNELS[cell.base["kernel"]], cell.base["degree"]
    return f"{name_of(cell.base['dataset'])}, {kernel}" + (
        "" if pd.isna(degree) else f" {degree:g}"
    )


def machine(cell: Cell) -> str:
    """Return the machine of a cell."""
    name = cell.base["machine"]
    return LABELS.get(name) or alias_of(name).label or name.upper()


def value(cell: Cell, number: float) -> str:
    """Return a measured or published value as it is printed."""
    return f"{number:.0f}" if cell.base["metric"] == "errors_count" else f"{number:.2f}"


def entry(cell: Cell, name: str) -> str:
    """Return what a reading found for a cell."""
    if name not in cell.tried:
        return "not run" if name in cell.lines else ""
    mark = "✓" if name in cell.closer else "(✓)" if name in cell.near else "✗"
    part = f", n = {cell.tried[name]['n']:g}" if name in cell.parts else ""
    return f"{value(cell, cell.tried[name]['measured'])} {mark}{part}"


def page() -> str:
    """Return the page that table and template make."""
    functions: dict[str, Callable[..., object]] = {
        f.__name__: f for f in (label, machine, value, entry, outside, sum, len, max)
    }
    text = rendered(TEMPLATE, t=Readings(), ENOUGH=ENOUGH, **functions)
    blocks = text.strip().split("\n\n")
    return "\n\n".join(_wrapped(block) for block in blocks if block.strip()) + "\n"


def _wrapped(block: str) -> str:
    """Return a table as it is, other text in lines of at most `WIDTH` characters."""
    block = block.strip("\n")
    return block if block.startswith(("|", "#")) else textwrap.fill(" ".join(block.split()), WIDTH)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
