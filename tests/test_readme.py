"""What the README and the first page of the documentation show works when it is typed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from mmbench.config.files import find_config

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("README.md", "docs/index.md", "docs/python.md", "docs/start.md", "docs/a_paper.md")
PAGES = {name: (ROOT / name).read_text(encoding="utf-8") for name in NAMES}
README = PAGES["README.md"]


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("page", ["README.md", "docs/index.md", "docs/python.md"])
def test_the_examples_in_python_run(page, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    exec("".join(re.findall(r"```python\n(.*?)```", PAGES[page], re.S)), {})
    score, status = capsys.readouterr().out.split("\n")[:2]
    assert float(score) > 0.9
    assert status.startswith("optimal")


def test_the_readme_is_one_screen():
    assert len(README.splitlines()) <= 60


def test_one_command_sets_up_and_runs_the_quickstart_and_one_the_tests():
    for script in ("scripts/quickstart", "scripts/test"):
        assert f"`{script}`" in README
        assert os.access(ROOT / script, os.X_OK)
    assert "scripts/test" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_the_table_is_that_of_the_reference():
    reference = (ROOT / "results/reference/usps_rbf/table.md").read_text(encoding="utf-8")
    assert "\n".join(re.findall(r"^\| (?:data set|Usps|-{8}).*$", README, re.M)) in reference


def test_the_first_pages_state_the_verdict():
    verdict = (ROOT / "docs/verdict.md").read_text(encoding="utf-8")
    ratio = re.findall(r"^\| KLDA \| linear \| ([\d.]+) \(", verdict, re.M)[0]
    assert "no machine is better than the tuned SVM with a probability of at least 0.95" in verdict
    for page in ("README.md", "docs/index.md"):
        assert f"accurate as the linear SVM in {ratio} times" in " ".join(PAGES[page].split())


@pytest.mark.parametrize("page", PAGES)
def test_links_and_experiments_are_there(page):
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([\w./-]+)\)|src=\"([^\"]+)\"", PAGES[page])
    for link in ("".join(pair) for pair in links):
        generated = link.startswith(("gallery/", "pictures/"))
        assert generated or (folder / link).exists(), link
    for name in re.findall(r"mmbench run ([\w/]+(?:\.yaml)?)", PAGES[page]):
        assert find_config(name).exists()


def test_every_experiment_is_on_the_page_of_what_reproduces_what():
    text = (ROOT / "docs/reproduce.md").read_text(encoding="utf-8")
    assert {path.stem for path in (ROOT / "configs").glob("*.yaml")} <= set(
        re.findall(r"`(\w+)`", text)
    )
