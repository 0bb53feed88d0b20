"""Experiments of absurd size are refused by count, before anything is planned."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from mmbench.config.files import load_yaml
from mmbench.config.plan import plan
from mmbench.config.read import load_configs
from mmbench.errors import UserError

REPEATS = {"test": {"kfold": 10000}, "repeats": 10000}
MANY = list(range(1, 10_001))
SVM = {"svm": {"grid": {"C": [1, 2]}}}
BOMB = "\n".join(f"  a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10) if k else 1}]" for k in range(9))

HUGE = {
    "seeds": ({"protocol": {"test": {"kfold": 11}, "seed": MANY}}, "limits.jobs=110000"),
    "repeats": ({"protocol": REPEATS}, "limits.jobs=100000000"),
    "grid": ({"machines": {"svm": {"grid": {"C": [0.5, *MANY]}}}}, "limits.grid_points=10001"),
    "grid of a data set": (
        {"datasets": [{"name": "iris", "grid": {"C": [0.5, *MANY]}}]},
        "limits.grid_points=10001",
    ),
    "data sets": ({"datasets": ["no_such_card"] * 1001}, "limits.entries=1001"),
    "machines": ({"machines": {f"svm{k}": {} for k in range(1001)}}, "limits.entries=1001"),
}


def load(folder: Path, text: str, *overrides: str):
    path = folder / "x.yaml"
    path.write_text(text)
    return load_configs([path], overrides)


def text_of(**changes) -> str:
    content = {"name": "x", "datasets": ["iris"], "protocol": {"test": {"kfold": 3}}}
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # PyYAML may be built without C
    return yaml.dump({**content, "machines": SVM, **changes}, Dumper=dumper)


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_is_refused_with_the_option_that_goes_on(name, tmp_path):
    changes, option = HUGE[name]
    text = text_of(**changes)
    with pytest.raises(UserError, match=option):
        load(tmp_path, text)


RUNS = """
import sys
from pathlib import Path
from mmbench.commands.run import run
from mmbench.errors import UserError

for path in sorted(Path().glob("*.yaml")):
    try:
        run(path, "results")
    except UserError as error:
        print(path.stem, error)
    assert not {"sklearn", "pydantic", "scipy"} & set(sys.modules)
"""


def test_a_run_counts_entries_before_it_imports_libraries(tmp_path):
    for name, (changes, _) in HUGE.items():
        (tmp_path / f"{name}.yaml").write_text(text_of(**changes))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    call = [sys.executable, "-c", RUNS]
    lines = subprocess.check_output(call, cwd=tmp_path, env=environment, text=True).splitlines()
    for line, name in zip(lines, sorted(HUGE, key="{}.yaml".format), strict=True):
        assert line.startswith(name) and HUGE[name][1] in line


@pytest.mark.parametrize("content", [[1], 3, None])
@pytest.mark.parametrize("key", ["datasets", "machines", "limits", "protocol"])
def test_what_is_no_mapping_is_not_counted(key, content, tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text(text_of(**{key: content}))
    assert load_yaml(path, count=True)[key] == content


def test_the_option_goes_on(tmp_path):
    (config,) = load(tmp_path, text_of(**HUGE["grid"][0]), "limits.grid_points=10001")
    assert len(config.machines["svm"].grid["C"]) == 10_001
    machines = {f"svm{k}": {"machine": "svm"} for k in range(1001)}
    (config,) = load(tmp_path, text_of(machines=machines), "limits.entries=1001")
    assert len(config.machines) == 1001


def test_aliases_that_stand_for_millions_of_values_are_refused(tmp_path):
    with pytest.raises(UserError, match="aliases expand to more"):
        load(tmp_path, f"machines:\n lda:\n  params:\n{BOMB.replace('  a', '   a')}\n")


def test_a_classifier_of_another_package_counts_once_for_all_degrees(tmp_path):
    other = {"estimator": "sklearn.naive_bayes.GaussianNB"}
    changes = {"kernel": "poly", "degree": [1, 2, 3, 4], "machines": {**SVM, "other": other}}
    text = text_of(**changes, limits={"jobs": 3 * (4 + 1)})
    [config] = load(tmp_path, text)
    assert len(plan(config, tmp_path)) == 15
    with pytest.raises(UserError, match=r"has 15 jobs; more than 14"):
        load(tmp_path, text, "limits.jobs=14")
