"""The M4 paper's figures: toy sets from a run of one draw, the reduction from invented records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.drawn import figure

from mmbench.datasets.generators import CLASSES, bayes, sample_of
from mmbench.datasets.load import dataset_hash
from mmbench.errors import UserError
from mmbench.jobs.job import DatasetRef, Job, SplitRef
from mmbench.running.worker import Context, execute

NO_STORE = Path("no-such-store")  # drawn data need none


@pytest.fixture(scope="module")
def runs():
    """One draw of sets I and II with the three machines, the SVM's C selected: records, arrays."""
    found = []
    for dataset in ("toy_1", "toy_2"):
        content = dataset_hash(dataset, store=NO_STORE)
        for machine in ("m4", "svm", "mpm"):
            split, grid = SplitRef("predefined"), (("C", (0.01,)),) if machine == "svm" else ()
            given = ("m4_table1", DatasetRef(dataset), content, split, machine, "linear")
            job = Job(*given, grid=grid)
            found.append(execute(job, Context(NO_STORE)))
    return found


@pytest.fixture
def toy(results, runs):
    machines = {machine: {} for machine in ("m4", "svm", "mpm")}
    experiment = results.experiment(
        "m4_table1", datasets=["toy_1", "toy_2"], kernel="linear", machines=machines
    )
    for record, arrays in runs:
        experiment.store.write(record, arrays)
    return experiment


def test_boundaries_are_drawn_for_machines_that_decide_as_their_records(toy, tmp_path):
    text = figure("m4_fig5", toy.folder, tmp_path / "fig5.png")
    assert (tmp_path / "fig5.png").stat().st_size > 10_000
    assert [line.partition(":")[0] for line in text.splitlines()] == ["Set I", "Set II"]
    assert text.count("M4") == text.count("SVM") == text.count("MPM") == 2
    for line in text.splitlines():  # equal dashes in both panels
        assert line.index("M4") < line.index("SVM") < line.index("MPM")


def test_machines_with_equal_labels_are_all_drawn(results, runs, tmp_path):
    cells = {"machines": ["m4", "svm", "mpm"], "kernel": "linear", "labels": {"mpm": "SVM"}}
    experiment = results.experiment("m4_table1", datasets=["toy_1", "toy_2"], **cells)
    for record, arrays in runs:
        experiment.store.write(record, arrays)
    assert figure("m4_fig5", experiment.folder, tmp_path / "fig5.png").count("SVM") == 4


@pytest.fixture(scope="module")
def half():
    """The M4 with nu = 0.5 on set I, as a further column."""
    given = ("m4_table1", DatasetRef("toy_1"), dataset_hash("toy_1", store=NO_STORE))
    job = Job(*given, SplitRef("predefined"), "m4", "linear", params=(("nu", 0.5),))
    return execute(replace(job, variant="m4_half"), Context(NO_STORE))


@pytest.mark.parametrize("alone", [False, True])
def test_a_variant_of_a_machine_is_drawn_beside_it(results, runs, half, tmp_path, alone):
    cells = {"machines": ["m4", "m4_half", "svm"], "kernel": "linear"}
    cells["labels"] = {"m4_half": "half"}
    experiment = results.experiment("m4_table1", datasets=["toy_1", "toy_2"], **cells)
    accuracy = half[0]["metrics"]["accuracy_pct"]
    for record, arrays in [*runs, half]:
        job, changed = record["job"], {}
        if (job["machine"], job.get("variant", ""), job["dataset"]["name"]) == ("m4", "", "toy_1"):
            if alone:
                continue
            changed = {"metrics": {**record["metrics"], "accuracy_pct": accuracy - 1}}
        experiment.store.write(record | changed, arrays)
    text = figure("m4_fig5", experiment.folder, tmp_path / "fig5.png").splitlines()[0]
    assert f"half {accuracy:.1f} %" in text
    assert (f"M4 {accuracy - 1:.1f} %" in text) != alone


def test_a_set_without_records_is_named(toy, tmp_path):
    with pytest.raises(UserError, match="m4 on toy_3"):
        figure("m4_fig6", toy.folder, tmp_path / "fig6.png")


