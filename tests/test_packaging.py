"""What an installed mmbench holds: experiments and reference tables, found from any folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PARTS = ("mmbench", "configs", "results/reference")
FILES = ("pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the content of a wheel that is built from a copy of the checkout."""
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for part in PARTS:
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, source / name)
    for build in ("wheel", "editable"):
        code = f"from hatchling import build; build.build_{build}({str(folder / build)!r})"
        subprocess.run([sys.executable, "-c", code], cwd=source, check=True, capture_output=True)
    (wheel,) = (folder / "wheel").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


#: Commands one after the other in one process, which then imports once.
COMMANDS = """\
import sys
from mmbench.cli.app import app
for line in sys.argv[1:]:
    code = app(line.split(), standalone_mode=False)
    print(end="\\f", flush=True)
    if code:
        sys.exit(code)
"""


def mmbench(installed: Path, folder: Path, *commands: str) -> list[str]:
    """Return what each command prints."""
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *commands],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\f")[:-1]


def test_experiments_run_by_name_where_there_is_no_checkout(installed: Path, tmp_path: Path):
    listed, plan, shown = mmbench(
        installed,
        tmp_path,
        "list configs",
        "run configs/quickstart.yaml --dry-run",
        "config show quickstart",
    )
    configs = sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
    assert [line.split()[0] for line in listed.splitlines()] == configs
    assert plan.startswith("quickstart: 45 ")
    line, rest = shown.split("\n", 1)
    assert rest == (ROOT / "configs" / "quickstart.yaml").read_text().split("\n", 1)[1]
    assert Path(line.partition("$schema=")[2]).is_relative_to(installed)
    assert list(tmp_path.iterdir()) == []


def test_a_wheel_has_the_files_of_the_package_and_no_others(installed: Path):
    found = {path.name for path in installed.iterdir()}
    assert found == {"mmbench", "mmbench-1.0.0.dist-info"}
    ours, theirs = (
        {p.relative_to(f) for p in f.rglob("*.*") if "__pycache__" not in p.parts}
        for f in (installed / "mmbench", ROOT / "mmbench")
    )
    beside = {path for path in ours if path.parts[0] in ("configs", "reference")}
    assert ours - beside == theirs
    assert {path.suffix for path in beside if path.parts[0] == "configs"} == {".yaml"}


def test_a_type_checker_finds_the_package_of_an_editable_install(installed: Path, tmp_path: Path):
    """The editable wheel is a path; here it lies in a folder of its own, as in site-packages."""
    (wheel,) = (installed.parent / "editable").glob("*.whl")
    (path,) = (name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".pth"))
    source = zipfile.ZipFile(wheel).read(path).decode().strip()
    assert source == str(installed.parent / "source")
    (tmp_path / "user.py").write_text("from mmbench import SVM\nfrom mmbench.machines import RMM\n")
    call = [sys.executable, "-m", "mypy", "--no-site-packages", "--follow-imports=skip", "user.py"]
    for found in (source, ""):
        env = {**os.environ, "MYPYPATH": found, "PYTHONPATH": ""}
        done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert (done.returncode == 0) == bool(found), done.stdout


def test_reference_tables_come_with_it(installed: Path):
    inside, beside = installed / "mmbench" / "reference", ROOT / "results" / "reference"
    ours, theirs = ({p.relative_to(f) for p in f.rglob("*.*")} for f in (inside, beside))
    assert ours == theirs


def test_reports_are_written_of_what_is_installed(installed: Path, tmp_path: Path):
    table = installed / "mmbench" / "reference" / "usps_rbf"
    mmbench(installed, tmp_path, f"report {table} --output site")
    assert (tmp_path / "site" / "usps_rbf" / "index.html").is_file()
    assert (tmp_path / "site" / "assets" / "report.js").is_file()


def test_every_dependency_has_its_licence_on_the_page():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = ("libsvm", "ecos", "report", "lfw", "dask", "parquet", "keel")
    optional = [name for extra in extras for name in project["optional-dependencies"][extra]]
    page = (ROOT / "docs" / "licences.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| ([a-z][\w-]*) \|", page, re.M)
    assert sorted(
        {re.split(r"[<>=;\[ ]", name)[0] for name in project["dependencies"] + optional}
    ) == sorted(listed)
