"""A user's CSV or ARFF: read, or refused with one line that says where."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mmbench.datasets import DatasetRef, dataset_hash, load_dataset
from mmbench.datasets.dataset import Dataset
from mmbench.errors import UserError

GOOD = "age,size,kind\n1,2.5,cat\n2,3.5,dog\n3,4.5,cat\n"


def write(folder: Path, text: str | bytes, name: str = "my.csv") -> DatasetRef:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return DatasetRef(path.stem, str(path), "kind")


def load(folder: Path, text: str | bytes, name: str = "my.csv") -> Dataset:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return load_dataset(write(folder, text, name), store=folder / "store")


def refusal(folder: Path, text: str | bytes, name: str = "my.csv") -> str:
    with pytest.raises(UserError) as error:
        load(folder, text, name)
    line = str(error.value)
    assert line.startswith(str(folder / name))
    assert "\n" not in line
    return line


def test_a_csv_file_gives_numbers_and_labels(tmp_path: Path):
    data = load(tmp_path, GOOD)
    assert data.name == "my"
    assert data.X.tolist() == [[1, 2.5], [2, 3.5], [3, 4.5]]
    assert data.y.tolist() == ["cat", "dog", "cat"]
    assert (data.split, data.predefined, data.card, data.warnings) == (None, None, None, ())


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        GOOD.replace(",", ", "),
        GOOD.rstrip("\n"),
        GOOD.replace("cat", '"cat"'),
    ],
    ids=["semicolon", "tab", "windows", "byte order mark", "blanks", "no last end", "quotes"],
)
def test_common_forms_of_csv_are_the_same_data(tmp_path: Path, text: str):
    data = load(tmp_path, text)
    assert data.X.tolist() == [[1, 2.5], [2, 3.5], [3, 4.5]]
    assert data.y.tolist() == ["cat", "dog", "cat"]


def test_the_target_may_stand_anywhere_and_hold_numbers(tmp_path: Path):
    data = load(tmp_path, "kind,a\n1,5\n0,6\n1.0,7\n")
    assert data.y.tolist() == [1, 0, 1]
    assert data.X.tolist() == [[5], [6], [7]]


def test_none_and_null_are_names_of_classes(tmp_path: Path):
    assert set(load(tmp_path, "a,kind\n1,None\n2,null\n").classes) == {"None", "null"}


ARFF = """% comment
@relation 'my set'

