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
    libraries = "random numbers numpy sklearn sitecustomize usercustomize"
    optional = "org lz4 cython Cython numexpr bottleneck msvcrt"  # libraries try to import these
    for name in (*libraries.split(), *optional.split()):
        text = f"from pathlib import Path\nPath({str(tmp_path / 'ran')!r}).write_text({name!r})\n"
        (tmp_path / f"{name}.py").write_text(f"{text}raise SystemExit('imported from the folder')")
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


#: Commands, and what they print.
COMMANDS = {
    "list machines": "svm ",
    "table no": "",
    "run own.yaml --dry-run --set machines.svm=": "ridge",
    "check machine my_machine.KernelRidge": "checks passed",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_imports_files_that_are_not_named(command: str, folder: Path):
    done = mmbench(folder, *command.split())
    assert done.returncode == (2 if "no" in command.split() else 0), done.stderr
    assert COMMANDS[command] in done.stdout
    assert "Traceback" not in done.stderr
    assert not (folder / "ran").exists()


@pytest.mark.parametrize(
    "where",
    [["--jobs", "1"], pytest.param(["--scheduler", "local"], marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_a_plug_in_runs_beside_files_named_as_libraries_and_as_the_package(
    where: list[str], folder: Path
):
    if "--scheduler" in where:
        pytest.importorskip("distributed")
    (folder / "mmbench.py").write_text("raise SystemExit('imported from the folder')")
    script = Path(sys.executable).with_name("mmbench")
    if not script.is_file():
        pytest.skip("mmbench is not installed beside this Python")
    changes = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [script, "run", "own.yaml", *where], cwd=folder, env=changes, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "4 jobs done" in done.stderr
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("content", ["another", "link"])
def test_another_checkout_in_the_current_folder_is_named(content: str, tmp_path: Path):
    """A link to the package that runs is no other checkout."""
    if content == "link":
        (tmp_path / "mmbench").symlink_to(ROOT / "mmbench")
    else:
        (tmp_path / "mmbench" / "cli").mkdir(parents=True)
        (tmp_path / "mmbench" / "cli" / "app.py").touch()
    call = [sys.executable, "-P", "-m", "mmbench", "list", "layouts"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, text=True)
    line = f"mmbench: {ROOT / 'mmbench'} runs; pip install -e . installs the checkout in the "
    expected = f"{line}current folder\n" if content == "another" else ""
    assert (done.returncode, done.stderr) == (0, expected)
