"""No number, picture or file follows from the words of a table, a label or a heading."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from results.reworded import reworded_copy

import mmbench
from mmbench.resources import REFERENCE

ROOT = REFERENCE.parents[1]
CONFIG = {
    "name": "own",
    "datasets": ["iris", "wine"],
    "kernel": "linear",
    "machines": {
        "svm": {"grid": {"C": [0.1, 1, 10]}},
        "lda": {},
        "nb": {"estimator": "sklearn.naive_bayes.GaussianNB", "label": "Bayes, 0.9"},
    },
    "metrics": ["accuracy", "confusion_matrix", "auc"],
}


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_other_words_change_no_number(tmp_path: Path) -> None:
    runs = []
    for seed in (0, 1):
        config = CONFIG | {"protocol": {"test": {"kfold": 5}, "seed": seed}}
        (done,) = mmbench.run(config, tmp_path / f"seed_{seed}", jobs=1)
        runs.append(str(done.folder))
    copy = tmp_path / "copy"
    reworded_copy(ROOT, copy)
    found = []
    for folder in (ROOT, copy):
        file, env = tmp_path / "texts.json", {**os.environ, "PYTHONPATH": str(folder)}
        script = Path(__file__).with_name("reworded.py")
        subprocess.run([sys.executable, script, *runs, file], cwd=folder, env=env, check=True)
        found.append(json.loads(file.read_text()))
    ours, theirs = ({k: re.sub(r"[^\W\d_]", "x", text) for k, text in f.items()} for f in found)
    assert sum(found[0][name] != found[1][name] for name in found[0]) > 0.8 * len(found[0])
    assert {name for name in ours if ours[name] != theirs[name]} == set()
