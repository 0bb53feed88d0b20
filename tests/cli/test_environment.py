"""Closed streams, and values of environment variables that end other programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{ROOT}:{ROOT / 'tests'}"
CONFIG = """\
name: a
datasets: [iris]
protocol: {test: {kfold: 2}}
machines: {lda: {params: {ridge: 1}}}
"""


def start(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        ["sh", "-c", command], cwd=folder, env=known, capture_output=True, text=True, check=False
    )


def test_a_run_needs_neither_streams_nor_space_for_its_log(tmp_path: Path):
    (tmp_path / "a.yaml").write_text(CONFIG)
    run = f"{sys.executable} -m mmbench run a.yaml --jobs 1"
    done = start(f"{run} >&- 2>&-", tmp_path)
    assert done.returncode == 0, done.stderr
    records = list((tmp_path / "results" / "a" / "records").glob("*.json"))
    assert len(records) == 2
    if Path("/dev/full").exists():
        records.pop().unlink()
        # the jobs run in this process: a worker has no other streams than above
        own = "from helpers.serial_executor import no_processes as n; from mmbench.cli import main"
        code = f"{own}; import sys; sys.argv = ['mmbench', 'run', 'a.yaml']\nwith n(): main()"
        done = start(f'{sys.executable} -c "{code}" 2>/dev/full', tmp_path, PYTHONPATH=PATH)
        assert done.returncode == 0
        assert len(list((tmp_path / "results" / "a" / "records").glob("*.json"))) == 2


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

@compiled()
def successor(x):
    return x + 1

print(successor(1))
"""


def test_what_numba_cannot_use_is_named_and_ignored(tmp_path: Path):
    (tmp_path / "file").touch()
    (tmp_path / "code.py").write_text(COMPILED)
    cache = tmp_path / "file" / "cache"
    known = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_NUM_THREADS": "-1"}
    done = start(f"{sys.executable} code.py", tmp_path, TMPDIR=str(tmp_path), **known)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert "NUMBA_NUM_THREADS=-1 is no number of threads: ignored" in done.stderr
    assert f"NUMBA_CACHE_DIR={cache}: Not a directory" in done.stderr
    assert list(tmp_path.glob("mmbench-numba-*"))


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
