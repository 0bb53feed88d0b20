"""A fitted model reads rows as the table of its training was read."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pandas as pd
import pytest

from mmbench.datasets.dataset import Dataset, DatasetRef
from mmbench.datasets.load import load_dataset
from mmbench.reader.keys import FileOptions
from mmbench.reader.table_columns import TableColumns

STEPS = (("impute", "median"), ("one_hot", None))


def read(folder, text: str, **keys) -> tuple[Dataset, TableColumns]:
    """Return the data set of a CSV file and the columns that a model keeps."""
    (folder / "my.csv").write_text(text)
    options = FileOptions.model_validate(keys).pairs()
    data = load_dataset(
        DatasetRef("my", str(folder / "my.csv"), "kind", STEPS, (), options), store=folder / "store"
    )
    return data, data.table


WORDS = "age , the  colour,q,kind\n1,red ,?,x\n?,blue,u,y\n3, red,v,x\n4,NA,u ,y\n"


PAVED = "f,flag,kind\n" + "".join(
    f"{('None', 'Paved', 'Gravel')[k % 3]},{bool(k % 2) if k else ''},{'xy'[k % 2]}\n"
    for k in range(30)
)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("options", [{}, {"dtype": str}], ids=["types", "text"])
def test_truth_values_and_categories_that_pandas_would_drop_are_read_as_in_training(
    tmp_path, options
):
    data, rows = read(tmp_path, PAVED, categorical="auto")
    assert data.columns == {"f": ("Gravel", "None", "Paved"), "flag": None}
    found = rows.transform(pd.read_csv(io.StringIO(PAVED), keep_default_na=False, **options))
    assert np.array_equal(found, data.X, equal_nan=True)
    with pytest.warns(UserWarning, match="the category 'None' only if keep_default_na=False"):
        rows.transform(pd.read_csv(io.StringIO(PAVED), **options))


def test_a_column_that_pandas_has_renamed_is_warned_of(tmp_path):
    text = "x,x,kind\n" + "".join(f"{k},{k % 7},{'xy'[k % 2]}\n" for k in range(30))
    _, rows = read(tmp_path, text, drop=[1])
    with pytest.warns(UserWarning, match="X has the columns 'x' and 'x.1'; 'x' is used"):
        rows.transform(pd.read_csv(io.StringIO(text)))


@pytest.mark.filterwarnings("error")
def test_words_gaps_and_names_are_those_of_the_training(tmp_path):
    data, rows = read(tmp_path, WORDS, categorical=["the colour", "q"])
    found = rows.transform(pd.read_csv(io.StringIO(WORDS)))
    assert np.isnan(data.X).sum() == 3
    assert np.array_equal(found, data.X, equal_nan=True)
    array = [[" 2 ", "red ", "u"], ["?", "NA", " v"], [3, "green", "N/A"]]
    expected = [[2, 1, 0], [np.nan, np.nan, 1], [3, 2, np.nan]]
    assert np.array_equal(rows.transform(array), expected, equal_nan=True)


@pytest.mark.filterwarnings("error")
def test_stated_words_for_a_missing_value_are_those_of_the_training(tmp_path):
    text = "c,kind\nnone,x\nNA,y\nb,x\nNA,y\n"
    data, rows = read(tmp_path, text, categorical=["c"], missing=["none"])
    assert data.columns["c"] == ("NA", "b")
    frame = pd.read_csv(io.StringIO(text), keep_default_na=False)
    assert np.array_equal(rows.transform(frame), data.X, equal_nan=True)
    assert TableColumns(data.columns).transform(frame)[1].tolist() == [0], "a known category"


@pytest.mark.filterwarnings("error")
def test_whole_numbers_as_categories_are_those_of_the_training(tmp_path):
    text = "c,kind\n1.0,x\n2,y\n1,x\n"
    data, rows = read(tmp_path, text, categorical=["c"])
    assert data.columns == {"c": ("1", "2")}
    for frame in (pd.read_csv(io.StringIO(text), dtype=str), pd.read_csv(io.StringIO(text))):
        assert rows.transform(frame).tolist() == data.X.tolist() == [[0], [1], [0]]


@pytest.mark.filterwarnings("error")
def test_categories_with_blanks_in_a_parquet_file_stay_apart():
    rows = TableColumns({"c": ("red", "red ")})
    assert rows.transform([["red "], ["red"], [" red"]]).tolist() == [[1], [0], [0]]


def test_a_column_without_any_known_category_is_reported(tmp_path):
    text = "zip,kind\n01,x\n02,y\n01,y\n"
    data, rows = read(tmp_path, text, categorical=["zip"])
    with pytest.warns(
        UserWarning, match="column 'zip' has the unknown category '1', not one of 01"
    ):
        assert rows.transform(pd.read_csv(io.StringIO(text))).tolist() == [[2], [2], [2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_text = pd.read_csv(io.StringIO(text), dtype=str)
        assert np.array_equal(rows.transform(as_text), data.X)
        assert rows.transform([["03"], ["02"]]).tolist() == [[2], [1]]
        assert np.isnan(rows.transform([[None]])).all()


@pytest.mark.filterwarnings("error")
def test_names_with_blanks_in_a_parquet_file_are_those_of_the_training():
    rows = TableColumns({" age": None, "a  b": None})
    frame = pd.DataFrame({" age": [1], "a  b": [2], "age": [3]})
    assert rows.transform(frame).tolist() == [[1, 2]]
    assert rows.transform([[1, 2]]).tolist() == [[1, 2]]
    plain = TableColumns({"a": None})
    with pytest.raises(ValueError, match=r"^X has several columns 'a'$"):
        plain.transform(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert plain.transform(pd.DataFrame({" a": [1], "a": [2]})).tolist() == [[2]]
    assert plain.transform(pd.DataFrame({" a": [1]})).tolist() == [[1]]


@pytest.mark.filterwarnings("error")
def test_categories_of_a_data_frame_may_have_blanks():
    frame = pd.DataFrame({"c": pd.Categorical(["red ", "blue", None])})
    found = TableColumns({"c": ("blue", "red")}).transform(frame)
    assert np.array_equal(found, [[1], [0], [np.nan]], equal_nan=True)


@pytest.mark.filterwarnings("error")
def test_numbers_for_missing_values_are_those_of_the_training():
    table = TableColumns(
        {"a": None, "b": None, "c": ("1", "2"), "d": None}, [("missing", ("-99.9", "2e9", "-999"))]
    )
    frame = pd.DataFrame(
        {
            "a": np.float32([-99.9, 3]),
            "b": [2e9, 2e9 + 1],  # equal in float32
            "c": [2, -999],
            "d": [True, False],
        }
    )
    nan = np.nan
    expected = [[nan, nan, 1, 1], [3, 2e9 + 1, nan, 0]]
    assert np.array_equal(table.transform(frame)[:, [0, 1, 3, 2]], expected, equal_nan=True)


def test_a_number_for_a_missing_value_is_one_in_numeric_columns():
    table = TableColumns({"size": None, "age": None}, [("missing", ("-999", "none"))])
    rows = pd.DataFrame({"size": [1.5, -999.0], "age": ["7", "none"]})
    np.testing.assert_array_equal(table.transform(rows), [[1.5, 7.0], [np.nan, np.nan]])


def test_columns_of_a_table_without_header_are_those_of_pandas(tmp_path):
    text = "1,10,0\n2,20,1\n3,30,0\n"
    (tmp_path / "my.csv").write_text(text)
    options = (("header", False),)
    ref = DatasetRef("my", str(tmp_path / "my.csv"), -1, options=options)
    data = load_dataset(ref, store=tmp_path)
    frame = pd.read_csv(io.StringIO(text), header=None)
    rows = TableColumns(data.columns, options)
    assert rows.transform(frame).tolist() == data.X.tolist() == [[1, 10], [2, 20], [3, 30]]
    assert rows.transform(frame[[1, 0]]).tolist() == data.X.tolist()
    assert rows.transform(frame.rename(columns=lambda k: str(k + 1))).tolist() == data.X.tolist()
    named = TableColumns({"1": None, "2": None})  # the header is 0,1,2
    assert named.transform(frame).tolist() == [[10, 0], [20, 1], [30, 0]]


def test_numbers_with_marks_and_units_are_those_of_the_training(tmp_path):
    text = 'a,b,kind\n5 %,"1.234,5",x\n7%,"\u22122,5",y\nNA,7,x\n'
    data, rows = read(tmp_path, text, units=["%"], thousands=".", decimal=",")
    frame = pd.read_csv(io.StringIO(text), index_col="kind")
    assert np.array_equal(rows.transform(frame), data.X, equal_nan=True)
    assert np.array_equal(rows.transform(frame.astype("string")), data.X, equal_nan=True)
    with pytest.raises(ValueError, match="data row 2, column 'b': '1 kg' is not a number"):
        rows.transform(frame.assign(b=["1", "1 kg", "2"]))


def test_an_unknown_category_that_is_equal_as_a_number_is_reported(tmp_path):
    text = "month,kind\n09,x\n10,y\n11,x\n"
    _, rows = read(tmp_path, text, categorical=["month"])
    with pytest.warns(UserWarning, match="'month' has the unknown category '9', not one of 09, 10"):
        assert rows.transform(pd.read_csv(io.StringIO(text))).tolist() == [[3], [1], [2]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows.transform([["12"], ["10"]]).tolist() == [[3], [1]]


@pytest.mark.parametrize(
    ("cell", "kind"), [(pd.Timedelta("1D"), "durations"), (1j, "complex numbers"), ([1], "lists")]
)
def test_durations_complex_numbers_and_lists_are_neither_numbers_nor_words(cell, kind):
    frame = pd.DataFrame({"a": pd.Series([cell, cell])})
    for known in (None, ("x", "y")):
        with pytest.raises(ValueError, match=f"^column 'a' contains {kind}, neither numbers nor"):
            TableColumns({"a": known}).transform(frame)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (pd.DataFrame({"a": []}), r"X has no rows$"),
        (np.empty((0, 1)), r"X has no rows$"),
        ([[1, 2]], r"X has shape \(1, 2\), but the table has the columns \['a'\]; give these"),
        ([1], r"X has shape \(1,\), but"),
    ],
)
def test_rows_of_another_shape_are_refused_in_one_line(X, words):
    with pytest.raises(ValueError, match=f"^{words}"):
        TableColumns({"a": None}).transform(X)


@pytest.mark.parametrize("cell", [pd.Timestamp("2024-01-31"), pd.Period("2024")])
def test_dates_and_other_objects_are_no_numbers(cell):
    frame = pd.DataFrame({"a": pd.Series([cell, cell])})
    with pytest.raises(ValueError, match=r"data row 1, column 'a': .* is not a number"):
        TableColumns({"a": None}).transform(frame)
    with pytest.warns(UserWarning, match="unknown category"):
        assert TableColumns({"a": ("x", "y")}).transform(frame).tolist() == [[2.0], [2.0]]
