"""The page on what all machines share names their common parameters and attributes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from sklearn.datasets import load_iris

from mmbench.machines import MACHINES, make_machine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "estimators.md"


def names_below(heading: str) -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.M)))


def test_the_parameters_are_those_that_all_machines_have():
    shared = set.intersection(*(set(make_machine(name).get_params()) for name in MACHINES))
    assert sorted(names_below("Parameters")) == sorted(shared)
    others = {name for name in MACHINES if "class_weight" not in make_machine(name).get_params()}
    assert others == {"mpm", "mempm"}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_attributes_exist(kernel):
    machine = make_machine("svm", kernel=kernel).fit(*load_iris(return_X_y=True))
    missing = {name for name in names_below("Attributes after `fit`") if not hasattr(machine, name)}
    assert missing == ({"support_vectors_"} if kernel == "linear" else {"coef_"})
