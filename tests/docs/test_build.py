"""The documentation builds without a warning, from a copy that has nothing generated in it.

Pages show values as their tables print them.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import overflow

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("_build", "gallery", "generated", "pictures", "tables", "__pycache__")
#: Scripts of the gallery that start no processes; the build runs the others too.
SCRIPTS = ("boundaries", "certificate", "framework", "margin_ratio", "rmm_bound")
BESIDE = (
    *("mmbench", "examples", "configs", "benchmarks/results"),
    *("datasets/README.md", "results/reference"),
)
#: Experiments whose tables print error rates.
ERROR_RATES = ("rmm_journal_table4", "rmm_journal_table4_one_choice")


def pictures_without_text(html: Path) -> Iterator[tuple[str, str]]:
    """Yield the pictures of a built site whose alternative text has less than three words."""
    for page in sorted(html.rglob("*.html")):
        for picture in re.findall(r"<img\b[^>]*>", page.read_text(encoding="utf-8")):
            (text,) = re.findall(r'\balt="([^"]*)"', picture) or [""]
            if len(text.split()) < 3:
                yield str(page.relative_to(html)), picture


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> Path:
    """Build the site without a warning, and return its folder."""
    pytest.importorskip("sphinx", reason="needs the extra mmbench[docs]")
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    for name in BESIDE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(ROOT / name)
    for page in ROOT.glob("*.md"):
        (folder / page.name).symlink_to(page)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "--keep-going", "docs", "html"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.mark.slow
def test_the_pages_and_the_gallery_build_without_a_warning(html):
    assert (html / "machines" / "rmm.html").exists()
    assert not list(pictures_without_text(html))


@pytest.mark.slow
def test_a_browser_finds_no_fault_on_any_page(browser, html):
    """No error, missing file or request to another host, and no page wider than a phone."""
    window, found = browser(width=390), {}
    pages = [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]
    for page in pages:
        window.goto(page.as_uri(), wait_until="load")
        # the theme and scikit-learn's pictures of machines log what they do, and warn
        faults = [text for text in window.faults if not text.startswith(("log: ", "warning: "))]
        if overflow(window) > 0:
            faults.append(f"{overflow(window)} pixels too wide")
        if faults:
            found[str(page.relative_to(html))] = faults
        window.faults.clear()
    assert len(pages) > 100
    assert not found


#: Open all folded tables, and return for each table its heads, and by how many pixels it scrolls.
TABLES = """() => {
  for (const fold of document.querySelectorAll("details")) fold.open = true;
  dispatchEvent(new Event("resize"));
  return [...document.querySelectorAll(".pst-scrollable-table-container > table")].map(table => [
    [...table.rows[0].cells].map(cell => cell.textContent.trim()).join("|"),
    table.parentElement.scrollWidth - table.parentElement.clientWidth,
  ]);
}"""
#: Scroll all tables to the right, and return the shift of the first cells that do not follow.
SHIFTS = """() => [...document.querySelectorAll(".pst-scrollable-table-container > table")].filter(
  table => table.parentElement.scrollWidth > table.parentElement.clientWidth + 100
).map(table => {
  table.parentElement.scrollLeft = 100;
  const left = element => Math.round(element.getBoundingClientRect().left);
  return left(table.rows[1].cells[0]) - left(table.parentElement);
}).filter(shift => Math.abs(shift) > 2)"""
#: Return the names of rows that are wider than their cells.
CUT = """() => [...document.querySelectorAll("td:first-child")]
  .filter(cell => cell.scrollWidth > cell.clientWidth + 2).map(cell => cell.textContent)"""


@pytest.mark.slow
def test_tables_fit_the_page_or_keep_the_names_of_their_rows(browser, html):
    """Columns of lists of parameters do not make a table several pages wide."""
    window = browser()
    for name in ("verdict", "m4_table2"):
        window.goto((html / "tables" / f"{name}.html").as_uri(), wait_until="load")
        too_wide = {heads: pixels for heads, pixels in window.evaluate(TABLES) if pixels > 2}
        assert not [heads for heads in too_wide if heads.startswith("machine|fits|route")]
        assert name == "verdict" or not too_wide
        assert window.evaluate(SHIFTS) == []
    phone = browser(width=390)
    phone.goto((html / "tables" / "verdict.html").as_uri(), wait_until="load")
    phone.evaluate(TABLES)
    assert phone.evaluate(CUT) == []


@pytest.mark.slow
def test_indices_stand_below_their_letters(browser, html):
    """Also without a mathematical font, which browsers on phones may lack."""
    window = browser()
    window.goto((html / "machines" / "mmrm.html").as_uri(), wait_until="load")
    ends = window.locator("msub").evaluate_all(
        "scripts => scripts.filter(script => script.children[0].textContent === 'x')"
        ".map(script => [...script.children].map(part => part.getBoundingClientRect().bottom))"
    )
    assert ends
    assert all(index > letter + 2 for letter, index in ends)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_gallery_runs(name: str):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs the extra mmbench[report]")
    pyplot.switch_backend("agg")
    runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    assert figures
    for figure in figures:  # sphinx-gallery makes the alternative texts of titles
        titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
        assert len(" ".join(titles).split()) >= 3
    pyplot.close("all")


@pytest.fixture
def extensions(monkeypatch):
    """Return the modules `measured` and `published` of docs/_ext."""
    pytest.importorskip("sphinx", reason="needs the extra mmbench[docs]")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return [importlib.import_module(name) for name in ("measured", "published")]


@pytest.mark.parametrize("name", ERROR_RATES)
def test_error_rates_are_drawn_as_the_table_prints_them(extensions, name):
    measured, published = extensions
    text = (ROOT / "results" / "reference" / name / "table.md").read_text(encoding="utf-8")
    printed = [line.split("|")[3].strip(" *") for line in text.splitlines()[4:6]]
    rows = published.compared(name)
    assert set(rows["metric"]) == {measured.ERROR_RATE}
    for column, cell in zip(("measured", "published"), printed, strict=True):
        assert cell.startswith(f"{rows[column].iloc[0]:.1f} ± ")
    assert "error (points)\n> 0: worse here" in published.DIFFERENCES[measured.ERROR_RATE]


@pytest.mark.parametrize("name", ERROR_RATES)
def test_the_results_of_a_machine_have_the_error_rates_of_the_table(extensions, name):
    measured, _ = extensions
    cells = [cell for cell in measured.cells(measured.REFERENCE / name) if cell.column == "svm"]
    (cell,) = (cell for cell in cells if cell.place[0] == "ida_breast_cancer")
    assert cell.measured > cell.published == pytest.approx(25.3)
    assert str(cell).endswith(", 25.3 % errors published")
    assert measured._better(25.0, 26.0, cell.metric)


def test_accuracies_and_numbers_of_errors_are_shown_as_they_are(extensions):
    measured, published = extensions
    metrics = {
        name: set(published.compared(name)["metric"]) for name in ("mmrm_table1", "usps_rbf")
    }
    assert metrics == {"mmrm_table1": {"accuracy_pct"}, "usps_rbf": {"errors_count"}}
    assert not measured._better(25.0, 26.0, "accuracy_pct")


@pytest.mark.parametrize("name", ["rmm_table1_mnist23", "mmrm_table2"])
def test_machines_are_compared_by_one_metric(extensions, name):
    """Some machines have no published value, and the paper states numbers of errors."""
    measured, _ = extensions
    metrics = defaultdict(set)
    for cell in measured.cells(measured.REFERENCE / name):
        metrics[cell.place].add(cell.metric)
    assert all(len(found) == 1 for found in metrics.values())
