"""The steps of the nightly workflow, run as a runner does: the matrix, and the page's summary."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
JOBS = yaml.safe_load((ROOT / ".github/workflows/nightly.yml").read_text())["jobs"]
REFERENCE = ROOT / "results/reference/usps_rbf/table.csv"


def step(job: str, part: str) -> str:
    """Return the script of the step whose name has a part."""
    [script] = [s["run"] for s in JOBS[job]["steps"] if part in s.get("name", "")]
    return script


def run(script: str, folder: Path, values: dict[str, str], **variables: str) -> None:
    """Run a script with its expressions replaced."""
    script = re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: values[found[1]], script)
    command = ["bash", "-e", "-o", "pipefail", "-c", script]
    subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True)


@pytest.mark.parametrize("option", ["", "--weekly"])
def test_the_matrix_has_a_part_for_each_experiment(option, tmp_path):
    [expression] = re.findall(r"\$\{\{ *(.*?) *\}\}", step("list", "list experiments"))
    output = tmp_path / "output"
    run(step("list", "list"), ROOT, {expression: option}, GITHUB_OUTPUT=str(output))
    names = json.loads(output.read_text().removeprefix("names="))
    assert all((ROOT / "configs" / f"{name}.yaml").exists() for name in names)
    assert ("quickstart" in names, "mmrm_table2" in names) == (True, option == "--weekly")
    assert (
        JOBS["reproduce"]["strategy"]["matrix"]["name"]
        == "${{ fromJSON(needs.list.outputs.names) }}"
    )
    minutes = {s.get("timeout-minutes") for s in JOBS["reproduce"]["steps"]} - {None}
    assert max(minutes) < JOBS["reproduce"]["timeout-minutes"]  # what was reached is kept


@pytest.fixture
def checkout(tmp_path):
    """A folder with what the summary reads."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / "results/usps_rbf").mkdir(parents=True)
    (tmp_path / "results/reference").symlink_to(ROOT / "results/reference")
    return tmp_path


def summary(checkout: Path, table: pd.DataFrame | None) -> str:
    if table is not None:
        table.to_csv(checkout / "results/usps_rbf/table.csv", index=False)
    page = checkout / "summary.md"
    name = {"matrix.name": "usps_rbf"}
    run(step("reproduce", "say what changed"), checkout, name, GITHUB_STEP_SUMMARY=str(page))
    return page.read_text()


def test_the_summary_says_which_cells_changed(checkout):
    table = pd.read_csv(REFERENCE)
    rows = (table.metric == "errors_count") & (table.machine == "svm")
    table.loc[rows, "measured"] = 108
    text = summary(checkout, table)
    assert text.splitlines()[0] == "### usps_rbf"
    assert "usps_rbf usps rbf svm errors_count: 108, reference 91" in text
    assert text.count("```") == 2


def test_the_summary_says_that_there_is_no_table(checkout):
    assert summary(checkout, None) == "### usps_rbf\n```\nno table\n```\n"


def test_the_exit_code_says_whether_a_cell_left_its_band(tmp_path, capsys):
    table = pd.read_csv(REFERENCE)
    [inside] = table.index[table.in_band == True][:1]  # noqa: E712
    metric, name = table.loc[inside, "metric"], tmp_path / "table.csv"
    exit_code = runpy.run_path(str(ROOT / "scripts/compare_reference.py"))["main"]
    table.to_csv(name, index=False)
    assert exit_code(name, REFERENCE) == 0
    assert "agrees with" in capsys.readouterr().out
    table.loc[inside, "in_band"] = False
    table.to_csv(name, index=False)
    assert exit_code(name, REFERENCE) == 1
    assert f"{metric}: left its band, " in capsys.readouterr().out


def test_tables_are_merged_into_one_artefact():
    [merge] = JOBS["tables"]["steps"]
    [kept] = [
        s for s in JOBS["reproduce"]["steps"] if s.get("uses", "").startswith("actions/upload")
    ]
    assert kept["with"]["name"].replace("${{ matrix.name }}", "x") == "table-x"
    assert merge["uses"].startswith("actions/upload-artifact/merge")
    assert merge["with"]["pattern"] == "table-*" and merge["with"]["separate-directories"]
