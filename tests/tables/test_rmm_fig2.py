"""Training time against training size: a real run on embedded digits, its table and its figure."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.drawn import figure, table

from mmbench.config.plan import plan
from mmbench.config.read import load_config, to_yaml
from mmbench.errors import UserError
from mmbench.jobs.store import RecordStore
from mmbench.running.worker import Context, execute

NO_STORE = Path("no-such-store")  # data inside scikit-learn need none

CONFIG = """\
name: rmm_fig2
datasets: [{name: digits, classes: [8, 3]}]
preprocess: unit_norm
kernel: poly
degree: 2
kernel_scaling: trace
protocol: {test: {holdout: 0.3}, seed: 0, max_train: [200, 50, 100]}
machines:
  svm: {params: {C: 1000, tol: 0.001}}
  rmm_b1: {params: {C: 1000, tol: 0.001}}
  rmm_b1_cold: {params: {C: 1000, tol: 0.001}}
  rmm_b3: {params: {C: 1000, tol: 0.001}}
layout: rmm_fig2
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The experiment, run; one more machine has no record."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "config.yaml").write_text(CONFIG)
    config = load_config(folder / "config.yaml")
    store = RecordStore.create(folder / "results" / config.name, to_yaml(config))
    jobs = plan(config, NO_STORE, allow_network=False)
    for job in jobs:
        store.write(*execute(job, Context(NO_STORE)))
    return store, jobs


def lines_of(text: str) -> list[list[str]]:
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


def test_seconds_of_the_svm_are_those_inside_the_rmms(results):
    names = ["svm", "rmm_b1", "rmm_b1_cold", "rmm_b2"]
    seconds = {"svm": {}, "rmm_b1": (2.0, 5.0), "rmm_b1_cold": (4.0, 50.0)}
    experiment = results.experiment("rmm_fig2", layout="rmm_fig2")
    for name in names:
        job = experiment.job("mnist", name)
        job = replace(job, split=replace(job.split, max_train=("nested", 1000)))
        experiment.plan(job)
        if name in seconds:
            parts = zip(("svm_cpu_seconds", "rmm_cpu_seconds"), seconds[name], strict=False)
            pair = {"pair": [0, 1], "status": "optimal", "extra": dict(parts)}
            experiment.add_unplanned(job, per_pair=[pair])
    rows = lines_of(table(experiment.folder))
    assert rows[0][:4] == ["rows", "SVM", "RMM B₁", "RMM B₁, cold"]
    assert rows[2][:4] == ["1000", "3", "5", "50"]


def test_every_machine_has_the_same_nested_rows(finished):
    store, jobs = finished
    assert [job.split.size for job in jobs] == [50] * 4 + [100] * 4 + [200] * 4
    records = [store.read(job.key) for job in jobs]
    digests = {(job.split.size, r["split"]["digest"]) for job, r in zip(jobs, records, strict=True)}
    assert len(digests) == 3
    assert [r["split"]["n_train"] for r in records] == [job.split.size for job in jobs]
    assert {tuple(map(str, r["per_pair"][0]["pair"])) for r in records} == {("3", "8")}
    tested = {tuple(store.arrays(job.key)["test_index"]) for job in jobs}
    assert len(tested) == 1


def test_test_rows_are_those_of_the_whole_set(finished):
    from mmbench.datasets.load import load_dataset

    store, jobs = finished
    arrays = store.arrays(jobs[0].key)
    whole = load_dataset("digits", store=NO_STORE)
    assert np.array_equal(whole.y[arrays["test_index"]], arrays["y_test"])


def test_the_table_has_a_line_a_size_and_exponents_last(finished):
    store, _ = finished
    text = table(store.folder)
    rows = lines_of(text)
    assert rows[0][:5] == ["rows", "SVM", "RMM B₁", "RMM B₁, cold", "RMM B₃"]
    assert [row[0] for row in rows[2:6]] == ["50", "100", "200", "exponent"]
    assert all("±" in cell for cell in rows[5][1:5])
    assert all(float(cell) > 0 for row in rows[2:5] for cell in row[1:5])
    assert "digits: classes 3, 8 of 10" in text


def test_whole_trainings_add_up(finished):
    store, _ = finished
    rows = lines_of(table(store.folder))
    head = ["rows", "Gram matrix", "SVM", "RMM B₁", "RMM B₁, cold", "RMM B₃"]
    start = rows.index(head)
    parts, totals = rows[4], rows[start + 4]  # 200 rows
    assert parts[0] == totals[0] == "200"
    gram, svm = float(totals[1]), float(parts[1])
    assert float(totals[2]) == pytest.approx(gram + svm, rel=0.02)
    for own, both in zip(parts[2:5], totals[3:], strict=True):
        seconds, ratio = both.rstrip(")").split(" (")
        assert float(seconds) == pytest.approx(gram + svm + float(own), rel=0.02)
        assert float(ratio) == pytest.approx(float(seconds) / float(totals[2]), abs=0.05)


def test_the_long_table_has_a_column_for_the_size(finished):
    store, _ = finished
    rows = list(csv.DictReader(io.StringIO(table(store.folder, "csv"))))
    assert list(rows[0])[3:6] == ["degree", "size", "machine"]
    trained = {(row["size"], row["machine"]) for row in rows if row["metric"] == "errors_count"}
    assert len(trained) == 12
    assert all(row["n"] == "1" for row in rows if row["metric"] == "errors_count")


def test_any_experiment_may_have_several_sizes(finished):
    store, _ = finished
    rows = lines_of(table(store.folder, layout="generic"))
    assert rows[0][:4] == ["data set", "kernel", "rows", "SVM"]
    assert [row[2] for row in rows[2:5]] == ["50", "100", "200"]
    with pytest.raises(UserError, match="mmrm_table1 cannot show several training sizes; generic"):
        table(store.folder, layout="mmrm_table1")


def test_the_figure_tells_exponents_and_ratios(finished, tmp_path):
    store, _ = finished
    text = figure("rmm_fig2", store.folder, tmp_path / "fig2.png")
    assert (tmp_path / "fig2.png").stat().st_size > 10_000
    starts = [line.partition(" exponent")[0].strip() for line in text.splitlines()]
    machines = ["SVM", "RMM B₁", "RMM B₁, cold", "RMM B₃"]
    assert starts == [*machines, "whole trainings:", *machines]
    assert text.count("of 200 rows") == 8
    assert text.count("times the SVM") == 6


def test_a_figure_of_one_size_is_refused(results, finished, tmp_path):
    store, jobs = finished
    experiment = results.experiment("rmm_fig2", datasets=["digits"], kernel="poly", degree=2)
    for job in jobs[:2]:
        alone = replace(job, split=replace(job.split, max_train=50))
        experiment.store.write(store.read(job.key) | {"key": alone.key, "job": alone.to_dict()})
    with pytest.raises(UserError, match="needs several training sizes"):
        figure("rmm_fig2", experiment.folder, tmp_path / "fig2.png")


@pytest.mark.parametrize(("name", "value"), [(None, "98.0"), ("", ""), ("usps", "98.0")])
def test_a_data_set_is_compared_with_the_lines_of_its_published_name(results, name, value):
    published_as = {} if name is None else {"usps": name}
    experiment = results.experiment("own", layout="mmrm_table2", published_as=published_as)
    experiment.add(experiment.job("usps", "svm"), 5)
    rows = csv.DictReader(io.StringIO(table(experiment.folder, "csv")))
    assert {row["metric"]: row["published"] for row in rows}["errors_count"] == value
