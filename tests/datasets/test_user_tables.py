"""Tables in other forms than plain CSV: what a configuration may say of them, and gaps in them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.data_server import DataServer
from pydantic import ValidationError
from scipy import sparse
from sklearn import datasets
from sklearn.utils import Bunch

from mmbench.config.plan import plan
from mmbench.config.read import load_config
from mmbench.datasets import (
    Dataset,
    DatasetRef,
    UserTable,
    dataset_hash,
    keep_classes,
    load_dataset,
    make_preprocess,
    parse_steps,
)
from mmbench.datasets.parsers.arff_files import check_names
from mmbench.datasets.user.transformer import TableColumns
from mmbench.errors import UserError
from mmbench.jobs.prepare import prepare

X, KIND = [[1, 2.5], [2, 3.5], [3, 4.5]], ["cat", "dog", "cat"]
CSV = "age,size,kind\n1,2.5,cat\n2,3.5,dog\n3,4.5,cat\n"
MORE = "i,age,size,kind,more\na,1,2.5,cat,7\nb,2,3.5,dog,8\nc,3,4.5,cat,9\n"
MIXED = "id,age,colour,kind\na,1,red,x\nb,,blue,y\nc,3,red,x\nd,5,green,y\n"


def load(folder: Path, name: str, content: str | bytes | None, steps=(), **keys) -> Dataset:
    """Load a file as an entry of a configuration with these keys."""
    path = folder / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = UserTable.model_validate({"path": str(path), "target": "kind", **keys})
    ref = DatasetRef("my", table.source, table.target, parse_steps(list(steps)), (), table.pairs())
    return load_dataset(ref, store=folder / "store")


def refusal(folder: Path, name: str, content: str | bytes | None, **keys) -> str:
    with pytest.raises(UserError) as error:
        load(folder, name, content, **keys)
    line = str(error.value)
    assert line.startswith(f"{folder / name}: ")
    assert "\n" not in line
    return line


def transformed(data: Dataset, *steps) -> list:
    return make_preprocess(parse_steps(list(steps)), data.n_categorical).fit_transform(data.X)


@pytest.mark.parametrize(
    ("name", "content", "keys"),
    [
        ("my.tsv", CSV.replace(",", "\t"), {}),
        ("my.txt", CSV.replace(",", " "), {}),
        ("my.txt", CSV.replace(",", "|"), {"separator": "|"}),
        ("my.csv", CSV.replace(",", ";").replace(".", ","), {"decimal": ","}),
        ("my.csv", CSV.partition("\n")[2], {"header": False, "target": 3}),
        ("my.csv", CSV.partition("\n")[2], {"header": False, "target": -1}),
        ("my.csv", CSV.partition("\n")[2], {"header": False, "target": "3"}),
        ("my.csv", MORE, {"drop": ["i", -1]}),
        ("my.csv", MORE, {"index": "i", "drop": "more"}),
        ("my.csv", MORE, {"features": ["size", 2]}),
        ("my.csv.gz", gzip.compress(CSV.encode(), mtime=0), {}),
        ("my.csv.bz2", bz2.compress(CSV.encode()), {}),
        ("my.csv.xz", lzma.compress(CSV.encode()), {}),
        ("my.csv", CSV.encode("utf-16"), {"encoding": "utf-16"}),
        ("my.svm", "1 1:1 2:2.5\n-1 1:2 2:3.5\n1 1:3 2:4.5\n", {"target": None}),
    ],
)
def test_a_table_is_the_same_in_every_form(tmp_path: Path, name: str, content, keys: dict):
    data = load(tmp_path, name, content, **keys)
    assert data.X.tolist() == X
    assert data.y.tolist() == ([1, -1, 1] if name == "my.svm" else KIND)


def test_arrays_in_a_file_of_numpy(tmp_path: Path):
    names = np.array(["age", "size"], dtype=object)
    np.savez(tmp_path / "my.npz", X=np.array(X), y=np.array(KIND), names=names)
    data = load(tmp_path, "my.npz", None, target=None)
    assert data.X.tolist() == X
    assert data.y.tolist() == KIND
    np.savez(tmp_path / "own.npz", X=np.array(X), y=np.array(KIND, dtype=object))
    line = refusal(tmp_path, "own.npz", None, target=None)
    assert line.endswith("contains Python objects; save numbers, and labels by y.astype(str)")


def test_a_parquet_file_says_itself_what_is_a_category(tmp_path: Path):
    sizes = pd.Categorical(["s", "m", "l"], categories=["s", "m", "l", "xl"])
    frame = pd.DataFrame(
        {"n": [1, None, 3], "size": sizes, "t": ["b", "a", "b"], "kind": [0, 1, 1]}
    )
    frame.to_parquet(tmp_path / "my.parquet")
    data = load(tmp_path, "my.parquet", None, [{"impute": "mean"}, "ordinal"])
    assert data.n_categorical == 2
    assert transformed(data, {"impute": "mean"}, "ordinal").tolist() == [
        [1, 0, 1],
        [2, 1, 0],
        [3, 2, 1],
    ]


def test_nominal_attributes_of_arff_are_categories_in_their_order(tmp_path: Path):
    text = """@relation r
