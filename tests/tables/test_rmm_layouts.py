"""The RMM papers' tables from invented records."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn import table

from mmbench.results.statistics import mcnemar_p


def lines_of(text: str, start: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]


def arrays_with(errors: int, first: int = 0, n: int = 2007):
    truth = np.zeros(n, int)
    predicted = truth.copy()
    predicted[first : first + errors] = 1
    return {"predicted": predicted, "y_test": truth}


@pytest.fixture
def digits(results):
    experiment = results.experiment(
        "rmm_table1_usps",
        datasets=["usps"],
        kernel=["poly", "rbf"],
        degree=[1, 2],
        machines=["svm", "klda", "rmm"],
        layout="rmm_table1",
    )
    split = {"n_train": 7291, "n_test": 2007}
    for machine, errors, first in (("svm", 150, 0), ("klda", 200, 0), ("rmm", 140, 20)):
        for repeat in range(2):
            for params in ((("degree", 1),), (("degree", 2),), ()):
                kernel = "poly" if params else "rbf"
                job = experiment.job("usps", machine, repeat=repeat, kernel=kernel, params=params)
                count = errors + 4 * repeat
                experiment.add(job, count, 2007, split=split, arrays=arrays_with(count, first))
    return experiment


def test_degrees_are_columns_and_the_first_seed_is_the_single_run(digits):
    text = table(digits.folder, bold=False)
    single, mean, published = lines_of(text, "USPS")[0], *lines_of(text, " ")[:2]
    assert single == ["USPS", "SVM", "single run", "150", "150", "150"]
    assert mean[2].startswith("mean")
    assert mean[3].startswith("152.0 ± 2.8 ~")
    assert published[2:] == ["published", "145", "109", "104"]


def test_klda_is_not_compared(digits):
    text = table(digits.folder)
    (mean,) = [row for row in lines_of(text, " ") if row[1:3] == ["KLDA", "mean"]]
    assert not {"✓", "~", "✗"} & set("".join(mean))
    assert "the published value is no target" in text


def test_mcnemar_is_that_of_the_single_run(digits):
    """Rows 0 to 149 against 20 to 159: ten only the SVM has right, twenty only the RMM."""
    text = table(digits.folder)
    assert lines_of(text, "USPS")[2][1] == "20 : 10 (0.099)"
    assert mcnemar_p(5, 5) == 1.0


def test_a_part_of_a_data_set_is_held_against_its_own_lines(results):
    experiment = results.experiment(
        "rmm_table1_mnist1000",
        datasets=["mnist"],
        published_as={"mnist": "mnist_1000"},
        kernel="rbf",
        machines=["svm"],
        layout="rmm_table1",
    )
    split = {"n_train": 5000, "n_train_pair": 1000, "n_test": 10000}
    experiment.add(experiment.job("mnist", "svm"), 660, 10000, split=split)
    measured, published = lines_of(table(experiment.folder), "1000-MNIST")[0], 670
    assert measured[3] == "660 ~"
    assert lines_of(table(experiment.folder), " ")[0][3] == str(published)


def test_a_machine_that_the_paper_leaves_out_has_no_published_line(results):
    experiment = results.experiment(
        "rmm_table1_mnist23",
        datasets=["mnist"],
        published_as={"mnist": "mnist_two_thirds"},
        kernel="rbf",
        machines=["svm", "klda"],
        layout="rmm_table1",
    )
    split = {"n_train": 40000, "n_test": 10000}
    for machine in ("svm", "klda"):
        experiment.add(experiment.job("mnist", machine), 170, 10000, split=split)
    text = table(experiment.folder)
    assert lines_of(text, "2/3-MNIST")[0][1:3] == ["SVM", "measured"]
    assert [row[1:3] for row in lines_of(text, " ")[:2]] == [
        ["SVM", "published"],
        ["KLDA", "measured"],
    ]
    assert text.count("| published") == 1


def test_errors_of_the_journal_table_are_those_of_its_accuracies(results):
    experiment = results.experiment(
        "rmm_journal_table4",
        datasets=["ida_heart"],
        machines=["svm", "rmm", "rmm_c_equals_d"],
        layout="rmm_journal_table4",
    )
    split = {"n_train": 170, "n_test": 100}
    for machine, errors in (("svm", 15), ("rmm", 14), ("rmm_c_equals_d", 40)):
        for repeat in range(2):
            job = experiment.job("ida_heart", machine, repeat=repeat, rule="predefined")
            experiment.add(job, errors + repeat, split=split)
    text = table(experiment.folder)
    head = next(line for line in text.splitlines() if line.startswith("| data"))
    assert [cell.strip() for cell in head.strip("|").split("|")][2:] == ["SVM", "RMM (C=D)", "RMM"]
    (measured,) = lines_of(text, "heart")
    assert measured[2:] == ["15.5 ± 0.7 ~", "40.5 ± 0.7 ✗", "**14.5 ± 0.7** ~"]
    assert lines_of(text, " ")[0][2:] == ["15.5 ± 3.3", "15.4 ± 3.3", "15.2 ± 3.1"]
