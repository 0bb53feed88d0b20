"""Figures in the text on the reference tables follow from the tables."""

from __future__ import annotations

import re

import pytest

from mmbench.results.statistics import counting_sd, difference_se
from results.pages import reference_text
from results.pages.reference_text import PAGE, REFERENCE, TEMPLATE, Table, page, table

#: Numbers that are no results: names, settings of the papers and of the data.
GIVEN = (
    r"\*\*.*?\*\*|`.*?`|\bM4\b|degrees? \d( to \d| and \d)?|ν = [\d.]+|\(30\)|[Vv]ersion \d"
    r"|80 principal|of 6238|11000 to 13000|90/10|1e-[36]|after 15|40000 digits|3 against 8|C = 1000"
    r"|\bd = \d+|[γD] = [\d.]+|1984 test digits|view 2|50 components"
)


def test_the_page_is_what_the_tables_and_the_template_say() -> None:
    assert page() == PAGE.read_text(), "run results/pages/reference_text.py"


def test_every_other_figure_of_the_template_is_marked_as_measured_apart() -> None:
    text = re.sub(r"{% macro.*?{% endmacro %}|^#.*?$", "", TEMPLATE.read_text(), flags=re.S | re.M)
    text = re.sub(r"{% call apart\(\) %}.*?{% endcall %}|{{.*?}}|{%.*?%}", "", text, flags=re.S)
    assert re.findall(r"\S*\d\S*", re.sub(GIVEN, "", " ".join(text.split()))) == []


@pytest.mark.slow
def test_a_table_that_says_otherwise_stops_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of the RMM's errors on 2/3-MNIST changed, "as many at degree 1" is not true."""
    changed = Table("rmm_table1_mnist23")
    rows = changed.rows("rmm", metric="errors_count", degree=1)
    changed.cells = changed.cells.astype({"measured": float})
    changed.cells.loc[rows.index, "measured"] += 1
    tables = {changed.results.name: changed}
    monkeypatch.setattr(reference_text, "table", lambda name: tables.get(name) or table(name))
    with pytest.raises(ValueError, match="do not say so: as many at degree 1"):
        page()


def test_a_raised_version_makes_the_tables_of_a_machine_older(monkeypatch: pytest.MonkeyPatch):
    read = reference_text.version_of
    monkeypatch.setattr(reference_text, "version_of", lambda m, k: read(m, k) + (m == "m4"))
    (row,) = [line for line in reference_text.versions().splitlines() if "`m4_fig7`" in line]
    assert re.search(r"M4 \d+ \([0-9a-f]{12}\)", row)
    assert "M4" in row.split("|")[3]


def test_a_machine_with_several_kernels_is_named_once() -> None:
    for row in reference_text.versions().splitlines():
        if row.startswith("| `"):
            found = re.findall(
                r"(?:^|; )([^;]+?) \d[^;(]*(\([0-9a-f]*\))?", row.split("|")[2].strip()
            )
            assert len(found) == len(set(found)), row
    assert "SVM 9 linear, 6 RBF" in reference_text.versions()


def test_every_table_has_a_state_or_states_no_version() -> None:
    counted, _, rows = reference_text.versions().partition("\n\n")
    tables = {path.parent.name for path in REFERENCE.glob("*/table.csv")}
    listed = re.findall(r"`(\w+)`", counted) + re.findall(r"^\| `(\w+)`", rows, re.M)
    assert sorted(listed) == sorted(tables)
    numbers = list(map(int, re.findall(r"\d+", re.sub("`.*?`", "", counted))))
    assert sum(numbers) == len(tables)
    assert rows.count("| – |") == numbers[0]


def test_the_mark_of_the_rmm_with_rbf_on_optical_digits_is_that_of_the_mean() -> None:
    (row,) = Table("rmm_table1_opt").rows("rmm", kernel="rbf").itertuples()
    counting = counting_sd(row.measured, 1797)
    se = difference_se(row.sd, int(row.n), 1, counting, same_test_rows=True)
    assert bool(row.in_band) == (abs(row.published - row.measured) <= 2 * se) == False  # noqa: E712
