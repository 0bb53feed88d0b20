"""Right values of strangers' tables, or one line that names the key with which they are read."""

from __future__ import annotations

import bz2
import datetime
import decimal
import gzip
import re
import shlex
import string
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from helpers.data_server import DataServer
from pyarrow import parquet
from pydantic import ValidationError

from mmbench.config.files import parse_yaml
from mmbench.config.read import load_config
from mmbench.datasets import Dataset, DatasetRef, UserTable, keep_classes, load_dataset, parse_steps
from mmbench.datasets.parsers.arff_files import setting
from mmbench.errors import UserError


def load(folder: Path, content: str | bytes | pa.Table, name="my.csv", steps=(), **keys) -> Dataset:
    """Load a file as an entry of a configuration with these keys."""
    path = folder / name
    if isinstance(content, pa.Table):
        path = folder / "my.parquet"
        parquet.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    table = UserTable.model_validate({"path": str(path), "target": "kind", **keys})
    ref = DatasetRef("my", table.source, table.target, parse_steps(list(steps)), (), table.pairs())
    return load_dataset(ref, store=folder / "store")


def refusal(folder: Path, content: str | bytes | pa.Table, name: str = "my.csv", **keys) -> str:
    with pytest.raises(UserError) as error:
        load(folder, content, name, **keys)
    assert "\n" not in str(error.value)
    return str(error.value)


# OpenML: columns that are no features

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


def test_several_columns_to_ignore_are_read_in_either_form(server: DataServer, store: Path):
    for number, tags in {
        1: "<oml:ignore_attribute>id,copy</oml:ignore_attribute>",
        2: "<oml:ignore_attribute>id</oml:ignore_attribute>"
        "<oml:ignore_attribute>copy</oml:ignore_attribute>",
    }.items():
        server.openml(number, COPIES.encode(), more=tags)
        data = load_dataset(DatasetRef("a", f"openml:{number}"), store=store)
        assert data.X.tolist() == [[5], [6], [7]]


@pytest.mark.parametrize("stated", ["'id',&quot;copy&quot;", "ID,Copy", "id, copy,nope"])
def test_columns_to_ignore_are_found_in_quotes_and_in_other_case(
    server: DataServer, store: Path, stated: str
):
    tag = f"<oml:ignore_attribute>{stated}</oml:ignore_attribute>"
    server.openml(31, COPIES.encode(), more=tag)
    data = load_dataset(DatasetRef("a", "openml:31"), store=store)
    assert data.X.tolist() == [[5], [6], [7]]
    absent = [w for w in data.warnings if "not there" in w]
    assert absent == (
        ["the source excludes a column 'nope', which is not there"] if "nope" in stated else []
    )


def test_a_column_to_ignore_may_have_a_comma_in_its_name(server: DataServer, store: Path):
    copies = COPIES.replace("copy", "'copy, x'")
    tag = "<oml:ignore_attribute>'copy, x', id</oml:ignore_attribute>"
    server.openml(31, copies.encode(), more=tag)
    data = load_dataset(DatasetRef("a", "openml:31"), store=store)
    assert data.X.tolist() == [[5], [6], [7]]


def test_a_stored_set_without_these_names_is_fetched_again(server: DataServer, store: Path):
    (store / "openml").mkdir(parents=True)
    (store / "openml" / "31.arff").write_text(COPIES)
    (store / "openml" / "31.json").write_text('{"target": "class"}')
    with pytest.raises(UserError, match="of an older version"):
        load_dataset(DatasetRef("a", "openml:31"), store=store, allow_network=False)
    server.openml(31, COPIES.encode(), more="<oml:ignore_attribute>id,copy</oml:ignore_attribute>")
    assert load_dataset(DatasetRef("a", "openml:31"), store=store).X.shape == (3, 1)


@pytest.mark.parametrize(
    "facts", ["[]", '{"ignored": []}', '{"target": "class", "ignored": "id"}', "nonsense", ""]
)
def test_a_description_in_a_mirror_that_is_none_is_one_line(tmp_path: Path, facts: str):
    (tmp_path / "openml").mkdir()
    (tmp_path / "openml" / "31.arff").write_text(COPIES)
    (tmp_path / "openml" / "31.json").write_text(facts)
    places = {"store": tmp_path / "store", "mirror": tmp_path, "allow_network": False}
    with pytest.raises(UserError, match=r"^openml:31: .*31\.json"):
        load_dataset(DatasetRef("a", "openml:31"), **places)


# ARFF

ARFF = """% comment
@relation r
@attribute\tsize\t{small, 'not small', "so, so", NA}   % categories
@attribute grade {1,2,3}
@ATTRIBUTE "the age" NUMERIC % years
@attribute kind {p, 'it\\'s', '?'}
@data
'not small', 1, 2.5, p      % a row
small\t3\t4\t"it's"
% nothing
NA,2,?,'?'
"so, so",1,1e1,p
"""
ARFF_ROWS = [[2.5, 1, 0], [4, 0, 2], [np.nan, 3, 1], [10, 2, 0]]


def test_arff_is_read_as_weka_reads_it(tmp_path: Path):
    data = load(tmp_path, ARFF, "my.arff", [{"impute": "mean"}, "one_hot"])
    assert np.array_equal(data.X, ARFF_ROWS, equal_nan=True)
    assert data.n_categorical == 2
    assert data.y.tolist() == ["p", "it's", "?", "p"]


def test_sparse_rows_are_the_same_data_as_dense_ones(tmp_path: Path):
    rows = "{0 'not small', 2 2.5}\n{1 3, 2 4, 3 \"it's\"}\n{0 NA, 1 2, 2 ?, 3 '?'}\n{}\n"
    data = load(tmp_path, ARFF.split("'not small', 1")[0] + rows, "my.arff",
                [{"impute": "mean"}, "one_hot"])  # fmt: skip
    assert np.array_equal(data.X[:3], ARFF_ROWS[:3], equal_nan=True)
    assert data.X[3].tolist() == [0, 0, 0]
    assert data.y.tolist() == ["p", "it's", "?", "p"]


def test_only_line_ends_end_a_line_of_arff(tmp_path: Path):
    head = "@relation r\r\n@attribute s {'a\x85', 'b\u2028c'}\r@attribute kind {p, q}\n@data\n"
    data = load(tmp_path, head + "'a\x85',p\r\n'b\u2028c',q\r", "my.arff", ["one_hot"])
    assert data.columns["s"] == ("a\x85", "b\u2028c")
    assert data.y.tolist() == ["p", "q"]


