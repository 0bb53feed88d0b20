"""Records to the long table: spread, band, and everything that must not be silent."""

from __future__ import annotations

import csv
import io
import math

import pandas as pd
import pytest
from helpers.drawn import rows_of, table

from mmbench.commands.outputs import export
from mmbench.errors import Status
from mmbench.jobs.identity import fingerprint
from mmbench.jobs.store import CONFIG, PLAN, RecordStore
from mmbench.results.columns import names


def cell(experiment, machine: str, metric: str, **options):
    rows = rows_of(experiment.folder, **options)
    (row,) = [row for row in rows if (row.machine, row.metric) == (machine, metric)]
    return row


def holdouts(experiment, machine: str, errors: list[int], dataset: str = "pima", **job):
    for repeat, count in enumerate(errors):
        experiment.add(
            experiment.job(dataset, machine, repeat=repeat, rule="holdout", **job), count, 77
        )


# -- failed fits -------------------------------------------------------------------------------


@pytest.fixture
def half_failed(results):
    """Three splits of the SVM and of the MMRM, one of whose fits has failed."""
    experiment = results.experiment("own", datasets=["pima"], machines=["svm", "mmrm"])
    holdouts(experiment, "svm", [7, 7, 7])
    holdouts(experiment, "mmrm", [7, 14])
    failed = {"statuses": {"failed": 1}}
    job = experiment.job("pima", "mmrm", repeat=2, rule="holdout")
    experiment.add(job, 70, 77, status=Status.FAILED, fits=failed)
    return experiment


def test_a_split_with_a_failed_fit_is_left_out_of_the_mean_and_said(half_failed) -> None:
    row = cell(half_failed, "mmrm", "errors_count")
    assert (row.measured, row.n, row.status) == (10.5, 2, "failed")
    assert "1 failed, 1 of 3 splits not counted" in row.note
    assert "1 of 3 splits not counted" in table(half_failed.folder)


def test_a_split_with_a_failed_fit_is_left_out_of_tests_and_predictions(half_failed) -> None:
    # Differences from the SVM: 0 and 7 of 77 rows; the failed fit has 63 errors more.
    assert "−4.55" in table(half_failed.folder, layout="comparison")


def test_a_reference_table_leaves_out_splits_with_a_failed_fit(half_failed, tmp_path) -> None:
    reference = tmp_path / "reference" / "own"
    reference.mkdir(parents=True)
    table(half_failed.folder, output=reference / "table.csv")
    export([half_failed.folder], output=reference / "splits.csv.gz")
    assert "−4.55" in table(reference, layout="comparison")


def test_a_cell_with_a_failed_fit_is_not_compared(results) -> None:
    experiment = results.experiment("mmrm_table1", layout="mmrm_table1")
    holdouts(experiment, "svm", [17, 18], kernel="linear")
    assert cell(experiment, "svm", "accuracy_pct").in_band is True
    job = experiment.job("pima", "svm", repeat=2, rule="holdout", kernel="linear")
    experiment.add(job, 17, 77, fits={"statuses": {"failed": 1}})
    row = cell(experiment, "svm", "accuracy_pct")
    assert (row.n, row.in_band) == (2, None)


def test_all_splits_count_where_that_is_asked_for(half_failed) -> None:
    text = table(half_failed.folder, "csv", include_failed=True)
    (row,) = [
        r
        for r in csv.DictReader(io.StringIO(text))
        if r["machine"] == "mmrm" and r["metric"] == "errors_count"
    ]
    assert float(row["measured"]) == pytest.approx(91 / 3)
    assert "1 of 3 splits included in the means" in row["note"]


def test_a_cell_of_failed_fits_alone_has_no_accuracy(results) -> None:
    experiment = results.experiment("own", datasets=["pima"])
    job = experiment.job("pima", "mmrm")
    experiment.add(job, 70, 77, status=Status.FAILED, fits={"statuses": {"failed": 1}})
    assert cell(experiment, "mmrm", "accuracy_pct").measured is None
    assert "| failed" in table(experiment.folder)


# -- single runs -------------------------------------------------------------------------------


def test_a_single_run_has_the_binomial_standard_error(usps) -> None:
    row = cell(usps, "svm", "errors_count")
    assert row.se == pytest.approx(math.sqrt(91 * (1 - 91 / 2007)))
    assert row.sd is None
    accuracy = cell(usps, "svm", "accuracy_pct")
    assert accuracy.se == pytest.approx(100 * row.se / 2007)


