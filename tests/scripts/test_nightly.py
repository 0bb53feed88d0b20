"""The steps of the workflows, run as a runner does: matrix, summary, and version of a release."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from mmbench import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = {
    path.stem: yaml.safe_load(path.read_text())
    for path in sorted(ROOT.glob(".github/workflows/*.yml"))
}
WORKFLOW = WORKFLOWS["nightly"]
JOBS = WORKFLOW["jobs"]
REFERENCE = ROOT / "results/reference/usps_rbf/table.csv"


EXPRESSION = re.compile(r"\$\{\{ *(.*?) *\}\}")


def step(job: str, part: str) -> dict[str, Any]:
    """Return the step whose name has a part."""
    [found] = [s for s in JOBS[job]["steps"] if part in s.get("name", "")]
    return found


def run(found: dict[str, Any], folder: Path, values: dict[str, str], **variables: str) -> None:
    """Run the script of a step, with the expressions in its variables replaced."""
    assert not EXPRESSION.search(found["run"])  # whoever names a branch could inject commands
    stated = {
        name: EXPRESSION.sub(lambda one: values[one[1]], text)
        for name, text in found.get("env", {}).items()
    }
    command = ["bash", "-e", "-o", "pipefail", "-c", found["run"]]
    subprocess.run(command, cwd=folder, env={**os.environ, **stated, **variables}, check=True)


SETS = ["nightly", "weekly", "monthly"]


def listed(chosen: str, folder: Path) -> list[str]:
    """Return the experiments of a set, by the step that makes the matrix."""
    [expression] = EXPRESSION.findall(step("list", "list experiments")["env"]["SET"])
    output = folder / f"output-{chosen}"
    run(step("list", "list"), ROOT, {expression: chosen}, GITHUB_OUTPUT=str(output))
    return json.loads(output.read_text().removeprefix("names="))


def test_a_set_is_chosen_by_the_schedule_or_by_hand():
    [expression] = EXPRESSION.findall(step("list", "list experiments")["env"]["SET"])
    triggers = WORKFLOW[True]  # "on", as YAML reads it
    assert triggers["workflow_dispatch"]["inputs"]["set"]["options"] == SETS
    assert expression.startswith("inputs.set || ") and expression.endswith(f" || {SETS[0]!r}")
    named = dict(re.findall(r"github.event.schedule == '(.*?)' && '(\w+)'", expression))
    others = [trigger["cron"] for trigger in triggers["schedule"] if trigger["cron"] in named]
    assert [named[cron] for cron in others] == SETS[1:]
    assert len(others) == len(triggers["schedule"]) - 1


def test_the_matrix_has_a_part_for_each_experiment(tmp_path):
    nightly, weekly, monthly = (listed(chosen, tmp_path) for chosen in SETS)
    assert set(nightly) < set(weekly) < set(monthly)
    assert sorted(monthly) == sorted(path.stem for path in (ROOT / "configs").glob("*.yaml"))
    assert ("quickstart" in nightly, "mmrm_table2" in weekly) == (True, True)
    assert (
        JOBS["reproduce"]["strategy"]["matrix"]["name"]
        == "${{ fromJSON(needs.list.outputs.names) }}"
    )
    minutes = {s.get("timeout-minutes") for s in JOBS["reproduce"]["steps"]} - {None}
    assert max(minutes) < JOBS["reproduce"]["timeout-minutes"]  # the summary is still written


def test_an_unknown_set_is_one_line():
    command = [ROOT / "scripts/reproduce", "--list", "--daily"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("unknown option --daily; ") and done.stderr.count("\n") == 1


@pytest.fixture
def checkout(tmp_path):
    """A folder with the scripts, the references, and a stub of mmbench that copies a table."""
    (tmp_path / ".venv/bin").mkdir(parents=True)
    stubs = {
        "python": '[ "$1 $2" = "-m pip" ]\n',
        "mmbench": 'case "$*" in\n'
        '    run*) exit "${RUN:-0}" ;;\n'
        f'    compare*) exec "{sys.executable}" -m mmbench "$@" ;;\n'
        '    table*.csv) [ ! -f given.csv ] || { mkdir -p "$2" && cp given.csv "$4"; } ;;\n'
        "esac\n",
    }
    for name, text in stubs.items():
        path = tmp_path / ".venv/bin" / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "results").mkdir()
    (tmp_path / "results/reference").symlink_to(ROOT / "results/reference")
    return tmp_path


def reproduced(checkout: Path, table: pd.DataFrame | None, code: int, **variables: str) -> str:
    """Reproduce an experiment whose table is given, and return its part of the run's page."""
    if table is not None:
        table.to_csv(checkout / "given.csv", index=False)
    name, page = {"matrix.name": "usps_rbf"}, checkout / "summary.md"
    command = ["bash", "scripts/reproduce", "configs/usps_rbf.yaml"]
    done = subprocess.run(command, cwd=checkout, env={**os.environ, **variables}, check=False)
    assert done.returncode == code
    run(step("reproduce", "say what"), checkout, name, GITHUB_STEP_SUMMARY=str(page))
    return page.read_text()


