"""Every fault of a configuration is one line with file and key, before anything is read or made."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest
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

#: What to replace in the good configuration, by what, and what the line must hold.
FAULTS = {
    "unknown key": ("select:", "selct:", ["unknown key 'selct'", "did you mean 'select'?"]),
    "unknown key inside": ("{folds: 3}", "{fold: 3}", ["select", "'fold'", "mean 'folds'?"]),
    "unknown machine key": ("use: svm", "uses: svm", ["machines.rmm", "mean 'use'?"]),
    "missing key": ("protocol: {test: {kfold: 3}}\n", "", ["protocol", "missing"]),
    "parameter beside params": (
        *("svm: {grid", "svm: {C: 10, grid", ["machines.svm", "params: {C: 10} or grid: {C: [10"]),
    ),
    "parameter of a column's machine": (
        "rmm: {use: svm, grid: {B: auto}}",
        "mine: {machine: rmm, B: 2}",
        ["machines.mine", "params: {B: 2}"],
    ),
    "values beside grid": (
        *("svm: {grid", "svm: {C: [1, 10], grid", ["is a parameter; write grid: {C: [1, 10]}"]),
    ),
    "rule without a number beside test": (
        *("test: {kfold: 3}", "official:", ["write test: official"]),
    ),
    "parameter of no machine": ("svm: {grid", "3: {C: 1, grid", ["machines[3]", "'C'"]),
    "rule beside test": ("test: {kfold: 3}", "kfold: 3", ["protocol: ", "test: {kfold: 3}"]),
    "key of another part": ("{kfold: 3}}", "{kfold: 3}, folds: 3}", ["protocol", "select.folds"]),
    "key of a part": ("kernel: rbf", "seed: 1", ["'seed'", "protocol.seed"]),
    "a parameter that is not a number": (
        "rmm: {use: svm, grid: {B: auto}}",
        "rf: {estimator: sklearn.ensemble.RandomForestClassifier, params: {max_features: .nan}}",
        ["machines.rf.params.max_features", "must be finite in an experiment, got nan"],
    ),
    "kernel as a parameter": ("use: svm,", "params: {kernel: rbf},", ["machines.rmm.kernel"]),
    "unknown calibration": (
        "use: svm,",
        "calibrate: platt,",
        ["rmm.calibrate", "sigmoid"],
    ),
    "calibrated pairs": (
        "{folds: 3}\nmachines:\n  svm: {",
        "{folds: 3, scope: pair}\nmachines:\n  svm: {calibrate: sigmoid, ",
        ["machines.svm.calibrate", "scope: global"],
    ),
    "calibrated in time": (
        "{kfold: 3}}\nselect: {folds: 3}\nmachines:\n  svm: {",
        "{time_series: 3}}\nselect: {folds: 3}\nmachines:\n  svm: {calibrate: isotonic, ",
        ["machines.svm.calibrate", "time_series"],
    ),
    "unknown machine": ("svm: {grid", "swm: {grid", ["machines.swm", "did you mean 'svm'?"]),
    "unknown data set": ("[wine]", "[wime]", ["datasets[0]", "did you mean 'wine'?"]),
    "data set twice": (
        "[wine]",
        "[wine, wine]",
        ["datasets: 'wine'", "twice; a file can have another 'name'"],
    ),
    "no data set": ("[wine]", "[]", ["datasets", "empty"]),
    "data sets as a word": ("[wine]", "wine", ["datasets", "list"]),
    "a file instead of a card": ("[wine]", "[my.csv]", ["{path: FILE, target: COLUMN}"]),
    "a file without target": ("[wine]", "[{path: a.yaml}]", ["datasets[0]", "target"]),
    "a missing file": ("[wine]", "[{path: no.csv, target: y}]", ["datasets[0].path", "no.csv"]),
    "a word of YAML 1.1": (
        "[wine]",
        "[{sklearn: wine, name: w, header: no}]",
        ["true or false, got 'no'"],
    ),
    "a folder instead of a data file": (
        "[wine]",
        "[{path: ., target: y}]",
        ["path", "is a folder"],
    ),
    "unknown layout": ("name: trial", "name: t\nlayout: genric", ["layout", "mean 'generic'?"]),
    "unknown kernel": ("kernel: rbf", "kernel: rbv", ["kernel", "did you mean 'rbf'?"]),
    "name that is no folder": ("name: trial", "name: ../x", ["name", "letters"]),
    "name that is taken": ("name: trial", "name: reference", ["name", "reference"]),
    "empty name": ("name: trial", "name:", ["name", "text", "nothing"]),
    "number as a name": ("name: trial", "name: 3", ["name", "text"]),
    "automatic grid of all": ("grid: {B: auto}", "grid: auto", ["rmm.grid", "{C: auto}"]),
    "no automatic grid": ("B: auto", "tol: auto", ["rmm.grid.tol", "list the", "automatic: "]),
    "empty grid": ("C: [1, 10]", "C: []", ["machines.svm.grid.C", "empty"]),
    "empty powers": ("C: [1, 10]", "C: {log2: [3, 1]}", ["machines.svm.grid.C", "empty"]),
    "tiny step": ("C: [1, 10]", "C: {log2: [0, 1, 1.0e-320]}", ["svm.grid.C", "too long"]),
    "endless step": ("C: [1, 10]", "C: {log2: [0, 1, .inf]}", ["svm.grid.C", "step", "inf"]),
    "huge number": ("C: [1, 10]", f"C: [{10**400}]", ["svm.grid.C", "> 0"]),
    "number without end": ("C: [1, 10]", f"C: [{'9' * 5000}]", ["cannot be read"]),
    "value that belies its tag": ("C: [1, 10]", "C: !!int ten", ["cannot be read", "'ten'"]),
    "a function that makes no classifier": (
        "rmm: {use: svm, grid: {B: auto}}",
        "m: {estimator: sklearn.show_versions}",
        ["machines.m.estimator", "not a classifier", "neither an estimator class"],
    ),
    "a function as a step": (
        *("kernel: rbf", "preprocess: os.abort", ["preprocess", "not a transformer"]),
    ),
    "a function with parameters as a step": (
        "kernel: rbf",
        "preprocess: {shutil.rmtree: {path: /nothing}}",
        ["preprocess", "not a transformer"],
    ),
    "address of a table": (
        *("[wine]", "[{path: 'https://a.org/b.csv', target: y}]", ["https://a.org", "an address"]),
    ),
    "address of a bucket": (
        *("[wine]", "[{path: 's3://a/b.csv', target: y}]", ["s3://a/b.csv: is an address"]),
    ),
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
    "list as a fixed value": ("use: svm,", "params: {C: [1]},", ["rmm.params.C", "'grid'"]),
    "number as a parameter": ("use: svm,", "params: {3: 1},", ["rmm.params: key 3", "text"]),
    "number as a key": ("name: trial", "name: t\n3: 4", [": key 3", "text"]),
    "machine in capitals": ("svm: {grid", "SVM: {grid", ["machines.SVM", "mean 'svm'?"]),
    "unknown powers": ("C: [1, 10]", "C: {log3: [3, 1]}", ["machines.svm.grid.C", "log2"]),
    "negative fixed C": ("use: svm,", "params: {C: -2},", ["machines.rmm.params.C", "> 0"]),
    "negative C": ("C: [1, 10]", "C: [1, -10]", ["machines.svm.grid.C", "> 0", "-10"]),
    "infinite C": ("C: [1, 10]", "C: [.inf]", ["machines.svm.grid.C", "finite", "inf"]),
    "text in a grid": ("C: [1, 10]", "C: [1, ten]", ["machines.svm.grid.C", "'ten'"]),
    "truth value in a grid": ("C: [1, 10]", "C: [1, true]", ["machines.svm.grid.C", "True"]),
    "value twice": ("C: [1, 10]", "C: [1, 1.0]", ["machines.svm.grid.C", "twice"]),
    "no list": ("C: [1, 10]", "C: 10", ["machines.svm.grid.C", "list"]),
    "nested list": ("C: [1, 10]", "C: [[1]]", ["machines.svm.grid.C", "list"]),
    "unknown parameter": ("gamma: [0.1", "gama: [0.1", ["svm.grid.gama", "mean 'gamma'?"]),
    "machine without the parameter": ("C: [1, 10]", "B: [2, 3]", ["svm.grid.B", "no parameter"]),
    "width of a linear kernel": ("kernel: rbf", "kernel: linear", ["gamma has no effect"]),
    "parameter of predict": ("C: [1, 10]", "break_ties: [true]", ["break_ties", "'ties'"]),
    "parameter of the experiment": ("C: [1, 10]", "ties: [lowest]", ["svm.grid.ties", "'ties'"]),
    "machine without a name": ("svm: {grid", "mine: {grid", ["machines.mine", "{machine: NAME}"]),
    "machine of a column unknown": (
        *("  rmm: {", "  mine: {machine: swm, ", ["machines.mine.machine", "did you mean 'svm'?"]),
    ),
    "column named as another machine": (
        "rmm: {use: svm, grid: {B: auto}}",
        "mmrm: {machine: rmm}",
        ["machines.mmrm", "another machine", "another name"],
    ),
    "column that is no name": ("  rmm: {", "  a b: {machine: rmm, ", ["machines.a b", "name"]),
    "fixed parameter of a column's alias": (
        "rmm: {use: svm, grid: {B: auto}}",
        "m: {machine: emamc, params: {reading: gram}}",
        ["machines.m.params.reading", "'empirical'", "lssvm takes other values"],
    ),
    "estimator and machine": (
        *(
            "  rmm: {",
            "  m: {machine: rmm, estimator: a.b, ",
            ["machines.m", "only one of machine and estimator"],
        ),
    ),
    "estimator that is not there": (
        *("  rmm: {", "  m: {estimator: sklearn.svm.SWC, ", ["machines.m.estimator", "SWC"]),
    ),
    "function of the system": (
        *(
            "  rmm: {",
            "  m: {estimator: os.abort, ",
            ["machines.m.estimator", "is neither an estimator"],
        ),
    ),
    "exit": (
        *(
            "  rmm: {",
            "  m: {estimator: sys.exit, ",
            ["machines.m.estimator", "is neither an estimator"],
        ),
    ),
    "estimator that is no classifier": (
        *("  rmm: {", "  m: {estimator: sklearn.svm.SVR, ", ["m.estimator", "no classifier"]),
    ),
    "another package's classifier as a machine": (
        *("  rmm: {", "  m: {machine: 'sklearn.svm:SVC', ", ["estimator: sklearn.svm.SVC"]),
    ),
    "estimator that needs arguments": (
        "rmm: {use: svm, grid: {B: auto}}",
        "m: {estimator: sklearn.ensemble.VotingClassifier}",
        ["machines.m.estimator", "without arguments"],
    ),
    "parameter that an estimator lacks": (
        "rmm: {use: svm, grid: {B: auto}}",
        "m: {estimator: sklearn.svm.SVC, params: {D: 1}}",
        ["machines.m.params.D", "no parameter"],
    ),
    "estimator under a machine's name": (
        "rmm: {use: svm, grid: {B: auto}}",
        "rmm: {estimator: sklearn.svm.SVC}",
        ["machines.rmm", "another machine"],
    ),
    "what an alias is named for": (
        "rmm: {use: svm, grid: {B: auto}}",
        "emamc: {params: {reading: gram}}",
        ["machines.emamc.params.reading", "'empirical'", "lssvm takes other values"],
    ),
    "a search for it": (
        "rmm: {use: svm, grid: {B: auto}}",
        "rmm_b1_cold: {grid: {B_fraction: [0.1, 0.2]}}",
        ["machines.rmm_b1_cold.grid.B_fraction", "0.5", "takes other values"],
    ),
    "the same in other words": (
        "rmm: {use: svm, grid: {B: auto}}",
        "rmm_b1: {params: {B: 2}}",
        ["machines.rmm_b1.params.B", "B_fraction is 0.5", "takes other values"],
    ),
    "fixed and searched": ("use: svm,", "params: {B: 2},", ["rmm.params.B: B", "grid"]),
    "use of nobody": ("use: svm", "use: swm", ["machines.rmm.use", "did you mean 'svm'?"]),
    "use of itself": ("use: svm", "use: rmm", ["machines.rmm.use", "rmm -> rmm"]),
    "kfold 1": ("{kfold: 3}", "{kfold: 1}", ["protocol.test", "at least 2", "1"]),
    "kfold 2.5": ("{kfold: 3}", "{kfold: 2.5}", ["protocol.test", "whole", "2.5"]),
    "kfold true": ("{kfold: 3}", "{kfold: true}", ["protocol.test", "True"]),
    "holdout 1.5": ("{kfold: 3}", "{holdout: 1.5}", ["protocol.test", "between 0 and 1", "1.5"]),
    "holdout 0": ("{kfold: 3}", "{holdout: 0.0}", ["protocol.test", "between 0 and 1"]),
    "unknown rule": ("{kfold: 3}", "oficial", ["protocol.test", "did you mean 'official'?"]),
    "rule that the data lack": ("{kfold: 3}", "official", ["protocol.test", "wine", "kfold"]),
    "two rules": ("{kfold: 3}", "{kfold: 3, holdout: 0.1}", ["protocol.test"]),
    "no repeats": ("{kfold: 3}}", "{kfold: 3}, repeats: 0}", ["protocol.repeats", "0"]),
    "endless repeats": ("{kfold: 3}}", "{kfold: 3}, repeats: 1000000000000}", ["repeats", "10000"]),
    "endless folds": ("{kfold: 3}", "{kfold: 1000000000000}", ["protocol.test", "10000"]),
    "negative seed": ("{kfold: 3}}", "{kfold: 3}, seed: -1}", ["protocol.seed", "-1"]),
    "one inner fold": ("{folds: 3}", "{folds: 1}", ["select.folds", "1"]),
    "folds and split": (
        "{folds: 3}",
        "{folds: 3, split: 0.2}",
        ["select", "only one of folds and split"],
    ),
    "folds and validation": (
        "{folds: 3}",
        "{folds: 3, validation: rest}",
        ["select", "folds and validation"],
    ),
    "validation on nothing": ("{folds: 3}", "{validation: rest}", ["validation", "max_train"]),
    "repeated validation": (
        "{folds: 3}",
        "{validation: rest, repeats: 2}",
        ["select", "not repeated"],
    ),
    "no rows of a class": ("3}}", "3}, max_train: {per_class: 0}}", ["protocol.max_train"]),
    "no rows": ("3}}", "3}, max_train: 1}", ["protocol.max_train", "at least 2"]),
    "no training size": ("3}}", "3}, max_train: []}", ["protocol.max_train", "empty"]),
    "training size twice": (
        "3}}",
        "3}, max_train: [9, 30, 9]}",
        ["protocol.max_train", "9 occurs twice"],
    ),
    "training size as a word": ("3}}", "3}, max_train: [9, all]}", ["protocol.max_train", "'all'"]),
    "sizes in a layout without place": (
        *("3}}", "3}, max_train: [9, 30]}\nlayout: mmrm_table1", ["layout", "generic"]),
    ),
    "one class": ("[wine]", "[{name: wine, classes: [0]}]", ["datasets[0].classes", "two"]),
    "class twice": ("[wine]", "[{name: wine, classes: [0, '0']}]", ["[0].classes", "'0' occurs"]),
    "class as a word": ("[wine]", "[{name: wine, classes: 0}]", ["[0].classes", "list"]),
    "truth value as a class": (
        "[wine]",
        "[{name: wine, classes: [0, true]}]",
        ["[0].cla", "quotes"],
    ),
    "unknown class": (
        *(
            "[wine]",
            "[{name: wine, classes: [class_0, 7]}]",
            ["[0].classes", "'7'", "class_0, class_1"],
        ),
    ),
    "rows of something": ("3}}", "3}, max_train: {a_class: 5}}", ["max_train", "per_class"]),
    "scaling without poly": ("kernel: rbf", "kernel_scaling: trace", ["kernel_scaling", "effect"]),
    "two metrics": ("{folds: 3}", "{metric: [accuracy, auc]}", ["select.metric", "text"]),
    "unknown batch system": (
        "kernel: rbf",
        "cluster: {slrum: {cores: 1, memory: 1 GB, walltime: 1h}}",
        ["cluster", "did you mean 'slurm'?"],
    ),
    "unknown scope": ("{folds: 3}", "{scope: all}", ["select.scope", "pair", "all"]),
    "preference for nothing": ("{folds: 3}", "{prefer: {Z: small}}", ["select.prefer.Z"]),
    "unknown step": ("kernel: rbf", "preprocess: minmx", ["preprocess", "did you mean 'minmax'?"]),
    "step with nonsense": ("kernel: rbf", "preprocess: {pca: -1}", ["preprocess", "-1"]),
    "endless components": ("kernel: rbf", "preprocess: {pca: .inf}", ["preprocess", "got inf"]),
    "components of nothing": ("kernel: rbf", "preprocess: {pca: .nan}", ["preprocess", "nan"]),
    "more components than before": (
        *("kernel: rbf", "preprocess: [{pca: 2}, {pca: 4}]", ["4 components", "2 columns"]),
    ),
    "half a pair": ("kernel: rbf", "preprocess: [{pca: 3}, pair_features]", ["even", "not 3"]),
    "unknown tie rule": ("kernel: rbf", "ties: coin", ["ties", "lowest", "coin"]),
    "degree without poly": ("kernel: rbf", "degree: 3", ["degree", "no effect"]),
    "source that is missing": (
        "kernel: rbf",
        "parameters_from: no",
        ["parameters_from", "no.yaml"],
    ),
    "published name unknown": (
        *("[wine]", "[{name: wine, published_as: uspss}]", ["published_as", "mean 'usps'?"]),
    ),
    "published machine unknown": ("kernel: rbf", "published_only: [m5]", ["published_only[0]"]),
    "published machine that runs": ("kernel: rbf", "published_only: [svm]", ["published_only[0]"]),
    "published machine twice": (
        "kernel: rbf",
        "published_only: [m4, m4]",
        ["published_only", "twice"],
    ),
    "published file missing": (
        "kernel: rbf",
        "kernel: rbf\npublished: mine.csv",
        ["published: ", "mine.csv", "no such file"],
    ),
    "published column unknown": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 97, sdt: 1}]",
        ["published: ", "'sdt'", "did you mean 'std'?"],
    ),
    "published column missing": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, valu: 97}]",
        ["published: ", "no column value", "did you mean 'valu'?"],
    ),
    "published word": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: high}]",
        ["published: ", "row 1: value 'high' is not a number"],
    ),
    "published deviation of no kind": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 9, std_is: sem}]",
        ["row 1: std_is 'sem'", "'se'"],
    ),
    "published for no data set": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: '', machine: svm, value: 9}]",
        ["row 1: dataset is empty"],
    ),
    "published half degree": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 9, degree: 1.5}]",
        ["row 1: degree '1.5'"],
    ),
    "published without reason": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 9, usable: no}]",
        ["row 1: usable", "reason"],
    ),
    "published cell twice": (
        "kernel: rbf",
        "kernel: rbf\npublished: [&a {dataset: wine, machine: svm, value: 97}, *a]",
        ["row 2: wine, svm, accuracy_pct is also in row 1"],
    ),
    "published metric unknown": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 9, metric: eror_pct}]",
        ["row 1: unknown metric", "did you mean 'error_pct'?"],
    ),
    "published machine misspelt": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: swm, value: 97}]",
        ["row 1", "did you mean 'svm'?", "published_only: [swm]"],
    ),
    "published data set misspelt": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wime, machine: svm, value: 97}]",
        ["datasets[0].name", "did you mean 'wime'?", "published_as"],
    ),
    "published kernel open": (
        "kernel: rbf",
        "kernel: [linear, rbf]\npublished: [{dataset: wine, machine: svm, value: 97}]",
        ["row 1: kernel is empty", "svm has several kernels"],
    ),
    "published for another kernel": (
        "kernel: rbf",
        "kernel: rbf\npublished: [{dataset: wine, machine: svm, value: 97, kernel: linear}]",
        ["published: no row belongs"],
    ),
    "published list of words": (
        "kernel: rbf",
        "kernel: rbf\npublished: [97]",
        ["published: ", "path of a CSV file", "97"],
    ),
    "published sizes": (
        "3}}",
        "3}, max_train: [9, 30]}\npublished: [{dataset: wine, machine: svm, value: 97}]",
        ["published: ", "training sizes"],
    ),
    "same key twice": ("kernel: rbf", "name: again", ["line 3", "'name'", "twice"]),
    "bad syntax": ("[wine]", "[wine", ["line 3"]),
    "tab": ("  svm:", "\tsvm:", ["line 7"]),
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


def test_later_and_cyclic_use_are_told_apart(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("  svm: {", "  mmrm: {use: svm}\n  svm: {"))
    assert_refused(run(path), path, ["machines.mmrm.use", "before"])
    path.write_text(GOOD.replace("  svm: {", "  svm: {use: rmm, "))
    assert_refused(run(path), path, ["machines.svm.use", "svm -> rmm -> svm"])


def test_parameter_stated_in_two_ways(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("{B: auto}", "{B: auto}, params: {B_fraction: 0.5}"))
    assert_refused(run(path), path, ["rmm.params.B_fraction", "only one of B and B_fraction"])


def test_pairs_of_a_machine_that_trains_all_of_them_together(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("{folds: 3}", "{scope: pair}") + "  fsvm_opt: {}\n")
    assert_refused(run(path), path, ["select.scope", "fsvm_opt", "scope: global"])


def test_no_machine(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.partition("machines:")[0] + "machines: {}\n")
    assert_refused(run(path), path, ["machines", "empty"])


def test_override_of_an_axis_that_no_machine_has(tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD.replace("[wine]", "[{name: wine, grid: {gama: [1]}}]"))
    assert_refused(run(path), path, ["datasets[0].grid.gama", "did you mean 'gamma'?"])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("dataset=wime", ["wine"]),
        ("machine=swm", ["svm"]),
        ("machin=svm", ["machine=NAME"]),
        ("svm", ["machine=NAME"]),
    ],
)
def test_only_with_an_unknown_value(option: str, words: list[str], tmp_path: Path):
    path = tmp_path / "a.yaml"
    path.write_text(GOOD)
    result = run(path, "--only", option)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert [word for word in words if word not in line] == [], line


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


@pytest.mark.parametrize("name", ["https://a.org/b.yaml", Path("s3://a/b.yaml")])
def test_the_address_of_an_experiment_is_named_as_an_address(name):
    with pytest.raises(UserError, match="is an address; download the file"):
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