def test_a_published_count_within_two_counting_errors_is_in_band(usps) -> None:
    row = cell(usps, "svm", "errors_count")
    assert (row.published, row.in_band) == (98, True)


def test_a_published_count_outside_is_not_in_band(results) -> None:
    experiment = results.experiment("usps_rbf", datasets=["usps"], layout="mmrm_table2")
    sizes = {"origin": "official", "n_train": 7291, "n_test": 2007}
    experiment.add(experiment.job("usps", "mmrm"), 60, 2007, split=sizes)
    assert cell(experiment, "mmrm", "errors_count").in_band is False


def test_another_number_of_training_rows_is_not_compared(results) -> None:
    experiment = results.experiment("isolet_part", datasets=["isolet"], layout="mmrm_table2")
    sizes = {"origin": "official", "n_train": 1560, "n_test": 1559}
    experiment.add(experiment.job("isolet", "svm"), 52, 1559, split=sizes)
    row = cell(experiment, "svm", "errors_count")
    assert row.published == 52
    assert row.in_band is None
    assert "trained on 1560 rows, the paper on 6238" in row.note


# -- several splits ----------------------------------------------------------------------------


def test_several_splits_have_mean_deviation_and_standard_error(results) -> None:
    experiment = results.experiment("own")
    holdouts(experiment, "svm", [10, 12, 17])
    row = cell(experiment, "svm", "errors_count")
    assert row.measured == 13
    assert row.sd == pytest.approx(math.sqrt(13))
    assert row.se == pytest.approx(math.sqrt(13 / 3))
    assert row.n == 3


@pytest.mark.parametrize(("one", "inside"), [(15, True), (14, False)])
def test_the_band_of_partitions_counts_the_papers_partitions_too(results, one, inside) -> None:
    # The published 77.9 is 2.05 (2.16) of our standard errors away; with the paper's own noise
    # over 50 partitions the band is 2 sqrt(1 + 8/50) = 2.15 of them wide.
    experiment = results.experiment("mmrm_table1", layout="mmrm_table1")
    holdouts(experiment, "svm", [12, 12, 12, one, 15, 18, 18, 18], kernel="linear")
    row = cell(experiment, "svm", "accuracy_pct")
    assert abs(row.published - row.measured) > 2 * row.se
    assert row.in_band == inside


@pytest.mark.parametrize(
    ("errors", "inside"), [([12, 14, 13, 15], False), ([17, 17, 17, 18], True)]
)
def test_a_printed_standard_error_has_a_band_beside_the_other(results, errors, inside) -> None:
    # The published 77.9 (0.4): the paper's standard error replaces sd / sqrt(50).
    experiment = results.experiment("mmrm_table1", layout="mmrm_table1")
    holdouts(experiment, "svm", errors, kernel="linear")
    row = cell(experiment, "svm", "accuracy_pct")
    assert row.half_width_published_se == pytest.approx(2 * math.hypot(row.se, 0.4))
    assert row.in_band_published_se == inside
    assert inside == (abs(row.published - row.measured) <= row.half_width_published_se)
    errors_row = cell(experiment, "svm", "errors_count")
    assert (errors_row.half_width_published_se, errors_row.in_band_published_se) == (None, None)


def test_a_printed_standard_deviation_has_no_second_band(results) -> None:
    experiment = results.experiment("mamc_table2", layout="mamc_table2")
    split = {"n_train": 170, "n_test": 100}
    for repeat, errors in enumerate([17, 18, 19]):
        job = experiment.job("ida_heart", "svm", repeat=repeat, rule="holdout")
        experiment.add(job, errors, 100, split=split)
    row = cell(experiment, "svm", "accuracy_pct")
    assert (row.published_spread, row.in_band) == (3.37, True)
    assert row.half_width_published_se is None


def test_the_csv_has_half_width_and_z_of_a_comparison(usps) -> None:
    row = cell(usps, "svm", "errors_count")
    assert row.half_width == pytest.approx(2 * math.sqrt(91 * (1 - 91 / 2007)))
    assert row.z == pytest.approx((98 - 91) / (row.half_width / 2))
    assert row.in_band
    columns = csv.DictReader(io.StringIO(table(usps.folder, "csv")))
    (line,) = [r for r in columns if (r["machine"], r["metric"]) == ("svm", "errors_count")]
    assert float(line["z"]) == pytest.approx(row.z)


