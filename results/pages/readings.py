"""Other readings of the papers' protocols: their configurations and the table of their results.

``readings.yaml`` states the readings. A reading repeats an experiment of the reference tables, but
with another decision on a point that the paper leaves open. A table cell is run only if its
published value is outside two standard errors.

    python -m results.pages.readings write FOLDER       # write one configuration per reading
    python -m results.pages.readings collect RESULTS    # add the results of these configurations
    python -m results.pages.readings                    # write the table again

The table is results/reference/readings.csv, with one row per cell and reading.
``readings_page.py`` writes the page beside the table.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import yaml

from mmbench.config.plan import plan_of
from mmbench.config.read import load_config, set_value
from mmbench.datasets.card_files import LOADER
from mmbench.results.cells import METRIC, rows_of
from mmbench.results.folder import read_reference, read_results
from mmbench.results.frames import Results
from mmbench.results.splits import STAGES
from mmbench.results.statistics import counting_sd, difference_se, z_value
from mmbench.tables.blocks import total
from mmbench.tables.build import laid_out

ROOT = Path(__file__).resolve().parents[2]
CONFIGS, REFERENCE = ROOT / "configs", ROOT / "results" / "reference"
SOURCE = Path(__file__).with_suffix(".yaml")
TABLE = REFERENCE / "readings.csv"
#: Columns that identify a cell within an experiment.
CELL = ["dataset", "kernel", "degree", "machine"]
#: Columns with results of a run: `splits` splits were planned, and `n` splits were run.
MEASURED = ["measured", "sd", "n", "splits", "cpu_minutes", "status"]
COLUMNS = ["experiment", "reading", *CELL, "metric", "published", *MEASURED]
COLUMNS += ["half_width", "z", "in_band"]
NOT_RUN = "not_run"
#: An unfinished cell counts if at least this number of splits was run.
ENOUGH = 10

Line = Mapping[str, Any]
Place = tuple[Any, ...]
Found = dict[tuple[str, Place], Line]


@dataclass(frozen=True)
class Reading:
    """An entry of ``readings.yaml``; the comments in the head of the YAML file explain the keys."""

    name: str
    of: str
    reads: str
    because: str
    set: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, list[Any]] = field(default_factory=dict)
    datasets: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)
    times: float = 1.0
    whole: bool = False
    run: str | None = None
    spread: str | None = None
    later: bool = False

    @property
    def cells(self) -> list[Line]:
        """Cells that the reading concerns, with a published value outside two standard errors."""
        return [cell for cell in outside(self.of) if self.concerns(cell)]

    def concerns(self, cell: Line) -> bool:
        """Return whether the reading concerns a cell: whether the cell agrees with `only`."""
        return all(cell[column] in values for column, values in self.only.items())

    def ours(self, lines: Iterable[Line]) -> list[Line]:
        """Return lines of the reading with the experiment's names of data sets and machines.

        Machines in `columns` are estimators without a kernel. Their lines get the first kernel of
        `only`.
        """
        datasets = {theirs: ours for ours, theirs in self.datasets.items()}
        machines = {theirs: ours for ours, theirs in self.columns.items()}
        found = []
        for line in lines:
            dataset, name = line["dataset"], line["machine"]
            kernel = self.only["kernel"][0] if name in machines else line["kernel"]
            names = {"dataset": datasets.get(dataset, dataset), "machine": machines.get(name, name)}
            found.append({**line, **names, "kernel": kernel})
        return found

    def takes(self, line: Line) -> bool:
        """Return whether the result of a cell counts.

        The result counts if all splits were run. Unless `whole` is set, `ENOUGH` splits suffice.
        """
        return line["n"] == line["splits"] or (line["n"] >= ENOUGH and not self.whole)

    def published_splits(self, cell: Line) -> int | None:
        """Return the number of splits behind a published mean, if the reading states its own."""
        if self.run is None:
            return self.set.get("published_splits")
        dataset = self.datasets.get(cell["dataset"], cell["dataset"])
        return results_of(self.run).plan.published_splits.get(dataset)

    @property
    def leaks(self) -> bool:
        """Whether parameters are selected on test rows."""
        return self.set.get("select", {}).get("validation") == "test"


@cache
def readings() -> tuple[Reading, ...]:
    """Return all readings."""
    entries = yaml.load(SOURCE.read_text(encoding="utf-8"), LOADER)
    return tuple(Reading(name, **entry) for name, entry in entries.items())


def lines_of(results: Results) -> list[Line]:
    """Return the cells of an experiment, each with its CPU minutes.

    The CPU minutes are the sum of selection, training and test over all splits that were run.
    """
    foreign, lines = results.foreign, []
    for row in rows_of(results.cells[results.cells.dataset != ""]):
        seconds, n = total(results, row.key, STAGES), results.row(row.key, METRIC).n
        minutes = None if seconds is None else seconds * n / 60
        kernel = None if row.machine in foreign else row.kernel
        lines.append({**row._asdict(), "kernel": kernel, "cpu_minutes": minutes})
    return lines


def place(line: Line) -> Place:
    """Return the values that identify a line within an experiment: its cell and its metric."""
    return tuple(line[column] for column in (*CELL, "metric"))


@cache
def results_of(experiment: str) -> Results:
    """Return the reference results of an experiment."""
    return laid_out(read_reference(REFERENCE / experiment, frames=()))


@cache
def reference(experiment: str) -> list[Line]:
    """Return the lines of the reference results of an experiment."""
    return lines_of(results_of(experiment))


def outside(experiment: str) -> list[Line]:
    """Return the compared cells whose published value is outside two standard errors."""
    return [line for line in reference(experiment) if line["in_band"] is False]


def config(reading: Reading) -> dict[str, Any]:
    """Return the configuration of a reading.

    The configuration is restricted to the data sets, machines and kernels of `Reading.cells`.
    """
    content = yaml.load((CONFIGS / f"{reading.of}.yaml").read_text(encoding="utf-8"), LOADER)
    content |= {"name": reading.name, "published_only": []}
    for key, value in reading.set.items():
        set_value(content, key, value, key)
    cells = reading.cells
    wanted = {reading.datasets.get(cell["dataset"], cell["dataset"]) for cell in cells}
    names = [entry if isinstance(entry, str) else entry["name"] for entry in content["datasets"]]
    content["datasets"] = [
        e for e, name in zip(content["datasets"], names, strict=True) if name in wanted
    ]
    columns = _columns(content["machines"], cells)
    content["machines"] = {reading.columns.get(key, key): entry for key, entry in columns.items()}
    content["kernel"] = sorted({cell["kernel"] for cell in cells})
    content["degree"] = sorted({int(cell["degree"]) for cell in cells if cell["degree"]}) or None
    if "poly" not in content["kernel"]:
        content.pop("kernel_scaling", None)
    return {key: value for key, value in content.items() if value is not None}


def _columns(machines: Mapping[str, Any], cells: list[Line]) -> dict[str, Any]:
    """Return the columns with cells, and the columns whose parameters such columns reuse.

    The kernels of a column are the kernels of its cells, and of the columns that reuse its
    parameters.
    """
    kernels: dict[str, set[str]] = {column: set() for column in machines}
    for cell in cells:
        kernels[cell["machine"]].add(cell["kernel"])
    for column, entry in machines.items():
        if (entry or {}).get("use"):
            kernels[entry["use"]] |= kernels[column]
    return {
        column: _column(entry or {}, kernels[column])
        for column, entry in machines.items()
        if kernels[column]
    }


def _column(entry: Mapping[str, Any], kernels: set[str]) -> dict[str, Any]:
    """Return a column restricted to some kernels; gamma is searched only with the RBF kernel."""
    column = {**entry, "kernel": sorted(kernels)}
    if "grid" in column and "rbf" not in kernels:
        column["grid"] = {axis: v for axis, v in column["grid"].items() if axis != "gamma"}
    return column


def write(folder: Path) -> None:
    """Write the configuration of each reading that changes settings (`set`) and has cells."""
    folder.mkdir(parents=True, exist_ok=True)
    for reading in readings():
        if reading.set and reading.cells:
            text = yaml.safe_dump(config(reading), sort_keys=False, allow_unicode=True)
            head = f"# {reading.of}: {reading.reads}.\n# {reading.because}\n"
            (folder / f"{reading.name}.yaml").write_text(head + text, encoding="utf-8")


def collect(results: Path) -> Found:
    """Return the measured lines in a folder of runs; the cells must count (`Reading.takes`)."""
    found: Found = {}
    for reading in readings():
        folder = results / reading.name
        if reading.set and folder.is_dir():
            planned, runs = splits(reading), map(laid_out, read_results([folder]))
            lines = (
                line | {"splits": planned[line["dataset"]]}
                for run in runs
                for line in lines_of(run)
                if line["measured"] is not None
            )
            enough = reading.ours(filter(reading.takes, lines))
            found |= {(reading.name, place(line)): line for line in enough}
    return found


def splits(reading: Reading) -> dict[str, int]:
    """Return the number of splits of each data set of a reading, including splits not yet run."""
    with TemporaryDirectory() as folder:  # `parameters_from` may name another reading
        write(Path(folder))
        plan = plan_of(load_config(Path(folder) / f"{reading.name}.yaml"))
    return {cell.key.dataset: cell.n_splits for cell in plan.cells}


def table(found: Found) -> list[Line]:
    """Return the lines of the table of readings.

    Each cell outside two standard errors has a line of the reference run and one line per reading.

    Parameters
    ----------
    found : mapping of (reading, place) to line
        Lines that were measured by runs of readings.
    """
    lines = []
    for experiment in dict.fromkeys(reading.of for reading in readings()):
        own = [reading for reading in readings() if reading.of == experiment]
        for cell in outside(experiment):
            lines.append(_line(cell, experiment, cell))
            for reading in own:
                if reading.concerns(cell):
                    measured = _measured(reading, cell, found)
                    m = reading.published_splits(cell)
                    lines.append(_line(cell, reading.name, measured, reading.spread, m))
    return lines


def _measured(reading: Reading, cell: Line, found: Found) -> Line:
    """Return the measured line of a reading for a cell, or the reference line if `spread` is set.

    If the reading was not run for the cell, the line contains only an estimate of the CPU minutes.
    """
    if reading.spread:
        return cell
    if reading.run:
        lines = {place(line): line for line in reading.ours(reference(reading.run))}
        line = lines.get(place(cell), {})
    else:
        line = found.get((reading.name, place(cell)), {})
    estimate = {"cpu_minutes": reading.times * cell["cpu_minutes"], "status": NOT_RUN}
    return line if line.get("measured") is not None else estimate


def _line(
    cell: Line, reading: str, measured: Line, spread: str | None = None, m: int | None = None
) -> Line:
    line = {column: cell[column] for column in ("experiment", *CELL, "metric", "published")}
    line |= {"reading": reading} | {column: measured.get(column) for column in MEASURED}
    if measured.get("measured") is None:
        return line
    line["splits"] = measured.get("splits") or measured["n"]
    half_width = 2 * standard_error(cell, measured, spread, m)
    z = z_value(measured["measured"], cell["published"], half_width / 2)
    return line | {"half_width": half_width, "z": z, "in_band": abs(z) <= 2 + 1e-9}


def standard_error(
    cell: Line, measured: Line, spread: str | None = None, m: int | None = None
) -> float:
    """Return the standard error of the difference between a measured and the published value.

    Parameters
    ----------
    cell : mapping
        A line of a reference table.
    measured : mapping
        A line with the keys "measured", "sd" and "n".
    spread : {"se", "sd"}, optional
        Meaning of the number that the paper prints after its mean: "se" is the standard error of
        the mean, "sd" is the standard deviation over the splits. If None, the printed number is not
        used, and the standard error is computed by `difference_se`, as in all tables.
    m : int, optional
        Number of splits behind the published mean; by default the experiment's.
    """
    paper = _published_lines(cell["experiment"])[place(cell)]
    sd, n = measured["sd"], int(measured["n"])
    if spread is not None:
        printed = cell["published_spread"] / (1 if spread == "se" else paper["n_splits"] ** 0.5)
        return math.hypot(printed, sd / n**0.5)
    official = cell["metric"] == "errors_count"
    counting = counting_sd(measured["measured"], paper["n_test"]) if official else 0.0
    return difference_se(sd, n, m or paper["n_splits"], counting, official)


@cache
def _published_lines(experiment: str) -> dict[Place, Line]:
    return {place(row): row for row in results_of(experiment).published}


def earlier() -> Found:
    """Return the lines of the existing table, or an empty dict if there is no table."""
    if not TABLE.exists():
        return {}
    lines = rows_of(pd.read_csv(TABLE, dtype={"in_band": "boolean"}))
    return {(line.reading, place(line._asdict())): line._asdict() for line in lines}


def write_table(found: Found) -> None:
    """Write the table; a line in `found` is ignored if the existing line has more splits."""
    known = earlier()
    found = {key: x for key, x in found.items() if x["n"] >= (known.get(key, x)["n"] or 0)}
    frame = pd.DataFrame(table(known | found), columns=COLUMNS)
    frame.to_csv(TABLE, index=False, float_format="%.10g")


def main(arguments: list[str]) -> None:
    """Write the configurations, collect the results of runs, or write the table again."""
    match arguments:
        case ["write", folder]:
            write(Path(folder))
        case ["collect", folder]:
            write_table(collect(Path(folder)))
        case []:
            write_table({})
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