@pytest.fixture
def table():
    return pd.read_csv(REFERENCE)


def test_a_table_that_agrees_is_green_and_says_what_was_compared(checkout, table):
    lines = reproduced(checkout, table, code=0).splitlines()
    assert lines[:2] == ["### usps_rbf", "```"] and lines[-1] == "```"
    assert lines[2] == (
        "agrees: 6 accuracies and error counts compared (0 split by split, 6 by values, "
        "0 by means), 0 not compared, 0 left their bands"
    )


def test_the_summary_says_which_cells_changed(checkout, table):
    rows = (table.metric == "errors_count") & (table.machine == "svm")
    table.loc[rows, "measured"] = 108
    assert "svm errors_count: 108, before 91" in reproduced(checkout, table, code=1)


def test_a_cell_that_left_its_band_is_no_success(checkout, table):
    [inside] = table.index[table.in_band == True][:1]  # noqa: E712
    table.loc[inside, "in_band"] = False
    text = reproduced(checkout, table, code=1)
    assert ", 1 left their bands" in text
    assert f"{table.metric[inside]}: left its band, " in text


def test_a_failed_run_is_no_success_if_its_table_agrees(checkout, table):
    assert "the run failed; agrees: 6 " in reproduced(checkout, table, code=1, RUN="1")


def test_nothing_compared_is_no_success(checkout, table):
    none = table[~table.metric.isin(["accuracy_pct", "errors_count"])]
    shutil.rmtree(checkout / "results")
    (checkout / "results/reference/usps_rbf").mkdir(parents=True)
    none.to_csv(checkout / "results/reference/usps_rbf/table.csv", index=False)
    assert "nothing compared: 0 accuracies" in reproduced(checkout, table, code=3)
    (checkout / "given.csv").unlink()
    assert "usps_rbf: not a results folder" in reproduced(checkout, None, code=1)


def test_a_run_that_did_not_end_is_not_compared(checkout):
    page = checkout / "summary.md"
    run(
        step("reproduce", "say what"),
        checkout,
        {"matrix.name": "usps_rbf"},
        GITHUB_STEP_SUMMARY=str(page),
    )
    text = "nothing compared: the run did not end"
    assert page.read_text() == f"### usps_rbf\n```\n{text}\n```\n"


def test_the_summary_of_a_long_comparison_is_cut(checkout):
    (checkout / "results/usps_rbf").mkdir()
    (checkout / "results/usps_rbf/comparison.txt").write_text("differs: 1\n" * 10**5)
    page = checkout / "summary.md"
    values = {"matrix.name": "usps_rbf"}
    run(step("reproduce", "say what"), checkout, values, GITHUB_STEP_SUMMARY=str(page))
    assert len(page.read_text().splitlines()) > 100 and page.stat().st_size < 2**20


def test_data_are_kept_after_a_failure_and_records_are_not():
    kept = []
    for workflow in WORKFLOWS.values():
        for job in workflow["jobs"].values():
            by_name = {s["uses"].partition("@")[0]: s for s in job["steps"] if "uses" in s}
            assert "actions/cache" not in by_name  # saves nothing if a step fails
            if restored := by_name.get("actions/cache/restore"):
                saved = by_name["actions/cache/save"]
                assert saved["if"] == "always()"
                assert restored["with"]["path"] == saved["with"]["path"]
                assert all(
                    line.lstrip("!").startswith("datasets/")
                    for line in saved["with"]["path"].splitlines()
                )
                [prefix] = restored["with"]["restore-keys"].splitlines()
                # a folder that has grown has another key
                assert saved["with"]["key"] == f"{prefix}${{{{ hashFiles('datasets/*/**') }}}}"
                kept.append(prefix)
    assert len(kept) == len(set(kept)) == 2


