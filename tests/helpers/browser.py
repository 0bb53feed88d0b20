"""A real browser that notes what goes wrong on a page: Debian's chromium, driven by playwright.

Without either, tests with the fixture `browser` are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Callable]:
    """Return a function that opens a window; each notes its errors."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not on this machine (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        # the profile is a new folder, which playwright makes and removes
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def window(width: int = 1280, height: int = 800, **options):
            size = {"width": width, "height": height}
            page = chromium.new_context(viewport=size, **options).new_page()
            page.faults = []
            page.on("console", lambda entry: page.faults.append(f"{entry.type}: {entry.text}"))
            page.on("pageerror", lambda error: page.faults.append(str(error)))
            page.on("dialog", lambda dialog: page.faults.append(f"dialog {dialog.message}"))
            page.on("request", lambda request: _refuse_network(page, request.url))
            return page

        yield window
        chromium.close()


def _refuse_network(page, url: str) -> None:
    if not url.startswith(("file:", "data:", "blob:")):
        page.faults.append(f"asked for {url}")


def open_page(page, path: Path) -> None:
    page.goto(path.as_uri(), wait_until="load")
    assert page.faults == [], path


def overflow(page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
