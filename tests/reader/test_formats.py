"""Parquet and npz files with typed columns, numbers for missing values, and limits of sizes."""

from __future__ import annotations

import bz2
import decimal
import gzip
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file

from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import load_dataset
from mmbench.datasets.preprocess import parse_steps
from mmbench.errors import UserError
from mmbench.reader.keys import FileOptions

AUTO = {"categorical": "auto", "steps": [{"impute": "median"}, "one_hot"]}
ROWS = np.arange(60)
KIND = np.where(ROWS % 2 == 0, "x", "y")
NOISE = np.random.default_rng(0).normal(size=60).round(3)


def load(folder: Path, content, name="my.csv", steps=(), target="kind", classes=(), **keys):
    """Load a file, or a table as a file, with these options."""
    path = folder / name
    if isinstance(content, pa.Table):
        parquet.write_table(content, path := folder / "my.parquet")
    elif isinstance(content, pd.DataFrame):
        write = content.to_parquet if name.endswith(".parquet") else content.to_csv
        write(path, index=False)
    elif isinstance(content, dict):
        np.savez_compressed(path := folder / "my.npz", **content)
    elif content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    target = None if path.suffix in (".npz", ".svm") else target
    options = FileOptions.model_validate(keys).pairs()
    ref = DatasetRef("my", str(path), target, parse_steps(list(steps)), classes, options)
    return load_dataset(ref, store=folder / "store")


def refusal(folder: Path, content, name: str = "my.csv", **keys) -> str:
    with pytest.raises(UserError) as error:
        load(folder, content, name, **keys)
    assert "\n" not in str(error.value)
    return str(error.value)


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"a": NOISE, **columns, "kind": KIND})


def table(**columns) -> pa.Table:
    return pa.table({**columns, "kind": ["x", "y"]})


# Types of columns


@pytest.mark.parametrize(
    ("column", "word"),
    [
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), "lists"),
        (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())), "maps"),
        (pa.array([1, 2], pa.duration("s")), "times"),
    ],
)
def test_a_parquet_column_that_is_no_feature_is_named(tmp_path: Path, column, word: str):
    content = table(n=[1, 2], odd=column)
    line = refusal(tmp_path, content)
    assert f"column 'odd' contains {word}, neither numbers nor categories" in line
    assert line.endswith("write drop: [odd] (--set 'datasets[0].drop=[odd]')")
    assert load(tmp_path, content, drop=["odd"]).X.tolist() == [[1], [2]]


def test_periods_and_other_extensions_of_parquet_are_named(tmp_path: Path):
    months = pd.period_range("2020-01", periods=60, freq="M")
    # without an import of the package that defines a type, pyarrow reads the stored integers
    unknown = pa.field("w", pa.int64(), metadata={"ARROW:extension:name": "other.month"})
    schema = pa.schema([("a", pa.float64()), unknown, ("kind", pa.string())])
    tables = {
        "pandas.period": frame(w=months),
        "other.month": pa.table([NOISE, ROWS, KIND], schema),
    }
    for kind, content in tables.items():
        line = refusal(tmp_path, content, "my.parquet", **AUTO)
        assert f"column 'w' contains values of the type {kind}, neither numbers nor" in line
        assert load(tmp_path, content, "my.parquet", drop=["w"]).X.shape == (60, 1)


def test_types_of_parquet_are_numbers_or_categories(tmp_path: Path):
    amounts = pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")], pa.decimal128(9, 2))
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([10, 2]))
    content = pa.table(
        {
            "d": amounts,
            "t": [True, False],
            "h": pa.array([1, None], pa.int16()),
            "b": [b"v", b"u"],
            "i": codes,
            "s": ["NA", None],
            "kind": [b"\xc3\xa9", b"y"],
        }
    )
    data = load(tmp_path, content, steps=[{"impute": "most_frequent"}, "one_hot"])
    expected = [[1.25, 1, 1, 1, 0, 0], [-2.5, 0, np.nan, 0, 1, np.nan]]
    assert np.array_equal(data.X, expected, equal_nan=True)
    assert data.y.tolist() == ["é", "y"]


def test_long_numbers_as_classes_of_parquet_stay_apart(tmp_path: Path):
    long = [decimal.Decimal(2**60), decimal.Decimal(2**60 + 1)]
    content = pa.table({"a": [1, 2], "kind": pa.array(long, pa.decimal128(20, 0))})
    assert len(load(tmp_path, content).classes) == 2


