"""Every key, status and metric is documented, and what is documented exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from mmbench.config.model import Config, keys_of
from mmbench.errors import Status
from mmbench.results.cells import CONFUSION, METRIC, STORED
from mmbench.selection.metrics import METRICS

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "keys.md").read_text(encoding="utf-8")
#: Heading on the page by where a model stands in a configuration.
HEADINGS = {
    "": "The experiment",
    "datasets": "A data set",
    "protocol": "The protocol",
    "select": "Selection",
    "parameters_from": "Parameters of another experiment",
    "machines": "A column",
    "limits": "Limits",
    "cluster": "Cluster",
}
#: Parsed forms of one value, whose keys nobody writes.
VALUES = {"protocol.test"}


def documented(heading: str, more: str = "") -> list:
    """Return the keys in the table below a heading, with the match of `more` in their rows."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(rf"^\| `(\w+)` \|{more}", section, re.M)


def models(model: type[BaseModel], path: str = "") -> dict[str, type[BaseModel]]:
    """Return a model and those of its fields, by their path in a configuration."""
    found = {path: model}
    for name, field in model.model_fields.items():
        for part in _models_in(field.annotation):
            found |= models(part, f"{path}.{name}".strip("."))
    return found


def _models_in(annotation) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = [*getattr(annotation, "__args__", ()), getattr(annotation, "__origin__", None)]
    return [model for part in inner if part is not None for model in _models_in(part)]


MODELS = {path: model for path, model in models(Config).items() if path not in VALUES}


def test_every_part_of_a_configuration_has_a_section():
    assert set(MODELS) == set(HEADINGS)


@pytest.mark.parametrize("path", HEADINGS)
def test_the_keys_of_a_section_are_those_of_its_model(path):
    keys = documented(HEADINGS[path])
    assert len(keys) == len(set(keys))
    assert set(keys) == set(keys_of(MODELS[path]))


@pytest.mark.parametrize("path", HEADINGS)
def test_the_contents_of_the_page_name_the_keys_of_a_section(path):
    (keys,) = re.findall(rf"^\| \[{HEADINGS[path]}\]\(#[\w-]+\) \| (.*) \|$", PAGE, re.M)
    assert re.findall(r"`(\w+)`", keys) == documented(HEADINGS[path])


@pytest.mark.parametrize("path", HEADINGS)
def test_the_defaults_of_a_section_are_those_of_its_model(path):
    stated = documented(HEADINGS[path], r".*? \| (.*?) \|")
    for key, default in stated:
        field = keys_of(MODELS[path])[key]
        assert (default == "required") == field.is_required(), key
        value = field.default
        if isinstance(value, list) and len(value) == 1:
            [value] = value
        if isinstance(value, str | int):  # otherwise other keys or the data determine the default
            assert default.strip("`") == ("true" if value is True else str(value)), key


RESULTS_OF_RECORDS = [name.removesuffix("_pct") for name in STORED if name != METRIC]


@pytest.mark.parametrize(
    ("heading", "names"),
    [("Certificates", Status), ("Metrics", [*METRICS, CONFUSION, *RESULTS_OF_RECORDS])],
)
def test_every_status_and_metric_has_a_line(heading, names):
    text = (DOCS / f"{heading.lower()}.md").read_text(encoding="utf-8")
    section = text.partition(f"\n# {heading}\n")[2].partition("\n## ")[0]
    first = re.findall(r"^\| (`.*?`) \|", section, re.M)
    assert sorted(re.findall(r"`(\w+)`", " ".join(first))) == sorted(map(str, names))
