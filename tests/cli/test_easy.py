"""``mmbench easy``: from a table of data to a table of machines in one line."""

from __future__ import annotations

import json
import re
import shlex
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.sparse import csr_array
from sklearn.datasets import make_classification
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.commands.easy import EXPERIMENT
from mmbench.config.read import load_config
from mmbench.errors import UserError
from mmbench.jobs.seal import sealed
from mmbench.machines import MACHINES as ALL

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(autouse=True)
def no_picture(request, monkeypatch) -> None:
    """Draw the figure of the machines in the test of it alone."""
    if "figure" not in request.function.__name__:
        monkeypatch.setattr("mmbench.commands.outputs.draw_figure", lambda *_: "")


@pytest.fixture
def table(tmp_path) -> Path:
    X, y = make_classification(60, 3, n_informative=3, n_redundant=0, random_state=0)
    ward = np.array(["north", "south"])[(X[:, 0] > 0).astype(int)]
    rows = zip(X.tolist(), ward, y, strict=True)
    lines = ["a,b,c,ward,7", *(f"{a},{b},{c},{w},c{k}" for (a, b, c), w, k in rows)]
    lines[3] = lines[3].replace(lines[3].split(",")[1], "", 1)  # a missing value
    path = tmp_path / "my data.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def easy(path, *options):
    results = str(path.parent / "results")
    return CliRunner().invoke(app, ["easy", str(path), "--results", results, *options])


FEW = [
    "--set=machines={svm: {grid: {C: [1, 10]}}, rf: {estimator: sklearn.naive_bayes.GaussianNB}}",
    "--set=protocol.test={kfold: 2}",
    "--jobs=1",
]


def test_a_table_and_a_figure_come_out(table):
    done = easy(table, "--target", "7", *FEW)
    assert done.exit_code == 0, done.output
    heads = next(line for line in done.stdout.splitlines() if line.startswith("| machine "))
    assert [cell.strip() for cell in heads.split("|")[2:5]] == [
        "Accuracy (%)",
        "Balanced accuracy",
        "AUC",
    ]
    assert "| SVM " in done.stdout
    assert "Selected parameters" not in done.stdout, "they stand in the line of their machine"
    assert "- Selected: median over splits" in done.stdout
    assert "easy_my_data: 4 jobs done" in done.stderr
    folder = table.parent / "results" / "easy_my_data"
    assert (folder / "machines.png").stat().st_size > 1000
    assert load_config(folder / "experiment.yaml").datasets[0].target == "7"


def test_the_time_left_is_that_of_all_machines(table):
    folds = "--set=protocol.test={kfold: 5}"
    done = easy(table, "--target=7", FEW[0], folds, "--jobs=1")
    left = [line.split()[-3:] for line in done.stderr.splitlines() if line.endswith(" left")]
    seconds = [float(value) for value, unit, _ in left if unit == "s"]
    assert len(seconds) == 9  # of ten jobs, without the last
    assert seconds[3] > 0  # the other machine has not begun


def test_the_line_of_a_machine_states_the_cpu_seconds_of_its_jobs(table):
    options = ["--target=7", "--set=machines={svm: {params: {C: 1}}}", *FEW[1:]]
    easy(table, *options)
    for path in (table.parent / "results" / "easy_my_data" / "records").glob("*.json"):
        record = json.loads(path.read_text())
        record |= {"cpu_seconds": {"training": 20.0, "test": 1.5}}
        path.write_bytes(sealed({k: v for k, v in record.items() if k != "seal"}, indent=1))
    assert "% correct, 43.0 CPU s\n" in easy(table, *options).stderr  # of two jobs


