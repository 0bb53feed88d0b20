"""Closed streams, and values of environment variables that end other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """\
name: a
datasets: [iris]
protocol: {test: {kfold: 2}}
machines: {lda: {params: {ridge: 1}}}
"""
FIT = "from mmbench import SVM; SVM().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])"


def start(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=known, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-"])
def test_a_run_needs_no_streams(closed: str, tmp_path: Path):
    (tmp_path / "a.yaml").write_text(CONFIG)
    done = start(f"{sys.executable} -m mmbench run a.yaml --jobs 1 {closed}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "results" / "a" / "records").glob("*.json"))) == 2


@pytest.mark.parametrize("threads", ["-1", "many"])
def test_a_number_of_threads_that_is_none_is_named_and_ignored(threads: str, tmp_path: Path):
    done = start(f"{sys.executable} -c '{FIT}'", tmp_path, NUMBA_NUM_THREADS=threads)
    assert done.returncode == 0, done.stderr
    assert f"NUMBA_NUM_THREADS={threads} is no number of threads: ignored" in done.stderr


def test_a_cache_that_cannot_be_written_to_is_named(tmp_path: Path):
    (tmp_path / "file").touch()
    cache = str(tmp_path / "file" / "cache")
    done = start(
        f"{sys.executable} -c '{FIT}'", tmp_path, NUMBA_CACHE_DIR=cache, TMPDIR=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert f"NUMBA_CACHE_DIR={cache}: Not a directory" in done.stderr
    assert list(tmp_path.glob("mmbench-numba-*"))


def test_without_a_folder_for_a_cache_there_is_a_temporary_one(tmp_path: Path):
    """Access is denied beside the package and at home, as for a user without a home."""
    code = (
        "import os; real = os.access\n"
        "os.access = lambda path, mode: 'mmbench-numba' in str(path) and real(path, mode)\n"
        "from mmbench.compiled import compiled; print(os.environ['NUMBA_CACHE_DIR'])\n"
    )
    (tmp_path / "code.py").write_text(code)
    known = {"TMPDIR": str(tmp_path), "HOME": "/"}
    done = start(f"{sys.executable} code.py", tmp_path, **known)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "mmbench-numba-"))


COMPILED = """\
from mmbench.compiled import compiled

@compiled
def successor(x):
    return x + 1

print(successor(1))
"""


@pytest.mark.parametrize(
    ("limit", "before"),
    [
        ("ulimit -f 0; ", ""),
        ("", "import os, pwd; del os.environ['HOME']; pwd.getpwuid = {}.__getitem__\n"),
    ],
    ids=["full disk", "user without a home"],
)
def test_compiled_functions_need_no_cache(limit: str, before: str, tmp_path: Path):
    (tmp_path / "code.py").write_text(before + COMPILED)
    done = start(f"{limit}{sys.executable} code.py", tmp_path, HOME="/", XDG_CACHE_HOME="")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
