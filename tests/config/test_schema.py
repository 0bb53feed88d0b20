"""The JSON Schema for editors: shipped, named by every experiment, and as strict as pydantic."""

from __future__ import annotations

import json
from pathlib import Path

import pydantic
import pytest

from mmbench.config.files import SCHEMA, SCHEMA_LINE, parse_yaml
from mmbench.config.model import schema

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted([*ROOT.glob("configs/*.yaml"), *ROOT.glob("examples/papers/*/*.yaml")])
BASE = {"name": "t", "datasets": ["wine"], "protocol": {"test": {"kfold": 3}}, "machines": ["svm"]}


@pytest.mark.skipif(
    tuple(map(int, pydantic.VERSION.split(".")[:2])) < (2, 14),
    reason="older versions of pydantic write an equivalent schema in other words",
)
def test_the_shipped_schema_is_that_of_the_models():
    """To renew it: mmbench config schema > mmbench/config/schema.json."""
    assert SCHEMA.read_text(encoding="utf-8") == schema()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_experiment_names_the_schema_and_keeps_to_it(path):
    text = path.read_text(encoding="utf-8")
    line, _, _ = text.partition("\n")
    assert (path.parent / line.removeprefix(SCHEMA_LINE)).resolve() == SCHEMA
    assert faults(parse_yaml(text, str(path))) == []


def faults(content) -> list[str]:
    jsonschema = pytest.importorskip("jsonschema", reason="needs the package jsonschema")
    known = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return [error.json_path for error in known.iter_errors(content)]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"preprocess": ["minmax", {"pca": 3}, "sklearn.decomposition.NMF"]}, None),
        ({"machines": {"svm": None, "m": {"machine": "rmm", "grid": {"B": "auto"}}}}, None),
        ({"datasets": [{"path": "a.csv", "target": -1, "drop": "id", "missing": ""}]}, None),
        ({"kernel": "rbv"}, "$.kernel"),
        ({"kernels": "rbf"}, "$"),
        ({"preprocess": "minmx"}, "$.preprocess"),
        ({"protocol": {"test": "oficial"}}, "$.protocol.test"),
        ({"machines": {"svm": {"grid": {"C": []}}}}, "$.machines"),
    ],
)
def test_an_editor_sees_what_is_wrong(changes, path):
    assert faults({**BASE, **changes}) == ([path] if path else [])
