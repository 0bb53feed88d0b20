"""The table and the ROC figure of verification."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers.drawn import figure, table
from sklearn.metrics import auc, roc_auc_score

from mmbench.errors import UserError
from mmbench.tables.figures.lfw_roc import GRID, roc


@pytest.fixture
def lfw(results):
    """Two folds of two machines on one descriptor."""
    experiment = results.experiment(
        "lfw",
        datasets=["lfw_pairs_hog"],
        kernel="linear",
        machines=["svm", "rsvm_plus"],
        layout="lfw",
    )
    rng = np.random.default_rng(0)
    for machine, shift in (("svm", 1.0), ("rsvm_plus", 3.0)):
        for repeat in (0, 1):
            y = np.repeat([0, 1], 50)
            decisions = (rng.normal(size=100) + shift * y)[:, None]
            job = experiment.job(
                "lfw_pairs_hog", machine, rule="predefined", repeat=repeat, kernel="linear"
            )
            arrays = {"y_test": y, "decisions": decisions, "predicted": y}
            experiment.add(job, errors=10 + 2 * repeat, arrays=arrays)
    return experiment


def test_the_table_has_mean_and_standard_error_and_says_that_it_is_an_extension(lfw):
    text = table(lfw.folder)
    assert "(an extension)" in text
    assert "the section on LFW of the F-SVM paper is lost" in text
    assert "89.00 (1.00)" in text
    assert "standard error over 2 folds" in text


def test_the_figure_tells_the_areas(lfw, tmp_path):
    text = figure("lfw_roc", lfw.folder, tmp_path / "roc.svg")
    assert text.startswith("lfw_pairs_hog, area under the ROC curve: SVM 0.7")
    assert "R-SVM+ 0.9" in text
    assert "±" in text


def test_the_figure_tells_the_standard_error_over_folds(results, tmp_path):
    experiment = results.experiment("lfw", machines=["svm"], kernel="linear", splits=3)
    y, areas = np.array([1, 1, 0, 0]), []
    for repeat, values in enumerate(([2, 1, 0, -1], [2, -1, 0, 1], [2, 1, -3, 3])):
        job = experiment.job("lfw_pairs", "svm", rule="predefined", repeat=repeat, kernel="linear")
        arrays = {"y_test": y, "decisions": np.array(values)[:, None], "predicted": y}
        experiment.add(job, arrays=arrays)
        areas.append(roc_auc_score(y, values))
    text = figure("lfw_roc", experiment.folder, tmp_path / "roc.svg")
    error = np.std(areas, ddof=1) / np.sqrt(3)
    assert text.endswith(f"SVM {np.mean(areas):.4f} ± {error:.4f}")


def test_the_figure_says_who_has_fewer_folds(lfw, tmp_path):
    job = lfw.job("lfw_pairs_hog", "svm", rule="predefined", repeat=2, kernel="linear")
    y = np.repeat([0, 1], 50)
    lfw.add(job, errors=0, arrays={"y_test": y, "decisions": y[:, None] - 0.5, "predicted": y})
    text = figure("lfw_roc", lfw.folder, tmp_path / "roc.svg")
    assert text.endswith(", 2 of 3 folds")
    assert text.count("folds") == 1


def test_machines_with_equal_labels_have_a_curve_each(lfw, tmp_path):
    lfw.settings["labels"] = {"svm": "ours", "rsvm_plus": "ours"}
    lfw.plan()
    text = figure("lfw_roc", lfw.folder, tmp_path / "roc.svg")
    assert len(re.findall("ours 0", text)) == 2


def test_a_fold_with_a_failed_fit_is_left_out_of_the_curve(lfw, tmp_path):
    before = figure("lfw_roc", lfw.folder, tmp_path / "roc.svg")
    y = np.repeat([0, 1], 50)
    for machine in ("svm", "rsvm_plus"):
        job = lfw.job("lfw_pairs_hog", machine, rule="predefined", repeat=2, kernel="linear")
        arrays = {"y_test": y, "decisions": 0.5 - y[:, None], "predicted": 1 - y}
        lfw.add(job, errors=100, arrays=arrays, fits={"statuses": {"failed": 1}})
    assert figure("lfw_roc", lfw.folder, tmp_path / "roc.svg") == before


def test_the_figure_refuses_many_classes(margin_ratios, tmp_path):
    with pytest.raises(UserError, match="two classes"):
        figure("lfw_roc", margin_ratios().folder, tmp_path / "roc.svg")


def test_the_averaged_curve_has_the_area_that_is_told():
    rng = np.random.default_rng(0)
    positive = rng.random(500) < 0.5
    decisions = np.round(rng.normal(size=500) + positive, 1)  # with ties
    curve, area = roc(decisions, positive)
    assert area == pytest.approx(roc_auc_score(positive, decisions))
    assert auc(GRID, curve) == pytest.approx(area, abs=2e-3)
    assert (np.diff(curve) >= 0).all()


def test_a_foreign_classifier_of_many_classes_has_no_curve(lfw, tmp_path):
    """Its record has one pair of classes, whatever its classes are."""
    for repeat in (0, 1):
        y = np.repeat([0, 1, 2], 40)
        arrays = {"y_test": y, "decisions": np.eye(3)[y], "predicted": y}
        job = lfw.job("iris", "lda", rule="predefined", repeat=repeat, kernel="linear")
        lfw.add(job, arrays=arrays)
    text = figure("lfw_roc", lfw.folder, tmp_path / "roc.svg")
    assert "iris" not in text