def test_an_index_of_pandas_is_no_feature_unless_it_is_asked_for(tmp_path: Path):
    rows = pd.DataFrame({"a": [1, 2], "kind": ["x", "y"]}, index=pd.Index([5, 6], name="age"))
    content = pa.Table.from_pandas(rows)
    data = load(tmp_path, content)
    assert data.X.tolist() == [[1], [2]]
    assert data.warnings == ("columns left out, as row numbers or by the source: 'age'",)
    assert load(tmp_path, content, features=["a", "age"]).X.tolist() == [[1, 5], [2, 6]]


def test_a_parquet_file_says_itself_what_is_a_category(tmp_path: Path):
    sizes = pd.Categorical(["s", "m", "l"], categories=["s", "m", "l", "xl"])
    columns = {"n": [1, None, 3], "size": sizes, "t": ["b", "a", "b"], "kind": [0, 1, 1]}
    for keys in ({}, {"categorical": ["size"]}):
        data = load(
            tmp_path, pd.DataFrame(columns), "my.parquet", [{"impute": "mean"}, "ordinal"], **keys
        )
        expected = [[1, 0, 1], [np.nan, 1, 0], [3, 2, 1]]
        assert np.array_equal(data.X, expected, equal_nan=True)
    assert data.columns == {"n": None, "size": ("s", "m", "l", "xl"), "t": ("a", "b")}


@pytest.mark.parametrize("form", ["{:02}", "{}.5"])
def test_a_categorical_target_is_not_continuous(tmp_path: Path, form: str):
    names = [form.format(k) for k in range(24)]
    content = pd.DataFrame({"a": np.arange(72) / 7, "kind": pd.Categorical(names * 3)})
    assert load(tmp_path, content, "my.parquet").classes.tolist() == sorted(names)


def test_numbers_as_text_are_numbers_in_parquet_as_in_csv(tmp_path: Path):
    content = frame(w=[str(value) for value in NOISE[::-1]], z=[f"{k % 7:02d}" for k in ROWS])
    for keys in (AUTO, {}):
        data = load(tmp_path, content, "my.parquet", **keys)
        assert np.array_equal(data.X, load(tmp_path, content, **keys).X)
        assert data.columns == {"a": None, "w": None, "z": None}
    keys = {"categorical": ["z"], "steps": ["one_hot"]}
    assert load(tmp_path, content, "my.parquet", **keys).columns["z"][0] == "00"
    content["z"] = content["z"].astype("category")
    assert load(tmp_path, content, "my.parquet", **AUTO).columns["z"][0] == "00"
    content["kind"] = [str(value) for value in NOISE]
    assert "it looks continuous" in refusal(tmp_path, content, "my.parquet", **AUTO)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "column",
    [
        [b"u" if k % 3 else b"v" for k in ROWS],
        pd.Categorical([b"u" if k % 3 else b"v" for k in ROWS]),
        pd.Categorical(ROWS % 3 == 0),
        pd.Categorical([None if k % 5 == 0 else k % 3 == 0 for k in ROWS]),
        pd.Categorical([decimal.Decimal(int(k % 3)) / 2 for k in ROWS]),
    ],
    ids=["bytes", "categories of bytes", "truth values", "with gaps", "decimals"],
)
def test_categories_of_parquet_are_known_at_predict(tmp_path: Path, column):
    data = load(tmp_path, frame(w=column), "my.parquet", **AUTO)
    for rows in (frame(w=column), pd.read_parquet(tmp_path / "my.parquet")):
        found = data.table.transform(rows.drop(columns="kind"))
        assert np.array_equal(found, data.X, equal_nan=True)


def test_dictionaries_of_row_groups_are_the_categories_of_one_column(tmp_path: Path):
    words = pa.array(["b", "a"] * 3000 + ["c", "a"] * 3000).dictionary_encode()
    content = pa.table({"a": words, "kind": ["x", "y", "y"] * 4000})
    parquet.write_table(content, tmp_path / "my.parquet", row_group_size=5000)
    data = load(tmp_path, None, "my.parquet", ["ordinal"])
    assert [data.columns["a"][int(code)] for code in data.X[:, 0]] == words.to_pylist()


def test_arrays_of_the_other_byte_order_are_read(tmp_path: Path):
    data = load(tmp_path, {"X": np.eye(2, dtype=">f4"), "y": np.array([1, 2], ">i2")})
    assert np.array_equal(data.X, np.eye(2))
    assert data.y.tolist() == [1, 2]


