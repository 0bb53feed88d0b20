"""Readings of the papers for the published values that do not fit: configurations and their table.

``readings.yaml`` states the readings. Each is an experiment of the reference tables with what its
paper leaves open decided another way, for the cells outside two standard errors.

    python scripts/readings.py write FOLDER       # a configuration a reading, for mmbench run
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from mmbench.config.overrides import Override, parse_overrides
from mmbench.resources import CONFIGS, REFERENCE

SOURCE = Path(__file__).with_suffix(".yaml")
#: What names a cell within an experiment.
CELL = ["dataset", "kernel", "degree", "machine"]


@dataclass(frozen=True)
class Reading:
    """An entry of ``readings.yaml``, whose head says what the fields are."""

    name: str
    of: str
    reads: str
    because: str
    set: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, list[Any]] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)
    times: float = 1.0
    run: str | None = None
    spread: str | None = None

    @property
    def cells(self) -> pd.DataFrame:
        """The cells outside the band that the reading concerns."""
        cells = outside(self.of)
        for column, values in self.only.items():
            cells = cells[cells[column].isin(values)]
        return cells


@cache
def readings() -> tuple[Reading, ...]:
    """Return all readings."""
    entries = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    return tuple(Reading(name, **entry) for name, entry in entries.items())


@cache
def compared(experiment: str) -> pd.DataFrame:
    """Return the cells of a reference table that are compared with the paper."""
    table = pd.read_csv(REFERENCE / experiment / "table.csv", dtype={"in_band": "boolean"})
    return table[table.in_band.notna()]


def outside(experiment: str) -> pd.DataFrame:
    """Return the compared cells whose published value is outside two standard errors."""
    cells = compared(experiment)
    return cells[~cells.in_band.astype(bool)]


def config(reading: Reading) -> dict[str, Any]:
    """Return the configuration of a reading, restricted to what has a cell outside the band."""
    content = yaml.safe_load((CONFIGS / f"{reading.of}.yaml").read_text(encoding="utf-8"))
    content |= {"name": reading.name}
    for key, value in reading.set.items():
        [place] = parse_overrides([f"{key}=0"])
        Override(key, place.keys, value).apply(content)
    cells = reading.cells
    content.pop("published_only", None)
    wanted = {reading.datasets.get(name, name) for name in cells.dataset}
    content["datasets"] = [entry for entry in content["datasets"] if _name(entry) in wanted]
    content["machines"] = _columns(content["machines"], cells)
    content["kernel"] = sorted(set(cells.kernel))
    degrees = sorted({int(degree) for degree in cells.degree.dropna()})
    content["degree"] = degrees or None
    return {key: value for key, value in content.items() if value is not None}


def _name(entry: str | Mapping[str, Any]) -> str:
    return entry if isinstance(entry, str) else entry["name"]


def _columns(machines: Mapping[str, Any], cells: pd.DataFrame) -> dict[str, Any]:
    """Return the columns that have cells, each with their kernels, and those that they use."""
    kernels = {column: set(cells.kernel[cells.machine == column]) for column in machines}
    for column, entry in machines.items():
        if (entry or {}).get("use"):
            kernels[entry["use"]] |= kernels[column]
    return {
        column: {**(entry or {}), "kernel": sorted(kernels[column])}
        for column, entry in machines.items()
        if kernels[column]
    }


def write(folder: Path) -> None:
    """Write the configurations of all readings that are run."""
    folder.mkdir(parents=True, exist_ok=True)
    for reading in readings():
        if reading.set:
            text = yaml.safe_dump(config(reading), sort_keys=False, allow_unicode=True)
            head = f"# {reading.of}: {reading.reads}.\n# {reading.because}\n"
            (folder / f"{reading.name}.yaml").write_text(head + text, encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Do what is asked."""
    match arguments:
        case ["write", folder]:
            write(Path(folder))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