@pytest.mark.parametrize(
    "text", ["kind,a,b\nx,1,2\ny,3\n", 'kind,a,b\n"x",1,2\ny,3\n', "kind a b\nx 1 2\ny 3\n"]
)
def test_a_short_row_is_not_filled(tmp_path: Path, text: str):
    line = refusal(tmp_path, text, steps=[{"impute": "mean"}])
    assert "data row 2 has 2 fields, not 3" in line


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("small,1,2.5", "data row 1 has 3 fields, not 4"),
        ("not small,1,2.5,p", "data row 1 has 5 fields, not 4"),
        ("'small,1,2.5,p", 'data row 1: "\'small,1,2.5,p" cannot be read'),
        ("{0 small, 4 1}", "data row 1: no attribute 4, counted from 0"),
        ("{1 1, 1 2}", "data row 1: an attribute has two values"),
        ("{0 small 1}", "data row 1: a sparse row is {number value, ...}"),
        ("small,1,NA,p\nsmall,1,2,'?'", "'NA' is not a number"),
        ('small,1,NA,p\nsmall,1,2,"it\'s"', "'NA' is not a number"),
        ("small,1.0,2,p\nsmall,1,2,'?'", "column 'grade': '1.0' is not one of 1, 2, 3"),
        ("small,1,2,z\nsmall,1,2,'?'", "column 'kind': 'z' is not one of p, it's, ?"),
        ("small,,2,p\nsmall,1,2,'?'", "column 'grade': '' is not one of 1, 2, 3"),
    ],
)
def test_a_wrong_arff_row_is_one_line(tmp_path: Path, row: str, reason: str):
    text = ARFF.split("'not small', 1")[0] + row + "\n"
    assert reason in refusal(tmp_path, text, "my.arff", steps=["one_hot"])


def test_a_declared_number_is_no_category_even_if_words_are(tmp_path: Path):
    head = "@relation r\n@attribute a real\n@attribute kind {x,y}\n@data\n"
    text = head + "1,x\nold,y\n"
    line = refusal(tmp_path, text, "my.arff", steps=["one_hot"], categorical="auto")
    assert "data row 2, column 'a': 'old' is not a number" in line
    for truths in ("TRUE,x\nFALSE,y\n", "TRUE,x\n?,y\n"):
        assert "'a': True is not a number" in refusal(tmp_path, head + truths, "my.arff")


def test_further_words_for_a_missing_value_can_be_stated(tmp_path: Path):
    text = ARFF.split("'not small', 1")[0] + "small,1,NA,p\nNA,,3,'?'\n"
    steps = [{"impute": "mean"}, "one_hot"]
    data = load(tmp_path, text, "my.arff", steps, missing=["", "NA"])
    assert np.isnan(data.X).tolist() == [[True, False, False], [False, True, True]]


# Marks in numbers

GERMAN = "a;b;kind\n1.234,5;1,5;x\n1.234;2;y\n-12.345.678;3e1;x\n"


def test_dots_between_thousands_are_read_only_if_stated(tmp_path: Path):
    line = refusal(tmp_path, GERMAN, decimal=",")
    assert "data row 1, column 'a': '1.234,5' is not a number; if '.'" in line
    assert line.endswith("""write thousands: "." (--set 'datasets[0].thousands="."')""")
    data = load(tmp_path, GERMAN, decimal=",", thousands=".")
    assert data.X.tolist() == [[1234.5, 1.5], [1234, 2], [-12345678, 30]]


@pytest.mark.parametrize("cell", ["1.5", "1.2345", "12.34,5", "1234.567", "1,234,5"])
def test_a_dot_that_groups_no_thousands_is_refused(tmp_path: Path, cell: str):
    line = refusal(tmp_path, GERMAN.replace("-12.345.678", cell), decimal=",", thousands=".")
    assert f"{cell!r} is not a number" in line


def test_a_single_dot_beside_a_decimal_comma_is_never_a_decimal_point(tmp_path: Path):
    assert "'1.234' is not a number" in refusal(
        tmp_path, "a;kind\n1.234;x\n2;y\n", decimal=",", separator=";"
    )


MARKS = "a;b;kind\n{};{};x\n1.250;2,5;y\n1.300;4;y\n"


@pytest.mark.parametrize("keys", [{"drop": ["b"]}, {"categorical": "auto", "steps": ["one_hot"]}])
@pytest.mark.parametrize("cell", ["1.100", "1.000"])
def test_a_decimal_point_beside_decimal_commas_is_reported(tmp_path: Path, cell: str, keys: dict):
    data = load(tmp_path, MARKS.format(cell, "1,5"), **keys)
    assert data.X[0, 0] == float(cell)
    found = [warning for warning in data.warnings if warning.startswith("column 'a'")]
    assert found == [
        "column 'a' is read with '.' as the decimal mark, and column 'b' contains '1,5'; "
        """if ',' is the decimal mark, write decimal: "," (--set 'datasets[0].decimal=","')"""
    ]
    line = refusal(tmp_path, MARKS.format(cell, "1,5"), decimal=",")
    assert f"{cell!r} is not a number; if '.' separates thousands" in line


@pytest.mark.parametrize(("a", "b"), [("1.1", "1,234"), ("1.1", "red, 2,5"), ("1", "1,5")])
def test_commas_that_are_no_decimal_marks_are_not_reported(tmp_path: Path, a: str, b: str):
    text = MARKS.format(a, b).replace("2,5", b).replace("1.250", a).replace("1.300", a)
    assert not any("is read with" in w for w in load(tmp_path, text, drop=["b"]).warnings)


NOT_CSV = {"1.5": [1.5, 2.5, 3.5], "b": ["1,5", "2,5", "1,5"], "kind": ["x", "y", "x"]}


@pytest.mark.parametrize(
    ("cell", "hint"),
    [
        ("1.5D+03", "if these are numbers, save them as numbers"),
        ("-1.5d-03", "if these are numbers, save them as numbers"),
        ("\u0661\u0662", "if these are numbers, save them as numbers"),
        ("\uff11\uff12", "if these are numbers, save them as numbers"),
        ("1\u202f000", 'write thousands: "\\u202f"'),
        ("1\xa0000", 'write thousands: "\\u00a0"'),
        ("1’000", 'write thousands: "’"'),
    ],
)
def test_numbers_of_fortran_other_scripts_and_other_blanks_are_reported(tmp_path, cell, hint):
    text = f"a,kind\n{cell},x\n{cell},y\n7,x\n7,y\n"
    said = load(tmp_path, text, steps=["one_hot"], categorical="auto").warnings
    assert any(f"has categories such as {cell!r}" in line and hint in line for line in said)


@pytest.mark.parametrize("cell", ["2nd", "3D", "1st", "3d2", "10/7", "model 3"])
def test_words_with_digits_are_no_numbers(tmp_path, cell):
    text = f"a,kind\n{cell},x\n{cell},y\nb,x\nb,y\n"
    said = load(tmp_path, text, steps=["one_hot"], categorical="auto").warnings
    assert not any("categories such as" in line for line in said)


def test_warnings_about_a_parquet_file_advise_no_key_of_csv_files(tmp_path: Path):
    content = pa.table(NOT_CSV)
    assert load(tmp_path, content, drop=["b"]).warnings == ()
    assert load(tmp_path, content, steps=["one_hot"]).warnings == ()
    data = load(tmp_path, content, steps=["one_hot"], categorical="auto")
    advice = "if these are numbers, save them as numbers"
    assert data.warnings == (f"column 'b' has categories such as '1,5'; {advice}",)


def test_labels_of_an_npz_file_are_no_numbers_with_other_marks(tmp_path: Path):
    path = tmp_path / "my.npz"
    np.savez(path, X=[[1.5], [2.5], [3.5]], y=["1,5", "2,5", "1,5"])
    assert load(tmp_path, path.read_bytes(), "my.npz", target=None).warnings == ()