def test_the_page_has_one_line_per_experiment(tmp_path):
    [kept] = [
        s for s in JOBS["reproduce"]["steps"] if s.get("uses", "").startswith("actions/upload")
    ]
    assert kept["with"]["name"].replace("${{ matrix.name }}", "x") == "table-x"
    assert [path.rpartition("/")[2] for path in kept["with"]["path"].splitlines()] == [
        "table.csv",
        "splits.csv",
        "comparison.txt",
    ]
    (tmp_path / "tables/table-lfw").mkdir(parents=True)
    (tmp_path / "tables/table-lfw/comparison.txt").write_text("agrees: 3\nnot compared: 2\n")
    names = {"needs.list.outputs.names": '["quickstart","lfw"]'}
    page = tmp_path / "summary.md"
    run(step("tables", "one line"), tmp_path, names, GITHUB_STEP_SUMMARY=str(page))
    assert page.read_text().splitlines()[2:] == [
        "| quickstart | nothing compared: the run did not end |",
        "| lfw | agrees: 3 |",
    ]


def test_the_site_is_published_after_it_was_built():
    assert JOBS["publish"]["needs"] == "docs"
    [site] = [s for s in JOBS["docs"]["steps"] if "upload-pages-artifact" in s.get("uses", "")]
    assert site["with"]["path"] in step("docs", "build pages")["run"]
    assert JOBS["publish"]["permissions"] == {"pages": "write", "id-token": "write"}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_job_has_a_time_limit(name: str):
    jobs = WORKFLOWS[name]["jobs"]
    assert [job for job, steps in jobs.items() if "timeout-minutes" not in steps] == []


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_expression_names_what_exists(name: str):
    workflow = WORKFLOWS[name]
    triggers = workflow[True]  # "on", as YAML reads it
    dispatch = triggers.get("workflow_dispatch") if isinstance(triggers, dict) else None
    inputs = (dispatch or {}).get("inputs", {})
    for job in workflow["jobs"].values():
        needs = [job["needs"]] if isinstance(job.get("needs"), str) else job.get("needs", [])
        known = {f"inputs.{name}" for name in inputs}
        known |= {f"matrix.{name}" for name in job.get("strategy", {}).get("matrix", {})}
        known |= {f"steps.{s['id']}" for s in job["steps"] if "id" in s}
        for name in needs:
            outputs = workflow["jobs"][name].get("outputs", {})
            known |= {f"needs.{name}.outputs.{output}" for output in outputs}
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step), step
            assert "@" in step.get("uses", "@")
        conditions = [job.get("if", ""), *(step.get("if", "") for step in job["steps"])]
        found = re.findall(r"\$\{\{(.*?)\}\}", json.dumps(job)) + conditions
        names = re.findall(r"\b(?:inputs|matrix|steps|needs)\.[\w.]*", " ".join(found))
        for name in names:
            assert any(name == k or name.startswith(f"{k}.") for k in known), name


def test_the_newest_python_is_resolved_for_every_extra_with_wheels():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]

    def with_parts(extra: str) -> set[str]:
        """Return an extra and those that its requirements name."""
        nested = re.findall(r"mmbench\[(.*?)\]", " ".join(extras[extra]))
        parts = {part for names in nested for part in names.split(",")}
        return {extra}.union(*map(with_parts, parts))

    lines = [s["run"] for s in WORKFLOWS["tests"]["jobs"]["newest"]["steps"] if "run" in s]
    named = re.findall(r"--extra (\w+)", " ".join(lines))
    assert set().union(*map(with_parts, named)) == set(extras) - {
        *("all", "solvers", "libsvm", "ecos")
    }


@pytest.mark.parametrize(
    ("tag", "candidate"), [("v1.0.0", False), ("v1.0.0rc1", True), ("v1.1.0b2", True)]
)
def test_a_release_of_a_candidate_is_a_prerelease(tag: str, candidate: bool, tmp_path: Path):
    [script] = [s for s in WORKFLOWS["release"]["jobs"]["release"]["steps"] if "run" in s]
    (tmp_path / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > arguments\n')
    (tmp_path / "gh").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    run(
        script,
        tmp_path,
        {"github.token": "", "github.repository": ""},
        GITHUB_REF_NAME=tag,
        PATH=path,
    )
    arguments = (tmp_path / "arguments").read_text().splitlines()
    assert arguments[:3] == ["release", "create", tag]
    assert ("--prerelease" in arguments) == candidate


def test_a_release_has_the_version_of_its_tag():
    steps = WORKFLOWS["release"]["jobs"]["build"]["steps"]
    script = next(s["run"] for s in steps if "run" in s)

    def checked(kind: str, name: str) -> int:
        variables = {**os.environ, "GITHUB_REF_TYPE": kind, "GITHUB_REF_NAME": name}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        command = ["bash", "-e", "-o", "pipefail", "-c", script]
        return subprocess.run(
            command, cwd=ROOT, env=variables | {"PATH": path}, check=False
        ).returncode

    assert checked("branch", "main") == checked("tag", f"v{__version__}") == 0
    assert checked("tag", "v9.9.9") == 1
