"""An experiment that takes its parameters from another one, from the file to the records."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.cases import cases
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.jobs.store import RecordStore
from mmbench.results.folder import read_results

pytestmark = pytest.mark.usefixtures("one_process")

SOURCE = """\
name: part
datasets: [wine]
preprocess: unit_norm
kernel: poly
degree: [1, 2]
kernel_scaling: trace
protocol: {test: {holdout: 0.3}, max_train: {per_class: 15}}
select: {validation: rest, scope: pair, prefer: {C: large}}
machines:
  svm: {grid: {C: [1, 100]}}
  klda: {grid: {eta: [0.1]}}
"""
TARGET = """\
name: whole
datasets: [wine]
preprocess: unit_norm
kernel: poly
degree: 2
kernel_scaling: trace
protocol: {test: {holdout: 0.3}}
parameters_from: part
machines:
  svm:
"""


def run(folder: Path, *options: str):
    arguments = ["run", str(folder / "whole.yaml"), "--results", str(folder / "r"), "--jobs", "1"]
    return CliRunner().invoke(app, [*arguments, *options])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "part.yaml").write_text(SOURCE)
    (tmp_path / "whole.yaml").write_text(TARGET)
    return tmp_path


def records(folder: Path):
    store = RecordStore(folder)
    return {record["job"]["params"][0][1]: record for record in map(store.read, store.keys())}


def test_the_source_runs_first_and_its_choice_is_trained_on_all_rows(files: Path):
    result = run(files)
    assert result.exit_code == 0, result.output
    part, whole = records(files / "r" / "part"), records(files / "r" / "whole")
    assert list(part) == list(whole) == [2]  # the other degree and machine are not asked for
    assert whole[2]["job"]["parent"] == part[2]["key"]
    assert whole[2]["selection"]["params"] == part[2]["selection"]["params"]
    assert len(part[2]["selection"]["params"]) == 3  # one choice a pair
    assert part[2]["split"]["n_train"] == 45
    assert part[2]["split"]["n_train_pair"] == 30
    assert whole[2]["split"]["n_train"] > 100
    again = run(files)
    assert "1 done before" in again.output
    assert sum(len(e.records) for e in read_results([files / "r"])) == 2


def test_a_source_that_is_asked_for_runs_as_a_whole(files: Path):
    result = run(files, str(files / "part.yaml"))
    assert result.exit_code == 0, result.output
    assert "part: 4 jobs done" in result.output
    assert "whole: 1 jobs done" in result.output
    result = run(files, str(files / "part.yaml"), "--only", "machine=klda")
    assert "part: 0 jobs done, 2 done before" in result.output


def test_the_smoke_version_takes_from_the_smoke_version(files: Path):
    result = run(files, "--smoke")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in (files / "r").iterdir()) == ["part-smoke", "whole-smoke"]


def test_all_splits_have_the_median_of_what_the_first_ones_chose(files: Path):
    source = SOURCE.replace("0.3},", "0.3}, repeats: 4,").replace("C: [1,", "C: [0.01, 1, 10,")
    source = source.replace("degree: [1, 2]", "degree: 2")
    (files / "part.yaml").write_text(source)
    one = "parameters_from: {experiment: part, splits: 3}"
    target = TARGET.replace("0.3}}", "0.3}, repeats: 5}").replace("parameters_from: part", one)
    (files / "whole.yaml").write_text(target)
    result = run(files)
    assert result.exit_code == 0, result.output
    store = RecordStore(files / "r" / "part")
    chosen = sorted(map(store.read, store.keys()), key=lambda r: r["job"]["split"]["repeat"])
    assert [record["job"]["split"]["repeat"] for record in chosen] == [0, 1, 2]
    median = [
        {"C": sorted(choice["C"] for choice in pair)[1]}
        for pair in zip(*(record["selection"]["params"] for record in chosen), strict=True)
    ]
    store = RecordStore(files / "r" / "whole")
    records = list(map(store.read, store.keys()))
    assert len(records) == 5
    for record in records:
        assert record["job"]["parent"] == [one["key"] for one in chosen]
        assert record["selection"]["params"] == median
    tables = CliRunner().invoke(app, ["table", str(files / "r" / "whole")])
    text = " ".join(tables.output.split())
    assert "one choice of parameters: the median over the selections on 3 training parts" in text
    assert "Parameter grids" not in text  # there are none, and "SVM as SVM" says nothing
    assert "| wine     | poly 2 | C " in tables.output
    assert "0 jobs done, 5 done before" in run(files).output


@pytest.mark.parametrize(
    ("test", "entry", "more"),
    [
        ("leave_one_out", "", ", seed: 1"),
        ("{time_series: 3}", "", ", seed: 1"),
        ("predefined", "folds: FOLDS", ", seed: 1"),
        ("{kfold: 3}", "folds: FOLDS", ""),
        ("{kfold: 3}", "max_megabytes: 900", ""),
    ],
)
def test_differences_that_change_no_split_are_accepted(tmp_path: Path, test, entry, more):
    rows = "\n".join(f"{k},{k * k % 7},{'xy'[k % 2]}" for k in range(30))
    (tmp_path / "t.csv").write_text(f"a,b,kind\n{rows}\n")
    (tmp_path / "folds.csv").write_text("\n".join(str(k // 2 % 3) for k in range(30)))
    entry = entry.replace("FOLDS", str(tmp_path / "folds.csv"))
    both = test == "predefined"  # the rule that reads the file

    def write(name: str, own: str, more: str, machine: str, first: str = "") -> None:
        data = f"[{{path: t.csv, target: kind{', ' + own if own else ''}}}]"
        text = f"name: {name}\ndatasets: {data}\nprotocol: {{test: {test}{more}}}\n{first}"
        (tmp_path / f"{name}.yaml").write_text(f"{text}machines:\n  svm: {machine}\n")

    write("part", entry if both else "", "", "{grid: {C: [1, 10]}}")
    write("whole", entry, more, "", "parameters_from: part\n")
    result = run(tmp_path, "--dry-run")
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(("old", "new", "words"), cases(__file__, "wrong_sources.yaml"))
def test_a_source_without_the_parameters_is_refused(files: Path, old, new, words):
    assert_refused(files, SOURCE, TARGET.replace(old, new), *words)


def assert_refused(folder: Path, source: str, target: str, *words: str) -> None:
    (folder / "part.yaml").write_text(source)
    (folder / "whole.yaml").write_text(target)
    result = run(folder)
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert [word for word in words if word not in line] == [], line
    assert not (folder / "r").exists()


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ("max_train: [30, 60]", "part has several training sizes"),
        ("max_train: 60, seed: [0, 1]", "must have one seed each"),
    ],
)
def test_a_source_with_several_choices_per_split_is_refused(tmp_path: Path, protocol, words):
    source = SOURCE.replace("max_train: {per_class: 15}", protocol)
    both = ", seed: [0, 1]" if "seed" in protocol else ""
    assert_refused(tmp_path, source, TARGET.replace("0.3}", "0.3}" + both), words)


@pytest.mark.parametrize(("kernel", "refused"), [("rbf", True), ("poly", False)])
def test_gamma_of_a_source_with_another_scaling_is_refused(files: Path, kernel: str, refused: bool):
    source = SOURCE.replace("kernel: poly", "kernel: [rbf, poly]") + "gamma_scaling: per_feature\n"
    target = TARGET.replace("kernel: poly", f"kernel: {kernel}")
    if refused:
        target = target.replace("degree: 2\nkernel_scaling: trace\n", "")
        assert_refused(files, source, target, "part has another gamma_scaling")
    else:
        (files / "part.yaml").write_text(source)
        (files / "whole.yaml").write_text(target)
        assert run(files, "--dry-run").exit_code == 0


@pytest.mark.parametrize("entry", ["params: {degree: 1}", "grid: {C: [1, 100], degree: [2, 3]}"])
@pytest.mark.parametrize("splits", ["", ", splits: 1"])
def test_a_source_with_another_degree_of_a_machine_is_refused(tmp_path, entry: str, splits: str):
    source = SOURCE.replace("degree: [1, 2]\n", "").replace("grid: {C: [1, 100]}", entry)
    target = TARGET.replace("degree: 2\n", "").replace("part", f"{{experiment: part{splits}}}")
    line = "parameters_from: part selects no parameters of svm for degree 3"
    assert_refused(tmp_path, source, target, line)