@attribute 'the size' {small, 'not small', 'large, so'}
@attribute bit{0,1}
@attribute kind {p, q}
@data
'not small',1,p
small,0,q
'large, so',?,q
"""
    data = load(tmp_path, "my.arff", text, [{"impute": "median"}, "one_hot"])
    assert data.n_categorical == 2
    assert data.X[:, 0].tolist() == [1, 0, 2]
    assert data.X[:2, 1].tolist() == [1, 0]


def test_categories_and_gaps_are_filled_by_the_steps(tmp_path: Path):
    keys = {"drop": "id", "categorical": "colour"}
    data = load(tmp_path, "my.csv", MIXED, [{"impute": "median"}, "one_hot"], **keys)
    assert transformed(data, {"impute": "median"}, "one_hot").tolist() == [
        [1, 0, 0, 1],
        [3, 1, 0, 0],
        [3, 0, 0, 1],
        [5, 0, 1, 0],
    ]
    marked = transformed(data, {"impute_indicator": "mean"}, "ordinal")
    assert marked[:2].tolist() == [[1, 0, 2], [3, 1, 0]]


def test_the_order_of_categories_can_be_stated(tmp_path: Path):
    keys = {"drop": "id", "categorical": [{"colour": ["red", "green", "blue"]}]}
    data = load(tmp_path, "my.csv", MIXED, [{"impute": "mean"}, "ordinal"], **keys)
    assert data.X[:, 1].tolist() == [0, 2, 0, 1]
    keys["categorical"] = [{"colour": ["red", "green"]}]
    assert "data row 2, column 'colour': 'blue' is not one of red, green" in refusal(
        tmp_path, "my.csv", MIXED, **keys
    )


def test_a_declared_column_keeps_its_categories_if_it_is_named(tmp_path: Path):
    head = "@relation r\n@attribute size {small,medium,large}\n@attribute kind {p,q}\n@data\n"
    rows, steps = "small,p\nmedium,q\nlarge,q\n", ["ordinal"]
    plain = load(tmp_path, "my.arff", head + rows, steps)
    named = load(tmp_path, "my.arff", head + rows, steps, categorical=["size"])
    assert plain.X.tolist() == named.X.tolist() == [[0], [1], [2]]
    other = [{"size": ["large", "medium", "small"]}]
    assert load(tmp_path, "my.arff", head + rows, steps, categorical=other).X[0] == [2]
    line = refusal(tmp_path, "my.arff", head + rows + "huge,p\n", steps=steps, categorical="size")
    assert "data row 4, column 'size': 'huge' is not one of small, medium, large" in line
    sizes = pd.Categorical(["small", "large", "small"], categories=["small", "medium", "large"])
    pd.DataFrame({"size": sizes, "kind": KIND}).to_parquet(tmp_path / "my.parquet")
    data = load(tmp_path, "my.parquet", None, steps, categorical=["size"])
    assert data.X.tolist() == [[0], [2], [0]]


@pytest.mark.parametrize("more", [{}, {"categorical": "auto"}])
def test_truth_values_are_numbers_with_and_without_gaps(tmp_path: Path, more: dict):
    for truths in ([True, False, True], [True, None, False]):
        frame = pd.DataFrame({"t": truths, "kind": KIND})
        frame.to_parquet(tmp_path / "my.parquet")
        steps = [{"impute": "mean"}, "one_hot"]
        found = load(tmp_path, "my.parquet", None, steps, **more)
        same = load(tmp_path, "my.csv", frame.to_csv(index=False), steps, **more)
        assert found.n_categorical == same.n_categorical == 0
        expected = np.array([truths], dtype=float).T
        np.testing.assert_array_equal(found.X, expected)
        np.testing.assert_array_equal(same.X, expected)


def test_a_stated_category_is_no_missing_value(tmp_path: Path):
    text = "c,d,kind\nNA,NA,p\nb,u,q\n?,v,q\n"
    keys = {"categorical": [{"c": ["NA", "b"]}, "d"]}
    data = load(tmp_path, "my.csv", text, [{"impute": "mean"}, "one_hot"], **keys)
    np.testing.assert_array_equal(data.X, [[0, np.nan], [1, 0], [np.nan, 1]])
    assert data.columns == {"c": ("NA", "b"), "d": ("u", "v")}


def test_a_word_stated_as_missing_is_no_category_of_an_arff_file(tmp_path: Path):
    text = "@relation r\n@attribute c {NA,a,b}\n@attribute kind {p,q}\n@data\nNA,p\na,q\nb,q\n"
    steps = [{"impute": "mean"}, "one_hot"]
    assert load(tmp_path, "my.arff", text, steps).columns == {"c": ("NA", "a", "b")}
    data = load(tmp_path, "my.arff", text, steps, missing=["NA"])
    assert data.columns == {"c": ("a", "b")}
    np.testing.assert_array_equal(data.X, [[np.nan], [0], [1]])
    rows = TableColumns(data.columns, (("missing", ("NA",)),)).transform([["NA"], ["a"], ["b"]])
    np.testing.assert_array_equal(rows, data.X)


def test_a_category_that_the_training_rows_lack_is_no_error():
    rows = np.array([[0.0], [1.0], [0.0]])
    for step, unknown in (("one_hot", [0, 0]), ("ordinal", [-1])):
        fitted = make_preprocess(parse_steps(step), n_categorical=1).fit(rows)
        assert fitted.transform([[2.0]]).tolist() == [unknown]


@pytest.mark.parametrize(
    ("steps", "keys", "reason"),
    [
        (
            ["one_hot"],
            {},
            "data row 2, column 'age': value missing; add a preprocessing step such as",
        ),
        ([], {"drop": ["id", "age"]}, "column 'colour' contains categories; the first"),
        (
            ["standard", "one_hot"],
            {"drop": ["id", "age"]},
            "except for imputation, must be one_hot or ordinal",
        ),
    ],
)
def test_gaps_and_categories_that_no_step_treats_are_refused(tmp_path: Path, steps, keys, reason):
    keys = {"drop": "id", "categorical": "auto", **keys}
    assert reason in refusal(tmp_path, "my.csv", MIXED, steps=steps, **keys)


def test_text_among_features_is_no_category_unless_said(tmp_path: Path):
    line = refusal(tmp_path, "my.csv", MIXED, drop="id")
    assert "data row 1, column 'colour': 'red' is not a number" in line
    advice = "write categorical: auto (--set 'datasets[0].categorical=auto')"
    assert (
        f"; if the column contains categories, {advice}; to leave it out, write drop: [id, colour]"
        in line
    )
    line = refusal(tmp_path, "my.csv", CSV.replace(",", ";").replace(".", ","))
    advice = """if ',' is the decimal mark, write decimal: "," (--set 'datasets[0].decimal=","')"""
    assert line.endswith(f"'2,5' is not a number; {advice}")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("my.xlsx", b"PK\x03\x04 and so on", "Excel workbook"),
        ("my.json", '[{"a": 1}]', "JSON"),
        ("my.json", '{\n  "a": 1}', "JSON"),
        ("my.json", "[[1, 2], [3, 4]]", "JSON"),
        ("my.mat", b"MATLAB 5.0 MAT-file, made by a test", "Matlab"),
        ("my.feather", b"ARROW1\0\0 and so on", "Feather"),
        ("my.db", b"SQLite format 3\0 and so on", "SQLite"),
        ("my.html", "\n<!DOCTYPE html>", "HTML"),
        ("my.csv.gz", gzip.compress(b"%PDF-1.7", mtime=0), "PDF"),
        ("my.parquet", b"PAR1 and so on", "not a readable Parquet file"),
        ("my.npz", b"PK\x03\x04 and so on", "not a readable .npz file"),
        ("my.svm", "1 1:2\nx y\n", "not in svmlight's format"),
        ("my.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], "damaged or cut short"),
        (
            "my.csv.gz",
            gzip.compress(CSV.encode(), mtime=0)[:12] + b"\xff" * 20,
            "damaged or cut short",
        ),
        ("my.svm", "", "no rows"),
        ("my.csv", "garbage\n", "only column is 'garbage', not 'kind'$"),
        ("my.csv", "a~kind\n1~x\n", """if '~' separates fields, write separator: "~" """),
        ("my.svm", f"1 1:2 {'1' * 40}:3\n", "not in svmlight's format"),
        ("my.svm", "1 1:2\n-1 2000000000:1\n", "columns are too many"),
        ("my.csv", f"a,kind\n{'1' * 400},x\n2,y\n", "infinite value|too large a number"),
        ("my.arff", "@attribute\n@attribute kind {a,b}\n@data\n1,a\n", "column 1 has no name"),
        ("my.npz", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        ("my.csv.zst", b"\x28\xb5\x2f\xfd\x04\x00", "a Zstandard file; unpack it"),
        ("a9a", "-1 3:1 11:1 14:1 19:1 \n+1 5:1 7:1\n", "text; let its name end in .svm or"),
        ("a9a.bz2", bz2.compress(b"1 1:.5 2:3 3:-1e-3\n-1 1:2\n"), "is svmlight text; let its"),
        ("my.dat", "% a comment\n\n@RELATION r\n@data\n", "no @attribute or no @data line"),
        ("my.svm", "@relation r\n@data\n", "data row 1: the label '@relation' is not a number"),
    ],
)
def test_a_file_of_another_format_is_called_by_its_name(tmp_path: Path, name, content, words):
    keys = {"target": None} if name.endswith((".npz", ".svm")) else {}
    assert re.search(words, refusal(tmp_path, name, content, **keys))


@pytest.mark.parametrize("name", ["[ID]", "{ID}", "MATLAB_score", "ARROW1", "SQLite", "[1]"])
def test_a_column_name_like_the_start_of_another_format_is_a_name(tmp_path: Path, name: str):
    data = load(tmp_path, "my.csv", CSV.replace("age", name))
    assert data.X.tolist() == X


@pytest.mark.parametrize("path", ["/dev/zero", "fifo"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, path: str):
    os.mkfifo(tmp_path / "fifo")
    ref = DatasetRef("my", str(tmp_path / path), "kind")
    for function in (load_dataset, dataset_hash):
        with pytest.raises(UserError, match="not a regular file"):
            function(ref, store=tmp_path)


def test_a_continuous_target_is_called_one(tmp_path: Path):
    rows = [f"{i},{i * 0.37}" for i in range(40)]
    line = refusal(tmp_path, "my.csv", "a,kind\n" + "\n".join(rows))
    assert "has 40 distinct numbers such as" in line
    assert "it looks continuous, and classes are needed" in line
    whole = load(tmp_path, "my.csv", "a,kind\n" + "\n".join(f"{i},{i}" for i in range(40)))
    assert "is it continuous, or a row number?" in whole.warnings[0]


@pytest.mark.parametrize("form", ["{:02}", "1000000000000000{:02}", "{}e2"])
def test_many_classes_of_whole_numbers_are_not_continuous(tmp_path: Path, form: str):
    rows = [f"{k / 7},{form.format(k % 24)}" for k in range(72)]
    data = load(tmp_path, "my.csv", "a,kind\n" + "\n".join(rows))
    assert (len(data.classes), data.y[1], data.warnings) == (24, form.format(1), ())


@pytest.mark.parametrize("form", ["{:02}", "{}.5"])
def test_a_target_that_the_file_declares_as_categorical_is_not_continuous(tmp_path: Path, form):
    names = [form.format(k) for k in range(24)]
    head = f"@relation r\n@attribute a real\n@attribute kind {{{','.join(names)}}}\n@data\n"
    rows = [f"{k / 7},{names[k % 24]}" for k in range(72)]
    assert load(tmp_path, "my.arff", head + "\n".join(rows)).classes.tolist() == sorted(names)
    frame = pd.DataFrame({"a": np.arange(72) / 7, "kind": pd.Categorical(names * 3)})
    frame.to_parquet(tmp_path / "my.parquet")
    assert load(tmp_path, "my.parquet", None).classes.tolist() == sorted(names)


def test_numbers_and_words_as_classes_are_reported(tmp_path: Path):
    data = load(tmp_path, "my.csv", "a,kind\n1,1\n2,2\n3,two\n")
    assert data.y.tolist() == ["1", "2", "two"]
    assert data.warnings == (
        "the target has numbers such as 1 and words such as two; all are read as words",
    )


ROWS = "".join(f"{k}.5,{'xy'[k % 2]}\n" for k in range(20))


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (
            "a;kind\n" + ROWS.replace(",", ";").replace(".", ","),
            """write decimal: "," (--set 'datasets[0].decimal=","')""",
        ),
        (
            "a,kind\n-,x\n" + ROWS,
            "numbers and '-', all read as categories; to read words as missing values, write "
            'missing: ["", "?", NA, "N/A", NaN, nan, "-"]',
        ),
        ("8.5,kind\n" + ROWS, "contains '8.5'; if it is a data row"),
        (
            "id,kind\n" + ROWS.replace(".5", ""),
            "'id' contains row numbers; to leave it out, write",
        ),
    ],
)
def test_what_is_read_but_hardly_meant_is_reported(tmp_path: Path, content: str, warning: str):
    data = load(tmp_path, "my.csv", content, ["one_hot"], categorical="auto")
    assert [warning in line for line in data.warnings] == [True]


@pytest.mark.parametrize(
    ("cells", "decimal", "hint"),
    [
        (["1.234,5", "1.234"], ",", 'write thousands: "."'),
        (["1.234", "2.345"], ",", 'write thousands: "."'),
        (["1.5", "2.25"], ",", 'write decimal: "."'),
        (["1,234.5", "1,234,567"], ".", 'write thousands: ","'),
        (["1_000", "2_000"], ".", "write thousands: _"),
        (["12 000", "2"], ".", 'write thousands: " "'),
        (["1-2", "3-4"], ".", ""),
    ],
)
def test_categories_that_look_like_numbers_with_marks_get_the_hint(tmp_path, cells, decimal, hint):
    rows = "".join(f"{cells[k % 2]};{'xy'[k % 3 == 0]}\n" for k in range(30))
    data = load(
        tmp_path, "my.csv", "a;kind\n" + rows, ["one_hot"], categorical="auto", decimal=decimal
    )
    warnings = [line for line in data.warnings if repr(cells[0]) in line]
    assert [hint in line for line in warnings] == [True] * bool(hint)


@pytest.mark.parametrize(
    ("cell", "hint"), [('"1,{}"', "thousands"), ("${}", "units"), ("{} kg", "units")]
)
def test_numbers_with_marks_beside_a_word_get_both_hints(tmp_path, cell, hint):
    rows = [cell.format(200 + k) if k % 10 else "unknown" for k in range(60)]
    text = "a,kind\n" + "".join(f"{row},{'pq'[k % 2]}\n" for k, row in enumerate(rows))
    (warning,) = load(tmp_path, "my.csv", text, ["one_hot"], categorical="auto").warnings
    assert f"write {hint}: " in warning
    assert "if 'unknown' marks a missing value, write missing: [" in warning


@pytest.mark.parametrize("key", ["target", "groups"])
def test_lists_as_labels_or_groups_are_named_before_rows_are_left_out(tmp_path, key):
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "kind": KIND, "l": [[0], [1], [2]]})
    frame.to_parquet(tmp_path / "my.parquet")
    line = refusal(tmp_path, "my.parquet", None, **{key: "l", "unlabelled": "drop"})
    assert f"{key} 'l' contains lists, not labels" in line


def test_a_word_that_is_left_out_as_missing_may_be_a_class(tmp_path):
    text = "x,kind\n1,NA\n2,EU\n3,US\n"
    (warning,) = load(tmp_path, "my.csv", text, unlabelled="drop").warnings
    assert warning.startswith("1 rows without 'kind' are left out; if 'NA' is a class, write miss")
    kept = load(tmp_path, "my.csv", text, unlabelled="drop", missing=[""])
    assert kept.y.tolist() == ["NA", "EU", "US"]
    (warning,) = load(tmp_path, "my.csv", text, unlabelled="drop", missing=["?", "NA"]).warnings
    assert "if 'NA' is a class, write missing: [\"?\"] " in warning
    line = refusal(tmp_path, "my.csv", "x,kind\n1,NA\n2,EU\n", unlabelled="drop")
    assert "fewer than two classes are left, since 1 rows without 'kind' are left out; if" in line


def test_a_first_row_of_data_is_no_pair_of_equal_names(tmp_path: Path):
    line = refusal(tmp_path, "my.csv", "1,1,x\n2,3,y\n", target=-1)
    assert line.endswith("write header: false (--set 'datasets[0].header=false')")


def test_columns_that_are_not_there_are_named(tmp_path: Path):
    assert "no column 'ages'; did you mean 'age'?" in refusal(tmp_path, "a.csv", CSV, drop="ages")
    line = refusal(tmp_path, "a.csv", CSV, target=4)
    assert "no target column 4; columns are numbered from 1 to 3" in line
    assert "no categorical column 'x'" in refusal(tmp_path, "a.csv", CSV, categorical="x")


@pytest.mark.parametrize("key", ["target", "drop", "index", "groups", "time"])
def test_a_feature_that_another_key_leaves_out_is_refused(tmp_path: Path, key: str):
    keys = {"target": "kind", key: "age", "features": ["size", "age"]}
    assert "column 'age' cannot be in features" in refusal(tmp_path, "a.csv", CSV, **keys)


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"path": "a.csv"}, "target is missing"),
        ({"path": "a.csv", "openml": 31, "target": "y"}, "give only one of path and openml"),
        ({"drop": ["a"]}, "drop needs a table"),
        ({"openml": 0}, "greater than or equal to 1"),
        ({"path": "a.csv", "target": "y", "encoding": "utf-9"}, "unknown encoding 'utf-9'"),
        ({"path": "a.csv", "target": "y", "encoding": "rot13"}, "unknown encoding 'rot13'"),
        ({"path": "a.csv", "target": "y", "separator": "ab"}, "at most 1 character"),
        ({"path": "a.csv", "target": "y", "drop": [True]}, "a column is a whole number or a name"),
        ({"path": "a.csv", "target": "y", "categorical": [{"a": 1}]}, "values in order"),
        ({"path": "a.csv", "target": "y", "drop": ["a", None]}, "in quotes, got None"),
        ({"path": "a.csv", "target": "y", "categorical": [None]}, "in quotes, got None"),
        ({"sklearn": "wine", "categorical": [{"a": [False, True]}]}, "in quotes, got False"),
        ({"path": "a.csv", "target": "y", "separator": "§"}, "must be an ASCII character, got '§'"),
    ],
)
def test_wrong_keys_are_refused_before_data_are_read(keys: dict, reason: str):
    with pytest.raises(ValidationError, match=reason):
        UserTable.model_validate(keys)


@pytest.mark.parametrize("key", ["features", "drop", "categorical", "index", "groups", "missing"])
def test_an_empty_key_is_as_good_as_none(tmp_path: Path, key: str):
    data = load(tmp_path, "my.csv", CSV, **{key: None})
    assert data.X.tolist() == X
    assert data.content_hash == load(tmp_path, "my.csv", CSV).content_hash


@pytest.mark.parametrize("target", ["kind", 1, "1"])
def test_a_target_is_refused_if_the_format_defines_the_labels(tmp_path: Path, target):
    np.savez(tmp_path / "my.npz", X=np.array(X), y=np.array(KIND))
    wanted = "the format defines the labels; remove target"
    assert wanted in refusal(tmp_path, "my.npz", None, target=target)
    assert wanted in refusal(tmp_path, "my.svm", "1 1:1\n-1 1:2\n", target=target)
    with pytest.raises(UserError, match=wanted):
        load_dataset(DatasetRef("a", "sklearn:wine", target), store=tmp_path)


@pytest.mark.parametrize("target", ["y", "target", -1])
def test_the_own_name_of_the_labels_is_a_target(tmp_path: Path, target):
    np.savez(tmp_path / "my.npz", X=np.array(X), y=np.array(KIND))
    assert load(tmp_path, "my.npz", None, target=target).y.tolist() == KIND


def test_the_hash_follows_what_is_said_of_the_columns(tmp_path: Path):
    one, two = (load(tmp_path, "a.csv", CSV, **keys) for keys in ({}, {"drop": "size"}))
    assert one.content_hash != two.content_hash
    assert one.content_hash == load(tmp_path, "a.csv", CSV, encoding="utf-8").content_hash


def test_many_names_are_checked_in_reasonable_time():
    """The check for equal names grew with the square of their number: 31 s for the more."""
    seconds = []
    for count in (5_000, 50_000):
        start = time.process_time()
        check_names([f"c{j}" for j in range(count)])
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * seconds[0]


@pytest.mark.parametrize(
    ("row", "keys", "words"),
    [
        ("oops,1,x", {}, "data row 5, column 'a': 'oops' is not a number"),
        ("inf,1,x", {}, "data row 5, column 'a': infinite value"),
        (",1,x", {}, "data row 5, column 'a': value missing"),
        ("a,t,kind", {}, "data row 5 repeats the column names"),
        ("1,,x", {"time": "t"}, "data row 5, column 't': value missing"),
        ("1,red,x", {"time": "t"}, "data row 5, column 't': 'red' is neither a number nor a date"),
        ("1,7,x", {"categorical": [{"t": ["1", "2"]}]}, "data row 5, column 't': '7' is not one"),
    ],
)
def test_messages_count_the_rows_that_are_left_out(tmp_path: Path, row: str, keys: dict, words):
    text = f"a,t,kind\n1,1,x\n2,1,\n3,1,\n4,2,y\n{row}\n"
    assert words in refusal(tmp_path, "my.csv", text, unlabelled="drop", **keys)


def test_the_warning_about_equal_rows_counts_the_rows_that_are_left_out(tmp_path: Path):
    data = load(tmp_path, "my.csv", "a,kind\n1,x\n2,\n3,\n4,y\n1,y\n", unlabelled="drop")
    assert data.X.tolist() == [[1], [4], [1]]
    assert data.warnings[1].endswith("different labels (first: data rows 1, 5)")
    (tmp_path / "folds.csv").write_text("1\n1\n1\n2\n0.5\n")
    options = (("unlabelled", "drop"),)
    ref = DatasetRef("my", str(tmp_path / "my.csv"), "kind", options=options)
    with pytest.raises(UserError, match=r"row 5 of the data: '0\.5' is not"):
        load_dataset(replace(ref, folds=str(tmp_path / "folds.csv")), store=tmp_path)


# OpenML and scikit-learn


def test_a_number_of_openml_is_a_data_set(server: DataServer, store: Path, tmp_path: Path):
    arff = "@relation r\n@attribute a {u,v}\n@attribute b real\n@attribute class {x,y}\n@data\n"
    server.openml(31, (arff + "u,1,x\nv,2,y\n").encode())
    table = UserTable(openml=31)
    ref = DatasetRef("openml_31", table.source, preprocess=(("one_hot", None),))
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


# From a configuration to arrays

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


def test_the_rows_that_are_kept_have_the_numbers_of_the_file(tmp_path: Path):
    text = "a,kind\n1,x\n2,\n3,y\n4,z\n5,\n6,x\n7,y\n"
    data = load(tmp_path, "my.csv", text, unlabelled="drop")
    assert data.rows is not None
    assert data.rows.tolist() == [0, 2, 3, 5, 6]
    part = keep_classes(data, ["x", "y"])
    assert (part.rows.tolist(), part.X.ravel().tolist()) == ([0, 2, 5, 6], [1, 3, 6, 7])
    whole = load(tmp_path, "my.csv", text.replace("2,\n", "2,x\n").replace("5,\n", "5,x\n"))
    assert whole.rows.tolist() == list(range(7))
    assert keep_classes(whole, ["x", "y"]).rows.tolist() == [0, 1, 2, 4, 5, 6]


OF_CSV = [{"header": False}, {"separator": ";"}, {"skip_lines": 1}]
IDLE = [*OF_CSV, {"decimal": ","}, {"thousands": "_"}, {"units": ["%"]}]


@pytest.mark.parametrize(
    ("name", "key"),
    [(name, key) for name in ("my.npz", "my.svm") for key in IDLE]
    + [(name, key) for name in ("my.arff", "my.parquet") for key in OF_CSV],
    ids=str,
)
def test_keys_without_an_effect_on_the_format_are_refused(tmp_path: Path, name: str, key: dict):
    np.savez(tmp_path / "my.npz", X=np.array(X), y=np.array(KIND))
    pd.DataFrame({"a": [1, 2], "kind": ["x", "y"]}).to_parquet(tmp_path / "my.parquet")
    arff = "@relation r\n@attribute a real\n@attribute kind {x,y}\n@data\n1,x\n2,y\n"
    text = {"my.svm": "1 1:1\n-1 1:2\n", "my.arff": arff}.get(name)
    keys = {"target": None} if name in ("my.npz", "my.svm") else {}
    assert load(tmp_path, name, text, **keys).warnings == ()
    words = f"{min(key)} has no effect on this file format; remove it"
    assert words in refusal(tmp_path, name, text, **keys, **key)


def test_times_of_a_parquet_file_may_be_text_with_a_decimal_comma(tmp_path: Path):
    frame = pd.DataFrame({"a": [1, 2], "t": ["2,5", "1,5"], "kind": ["x", "y"]})
    frame.to_parquet(tmp_path / "my.parquet")
    data = load(tmp_path, "my.parquet", None, time="t", decimal=",")
    assert data.time is not None
    assert data.time.tolist() == [2.5, 1.5]


def test_a_number_that_is_a_name_is_written_in_quotes(tmp_path: Path):
    text = CSV.replace("size", "2019")
    line = refusal(tmp_path, "my.csv", text, drop=[2019])
    assert "no column 2019; columns are numbered from 1 to 3; if it is a name, write '2019'" in line
    assert load(tmp_path, "my.csv", text, drop=["2019"]).X.ravel().tolist() == [1, 2, 3]
    assert refusal(tmp_path, "my.csv", text, drop=[2020]).endswith("numbered from 1 to 3")