@pytest.mark.parametrize("errors", [(60, 20), (20, 60)])
def test_the_band_of_seeds_does_not_depend_on_which_record_is_first(results, errors) -> None:
    experiment = results.experiment("usps_rbf", layout="mmrm_table2")
    split = {"n_train": 7291, "n_test": 2007}
    for repeat, count in enumerate(errors):
        experiment.add(experiment.job("usps", "svm", repeat=repeat), count, 2007, split=split)
    sd = math.sqrt(800)
    seeds = math.hypot(sd / math.sqrt(2), sd)  # the paper had one run
    se = math.hypot(seeds, math.sqrt(40 * (1 - 40 / 2007)))
    assert cell(experiment, "svm", "errors_count").half_width == pytest.approx(2 * se)


def test_a_smoke_table_compares_nothing(results) -> None:
    experiment = results.experiment("usps_rbf-smoke", layout="mmrm_table2", smoke=True)
    for machine, n_train in (("svm", 7291), ("rmm", 500)):
        split = {"n_train": n_train, "n_test": 2007}
        experiment.add(experiment.job("usps", machine), 91, 2007, split=split)
        row = cell(experiment, machine, "errors_count")
        assert (row.published is None, row.in_band, row.z, row.note) == (False, None, None, "")
    text = table(experiment.folder)
    assert not {"✓", "~", "✗"} & set(text)
    assert "not compared with the paper" in text


# -- nothing silent ----------------------------------------------------------------------------


