"""What the pages on tables of your own, one choice of parameters and all machines state is so."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.svm import SVC
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.commands.easy import experiment_of
from mmbench.machines import SVM

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("own_table", "compare", "estimators")
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the configurations of both pages beside a table that is not all numbers."""
    for page in ("own_table", "compare"):
        (text,) = re.findall(r"```yaml\n(.*?)```", PAGES[page], re.S)
        name = re.findall(r"^name: (\w+)$", text, re.M)[0]
        (tmp_path / f"{name}.yaml").write_text(text)
    colours = ("red", "green", "blue")
    rows = [f"{k * k % 17},{k % 5},{colours[k % 3]},{'ab'[k % 17 > 8]}" for k in range(60)]
    rows += [",3,red,a", "4,,green,b", "5,1,blue,"]  # gaps, and a row without a label
    (tmp_path / "my.csv").write_text("x,y,colour,label\n" + "\n".join(rows) + "\n")
    return tmp_path


def run(folder: Path, *options: str) -> str:
    arguments = ["run", str(folder / options[0]), "--results", str(folder / "results")]
    result = CliRunner().invoke(app, [*arguments, *options[1:]])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.usefixtures("one_process")
def test_a_table_with_gaps_words_and_rows_without_a_label_is_read(folder):
    assert "0 failed, 0 left" in run(folder, "mine.yaml", "--smoke")


@pytest.mark.usefixtures("one_process")
def test_the_experiment_with_one_choice_takes_the_parameters_of_the_table(folder):
    assert "mine_one_choice: 200 jobs" in run(folder, "mine_one_choice.yaml", "--dry-run")


def test_the_results_of_a_comparison_are_in_the_folder_that_is_stated(folder):
    name = experiment_of(folder / "my.csv", "label")["name"]
    assert f'`mmbench.refit("results/{name}", "rmm")`' in PAGES["own_table"]


@pytest.mark.usefixtures("one_process")
def test_the_saved_model_is_used_as_the_page_states(folder, monkeypatch):
    monkeypatch.chdir(folder)
    (option,) = set(re.findall(r"`(--save \S+)`", PAGES["own_table"]))
    few = ["--set", "machines={lda: {params: {ridge: 0.1}}}", "--set", "protocol.test={kfold: 2}"]
    easy = ["easy", "my.csv", "--target", "label", *few, *option.split()]
    assert CliRunner().invoke(app, easy).exit_code == 0
    rows = (folder / "my.csv").read_text().splitlines()
    (folder / "new.csv").write_text("\n".join(row.rpartition(",")[0] for row in rows))
    (code,) = re.findall(r"```python\n(.*?)```", PAGES["own_table"], re.S)
    exec(code, found := {})
    assert set(found["labels"]) == {"a", "b"}
    assert len(found["labels"]) == len(rows) - 1


def test_the_ratios_of_grid_searches_are_those_of_the_benchmarks():
    with (ROOT / "benchmarks/results/peers.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] == "search"]
    ratios = [float(row["ratio"]) for row in rows if row["contender"] == "GridSearchCV"]
    times = f"{min(ratios):.1f} to {max(ratios):.1f} times faster"
    assert f"`GridSearchCV` {times}" in PAGES["estimators"]


def test_balanced_weights_are_computed_for_each_pair_of_classes():
    X, y = (values[:115] for values in load_iris(return_X_y=True))  # 50, 50 and 15 rows
    ours = SVM(gamma=0.5, class_weight="balanced", tol=1e-7).fit(X, y)
    rows = y != 0
    pair = SVC(gamma=0.5, class_weight="balanced", tol=1e-7).fit(X[rows], y[rows])
    last = ours.pairwise_decision_function(X)[:, 2]
    np.testing.assert_allclose(last, pair.decision_function(X), atol=1e-4)
