"""Tasks and suites of OpenML, from a server, from the store and from a mirror."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from helpers.data_server import HTML, DataServer, files_in

import mmbench
from mmbench.commands.dry_run import dry_run
from mmbench.commands.outputs import export
from mmbench.config.read import load_config
from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.errors import UserError

pytestmark = pytest.mark.usefixtures("one_process")

ROWS = [(k, 0 if k % 3 else k, "ab"[k % 2]) for k in range(12)]
HEAD = "@relation r\n@attribute x real\n@attribute z real\n@attribute kind {a,b}\n@data\n"
DENSE = HEAD + "".join(f"{x},{z},{kind}\n" for x, z, kind in ROWS)
SPARSE = HEAD + "".join(
    "{" + ",".join(f"{k} {v}" for k, v in enumerate(row) if v not in (0, "a")) + "}\n"
    for row in ROWS
)
#: OpenML uses both orders of the columns, and both cases of the key words.
SPLIT_HEADS = {
    "TRAIN,{row},{repeat},{fold}": "@relation s\n\n@attribute type {TRAIN,TEST}\n"
    "@attribute rowid numeric\n@attribute repeat numeric\n@attribute fold numeric\n\n@data\n",
    "TRAIN,{row},{fold},{repeat}": "@RELATION s\n\n@ATTRIBUTE type {TRAIN,TEST} \n"
    "@ATTRIBUTE rowid STRING \n@ATTRIBUTE fold INTEGER \n@ATTRIBUTE repeat INTEGER \n\n@DATA \n",
}
LINE, SPLIT_HEAD = next(iter(SPLIT_HEADS.items()))
TASK = DatasetRef("t", "openml_task:31")


def splits(n_rows: int = 12, line: str = LINE) -> bytes:
    """Two repeats of three folds; row r is tested in fold r % 3, and then in fold r // 4."""
    lines = []
    for repeat, of_row in enumerate((lambda r: r % 3, lambda r: r // 4)):
        for fold in range(3):
            for row in reversed(range(n_rows)):
                one = line.format(row=row, repeat=repeat, fold=fold)
                lines.append(one.replace("TRAIN", "TEST") if of_row(row) == fold else one)
    return (SPLIT_HEADS[line] + "\n".join(lines)).encode()


def parquet() -> bytes:
    pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    frame = pd.DataFrame(ROWS, columns=["x", "z", "kind"]).astype({"kind": "category"})
    frame.to_parquet(content := io.BytesIO())
    return content.getvalue()


def config(**entry: object) -> dict:
    machines, protocol = {"lda": {}}, {"test": {"kfold": 2} if "openml" in entry else "predefined"}
    return {"name": "own", "datasets": [entry], "protocol": protocol, "machines": machines}


@pytest.fixture
def task(server: DataServer) -> DataServer:
    """A server with task 31, whose data set 7 has another default target."""
    server.openml(7, DENSE.encode(), target="x,z")
    server.openml_task(31, 7, splits(), target="kind")
    return server


def test_a_task_is_data_target_and_splits(task: DataServer, store: Path, tmp_path: Path):
    data = load_dataset(TASK, store=store)
    assert data.X.tolist() == [[x, z] for x, z, _ in ROWS]
    assert data.y.tolist() == [kind for *_, kind in ROWS]
    tests = [test.tolist() for _, test in data.predefined]
    assert tests[:3] == [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]
    assert tests[3:] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert all(sorted([*train, *test]) == [*range(12)] for train, test in data.predefined)
    assert files_in(store / "openml") == ["7.arff", "7.json", "task_31.arff", "task_31.json"]
    task.answers.clear()
    places = {"store": tmp_path / "other", "mirror": store, "allow_network": False}
    assert load_dataset(TASK, **places).content_hash == data.content_hash
    assert dataset_hash(TASK, **places) == data.content_hash
    (store / "openml" / "task_31.arff").write_bytes(splits().replace(b"TEST,0,0", b"TRAIN,0,0"))
    assert dataset_hash(TASK, **places) != data.content_hash
    with pytest.raises(UserError, match="openml_task:31: not in the store or the mirror"):
        load_dataset(TASK, store=tmp_path / "other", allow_network=False)


@pytest.mark.parametrize("line", SPLIT_HEADS)
@pytest.mark.parametrize("form", ["dense", "sparse", "parquet"])
def test_all_formats_of_openml_are_the_same_data(task: DataServer, store: Path, form, line):
    plain = load_dataset(TASK, store=store / "plain")
    if form == "parquet":
        task.openml(7, b"", parquet=parquet())
    else:
        task.openml(7, {"dense": DENSE, "sparse": SPARSE}[form].encode())
    task.openml_task(31, 7, splits(line=line), target="kind")
    data = load_dataset(TASK, store=store)
    assert (data.X == plain.X).all() and (data.y == plain.y).all()
    for one, other in zip(data.predefined, plain.predefined, strict=True):
        assert all(map(np.array_equal, one, other))
    task.answers.clear()
    assert load_dataset(TASK, store=store).content_hash == data.content_hash


def test_the_splits_follow_rows_that_are_left_out(task: DataServer, store: Path):
    task.openml(7, DENSE.replace("1,0,b\n", "1,0,?\n", 1).encode())
    data = load_dataset(
        DatasetRef("t", "openml_task:31", options=(("unlabelled", "drop"),)), store=store
    )
    assert len(data.y) == 11
    tests = [data.rows[test].tolist() for _, test in data.predefined]
    assert tests[1:4] == [[4, 7, 10], [2, 5, 8, 11], [0, 2, 3]]


WRONG = {
    "is a task of Supervised Regression": {"kind": "Supervised Regression"},
    r"Task_31_splits\.arff: not a file of splits": {"splits": HTML},
    "the splits have no row numbers": {"splits": splits().replace(b"TEST,0", b"TEST,-1")},
    "row 0 is both a training row and a test row": {"splits": splits() + b"\nTEST,0,0,1"},
    "a line of the splits is not complete": {"splits": splits() + b"\nTEST,0"},
    "not in OpenML's format: invalid literal": {"data_id": "x"},
    "row 24, but the table has 12 rows": {"splits": splits(24)},
    "'nope'": {"target": "nope"},
    "not in OpenML's format": {"data_id": ""},
}


@pytest.mark.parametrize("reason", WRONG)
def test_a_task_that_cannot_be_used_is_one_line(task: DataServer, store: Path, reason: str):
    given = {"data_id": 7, "splits": splits(), "target": "kind"} | WRONG[reason]
    task.openml_task(31, **given)
    with pytest.raises(UserError, match=rf"^openml_task:31: .*{reason}"):
        load_dataset(TASK, store=store)
    del task.answers["/api/v1/xml/task/31"]
    with pytest.raises(UserError, match=r"^openml_task:32: OpenML task 32: "):
        load_dataset(DatasetRef("t", "openml_task:32"), store=store)


@pytest.mark.parametrize("entry", [{"openml": 7}, {"openml_task": 31}, {"openml_suite": 99}])
def test_a_server_that_cannot_be_reached_is_one_line_with_a_way_on(
    entry: dict, store: Path, tmp_path: Path, monkeypatch
):
    monkeypatch.setenv("MMBENCH_OPENML_SERVER", "http://127.0.0.1:1/api/v1/xml")
    with pytest.raises(
        UserError, match=r"cannot be reached.*; run again later.*--mirror"
    ) as caught:
        mmbench.run(config(**entry), results=tmp_path, store=store)
    assert str(caught.value).count("--mirror") == 1


DAMAGED = {
    "31": ['{"ignored": []}', '{"target": "class", "ignored": "id"}'],
    "task_31": ['{"data": "7", "target": "kind"}', '{"data": 7}'],
    "suite_31": ['{"tasks": 5, "left_out": {}}', '{"tasks": [1]}'],
}


@pytest.mark.parametrize(
    ("name", "facts"),
    [(name, facts) for name in DAMAGED for facts in ("[]", "nonsense", "", *DAMAGED[name])],
)
def test_a_damaged_description_of_a_mirror_is_one_line(tmp_path: Path, name: str, facts: str):
    (tmp_path / "openml").mkdir()
    (tmp_path / "openml" / f"{name}.arff").write_text(DENSE)
    (tmp_path / "openml" / f"{name}.json").write_text(facts)
    kind = f"openml_{name}".rpartition("_")[0]
    with pytest.raises(UserError, match=rf"^{kind}:31: .*{name}\.json"):
        dry_run(config(**{kind: 31}), tmp_path, store=tmp_path / "store", mirror=str(tmp_path))


def test_an_experiment_runs_the_splits_of_a_task(task: DataServer, store: Path, tmp_path: Path):
    results, own = tmp_path / "results", config(openml_task=31)
    [first] = mmbench.run(own, results=results, store=store)
    assert (first.done, first.exit_code) == (6, 0)
    assert mmbench.load(results / "own")["dataset"].unique().tolist() == ["openml_task_31"]
    task.answers.clear()
    own["protocol"]["repeats"] = 2
    [again] = mmbench.run(own, results=results, store=store)
    assert (again.done, again.reused, again.exit_code) == (0, 2, 0)


@pytest.fixture
def stored(task: DataServer, store: Path, tmp_path: Path) -> Path:
    """Results of task 31."""
    mmbench.run(config(openml_task=31), results=tmp_path / "results", store=store)
    return tmp_path / "results" / "own"


def test_the_runs_of_a_task_are_read_by_openml_python(stored: Path, store: Path, tmp_path: Path):
    runs = pytest.importorskip("openml.runs", reason="the package openml is not installed")
    target = tmp_path / "runs"
    assert export(stored, output=target, openml=True, store=store) == f"1 run: written to {target}"
    folder = target / "own" / "task_31" / "lda_rbf"
    run = runs.OpenMLRun.from_filesystem(folder, expect_model=False)
    assert (run.task_id, run.flow_name) == (31, "mmbench.lda")
    # openml-python ignores the parameters of a run whose flow is not on the server
    settings = ElementTree.parse(folder / "description.xml").iterfind(".//{*}parameter_setting")
    stated = {setting.findtext("{*}name"): setting.findtext("{*}value") for setting in settings}
    assert stated and stated.keys() == run.flow.parameters.keys() and all(stated.values())
    assert {r[2] for r in run.data_content} == {0}  # the sample, which openml-python requires
    rows = {(int(r[0]), int(r[1]), int(r[3])): r[4:] for r in run.data_content}
    folds = [(repeat, row % 3 if repeat == 0 else row // 4, row) for repeat in (0, 1)
             for row in range(12)]  # fmt: skip
    assert rows.keys() == {*folds} and len(run.data_content) == 24
    for (_, _, row), (predicted, true, *confidences) in rows.items():
        assert true == ROWS[row][2]
        assert sum(confidences) == pytest.approx(1)
        assert predicted == "ab"[int(np.argmax(confidences))]
    accuracies = run.fold_evaluations["predictive_accuracy"]
    for (repeat, fold), accuracy in {(r, f): accuracies[r][f] for r, f, _ in folds}.items():
        own = [r[0] == r[1] for at, r in rows.items() if at[:2] == (repeat, fold)]
        assert accuracy == pytest.approx(np.mean(own))


def test_a_run_is_published_by_openml_python_with_the_key_of_the_user(
    stored: Path, store: Path, tmp_path: Path, task: DataServer, monkeypatch
):
    openml = pytest.importorskip("openml", reason="the package openml is not installed")
    given = {"output": tmp_path / "runs", "openml": True, "store": store, "publish": True}
    monkeypatch.setenv("OPENML_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(openml.config, "_root_cache_directory", tmp_path / "cache")
    monkeypatch.setattr(openml.config, "server", f"{task.url}/api/v1/xml")
    monkeypatch.setattr(openml.config, "apikey", "")
    with pytest.raises(UserError, match="contains no key"):
        export(stored, **given)
    assert not task.posted and not (tmp_path / "runs").exists()
    export(stored, **given | {"publish": False})
    assert not task.posted, "nothing is uploaded unless it is asked for"

    folder = tmp_path / "runs" / "own" / "task_31" / "lda_rbf"
    task.openml_uploads((folder / "flow.xml").read_bytes())
    task.openml_features(7, {"x": "numeric", "z": "numeric", "kind": "nominal"}, values="ba")
    monkeypatch.setattr(openml.config, "apikey", "k" * 32)
    assert export(stored, **given).endswith(f"{folder}: {task.url}/r/9")
    assert [path.rpartition("xml/")[2] for path, _ in task.posted] == [
        "flow/exists",
        "flow/",
        "run/",
    ]
    sent = task.posted[-1][1].decode()
    assert "<oml:flow_id>5</oml:flow_id>" in sent and "<oml:name>ridge</oml:name>" in sent
    assert "confidence.b NUMERIC\n@ATTRIBUTE confidence.a NUMERIC" in sent  # the order of the task
    del task.answers["POST /api/v1/xml/run/"]
    with pytest.raises(UserError, match=r"lda_rbf: OpenML: "):
        export(stored, **given)


def test_runs_that_openml_would_refuse_are_one_line(
    stored: Path, task: DataServer, store: Path, tmp_path: Path, monkeypatch
):
    def reason(results: Path = stored, **given: object) -> str:
        usual = {"openml": True, "output": tmp_path / "runs", "store": store}
        with pytest.raises(UserError) as caught:
            export(results, **usual | given)
        return str(caught.value)

    assert "--output FOLDER" in reason(output=None)
    assert "give --openml" in reason(openml=False, publish=True)
    monkeypatch.setitem(sys.modules, "openml", None)
    assert "pip install 'mmbench[openml]'" in reason(publish=True)
    own = config(openml_task=31)
    own["name"], own["protocol"]["repeats"] = "part", 2
    mmbench.run(own, results=tmp_path / "results", store=store)
    assert "4 of 6 splits are missing" in reason(tmp_path / "results" / "part")
    mmbench.run(config(openml=7, target="kind"), results=tmp_path / "plain", store=store)
    assert "no finished jobs of an OpenML task" in reason(tmp_path / "plain" / "own")
    other = splits().replace(b"TEST,0,0,0", b"TRAIN,0,0,0")
    (store / "openml" / "task_31.arff").write_bytes(other)
    assert "differs from the splits of the task" in reason()


@pytest.fixture
def suite(task: DataServer) -> DataServer:
    """Suite 99 of two tasks that can be used, one with text, and one of regression."""
    types = {"x": "numeric", "z": "string", "kind": "nominal"}
    task.openml_features(7, types, ignored="z")
    task.openml_features(8, types)
    task.openml_task(32, 7, splits(), target="kind")
    task.openml_task(40, 8, splits(), target="kind")
    task.openml_task(41, 9, splits(), target="x", kind="Supervised Regression")
    task.openml_suite(99, [31, 40, 32, 41])
    return task


def test_an_experiment_runs_the_tasks_of_a_suite_that_fit(
    suite: DataServer, store: Path, tmp_path: Path, capsys
):
    own, places = config(openml_suite=99, drop=["z"]), {"store": store}
    with pytest.raises(UserError, match="openml_suite:99: not in the store or the mirror"):
        dry_run(own, tmp_path, **places)
    for done, reused in ((12, 0), (0, 12)):
        [outcome] = mmbench.run(own, results=tmp_path, **places)
        assert (outcome.done, outcome.reused, outcome.exit_code) == (done, reused, 0)
        others = "task 40 (text in column 'z'), task 41 (Supervised Regression)"
        assert f"openml_suite:99: left out: {others}\n" in capsys.readouterr().err
        suite.answers.clear()
    assert "own: 12 jobs, 12 of them stored" in dry_run(own, tmp_path, **places)
    kept = load_config(tmp_path / "own" / "experiment.yaml").datasets
    assert [(e.openml_task, e.table.drop) for e in kept] == [(31, ("z",)), (32, ("z",))]
    own["datasets"].append({"openml_task": 32})
    with pytest.raises(UserError, match="openml_task_32"):
        mmbench.run(own, results=tmp_path, **places)


@pytest.mark.parametrize("entry", [{"openml_task": 31}, {"openml_suite": 99}])
@pytest.mark.parametrize("served", [False, True])
def test_the_other_data_sets_run_if_a_server_cannot_be_reached(
    suite: DataServer, store: Path, tmp_path: Path, capsys, monkeypatch, entry: dict, served: bool
):
    own, places = config(**entry, drop=["z"]), {"store": store}
    mine, folds = tmp_path / "mine.csv", tmp_path / "folds.csv"
    mine.write_text("x,kind\n" + "".join(f"{x},{kind}\n" for x, _, kind in ROWS))
    folds.write_text("".join(f"{k % 3}\n" for k in range(12)))
    own["datasets"].append({"path": str(mine), "target": "kind", "folds": str(folds)})
    text = dry_run(own, tmp_path, **places)
    assert "own: 3 jobs, 0 of them stored" in text
    assert f"not planned: {':'.join(map(str, *entry.items()))}: not in the store" in text
    if not served:
        monkeypatch.setenv("MMBENCH_OPENML_SERVER", "http://127.0.0.1:1/api/v1/xml")
    [outcome] = mmbench.run(own, results=tmp_path, **places)
    assert outcome.done == 3 + served * (6 if "openml_task" in entry else 12)
    assert outcome.exit_code == (not served)
    lines = [line for line in capsys.readouterr().err.splitlines() if "own: not run: " in line]
    assert len(lines) == (not served)
    assert all("cannot be reached" in line and "--mirror" in line for line in lines)
    if not served:
        halves = {**own, "name": "halves", "protocol": {"test": {"kfold": 2}}}
        assert f": {':'.join(map(str, *entry.items()))}: not in" in dry_run(halves, **places)
        [outcome] = mmbench.run(own, results=tmp_path, only=["dataset=mine"], **places)
        assert (outcome.reused, outcome.exit_code) == (3, 0)


@pytest.mark.parametrize(
    ("tasks", "reason"),
    [([], "has no tasks"), ([41], "left out: task 41"), ([50], "OpenML task 50: .*HTTP 404")],
)
def test_a_suite_without_a_task_that_fits_is_one_line(
    suite: DataServer, store: Path, tasks: list[int], reason: str
):
    suite.openml_suite(99, tasks)
    with pytest.raises(UserError, match=f"^openml_suite:99: .*{reason}"):
        mmbench.run(config(openml_suite=99), store=store)
