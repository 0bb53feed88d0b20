"""The table of solvers: what is compared with what, and columns that failed."""

from __future__ import annotations

from pathlib import Path

from helpers.drawn import table

from mmbench.config.plan import plan
from mmbench.config.read import load_config, to_yaml
from mmbench.jobs.store import RecordStore
from mmbench.running.worker import Context, execute

NO_STORE = Path("no-such-store")  # data inside scikit-learn need none

CONFIG = """\
name: solvers
datasets: [{name: digits, classes: [3, 8]}]
preprocess: minmax
kernel: linear
protocol: {test: {holdout: 0.5}, repeats: 1, seed: 0, max_train: 100}
machines:
  svm: {params: {C: 10}}
  svm_liblinear: {machine: svm, params: {C: 10, solver: liblinear}, label: LinearSVC}
  mpm: {params: {ridge: 0.01}}
  mpm_clarabel: {machine: mpm, params: {ridge: 0.01, solver: clarabel}, label: Clarabel}
layout: solvers
"""


def blocks(text: str) -> list[dict[str, list[str]]]:
    """Return the cells of each block by the first cell of their line."""
    found: list[dict[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("**"):
            found.append({})
        elif line.startswith("|"):
            first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
            found[-1][first] = rest
    return found


def test_the_solvers_of_one_machine_are_compared(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "config.yaml")
    store = RecordStore.create(tmp_path / "results" / config.name, to_yaml(config))
    values = {}
    for job in plan(config, NO_STORE, allow_network=False):
        record, arrays = execute(job, Context(NO_STORE))
        store.write(record, arrays)
        values[job.column] = record["per_pair"][0]["objective"]
    certificates, times = blocks(table(store.folder))[:2]
    excess = (values["svm_liblinear"] - values["svm"]) / values["svm_liblinear"]
    assert excess > 1e-4
    assert certificates["LinearSVC"][:2] == [f"{excess:.1e}"] * 2  # median and largest
    assert certificates["SVM"][:2] == ["<1e-15"] * 2
    assert float(certificates["Clarabel"][1]) < 1e-6  # beside the MPM, not beside the SVM
    assert [certificates[name][-2:] for name in ("SVM", "LinearSVC", "Clarabel")] == [
        ["–", "1 optimal"],
        ["1 optimal", "1 inaccurate"],
        ["1 optimal", "1 optimal"],
    ]
    assert times["solver"] == ["digits"]
    assert all(float(times[name][0]) > 0 for name in ("SVM", "LinearSVC", "MPM", "Clarabel"))


def test_a_solver_that_is_not_installed_says_so(results):
    experiment = results.experiment("solvers", layout="solvers")
    pair = {"objective": 2.0, "gap": None, "max_violation": 0.0, "n_support": 3}
    pair |= {"pair": [0, 1], "status": "inaccurate", "extra": {"solver_status": "time_limit"}}
    experiment.add(experiment.job("usps", "svm"), per_pair=[pair])
    reason = "solver 'ecos' needs the package ecos: pip install 'mmbench[solvers]'"
    experiment.fail(experiment.job("usps", "mpm"), reason=reason)
    experiment.plan(experiment.job("usps", "lda"))
    text = table(experiment.folder)
    certificates, times = blocks(text)[:2]
    assert certificates["SVM"][:5] == ["<1e-15", "<1e-15", "inf", "<1e-15", "3.0"]
    assert certificates["SVM"][5:] == ["1 time limit", "1 inaccurate"]
    assert certificates["MPM"] == [*["–"] * 6, "1 failed [1]"]
    assert times["MPM"] == ["–"]
    assert certificates["LDA"] == [*["–"] * 6, "not run"]
    assert f"MPM on usps: failed ({reason})" in text


def test_a_solver_without_an_objective_has_an_infinite_excess(results):
    experiment = results.experiment("solvers", layout="solvers")
    pair = {"pair": [0, 1], "extra": {}, "gap": 1e-9, "max_violation": 0.0, "n_support": 3}
    for variant, objective in (("good", 2.0), ("bad", None)):
        fit = pair | {"status": "optimal" if objective else "failed", "objective": objective}
        params = (("solver", variant),)
        job = experiment.job("usps", "svm", variant=variant, params=params)
        experiment.add(job, per_pair=[fit])
    certificates = blocks(table(experiment.folder))[0]
    found = {name.lower(): cells for name, cells in certificates.items()}
    assert found["good"][:2] == ["<1e-15", "<1e-15"]
    assert found["bad"][:2] == ["inf", "inf"]
