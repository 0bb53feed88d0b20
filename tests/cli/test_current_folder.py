"""The current folder: plug-ins are imported from it, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
name: own
datasets: [wine]
protocol: {test: {kfold: 2}}
machines: {ridge: {machine: "my_machine:KernelRidge", params: {C: 1.0}}, svm: {params: {C: 1}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the machine of the documentation and names of the standard library."""
    text = (ROOT / "docs" / "extending" / "machine.md").read_text(encoding="utf-8")
    block = re.search(r":caption: my_machine.py\n(.*?)```", text, re.S)
    assert block is not None
    (tmp_path / "my_machine.py").write_text(block[1])
    for name in ("random", "numbers", "numpy", "sklearn", "sitecustomize", "usercustomize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the folder')")
    (tmp_path / "own.yaml").write_text(CONFIG)
    return tmp_path


def mmbench(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mmbench", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_plug_in_of_the_folder_runs_beside_files_named_as_libraries(folder: Path):
    done = mmbench(folder, "run", "own.yaml", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "4 jobs done" in done.stderr


def test_a_machine_of_the_folder_is_known(folder: Path):
    done = mmbench(folder, "run", "own.yaml", "--dry-run", "--set", "machines.svm=")
    assert done.returncode == 0, done.stderr
    assert "ridge" in done.stdout


@pytest.mark.parametrize("where", [["--jobs", "1"], ["--scheduler", "local"]], ids=" ".join)
def test_a_file_named_as_the_package_is_not_imported(where: list[str], folder: Path):
    if "--scheduler" in where:
        pytest.importorskip("distributed")
    (folder / "mmbench.py").write_text("raise SystemExit('imported from the folder')")
    config = CONFIG.replace('ridge: {machine: "my_machine:KernelRidge", params: {C: 1.0}}, ', "")
    (folder / "own.yaml").write_text(config)
    script = Path(sys.executable).with_name("mmbench")
    if not script.is_file():
        pytest.skip("mmbench is not installed beside this Python")
    changes = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [script, "run", "own.yaml", *where],
        cwd=folder,
        env=changes,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
