"""The page on the data sets has a row for each card, with the sizes that the card states."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def page(monkeypatch) -> str:
    """Return the text of the page with its tables."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    content = [(DOCS / "cards.md").read_text(encoding="utf-8")]
    importlib.import_module("cards").write_tables(None, "cards", content)
    return content[0]


def test_every_card_has_one_row(page):
    assert sorted(re.findall(r"^\| `(\w+)` \|", page, re.M)) == card_names()


def test_rows_state_sizes_and_licences(page):
    (row,) = re.findall(r"^\| `usps` \|.*$", page, re.M)
    card = load_card("usps")
    assert "9,298\u00a0×\u00a0256 | 10 |" in row
    assert row.endswith(f"{card.licence} |")


def test_the_papers_that_use_a_data_set_are_linked(page):
    (row,) = re.findall(r"^\| `usps` \|.*$", page, re.M)
    links = re.findall(r"\]\(/(papers/\w+)\.md\)", row)
    assert {"papers/mmrm", "papers/rmm"} <= set(links)
    assert all((DOCS / f"{link}.md").is_file() for link in re.findall(r"\(/(papers/\w+)\.md", page))
