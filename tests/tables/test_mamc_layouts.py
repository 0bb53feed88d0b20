"""The MAMC paper's tables, and the comparison that it lacks, from invented records."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn import cells_of, figure, table

from mmbench.errors import UserError
from mmbench.resources import REFERENCE

MAMC_MACHINES = ("mamc_bs", "mamc_bsg", "mamc_b", "mamc", "emamc", "svm")
DATASETS = ("ida_heart", "ida_banana", "ida_thyroid")
ERRORS = dict(zip(MAMC_MACHINES, (20, 21, 22, 60, 18, 17), strict=True))


@pytest.fixture
def mamc(results):
    """Three data sets, three splits each, six machines; seconds as ten times the errors."""
    experiment = results.experiment(
        "mamc_table2",
        datasets=list(DATASETS),
        kernel="rbf",
        machines=list(MAMC_MACHINES),
        layout="mamc_table2",
    )
    for shift, dataset in enumerate(DATASETS):
        for machine, errors in ERRORS.items():
            for repeat in range(3):
                job = experiment.job(dataset, machine, repeat=repeat, rule="predefined")
                seconds = {"selection": float(errors), "training": 0.0, "test": 0.0}
                wobble = repeat * (1 + (machine == "mamc"))
                experiment.add(job, errors + shift + wobble, cpu_seconds=seconds)
    return experiment


def test_table_2_has_means_deviations_and_the_paper_s_counts(mamc):
    text = table(mamc.folder)
    heart = cells_of(text, "Heart")
    assert heart[:2] == ["Heart", "measured"]
    assert heart[2].startswith("79.00 ± 1.00")
    assert cells_of(text, "Average")[2:] == ["78.00", "77.00", "76.00", "37.00", "80.00", "81.00"]
    assert cells_of(text, "best/worst")[2:] == ["0/0", "0/0", "0/0", "0/3", "0/0", "3/0"]
    assert cells_of(text, "W/T/L")[2:] == ["–", "0/3/0", "0/3/0", "3/0/0", "0/3/0", "0/0/3"]
    average = text.splitlines().index(
        next(line for line in text.splitlines() if line.startswith("| Average"))
    )
    assert "published" in text.splitlines()[average + 1]


def test_published_counts_follow_from_the_published_means_and_deviations():
    """The paper has 2/0 for MAMC_bsg and 0/11 for the MAMC; its averages and W/T/L agree."""
    text = table(REFERENCE / "mamc_table2", layout="mamc_table2")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()]
    below = {row[0]: rows[k + 1][1:] for k, row in enumerate(rows[:-1]) if row}
    averages = ["84.12", "84.18", "83.60", "65.43", "85.34", "85.26"]
    assert below["Average"] == ["published", *averages]
    assert below["best/worst"][1:] == ["1/0", "1/0", "2/1", "0/12", "6/0", "4/0"]
    assert below["W/T/L"][1:] == ["–", "1/11/1", "1/12/0", "13/0/0", "1/4/8", "2/3/8"]


def test_a_data_set_without_a_result_of_some_machine_is_not_counted(results):
    experiment = results.experiment("mamc_table2", layout="mamc_table2")
    for dataset, machine in (("ida_heart", "mamc_bs"), ("ida_heart", "svm"), ("ida_banana", "svm")):
        experiment.add(experiment.job(dataset, machine), errors=10 + (dataset == "ida_banana"))
    text = table(experiment.folder)
    assert cells_of(text, "Average")[2:] == ["–", "89.50"]
    assert cells_of(text, "best/worst")[2:] == ["1/1", "1/1"]


def test_samples_without_spread_are_equal_or_different(results):
    experiment = results.experiment("mamc_table2", layout="mamc_table2")
    errors = {"ida_heart": (10, 10), "ida_banana": (9, 10), "ida_thyroid": (10, 9)}
    for dataset, pair in errors.items():
        for machine, count in zip(("mamc_bs", "svm"), pair, strict=True):
            for repeat in range(2):
                job = experiment.job(dataset, machine, repeat=repeat, rule="predefined")
                experiment.add(job, count)
    assert cells_of(table(experiment.folder), "W/T/L")[2:] == ["–", "1/1/1"]


def test_times_are_compared_without_rounding(results):
    experiment = results.experiment("mamc_table3", layout="mamc_table3")
    for machine, seconds in (("mamc_bs", 0.0012), ("svm", 0.0013)):
        times = {"selection": seconds, "training": 0.0, "test": 0.0}
        experiment.add(experiment.job("ida_heart", machine), cpu_seconds=times)
    counts = [text.split(" ")[0] for text in cells_of(table(experiment.folder), "shortest")[1:]]
    assert counts == ["1-0", "0-1"]


def test_table_1_shows_the_splits_run_and_those_of_the_paper(mamc):
    assert cells_of(table(mamc.folder), "Heart", nth=1)[-2:] == ["3", "100"]


def test_a_failed_cell_has_no_average_and_is_not_counted(mamc):
    mamc.fail(mamc.job("ida_heart", "svm", repeat=3, rule="predefined"), reason="ran away")
    text = table(mamc.folder)
    assert "ran away" in text
    assert cells_of(text, "Average")[2] == "78.00"


def test_table_3_has_seconds_and_their_ratios_to_the_mamc(mamc):
    text = table(mamc.folder, layout="mamc_table3")
    seconds, ratios = (cells_of(text, "Heart", nth=nth) for nth in (0, 1))
    # In the paper MAMC_bs has 0.24 s, the MAMC 0.11 s and EMAMC 2.05 s.
    assert seconds[1:6:2] == ["20.0 / 0.24", "22.0 / 0.12", "18.0 / 2.05"]
    assert seconds[4] == "60.0 / 0.11"
    assert ratios[1] == "0.3 / 2.2"
    assert ratios[5] == "0.3 / 18.6"
    assert cells_of(text, "Banana")[1] == "20.0 / –"
    assert cells_of(text, "Banana", nth=1)[1] == "0.3 / –"
    assert cells_of(text, "shortest-longest")[4] == "0-3 / 12-0"


def test_comparison_has_ranks_and_corrected_tests(mamc):
    text = table(mamc.folder, layout="comparison")
    assert cells_of(text, "SVM")[1] == "1.00"
    assert "Friedman over 3 data sets" in text
    assert cells_of(text, "better/same/worse")[1:3] == ["0/0/0", "0/0/0"]
    assert cells_of(text, "Heart")[1] == "−1.00"  # fewer than five splits: no test
    assert "Kendall's W 1.00" in text
    assert "within 1, and above 1" in text


def test_comparison_weighs_machines_over_data_sets_and_splits(mamc):
    text = table(mamc.folder, layout="comparison")
    rows = [line for line in text.splitlines() if line.startswith("| EMAMC")]
    over = next([cell.strip() for cell in row.split("|")[2:-1]] for row in rows if " / " in row)
    assert over[:2] == ["3", "+2.00"]
    assert over[3] == "+1.00"  # better on all


def test_comparison_takes_any_metric_and_the_smaller_where_that_is_better(results):
    experiment = results.experiment("own", splits=4)
    rng = np.random.default_rng(0)
    for dataset in ("heart", "pima", "sonar"):
        for machine, doubt in (("svm", 0.4), ("rmm", 0.2), ("m4", 0.3)):
            for repeat in range(4):
                y = rng.integers(0, 2, 40)
                p = np.abs(y - doubt - 0.01 * rng.random(40))
                arrays = {
                    "y_test": y,
                    "predicted": y,
                    "decisions": (p[:, None] - 0.5).astype(np.float32),
                    "probabilities": np.column_stack([1 - p, p]),
                }
                job = experiment.job(dataset, machine, repeat=repeat, rule="holdout")
                experiment.add(job, arrays=arrays)
    text = table(experiment.folder, layout="comparison", metrics=["brier"])
    assert cells_of(text, "RMM")[1] == "1.00"
    assert cells_of(text, "better/same/worse")[1:] == ["0/0/0", "0/0/0"]
    assert "Brier score: improvement over SVM" in text
    over = cells_of(text, "RMM", nth=1)
    assert over[1] == "3" and over[4] == "+1.00"  # better on all
    assert float(over[5].split(" / ")[2]) > 0.9 and "(within 0.01)" in text


def test_ranks_are_over_data_sets_one_kernel_at_a_time(results, tmp_path):
    experiment = results.experiment("own")
    for dataset in ("heart", "pima", "sonar"):
        for kernel in ("linear", "rbf"):
            for machine, errors in (("svm", 10), ("rmm", 12), ("m4", 14)):
                experiment.add(experiment.job(dataset, machine, kernel=kernel), errors)
    text = table(experiment.folder, layout="comparison")
    assert text.count("Friedman over 3 data sets") == 2
    assert "over 6 data sets" not in text
    numbers = figure("critical_difference", experiment.folder, tmp_path / "cd.png")
    assert numbers.startswith("Linear kernel. Friedman over 3 data sets")
    assert "RBF kernel. Friedman over 3 data sets" in numbers


def test_too_little_to_rank_is_said(usps, tmp_path):
    assert "no ranks, ranks need two data sets" in table(usps.folder, layout="comparison")
    with pytest.raises(UserError, match="of the same three or more machines"):
        figure("critical_difference", usps.folder, tmp_path / "cd.png")


@pytest.mark.parametrize("suffix", [".png", ".pdf", ".svg"])
def test_diagram_of_critical_differences(suffix, mamc, tmp_path):
    output = tmp_path / f"cd{suffix}"
    text = figure("critical_difference", mamc.folder, output)
    assert output.stat().st_size > 1000
    assert "Mean ranks: SVM 1.00, EMAMC 2.00" in text
