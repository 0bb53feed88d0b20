"""A report of results made by hand, and its pages as a browser would read them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from helpers.browser import browser  # noqa: F401

from mmbench.commands.outputs import report
from mmbench.errors import Status


@dataclass
class Page(HTMLParser):
    """The tags and the text of a page."""

    path: Path
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data

    def pictures(self) -> dict[str, dict]:
        """Return what the pictures of the page are drawn of, by their names."""
        text = self.path.read_text(encoding="utf-8")
        found = re.findall(
            r'<script type="application/json" data-plot="(.*?)">(.*?)</script>', text
        )
        return {name: json.loads(spec) for name, spec in found}

    def all(self, name: str) -> list[str]:
        """Return the values of an attribute, of all tags that have it."""
        return [attributes[name] or "" for _, attributes in self.tags if name in attributes]


@pytest.fixture
def pages(tmp_path):
    """Return a function that writes the report of some folders, and returns its pages by path."""

    return lambda *folders: written(tmp_path / "site", folders)


def written(site: Path, folders: Sequence[Path]) -> dict[str, Page]:
    """Write a report and return its pages by their paths."""
    report(folders, site)
    return {str(path.relative_to(site)): Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.fixture(scope="module")
def both(evil, lasting_usps, tmp_path_factory) -> dict[str, Page]:
    """The pages of both experiments, written once for all tests that read them."""
    return written(tmp_path_factory.mktemp("both") / "site", [evil.folder, lasting_usps.folder])


#: A name that is a tag, an attribute's end, a path and an entity.
EVIL = "<script>alert('x')</script>\"/../&amp;"


@pytest.fixture(scope="module")
def evil(lasting_results):
    """Three splits of two machines on two data sets, one of them named to break a page."""
    results = lasting_results
    experiment = results.experiment(
        "evil", datasets=[EVIL, "iris"], machines=["svm", "rmm"], splits=3
    )
    rng = np.random.default_rng(0)
    for dataset in (EVIL, "iris"):
        for machine in ("svm", "rmm"):
            for repeat in range(3):
                grid = (("C", (1, 10)), ("gamma", (0.1, 1.0))) if machine == "svm" else ()
                use = {"use": "svm"} if machine == "rmm" else {}
                job = experiment.job(
                    dataset, machine, repeat=repeat, rule="holdout", grid=grid, **use
                )
                if (machine, repeat) == ("rmm", 2):
                    experiment.fail(job, Status.TIME_LIMIT, "took over 600 s")
                    continue
                truth = rng.integers(0, 2, 20)
                arrays = {"y_test": truth, "predicted": np.where(truth, truth, repeat % 2)}
                experiment.add(job, 3 + repeat, 20, arrays=arrays, selection=selection(job.grid))
    return experiment


def selection(grid) -> dict:
    if not grid:
        return {"params": {}, "scores": [], "n_points": 0}
    (_, costs), (_, widths) = grid
    scores = [
        {"C": C, "gamma": gamma, "score": 0.8 + C / 100 - gamma / 10, "sd": 0.01}
        for C in costs
        for gamma in widths
    ]
    return {"params": {"C": 10, "gamma": 0.1}, "scores": scores, "n_points": 4}
