"""The keys that messages advise, and keys that are refused before data are read."""

from __future__ import annotations

import re
import shlex
import string
import time
from pathlib import Path

import pytest
from helpers.cases import cases

from mmbench.config.files import parse_yaml
from mmbench.config.read import load_config
from mmbench.datasets.load import load_dataset
from mmbench.errors import UserError
from mmbench.reader.advice import check_names, setting

CONFIG = """name: c
datasets: [{{{}}}]
protocol: {{test: {{kfold: 2}}}}
machines: {{svm: }}
"""


def entry(folder: Path, keys: str, *options: str):
    """Return the data set of a configuration with these keys."""
    (folder / "c.yaml").write_text(CONFIG.format(keys))
    return load_config(folder / "c.yaml", options).datasets[0]


@pytest.mark.parametrize("mark", sorted({*string.punctuation} - {*"'\"_,;"}))
def test_both_forms_of_an_advice_go_on(tmp_path: Path, mark: str):
    (tmp_path / "my.csv").write_text(f"a{mark}kind\n1{mark}x\n2{mark}y\n")
    keys = "path: my.csv, target: kind"
    with pytest.raises(UserError) as error:
        load_dataset(entry(tmp_path, keys).ref(()), store=tmp_path)
    form = r"; if .* separates fields, write (.*) \(--set (.*)\)$"
    advice, option = re.search(form, str(error.value)).groups()
    for read in (entry(tmp_path, f"{keys}, {advice}"), entry(tmp_path, keys, *shlex.split(option))):
        assert load_dataset(read.ref(()), store=tmp_path).X.tolist() == [[1], [2]]


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


@pytest.mark.parametrize(("keys", "reason"), cases(__file__, "wrong_keys.yaml"))
def test_wrong_keys_are_refused_before_data_are_read(tmp_path: Path, keys: str, reason: str):
    (tmp_path / "a.csv").write_text("")
    with pytest.raises(UserError, match=rf"c\.yaml: datasets\[0\].*{reason}"):
        entry(tmp_path, keys)


@pytest.mark.parametrize("key", ["features", "drop", "categorical", "index", "groups", "missing"])
def test_an_empty_key_is_as_good_as_none(tmp_path: Path, key: str):
    (tmp_path / "my.csv").write_text("a,kind\n1,x\n2,y\n")
    keys = "path: my.csv, target: kind"
    assert entry(tmp_path, f"{keys}, {key}: ") == entry(tmp_path, keys)


def test_many_names_are_checked_in_reasonable_time():
    """The check for equal names grew with the square of their number: 31 s for these names."""
    start = time.process_time()
    check_names([f"c{j}" for j in range(50_000)])
    assert time.process_time() - start < 3
