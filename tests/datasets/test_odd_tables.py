"""Oddities of tables from spreadsheets, pandas and the web are read right, or named with the option
that goes on.
"""

from __future__ import annotations

import decimal
import gzip
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from pyarrow import parquet
from sklearn.datasets import dump_svmlight_file

from mmbench.config.read import config_of
from mmbench.datasets import Dataset, DatasetRef, UserTable, load_dataset, parse_steps
from mmbench.datasets.user.transformer import TableColumns
from mmbench.errors import UserError

AUTO = {"categorical": "auto", "steps": [{"impute": "median"}, "one_hot"]}
ROWS = np.arange(60)
KIND = np.where(ROWS % 2 == 0, "x", "y")
NOISE = np.random.default_rng(0).normal(size=60).round(3)


def load(folder: Path, content, name: str = "my.csv", steps=(), **keys) -> Dataset:
    """Load a file, or a data frame as a file, as an entry of a configuration with these keys."""
    path = folder / name
    if isinstance(content, pd.DataFrame):
        write = content.to_parquet if name.endswith(".parquet") else content.to_csv
        write(path, index=False)
    elif isinstance(content, pa.Table):
        parquet.write_table(content, path)
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    table = UserTable.model_validate({"path": str(path), "target": "kind", **keys})
    ref = DatasetRef("my", table.source, table.target, parse_steps(list(steps)), (), table.pairs())
    return load_dataset(ref, store=folder / "store")


def refusal(folder: Path, content, name: str = "my.csv", **keys) -> str:
    with pytest.raises(UserError) as error:
        load(folder, content, name, **keys)
    assert "\n" not in str(error.value)
    return str(error.value)


def frame(**columns) -> pd.DataFrame:
    return pd.DataFrame({"a": NOISE, **columns, "kind": KIND})


def advised(message: str) -> dict:
    """Return the first key that a message advises, with its value."""
    option = shlex.split(message.partition("--set ")[2].split("; ")[0].rstrip(")"))[0]
    data = {"path": __file__, "name": "my", "target": "kind"}
    content = {"name": "c", "datasets": [data], "machines": {"lda": None}}
    content["protocol"] = {"test": {"kfold": 2}}
    entry = config_of(content, Path("c.yaml"), [option]).datasets[0]
    return {key: [*value] if isinstance(value, tuple) else value for key, value in entry.pairs()}


# Numbers with units


@pytest.mark.parametrize(
    ("form", "unit"),
    [
        ("{}kg", "kg"),
        ("{}mmHg", "mmHg"),
        ("{}°C", "°C"),
        ("{}K", "K"),
        ("{}km/h", "km/h"),
        ("{} GB", "GB"),
        ("{}m²", "m²"),
        ("EUR {}", "EUR"),
        ("EUR{}", "EUR"),
        ("US${}", "US$"),
    ],
)
def test_a_unit_without_a_blank_is_named_with_the_option_that_goes_on(tmp_path, form, unit):
    table = frame(w=[form.format(60 + k % 20) for k in ROWS])
    (warning,) = load(tmp_path, table, **AUTO).warnings
    assert f"if {unit!r} is a unit, write units: " in warning
    assert advised(warning) == {"units": [unit]}
    for keys in (AUTO, {}):
        data = load(tmp_path, table, units=[unit], **keys)
        assert data.X[:, 1].tolist() == (60 + ROWS % 20).tolist()
    line = refusal(tmp_path, table)
    assert "write units: " in line and "write categorical: auto" in line