@pytest.mark.parametrize(
    ("cell", "hints"),
    [
        ("1,234", ['write thousands: ","', 'write decimal: ","']),
        ("1,234.5", ['write thousands: ","']),
        ("1,5", ['write decimal: ","']),
        ("1_000", ["write thousands: _"]),
        ("1 000", ['write thousands: " "']),
        ("1'000", ['write thousands: "\'"']),
        ("\u0661\u0662", ["write drop: [a]"]),
    ],
)
def test_a_number_with_marks_gets_the_hint_that_goes_on(tmp_path: Path, cell: str, hints: list):
    line = refusal(tmp_path, f'a,kind\n"{cell}",x\n7,y\n')
    said = re.findall(r"write \w+: [^(]*(?= \()", line)
    assert said == hints
    assert "infinite" not in line


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('a,kind\n"1,234",x\n7,y\n', [[1234], [7]]),
        ('a;kind\n"1,5";x\n7;y\n', [[1.5], [7]]),
        ("a,kind\n1_000,x\n7,y\n", [[1000], [7]]),
        ("a,kind\n1 000,x\n7,y\n", [[1000], [7]]),
        ("a,kind\n1'000,x\n7,y\n", [[1000], [7]]),
        ("a|kind\n1|x\n7|y\n", [[1], [7]]),
        ("a,d,kind\n1,2024-01-01,x\n7,2024-01-02,y\n", [[1], [7]]),
        ("a,d,kind\n1,2024-01,x\n7,2024-02,y\n", [[1], [7]]),
        ('a,"the day",kind\n1,1/1/24,x\n7,1/2/24,y\n', [[1], [7]]),
        (",a,kind\n4,1,x\n4,7,y\n", [[1], [7]]),
        ("a,,kind\n1,4,x\n7,5,y\n", [[1], [7]]),
        ("a,kind\nunknown,x\n7,y\n1,y\n", None),
        ("a,kind\nnull,x\n7,y\n1,y\n", None),
        ("a,kind\n1,x\n7,y\n8,\n", [[1], [7]]),
    ],
)
def test_the_option_in_a_message_goes_on(tmp_path: Path, text: str, values):
    steps = [] if values else [{"impute": "mean"}]
    line = refusal(tmp_path, text, steps=steps)
    option = shlex.split(line.partition("--set ")[2].split(")")[0])[0]
    config = tmp_path / "c.yaml"
    data = "datasets: [{path: my.csv, target: kind}]"
    config.write_text(
        f"name: c\n{data}\nprotocol: {{test: {{kfold: 2}}}}\nmachines: {{svm: {{}}}}\n"
    )
    entry = load_config(config, [option]).datasets[0]
    data = load_dataset(entry.ref(parse_steps(steps)), store=tmp_path)
    assert values is None or data.X.tolist() == values


ENTRY = """name: c
datasets: [{{path: my.csv, target: kind{}}}]
protocol: {{test: {{kfold: 2}}}}
machines: {{svm: }}
"""


@pytest.mark.parametrize("mark", sorted({*string.punctuation} - {*"'\"_,;"}))
def test_both_forms_of_an_advice_go_on(tmp_path: Path, mark: str):
    line = refusal(tmp_path, f"a{mark}kind\n1{mark}x\n2{mark}y\n")
    advice, option = re.search(
        r"; if .* separates fields, write (.*) \(--set (.*)\)$", line
    ).groups()
    path = tmp_path / "c.yaml"
    for text, options in ((f", {advice}", []), ("", shlex.split(option))):
        path.write_text(ENTRY.format(text))
        (entry,) = load_config(path, options).datasets
        assert load_dataset(entry.ref(()), store=tmp_path).X.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "value",
    [
        *string.punctuation,
        *" \u00a0\u2009\u0085é",
        *("no", "1e3", "latin-1", "a: b", "#a", "é b"),
        *(False, 3, ["", "x, y", "no", 3, "3", "\u00a0"]),
    ],
)
def test_a_value_in_an_advice_is_read_as_this_value(value):
    block, option = re.fullmatch(r"write (k: .*) \(--set (.*)\)", setting("k", value)).groups()
    (assigned,) = shlex.split(option)
    assert parse_yaml(block, "") == parse_yaml(f"{{{block}}}", "") == {"k": value}
    assert parse_yaml(assigned.removeprefix("datasets[0].k="), "") == value


def test_names_among_the_data_are_no_missing_values(tmp_path: Path):
    line = refusal(tmp_path, "a,kind\n1,x\n2,y\na,kind\n3,x\n")
    assert line.endswith("data row 3 repeats the column names; remove the row")
    again = "a,kind\n1,x\n2,y\na,kind\n3,x\n"
    assert refusal(tmp_path, again, categorical="auto") == line
    line = refusal(tmp_path, "a,kind\n1,x\n2,y\n", header=False, target=2)
    assert line.endswith("write header: true (--set 'datasets[0].header=true')")
    line = refusal(tmp_path, "a,kind\n1,x\n2,y\n", separator=";")
    assert 'write separator: "," ' in line


AUTO = {"categorical": "auto"}


@pytest.mark.parametrize("keys", [{}, AUTO], ids=["numbers", "auto"])
def test_a_minus_of_unicode_is_a_minus(tmp_path: Path, keys: dict):
    text = "a,kind\n\u22121.5,x\n2,y\n"
    assert load(tmp_path, text, **keys).X.tolist() == [[-1.5], [2]]


@pytest.mark.parametrize("keys", [{}, AUTO], ids=["numbers", "auto"])
@pytest.mark.parametrize(
    ("cells", "unit", "values"),
    [
        (("5%", "-7.5 %"), '["%"]', (5, -7.5)),
        (("$1.5", "-$2"), '["$"]', (1.5, -2)),
        (("€ 1.5", "€ \u22122"), '["€"]', (1.5, -2)),
        (("'5'", "6.5"), '["\'"]', (5, 6.5)),
        (("<0.5", "6"), '["<"]', (0.5, 6)),
        (("5 kg", "1e2 kg"), "[kg]", (5, 100)),
    ],
)
def test_units_of_numbers_are_left_out_if_stated(tmp_path: Path, keys, cells, unit, values):
    text = "a,kind\n{},x\n{},y\n".format(*cells)
    said = f"write units: {unit} (--set "
    if keys:
        (remark, *_) = load(tmp_path, text, steps=["one_hot"], **keys).warnings
        assert said in remark
    else:
        assert said in refusal(tmp_path, text)
    found = load(tmp_path, text, units=yaml.safe_load(unit), **keys)
    assert found.X.ravel().tolist() == list(values)
    assert found.n_categorical == 0


def test_a_unit_and_a_thousands_separator_are_named_one_after_the_other(tmp_path: Path):
    text = "a;kind\n$1,234.5;x\n$2;y\n"
    assert "write units" in refusal(tmp_path, text)
    assert 'write thousands: "," ' in refusal(tmp_path, text, units=["$"])
    for keys in ({}, AUTO):
        found = load(tmp_path, text, units=["$"], thousands=",", **keys)
        assert found.X.tolist() == [[1234.5], [2]]


def test_words_in_rows_that_are_left_out_make_no_categories(tmp_path: Path):
    text = "a,b,kind\ncm,kg,\n1,2.5,x\n3,4,y\nTotal,,\n"
    data = load(tmp_path, text, unlabelled="drop", **AUTO)
    assert data.X.tolist() == [[1, 2.5], [3, 4]]
    assert data.n_categorical == 0


