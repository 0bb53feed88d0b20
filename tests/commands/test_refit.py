"""`mmbench.refit`: the chosen machine of an experiment, fitted on all rows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from helpers.serial_executor import no_processes
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import mmbench
from mmbench.cli.app import app
from mmbench.commands.refit import check_file, refit
from mmbench.commands.refit import write as write_model
from mmbench.errors import UserError
from mmbench.jobs.seal import sealed

pytestmark = pytest.mark.usefixtures("one_process")

EXPERIMENT = {
    "name": "small",
    "datasets": ["iris"],
    "preprocess": "standard",
    "kernel": "rbf",
    "protocol": {"test": {"kfold": 2}},
    "select": {"folds": 2},
    "machines": {
        "svm": {"grid": {"C": [1, 8], "gamma": [0.1]}},
        "lda": {"use": "svm", "params": {"ridge": 0.1}},
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    with no_processes():
        (finished,) = mmbench.run(EXPERIMENT, tmp_path_factory.mktemp("results"), jobs=1)
    return finished.folder


def copied_records(folder: Path, copy: Path) -> list[tuple[Path, dict]]:
    """Copy an experiment and return the paths and the contents of the copied records."""
    shutil.copytree(folder, copy)
    return [(path, json.loads(path.read_text())) for path in (copy / "records").glob("*.json")]


def write(path: Path, record: dict) -> None:
    """Replace a record by one with another content."""
    path.write_bytes(sealed({k: v for k, v in record.items() if k != "seal"}, indent=1))


def test_the_model_is_the_machine_with_the_selected_parameters_on_all_rows(folder, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr("mmbench.allowance.MESSAGE_SECONDS", 0.0)
    model = mmbench.refit(folder, "svm", say=said.append)
    assert said[0] == "svm: trains on 150 of 150 rows"
    assert any("SVM on classes setosa/versicolor: training, violation " in line for line in said)
    X, y = load_iris(return_X_y=True)
    C = model.provenance_["selected_parameters"]["C"]
    assert C in (1, 8)
    own = mmbench.SVM(C=C, gamma=0.1, kernel="rbf").fit(StandardScaler().fit_transform(X), y)
    expected = own.decision_function(StandardScaler().fit_transform(X))
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-6)
    predicted = own.predict(StandardScaler().fit_transform(X))
    assert (load_iris().target_names[predicted] == model.predict(X)).all()


def test_the_origin_of_the_model_is_stated(folder):
    origin = mmbench.refit(folder, "lda").provenance_
    frame = mmbench.load(folder)
    own = frame[frame.machine == "lda"]
    assert origin["expected_accuracy_pct"]["mean"] == pytest.approx(own.accuracy_pct.mean())
    assert origin["expected_accuracy_pct"]["n_splits"] == 2
    sd = np.std(own.accuracy_pct.astype(float), ddof=1)
    assert origin["expected_accuracy_pct"]["sd"] == pytest.approx(sd) and sd > 1
    assert origin["data_hash"] == own.data_hash.iloc[0]
    assert {fit["status"] for fit in origin["fits"]} == {"optimal"}


@pytest.mark.parametrize(("best", "other"), [("svm", "lda"), ("lda", "svm")])
def test_without_a_name_the_column_with_the_best_mean_is_taken(folder, tmp_path, best, other):
    """The other column has the best single split."""
    accuracies = {best: [90.0, 90.0], other: [60.0, 100.0]}
    for path, record in copied_records(folder, tmp_path / "small"):
        record["metrics"]["accuracy_pct"] = accuracies[record["job"]["machine"]].pop()
        write(path, record)
    assert mmbench.refit(tmp_path / "small").provenance_["machine"] == best


def test_a_machine_with_few_splits_is_not_taken_for_the_best(folder, tmp_path):
    records = [(p, r) for p, r in copied_records(folder, tmp_path / "small") if is_lda(r)]
    for (path, record), failed in zip(records, (False, True), strict=True):
        record["metrics"]["accuracy_pct"] = 0.0 if failed else 100.0
        record["fits"]["statuses"] |= {"failed": 1} if failed else {}
        write(path, record)
    assert mmbench.refit(tmp_path / "small").provenance_["machine"] == "svm"


def is_lda(record: dict) -> bool:
    return record["job"]["machine"] == "lda"


def test_a_kernel_of_two_degrees_has_no_more_splits_than_another(tmp_path):
    kernels = {"kernel": ["rbf", "poly"], "degree": [2, 3]}
    config = {**EXPERIMENT, **kernels, "machines": {"svm": {"params": {"C": 1.0, "gamma": 0.1}}}}
    (finished,) = mmbench.run(config, tmp_path, jobs=1)
    for path in (finished.folder / "records").glob("*.json"):
        record = json.loads(path.read_text())
        record["metrics"]["accuracy_pct"] = 90.0 if record["job"]["kernel"] == "rbf" else 80.0
        write(path, record)
    assert mmbench.refit(finished.folder).provenance_["kernel"] == "rbf"


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")])
def test_of_equal_columns_the_first_of_the_table_is_taken(tmp_path, order):
    columns = {name: {"machine": "lda", "params": {"ridge": 0.1}} for name in order}
    (finished,) = mmbench.run({**EXPERIMENT, "machines": columns}, tmp_path, jobs=1)
    assert mmbench.refit(finished.folder).provenance_["machine"] == order[0]


def test_without_a_name_the_best_of_several_kernels_is_taken(tmp_path):
    config = {**EXPERIMENT, "kernel": ["linear", "rbf"]}
    config["machines"] = {"svm": {"params": {"C": 1.0}}, "weak": {"machine": "mamc"}}
    (finished,) = mmbench.run(config, tmp_path, jobs=1)
    means = mmbench.load(finished.folder).groupby(["machine", "kernel"]).accuracy_pct.mean()
    origin = mmbench.refit(finished.folder).provenance_
    assert means[origin["machine"], origin["kernel"]] == means.max()
    best = mmbench.refit(finished.folder, kernel="linear").provenance_
    assert means[best["machine"], "linear"] == means.xs("linear", level="kernel").max()
    with pytest.raises(UserError, match="several values of kernel"):
        mmbench.refit(finished.folder, "svm")
    with pytest.raises(UserError, match="no record of the kernel 'poly'"):
        mmbench.refit(finished.folder, kernel="poly")


def test_a_classifier_of_another_package_is_saved(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    monkeypatch.chdir(tmp_path)
    np.savetxt("my.csv", np.column_stack([X, y]), "%g", ",", header="a,b,c,d,kind", comments="")
    few = "machines={lr: {estimator: sklearn.linear_model.LogisticRegression}}"
    easy = ["easy", "my.csv", "--target=kind", "--set", few, "--set", "protocol.test={kfold: 2}"]
    done = CliRunner().invoke(app, [*easy, "--save", "my.joblib"])
    assert done.exit_code == 0, done.output
    assert "lr on my: its fits have no certificate" in done.output  # and no kernel
    model = joblib.load("my.joblib")
    expected = LogisticRegression().fit(StandardScaler().fit_transform(X), y)
    shown = model.predict_proba(pd.read_csv("my.csv"))
    np.testing.assert_allclose(shown, expected.predict_proba(StandardScaler().fit_transform(X)))
    assert "NaN" not in Path("my.json").read_text()
    origin = json.loads(Path("my.json").read_text())
    assert origin["kernel"] is None and origin["fits"] == []


def test_a_random_step_is_the_same_in_every_refit(tmp_path):
    config = {**EXPERIMENT, "preprocess": {"sklearn.kernel_approximation.RBFSampler": None}}
    config["machines"] = {"svm": {"params": {"C": 1.0}}}
    (finished,) = mmbench.run(config, tmp_path, jobs=1)
    X, _ = load_iris(return_X_y=True)
    first, second = (mmbench.refit(finished.folder) for _ in range(2))
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))


def test_wrong_names_are_one_line(folder, tmp_path):
    with pytest.raises(UserError, match="machine 'svn'; did you mean 'svm'"):
        refit(folder, "svn")


def test_a_model_of_a_table_takes_its_words_in_any_order_of_the_columns(tmp_path):
    rng = np.random.default_rng(0)
    colour, a = rng.choice(["red", "green", "blue"], 60), rng.normal(size=60)
    table = pd.DataFrame({"colour": colour, "id": range(60), "kind": "", "a": a})
    table["kind"] = np.where((colour == "red") | (a > 1), "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    data = {"path": str(tmp_path / "t.csv"), "target": "kind", "drop": ["id"]}
    data |= {"categorical": ["colour"], "preprocess": ["one_hot", "standard"]}
    (finished,) = mmbench.run({**EXPERIMENT, "datasets": [data]}, tmp_path / "results", jobs=1)
    joblib.dump(mmbench.refit(finished.folder, "svm"), tmp_path / "m.joblib")
    model = joblib.load(tmp_path / "m.joblib")
    codes = np.column_stack([colour == word for word in ("blue", "green", "red")])
    X = StandardScaler().fit_transform(np.column_stack([a, codes]))
    C = model.provenance_["selected_parameters"]["C"]
    expected = mmbench.SVM(C=C, gamma=0.1).fit(X, table.kind).decision_function(X)
    read = pd.read_csv(tmp_path / "t.csv")
    for rows in (read, read[["a", "colour"]], read[["colour", "a"]].to_numpy()):
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-6)
    unknown = model.decision_function(read.assign(colour="pink"))
    assert not np.isclose(unknown, expected, atol=1e-3).all()
    with pytest.raises(ValueError, match="no column 'colour'"):
        model.predict(read[["a"]])
    for columns in (["a"], ["id", "a", "colour", "kind"]):
        with pytest.raises(ValueError, match="give these columns, or a data frame with these"):
            model.predict(read[columns].to_numpy())


def test_easy_saves_the_best_machine(tmp_path, monkeypatch):
    X, y = load_iris(return_X_y=True)
    table = np.column_stack([X, y])
    monkeypatch.chdir(tmp_path)
    np.savetxt("my.csv", table, "%g", ",", header="a,b,c,d,kind", comments="")
    few = ["--set", "machines={lda: {params: {ridge: 0.1}}}", "--set", "protocol.test={kfold: 2}"]
    easy = ["easy", "my.csv", "--target=kind", *few, "--save"]
    refused = CliRunner().invoke(app, [*easy, "my.txt"])
    assert (refused.exit_code, ".joblib" in refused.stderr) == (2, True)
    done = CliRunner().invoke(app, [*easy, "my.joblib"])
    assert done.exit_code == 0, done.stderr
    assert joblib.load("my.joblib").predict(X).shape == (150,)
    assert json.loads(Path("my.json").read_text())["machine"] == "lda"


def test_the_best_machine_is_the_best_on_the_data_set(tmp_path):
    """On the second data set, the machine that is best on average is not the best."""
    rng = np.random.default_rng(0)
    paths = []
    for name, noise in (("line", 0.05), ("ring", 0.05)):
        X = rng.uniform(-1, 1, (80, 2))
        y = X[:, 0] > 0 if name == "line" else np.hypot(*X.T) > 0.7
        y = y ^ (rng.random(80) < noise)
        paths.append(tmp_path / f"{name}.csv")
        pd.DataFrame(X, columns=["a", "b"]).assign(kind=y.astype(int)).to_csv(
            paths[-1], index=False
        )
    data = [{"path": str(path), "target": "kind"} for path in paths]
    machines = {
        "line": {"machine": "svm", "params": {"C": 1e4, "gamma": 1e-3}},
        "ring": {"machine": "svm", "params": {"C": 10.0, "gamma": 9.0}},
    }
    config = {**EXPERIMENT, "datasets": data, "machines": machines}
    (finished,) = mmbench.run(config, tmp_path / "results", jobs=1)
    means = mmbench.load(finished.folder).groupby(["dataset", "machine"]).accuracy_pct.mean()
    assert {means[name].idxmax() for name in ("line", "ring")} == {"line", "ring"}
    for name in ("line", "ring"):
        origin = mmbench.refit(finished.folder, dataset=name).provenance_
        assert origin["machine"] == means[name].idxmax()


def test_splits_with_a_failed_fit_count_neither_here_nor_in_tables(folder, tmp_path):
    records = copied_records(folder, tmp_path / "small")
    path, record = next((path, r) for path, r in records if r["job"]["machine"] == "lda")
    record["fits"]["statuses"]["failed"] = 1
    write(path, record)
    origin = mmbench.refit(tmp_path / "small", "lda").provenance_
    assert origin["expected_accuracy_pct"]["n_splits"] == 1
    assert "1 of 2 splits not counted" in str(mmbench.table(tmp_path / "small"))


def test_a_table_that_has_moved_is_read_at_its_new_place(tmp_path):
    for place in ("old", "new"):
        (tmp_path / place).mkdir()
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "b"])
    table["kind"] = np.arange(40) % 2
    table.to_csv(tmp_path / "old" / "t.csv", index=False)

    def run(place):
        data = [{"path": str(tmp_path / place / "t.csv"), "target": "kind"}]
        return mmbench.run({**EXPERIMENT, "datasets": data}, tmp_path / "results", jobs=1)[0]

    run("old")
    (tmp_path / "old" / "t.csv").rename(tmp_path / "new" / "t.csv")
    assert run("new").done == 0
    assert len(mmbench.refit(tmp_path / "results" / "small", "svm").predict(table)) == 40
    (tmp_path / "new" / "t.csv").unlink()
    with pytest.raises(UserError, match=r"old/t\.csv: No such file"):
        mmbench.refit(tmp_path / "results" / "small", "svm")


def test_a_model_that_cannot_be_written_keeps_the_earlier_one(folder, tmp_path, monkeypatch):
    model, path = mmbench.refit(folder, "lda"), tmp_path / "model.joblib"
    write_model(model, path)
    before = path.read_bytes()

    def full(value, file):
        if isinstance(file, Path):
            file.write_bytes(b"half of a model")
        raise OSError("disk full")

    monkeypatch.setattr("joblib.dump", full)
    with pytest.raises(UserError, match=r"model\.joblib: cannot be written: disk full"):
        write_model(model, path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    path.with_suffix(".json").unlink()
    path.with_suffix(".json").mkdir()
    with pytest.raises(UserError, match=r"model\.json: cannot be written"):
        write_model(model, path)


def test_a_place_that_cannot_be_written_is_refused_before_the_comparison(tmp_path):
    (tmp_path / "folder.joblib").mkdir()
    with pytest.raises(UserError, match=r"folder\.joblib: a model is written to a \.joblib file"):
        check_file(tmp_path / "folder.joblib")
    with pytest.raises(UserError, match="no such folder, or no permission to write in it"):
        check_file(tmp_path / "none" / "model.joblib")