def test_jobs_that_fail_beside_records_of_other_settings_are_no_wrong_input(table):
    few = FEW[1:]
    assert easy(table, "--target=7", "--set=machines={svm: {grid: {C: [1]}}}", *few).exit_code == 0
    slow = ["--set=machines={svm: {grid: {C: [2]}}}", "--set=limits.time=0.0001"]
    done = easy(table, "--target=7", *slow, *few)
    assert done.exit_code == 1, done.output
    assert "0 jobs done, 0 done before, 2 failed" in done.stderr
    assert "no figure: no finished record" in done.stderr
    assert "| SVM " in done.stdout
    assert "time: 10min" in easy(table, "--target=7", "--show").stdout, "a run changes no default"


def test_of_many_columns_the_first_and_the_last_are_named(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text(",".join([*(f"x{j}" for j in range(400)), "kind"]) + "\n" + "1," * 400 + "a\n")
    said = easy(path).stderr
    assert "one of x0, x1, " in said
    assert said.endswith(", ..., x399, kind\n")


def test_every_machine_is_there_and_the_experiment_can_be_had(table):
    done = easy(table, "--target=-1", "--show", "--all")
    assert done.exit_code == 0, done.output
    shown = yaml.safe_load(done.stdout)
    known = {*ALL, "mamc_b", "majority", "logistic_regression", "linear_discriminant"}
    known |= {"gradient_boosting", "random_forest"}
    assert set(shown["machines"]) == known
    some = yaml.safe_load(easy(table, "--target=-1", "--show").stdout)["machines"]
    assert [*some, "svm_quarter"] == list(yaml.safe_load(EXPERIMENT.read_text())["machines"])
    assert shown["datasets"][0]["target"] == -1
    assert not (table.parent / "results").exists()
    (table.parent / "own.yaml").write_text(done.stdout)
    assert load_config(table.parent / "own.yaml").name == "easy_my_data"


WRONG = {
    "no target": ([], "--target, one of a, b, c, ward, 7"),
    "no such target": (["--target=d"], "no target column 'd'"),
    "continuous": (["--target=a"], "it looks continuous"),
    "one row a class": (
        ["--target=7", "--set=protocol.test={kfold: 40}"],
        "--set 'protocol.test={kfold: 30}'",
    ),
    "bad value": (["--target=7", "--set=kernel=lin"], "did you mean 'linear'"),
    "bad key": (["--target=7", "--set=folds=3"], "did you mean select.folds?"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line_and_nothing_is_made(name, table):
    options, words = WRONG[name]
    done = easy(table, *options)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.strip().count("\n") == 0
    assert not (table.parent / "results").exists()


def test_a_file_that_is_none_is_named(tmp_path):
    assert "no such file" in easy(tmp_path / "no.csv", "--target=a").stderr
    assert "is a folder" in easy(tmp_path, "--target=a").stderr


def write(folder: Path, labels: list[str], name: str = "t.csv") -> Path:
    X = np.random.default_rng(0).normal(size=(len(labels), 2)).round(3)
    lines = [f"{a},{b},{label}" for (a, b), label in zip(X.tolist(), labels, strict=True)]
    (folder / name).write_text("\n".join(["a,b,kind", *lines]) + "\n")
    return folder / name


ONE = ["--set=machines={lda: {params: {ridge: 0.1}}}", "--target=kind", "--jobs=1"]
COMMON = ["x", "y"] * 20
#: Labels of a table, options, and words of what is said.
STRANGE = {
    "a class of one row": ([*COMMON, "z"], [], "left out: 1 rows of classes with too few rows"),
    "a class of four rows": ([*COMMON, *"zzzz"], [], "left out: 4 rows of classes"),
    "a class of five rows": ([*COMMON, *"zzzzz"], [], "5 jobs done"),
    "a class of four training rows and five inner folds": (
        [*COMMON, *"zzzzz"],
        ["--set=select.folds=5"],
        "left out: 5 rows of classes with too few rows for 5 folds: z",
    ),
    "a class that is never predicted": (
        ["x", *["y"] * 11] * 10,
        ["--set=machines={nb: {estimator: sklearn.naive_bayes.GaussianNB, label: LDA}}"],
        "no machine recognises class x; try --metric balanced_accuracy",
    ),
    "a class that only another machine predicts": (
        ["x", *["y"] * 11] * 10,
        ["--set=machines={svm: {params: {C: 1}}, lda: {params: {ridge: 0.1}}}"],
        "SVM has the best accuracy, and is the machine of --save, but recognises no row of class x;"
        " LDA recognises ",
    ),
    "no label": ([*COMMON, "", ""], [], "2 rows without 'kind' are left out"),
    "a rare class of many rows": (
        ["x", "y"] * 500 + ["z"] * 5,
        ["--set=protocol.max_train=100"],
        "all machines train on at most 34 rows per class, as some classes are rare",
    ),
    "more classes than rows to train on": (
        [f"c{k % 12}" for k in range(96)],
        ["--set=protocol.max_train=8"],
        "all machines train on at most 3 rows per class, as some classes are rare",
    ),
    "rows per class of one machine": (
        ["x", "y"] * 20,
        ["--set=machines={lda: {params: {ridge: 0.1}, max_train: {per_class: 5}}}"],
        "lda: trains on 10 of 40 rows",
    ),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_table_runs_and_says_how(name, tmp_path):
    labels, options, words = STRANGE[name]
    done = easy(write(tmp_path, labels), *ONE, *options, f"--save={tmp_path / 'm.joblib'}")
    assert done.exit_code == 0, done.stderr
    assert words in done.stderr
    assert "| LDA " in done.stdout


REFUSED = {
    "three rows a class": (
        list("xyz") * 3,
        "--set 'protocol.test={kfold: 3}' --set select.folds=2",
    ),
    "two rows a class": (list("xyz") * 2, "3 are needed; choose another column by --target"),
    "a number for each row": (
        [str(k) for k in range(50)],
        "the second largest of 50 classes has 1 rows, 3 are needed; choose another column",
    ),
    "a whole number, continuous": ([str(k * k % 997) for k in range(50)], "it looks continuous"),
    "many classes": ([f"c{k % 120}" for k in range(720)], "--set 'datasets[0].classes=[c0, c1, "),
    "continuous": ([f"{k / 7:.4f}" for k in range(50)], "pandas.qcut"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_table_that_cannot_run_has_one_line_with_the_option_that_goes_on(name, tmp_path):
    labels, words = REFUSED[name]
    path = write(tmp_path, labels)
    done = easy(path, *ONE)
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.strip().count("\n") == 0
    if words.startswith("--set"):
        options = [f"--set={part.strip(chr(39) + ' ')}" for part in words.split("--set ")[1:]]
        options = [f"{option}c2]" if option.endswith(",") else option for option in options]
        assert easy(path, *ONE, *options).exit_code == 0


def test_a_data_frame_is_compared_in_python(tmp_path):
    frame = pd.read_csv(write(tmp_path, COMMON))
    machines = "machines={lda: {params: {ridge: 0.1}}}"
    said: list[str] = []
    found = mmbench.easy(frame, "kind", tmp_path / "results", set=[machines], say=said.append)
    assert found.exit_code == 0
    assert "| LDA " in found.text
    assert len(mmbench.load(found.folder)) == 5
    assert any(line.startswith("LDA: ") for line in said), "each machine is said when it is done"


FRAME_FAULTS = {
    "labels": ({"target": pd.Series([0, 1])}, "easy(X, y): X has 1 rows, y has 2 labels"),
    "a frame of labels": ({"target": pd.DataFrame({"y": [0]})}, "y has 2 dimensions; labels need"),
    "a tuple of labels": ({"target": ("x", "y")}, "easy(X, y): X has 1 rows, y has 2 labels"),
    "sparse rows": ({"data": csr_array([[1]]), "target": [0]}, "X is sparse; save X and y by"),
    "sparse labels": ({"target": csr_array([[1]])}, "y is sparse; labels are dense, as y.toarray"),
    "no metric": ({"metric": None}, "metric must be the name of a metric, got None"),
    "results": ({"results": 3}, "results must be the path of a folder, got 3"),
    "metric": ({"metric": "acuracy"}, "did you mean 'accuracy'"),
    "an array": ({"data": np.eye(2)}, "a path or a data frame is needed, got ndarray"),
    "machines": ({"machines": ["svm"]}, "no option 'machines'; valid: results, store, "),
    "lists": ({"data": pd.DataFrame({"a": [[1]]})}, "column 'a' contains lists, neither numbers"),
    "https": ({"data": "https://x.org/a.csv"}, "https://x.org/a.csv: is an address; download"),
    "s3": ({"data": Path("s3://b/a.csv")}, "s3://b/a.csv: is an address; download the file"),
}


@pytest.mark.parametrize("name", FRAME_FAULTS)
def test_arguments_that_are_wrong_are_one_line(name):
    given, words = FRAME_FAULTS[name]
    with pytest.raises(UserError, match=f".*{re.escape(words)}"):
        mmbench.easy(**{"data": pd.DataFrame({"a": [1]}), "target": "a"} | given)


MANY = [
    "--set=machines={svm: {grid: {C: [1]}}, svm_quarter: {machine: svm, params: {C: 1}}, "
    "nb: {estimator: sklearn.naive_bayes.GaussianNB}}",
    "--set=protocol.test={kfold: 2}",
]


def test_a_table_of_many_rows_uses_a_part_and_says_whether_more_would_help(tmp_path):
    path = write(tmp_path, ["x", "y", "y"] * 900)
    model = tmp_path / "model.joblib"
    metric = "--metric=balanced_accuracy"
    done = easy(path, *MANY, "--target=kind", metric, f"--save={model}", "--calibrate=sigmoid")
    assert done.exit_code == 0, done.stderr
    assert "of about 1350 training rows, a random part is used: SVM, 1000 rows, SVM, 250 rows" in (
        done.stderr
    )
    assert "[6/6]" in done.stderr, "one count of all machines"
    assert re.search("SVM with 250 and with 1000 rows: .* no sign that more rows help", done.stderr)
    assert re.search("trains on (1000|250|2700) of 2700 rows", done.stderr)
    heads = next(line for line in done.stdout.splitlines() if line.startswith("| machine "))
    assert heads.split("|")[2].strip() == "Balanced accuracy"
    folder = path.parent / "results" / "easy_t"
    rows = mmbench.load(folder).groupby("machine").n_train.unique()
    assert {name: n.tolist() for name, n in rows.items()} == {
        "svm": [1000],
        "svm_quarter": [250],
        "nb": [1350],
    }
    probabilities = joblib.load(model).predict_proba(pd.read_csv(path).drop(columns="kind"))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_rows_of_a_rare_class_are_not_taken_for_an_effect_of_more_rows(tmp_path):
    # a part of 250 random rows would contain too few rows of class z, and 1000 rows contain enough
    path = write(tmp_path, ["x", "y"] * 1470 + ["z"] * 40)
    done = easy(path, "--target=kind", MANY[0], "--set=protocol.test={kfold: 2}")
    assert done.exit_code == 0, done.stderr
    assert "a random part is used: SVM, 1000 rows\n" in done.stderr
    assert "more rows help" not in done.stderr


@pytest.mark.parametrize(
    ("metric", "best", "rows"), [("accuracy", "most", 600), ("balanced_accuracy", "svm", 39)]
)
def test_the_best_by_the_metric_is_saved_with_as_many_rows_of_each_class(
    metric, best, rows, tmp_path
):
    X, model = np.random.default_rng(0).normal(size=(600, 2)), tmp_path / "model.joblib"
    labels = np.where((X[:, 0] > 1) & (np.arange(600) % 8 == 0), "z", "x").tolist()
    machines = "svm: {params: {C: 10, gamma: 1}, max_train: 60}, most: {estimator: "
    some = f"machines={{{machines}sklearn.dummy.DummyClassifier}}}}"
    path = write(tmp_path, labels)
    done = easy(path, "--target=kind", f"--metric={metric}", f"--set={some}", f"--save={model}")
    assert done.exit_code == 0, done.stderr
    assert "| SVM, 30 rows per class " in done.stdout
    assert f"{best}: trains on {rows} of 600 rows" in done.stderr


def test_arrays_are_compared(tmp_path):
    X, y = make_classification(60, 4, random_state=0)
    options = {"set": ["machines={lda: {params: {ridge: 0.1}}}"], "jobs": 1, "say": str}
    assert "| LDA " in mmbench.easy(X, y, tmp_path / "results", **options).text


def test_results_may_be_none_and_a_single_setting_needs_no_list(tmp_path, monkeypatch):
    frame = pd.read_csv(write(tmp_path, COMMON))
    monkeypatch.chdir(tmp_path)
    machines = "machines={lda: {params: {ridge: 0.1}}}"
    options = {"set": machines, "only": "machine=lda", "say": str}
    assert mmbench.easy(frame, "kind", None, **options).folder.parent == Path("results")


def test_rows_without_a_group_are_left_out(tmp_path):
    path = write(tmp_path, COMMON)
    lines = path.read_text().splitlines()
    groups = ["patient", *(f"p{k // 2}" if k else "" for k in range(len(COMMON)))]
    path.write_text("\n".join(f"{line},{g}" for line, g in zip(lines, groups, strict=True)) + "\n")
    done = easy(path, *ONE, "--set=datasets[0].groups=patient")
    assert done.exit_code == 0, done.stderr
    assert "1 rows without 'kind' or 'patient' are left out" in done.stderr


def test_each_data_frame_has_a_comparison_of_its_own(tmp_path):
    frame = pd.read_csv(write(tmp_path, COMMON))
    machines = "machines={lda: {params: {ridge: 0.1}}}"
    options = {"results": tmp_path / "results", "set": [machines], "say": lambda line: None}
    first = mmbench.easy(frame, "kind", **options)
    second = mmbench.easy(frame[::-1].assign(a=0.5), "kind", **options)
    assert first.folder != second.folder
    assert mmbench.refit(first.folder).predict(frame.drop(columns="kind")).shape == (len(frame),)


@pytest.mark.parametrize(
    ("options", "coding", "target"),
    [(["datasets[0].header=false"], "utf-8", 3), (["datasets[0].encoding=latin-1"], "latin-1", -1)],
)
def test_a_numbered_column_is_looked_up_with_the_options_of_the_file(
    options, coding, target, tmp_path
):
    path = write(tmp_path, COMMON)
    text = path.read_text().replace("a,b,kind\n", "" if target == 3 else "a,b,größe\n")
    path.write_bytes(text.encode(coding))
    sets = [f"--set={option}" for option in options]
    done = easy(path, ONE[0], "--jobs=1", f"--target={target}", *sets)
    assert done.exit_code == 0, done.stderr
    assert "| LDA " in done.stdout


def test_a_data_frame_may_have_numbers_as_names_of_columns(tmp_path):
    X, y = make_classification(40, 3, n_informative=3, n_redundant=0, random_state=0)
    frame = pd.DataFrame(np.column_stack([X[:, 0], y > 5, np.tile([0, 1], 20), y]))
    machines = "machines={lda: {params: {ridge: 0.1}}}"
    found = mmbench.easy(frame, 3, tmp_path / "results", set=[machines], say=lambda line: None)
    assert load_config(found.folder / "experiment.yaml").datasets[0].target == "column_3"
    assert mmbench.load(found.folder).n_train.tolist() == [32] * 5
    model = mmbench.refit(found.folder)
    predicted = model.predict(frame[[2, 1, 0]])
    assert predicted.tolist() == model.predict(frame[[0, 1, 2]].to_numpy()).tolist()
    frame.columns = [0, 1, 2, "site"]
    mixed = mmbench.easy(frame, 2, tmp_path / "results", set=[machines], say=lambda line: None)
    assert load_config(mixed.folder / "experiment.yaml").datasets[0].target == "column_2"
    assert mmbench.refit(mixed.folder).predict(frame.drop(columns=2)).shape == (40,)


@pytest.mark.parametrize("one", ["\U0001f468\u200d\U0001f469", "a, b: #"])
def test_a_class_may_be_any_character(tmp_path, one):
    done = easy(write(tmp_path, [f'"{one}"', "\U0001f601"] * 20 + ["z"]), *ONE)
    assert done.exit_code == 0, done.stderr
    assert "left out: 1 rows" in done.stderr


def test_a_class_may_contain_a_dash_of_windows(tmp_path):
    path = write(tmp_path, ["20\u201330", "30\u201340"] * 20 + ["z"])
    path.write_bytes(path.read_text().encode("cp1252"))
    done = easy(path, *ONE, "--set=datasets[0].encoding=latin-1")
    assert done.exit_code == 0, done.stderr
    assert "left out: 1 rows" in done.stderr


def test_the_advice_about_many_classes_quotes_their_names(tmp_path):
    path = write(tmp_path, [f'"O\'Brien, {k % 120}"' for k in range(720)])
    done = easy(path, *ONE)
    assert done.exit_code == 2
    command = shlex.split(done.stderr.partition("as by ")[2])
    assert command[0] == "--set"
    done = easy(path, *ONE, *command)
    assert done.exit_code == 0, done.stderr


def test_categories_of_a_data_frame_that_are_numbers_are_named(tmp_path):
    rng, said = np.random.default_rng(0), []
    frame = pd.DataFrame({"a": rng.normal(size=40), "kind": pd.Categorical(np.arange(40) % 2)})
    frame["ward"] = pd.Categorical(rng.integers(3, size=40))
    frame["colour"] = pd.Categorical(rng.choice(["red", "blue"], size=40))
    frame["a;b\tc;d;e"] = rng.choice(["01", "02"], size=40)  # no separator in the name splits it
    machines = "machines={rf: {estimator: sklearn.naive_bayes.GaussianNB}}"
    mmbench.easy(frame, "kind", tmp_path / "results", set=[machines], say=said.append)
    found = [line for line in said if "is read as numbers" in line]
    assert found == [
        "column 'ward' is read as numbers; words would be read as categories",
        "column 'a;b\\tc;d;e' is read as numbers; words would be read as categories",
    ]


def test_a_sparse_table_runs_the_machines_that_take_sparse_rows(tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{k % 2} " + " ".join(f"{j}:1" for j in sorted(rng.choice(9_000_000, 5) + 1))
        for k in range(40)
    ]
    path = tmp_path / "words.svm"
    path.write_text("\n".join(lines) + "\n")
    columns = "svm: {params: {C: 1, gamma: 1}}, rmm: {use: svm, params: {B: 1}}"
    dense = "klda: {params: {gamma: 1, eta: 1}}, mpm: {use: klda}"
    options = ["--jobs=1", "--set=protocol.test={kfold: 2}"]
    done = easy(path, *options, f"--set=machines={{{dense}, {columns}}}")
    assert done.exit_code == 0, done.stderr
    assert "the table is sparse, and is not scaled; " in done.stderr
    assert "left out, as they need dense rows: klda, mpm" in done.stderr
    assert "4 jobs done, 0 done before, 0 failed" in done.stderr


def test_a_data_frame_may_have_bytes_and_two_levels_of_names(tmp_path):
    frame = pd.read_csv(write(tmp_path, COMMON))
    frame["ward"] = [b"north" if k % 3 else b"south" for k in range(len(frame))]
    frame.columns = pd.MultiIndex.from_product([["g"], frame.columns])
    machines = "machines={lda: {params: {ridge: 0.1}}}"
    found = mmbench.easy(frame, ("g", "kind"), tmp_path / "results", set=[machines], jobs=1)
    assert found.exit_code == 0
    assert "column_('g', 'ward')" in next((tmp_path / "results").glob("*.csv")).read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a category that is not known
        assert set(mmbench.refit(found.folder).predict(frame)) == {"x", "y"}
