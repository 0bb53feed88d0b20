"""What type checkers see of the package."""

import os
import subprocess
import sys
from pathlib import Path

import mmbench
from mmbench.machines import MACHINES

USE = """\
from mmbench import SVM
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
"""
#: A line that is wrong, and what is said of it.
WRONG = {
    'SVM(C="x")': 'Argument "C" to "SVM" has incompatible type "str"; expected "float"',
    "SVM(nonsense=3)": 'Unexpected keyword argument "nonsense" for "SVM"',
    'Own(cost="x")': 'Argument "cost" to "Own" has incompatible type "str"; expected "float"',
    "SVM().fits_of": '"SVM" has no attribute "fits_of"',
}


def test_a_star_import_gives_the_machines_and_nothing_else():
    space: dict = {}
    exec("from mmbench import *", space)
    machines = {path.partition(":")[2] for path in MACHINES.values() if "mmbench." in path}
    assert space.keys() - {"__builtins__"} == set(mmbench.__all__) == machines


def test_a_machine_has_the_parameters_that_it_declares_for_a_type_checker(tmp_path):
    file = tmp_path / "use.py"
    file.write_text(USE + "\n".join(WRONG))
    options = ["--strict", "--follow-imports=silent", "--cache-dir", tmp_path / "cache"]
    command = [sys.executable, "-m", "mypy", *options, file]
    env = {**os.environ, "MYPYPATH": str(Path(mmbench.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == len(WRONG), done.stdout + done.stderr
    first = USE.count("\n") + 1
    for k, (error, text) in enumerate(zip(errors, WRONG.values(), strict=True)):
        assert f":{first + k}: " in error
        assert text in error