@pytest.mark.parametrize(
    ("cell", "value"), [("5e3 e", 5000), ("7e", 7), ("e -5e3", -5000), ("-e 5e3", -5000)]
)
def test_a_unit_is_only_left_out_before_and_after_a_number(tmp_path: Path, cell, value):
    data = load(tmp_path, f"a,kind\n{cell},x\n1,y\n", units=["e"])
    assert data.X.tolist() == [[value], [1]]


def test_a_unit_that_is_part_of_the_word_for_infinity_is_no_fault_of_the_reader(tmp_path: Path):
    line = refusal(tmp_path, "a,kind\n5 in,x\ninf,y\n", units=["in"])
    assert "data row 2, column 'a': infinite value inf; to leave it out, write drop" in line


def test_a_target_without_any_label_is_refused_though_unlabelled_rows_may_go(tmp_path: Path):
    line = refusal(tmp_path, "a,kind\n1,\n2,\n", unlabelled="drop")
    assert "fewer than two classes are left, since 2 rows without 'kind' are left out" in line


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("a,kind\nr1,1,x\nr2,2,y\n", {"index": 1}),
        ('"a" "kind"\n"r1" 1 "x"\n"r2" 2 "y"\n', {"index": 1}),
        ("a,kind\n1,x,\n2,y,\n", {"drop": [3]}),
        ("a,kind,kind\n1,x,x\n2,y,y\n", {"drop": [3]}),
        ("# from a program\na,kind\n1,x\n2,y\n", {"skip_lines": 1}),
        ("My table 2021\n\na,kind\n1,x\n2,y\n", {"skip_lines": 1}),
    ],
)
def test_a_first_line_unlike_the_rows_is_refused_with_the_option_that_goes_on(
    tmp_path: Path, text: str, option: dict
):
    ((key, value),) = option.items()
    assert f"write {key}: {value} (--set" in refusal(tmp_path, text)
    data = load(tmp_path, text, **option)
    assert (data.X.tolist(), data.y.tolist()) == ([[1], [2]], ["x", "y"])


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f"])
def test_a_blank_between_thousands_is_written_as_it_can_be_typed(tmp_path: Path, blank: str):
    text = f"a;kind\n1{blank}234;x\n2{blank}000;y\n"
    line = refusal(tmp_path, text)
    assert line.isprintable()
    stated = re.search(r"write thousands: (\S*|\" \") \(--set", line)[1]
    assert load(tmp_path, text, thousands=yaml.safe_load(stated)).X.tolist() == [[1234], [2000]]


@pytest.mark.parametrize("other", ["Café", "cafe\u0301", "caf\u00e9\u200b"])
def test_classes_that_look_alike_are_reported(tmp_path: Path, other: str):
    (remark,) = load(tmp_path, f"a,kind\n1,caf\u00e9\n2,{other}\n3,no\n").warnings
    assert "differ only in capital letters, encoding or invisible characters" in remark


@pytest.mark.parametrize(
    "rows", ["a,note,kind\n1,{},x", "a,note,kind\n1,y,x\n2,{},x", "a,{},kind\n1,2,x"]
)
def test_a_field_may_have_any_length(tmp_path: Path, rows: str):
    text = rows.format('"' + "z" * 200_000 + '"') + "\n3,4,y\n"
    assert load(tmp_path, text, drop=2).y[0] == "x"


@pytest.mark.parametrize("cell", ["2021-01-05", "3/4", "1e5e5"])
def test_a_single_cell_that_is_no_number_is_refused_with_an_option(tmp_path: Path, cell: str):
    assert "write drop: [a] (--set " in refusal(tmp_path, f"a,b,kind\n{cell},1,x\n2,1,y\n")


def test_the_hint_is_right(tmp_path: Path):
    text = 'a,kind\n"1,234",x\n7,y\n'
    assert load(tmp_path, text, decimal=",", separator=",").X.tolist() == [[1.234], [7]]
    with pytest.raises(ValidationError, match="cannot both be"):
        UserTable.model_validate({"path": "a", "target": "b", "decimal": ",", "thousands": ","})


def test_a_fraction_is_no_number_of_a_column():
    with pytest.raises(ValidationError, match=r"a whole number or a name in quotes, got 3.0"):
        UserTable.model_validate({"path": "a.csv", "target": 3.0})


def test_a_separator_that_is_not_seen_gets_the_hint_that_goes_on(tmp_path: Path):
    text = "a|b|kind\n1|2|x\n3|4|y\n"
    line = refusal(tmp_path, text)
    assert line.endswith("""write separator: "|" (--set 'datasets[0].separator="|"')""")
    assert load(tmp_path, text, separator="|").X.tolist() == [[1, 2], [3, 4]]
    excel = load(tmp_path, "sep=;\na;kind\n1;x\n2;y\n")
    assert excel.X.tolist() == [[1], [2]]
    quoted = 'a,kind\n"1,5",x\n"2,5",y\n'
    assert load(tmp_path, quoted, decimal=",").X.tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_comma_in_the_header_is_no_separator_if_the_rows_say_so(tmp_path: Path, mark: str):
    text = "height (m, cm);kind\n1;x\n2;y\n".replace(";", mark)
    data = load(tmp_path, text)
    assert (data.X.tolist(), data.y.tolist()) == ([[1], [2]], ["x", "y"])


def test_two_possible_separators_are_refused_with_the_option_that_goes_on(tmp_path: Path):
    text = "text, long;kind\nx, 1;a\nz, 2;b\n"
    line = refusal(tmp_path, text)
    assert line.endswith("""write separator: ";" (--set 'datasets[0].separator=";"')""")
    data = load(tmp_path, text, steps=["one_hot"], separator=";", categorical="auto")
    assert data.y.tolist() == ["a", "b"]


@pytest.mark.parametrize("mark", [{}, {"separator": " "}])
def test_a_blank_separates_the_columns_of_an_aligned_table(tmp_path: Path, mark: dict):
    data = load(tmp_path, "a    kind\n1       x\n20      y\n", **mark)
    assert (data.X.tolist(), data.y.tolist()) == ([[1], [20]], ["x", "y"])


def test_a_column_without_a_name_can_be_left_out(tmp_path: Path):
    text = ",a,kind,\n7,1,x,\n8,2,y,\n"
    assert "write index: 1 (--set 'datasets[0].index=1')" in refusal(tmp_path, text)
    assert refusal(tmp_path, "a;kind,,\n1;x,,\n2;y,,\n").endswith("; or set separator")
    assert "write drop: [4] (--set 'datasets[0].drop=[4]')" in refusal(tmp_path, text, index=1)
    assert load(tmp_path, text, index=1, drop=[-1]).X.tolist() == [[1], [2]]


def test_numbers_that_are_rounded_are_reported(tmp_path: Path):
    data = load(tmp_path, f"a,b,kind\n{2**60},1,x\n{2**60 + 1},2,y\n")
    assert "column 'a' contains integers beyond 2^53, which are rounded" in data.warnings[0]


# Encodings


