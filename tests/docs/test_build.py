"""The documentation builds without a warning, from a copy that has nothing generated in it."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("_build", "gallery", "generated", "pictures", "tables", "__pycache__")
#: Scripts of the gallery that start no processes; the build runs the others too.
SCRIPTS = ("boundaries", "certificate", "margin_ratio", "rmm_bound")
BESIDE = ("mmbench", "examples", "configs", "datasets/README.md", "results/reference")


@pytest.mark.slow
def test_the_pages_and_the_gallery_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="needs the extra mmbench[docs]")
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns(*GENERATED))
    for name in BESIDE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    for page in ROOT.glob("*.md"):
        (tmp_path / page.name).symlink_to(page)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "--keep-going", "docs", "html"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "machines" / "rmm.html").exists()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_the_gallery_runs(name: str):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs the extra mmbench[report]")
    pyplot.switch_backend("agg")
    runpy.run_path(str(ROOT / "examples" / f"plot_{name}.py"))
    assert pyplot.get_fignums()
    pyplot.close("all")
