"""Strangers' tables give the right values, or one line with the option that goes on.

The tables and what is read from them are cases of ``tables.yaml``. A case has these keys, and takes
those of its group that it does not state:

- file (my.csv), head, text, encode (utf-8; latin-1 for arbitrary bytes), pack (gz, bz2, xz): the
  content of the file is the head and the text;
- cells, n: the cells of the column w of a table with n rows, in place of the text, as a list of
  words or as [form, first number, last number, further words], repeated as needed;
- frame: the columns of a Parquet file; arrays: the arrays of an npz file;
- options, steps: the keys of the data set in a configuration, and its preprocessing steps;
- X, y, columns, groups, time, warnings (none, if not given): what is read, or error: what is said,
  without the options of the command line. An expected text "... text ..." is a part of the message;
- then: the features that are read with the first option in the message, added as often as needed.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from helpers.cases import cases
from pyarrow import parquet

from mmbench.config.read import config_of
from mmbench.datasets.dataset import Dataset
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError

GROUPS = cases(__file__, "tables.yaml")
PACK = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
#: An option of the command line in a message.
OPTION = re.compile(r" \(--set ((?:'[^']*'|\"[^\"]*\"|[^\s'\"()])+)\)")


def frame_of(cells: list, n: int) -> pd.DataFrame:
    if any(isinstance(cell, int) for cell in cells):
        form, first, last, *more = cells
        cells = [*map(form.format, range(first, last + 1)), *more]
    column = [cells[k % len(cells)] for k in range(n)]
    kinds = [("x", "y")[k % 2] for k in range(n)]
    return pd.DataFrame({"a": [k * 37 % n / 8 for k in range(n)], "w": column, "kind": kinds})


def write(case: dict, folder: Path) -> Path:
    path = folder / case.get("file", "my.csv")
    if "cells" in case:
        table = frame_of(case["cells"], case.get("n", 60))
        as_parquet = path.suffix == ".parquet"
        table.to_parquet(path, index=False) if as_parquet else table.to_csv(path, index=False)
    elif "frame" in case:
        parquet.write_table(pa.table(case["frame"]), path)
    elif "arrays" in case:
        np.savez(path, **{name: np.array(rows) for name, rows in case["arrays"].items()})
    else:
        content = (case.get("head", "") + case["text"]).encode(case.get("encode", "utf-8"))
        path.write_bytes(PACK[case.get("pack", "")](content))
    return path


def read(case: dict, path: Path, *options: str) -> Dataset:
    """Return the data of a file, read as the data set of a configuration."""
    entry = {"path": str(path), "name": "table", "target": "kind", **case.get("options", {})}
    content = {"name": "c", "datasets": [entry], "machines": ["svm"], "kernel": "linear"}
    content |= {"protocol": {"test": {"kfold": 2}}, "preprocess": case.get("steps", "none")}
    config = config_of(content, path.with_name("c.yaml"), options)
    return load_dataset(config.datasets[0].ref(config.preprocess), store=path.parent)


def said(message: object, path: Path) -> str:
    return OPTION.sub("", str(message)).removeprefix(f"{path}: ")


def agrees(text: str, expected: str) -> bool:
    part = expected.startswith("... ") and expected.endswith(" ...")
    return expected[4:-4] in text if part else text == expected


CASES = [
    pytest.param(group | case, id=f"{group['promise']} {k}")
    for group in GROUPS
    for k, case in enumerate(group["cases"], 1)
]


@pytest.mark.parametrize("case", CASES)
def test_a_table_is_read_or_refused_as_stated(case: dict, tmp_path: Path):
    path, data = write(case, tmp_path), None
    try:
        data = read(case, path)
        messages, expected = [*data.warnings], case.get("warnings", [])
    except UserError as error:
        messages, expected = [str(error)], [case.get("error")]
    assert (data is None) == ("error" in case), messages
    texts = [said(message, path) for message in messages]
    assert len(texts) == len(expected), texts
    assert all(map(agrees, texts, expected)), texts
    assert not any("\n" in text for text in texts)
    for key in {"X", "y", "columns", "groups", "time"} & {*case}:
        found, wanted = getattr(data, key), case[key]
        if key == "X":
            np.testing.assert_array_equal(found, np.array(wanted, dtype=float))
        elif key == "columns":
            assert found == {name: words and tuple(words) for name, words in wanted.items()}
        else:
            assert found.tolist() == wanted
    if "then" in case:
        found = advised(case, path, messages[0]).X
        np.testing.assert_array_equal(found, np.array(case["then"], dtype=float))


def advised(case: dict, path: Path, message: str, *options: str) -> Dataset:
    """Return the data that are read with the first option in a message, and in the next ones."""
    options += (shlex.split(OPTION.search(message)[1])[0],)
    try:
        return read(case, path, *options)
    except UserError as error:
        assert len(options) < 4, error
        return advised(case, path, str(error), *options)
