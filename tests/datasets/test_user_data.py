"""Users' data sets from files, OpenML and scikit-learn: content hashes, rows, classes and steps."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.data_server import DataServer
from scipy import sparse
from sklearn import datasets
from sklearn.utils import Bunch

from mmbench.config.plan import plan
from mmbench.config.read import load_config
from mmbench.datasets.dataset import Dataset, DatasetRef, keep_classes
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.preprocess import make_preprocess, parse_steps
from mmbench.errors import UserError
from mmbench.jobs.prepare import prepare
from mmbench.reader.keys import FileOptions

MIXED = "id,age,colour,kind\na,1,red,x\nb,,blue,y\nc,3,red,x\nd,5,green,y\n"


def load(folder: Path, content: str, steps=(), **keys) -> Dataset:
    """Load a CSV file with these options."""
    path = folder / "my.csv"
    path.write_text(content)
    options = FileOptions.model_validate(keys).pairs()
    ref = DatasetRef("my", str(path), "kind", parse_steps(list(steps)), (), options)
    return load_dataset(ref, store=folder / "store")


def transformed(data: Dataset, *steps) -> np.ndarray:
    return make_preprocess(parse_steps(list(steps)), data.n_categorical).fit_transform(data.X)


COPIES = (
    "@relation r\n@attribute id integer\n@attribute copy {x,y}\n@attribute a real\n"
    "@attribute class {x,y}\n@data\n1,x,5,x\n2,y,6,y\n3,x,7,x\n"
)


def test_columns_that_openml_names_as_no_features_are_left_out(server: DataServer, store: Path):
    tags = (
        "<oml:row_id_attribute>id</oml:row_id_attribute>"
        "<oml:ignore_attribute>copy</oml:ignore_attribute>"
    )
    server.openml(31, COPIES.encode(), more=tags)
    data = load_dataset(DatasetRef("a", "openml:31"), store=store)
    assert data.X.tolist() == [[5], [6], [7]]
    assert data.warnings == ("columns left out, as row numbers or by the source: 'id', 'copy'",)
    server.answers.clear()
    assert load_dataset(DatasetRef("a", "openml:31"), store=store).X.shape == (3, 1)
    wanted = DatasetRef("a", "openml:31", options=(("features", ("id", "a")),))
    assert load_dataset(wanted, store=store).X.shape == (3, 2)


@pytest.mark.parametrize(
    ("stated", "copy"),
    [
        ("id,copy", "copy"),
        ("id</oml:ignore_attribute><oml:ignore_attribute>copy", "copy"),
        ("'id',&quot;copy&quot;", "copy"),
        ("ID,Copy", "copy"),
        ("id, copy,nope", "copy"),
        ("'copy, x', id", "'copy, x'"),
    ],
)
def test_columns_to_ignore_are_found_in_every_form(
    server: DataServer, store: Path, stated: str, copy: str
):
    tag = f"<oml:ignore_attribute>{stated}</oml:ignore_attribute>"
    server.openml(31, COPIES.replace("copy", copy).encode(), more=tag)
    data = load_dataset(DatasetRef("a", "openml:31"), store=store)
    assert data.X.tolist() == [[5], [6], [7]]
    absent = ["the source excludes a column 'nope', which is not there"] * ("nope" in stated)
    assert [w for w in data.warnings if "not there" in w] == absent


def test_a_stored_set_without_these_names_is_fetched_again(server: DataServer, store: Path):
    (store / "openml").mkdir(parents=True)
    (store / "openml" / "31.arff").write_text(COPIES)
    (store / "openml" / "31.json").write_text('{"target": "class"}')
    with pytest.raises(UserError, match="of an older version"):
        load_dataset(DatasetRef("a", "openml:31"), store=store, allow_network=False)
    server.openml(31, COPIES.encode(), more="<oml:ignore_attribute>id,copy</oml:ignore_attribute>")
    assert load_dataset(DatasetRef("a", "openml:31"), store=store).X.shape == (3, 1)


def test_a_number_of_openml_is_a_data_set(server: DataServer, store: Path, tmp_path: Path):
    arff = "@relation r\n@attribute a {u,v}\n@attribute b real\n@attribute class {x,y}\n@data\n"
    server.openml(31, (arff + "u,1,x\nv,2,y\n").encode())
    ref = DatasetRef("openml_31", "openml:31", preprocess=(("one_hot", None),))
    offline = dataset_hash(ref, store=store, allow_network=False)
    data = load_dataset(ref, store=store)
    assert data.name == "openml_31"
    assert data.X.tolist() == [[1, 0], [2, 1]]
    assert data.y.tolist() == ["x", "y"]
    server.answers.clear()
    again = load_dataset(ref, store=tmp_path / "other", mirror=store, allow_network=False)
    assert again.content_hash == data.content_hash != offline
    other = DatasetRef("b", "openml:31", "a", (("ordinal", None),))
    other = load_dataset(other, store=store, allow_network=False)
    assert other.classes.tolist() == ["u", "v"]


def test_a_number_that_openml_does_not_have_is_one_line(server: DataServer, store: Path):
    with pytest.raises(UserError, match=r"^openml:31: OpenML data set 31: "):
        load_dataset(DatasetRef("a", "openml:31"), store=store)
    with pytest.raises(UserError, match="network is switched off"):
        load_dataset(DatasetRef("a", "openml:31"), store=store, allow_network=False)


def test_a_name_of_scikit_learn_is_a_data_set(store: Path):
    data = load_dataset(DatasetRef("my_iris", "sklearn:iris"), store=store)
    assert data.X.shape == (150, 4)
    assert data.classes.tolist() == ["setosa", "versicolor", "virginica"]
    wrong = {
        "irsi": "did you mean 'iris'",
        "linnerud": "X and y have shapes",
        "files": "no table with labels",
    }
    for name, reason in wrong.items():
        with pytest.raises(UserError, match=reason):
            load_dataset(DatasetRef("a", f"sklearn:{name}"), store=store)


def test_names_of_the_target_are_no_names_of_classes(store: Path, monkeypatch):
    """The function fetch_covtype returns the name of its column as `target_names`."""
    bunch = Bunch(data=np.eye(7), target=np.arange(1, 8, dtype="i4"), target_names=["Cover_Type"])
    monkeypatch.setattr(datasets, "fetch_covtype", lambda **_: bunch)
    data = load_dataset(DatasetRef("a", "sklearn:covtype"), store=store)
    assert data.classes.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_sparse_data_set_of_scikit_learn_is_called_sparse(store: Path, monkeypatch):
    bunch = Bunch(data=sparse.csr_array(np.eye(7)), target=np.arange(7) % 2)
    monkeypatch.setattr(datasets, "fetch_rcv1", lambda **_: bunch)
    with pytest.raises(UserError, match=r"sklearn:rcv1: is sparse; save X and y as \.svm"):
        load_dataset(DatasetRef("a", "sklearn:rcv1"), store=store)


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(UserError, match=r"No such file|is a folder"):
            load_dataset(DatasetRef(path.stem, str(path), "kind"), store=tmp_path)
        with pytest.raises(UserError, match=r"No such file|is a folder"):
            dataset_hash(DatasetRef(path.stem, str(path), "kind"), store=tmp_path)


@pytest.mark.parametrize("path", ["/dev/zero", "fifo"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, path: str):
    os.mkfifo(tmp_path / "fifo")
    ref = DatasetRef("my", str(tmp_path / path), "kind")
    for function in (load_dataset, dataset_hash):
        with pytest.raises(UserError, match="not a regular file"):
            function(ref, store=tmp_path)


def test_the_hash_follows_the_file_the_target_and_the_options(tmp_path: Path):
    text = "age,size,kind\n1,2.5,cat\n2,3.5,dog\n3,4.5,cat\n"
    data = load(tmp_path, text)
    ref = DatasetRef("my", str(tmp_path / "my.csv"), "kind")
    assert data.content_hash == dataset_hash(ref, store=tmp_path)
    assert data.content_hash != dataset_hash(replace(ref, target="size"), store=tmp_path)
    assert data.content_hash == load(tmp_path, text, encoding="utf-8").content_hash
    assert data.content_hash != load(tmp_path, text, drop="size").content_hash
    assert data.content_hash != load(tmp_path, text + "4,5,dog\n").content_hash


@pytest.mark.parametrize(
    "labels", [["01", "1"], ["1_0", "10"], ["1e3", "1000"], ["\u0661", "1"], ["0x1", "1"]]
)
def test_two_spellings_are_two_classes(tmp_path: Path, labels: list[str]):
    text = "a,kind\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels * 2))
    data = load(tmp_path, text)
    assert data.y.tolist() == labels * 2
    kept = keep_classes(data, labels)
    assert kept.classes.tolist() == sorted(labels)


def test_classes_are_chosen_by_their_text(tmp_path: Path):
    data = keep_classes(load(tmp_path, "a,kind\n1,010\n2,8\n3,9\n4,8\n"), ("010", "8"))
    assert data.y.tolist() == ["010", "8", "8"]
    numbers = keep_classes(load(tmp_path, "a,kind\n1,10\n2,8\n3,9.0\n4,+8\n"), ("10", "8"))
    assert numbers.y.tolist() == [10, 8, 8]


def test_the_rows_that_are_kept_have_the_numbers_of_the_file(tmp_path: Path):
    text = "a,kind\n1,x\n2,\n3,y\n4,z\n5,\n6,x\n7,y\n"
    data = load(tmp_path, text, unlabelled="drop")
    assert data.rows is not None
    assert data.rows.tolist() == [0, 2, 3, 5, 6]
    part = keep_classes(data, ["x", "y"])
    assert (part.rows.tolist(), part.X.ravel().tolist()) == ([0, 2, 5, 6], [1, 3, 6, 7])
    whole = load(tmp_path, text.replace("2,\n", "2,x\n").replace("5,\n", "5,x\n"))
    assert whole.rows.tolist() == list(range(7))
    assert keep_classes(whole, ["x", "y"]).rows.tolist() == [0, 1, 2, 4, 5, 6]


def test_the_warning_about_equal_rows_counts_the_rows_that_are_left_out(tmp_path: Path):
    data = load(tmp_path, "a,kind\n1,x\n2,\n3,\n4,y\n1,y\n", unlabelled="drop")
    assert data.X.tolist() == [[1], [4], [1]]
    assert data.warnings[1].endswith("different labels (first: data rows 1, 5)")
    (tmp_path / "folds.csv").write_text("1\n1\n1\n2\n0.5\n")
    options = (("unlabelled", "drop"),)
    ref = DatasetRef("my", str(tmp_path / "my.csv"), "kind", options=options)
    with pytest.raises(UserError, match=r"row 5 of the data: '0\.5' is not"):
        load_dataset(replace(ref, folds=str(tmp_path / "folds.csv")), store=tmp_path)


def test_categories_and_gaps_are_filled_by_the_steps(tmp_path: Path):
    keys = {"drop": "id", "categorical": "colour"}
    data = load(tmp_path, MIXED, [{"impute": "median"}, "one_hot"], **keys)
    assert transformed(data, {"impute": "median"}, "one_hot").tolist() == [
        [1, 0, 0, 1],
        [3, 1, 0, 0],
        [3, 0, 0, 1],
        [5, 0, 1, 0],
    ]
    marked = transformed(data, {"impute_indicator": "mean"}, "ordinal")
    assert marked[:2].tolist() == [[1, 0, 2], [3, 1, 0]]


def test_a_category_that_the_training_rows_lack_is_no_error():
    rows = np.array([[0.0], [1.0], [0.0]])
    for step, unknown in (("one_hot", [0, 0]), ("ordinal", [-1])):
        fitted = make_preprocess(parse_steps(step), n_categorical=1).fit(rows)
        assert fitted.transform([[2.0]]).tolist() == [unknown]


CONFIG = """name: mine
datasets: [{path: my.csv, target: kind, drop: id, categorical: [colour]}]
preprocess: [{impute: median}, one_hot, standard]
kernel: linear
protocol: {test: {holdout: 0.25}}
machines: {svm: {params: {C: 1}}}
"""


def test_a_job_reads_its_table_as_the_configuration_says(tmp_path: Path):
    (tmp_path / "my.csv").write_text(MIXED + "e,,red,x\nf,2,red,y\ng,2,red,x\nh,4,blue,y\n")
    (tmp_path / "c.yaml").write_text(CONFIG)
    (job,) = plan(load_config(tmp_path / "c.yaml"), tmp_path)
    job = type(job).from_dict(json.loads(json.dumps(job.to_dict())))
    data = prepare(job, tmp_path, None)
    assert data.X_train.shape[0] == 6
    assert np.isfinite(data.X_train).all()
    assert np.isfinite(data.X_test).all()
    assert np.abs(data.X_train.mean(axis=0)).max() < 1e-12
