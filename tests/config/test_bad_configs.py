"""Every fault of a configuration is one line with file and key, before anything is read or made."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
from helpers.cases import cases
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from typer.testing import CliRunner

from mmbench.cli.app import app
from mmbench.config.files import load_yaml, parse_yaml
from mmbench.config.read import config_of, load_configs
from mmbench.errors import UserError

pytestmark = pytest.mark.usefixtures("one_process")

GOOD = """\
name: trial
datasets: [wine]
kernel: rbf
protocol: {test: {kfold: 3}}
select: {folds: 3}
machines:
  svm: {grid: {C: [1, 10], gamma: [0.1, 1]}}
  rmm: {use: svm, grid: {B: auto}}
"""

#: What to replace in the good configuration, by what, and what the line must hold; those of
#: ordinary length in a file.
FAULTS = cases(__file__, "faults.yaml") | {
    "huge number": ("C: [1, 10]", f"C: [{10**400}]", ["svm.grid.C", "> 0"]),
    "number without end": ("C: [1, 10]", f"C: [{'9' * 5000}]", ["cannot be read"]),
    "too many steps": (
        "kernel: rbf",
        f"preprocess: [{'minmax, ' * 1001}]",
        ["preprocess: has 1001 entries", "limits.entries=1001"],
    ),
    "too many columns": (
        "[wine]",
        f"[{{path: a.csv, target: y, drop: [{', '.join(f'c{k}' for k in range(10_001))}]}}]",
        ["datasets: has 10001 entries", "limits.entries=10001"],
    ),
}


def run(path: Path, *options: str):
    return CliRunner().invoke(
        app, ["run", str(path), "--results", str(path.parent / "r"), *options]
    )


def assert_refused(result, path: Path, words: list[str]) -> None:
    """One line, exit code 2, nothing made."""
    assert result.exit_code == 2, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mmbench: {path}")
    assert [word for word in words if word not in line] == [], line
    assert not (path.parent / "r").exists()


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_one_line_and_exit_code_2(name: str, tmp_path: Path):
    old, new, words = FAULTS[name]
    path = tmp_path / "a.yaml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    assert_refused(run(path), path, words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["mapping"]),
        (b"- a\n- b\n", ["mapping"]),
        (b"just text", ["mapping"]),
        (b"name: \xff\xfe", ["UTF-8"]),
        (b"\x00\x01", ["a.yaml"]),
        (b"name: !!python/object:os.system x", ["line 1"]),
        (b"[" * 1500 + b"]" * 1500, ["nest"]),
        (b"name: " + b"x" * 2**23, ["larger than 4 MiB"]),
        (b"a: &a [*a]\n", ["aliases"]),
        (b"? [&a [&b [x, x], *b], *a]\n: 1\n", ["line 1", "a key is a list"]),
    ],
)
def test_file_that_is_no_configuration(content: bytes, words: list[str], tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_bytes(content)
    assert_refused(run(path), path, words)


def test_missing_file_names_the_nearest(tmp_path: Path):
    (tmp_path / "quickstart.yaml").write_text(GOOD)
    (tmp_path / ".quikstart.yaml").write_text(GOOD)  # as editors and computers leave them
    path = tmp_path / "quikstart.yaml"
    assert_refused(run(path), path, ["no such file", "did you mean 'quickstart'?"])


def test_folder_instead_of_a_file(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.mkdir()
    assert_refused(run(path), path, ["has no experiment.yaml"])


def test_one_bad_file_of_two_refuses_both(tmp_path: Path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("[wine]", "[]"))
    assert_refused(run(good, str(bad)), bad, ["datasets"])


def test_two_files_of_one_experiment_are_refused(tmp_path: Path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text(GOOD)
    second.write_text(GOOD)
    assert_refused(run(first, str(second)), second, ["name", "a.yaml"])


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5"])
def test_nonsense_number_of_jobs(jobs: str, tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    result = run(path, "--jobs", jobs)
    assert result.exit_code == 2
    assert "--jobs" in result.stderr
    assert not (tmp_path / "r").exists()


def test_keys_without_values_stand_in_braces():
    assert parse_yaml("machines: {svm:, rmm: {grid:, params:}}", "a") == {
        "machines": {"svm": None, "rmm": {"grid": None, "params": None}}
    }


def test_a_mapping_of_any_type_is_an_experiment():
    content = {"name": "mine", "datasets": ["iris"], "machines": {"svm": {"grid": {"C": [1, 2]}}}}
    (config,) = load_configs([MappingProxyType(content | {"protocol": {"test": {"kfold": 3}}})])
    assert config.name == "mine"


class Mine:
    """A class in the place of the script that is running."""


Mine.__module__ = "__main__"
SVM: dict = {"svm": {}}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"machines": ["svm", {"rmm": {"use": "svm"}}]}, ["svm", "rmm"]),
        ({"machines": ("svm", "rmm")}, ["svm", "rmm"]),
        ({"machines": ["svm", "svm"]}, "machines: 'svm' occurs twice"),
        ({"machines": ["svm", 3]}, "machines: a machine is a name or .*, got 3"),
        ({"machines": {"m": {"estimator": SVC}}}, ["m"]),
        ({"machines": {"m": {"estimator": Mine}}}, "worker processes cannot import; move it to"),
        ({"protocol": {"test": {"kfold": 3}, "seed": range(3)}}, ["svm"]),
        ({"machines": {"svm": {"grid": {"C": {1: "a", 2: "b"}.keys()}}}}, ["svm"]),
        ({"datasets": [{"path": Path(__file__), "target": 1}]}, ["svm"]),
        ({"preprocess": [{StandardScaler: {"with_mean": False}}]}, ["svm"]),
        ({"datasets": {"wine"}}, "datasets: must be a list, got {'wine'}"),
    ],
)
def test_values_of_python_are_those_of_a_file(changes, found):
    content = {"name": "t", "datasets": ["wine"], "protocol": {"test": {"kfold": 3}}}
    if isinstance(found, str):
        with pytest.raises(UserError, match=found):
            load_configs([{**content, "machines": SVM, **changes}])
    else:
        (config,) = load_configs([{**content, "machines": SVM, **changes}])
        assert list(config.machines) == found


@pytest.mark.parametrize("name", ["https://a.org/b.yaml", Path("https://a.org/b.yaml")])
def test_the_address_of_an_experiment_is_named_as_an_address(name):
    with pytest.raises(UserError, match=r"^https://a\.org/b\.yaml: is an address"):
        load_configs([name])


def test_a_path_in_the_home_folder_is_read_and_a_missing_one_is_shown_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "my.csv").write_text("a,y\n1,u\n2,v\n")
    path = tmp_path / "configs" / "a.yaml"
    path.parent.mkdir()
    path.write_text(GOOD.replace("[wine]", "[{path: ~/my.csv, target: y}]"))
    (config,) = load_configs([path])
    assert config.datasets[0].path == str(tmp_path / "my.csv")
    path.write_text(GOOD.replace("[wine]", "[{path: my.csv, target: y}]"))
    assert_refused(run(path), path, [f"{tmp_path / 'configs' / 'my.csv'}: no such file"])
    for address in ("https://x.org/my.csv", "s3://bucket/my.csv", "file:///my.csv"):
        path.write_text(GOOD.replace("[wine]", f"[{{path: '{address}', target: y}}]"))
        assert_refused(run(path), path, [f"{address}: is an address; download the file"])
    content = load_yaml(path) | {"datasets": [{"path": tmp_path / "my.csv", "target": "y"}]}
    assert config_of(content, path).datasets[0].path == str(tmp_path / "my.csv")