def test_a_machine_that_decides_otherwise_than_its_record_is_not_drawn(results, runs, tmp_path):
    experiment = results.experiment("m4_table1", datasets=["toy_1", "toy_2"], kernel="linear")
    for record, arrays in runs:
        experiment.store.write(record, arrays | {"decisions": 2 * arrays["decisions"]})
    with pytest.raises(UserError, match="decision values differ from those in the record"):
        figure("m4_fig5", experiment.folder, tmp_path / "fig5.png")


@pytest.mark.parametrize("name", CLASSES)
def test_bayes_separates_samples_better_than_their_means(name):
    random = np.random.RandomState(0)
    x, y = (sample_of(parts, random, 2000) for parts in CLASSES[name])
    best = 0.5 * ((bayes(name, x) < 0).mean() + (bayes(name, y) > 0).mean())
    w = y.mean(axis=0) - x.mean(axis=0)
    b = 0.5 * w @ (x + y).mean(axis=0)
    assert best >= 0.5 * ((x @ w < b).mean() + (y @ w > b).mean())


@pytest.mark.parametrize("name", CLASSES)
def test_densities_integrate_to_one(name):
    across = np.linspace(-25, 25, 501)
    grid = np.column_stack([part.ravel() for part in np.meshgrid(across, across)])
    for parts in CLASSES[name]:
        density = np.mean([part.density(grid) for part in parts], axis=0)
        assert density.sum() * 0.1**2 == pytest.approx(1, abs=1e-6)


def test_the_reduction_s_curve_ends_beside_the_mpm(results, tmp_path):
    names = ("m4", "m4_nu90", "m4_nu100", "mpm")
    experiment = results.experiment("m4_fig7", datasets=["heart"], kernel="linear")
    split = {"digest": "d", "origin": "drawn", "n_train": 200, "n_test": 30}
    for k, machine in enumerate(names):
        for repeat in range(2):
            kept = {"kept": 100} if "nu" in machine else {}
            defaults = (("nu", 0.0),) if machine == "m4" else ()
            more = {"repeat": repeat, "rule": "holdout", "kernel": "linear", "defaults": defaults}
            job = experiment.job("heart", machine, **more)
            pair = [{"pair": [0, 1], "status": "optimal", "extra": kept}]
            seconds = {"selection": 0.0, "training": 0.004 / (k + 1), "test": 0.0}
            experiment.add(job, 3 + k, 30, split=split, per_pair=pair, cpu_seconds=seconds)
    text = figure("m4_fig7", experiment.folder, tmp_path / "fig7.svg")
    lines = text.splitlines()
    heads = ["heart, M4", "heart, M4, ν = 0.9", "heart, M4, ν = 1", "heart, MPM"]
    assert [line.partition(":")[0] for line in lines] == heads
    assert lines[0].endswith("4.00 ms, 100 % of the rows kept")
    assert lines[1].endswith("2.00 ms, 50 % of the rows kept")
    assert lines[3].endswith("1.00 ms")


def test_a_data_set_without_reduced_machines_has_the_line_of_the_mpm(results, tmp_path):
    experiment = results.experiment("m4_fig7", datasets=["heart", "pima"], kernel="linear")
    for dataset, machine in (("heart", "m4_nu100"), ("heart", "mpm"), ("pima", "mpm")):
        experiment.add(experiment.job(dataset, machine, rule="holdout", kernel="linear"), 3, 30)
    text = figure("m4_fig7", experiment.folder, tmp_path / "fig7.svg")
    assert [line.partition(":")[0] for line in text.splitlines()] == [
        "heart, M4, ν = 1",
        "heart, MPM",
        "pima, MPM",
    ]


def test_curves_of_two_kernels_are_refused(results, tmp_path):
    experiment = results.experiment("m4_fig7", datasets=["heart"], kernel=["linear", "rbf"])
    for kernel in ("linear", "rbf"):
        experiment.add(experiment.job("heart", "m4_nu100", kernel=kernel), 3, 30)
    with pytest.raises(UserError, match="results of one kernel"):
        figure("m4_fig7", experiment.folder, tmp_path / "fig7.svg")
