"""The machines need few packages; the runner needs the others, and Numba saves time."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
#: The packages that docs/start.md installs for the machines alone, and what scikit-learn installs.
ALONE = {"numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "clarabel", "highspy"}
OTHERS = {re.split("[<>=]", name)[0] for name in PROJECT["dependencies"]} - ALONE

FITS = """
import sys
import warnings
from importlib.abc import MetaPathFinder


class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv:
            raise ModuleNotFoundError(name)


sys.meta_path.insert(0, Missing())
from sklearn.datasets import load_wine

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from mmbench.machines import MACHINES, machine_class

    X, y = (rows[::6] for rows in load_wine(return_X_y=True))
    for name in MACHINES:
        for kernel in ("linear", "rbf"):
            fitted = machine_class(name)(kernel=kernel).fit(X, y)
            print(name, kernel, *(fit.status for fit in fitted.fits_), fitted.score(X, y))
for found in caught:
    print(found.message, file=sys.stderr)
"""


def test_machines_fit_without_other_packages_and_a_warning_names_the_cost(monkeypatch, capsys):
    assert "numba" in OTHERS
    names = [{"pyyaml": "yaml"}.get(name, name) for name in ("llvmlite", *OTHERS)]
    code = [sys.executable, "-c", FITS, *names]
    alone = subprocess.run(code, capture_output=True, text=True, check=True)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    exec(FITS, {})  # with all packages, in the process of the tests
    assert capsys.readouterr() == (alone.stdout, "")
    warned = "Numba is not installed: .* 200 times .* `pip install numba`\n"
    assert re.fullmatch(warned, alone.stderr)
