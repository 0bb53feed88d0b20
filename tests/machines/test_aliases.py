"""The papers' names for machines with certain parameters."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mmbench.errors import UserError
from mmbench.machines import ALIASES, MACHINES, alias_of, machine_class, make_machine


@pytest.mark.parametrize("name", ALIASES)
def test_an_alias_is_its_machine_with_other_parameters(name):
    alias = ALIASES[name]
    ours, plain = make_machine(name).get_params(), machine_class(name)().get_params()
    assert ours == {**plain, **alias.params}
    assert name not in MACHINES
    assert alias.label


def test_what_an_alias_fixes_stays_fixed():
    assert make_machine("m4_nu80", nu=0.9, C=3.0).get_params()["nu"] == 0.8


def test_labels_are_those_of_the_papers():
    names = ("svm", "fsvm", "sigma_svm", "mamc_bsg", "m4_nu100")
    assert [alias_of(n).label for n in names] == ["SVM", "F-SVM", "Σ-SVM", "MAMC_bsg", "M4, ν = 1"]


def test_a_path_names_a_class():
    assert machine_class("mmbench.machines.svm:SVM") is machine_class("svm")
    for path in ("no.such.module:SVM", "mmbench.machines.svm:SWM", ":", ".svm:SVM"):
        with pytest.raises(UserError, match="cannot be imported"):
            machine_class(path)


def test_names_cost_no_import():
    code = "import sys, mmbench.machines; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
