"""Tables of earlier full runs: a CSV and its Markdown in a folder, without the records."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mmbench.errors import UserError
from mmbench.jobs.store import Key, Plan
from mmbench.tables.rows import NO_TARGET, Row

CSV = "table.csv"
MARKDOWN = "table.md"
NUMBERS = ("measured", "sd", "se", "published", "published_spread", "half_width", "z")


@dataclass(frozen=True)
class Reference:
    """The table of an earlier run."""

    folder: Path
    #: Made of the configuration of the same name, which gives the layout.
    plan: Plan
    rows: list[Row]
    #: By data set: where the data differ from what the paper used.
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The experiment's name, which is that of the folder."""
        return self.folder.name

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of a table that is made of the CSV must know."""
        return (f"Made of {self.folder / CSV}: what only records hold is not shown.",)

    @property
    def text(self) -> str | None:
        """The table as it was drawn from the records, if it is there."""
        path = self.folder / MARKDOWN
        return path.read_text(encoding="utf-8") if path.is_file() else None


def read_reference(folder: Path, plan: Plan | None) -> Reference:
    """Return the table in a folder.

    Raises
    ------
    UserError
        If its CSV is no long table.
    """
    path = folder / CSV
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        rows = [_row(line) for line in lines]
    except (KeyError, ValueError, csv.Error) as error:
        raise UserError(f"{path}: not a table of mmbench ({error})") from None
    deviations = {line["dataset"]: _notes(line)[1] for line in lines}
    told = {name: (text,) for name, text in deviations.items() if text}
    return Reference(folder, plan or Plan(folder.name), rows, told)


def _notes(line: Mapping[str, str]) -> tuple[str, str]:
    """Return what is said of a line's cell, and after it what is said of its data set."""
    own, _, deviation = line["note"].partition(f"{line['dataset']}: ")
    return own.removesuffix("; "), deviation


def _row(line: Mapping[str, str]) -> Row:
    degree, size = (int(line[name]) if line.get(name) else None for name in ("degree", "size"))
    note, mark, reason = _notes(line)[0].partition(NO_TARGET)
    return Row(
        Key(line["dataset"], line["kernel"], degree, line["machine"], size),
        line["metric"],
        line["status"],
        note.removesuffix("; "),
        mark + reason,
        n=int(line["n"]) if line["n"] else None,
        in_band={"True": True, "False": False}.get(line["in_band"]),
        **{name: float(line[name]) for name in NUMBERS if line.get(name)},
    )