@pytest.mark.parametrize(
    ("encoding", "stated"),
    [
        ("utf-8-sig", {}),
        ("utf-8-sig", {"encoding": "latin-1"}),
        ("utf-8-sig", {"encoding": "utf-8"}),
        ("utf-16", {}),
        ("utf-16", {"encoding": "utf-16-le"}),
        ("utf-32", {}),
        ("utf-16-le", {"encoding": "utf-16-le"}),
        ("utf-16-be", {"encoding": "UTF-16BE"}),
        ("latin-1", {"encoding": "latin-1"}),
    ],
)
@pytest.mark.parametrize("pack", [bytes, bz2.compress], ids=["plain", "packed"])
def test_a_byte_order_mark_is_no_text(tmp_path: Path, encoding: str, stated: dict, pack):
    text = "größe,kind\n1,é\n2,y\n".encode(encoding)
    data = load(tmp_path, pack(text), "my.csv.bz2" if pack is bz2.compress else "my.csv",
                features=["größe"], **stated)  # fmt: skip
    assert data.X.tolist() == [[1], [2]]
    assert data.y.tolist() == ["é", "y"]


def test_utf_16_without_a_mark_gets_the_hint_that_goes_on(tmp_path: Path):
    line = refusal(tmp_path, "a,kind\n1,x\n2,y\n".encode("utf-16-le"))
    assert "for UTF-16 text, write encoding: utf-16-le" in line


def test_a_mark_before_svmlight_and_arff_is_no_text(tmp_path: Path):
    text = "\ufeff1 1:2\n-1 1:3\n"
    assert load(tmp_path, text, "my.svm", target=None).y.tolist() == [1, -1]
    data = load(tmp_path, "\ufeff" + ARFF, "my.arff", [{"impute": "mean"}, "one_hot"])
    assert data.X.shape == (4, 3)


def test_an_underscore_is_no_part_of_a_number_of_svmlight(tmp_path: Path):
    line = refusal(tmp_path, "1_0 1:2 # my_row\n10 1:3\n", "my.svm", target=None)
    assert "not in svmlight's format: data row 1: the label '1_0' is not a number" in line
    assert load(tmp_path, "1 1:2 # my_row\n2 1:3\n", "my.svm", target=None).y.tolist() == [1, 2]


def test_numbers_of_queries_are_named_and_can_be_groups(tmp_path: Path):
    text = "1 qid:7 1:2\n2 qid:7 1:3\n1 qid:9 1:4\n"
    data = load(tmp_path, text, "my.svm", target=None)
    assert data.X.tolist() == [[2], [3], [4]]
    assert data.warnings == ("columns left out, as row numbers or by the source: 'qid'",)
    assert load(tmp_path, text, "my.svm", target=None, groups="qid").groups.tolist() == [0, 0, 1]
    line = refusal(tmp_path, text + "2 1:5\n", "my.svm", target=None)
    assert "data row 4 has no qid, unlike data row 1" in line


def test_a_header_may_be_quoted_over_lines(tmp_path: Path):
    data = load(tmp_path, '"size\nin m, about";kind\n1;x\n2;y\n', drop=[])
    assert data.X.tolist() == [[1], [2]]
    data = load(tmp_path, '"the size" kind\n1 x\n2 y\n', features="the size")
    assert data.X.tolist() == [[1], [2]]
    assert load(tmp_path, '"a;b;c",kind\n1,x\n2,y\n').X.tolist() == [[1], [2]]


# Labels and categories


def test_blanks_behind_a_word_are_no_part_of_it(tmp_path: Path):
    text = 'c,a,kind\nred ,1 ,x\nred,NA ,y\n"NA ",3,x \n'
    steps = [{"impute": "mean"}, "one_hot"]
    data = load(tmp_path, text, steps=steps, categorical="c")
    assert np.array_equal(data.X, [[1, 0], [np.nan, 0], [3, np.nan]], equal_nan=True)
    arff = "@relation r\n@attribute c {red,blue}\n@attribute kind {x,y}\n@data\nblue , x\nred,y \n"
    assert load(tmp_path, arff, "my.arff", ["one_hot"]).X.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    "labels", [["01", "1"], ["1_0", "10"], ["1e3", "1000"], ["\u0661", "1"], ["0x1", "1"]]
)
def test_two_spellings_are_two_classes(tmp_path: Path, labels: list[str]):
    text = "a,kind\n" + "".join(f"{k},{label}\n" for k, label in enumerate(labels * 2))
    data = load(tmp_path, text)
    assert data.y.tolist() == labels * 2
    kept = keep_classes(data, labels)
    assert kept.classes.tolist() == sorted(labels)


def test_classes_that_are_equal_as_numbers_are_reported(tmp_path: Path):
    text = "a,kind\n" + "".join(f"{k % 3},{v}\n" for k, v in enumerate(["0.5", "0.50", "1", "1.0"]))
    found = [line for line in load(tmp_path, text).warnings if "equal as numbers" in line]
    assert found == [
        "classes '0.5' and '0.50' are equal as numbers, but differ as text",
        "classes '1' and '1.0' are equal as numbers, but differ as text",
    ]
    assert load(tmp_path, "a,kind\n1,0.5\n2,1.5\n").warnings == ()
    assert load(tmp_path, "a,kind\n1,1\n2,1.0\n3,2\n").y.tolist() == [1, 1, 2]


def test_classes_are_chosen_by_their_text(tmp_path: Path):
    data = keep_classes(load(tmp_path, "a,kind\n1,010\n2,8\n3,9\n4,8\n"), ("010", "8"))
    assert data.y.tolist() == ["010", "8", "8"]
    numbers = keep_classes(load(tmp_path, "a,kind\n1,10\n2,8\n3,9.0\n4,+8\n"), ("10", "8"))
    assert numbers.y.tolist() == [10, 8, 8]


def test_spellings_of_categories_and_groups_stay_apart(tmp_path: Path):
    text = "c,kind\n01,x\n1,y\n10,x\n2,y\n"
    data = load(tmp_path, text, steps=["one_hot"], categorical="c")
    assert data.X[:, 0].tolist() == [0, 1, 3, 2]
    again = load(tmp_path, "a," + text.replace("\n", "\n5,").removesuffix("5,"), groups="c")
    assert len(set(again.groups.tolist())) == 4


def test_the_words_for_a_missing_value_can_be_stated(tmp_path: Path):
    text = "a,c,kind\n1,NA,NA\n,b,EU\n3,NA,EU\n4,b,NA\n"
    assert "column 'kind': value missing" in refusal(tmp_path, text, categorical="c")
    steps = [{"impute": "mean"}, "one_hot"]
    data = load(tmp_path, text, steps=steps, categorical="c", missing="")
    assert data.y.tolist() == ["NA", "EU", "EU", "NA"]
    assert data.X[:, 1].tolist() == [0, 1, 0, 1]
    assert np.isnan(data.X[:, 0]).tolist() == [False, True, False, False]
    coded = load(tmp_path, "a,kind\n-999,x\n2,y\n", steps=[{"impute": "mean"}], missing=["-999"])
    assert np.isnan(coded.X[:, 0]).tolist() == [True, False]
    line = refusal(tmp_path, "a,kind\nnone,x\n2,y\n3,x\n")
    words = '["", "?", NA, "N/A", NaN, nan, none]'
    assert line.endswith(f"write missing: {words} (--set 'datasets[0].missing={words}')")


