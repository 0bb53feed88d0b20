"""Results folders, which hold experiments or reference tables, the tables of earlier full runs."""

import csv
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mmbench import resources
from mmbench.errors import UserError
from mmbench.jobs.store import CONFIG, Key, Plan
from mmbench.tables.records import Experiment, Replan, read_experiment
from mmbench.tables.rows import NO_TARGET, Row, with_marks

CSV = "table.csv"
MARKDOWN = "table.md"
NUMBERS = ("measured", "sd", "se", "published", "published_spread", "half_width", "z")


@dataclass(frozen=True)
class Reference:
    """A reference table: the long table of an earlier run, without records."""

    folder: Path
    #: Plan of the configuration of the same name, which names the layout.
    plan: Plan
    rows: list[Row]
    #: Differences from the paper's data, by data set.
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the experiment and of the folder."""
        return self.folder.name

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remark below tables that are drawn from the CSV."""
        return (f"Made of {self.folder / CSV}: what only records hold is not shown.",)

    @property
    def text(self) -> str | None:
        """Markdown table drawn from the records at the time of the run; None if it is missing."""
        path = self.folder / MARKDOWN
        return path.read_text(encoding="utf-8") if path.is_file() else None


def read_reference(folder: Path, plan: Plan | None) -> Reference:
    """Return the reference table in a folder.

    Raises UserError if the CSV file is not a long table of mmbench.
    """
    path = folder / CSV
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        rows = with_marks(map(_row, lines))
    except (KeyError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: not a table of mmbench ({error})") from None
    deviations = {line["dataset"]: _notes(line)[1] for line in lines}
    texts = {name: (text,) for name, text in deviations.items() if text}
    return Reference(folder, plan or Plan(folder.name), rows, texts)


def _notes(line: Mapping[str, str]) -> tuple[str, str]:
    """Split the note of a CSV line into the note on the table cell and the one on the data set."""
    own, _, deviation = line["note"].partition(f"{line['dataset']}: ")
    return own.removesuffix("; "), deviation


def _row(line: Mapping[str, str]) -> Row:
    degree, size = (int(line[name]) if line.get(name) else None for name in ("degree", "size"))
    note, mark, reason = _notes(line)[0].partition(NO_TARGET)
    numbers: dict[str, Any] = {name: float(line[name]) for name in NUMBERS if line.get(name)}
    return Row(
        Key(line["dataset"], line["kernel"], degree, line["machine"], size),
        line["metric"],
        line["status"],
        note.removesuffix("; "),
        mark + reason,
        n=int(line["n"]) if line["n"] else None,
        in_band={"True": True, "False": False}.get(line["in_band"]),
        **numbers,
    )


Item = TypeVar("Item")
Made = TypeVar("Made")

#: Name of the folder with the reference tables.
REFERENCE = "reference"


def read_results(
    paths: Iterable[Path],
    replan: Replan = lambda folder: None,
    mix: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> list[Experiment | Reference]:
    """Return the experiments and reference tables in some folders.

    A path is a results folder, or the folder of one experiment. `replan` and `mix` are passed to
    `read_experiment`; `say` is called with a message for each folder that cannot be read. Raises
    UserError if a path is not a results folder, or if no folder can be read.
    """

    def read(folder: Path) -> Experiment | Reference:
        if (folder / CONFIG).is_file():
            return read_experiment(folder, replan, mix)
        return read_reference(folder, replan(folder))

    return each(read, (folder for path in paths for folder in folders_in(path)), say)


def each(
    make: Callable[[Item], Made], items: Iterable[Item], say: Callable[[str], object]
) -> list[Made]:
    """Return `make(item)` for all items; `say` is called with the message of each failure.

    Raises UserError if `make` fails for all items.
    """
    made: list[Made] = []
    faults: list[str] = []
    for item in items:
        try:
            made.append(make(item))
        except (UserError, OSError) as error:
            faults.append(" ".join(str(error).split()))
    if not made:
        raise UserError(f"{faults[0]}{f'; so are {len(faults) - 1} others' if faults[1:] else ''}")
    for fault in faults:
        say(fault)
    return made


def folders_in(path: Path) -> list[Path]:
    """Return the folders of experiments below `path`, or `path` if it holds an experiment.

    If there are no experiments, the folders of reference tables are returned. The path "reference"
    means the tables distributed with mmbench, unless a folder of this name exists.

    Raises UserError if `path` is not a folder, or holds neither experiments nor reference tables.
    """
    if path.parts[:1] == (REFERENCE,) and not path.exists():
        path = resources.REFERENCE.joinpath(*path.parts[1:])
    if not path.is_dir():
        kind = "is a file, not a results folder" if path.exists() else "no such folder"
        raise UserError(f"{path}: {kind}")
    for mark in (CONFIG, CSV):
        if (path / mark).is_file():
            return [path]
    for mark in (f"*/{CONFIG}", f"*/{CSV}", f"{REFERENCE}/*/{CSV}"):
        found = sorted(file.parent for file in path.glob(mark) if file.parent.name != REFERENCE)
        if found:
            return found
    raise UserError(
        f"{path}: not a results folder, neither it nor a folder in it has {CONFIG} or {CSV}"
    )
