"""What type checkers see of the package."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import mmbench
from mmbench.machines import MACHINES

USE = """\
import numpy as np
import pandas as pd

import mmbench
from mmbench import SVM, certify, easy, load, run, table
from mmbench.machines import RMM
from mmbench.machines.base import BinaryModel, BinaryProblem, PairwiseClassifier
from mmbench.machines.base import parameter, positive


class Own(PairwiseClassifier):
    cost: float = parameter(1.0, positive(), "Penalty.")

    def train(self, problem: BinaryProblem, warm: BinaryModel | None = None) -> BinaryModel:
        return RMM(C=self.cost, B=3.0).train(problem, warm)


accuracy: float = SVM(C=2.0, kernel="linear", cache_size=200.0).fit([[0.0], [1.0]], [0, 1]).score(
    [[0.0]], [0]
)
Own(cost=2.0, gamma=0.5)
RMM(kernel=np.dot)
count: int = SVM().n_features_in_ + len(SVM().feature_names_in_)
routed: SVM = SVM().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
reference: str = mmbench.cite("svm")
RMM(kernel=lambda X, Z: X @ Z.T)
frame: pd.DataFrame = load(run({"name": "one"}, "results")[0].folder)
text: str = table("results") + easy(frame, target="label").text
gaps: pd.DataFrame = certify(SVM(), [[0.0], [1.0]], [0, 1])
"""
#: A line that is wrong, and what is said of it.
WRONG = {
    'SVM(C="x")': 'Argument "C" to "SVM" has incompatible type "str"; expected "float"',
    "SVM(nonsense=3)": 'Unexpected keyword argument "nonsense" for "SVM"',
    "SVM(kernel=3)": 'Argument "kernel" to "SVM" has incompatible type "int"',
    'Own(cost="x")': 'Argument "cost" to "Own" has incompatible type "str"; expected "float"',
    "SVM().fits_of": '"SVM" has no attribute "fits_of"',
    'easy("my.csv", goal="label").texts': '"Comparison" has no attribute "texts"',
    "mmbench.SVMM": 'Module has no attribute "SVMM"',
}


def test_a_star_import_gives_the_machines_and_nothing_else():
    space: dict = {}
    exec("from mmbench import *", space)
    machines = {path.partition(":")[2] for path in MACHINES.values() if "mmbench." in path}
    assert space.keys() - {"__builtins__"} == set(mmbench.__all__) == machines


def test_the_reference_lists_what_is_public():
    page = (Path(__file__).parents[1] / "docs" / "api.rst").read_text(encoding="utf-8")
    listed, module = set(), ""
    for line in page.splitlines():
        module = line.split("::")[1].strip() if "currentmodule" in line else module
        if re.fullmatch(r"   [\w.]+", line):
            listed.add(f"{module}.{line.strip()}")
    assert {f"mmbench.{name}" for name in mmbench.FUNCTIONS} <= listed
    listed |= {f"{path}.{name}" for name, path in mmbench.FUNCTIONS.items()}
    internal = {"mmbench.machines.base.Status"}
    for owner in {name.rpartition(".")[0] for name in listed} - {"mmbench", "mmbench.datasets"}:
        theirs = {name for name in listed if name.rpartition(".")[0] == owner}
        public = {f"{owner}.{name}" for name in importlib.import_module(owner).__all__}
        assert theirs == public - internal, owner
    for name in listed:
        owner, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(owner), attribute), name


def test_a_machine_has_the_parameters_that_it_declares_for_a_type_checker(tmp_path):
    file = tmp_path / "use.py"
    file.write_text(USE + "\n".join(WRONG))
    options = ["--strict", "--follow-imports=silent", "--cache-dir", os.devnull]
    options += ["--disable-error-code=import-untyped"]  # pandas, if its stubs are not installed
    command = [sys.executable, "-m", "mypy", *options, file]
    env = {**os.environ, "MYPYPATH": str(Path(mmbench.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(WRONG), done.stdout + done.stderr
    first = USE.count("\n") + 1
    for k, (error, text) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert f":{first + k}: " in error
        assert text in error
