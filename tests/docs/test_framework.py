"""The gallery's script on section 2 of the MMRM paper: one program has the w of every machine."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "plot_framework.py"


@pytest.fixture(scope="module")
def script():
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="needs the extra mmbench[report]")
    pyplot.switch_backend("agg")
    yield runpy.run_path(str(SCRIPT))
    pyplot.close("all")


def test_one_program_finds_the_w_of_every_machine(script):
    irises = load_iris().data[:100], np.repeat([-1, 1], 50)
    for X, y in ((script["X"], script["y"]), irises):
        differences = script["differences_of"](X, y)
        assert len(differences) == 8
        assert max(differences.values()) < 1e-6


def test_the_dispersion_that_the_paper_states_for_the_rmm_is_another(script):
    """(14) at a fixed gap adds the largest decisions of both classes; the RMM bounds each."""
    X, y = script["X"], script["y"]
    (_, _, _, B), machine = script["machines_of"](X, y)["RMM"]
    f = y * machine.fit(X, y).decision_function(X)
    largest = [f[y == label].max() for label in (-1, 1)]
    assert max(largest) == pytest.approx(B, rel=1e-6)
    assert min(largest) < 0.9 * B
