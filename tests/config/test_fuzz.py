"""Whatever stands in a configuration, it is either valid or refused in one line."""

from __future__ import annotations

import copy
from pathlib import Path

import yaml
from helpers.examples import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmbench.config.plan import plan
from mmbench.config.read import load_config, to_yaml
from mmbench.errors import UserError

GOOD = yaml.safe_load("""\
name: trial
datasets: [wine, {name: iris, preprocess: [minmax, {pca: 2}], grid: {C: {log2: [0, 2]}}}]
preprocess: standard
kernel: [rbf, poly]
degree: [2, 3]
gamma_scaling: per_feature
protocol: {test: {kfold: 3}, repeats: 2, seed: 1, max_train: 50}
select: {folds: 3, repeats: 1, scope: pair, prefer: {C: large}}
ties: expected
machines:
  svm: {params: {tol: 0.01}, grid: {C: [1, 10], gamma: [0.1, 1]}}
  rmm: {use: svm, grid: {B: auto}, kernel: rbf}
published_only: [m4]
layout: generic
""")

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["auto", "svm", "rmm", "usps", "official", "C", "log2", "pca", "none", ""])
)
keys = st.text(max_size=5) | st.sampled_from(["C", "grid", "kfold", "log2", "pca"]) | st.integers()
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=3), max_leaves=5
)

VALUES = [
    None,
    True,
    0,
    -1,
    2**70,
    0.5,
    1e400,
    float("nan"),
    "",
    " ",
    "0",
    "auto",
    "svm",
    "official",
]
VALUES += ["é𝄞\x85", "- a: [", [], [[]], [None, "C"], [0.1, 0.1], ["rbf", {}], {}, {"": {}}, {0: 1}]
VALUES += [{"C": None}, {"C": []}, {"log2": [0, 2]}, {"kfold": 3}, {"pca": -1}]


def places(node, path=()):
    yield path
    if isinstance(node, dict | list):
        for key, child in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(child, (*path, key))


def replaced(path, value):
    """Return the good configuration with one value replaced."""
    content = copy.deepcopy(GOOD)
    if not path:
        return value
    node = content
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return content


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(path=st.sampled_from(list(places(GOOD))), value=values)
@examples(path=list(places(GOOD)) * 2, value=VALUES)
def test_any_value_anywhere_is_valid_or_refused(tmp_path: Path, path, value):
    file = tmp_path / "fuzz.yaml"
    file.write_text(
        yaml.safe_dump(replaced(path, value), allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    try:
        config = load_config(file)
    except UserError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)
        return
    if config.protocol.test.spec == GOOD["protocol"]["test"] and config.protocol.repeats in (1, 2):
        jobs = plan(config, tmp_path / "store", None, allow_network=False)
        assert len({job.key for job in jobs}) == len(jobs) > 0
    file.write_text(to_yaml(config), encoding="utf-8")
    assert load_config(file) == config


def test_the_unchanged_configuration_is_valid(tmp_path: Path):
    file = tmp_path / "good.yaml"
    file.write_text(yaml.safe_dump(GOOD, sort_keys=False))
    assert load_config(file).name == "trial"
