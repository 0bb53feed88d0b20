"""What an installed package adds is there by name: machines, cards, layouts, figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmbench.plugins import with_plugins

ROOT = Path(__file__).resolve().parents[1]

ENTRIES = """\
[mmbench.machines]
kernel_ridge = my_package.machines:KernelRidge
svm = my_package.machines:KernelRidge

[mmbench.layouts]
names = my_package.names

[mmbench.figures]
empty = my_package.empty

[mmbench.cards]
my_package = my_package
"""
LAYOUT = '''\
"""The names of the machines."""

from mmbench.tables.compose import compose
from mmbench.tables.text import Column, Grid


def layout(results):
    return compose(results, "Names", [Grid((Column("name"),), [[m] for m in results.columns])])
'''
FIGURE = '''\
"""An empty picture."""

MACHINE = None


def draw(experiment, output):
    return "drawn"
'''
METADATA = "Metadata-Version: 2.1\nName: my_package\nVersion: 1.0\n"
CARD = """\
title: Ten draws
expect: {shape: [20, 2], n_classes: 2, classes: {a: 10, b: 10}}
parser: {name: delimited, fields: 3}
sources: [{kind: files, files: [{path: ten.csv, sha256: "%064d"}]}]
licence: none
citation: nobody
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with the machine of the documentation, as `pip install` leaves it."""
    text = (ROOT / "docs" / "extending" / "machine.md").read_text(encoding="utf-8")
    block = re.search(r":caption: my_machine.py\n(.*?)```", text, re.S)[1]
    files = {
        "my_package/__init__.py": "",
        "my_package/machines.py": block,
        "my_package/names.py": LAYOUT,
        "my_package/empty.py": FIGURE,
        "my_package/ten.yaml": CARD % 0,
        "my_package-1.0.dist-info/METADATA": METADATA,
        "my_package-1.0.dist-info/entry_points.txt": ENTRIES,
    }
    for name, content in files.items():
        path = tmp_path / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "site"


#: Commands one after the other in one process, which then imports once.
COMMANDS = """\
import sys
from mmbench.cli.app import app
sys.exit(max(app(line.split(), standalone_mode=False) or 0 for line in sys.argv[1:]))
"""


def mmbench(package, *commands, **environment):
    path = os.pathsep.join([str(package), str(ROOT)])
    known = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "default", **environment}
    return subprocess.run(
        [sys.executable, "-c", COMMANDS, *commands],
        capture_output=True,
        text=True,
        env=known,
        cwd=package.parent,
        check=False,
    )


def test_names_of_packages_are_known_and_ours_are_not_taken(package):
    with pytest.warns(UserWarning, match="my_package: 'svm' is left out of the machines"):
        found = with_plugins("machines", {"svm": "mmbench.machines.svm:SVM"})
    assert found == {
        "svm": "mmbench.machines.svm:SVM",
        "kernel_ridge": "my_package.machines:KernelRidge",
    }
    assert with_plugins("layouts", {}) == {"names": "my_package.names"}


def test_lists_describe_what_a_package_adds(package):
    found = mmbench(package, "list machines", "list figures", "list datasets").stdout
    assert re.search(r"kernel_ridge +Regression on the labels", found)
    assert re.search(r"empty +An empty picture", found)
    assert re.search(r"ten +Ten draws", found)


def test_a_package_s_machine_runs_in_a_package_s_layout(package):
    (package.parent / "own.yaml").write_text(
        "{name: own, datasets: [iris], protocol: {test: {kfold: 2}}, layout: names,\n"
        " machines: {kernel_ridge: {grid: {C: [1, 10]}}}}\n"
    )
    done = mmbench(package, "run own.yaml -j 1", "table results/own")
    assert done.returncode == 0, done.stderr
    assert "| kernel_ridge |" in done.stdout


def test_a_folder_of_one_s_own_cards_is_searched(package, tmp_path):
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "eleven.yaml").write_text(CARD % 1)
    own = str(tmp_path / "cards")
    assert "Ten draws" in mmbench(package, "data info eleven", MMBENCH_CARDS=own).stdout
    (tmp_path / "cards" / "wrong.yaml").write_text("title: 1\n")
    for text, words in (("title: 1\n", "wrong.yaml: not a valid card"), ("- 1\n", "not a valid")):
        (tmp_path / "cards" / "wrong.yaml").write_text(text)
        done = mmbench(package, "data info wrong", MMBENCH_CARDS=own)
        assert done.returncode == 2
        assert words in done.stderr
    done = mmbench(package, "list datasets", MMBENCH_CARDS=str(tmp_path / "nowhere"))
    assert "nowhere: no such folder" in done.stderr
