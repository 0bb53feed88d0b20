"""The commands as functions: mappings and paths in, objects out, errors as exceptions."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from sklearn.datasets import load_iris

import mmbench
from mmbench.commands.dry_run import dry_run
from mmbench.errors import UserError
from mmbench.resources import REFERENCE

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("one_process")

EXPERIMENT = {
    "name": "small",
    "datasets": ["iris"],
    "protocol": {"test": {"kfold": 2}},
    "machines": {"lda": {"params": {"ridge": 0.1}}},
}


def test_an_experiment_is_a_mapping_and_its_results_a_frame_a_table_and_a_file(tmp_path: Path):
    said: list[str] = []
    (finished,) = mmbench.run(EXPERIMENT, tmp_path, say=said.append)
    assert (finished.name, finished.done, finished.failed, finished.exit_code) == (
        "small",
        2,
        [],
        0,
    )
    assert said[-1].startswith("small: 2 jobs done")
    assert set(mmbench.load(finished.folder).machine) == {"lda"}
    table = mmbench.table(finished.folder)
    assert "| iris" in table
    shown = table._repr_html_()  # for notebooks
    assert "LDA</th>" in shown
    assert shown.count("<table") == table.count("|\n| -")
    assert "<ol" not in shown
    mmbench.export(finished.folder, output=tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text().count("\n") == 3
    (again,) = mmbench.run([EXPERIMENT], tmp_path, say=said.append)
    assert (again.done, again.reused) == (0, 2)


def test_an_experiment_given_by_its_results_folder_continues_there(tmp_path: Path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (first,) = mmbench.run(EXPERIMENT, tmp_path / "other")
    for folder in (first.folder, "../other/small", "../other/small/experiment.yaml"):
        (again,) = mmbench.run(folder)
        assert (again.done, again.reused) == (0, 2)
        assert again.folder.resolve() == first.folder.resolve()
    monkeypatch.chdir(first.folder)
    (again,) = mmbench.run(".")
    assert (again.done, again.reused) == (0, 2)
    assert "2 of them stored" in dry_run(".")
    monkeypatch.chdir(tmp_path / "here")
    assert not list(Path().iterdir())
    (stated,) = mmbench.run(first.folder, "anew")
    assert (stated.done, stated.folder) == (2, Path("anew/small"))


def test_a_notebook_shows_tables_as_html_and_progress_as_a_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "<kind>"})
    machines = ["machines={lda: {kernel: linear}}"]
    comparison = mmbench.easy(iris, target="<kind>", results=tmp_path, set=machines, jobs=1)
    assert "5/5 jobs" in capsys.readouterr().err
    assert "<td" in comparison._repr_html_()
    assert comparison._repr_html_() == comparison.text._repr_html_()
    assert str(comparison) == comparison.text
    reference = ROOT / "results" / "reference" / "quickstart"
    text = mmbench.table(reference)
    assert text == (reference / "table.md").read_text(encoding="utf-8")
    assert "<strong>" in text._repr_html_()
    assert "<strong>" not in mmbench.table(reference, layout="machines", bold=False)._repr_html_()


def test_a_reference_table_is_shown_without_bold_values():
    reference = ROOT / "results" / "reference" / "fsvm_rounds"
    stored, plain = mmbench.table(reference), mmbench.table(reference, bold=False)
    assert "| **" in stored and "- Bold: " in stored
    assert "| **" not in plain and "Bold: " not in plain
    assert "**Accuracy (%)**" in plain  # a heading
    rows, plain_rows = (
        [line for line in text.splitlines() if line.startswith("|") and "| --" not in line]
        for text in (stored, plain)
    )
    assert [r.replace("*", "").split() for r in rows] == [r.split() for r in plain_rows]
    assert "<strong>" not in plain._repr_html_()


def test_jobs_of_other_sources_run_again_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    mmbench.run(EXPERIMENT, tmp_path)
    monkeypatch.setattr("mmbench.jobs.identity.fingerprint", lambda machine: "other")
    (kept,) = mmbench.run(EXPERIMENT, tmp_path)
    assert (kept.done, kept.reused) == (0, 2)
    assert "2 of them stored" in dry_run(EXPERIMENT, tmp_path)
    assert "0 of them stored" in dry_run(EXPERIMENT, tmp_path, rerun="changed")
    (again,) = mmbench.run(EXPERIMENT, tmp_path, rerun="changed")
    assert (again.done, again.reused) == (2, 0)


def test_what_is_wrong_is_an_exception(tmp_path: Path):
    with pytest.raises(UserError, match=r"experiment: machines\.lda\.grid\.C"):
        mmbench.run({**EXPERIMENT, "machines": {"lda": {"grid": {"C": [1]}}}}, tmp_path)
    with pytest.raises(UserError, match="no such file"):
        mmbench.run("nowhere.yaml", tmp_path)
    with pytest.raises(UserError, match="no experiment is given"):
        mmbench.run([], tmp_path)
    with pytest.raises(UserError, match="no results folder is given"):
        mmbench.table([])
    with pytest.raises(UserError, match=r"got ndarray; use pandas\.DataFrame\(X\)\.assign"):
        mmbench.easy(load_iris().data, target=0, results=tmp_path)
    frame = load_iris(as_frame=True).frame
    with pytest.raises(UserError, match="got Series; use"):
        mmbench.easy(frame["target"], target="target", results=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written: File exists"):
        mmbench.easy(frame, target="target", results=tmp_path / "file")
    with pytest.raises(UserError, match="time limit"):
        mmbench.run(EXPERIMENT, tmp_path, time_limit="soon")
    with pytest.raises(UserError, match="--rerun all: must be 'changed'"):
        mmbench.run(EXPERIMENT, tmp_path, rerun="all")
    with pytest.raises(UserError, match="no option 'job_limit'; valid: "):
        mmbench.run(EXPERIMENT, tmp_path, job_limit=1)


def test_a_table_of_another_package_is_a_data_frame(tmp_path: Path):
    """A table of pyarrow stands for a data frame of polars, which has `to_pandas` as well."""
    pa = pytest.importorskip("pyarrow")
    iris = load_iris(as_frame=True).frame.rename(columns={"target": "kind"})
    machines = ["machines={lda: {kernel: linear}}"]
    table = pa.Table.from_pandas(iris)
    told = mmbench.easy(table, target="kind", results=tmp_path, set=machines, jobs=1)
    model = mmbench.refit(told.folder, "lda")
    rows = iris.drop(columns="kind")
    expected = model.predict(rows)
    backwards = rows[rows.columns[::-1]]
    assert (model.predict(backwards) == expected).all()
    assert (model.predict(pa.Table.from_pandas(backwards)) == expected).all()

    class Frame:
        columns = ("a", "kind")

        def to_pandas(self):
            raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    with pytest.raises(UserError, match=r"needs the package pyarrow: .*\[parquet\]"):
        mmbench.easy(Frame(), target="kind", results=tmp_path)


def test_functions_are_offered_for_completion():
    assert {"run", "easy", "table", "figure", "compare", "report", "export", "load", "cite"} <= set(
        dir(mmbench)
    )


@pytest.mark.parametrize("jobs", [0, -1, "2", 1.5])
def test_a_number_of_processes_that_is_none_is_refused(jobs):
    with pytest.raises(UserError, match="must be a number of processes, 1 or more"):
        mmbench.run("quickstart", jobs=jobs)


def test_an_unknown_format_of_an_export_names_each_format_once(tmp_path):
    with pytest.raises(UserError, match="unknown format 'feather'") as error:
        mmbench.export(REFERENCE / "usps_rbf", "feather")
    assert str(error.value).count("csv") == 1


@pytest.mark.parametrize(
    "values", [np.logspace(-2, 0, 3), tuple(np.logspace(-2, 0, 3)), list(np.arange(1, 4))]
)
def test_a_configuration_may_have_numbers_of_numpy(tmp_path: Path, values):
    protocol = {"test": {"kfold": np.int64(2)}, "seed": np.arange(2), "max_train": np.int64(90)}
    experiment = {
        **EXPERIMENT,
        "protocol": protocol,
        "select": {"folds": np.int64(2)},
        "machines": {"lda": {"grid": {"ridge": values}}, "svm": {"params": {"C": np.float64(2)}}},
    }
    (finished,) = mmbench.run(experiment, tmp_path)
    assert (finished.done, finished.exit_code) == (8, 0)
    (again,) = mmbench.run(finished.folder / "experiment.yaml", tmp_path)
    assert (again.done, again.reused) == (0, 8)