@pytest.mark.parametrize("name", ["my.csv", "my.arff"])
def test_the_advice_on_a_missing_value_keeps_the_other_words(tmp_path: Path, name: str):
    head = "a,c,kind\n"
    if name == "my.arff":
        head = "@relation r\n@attribute a real\n@attribute c real\n@attribute kind {x,y}\n@data\n"
    text, keys = head + "NULL,1,x\n2,none,y\n3,?,x\n", {}
    for _ in range(2):
        line = refusal(tmp_path, text, name, steps=[{"impute": "mean"}], **keys)
        keys = yaml.safe_load(re.search(r"write (missing: \[.*?\]) \(", line)[1])
    data = load(tmp_path, text, name, [{"impute": "mean"}], **keys)
    assert np.isnan(data.X).tolist() == [[True, False], [False, True], [False, True]]


CODED = pd.DataFrame(
    {"a": [1.5, -999, 3], "b": [7, 8, -999], "c": np.float32([-99.9, 1, 2]), "kind": list("xyx")}
)


@pytest.mark.parametrize("form", ["csv", "parquet", "arff", "arff with quotes", "npz"])
def test_a_number_for_a_missing_value_is_one_in_every_format(tmp_path: Path, form: str):
    content = CODED.to_csv(index=False)
    if form == "parquet":
        content = pa.Table.from_pandas(CODED)
    if form.startswith("arff"):
        names = "".join(f"@attribute {name} numeric\n" for name in "abc")
        rows = content.partition("\n")[2].replace("x", "'x'" if "quotes" in form else "x")
        content = f"@relation r\n{names}@attribute kind {{x,y}}\n@data\n{rows}"
    if form == "npz":
        # the rounded numbers are in an array of float64
        np.savez(tmp_path / "my.npz", X=CODED[["a", "b", "c"]], y=CODED["kind"].to_numpy(str))
        content = (tmp_path / "my.npz").read_bytes()
    name = f"my.{form.split()[0]}"
    keys = {"missing": [-999, "-99.9"], **({"target": None} if form == "npz" else {})}
    data = load(tmp_path, content, name, [{"impute": "mean"}], **keys)
    gaps = [[False, False, form != "npz"], [True, False, False], [False, True, False]]
    assert np.isnan(data.X).tolist() == gaps


@pytest.mark.filterwarnings("error")
def test_a_number_that_is_equal_in_single_precision_is_not_missing(tmp_path: Path):
    text = "a,kind\n1000000000,x\n999999999,y\n5,x\n"
    data = load(tmp_path, text, "my.csv", [{"impute": "mean"}], missing=["999999999", "-1.7e308"])
    assert np.isnan(data.X).tolist() == [[False], [True], [False]]


def test_a_label_with_a_huge_exponent_is_a_text(tmp_path: Path):
    labels = ["12e34567890123456789012", "1e5", "100000"]
    data = load(tmp_path, "a,kind\n1,{}\n2,{}\n3,{}\n4,z\n".format(*labels))
    assert len(data.classes) == 4 and "are equal as numbers" in " ".join(data.warnings)


def test_an_attribute_without_a_name_gets_no_advice_that_cannot_help(tmp_path: Path):
    content = "@relation r\n@attribute '' numeric\n@attribute kind {x,y}\n@data\n1,x\n2,y\n"
    assert refusal(tmp_path, content, "my.arff").endswith("column 1 has no name")


def test_of_two_separators_in_the_header_that_of_the_rows_is_taken(tmp_path: Path):
    assert load(tmp_path, "x;y,kind\nr1,1,a\nr2,2,b\n", index=1).X.tolist() == [[1], [2]]
    assert "data row 3 has 1 fields, not 2" in refusal(tmp_path, "x;y,kind\n1,a\n2,b\n3\n")
    ours = load(tmp_path, "x;kind,y\n1,5;a\n2;b\n", decimal=",", target="kind,y")
    assert ours.X.tolist() == [[1.5], [2]]


def test_a_truth_value_is_no_number_for_a_missing_value(tmp_path: Path):
    content = pa.table({"a": [True, False], "b": [1, 0], "kind": ["x", "y"]})
    data = load(tmp_path, content, steps=[{"impute": "mean"}], missing=["1"])
    assert np.array_equal(data.X, [[1, np.nan], [0, 0]], equal_nan=True)


# Parquet


def table(**columns) -> pa.Table:
    return pa.table({**columns, "kind": ["x", "y"]})


@pytest.mark.parametrize(
    ("column", "word"),
    [
        ([[1], [2, 3]], "lists"),
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)), "lists"),
        ([{"b": 1}, {"b": 2}], "structs"),
        (pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())), "maps"),
        ([datetime.date(2024, 1, 1)] * 2, "dates"),
        ([datetime.datetime(2024, 1, 1)] * 2, "times"),
        (pa.array([1, 2], pa.duration("s")), "times"),
        ([b"\xff", b"a"], "bytes that are not utf-8 text"),
    ],
)
def test_a_parquet_column_that_is_no_feature_is_named(tmp_path: Path, column, word: str):
    content = table(n=[1, 2], odd=column)
    line = refusal(tmp_path, content)
    assert f"column 'odd' contains {word}, neither numbers nor categories" in line
    assert line.endswith("write drop: [odd] (--set 'datasets[0].drop=[odd]')")
    assert load(tmp_path, content, drop=["odd"]).X.tolist() == [[1], [2]]


@pytest.mark.parametrize("groups", ["odd", 2])
def test_groups_that_are_lists_are_named(tmp_path: Path, groups: str | int):
    content = table(n=[1, 2], odd=[[1], [2, 3]])
    assert "groups 'odd' contains lists, not labels" in refusal(tmp_path, content, groups=groups)


def test_numbers_of_all_kinds_in_parquet_are_numbers(tmp_path: Path):
    amounts = pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")], pa.decimal128(9, 2))
    content = table(d=amounts, b=[True, False], h=pa.array([1, None], pa.int16()))
    data = load(tmp_path, content, steps=[{"impute": "mean"}])
    assert np.array_equal(data.X, [[1.25, 1, 1], [-2.5, 0, np.nan]], equal_nan=True)


def test_words_of_all_kinds_in_parquet_are_categories(tmp_path: Path):
    codes = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([10, 2]))
    content = pa.table(
        {"b": [b"v", b"u"], "i": codes, "s": ["NA", None], "kind": [b"\xc3\xa9", b"y"]}
    )
    data = load(tmp_path, content, steps=[{"impute": "most_frequent"}, "one_hot"])
    assert np.array_equal(data.X, [[1, 0, 0], [0, 1, np.nan]], equal_nan=True)
    assert data.y.tolist() == ["é", "y"]


def test_long_numbers_as_classes_of_parquet_stay_apart(tmp_path: Path):
    long = [decimal.Decimal(2**60), decimal.Decimal(2**60 + 1)]
    content = pa.table({"a": [1, 2], "kind": pa.array(long, pa.decimal128(20, 0))})
    assert len(load(tmp_path, content).classes) == 2