def test_python_objects_in_an_npz_file_are_not_read(tmp_path: Path):
    arrays = {"X": np.eye(2), "y": np.array(["x", "y"])}
    assert load(tmp_path, {**arrays, "names": np.array(["a", "b"], object)}).X.shape == (2, 2)
    line = refusal(tmp_path, {**arrays, "y": np.array(["x", "y"], object)})
    assert line.endswith("contains Python objects; save numbers, and labels by y.astype(str)")
    with zipfile.ZipFile(tmp_path / "raw.npz", "w") as archive:
        archive.writestr("X", b"\x80\x04K\x01.")
        archive.writestr("y", b"\x80\x04K\x01.")
    assert "'X' is not a NumPy array" in refusal(tmp_path, None, "raw.npz")


CODED = pd.DataFrame(
    {"a": [1.5, -999, 3], "b": [7, 8, -999], "c": np.float32([-99.9, 1, 2]), "kind": list("xyx")}
)


@pytest.mark.parametrize("form", ["csv", "parquet", "arff", "arff with quotes", "npz"])
def test_a_number_for_a_missing_value_is_one_in_every_format(tmp_path: Path, form: str):
    content = {"parquet": pa.Table.from_pandas(CODED)}.get(form, CODED.to_csv(index=False))
    if form.startswith("arff"):
        names = "".join(f"@attribute {name} numeric\n" for name in "abc")
        rows = content.partition("\n")[2].replace("x", "'x'" if "quotes" in form else "x")
        content = f"@relation r\n{names}@attribute kind {{x,y}}\n@data\n{rows}"
    if form == "npz":  # the rounded numbers are in an array of float64
        content = {"X": CODED[["a", "b", "c"]], "y": CODED["kind"].to_numpy(str)}
    steps, missing = [{"impute": "mean"}], [-999, "-99.9"]
    data = load(tmp_path, content, f"my.{form.split()[0]}", steps, missing=missing)
    gaps = [[False, False, form != "npz"], [True, False, False], [False, True, False]]
    assert np.isnan(data.X).tolist() == gaps


# Targets that look continuous