@attribute age numeric
@attribute 'the size' REAL   % remarks are allowed
@attribute kind {cat, 'big dog'}
@data
1, 2.5, cat
% another
2, 3.5, 'big dog'
"""


def test_an_arff_file_is_read_like_a_csv(tmp_path: Path):
    data = load(tmp_path, ARFF, "my.arff")
    assert data.X.tolist() == [[1, 2.5], [2, 3.5]]
    assert data.y.tolist() == ["cat", "big dog"]


@pytest.mark.parametrize("weights", [(", {5}", ""), (" {0.5}", ",{1e1} % heavy")])
@pytest.mark.parametrize(
    "rows", [("1,2.5,cat", "2,3.5,'big dog'"), ("{1 2.5, 0 1}", "{0 2,1 3.5,2 'big dog'}")]
)
def test_weights_of_rows_are_left_out_if_asked(tmp_path: Path, rows: tuple, weights: tuple):
    head = ARFF.split("@data")[0] + "@data\n"
    text = head + "\n".join(row + weight for row, weight in zip(rows, weights, strict=True))
    assert "--set 'datasets[0].row_weights=ignore'" in refusal(tmp_path, text, "my.arff")
    ref = replace(write(tmp_path, text, "my.arff"), options=(("row_weights", "ignore"),))
    data = load_dataset(ref, store=tmp_path / "store")
    assert data.X.tolist() == [[1, 2.5], [2, 3.5]]
    assert data.y.tolist() == ["cat", "big dog"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ("age,kind\n", "the file has no rows"),
        ("age,king\n1,a\n", "no target column 'kind'; did you mean 'king'?"),
        ("kind\na\nb\n", "no feature column besides the target"),
        ("age,size,kind\n1,2,a\n3,,b\n", "data row 2, column 'size': value missing"),
        ("age,size,kind\n1,2,a\n3,NaN,b\n", "data row 2, column 'size': value missing"),
        ("age,size,kind\n1,?,a\n3,1,b\n", "data row 1, column 'size': value missing"),
        ("age,size,kind\n1,2,a\n3,4,\n", "data row 2, column 'kind': value missing"),
        ("age,size,kind\n1,2,a\n3,4\n", "data row 2 has 2 fields, not 3"),
        ("age,kind\n1,a\ntwo,b\n", "data row 2, column 'age': 'two'"),
        ("age,kind\n1,a\ninf,b\n", "data row 2, column 'age': infinite value inf"),
        ("age,kind\n1,a\n-Infinity,b\n", "data row 2, column 'age': infinite value"),
        ("age,kind\n1,a\n1e999,b\n", "data row 2, column 'age': infinite value"),
        ("age,kind\n1,a\n2,a\n", "only the class a"),
        ("age,kind\n1,a\n2,b,c\n", "data row 2 has 3 fields, not 2"),
        ("age,kind\n1,a,9\n2,b,9\n", "data row 1 has 3 fields, not 2"),
        ("age,age,kind\n1,2,a\n3,4,b\n", "two columns are named 'age'"),
        ("age,,kind\n1,2,a\n3,4,b\n", "column 2 has no name"),
        (
            ",age,kind\n0,2,a\n0,4,b\n",
            "column 1 has no name; to leave it out, write",
        ),
        (
            "5.1,3.5,1\n4.9,3.0,0\n",
            "only numbers; if it does not name the columns, write header: false",
        ),
        (b"age,kind\n1,caf\xe9\n2,b\n", "not utf-8 text (byte 14); for another encoding, write"),
        (b"\x00\x01\x02\xff\xfe", "binary data of an unknown format"),
    ],
    ids=lambda value: None,
)
def test_bad_csv_is_one_line_that_says_where(tmp_path: Path, text: str | bytes, reason: str):
    assert reason in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,kind\n1,x\n", "not an ARFF file"),
        (ARFF.replace("@data", ""), "not an ARFF file"),
        (
            ARFF.replace("@data", "@attribute bag relational\n@attribute x real\n@end bag\n@data"),
            "attribute 'bag' has the unsupported type 'relational'",
        ),
        (ARFF.replace("@data", "@attribute 'age' real\n@data"), "two columns are named 'age'"),
        (ARFF.split("@data")[0] + "@data\n", "the file has no rows"),
        (ARFF.replace("1, 2.5", "1, ?"), "data row 1, column 'the size': value missing"),
        (ARFF.replace("2, 3.5", "two, 3.5"), "data row 2, column 'age': 'two'"),
        (ARFF.split("@data")[0] + "@data\n{0 1, 9 cat}\n", "data row 1: no attribute 9"),
        (ARFF.split("@data")[0] + "@data\n{0 1, 2 cat\n", "data row 1: the closing '}' is missing"),
        (
            ARFF.replace("2, 3.5, 'big dog'", "2, 3.5, 'big dog', {5}"),
            "data row 2 has the weight 5; ",
        ),
    ],
    ids=lambda value: None,
)
def test_bad_arff_is_one_line_that_says_where(tmp_path: Path, text: str, reason: str):
    assert reason in refusal(tmp_path, text, "my.arff")


def test_a_missing_file_and_a_folder_are_one_line(tmp_path: Path):
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(UserError, match=r"No such file|is a folder"):
            load_dataset(DatasetRef(path.stem, str(path), "kind"), store=tmp_path)
        with pytest.raises(UserError, match=r"No such file|is a folder"):
            dataset_hash(DatasetRef(path.stem, str(path), "kind"), store=tmp_path)


def test_constant_columns_are_allowed_and_reported(tmp_path: Path):
    data = load(tmp_path, "a,b,kind\n1,7,x\n2,7,y\n")
    assert data.warnings == ("constant columns: 'b'",)


def test_equal_rows_with_different_labels_are_reported(tmp_path: Path):
    data = load(tmp_path, "a,b,kind\n1,7,x\n2,8,y\n1,7,y\n1,7,x\n")
    assert data.warnings == (
        "3 rows have equal values but different labels (first: data rows 1, 3, 4)",
    )
    assert load(tmp_path, "a,b,kind\n1,7,x\n2,8,y\n1,7,x\n").warnings == ()


def test_the_hash_follows_the_file_and_the_target(tmp_path: Path):
    one = write(tmp_path, GOOD)
    first = dataset_hash(one, store=tmp_path)
    assert first == load_dataset(one, store=tmp_path).content_hash
    assert first != dataset_hash(replace(one, target="size"), store=tmp_path)
    assert first != dataset_hash(write(tmp_path, GOOD + "4,5,dog\n"), store=tmp_path)


def test_a_wide_file_is_read(tmp_path: Path):
    X = np.random.default_rng(0).normal(size=(2000, 200)).round(3)
    rows = [",".join(map(str, row)) + f",{'ab'[i % 2]}" for i, row in enumerate(X.tolist())]
    text = ",".join(f"c{j}" for j in range(200)) + ",kind\n" + "\n".join(rows)
    assert np.array_equal(load(tmp_path, text).X, X)
