"""Values on the command line in place of those in a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mmbench.config.read import load_configs
from mmbench.errors import UserError

GOOD = """\
name: trial
datasets: [wine, {name: iris, grid: {C: [3]}}]
protocol: {test: {kfold: 3}}
machines:
  svm: {grid: {C: [1, 10]}}
  mmrm:
"""


@pytest.fixture
def load(tmp_path: Path):
    path = tmp_path / "trial.yaml"
    path.write_text(GOOD)
    return lambda *overrides: load_configs([path], overrides)[0]


def test_values_are_yaml_and_go_where_the_path_leads(load):
    config = load(
        "machines.svm.grid.C={log2: [0, 2]}",
        "machines.mmrm.params.tol=1e-7",
        "datasets[1].grid.C=[5, 7]",
        "protocol.test.kfold=4",
        "select.folds=2",
        "name=other",
        "machines.svm.label=|",
    )
    assert config.machines["svm"].label == "|"
    assert config.machines["svm"].grid["C"] == (1.0, 2.0, 4.0)
    assert config.machines["mmrm"].params == {"tol": 1e-7}
    assert config.datasets[1].grid["C"] == (5, 7)
    assert config.protocol.test.arg == 4
    assert config.select.folds == 2
    assert config.name == "other"
    assert load() == load("name=trial") != config


@pytest.mark.parametrize(
    "machines",
    [
        "{svm: {grid: &g {C: [1, 10], gamma: auto}}, lssvm: {grid: *g}}",
        "{svm: &s {grid: {C: [1, 10]}, label: a}, lssvm: {<<: *s, label: b}}",
    ],
)
def test_an_anchor_does_not_pass_a_value_to_other_parts_of_the_file(tmp_path: Path, machines: str):
    path = tmp_path / "trial.yaml"
    path.write_text(
        f"name: a\ndatasets: [wine]\nprotocol: {{test: {{kfold: 3}}}}\nmachines: {machines}\n"
    )
    config = load_configs([path], ["machines.svm.grid.C=[7]"])[0]
    assert config.machines["svm"].grid["C"] == (7,)
    assert config.machines["lssvm"].grid["C"] == (1, 10)
    assert load_configs([path])[0].machines["svm"].grid["C"] == (1, 10)


def test_one_value_does_not_change_another_in_later_calls(load):
    whole = "machines={svm: {grid: {C: [1, 10]}}}"
    assert load(whole, "machines.svm.grid.C=[3]").machines["svm"].grid["C"] == (3,)
    assert load(whole).machines["svm"].grid["C"] == (1, 10)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("machines.svm.grid.C", "KEY=VALUE"),
        ("=3", "KEY=VALUE"),
        ("a..b=3", "KEY=VALUE"),
        ("select.folds=[1", "--set select.folds"),
        ("datasets[2].grid.C=[1]", "the file has no datasets[2]"),
        ("name.first=a", "name is 'trial' in the file, not a mapping"),
        ("machines.svm.grid.D=[1]", "no parameter 'D'"),
        ("selct.folds=3", "did you mean 'select'"),
    ],
)
def test_wrong_overrides_are_the_users_to_mend(load, override, words):
    with pytest.raises(UserError, match=re.escape(words)):
        load(override)