def test_an_index_of_pandas_is_no_feature_unless_it_is_asked_for(tmp_path: Path):
    frame = pd.DataFrame({"a": [1, 2], "kind": ["x", "y"]}, index=pd.Index([5, 6], name="age"))
    content = pa.Table.from_pandas(frame)
    data = load(tmp_path, content)
    assert data.X.tolist() == [[1], [2]]
    assert data.warnings == ("columns left out, as row numbers or by the source: 'age'",)
    assert load(tmp_path, content, features=["a", "age"]).X.tolist() == [[1, 5], [2, 6]]


def test_a_column_without_any_value_is_one_of_numbers(tmp_path: Path):
    data = load(tmp_path, table(n=pa.nulls(2), a=[1, 2]), steps=[{"impute": "mean"}])
    assert data.n_categorical == 0


def test_bytes_as_classes_of_numpy_are_words(tmp_path: Path):
    np.savez(tmp_path / "a.npz", X=np.eye(2), y=np.array([b"u", b"v"]))
    data = load_dataset(DatasetRef("a", str(tmp_path / "a.npz")), store=tmp_path)
    assert data.y.tolist() == ["u", "v"]


def test_arrays_of_the_other_byte_order_are_read(tmp_path: Path):
    np.savez(tmp_path / "a.npz", X=np.eye(2, dtype=">f4"), y=np.array([1, 2], ">i2"))
    data = load_dataset(DatasetRef("a", str(tmp_path / "a.npz")), store=tmp_path)
    assert np.array_equal(data.X, np.eye(2))
    assert data.y.tolist() == [1, 2]


def test_a_first_row_taken_for_a_header_is_reported(tmp_path: Path):
    data = load(tmp_path, "1,2,x\n3,4,y\n5,6,x\n", target=3)
    assert data.warnings == (
        "the first line, taken as column names, contains 'x'; if it is a data row, "
        "write header: false (--set 'datasets[0].header=false')",
    )
    assert load(tmp_path, "1,2,x\n3,4,y\n5,6,x\n", target=3, header=False).warnings == ()


# Columns that hardly are features


def many(values, n: int = 600) -> str:
    return "a,c,kind\n" + "".join(f"{k % 7},{values(k)},{'xy'[k % 2]}\n" for k in range(n))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (lambda k: f"w{k % 300}", "300 categories such as 'w0'"),
        (lambda k: f"2024-01-{1 + k % 28:02d}", "dates or times such as '2024-01-01'"),
        (
            lambda k: f"2024-01-{k % 28:02d}" if k % 9 else "unknown",
            "dates or times such as '2024-01-01'",
        ),
        (lambda k: f"{1 + k % 28}.12.2023 10:00", "dates or times such as '1.12.2023 10:00'"),
        (lambda k: f"{1 + k % 12}/28/99", "dates or times such as '1/28/99'"),
        (lambda k: f"{1 + k % 28}-Jan-2021", "dates or times such as '1-Jan-2021'"),
        (
            lambda k: f"{1 + k % 28}. Oct 21 12:00",
            "dates or times such as '1. Oct 21 12:00'",
        ),
        (lambda k: f"sept {1 + k % 28} 2021", "dates or times such as 'sept 1 2021'"),
        (lambda k: f"{k % 24}:30", "dates or times such as '0:30'"),
        (lambda k: f"12:{k % 60:02d}:05.25", "dates or times such as '12:00:05.25'"),
        (lambda k: f"{1 + k % 12}:00 p.m.", "dates or times such as '1:00 p.m.'"),
        (lambda k: f"2021-{1 + k % 12:02d}", "dates or times such as '2021-01'"),
        (lambda k: f"{1 + k % 12}/2021", "dates or times such as '1/2021'"),
        (lambda k: f"January {1995 + k % 30}", "dates or times such as 'January 1995'"),
        (lambda k: f"{2001 + k % 20} Sept", "dates or times such as '2001 Sept'"),
        (lambda k: f"May-{20 + k % 5}", "dates or times such as 'May-20'"),
    ],
)
def test_ids_dates_and_many_categories_are_named(tmp_path: Path, values, kind: str):
    line = refusal(tmp_path, many(values), steps=["one_hot"], categorical="auto")
    assert f"column 'c' contains {kind}" in line
    assert "write drop: [c] (--set 'datasets[0].drop=[c]')" in line
    assert "to keep it, write categorical: [c]" in line
    keys = {"steps": ["one_hot"], "categorical": ["c"]}
    assert load(tmp_path, many(values), **keys).n_categorical == 1
    frame = pd.read_csv(tmp_path / "my.csv")
    assert f"column 'c' contains {kind}" in refusal(tmp_path, pa.Table.from_pandas(frame))


@pytest.mark.parametrize(
    "words",
    [
        ("16:9", "4:3"),
        ("3-door", "5-door"),
        ("1 may", "mar 10"),
        ("2021-13", "2021-14"),
        ("1001-1", "1001-2"),
        ("model 2021", "model 2022"),
    ],
)
def test_categories_with_digits_are_no_dates_and_no_times(tmp_path: Path, words: tuple):
    text = many(lambda k: words[k % 2])
    assert load(tmp_path, text, steps=["one_hot"], categorical="auto").n_categorical == 1


def test_few_categories_in_few_rows_are_no_ids(tmp_path: Path):
    text = "a,c,kind\n1,red,x\n2,blue,y\n4,green,x\n4,red,y\n"
    assert load(tmp_path, text, steps=["one_hot"], categorical="auto").warnings == ()


def test_row_numbers_are_reported_although_a_row_has_no_label(tmp_path: Path):
    text = "a,c,kind\n" + "".join(
        f"{k * k % 17},{k},{'' if k == 7 else 'xy'[k % 2]}\n" for k in range(60)
    )
    warnings = load(tmp_path, text, unlabelled="drop").warnings
    assert any("column 'c' contains row numbers" in warning for warning in warnings)


def test_empty_columns_and_constant_columns_with_gaps_are_reported(tmp_path: Path):
    text = "a,e,c,kind\n1,,5,x\n2,,,y\n3,,5,x\n4,,5,y\n"
    (warning,) = load(tmp_path, text, steps=[{"impute": "median"}]).warnings
    assert warning == "constant columns: 'e', 'c'"


def test_dates_that_are_written_as_numbers_are_reported(tmp_path: Path):
    data = load(tmp_path, many(lambda k: 20240101 + 100 * (k % 12)))
    assert "column 'c' seems to contain dates such as 20240101; " in data.warnings[0]


def test_a_number_that_names_the_rows_is_reported(tmp_path: Path):
    data = load(tmp_path, many(lambda k: (k * 7919) % 104729).replace("a,c", "a,patient_id"))
    assert "column 'patient_id' seems to contain identifiers of the rows" in data.warnings[0]
    assert data.warnings[0].endswith(
        "write drop: [patient_id] (--set 'datasets[0].drop=[patient_id]')"
    )


# Sizes


