"""Machines whose solver is not installed are left out before the first job, with one line."""

from __future__ import annotations

import pytest

from mmbench.commands import experiments
from mmbench.commands.dry_run import dry_run
from mmbench.commands.experiments import plan_experiments
from mmbench.commands.options import Options
from mmbench.errors import UserError

CONFIG = {
    "name": "solved",
    "datasets": ["wine"],
    "protocol": {"test": {"kfold": 2}},
    "machines": {
        "svm": {},
        "ours": {"machine": "svm", "params": {"solver": "libsvm"}},
        "child": {"machine": "rmm", "use": "ours", "params": {"solver": "reference"}},
        "m4": {"grid": {"solver": ["clarabel", "ecos"]}},
    },
}
LINES = (
    "left out: ours; solver 'libsvm' needs the package libsvm-official: pip install "
    "'mmbench[libsvm]'",
    "left out: m4; solver 'ecos' needs the package ecos (Python 3.12 or older): pip install "
    "'mmbench[ecos]'",
)


@pytest.fixture(autouse=True)
def _without_solvers(monkeypatch):
    monkeypatch.setattr(experiments, "find_spec", lambda name: None)


def test_they_and_their_children_are_left_out(tmp_path):
    said: list[str] = []
    [planned] = plan_experiments([CONFIG], Options(tmp_path, store=tmp_path), said.append)
    assert {job.column for job in planned.jobs} == {"svm"}
    assert said == [f"solved: {line}" for line in LINES]
    assert all(line in dry_run([CONFIG], tmp_path, store=tmp_path) for line in LINES)


def test_a_run_of_them_alone_is_refused(tmp_path):
    options = Options(tmp_path, store=tmp_path, only=["machine=m4"])
    with pytest.raises(UserError, match="solved: left out: m4; solver 'ecos' needs"):
        plan_experiments([CONFIG], options)
