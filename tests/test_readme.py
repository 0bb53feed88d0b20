"""What the README shows works when it is typed to the letter."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.utils.estimator_checks import check_estimator

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")


def python_block(word: str) -> str:
    """Return the one block of Python that has a word in it."""
    (block,) = [text for text in re.findall(r"```python\n(.*?)```", README, re.S) if word in text]
    return block


def test_the_example_of_scikit_learn_runs(capsys):
    exec(python_block("cross_val_score"), {})
    score, status = capsys.readouterr().out.split("\n")[:2]
    assert float(score) > 0.9
    assert status.startswith("optimal ")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_the_example_of_a_machine_is_a_certified_classifier(tmp_path, monkeypatch):
    (tmp_path / "my_machine.py").write_text(python_block("class KernelRidge"))
    monkeypatch.syspath_prepend(tmp_path)
    machine = importlib.import_module("my_machine").KernelRidge
    check_estimator(machine())
    X, y = load_wine(return_X_y=True)
    fitted = machine(C=100.0).fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert [str(fit.status) for fit in fitted.fits_] == ["optimal"] * 3
    assert fitted.score((X - X.mean(axis=0)) / X.std(axis=0), y) > 0.95
    assert np.isfinite(fitted.intercept_).all()