def test_a_file_that_unfolds_is_refused_at_once(tmp_path: Path):
    bomb = bz2.compress(b"a,kind\n1,x\n2,y\n" + b"\n" * 50_000_000)
    assert len(bomb) < 10_000
    tracemalloc.start()
    line = refusal(tmp_path, bomb, "my.csv.bz2", max_megabytes=10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40_000_000
    assert (
        "unpacks to more than 10485760 bytes, and at most 10 MB are read; write max_megabytes: 40"
        in line
    )
    assert load(tmp_path, bomb, "my.csv.bz2", max_megabytes=60).X.tolist() == [[1], [2]]


@pytest.mark.parametrize("name", ["my.csv", "my.csv.gz"])
def test_a_limit_may_exceed_every_computer(tmp_path: Path, name: str):
    text = b"a,kind\n1,x\n2,y\n"
    content = gzip.compress(text) if name.endswith(".gz") else text
    assert load(tmp_path, content, name, max_megabytes=10**13).X.tolist() == [[1], [2]]


def test_many_columns_of_numbers_with_marks_are_read_in_reasonable_time(tmp_path: Path):
    """The time grew with the square of the number of columns."""
    seconds = []
    for n in (100, 1600):
        rows = "".join("15 %," * n + f"{kind}\n" for kind in "xy")
        text = ",".join(f"c{j}" for j in range(n)) + f",kind\n{rows}"
        start = time.process_time()
        load(tmp_path, text, units=["%"])
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * seconds[0]


def test_many_columns_are_refused_before_they_are_read(tmp_path: Path):
    names = [f"c{k}" for k in range(10**6)]
    text = ",".join(names) + ",kind\n" + "1," * 10**6 + "x\n"
    line = refusal(tmp_path, text)
    assert "1000001 columns, and at most 100000 are read; write max_columns: 1000001" in line
    text = ",".join(names[:10_000]) + ",kind\n" + "".join("1," * 10_000 + f"{k}\n" for k in "xyx")
    assert load(tmp_path, text).X.shape == (3, 10_000)
    few = "a,b,kind\n1,2,x\n3,4,y\n"
    assert "max_columns: 3" in refusal(tmp_path, few, max_columns=2)
    assert load(tmp_path, few, max_columns=3).X.shape == (2, 2)


def test_constant_columns_of_parquet_count_by_their_values(tmp_path: Path):
    content = pa.table({"a": np.zeros(300_000), "kind": ["x", "y"] * 150_000})
    line = refusal(tmp_path, content, max_megabytes=1)
    assert "300000 rows x 2 columns, and at most 1 MB are read; write max_megabytes: 5" in line


@pytest.mark.parametrize("value", ["x" * 2000, [0] * 250])
def test_long_values_of_parquet_count_by_their_length(tmp_path: Path, value):
    content = pa.table({"a": [value] * 10_000, "kind": ["x", "y"] * 5_000})
    line = refusal(tmp_path, content, max_megabytes=4)
    assert "values of more than 4194304 bytes, and at most 4 MB are read" in line
    assert "write max_megabytes: 16" in line


def test_dictionaries_of_row_groups_are_the_categories_of_one_column(tmp_path: Path):
    words = pa.array(["b", "a"] * 3000 + ["c", "a"] * 3000).dictionary_encode()
    content = pa.table({"a": words, "kind": ["x", "y", "y"] * 4000})
    parquet.write_table(content, tmp_path / "my.parquet", row_group_size=5000)
    data = load(tmp_path, (tmp_path / "my.parquet").read_bytes(), "my.parquet", ["ordinal"])
    assert [data.columns["a"][int(code)] for code in data.X[:, 0]] == words.to_pylist()


def test_arrays_of_numpy_count_before_they_are_read(tmp_path: Path):
    path = tmp_path / "my.npz"
    np.savez_compressed(path, X=np.zeros((200_000, 2)), y=np.arange(200_000) % 2)
    ref = DatasetRef("my", str(path), None, options=(("max_megabytes", 1),))
    with pytest.raises(UserError, match="write max_megabytes: 5"):
        load_dataset(ref, store=tmp_path)


def test_a_raw_pickle_among_arrays_is_one_line(tmp_path: Path):
    path = tmp_path / "my.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X", b"\x80\x04K\x01.")
        archive.writestr("y", b"\x80\x04K\x01.")
    with pytest.raises(UserError, match="'X' is not a NumPy array"):
        load_dataset(DatasetRef("my", str(path)), store=tmp_path)


def test_large_whole_numbers_as_labels_are_not_called_equal(tmp_path):
    rows = "".join(f"{k},{2**53 + k % 2}\n" for k in range(8))
    (tmp_path / "large.csv").write_text("x,label\n" + rows)
    ref = DatasetRef("large", str(tmp_path / "large.csv"), "label")
    data = load_dataset(ref, store=tmp_path / "store")
    assert len(data.classes) == 2 and not any("equal" in text for text in data.warnings)


@pytest.mark.parametrize(
    ("form", "last", "words"),
    [
        ("{},5", "7,5", "has categories such as '0,5'; if ',' is the decimal mark, write decimal"),
        ("{}", "NULL", "has numbers and 'NULL', all read as categories; to read words as missing"),
    ],
)
def test_many_numbers_with_other_marks_are_no_categories(
    tmp_path, form: str, last: str, words: str
):
    rows = "".join(f"{form.format(k)};{'xy'[k % 2]}\n" for k in range(600))
    text = f"a;kind\n{rows}{last};x\n"
    line = refusal(tmp_path, text, steps=["one_hot"], categorical="auto")
    assert f"column 'a' {words}" in line
    assert "to keep it, write categorical: [a]" in line
    frame = pd.read_csv(tmp_path / "my.csv", sep=";", keep_default_na=False)
    line = refusal(tmp_path, pa.Table.from_pandas(frame), steps=["one_hot"])
    assert "if these are numbers, save them as numbers" in line


def test_numbers_and_a_few_words_are_reported_as_categories(tmp_path: Path):
    words = {3: "low", 5: "high", 8: "n.d."}
    lines = (f"{words.get(k, k / 2)},{k},{'xy'[k % 2]}\n" for k in range(30))
    text = "a,c,kind\n" + "".join(lines)
    warnings = load(tmp_path, text, steps=["one_hot"], categorical="auto").warnings
    both = "column 'a' has numbers and 'low', 'high', 'n.d.', all read as categories"
    assert any(both in warning for warning in warnings)


def test_a_word_for_a_missing_value_is_no_label_of_an_npz_file(tmp_path: Path):
    np.savez(tmp_path / "my.npz", X=[[1.0], [2.0], [3.0]], y=["u", "unknown", "v"])
    content = (tmp_path / "my.npz").read_bytes()
    data = load(tmp_path, content, "my.npz", target=None, missing=["unknown"], unlabelled="drop")
    assert data.y.tolist() == ["u", "v"]
    data = load(tmp_path, content, "my.npz", target=None)
    assert data.y.tolist() == ["u", "unknown", "v"]


def test_the_euro_sign_of_a_windows_file_is_read_with_the_advice(tmp_path: Path):
    content = "a,kind\n1,€\n2,é\n".encode("cp1252")
    line = refusal(tmp_path, content)
    assert "not utf-8 text (byte 9); for another encoding, write encoding: cp1252 (" in line
    assert load(tmp_path, content, encoding="cp1252").classes.tolist() == ["é", "€"]
    line = refusal(tmp_path, b"a,kind\n1,\x81\n2,y\n", encoding="cp1252")
    assert "not cp1252 text (byte 9); for another encoding, write encoding: latin-1" in line