@pytest.mark.parametrize("words", [("A4", "A5"), ("3D", "2D"), ("1st", "2nd", "3rd", "4th")])
def test_categories_of_digits_and_letters_have_no_unit(tmp_path, words):
    data = load(tmp_path, frame(w=[words[k // 3 % len(words)] for k in ROWS]), **AUTO)
    assert (data.n_categorical, data.warnings) == (1, ())


def test_several_units_are_called_several(tmp_path):
    table = frame(w=[f"{k}K" if k % 3 else f"{k}.5M" for k in ROWS])
    (warning,) = load(tmp_path, table, **AUTO).warnings
    assert "if 'K', 'M' denote the same unit, write units: [K, M]" in warning
    table = frame(w=[f"{k}kg" if k % 3 else f"{k}lb" for k in ROWS])
    (warning,) = load(tmp_path, table, units=["kg"], **AUTO).warnings
    assert "if 'lb' is a unit" in warning


@pytest.mark.parametrize("form", ["({})", "{}-", "($1,2{})"])
def test_negative_numbers_of_accountants_are_named(tmp_path, form):
    table = frame(w=[form.format(10 + k % 30) if k % 3 else str(k % 30) for k in ROWS])
    (warning,) = load(tmp_path, table, **AUTO).warnings
    assert f"if '{form.format(11)}' is negative, save it with a minus" in warning


def test_millions_with_dots_lead_to_both_marks(tmp_path):
    table = frame(w=[f"1.{100 + k}.000" for k in ROWS])
    (warning,) = load(tmp_path, table.to_csv(index=False, sep=";"), **AUTO).warnings
    assert "if ',' is the decimal mark, write decimal: \",\"" in warning
    text = table.drop(columns="a").to_csv(index=False, sep=";")
    assert 'write thousands: "."' in refusal(tmp_path, text, decimal=",")
    data = load(tmp_path, text, decimal=",", thousands=".")
    assert data.X[:2, 0].tolist() == [1100000, 1101000]


# Text and categories in Parquet files


def test_numbers_as_text_are_numbers_in_parquet_as_in_csv(tmp_path):
    table = frame(w=[str(value) for value in NOISE[::-1]], z=[f"{k % 7:02d}" for k in ROWS])
    for keys in (AUTO, {}):
        data = load(tmp_path, table, "my.parquet", **keys)
        assert np.array_equal(data.X, load(tmp_path, table, **keys).X)
        assert data.columns == {"a": None, "w": None, "z": None}
    keys = {"categorical": ["z"], "steps": ["one_hot"]}
    assert load(tmp_path, table, "my.parquet", **keys).columns["z"][0] == "00"
    table["z"] = table["z"].astype("category")
    assert load(tmp_path, table, "my.parquet", **AUTO).columns["z"][0] == "00"
    table["kind"] = [str(value) for value in NOISE]
    assert "it looks continuous" in refusal(tmp_path, table, "my.parquet", **AUTO)


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
def test_categories_of_parquet_are_known_at_predict(tmp_path, column):
    data = load(tmp_path, frame(w=column), "my.parquet", **AUTO)
    rows = TableColumns(data.columns)
    for table in (frame(w=column), pd.read_parquet(tmp_path / "my.parquet")):
        found = rows.transform(table.drop(columns="kind"))
        assert np.array_equal(found, data.X, equal_nan=True)


def test_periods_and_other_extensions_of_parquet_are_named(tmp_path):
    months = pd.period_range("2020-01", periods=60, freq="M")
    # without an import of the package that defines a type, pyarrow reads the stored integers
    unknown = pa.field("w", pa.int64(), metadata={"ARROW:extension:name": "other.month"})
    schema = pa.schema([("a", pa.float64()), unknown, ("kind", pa.string())])
    tables = {
        "pandas.period": frame(w=months),
        "other.month": pa.table([NOISE, ROWS, KIND], schema),
    }
    for kind, table in tables.items():
        line = refusal(tmp_path, table, "my.parquet", **AUTO)
        assert f"column 'w' contains values of the type {kind}, neither numbers nor" in line
        assert advised(line) == {"drop": ["w"]}
        assert load(tmp_path, table, "my.parquet", drop=["w"]).X.shape == (60, 1)


def test_a_compressed_parquet_file_is_read(tmp_path):
    frame().to_parquet(tmp_path / "plain.parquet")
    content = gzip.compress((tmp_path / "plain.parquet").read_bytes())
    assert load(tmp_path, content, "my.parquet.gz").X.shape == (60, 1)


# Names, lines and rows


def test_only_a_word_of_the_file_is_asked_about(tmp_path):
    rows = "".join(f"{value},{kind}\n" for value, kind in zip(NOISE, KIND, strict=True))
    (warning,) = load(tmp_path, f"a,kind\n{rows}Total,\n", unlabelled="drop").warnings
    assert warning == "1 rows without 'kind' are left out"
    (warning,) = load(tmp_path, f"a,kind\n{rows}7, NA\n", unlabelled="drop").warnings
    assert "if 'NA' is a class, write missing: " in warning
    data = load(tmp_path, f"a,kind\n{rows}7, NA\n", unlabelled="drop", **advised(warning))
    assert data.classes.tolist() == ["NA", "x", "y"]


@pytest.mark.parametrize("rows", [ROWS, ROWS + 1, ROWS[::-1], 7 * ROWS])
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_row_numbers_as_pandas_writes_them_are_left_out(tmp_path, name, rows):
    table = pd.DataFrame({name: rows, "a": NOISE, "kind": KIND})
    data = load(tmp_path, table)
    assert data.warnings == ("columns left out, as row numbers or by the source: 'Unnamed: 0'",)
    assert data.columns == {"a": None}
    assert np.array_equal(data.X[:, 0], NOISE)
    stated = {"index": 1} if name == "" else {"features": ["Unnamed: 0", "a"]}
    assert (
        [*load(tmp_path, table, **stated).columns] == ["a"] if name == "" else ["Unnamed: 0", "a"]
    )


def test_a_first_column_without_a_name_that_holds_other_values_is_refused(tmp_path):
    for values in (NOISE, KIND, ROWS // 2):
        error = refusal(tmp_path, pd.DataFrame({"": values, "a": NOISE, "kind": KIND}))
        assert "column 1 has no name; to leave it out, write drop: [1]" in error


def test_all_columns_that_cannot_be_categories_are_named_at_once(tmp_path):
    dates = [f"2024-03-{1 + k % 28:02}" for k in ROWS]
    table = frame(seen=dates, born=dates[::-1])
    error = refusal(tmp_path, table, **AUTO)
    assert "column 'seen' contains dates or times such as '2024-03-01'; column 'born'" in error
    assert "to leave them out, write drop: [seen, born] (--set " in error
    assert "; to keep them, write categorical: [seen, born] (--set " in error
    assert load(tmp_path, table, **AUTO, **advised(error)).columns == {"a": None}


@pytest.mark.parametrize("name", ["index", "row"])
def test_an_index_is_named_though_the_rows_are_sorted_by_class(tmp_path, name):
    table = frame(**{name: 1000 + ROWS}).sort_values("kind")
    (warning,) = load(tmp_path, table).warnings
    assert f"column {name!r} contains row numbers; to leave it out, " in warning
    assert load(tmp_path, table, **advised(warning)).columns == {"a": None}


def test_an_index_of_two_joined_tables_is_named(tmp_path):
    (warning,) = load(tmp_path, frame(**{"Unnamed: 0": ROWS % 30})).warnings
    assert "column 'Unnamed: 0' seems to contain identifiers" in warning


@pytest.mark.parametrize(
    "text",
    [
        "a,kind,,\n1,x,,\n2,y,,\n",
        "a,kind,a,a\n1,x,1,1\n2,y,2,2\n",
        ",a,,kind,\n7,1,,x,\n8,2,,y,\n",
        "Sales\n2021\nby hand\na,kind\n1,x\n2,y\n",
    ],
    ids=["empty names", "equal names", "an index and empty names", "a title"],
)
def test_the_options_of_the_messages_lead_to_the_data(tmp_path, text):
    keys: dict = {}
    for _ in range(4):
        try:
            data = load(tmp_path, text, **keys)
            break
        except UserError as error:
            keys |= advised(str(error))
    assert (data.X.tolist(), data.y.tolist()) == ([[1], [2]], ["x", "y"])


def test_a_header_of_two_lines_is_called_one(tmp_path):
    text = "g,g,h\na,b,kind\n1,2,x\n3,4,y\n"
    assert "if the first line does not name the columns, write skip_lines: 1" in refusal(
        tmp_path, text
    )
    assert load(tmp_path, text, skip_lines=1).X.tolist() == [[1, 2], [3, 4]]


def test_a_footer_is_named_with_what_to_do(tmp_path):
    line = refusal(tmp_path, "a,b,kind\n1,2,x\n3,4,y\nSource: 2021\n")
    assert line.endswith("data row 3 has 1 fields, not 3; correct or remove the row")


def test_an_infinite_value_is_named_with_the_option_that_goes_on(tmp_path):
    line = refusal(tmp_path, frame(w=np.where(ROWS == 3, np.inf, NOISE)))
    assert "data row 4, column 'w': infinite value inf" in line
    assert advised(line) == {"drop": ["w"]}


def test_categories_that_look_alike_are_named(tmp_path):
    (warning,) = load(
        tmp_path, frame(w=[("Male", "male", "f")[k % 3] for k in ROWS]), **AUTO
    ).warnings
    assert "column 'w': categories 'Male' and 'male' differ only in capital letters" in warning


@pytest.mark.parametrize(
    "form",
    ["2020-W{:02d}", "Q1 20{:02d}", "Mon, {:02d} Jan 2020", "{} Mai 2020", "{} days 12:30:00"],
)
def test_weeks_quarters_and_durations_are_no_categories(tmp_path, form):
    line = refusal(tmp_path, frame(w=[form.format(10 + k % 15) for k in ROWS]), **AUTO)
    assert "column 'w' contains dates or times such as" in line


OUT, NAMED = "has a different word in each row, and is left out", "seems to contain identifiers"
UNIQUE = {
    "words": ("customerID", lambda k: f"{k * 7919 % 9973:04}-XY", 60, OUT),
    "many words": ("name", lambda k: f"person {k}", 600, OUT),
    "words and gaps": ("name", lambda k: f"person {k}" if k % 3 else None, 60, OUT),
    "few words": ("name", lambda k: f"person {k}", 9, None),
    "a word twice": ("name", lambda k: f"person {k % 59}", 60, None),
    "numbers with a comma": ("w", lambda k: f"{k},5", 60, "has categories such as '0,5'"),
    "a number": ("customer", lambda k: 104729 * k % 999983, 60, NAMED),
    "a number and gaps": ("PassengerId", lambda k: 7 * k if k % 3 else None, 60, NAMED),
    "a measured number": ("income", lambda k: 104729 * k % 999983, 60, None),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_a_column_of_row_names_is_left_out_or_named(tmp_path, name):
    column, value, n, words = UNIQUE[name]
    rows = range(n)
    table = pd.DataFrame({"a": [k / 8 for k in rows], column: pd.Series(map(value, rows))})
    table = table.assign(kind=[KIND[k % 2] for k in rows])
    for file in ("my.csv", "my.parquet"):
        data = load(tmp_path, table, file, **AUTO)
        assert any(words in line for line in data.warnings) if words else data.warnings == ()
        assert (column in data.columns) == (words != OUT)
        if words == OUT:
            assert f"to keep it, write categorical: [{column}]" in data.warnings[0]
    if words == OUT:
        assert "there is no feature column" in refusal(tmp_path, table.drop(columns="a"), **AUTO)


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
def test_a_target_of_whole_numbers_may_look_continuous(tmp_path, name, file):
    y, words = TARGETS[name]
    X = np.arange(len(y))[::-1, None] ** 2 / 8
    content, keys = pd.DataFrame({"a": X[:, 0], "kind": y}), {}
    if file == "my.arff":
        head = "@relation r\n@attribute a real\n@attribute kind real\n@data\n"
        content = head + content.to_csv(index=False, header=False)
    elif file in ("my.svm", "my.npz"):
        dump_svmlight_file(X, y, str(tmp_path / "my.svm"), zero_based=False)
        np.savez(tmp_path / "my.npz", X=X, y=y)
        content, keys = (tmp_path / file).read_bytes(), {"target": None}
    if words != "it looks continuous":
        assert [words in w for w in load(tmp_path, content, file, **keys).warnings] == (
            [True] if words else []
        )
        return
    line = refusal(tmp_path, content, file, **keys)
    assert words in line
    chosen = map(str, yaml.safe_load(line.partition("datasets[0].classes=")[2].rstrip("')")))
    ref = DatasetRef("my", str(tmp_path / file), keys.get("target", "kind"), (), tuple(chosen))
    assert len(load_dataset(ref, store=tmp_path).classes) == 3


SVMLIGHT_FAULTS = {
    "1 1:.5 2:abc": ", column 2: 'abc' is not a number",
    "1 1:.5 2: 3:1": ", column 2: '3:1' is not a number",
    "1 1:1_0": ", column 1: '1_0' is not a number",
    "x 1:.5": ": the label 'x' is not a number",
    "1,2 1:.5": ": the label '1,2' is not a number",
    "1:1 2:1": ": the label '1:1' is not a number",
    "1 a:1": ": 'a:1' is not a column number, a colon and a number",
    "1 -1:1": ": '-1:1' is not a column number",
    "1 1:1 2": ": '2' is not a column number",
    "1 qid:x 1:1": ": 'qid:x' is not a column number",
    "1 99999999999999999999:1": ": '99999999999999999999:1' is not a column number",
    "1 2000000000:1": ": 2000000000 columns are too many",
    "1 2:1 1:1": ": column 1 follows column 2",
    "1 2:1 2:1": ": column 2 follows column 2",
    "1 qid:3 1:1": " has a qid, unlike data row 1",
}


@pytest.mark.parametrize("row", SVMLIGHT_FAULTS)
def test_a_fault_of_an_svmlight_file_names_its_row(tmp_path, row):
    text = f"1 1:1 # a_comment\n\n-1 1:2\n{row}\n1 1:3\n"
    line = refusal(tmp_path, text, "my.svm", target=None)
    assert f"data row 3{SVMLIGHT_FAULTS[row]}" in line


def test_blanks_after_a_colon_are_read_as_by_libsvm(tmp_path):
    data = load(tmp_path, "1 1: .5 2:\t3 # 1: x\n-1 1:2\n", "my.svm", target=None)
    assert data.X.tolist() == [[0.5, 3], [2, 0]]


KEEL = """@relation glass
@attribute RI real[0.0,0.89]
@attribute 'Na 2' integer [0, 7]
@attribute Class{positive,negative}
@inputs RI, 'Na 2'
@outputs Class
@data
0.5, 3, positive
0.25, <null>, negative
"""


@pytest.mark.parametrize("name", ["glass.dat", "glass.csv", "glass.arff"])
@pytest.mark.parametrize("text", [KEEL, KEEL.replace(" positive", " 'positive'")])
def test_files_of_keel_are_known_by_their_content(tmp_path, name, text):
    data = load(tmp_path, text, name, [{"impute": "mean"}], target="Class")
    assert np.array_equal(data.X, [[0.5, 3], [0.25, np.nan]], equal_nan=True)
    assert data.y.tolist() == ["positive", "negative"]


HEADS = {
    'a b kind\n"1" 5 3 x\n"2" 6 4 y\n': {"index": 1},
    "a,b,kind\nr1,5,3,x\nr2,6,4,y\n": {"index": 1},
    "a,b,kind\n5,3,x,\n6,4,y,\n": {"drop": [4]},
    "|1x3 Cross validator\na, b, kind\n5, 3, x\n6, 4, y\n": {"skip_lines": 1},
    "|1x3 Cross\na, b, kind\n5, 3, x\n6, 4, y\n": {"skip_lines": 1},
}


@pytest.mark.parametrize("text", HEADS)
def test_the_first_option_for_a_header_unlike_the_rows_is_the_right_one(tmp_path, text):
    assert advised(refusal(tmp_path, text)) == HEADS[text]
    assert load(tmp_path, text, **HEADS[text]).X.tolist() == [[5, 3], [6, 4]]


def test_a_title_above_rows_without_header_is_skipped(tmp_path):
    text = "|1x3 Cross validator\n5, 3, 1, x\n6, 4, 1, y\n"
    line = refusal(tmp_path, text, header=False, target=4)
    assert "and the next line has ','; if the first line does not contain data" in line
    shorter = refusal(tmp_path, text.replace(" Cross validator", ""), header=False, target=4)
    assert "data row 2 has 4 fields, not 1; if the first line does not contain data" in shorter
    data = load(tmp_path, text, header=False, target=4, **advised(line))
    assert data.X.tolist() == [[5, 3, 1], [6, 4, 1]]


def test_row_names_of_r_are_left_out(tmp_path):
    names = ("Mazda RX4", "Datsun 710")
    text = '"","mpg","kind"\n' + "".join(f'"{n}",{k},"{"xy"[k]}"\n' for k, n in enumerate(names))
    assert [*load(tmp_path, text).columns] == ["mpg"]


def test_labels_of_an_npz_file_may_be_a_column(tmp_path):
    np.savez(tmp_path / "a.npz", X=NOISE[:, None], y=KIND[:, None])
    data = load_dataset(DatasetRef("a", str(tmp_path / "a.npz")), store=tmp_path)
    assert data.y.tolist() == KIND.tolist()
