"""A report in a real browser: it loads in silence, sorts, filters, tells details, fits its window.

Without a browser these tests are skipped.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers.browser import open_page, overflow

from mmbench.resources import REFERENCE


@pytest.fixture
def window(browser):
    return browser()


@pytest.fixture
def site(both) -> Path:
    return both["index.html"].path.parent


def column(page, table: str, k: int) -> list[str]:
    rows = page.locator(f"{table} tbody tr:visible")
    return [row.locator("th, td").nth(k).inner_text().strip() for row in rows.all()]


#: Widths in CSS pixels: a desktop, the same at a zoom of 200 %, a small phone.
WIDTHS = (1280, 640, 320)
#: A page of every kind: of failures, of many classes, of names that break pages.
KINDS = (
    "index.html",
    "evil/index.html",
    "evil/cells/iris-rbf-rmm.html",
    "usps_rbf/index.html",
    "usps_rbf/cells/usps-rbf-svm.html",
)


@pytest.mark.parametrize("kind", KINDS)
def test_pages_load_without_a_word_and_fit_their_window(window, site, kind) -> None:
    open_page(window, site / kind)
    assert (window.locator(".plot .main-svg").count() > 0) == (
        window.locator("script[data-plot]").count() > 0
    )
    for width in WIDTHS:
        window.set_viewport_size({"width": width, "height": 800})
        assert overflow(window) <= 0, width


def test_a_click_on_a_head_sorts_and_the_next_one_turns_the_order(window, site) -> None:
    open_page(window, site / "usps_rbf" / "index.html")
    head = window.locator("#all-cells th", has_text="errors").first
    for order in ("ascending", "descending"):
        head.get_by_role("button").click()
        values = [float(value) for value in column(window, "#all-cells", 2)]
        assert values == sorted(values, reverse=order == "descending") and len(values) == 3
        assert head.get_attribute("aria-sort") == order


def test_a_table_is_filtered_by_words_and_by_a_choice(window, site) -> None:
    open_page(window, site / "evil" / "index.html")
    window.get_by_label("machine").select_option("RMM")
    assert column(window, "#all-cells", 1) == ["RMM", "RMM"]
    window.get_by_label("Find").fill("iris")
    assert column(window, "#all-cells", 0) == ["iris"]
    assert window.locator("output").inner_text() == "1 of 4"


def test_a_machine_is_not_shown_with_machines_whose_names_end_alike(window, results, pages) -> None:
    experiment = results.experiment("usps_rbf", layout="mmrm_table2", published_as={"iris": ""})
    for machine in ("svm", "fsvm", "sigma_svm"):
        for dataset in ("usps", "iris"):
            split = {"digest": "d", "n_train": 7291, "n_test": 2007}
            experiment.add(experiment.job(dataset, machine), 98, 2007, split=split)
    open_page(window, pages(experiment.folder)["usps_rbf/index.html"].path)
    window.locator("select[name=machine]").select_option("SVM")
    assert column(window, "#all-cells", 1) == ["SVM", "SVM"]
    for verdict, datasets in (("in band (all compared)", ["usps"]), ("not compared", ["iris"])):
        window.locator("select[name=verdict]").select_option(verdict)
        assert column(window, "#all-cells", 0) == datasets


def test_a_name_that_is_a_tag_is_shown_as_it_is(window, site) -> None:
    open_page(window, site / "evil" / "index.html")
    name = "<script>alert('x')</script>"
    assert any(cell.startswith(name) for cell in column(window, "#all-cells", 0))
    assert name in window.locator("#machine-differences").inner_text()


def test_details_come_with_the_pointer_and_the_cell_opens_with_a_click(window, site) -> None:
    open_page(window, site / "usps_rbf" / "index.html")
    cell = window.locator("#tables a[data-details]").first
    cell.hover()
    tip = window.get_by_role("tooltip")
    assert "published errors" in tip.inner_text()
    window.keyboard.press("Escape")
    assert not tip.is_visible()
    cell.click()
    assert window.url.endswith("usps_rbf/cells/usps-rbf-mmrm.html") and window.faults == []


def test_cells_are_reached_and_opened_with_the_keyboard(window, site) -> None:
    open_page(window, site / "usps_rbf" / "index.html")
    cell = window.locator("#tables a[data-details]").first
    while not cell.evaluate("link => link === document.activeElement"):
        window.keyboard.press("Tab")
    assert "published errors" in window.get_by_role("tooltip").inner_text()
    window.keyboard.press("Enter")
    window.wait_for_url("**/usps-rbf-mmrm.html")


def test_the_first_tap_tells_details_and_the_second_opens_the_cell(browser, site) -> None:
    page = browser(width=390, has_touch=True, is_mobile=True)
    open_page(page, site / "usps_rbf" / "index.html")
    cell = page.locator("#tables a[data-details]").first
    cell.tap()
    tip = page.get_by_role("tooltip")
    box = tip.bounding_box()
    assert "published errors" in tip.inner_text() and box["x"] >= 0 and box["width"] <= 390
    assert page.url.endswith("index.html")
    cell.tap()
    page.wait_for_url("**/usps-rbf-mmrm.html")


def test_details_of_a_reference_table_without_splits_come_with_a_click(
    window, pages, tmp_path
) -> None:
    folder = tmp_path / "usps_rbf"
    folder.mkdir()
    shutil.copy(REFERENCE / "usps_rbf" / "table.csv", folder)
    page = pages(folder)["usps_rbf/index.html"]
    open_page(window, page.path)
    window.locator("#tables button[data-details]").first.click()
    assert "published errors" in window.get_by_role("tooltip").inner_text()


def test_the_dark_follows_the_system_in_pictures_too(browser, site) -> None:
    page = browser(color_scheme="dark")
    open_page(page, site / "evil" / "index.html")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    ink = page.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill")
    light = [sum(map(int, colour[4:-1].split(", "))) > 3 * 128 for colour in (paper, ink)]
    assert light == [False, True]


def test_runs_are_compared_on_a_page_that_sorts(window, usps, tmp_path, pages) -> None:
    other = tmp_path / "other" / "usps_rbf"
    shutil.copytree(usps.folder, other)
    found = pages(usps.folder, other)
    open_page(window, found["index.html"].path)
    window.locator("#comparisons a").click()
    assert column(window, "#all-changes", 7) == ["equal"] * 3 and window.faults == []


def test_a_phone_folds_a_long_first_table(browser, results, pages) -> None:
    experiment = results.experiment("large")
    experiment.add_many([f"set_{k}" for k in range(31)], ("svm",), n_splits=1)
    found = pages(experiment.folder)
    for width, is_open in ((1280, True), (390, False)):
        page = browser(width=width)
        open_page(page, found["large/index.html"].path)
        assert page.locator("details.first").evaluate("element => element.open") == is_open
        assert page.locator("details.first > summary").is_visible() != is_open


def test_names_of_points_fit_their_picture_and_marks_of_the_legend_are_filled(
    browser, pages
) -> None:
    found = pages(REFERENCE / "fsvm_table4")
    for width in (1280, 390):
        page = browser(width=width)
        open_page(page, found["fsvm_table4/index.html"].path)
        plot = page.locator("#against-published")
        plot.locator(".main-svg").first.wait_for()
        frame = plot.bounding_box()
        for text in plot.locator(".xtitle, .textpoint").all():
            box = text.bounding_box()
            assert frame["x"] <= box["x"], text.inner_text()
            assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1, text.inner_text()
        legend, points = (
            plot.locator(f".{marks} path").evaluate_all(
                "paths => paths.map(path => getComputedStyle(path).fill)"
            )
            for marks in ("legendpoints", "points")
        )
        assert legend and "none" not in legend and "none" in points


def test_texts_of_mean_and_published_value_do_not_overlap(window, pages) -> None:
    found = pages(REFERENCE / "m4_table1")
    for path in (p for p in found if "/cells/toy_4" in p):
        open_page(window, found[path].path)
        texts = window.locator(".annotation-text")
        texts.first.wait_for()
        upper, lower = sorted((text.bounding_box() for text in texts.all()), key=lambda b: b["y"])
        assert upper["y"] + upper["height"] <= lower["y"] + 1, path


def seconds_to_open(page, path: Path) -> float:
    """Return the CPU seconds that a page takes until it is drawn."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    open_page(page, path)
    page.locator(".plot .main-svg").last.wait_for()
    found = session.send("Performance.getMetrics")["metrics"]
    return {metric["name"]: metric["value"] for metric in found}["TaskDuration"]


@pytest.mark.slow
def test_seven_thousand_records_open_in_three_seconds_and_twenty_megabytes(
    window, results, pages
) -> None:
    machines = ("svm", "rmm", "mmrm", "mpm", "m4", "lda", "lssvm")
    experiment = results.experiment("large")
    experiment.add_many([f"set_{k}" for k in range(10)], machines, n_splits=100)
    found = pages(experiment.folder)
    folder = found["index.html"].path.parent
    size = sum(path.stat().st_size for path in folder.rglob("*.*"))
    assert len(found) == 72 and size < 20e6
    for path in ("large/index.html", "large/cells/set_0-rbf-svm.html"):
        assert seconds_to_open(window, found[path].path) < 3
