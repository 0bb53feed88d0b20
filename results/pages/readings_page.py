"""Write results/reference/readings.md from its template.

All numbers are computed from readings.csv and from the reference tables of the experiments. A cell
is near in a reading if the published value is within two standard errors of the measured value.

python -m results.pages.readings_page            # writes the page
python -m results.pages.readings_page --check    # exits with 1 if the page differs
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pandas as pd
from scipy.stats import norm

from mmbench.machines import alias_of
from results.pages.readings import (
    CELL,
    ENOUGH,
    NOT_RUN,
    REFERENCE,
    TABLE,
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

#: Readings that need no run, and readings that select parameters on test rows.
SPREADS = [reading.name for reading in readings() if reading.spread]
LEAKS = [reading.name for reading in readings() if reading.leaks]
#: Flags of an attempt that are counted per cell.
FLAGS = ["tried", "part", "near", "honest", "mirrored", "closer", "closer_mirrored"]


def tables(lines: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the cells with a published value outside two standard errors, and the attempts: one
    row per cell and reading. `lines` is the table of readings.

    The mirrored value is the published value, reflected about the value of the reference run. An
    attempt is closer if it at least halves the distance of the reference run to the published or
    mirrored value. In other near attempts, the band is wider, or this distance is small.
    """
    groups = lines.groupby(["experiment", *CELL], sort=False, dropna=False)
    lines = lines.assign(cell=groups.ngroup())
    later = lines.cell.duplicated()  # the first line of a cell is the reference run
    cells, found = lines[~later].set_index("cell"), lines[later].copy()
    here = cells.measured[found.cell].to_numpy()
    mirrored = 2 * here - found.published
    half = (here - found.published).abs() / 2
    found["tried"] = found.status != NOT_RUN
    runs = [reading.name for reading in readings() if reading.set]
    found["minutes"] = found.cpu_minutes.where(found.reading.isin(runs))
    found["part"] = found.tried & (found.n < found.splits)
    found["near"] = found.tried & (found.in_band == "True")
    found["honest"] = found.near & ~found.reading.isin(LEAKS)
    found["mirrored"] = found.tried & ((found.measured - mirrored).abs() <= found.half_width)
    found["closer"] = found.near & ((found.measured - found.published).abs() <= half)
    found["closer_mirrored"] = found.mirrored & ((found.measured - mirrored).abs() <= half)
    counts = found.groupby("cell")[FLAGS].sum().reindex(cells.index, fill_value=0)
    draws = found[~found.reading.isin(SPREADS)].groupby("cell").tried.sum()
    cells = cells.join(counts).assign(redraw=redraw(cells))
    once = 1 - (1 - cells.redraw) ** draws.reindex(cells.index, fill_value=0)
    return cells.assign(redrawn_once=once), found


def redraw(cells: pd.DataFrame) -> pd.Series:
    """Return the probability that a published value is near if only the splits are drawn again.

    The old and the new mean both vary. Therefore the difference of the means is normal with the
    standard deviation sqrt(2) se, where se is the standard error of the old mean.
    """
    several = cells.n > 1
    error = (cells.sd / cells.n**0.5).where(several, cells.half_width / 2)
    lower, upper = (
        norm.cdf(cells.published + sign * cells.half_width, cells.measured, 2**0.5 * error)
        for sign in (-1, 1)
    )
    return upper - lower


def compared(cells: pd.DataFrame) -> int:
    """Return the number of compared cells in the reference tables."""
    lines = (line for experiment in cells.experiment.unique() for line in reference(experiment))
    return sum(line["in_band"] is not None for line in lines)


def better(cells: pd.DataFrame) -> int:
    """Return the number of cells whose published value is better than ours."""
    sign = cells.metric.map({"accuracy_pct": 1, "errors_count": -1})
    return int((sign * (cells.published - cells.measured) > 0).sum())


def kept() -> list[str]:
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


def best(found: pd.DataFrame, experiment: str) -> str:
    """Return the readings of an experiment with the most near cells, with the counts.

    If more than two readings have equal counts, the number of these readings is stated.
    """
    counts = found.groupby("reading")[["near", "tried"]].sum()
    own = {r.name: r.reads for r in readings() if r.of == experiment and r.name in counts.index}
    near, tried = (counts.loc[list(own), flag] for flag in ("near", "tried"))
    if not near.any():
        return "none gives a value in the band"
    texts = [
        (own[name], f"{near[name]} of {tried[name]}") for name in own if near[name] == near.max()
    ]
    if len(texts) > 2 and len({text for _, text in texts}) == 1:
        return f"{len(texts)} readings: {texts[0][1]} each"
    return listing(f"{reads}: {text}" for reads, text in texts)


def label(cell: Any) -> str:
    """Return the data set and the kernel of a cell, as printed."""
    degree = "" if pd.isna(cell.degree) else f" {cell.degree:g}"
    return f"{name_of(cell.dataset)}, {KERNELS[cell.kernel]}{degree}"


def machine(cell: Any) -> str:
    """Return the machine of a cell, as printed."""
    return LABELS.get(cell.machine) or alias_of(cell.machine).label or cell.machine.upper()


def value(number: float, metric: str) -> str:
    """Return a measured or published value as it is printed."""
    return f"{number:.0f}" if metric == "errors_count" else f"{number:.2f}"


def entry(attempts: pd.DataFrame, name: str) -> str:
    """Return the entry of a reading in the row of a cell: value, mark, and n if incomplete."""
    for line in attempts[attempts.reading == name].itertuples():
        mark = "✓" if line.closer else "(✓)" if line.near else "✗"
        part = f", n = {line.n:g}" if line.part else ""
        return f"{value(line.measured, line.metric)} {mark}{part}" if line.tried else "not run"
    return ""


def page() -> str:
    """Return the page that is rendered from the table and the template."""
    cells, found = tables(pd.read_csv(TABLE, dtype={"in_band": str}))
    used = (label, machine, value, entry, best, kept, compared, better, readings)
    functions: dict[str, Any] = {function.__name__: function for function in used}
    text = rendered(TEMPLATE, cells=cells, attempts=found, ENOUGH=ENOUGH, LEAKS=LEAKS, **functions)
    blocks = text.strip().split("\n\n")
    return "\n\n".join(_wrapped(block) for block in blocks if block.strip()) + "\n"


def _wrapped(block: str) -> str:
    """Break text into lines of at most `WIDTH` characters; keep tables and headings."""
    block = block.strip("\n")
    return block if block.startswith(("|", "#")) else textwrap.fill(" ".join(block.split()), WIDTH)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