DRAWN = np.random.default_rng(0)
TARGETS = {
    "prices": (DRAWN.integers(500, 3000, 2000), "it looks continuous"),
    "counts": (DRAWN.poisson(150, 400), "it looks continuous"),
    "counts as floats": (DRAWN.poisson(150, 400).astype(float), "it looks continuous"),
    "fractions": (DRAWN.normal(size=400).round(2), "it looks continuous"),
    "100 classes of 5 rows": (np.repeat(np.arange(100), 5), None),
    "classes with gaps": (np.repeat(10 * np.arange(50), 5), None),
    "a class of one row": (np.append(np.repeat(np.arange(30), 5), 30), "some only once"),
    "many classes": (np.repeat(np.arange(120), 5), "has 120 distinct numbers"),
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("file", ["my.csv", "my.parquet", "my.arff", "my.svm", "my.npz"])
def test_a_target_of_whole_numbers_may_look_continuous(tmp_path: Path, name: str, file: str):
    y, words = TARGETS[name]
    X = np.arange(len(y))[::-1, None] ** 2 / 8
    content: object = pd.DataFrame({"a": X[:, 0], "kind": y})
    if file == "my.arff":
        head = "@relation r\n@attribute a real\n@attribute kind real\n@data\n"
        content = head + content.to_csv(index=False, header=False)
    elif file == "my.svm":
        dump_svmlight_file(X, y, str(tmp_path / file), zero_based=False)
        content = None
    elif file == "my.npz":
        content = {"X": X, "y": y}
    if words != "it looks continuous":
        warnings = load(tmp_path, content, file).warnings
        assert [words in w for w in warnings] == ([True] if words else [])
        return
    line = refusal(tmp_path, content, file)
    assert words in line
    chosen = map(str, yaml.safe_load(line.partition("datasets[0].classes=")[2].rstrip("')")))
    assert len(load(tmp_path, content, file, classes=tuple(chosen)).classes) == 3


# Sizes


@pytest.mark.parametrize(
    "rows", ["a,note,kind\n1,{},x", "a,note,kind\n1,y,x\n2,{},x", "a,{},kind\n1,2,x"]
)
def test_a_field_may_have_any_length(tmp_path: Path, rows: str):
    text = rows.format('"' + "z" * 200_000 + '"') + "\n3,4,y\n"
    assert load(tmp_path, text, drop=2).y[0] == "x"


def test_a_wide_file_is_read(tmp_path: Path):
    X = np.random.default_rng(0).normal(size=(2000, 200)).round(3)
    content = pd.DataFrame(X, columns=[f"c{j}" for j in range(200)])
    assert np.array_equal(load(tmp_path, content.assign(kind=["a", "b"] * 1000)).X, X)


@pytest.mark.parametrize("cut", [slice(-9), slice(12)])
def test_a_compressed_file_that_is_cut_short_is_called_damaged(tmp_path: Path, cut: slice):
    content = gzip.compress(b"a,kind\n1,x\n2,y\n", mtime=0)[cut] + b"\xff" * 20 * (cut.stop > 0)
    assert "damaged or cut short" in refusal(tmp_path, content, "my.csv.gz")


def test_a_compressed_parquet_file_is_read(tmp_path: Path):
    frame().to_parquet(tmp_path / "plain.parquet")
    content = gzip.compress((tmp_path / "plain.parquet").read_bytes())
    assert load(tmp_path, content, "my.parquet.gz").X.shape == (60, 1)


def test_a_file_that_unfolds_is_refused_at_once(tmp_path: Path):
    bomb = bz2.compress(b"a,kind\n1,x\n2,y\n" + b"\n" * 50_000_000)
    assert len(bomb) < 10_000
    tracemalloc.start()
    line = refusal(tmp_path, bomb, "my.csv.bz2", max_megabytes=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    limit = "unpacks to more than 10485760 bytes, and at most 10 MB are read"
    assert f"{limit}; write max_megabytes: 40" in line
    allowed = bz2.compress(b"a,kind\n1,x\n2,y\n" + b"\n" * 11_000_000)
    assert load(tmp_path, allowed, "my.csv.bz2", max_megabytes=20).X.tolist() == [[1], [2]]


@pytest.mark.parametrize("name", ["my.csv", "my.csv.gz"])
def test_a_limit_may_exceed_every_computer(tmp_path: Path, name: str):
    text = b"a,kind\n1,x\n2,y\n"
    content = gzip.compress(text) if name.endswith(".gz") else text
    assert load(tmp_path, content, name, max_megabytes=10**13).X.tolist() == [[1], [2]]


def test_many_columns_of_numbers_with_marks_are_read_in_reasonable_time(tmp_path: Path):
    """The time grew with the square of the number of columns."""
    seconds = []
    for n in (50, 400):
        rows = "".join("15 %," * n + f"{kind}\n" for kind in "xy")
        text = ",".join(f"c{j}" for j in range(n)) + f",kind\n{rows}"
        start = time.process_time()
        load(tmp_path, text, units=["%"])
        seconds.append(time.process_time() - start)
    assert seconds[1] < 20 * seconds[0]


def test_many_columns_are_refused_before_they_are_read(tmp_path: Path):
    names = [f"c{k}" for k in range(10**5)]
    text = ",".join(names) + ",kind\n" + "1," * 10**5 + "x\n"
    line = refusal(tmp_path, text)
    assert "100001 columns, and at most 100000 are read; write max_columns: 100001" in line
    text = ",".join(names[:1000]) + ",kind\n" + "".join("1," * 1000 + f"{k}\n" for k in "xyx")
    assert load(tmp_path, text).X.shape == (3, 1000)
    few = "a,b,kind\n1,2,x\n3,4,y\n"
    assert "max_columns: 3" in refusal(tmp_path, few, max_columns=2)
    assert load(tmp_path, few, max_columns=3).X.shape == (2, 2)


SIZES = {
    "constant": ({"a": np.zeros(300_000)}, 1, "300000 rows x 2 columns, and at most 1 MB", 5),
    "words": ({"a": ["x" * 2000] * 10_000}, 4, "values of more than 4194304 bytes, and at", 16),
    "lists": ({"a": [[0] * 250] * 10_000}, 4, "values of more than 4194304 bytes, and at", 16),
}


@pytest.mark.parametrize("name", SIZES)
def test_values_of_parquet_count_by_their_length(tmp_path: Path, name: str):
    column, most, words, larger = SIZES[name]
    content = pa.table({**column, "kind": ["x", "y"] * (len(column["a"]) // 2)})
    line = refusal(tmp_path, content, max_megabytes=most)
    assert words in line
    assert f"are read; write max_megabytes: {larger}" in line


def test_arrays_of_numpy_count_before_they_are_read(tmp_path: Path):
    content = {"X": np.zeros((200_000, 2)), "y": np.arange(200_000) % 2}
    assert "write max_megabytes: 5" in refusal(tmp_path, content, max_megabytes=1)