def test_a_failed_cell_shows_its_status_and_reason_and_no_number(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"))
    experiment.fail(experiment.job("pima", "mmrm"), Status.MEMORY_LIMIT, "needs 9 GB")
    row = cell(experiment, "mmrm", "accuracy_pct")
    assert row.measured is None
    assert row.status == "memory_limit"
    assert "needs 9 GB" in row.note


def test_a_partly_failed_cell_is_marked_and_not_compared(results) -> None:
    experiment = results.experiment("mmrm_table1", layout="mmrm_table1")
    holdouts(experiment, "svm", [17, 18], kernel="linear")
    job = experiment.job("pima", "svm", repeat=2, rule="holdout", kernel="linear")
    experiment.fail(job, Status.TIME_LIMIT, "too slow")
    row = cell(experiment, "svm", "accuracy_pct")
    assert (row.n, row.status) == (2, "time_limit")
    assert row.in_band is None
    assert row.note == "2 of 3 splits done, 1 failed (too slow)"


def test_splits_that_another_machine_has_are_missed(results) -> None:
    experiment = results.experiment("own")
    holdouts(experiment, "svm", [10, 11, 12])
    holdouts(experiment, "rmm", [10, 11])
    row = cell(experiment, "rmm", "accuracy_pct")
    assert row.status == "missing"
    assert row.note == "2 of 3 splits done, 1 not run"


def test_splits_that_are_planned_are_missed(results) -> None:
    experiment = results.experiment("own", splits=10)
    experiment.add(experiment.job("pima", "svm"))
    assert cell(experiment, "svm", "accuracy_pct").note.startswith("1 of 10 splits")


def test_a_machine_without_any_record_has_a_missing_cell(results) -> None:
    experiment = results.experiment("own", datasets=["pima"], machines=["svm", "rmm"])
    experiment.add(experiment.job("pima", "svm"))
    row = cell(experiment, "rmm", "accuracy_pct")
    assert (row.status, row.note) == ("missing", "not run")


def test_fits_that_are_not_optimal_are_counted_in_the_note(results) -> None:
    experiment = results.experiment("own")
    fits = {"statuses": {"optimal": 43, "trivial": 2}, "worst_violation": 1e-7, "worst_gap": 1e-9}
    experiment.add(experiment.job("pima", "mmrm"), fits=fits)
    row = cell(experiment, "mmrm", "accuracy_pct")
    assert (row.status, row.note) == ("trivial", "of 45 fits 2 trivial")


def test_certificates_are_the_worst_of_all_splits(results) -> None:
    experiment = results.experiment("own")
    for repeat, gap in enumerate((1e-9, 3e-7)):
        fits = {"statuses": {"optimal": 1}, "worst_violation": 1e-8, "worst_gap": gap}
        experiment.add(experiment.job("pima", "svm", repeat=repeat), fits=fits)
    assert cell(experiment, "svm", "worst_gap").measured == 3e-7


# -- published values --------------------------------------------------------------------------


def test_a_published_only_machine_has_its_published_value_alone(results) -> None:
    experiment = results.experiment(
        "mmrm_table1",
        datasets=["pima"],
        kernel="linear",
        machines=["svm"],
        published_only=["m4"],
        layout="mmrm_table1",
    )
    holdouts(experiment, "svm", [17, 18], kernel="linear")
    row = cell(experiment, "m4", "accuracy_pct")
    assert (row.published, row.published_spread) == (77.7, 0.4)
    assert row.measured is None
    assert row.status == "published_only"


def test_a_doubtful_published_value_is_shown_but_not_compared(results) -> None:
    experiment = results.experiment("mmrm_table1", datasets=["sonar"], layout="mmrm_table1")
    holdouts(experiment, "m4", [3, 4], dataset="sonar")
    row = cell(experiment, "m4", "accuracy_pct")
    assert row.published == 87.3
    assert row.in_band is None
    assert "no target" in row.objection


def test_data_sets_with_one_published_name_are_all_compared(results) -> None:
    published_as = {"cleaned": "usps", "scaled": "usps", "sonar": ""}
    experiment = results.experiment("own", layout="mmrm_table2", published_as=published_as)
    for name in ("usps", *published_as):
        experiment.add(experiment.job(name, "svm"))
    rows = [r for r in rows_of(experiment.folder) if r.metric == "errors_count"]
    assert {row.dataset: row.published for row in rows} == {
        **dict.fromkeys(["usps", "cleaned", "scaled"], 98),
        "sonar": None,
    }


# -- other settings ------------------------------------------------------------------------------


def test_records_that_are_not_planned_are_left_out_and_counted(results) -> None:
    experiment = results.experiment("own", datasets=["pima"], machines=["svm", "rmm"])
    experiment.add(experiment.job("pima", "svm", grid=(("C", (1.0,)),)), 10)
    experiment.add_unplanned(experiment.job("pima", "svm", grid=(("C", (2.0,)),)), 20)
    experiment.add_unplanned(with_seed(experiment.job("pima", "rmm"), 1), 30)
    text = table(experiment.folder)
    assert "90.0" in text and "80.0" not in text and "70.0" not in text
    assert "not run" in text
    assert "Records of other settings or earlier versions left out: 2" in text


def test_machines_with_grids_of_their_own_are_not_mixed(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm", grid=(("C", (1.0,)),)))
    experiment.add(experiment.job("pima", "rmm", grid=(("B", (2.0,)),)))
    text = table(experiment.folder)
    assert "RMM" in text and "mixed" not in text and "left out" not in text


def test_a_mixed_table_says_so(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"), 10)
    experiment.add_unplanned(with_seed(experiment.job("pima", "svm"), 1), 12)
    assert "different settings are mixed" in table(experiment.folder, mix=True)
    row = cell(experiment, "svm", "errors_count", mix=True)
    assert (row.measured, row.n, row.note) == (11, 2, "")


def test_without_a_plan_all_seeds_are_shown(results) -> None:
    experiment = results.experiment("own")
    for seed, errors in enumerate((10, 12, 17)):
        experiment.add(with_seed(experiment.job("pima", "svm"), seed), errors)
    (experiment.folder / PLAN).unlink()
    assert cell(experiment, "svm", "errors_count").n == 3


def with_seed(job, seed: int):
    from dataclasses import replace

    return replace(job, split=replace(job.split, seed=seed))


# -- folders of earlier versions of mmbench, which have no plan ------------------------------------


@pytest.fixture
def old(results):
    """Two versions of a machine, and one that took over from the first."""
    experiment = results.experiment("own", datasets=["pima"], machines=["svm", "rmm"])
    keys = {}
    for version, errors in ((1, 50), (2, 20)):
        svm = experiment.job("pima", "svm", machine_version=version)
        keys[version] = experiment.add_unplanned(svm, errors)
    experiment.add_unplanned(experiment.job("pima", "rmm", use="svm", parent=keys[1]), 40)
    (experiment.folder / PLAN).unlink()
    return experiment, experiment.job("pima", "rmm", use="svm", parent=keys[2])


def test_without_a_plan_the_last_version_counts_and_what_was_built_on_it(old) -> None:
    experiment, child = old
    text = table(experiment.folder)
    assert "80.0" in text and "50.0" not in text and "60.0" not in text
    assert "Records of other settings or earlier versions left out: 2" in text
    experiment.add_unplanned(child, 10)
    assert "90.0" in table(experiment.folder)


def test_without_a_plan_a_record_follows_its_parent_in_the_same_cell(results) -> None:
    experiment = results.experiment("own")
    parent = experiment.job("pima", "svm")
    for machine, errors in {"svm": 20, "rmm": 30}.items():
        heir = experiment.job("pima", machine, use="svm", parent=parent.key)
        experiment.add(heir, errors)
    experiment.add(parent, 50)  # within the same second
    (experiment.folder / PLAN).unlink()
    text = table(experiment.folder)
    assert "80.0" in text and "70.0" in text and "50.0" not in text


def test_without_a_plan_the_text_of_the_configuration_names_labels_and_order(results) -> None:
    experiment = results.experiment("own", machines=["svm", "rmm"], datasets=["pima"])
    for machine in ("svm", "rmm"):
        experiment.add(experiment.job("pima", machine))
    (experiment.folder / PLAN).unlink()
    text = "machines: {rmm: {label: Mine}, svm: {estimator: 'os:getcwd'}}\nlayout: machines\n"
    (experiment.folder / CONFIG).write_text(text)
    shown = table(experiment.folder)
    assert shown.index("| Mine ") < shown.index("| svm ") and "selected |" in shown
    assert "No plan.json: table cells without records are not shown." in shown


@pytest.mark.parametrize("damage", ["{", "{}", "[" * 100_000])
def test_a_damaged_plan_is_told_and_made_again(usps, damage: str) -> None:
    (usps.folder / PLAN).write_text(damage)
    text = table(usps.folder, layout="mmrm_table2")
    assert "92 / 89" in text
    assert "plan.json is damaged" in text


@pytest.mark.parametrize(
    ("name", "said"), [(PLAN, "is damaged"), (CONFIG, "differs from the last run")]
)
def test_damage_beside_the_records_is_told_by_every_command(results, name: str, said: str) -> None:
    experiment = results.experiment("own", datasets=["pima"], machines=["svm"])
    experiment.add(experiment.job("pima", "svm"))
    RecordStore.create(experiment.folder, "name: own\n", experiment.store.plan())
    assert experiment.store.damage() == []
    path, told = experiment.folder / name, []
    path.write_bytes(path.read_bytes()[:-5] + b"#" + path.read_bytes()[-4:])
    assert said in table(experiment.folder)
    export([experiment.folder], say=told.append)
    assert any(name in line and said in line for line in told)


# -- marks -------------------------------------------------------------------------------------


def test_a_mark_says_whether_the_band_tells_the_machines_apart(results) -> None:
    # Published: SVM 98, RMM 96, MMRM 89 errors of 2007; a band is about 17 errors on each side.
    experiment = results.experiment("usps_rbf", layout="mmrm_table2")
    for machine, errors in (("svm", 70), ("rmm", 90), ("mmrm", 75)):
        split = {"n_train": 7291, "n_test": 2007}
        experiment.add(experiment.job("usps", machine), errors, 2007, split=split)
    frame = pd.read_csv(io.StringIO(table(experiment.folder, fmt="csv")))
    compared = frame[frame.mark.notna()].set_index("machine")
    assert dict(compared.mark) == {"svm": "✗", "rmm": "~", "mmrm": "✓"}
    text = table(experiment.folder)
    assert "Compared cells: 3, of these 1 ✓, 1 ~, 1 ✗." in text
    assert "Published differences between machines above noise: 0," in text


def test_values_of_machines_that_were_not_compared_change_no_mark(results) -> None:
    """The published 89 errors of the MMRM are outside the band of the SVM, but it was not run."""
    machines = {"datasets": ["usps"], "machines": ["svm", "rmm"], "published_only": ["mmrm"]}
    experiment = results.experiment("usps_rbf", **machines, layout="mmrm_table2")
    for machine, errors in (("svm", 110), ("rmm", 110)):
        split = {"n_train": 7291, "n_test": 2007}
        experiment.add(experiment.job("usps", machine), errors, 2007, split=split)
    frame = pd.read_csv(io.StringIO(table(experiment.folder, fmt="csv")))
    assert frame.mark.dropna().tolist() == ["~", "~"]


def test_a_table_that_lacks_a_compared_value_has_no_mark(tmp_path) -> None:
    place = {"dataset": "a", "kernel": "rbf", "metric": "accuracy_pct", "status": "optimal"}
    values = [{"measured": 90.0, "published": 91.0}, {"measured": 90.0}, {"published": 91.0}]
    rows = [
        {**place, "machine": f"m{k}", "in_band": True, "half_width": 2.0, **numbers}
        for k, numbers in enumerate(values)
    ]
    pd.DataFrame(rows, columns=[*names("cells")]).to_csv(tmp_path / "table.csv", index=False)
    assert "Compared cells: 1, of these 0 ✓, 1 ~, 0 ✗." in table(tmp_path, layout="generic")


def test_published_differences_are_looked_for_here(tmp_path) -> None:
    values = {
        "svm": {"measured": 90.0, "se": 0.1, "published": 90.0, "in_band": True},
        "rmm": {"measured": 92.0, "se": 0.1, "published": 91.0, "in_band": True},
        "m4": {"measured": 90.1, "se": 0.1, "published": 92.0, "in_band": False},
        "mpm": {"measured": 80.0, "se": 0.1, "published": 99.0},
    }
    place = {"dataset": "a", "kernel": "rbf", "metric": "accuracy_pct", "status": "optimal"}
    rows = [{**place, "machine": machine, **numbers} for machine, numbers in values.items()]
    frame = pd.DataFrame(rows, columns=[*names("cells")])
    frame.to_csv(tmp_path / "table.csv", index=False)
    # All three differ in print; here the M4 is hardly better than the SVM, and worse than the RMM.
    text = table(tmp_path, layout="generic")
    said = "above noise: 3, of these 2 with the same sign here, 1 also above noise here."
    assert said in text


# -- the CSV -----------------------------------------------------------------------------------


def test_the_csv_has_exactly_the_documented_columns(usps) -> None:
    frame = pd.read_csv(io.StringIO(table(usps.folder, fmt="csv")))
    assert list(frame.columns) == [name for name in names("cells") if name != "size"]
    assert not frame.duplicated(["dataset", "kernel", "degree", "machine", "metric"]).any()
    timing = {"seconds_selection", "seconds_training", "seconds_test"}
    assert timing | {"accuracy_pct", "errors_count", "errors_expected"} <= set(frame["metric"])


def test_the_csv_of_a_results_folder_has_all_experiments_under_one_head(usps, results) -> None:
    other = results.experiment("own")
    other.add(other.job("pima", "svm"))
    frame = pd.read_csv(io.StringIO(table(results.folder, fmt="csv")))
    assert set(frame["experiment"]) == {"usps_rbf", "own"}


def test_deviations_of_the_data_stand_in_the_notes_of_the_csv(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"), deviations=["zeros are kept"])
    assert "zeros are kept" in table(experiment.folder, fmt="csv")


def test_the_code_of_a_classifier_with_a_kernel_has_the_heading_of_its_column(results) -> None:
    experiment = results.experiment("own", labels={"svc": "SVC of scikit-learn"})
    given = {"variant": "svc", "kernel": "rbf", "params": (("kernel", "rbf"),)}
    job = experiment.job("pima", machine="sklearn.svm:SVC", **given)
    experiment.add(job, code={"version": 1, "commit": None, "fingerprint": "scikit-learn 1.9"})
    assert "SVC of scikit-learn (rbf) 1, scikit-learn 1.9." in table(experiment.folder)


def test_a_warning_of_one_machine_names_it(results) -> None:
    experiment = results.experiment("own")
    for name, texts in (("svm", ["zeros are kept"]), ("rmm", ["zeros are kept", "a late fit"])):
        experiment.add(experiment.job("pima", name), deviations=texts)
    assert "[1] pima: zeros are kept\n- [2] pima: RMM: a late fit\n" in table(experiment.folder)


def test_a_tab_in_a_label_leaves_the_line_of_a_table_whole(results):
    experiment = results.experiment("mine", ["iris"], ["svm"], labels={"svm": "a\tb"})
    experiment.add(experiment.job("iris", "svm"))
    assert "| data set | kernel |  a b |" in table(experiment.folder)
    assert "a b" in table(experiment.folder, fmt="latex")


def test_a_table_counts_records_of_other_code_and_without_a_fingerprint(results):
    experiment = results.experiment("mine", datasets=["iris"], machines=["svm"], splits=3)
    codes = [{"version": 4, "commit": None, "fingerprint": f} for f in (fingerprint("svm"), "old")]
    for repeat, code in enumerate([*codes, {}]):
        experiment.add(experiment.job("iris", "svm", repeat=repeat), code=code)
    text = table(experiment.folder)
    assert "Records made by other code than this table: 1 of 2." in text
    assert "Records without a fingerprint of the code: 1." in text
    names = f"SVM (rbf) 4, {codes[0]['fingerprint']}; SVM (rbf) 4, old"
    assert f"Code of the machines (version, fingerprint of the sources): {names}." in text
    rows = rows_of(experiment.folder)
    assert {row.fingerprint for row in rows} == {f"{codes[0]['fingerprint']} old"}
