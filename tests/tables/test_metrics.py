"""Metrics of records: from stored predictions, and by name where something is not stored."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn import cells_of, rows_of, table
from sklearn.metrics import confusion_matrix, matthews_corrcoef, roc_auc_score

from mmbench.config.model import Config
from mmbench.config.plan import plan_of
from mmbench.errors import UserError
from mmbench.jobs.planned import Plan
from mmbench.results.cells import STORED
from mmbench.tables.blocks import label

PAIRS = [{"pair": [i, j], "status": "optimal", "extra": {}} for i, j in ((0, 1), (0, 2), (1, 2))]


def two_classes(seed: int, n: int = 60) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    decisions = (2 * y[:, None] - 1 + 2 * rng.normal(size=(n, 1))).astype(np.float32)
    return {"y_test": y, "decisions": decisions, "predicted": (decisions[:, 0] >= 0).astype(int)}


@pytest.fixture
def old(results):
    """Records as earlier versions wrote them: predictions and decision values alone."""
    experiment = results.experiment("old", datasets=["mine"], machines=["svm", "rf"], splits=2)
    for repeat in range(2):
        job = experiment.job("mine", "svm", repeat=repeat, rule="holdout")
        experiment.add(job, arrays=two_classes(repeat))
        arrays = two_classes(repeat + 5)
        if repeat:
            arrays["probabilities"] = np.column_stack([1 - arrays["y_test"], arrays["y_test"]])
        experiment.add(experiment.job("mine", "rf", repeat=repeat, rule="holdout"), arrays=arrays)
    return experiment


def test_metrics_of_old_records_need_no_training(old):
    found = [two_classes(seed) for seed in (0, 1)]
    auc = np.mean([roc_auc_score(a["y_test"], a["decisions"][:, 0]) for a in found])
    mcc = np.mean([matthews_corrcoef(a["y_test"], a["predicted"]) for a in found])
    text = table(old.folder, metrics=["auc", "mcc"], bold=False)
    for nth, value in ((0, auc), (1, mcc)):
        assert cells_of(text, "mine", nth)[2].startswith(f"{value:.3f} (")
    assert "area under the ROC curve" in text
    line = next(x for x in table(old.folder, "csv", metrics=["auc"]).splitlines() if ",auc," in x)
    assert float(line.split(",")[6]) == pytest.approx(auc)


def test_what_records_lack_is_said_by_name(old):
    text = table(old.folder, metrics=["log_loss"])
    svm, rf = cells_of(text, "mine")[2:4]
    assert svm == "– [1]"
    assert rf == "0.000 [2]"
    assert "SVM on mine (rbf): log_loss: 2 of 2 records lack probabilities" in text
    assert "RF on mine (rbf): log_loss: 1 of 2 records lack probabilities" in text


@pytest.fixture
def two_losses(results):
    """Four splits of two machines with the same predictions; the RMM's probabilities are better."""
    experiment = results.experiment("own", splits=4)
    y = np.arange(40) % 2
    for machine, doubt in (("svm", 0.4), ("rmm", 0.2)):
        for repeat in range(4):
            p = np.abs(y - doubt - repeat / 100)
            arrays = {"y_test": y, "predicted": y, "decisions": p[:, None] - 0.5}
            arrays["probabilities"] = np.column_stack([1 - p, p])
            job = experiment.job("mine", machine, repeat=repeat, rule="holdout")
            experiment.add(job, arrays=arrays)
    return experiment


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_the_smallest_loss_is_bold(two_losses, metric):
    svm, rmm = cells_of(table(two_losses.folder, metrics=[metric]), "mine")[2:4]
    assert rmm.startswith("**") and "*" not in svm


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_the_machine_with_the_smallest_loss_is_listed_first(two_losses, metric):
    text = table(two_losses.folder, layout="machines", metrics=[metric])
    assert text.index("| RMM ") < text.index("| SVM ")


def test_a_comparison_names_the_machines_that_lack_its_metric(old):
    text = table(old.folder, layout="comparison", metrics=["log_loss"])
    assert "- Not compared, without results (Log loss): SVM." in text
    assert "Not compared" not in table(old.folder, layout="comparison", metrics=["auc"])


@pytest.mark.parametrize(
    ("names", "text_of_names"),
    [(("mine", "yours"), "mine, yours"), (("a", "b", "c", "d"), "all 4 data sets")],
)
def test_of_classifiers_without_certificates_it_is_said_once(results, names, text_of_names):
    experiment = results.experiment("own", splits=2)
    for n_fits, dataset in enumerate(names, 1):  # other numbers of fits: still one line
        for machine in ("rf", "lr"):
            for repeat in range(2):
                job = experiment.job(dataset, machine, repeat=repeat, rule="holdout")
                fits = {"statuses": {"uncertified": n_fits}}
                experiment.add(job, arrays=two_classes(repeat), fits=fits)
    text = table(experiment.folder, metrics=["accuracy", "log_loss"])
    assert text.count("certificate\n") == 1
    assert f"- [1] RF, LR on {text_of_names} (rbf): its fits have no certificate" in text
    assert f"- [2] RF, LR on {text_of_names} (rbf): log_loss: 2 of 2 records lack" in text


def test_a_confusion_matrix_counts_the_test_rows_of_all_splits(old):
    text = table(old.folder, metrics=["confusion_matrix"])
    parts = [two_classes(seed) for seed in (0, 1)]
    expected = sum(confusion_matrix(part["y_test"], part["predicted"]) for part in parts)
    for k in range(2):
        assert cells_of(text, f"{k} ")[1:] == [str(n) for n in expected[k]]
    (line,) = [
        line
        for line in table(old.folder, "csv", metrics=["confusion_matrix"]).splitlines()
        if line.startswith('old,mine,rbf,,svm,"confusion_matrix[0,1]",')
    ]
    assert float(line.split(",")[7]) == expected[0][1]


def test_a_confusion_matrix_states_the_splits_that_it_counts(results):
    experiment = results.experiment("own")
    for repeat in range(3):
        job = experiment.job("mine", "svm", repeat=repeat, rule="holdout")
        fits = {"statuses": {"failed" if repeat == 2 else "optimal": 1}}
        experiment.add(job, arrays=two_classes(repeat), fits=fits)
    frame = rows_of(experiment.folder, metrics=["confusion_matrix"])
    assert {row.n for row in frame if row.metric.startswith("confusion_matrix")} == {2}


def test_votes_rank_rows_of_many_classes(results):
    experiment = results.experiment("three", datasets=["mine"], machines=["svm"])
    y, signs = np.arange(9) % 3, np.zeros((9, 3), dtype=np.float32)
    for k, fit in enumerate(PAIRS):
        signs[:, k] = np.where(y == fit["pair"][1], 2.0, -1.5)
    arrays = {"y_test": y, "decisions": signs, "predicted": y}
    experiment.add(experiment.job("mine", "svm"), per_pair=PAIRS, arrays=arrays)
    assert cells_of(table(experiment.folder, metrics=["auc"]), "mine")[2] == "1.000"


def test_a_tied_vote_ranks_as_the_legend_says(results):
    """Three rows have one vote for each class; the third class has the largest decisions."""
    experiment = results.experiment("three", datasets=["mine"], machines=["svm"])
    cycle = np.array([-1.0, 2.0, -1.0])  # 0 before 1, 2 before 0, 1 before 2
    clear = np.array([1.0, -1.0, -1.0])  # two votes for class 1, one for class 0
    arrays = {
        "y_test": np.array([0, 0, 2, 1, 1, 1]),
        "decisions": np.array([cycle, 2 * cycle, 3 * cycle, clear, clear, clear], np.float32),
        "predicted": np.array([0, 0, 0, 1, 1, 1]),
    }
    experiment.add(experiment.job("mine", "svm"), per_pair=PAIRS, arrays=arrays)
    text = table(experiment.folder, metrics=["auc"])
    assert "In a tied vote, the first of the tied classes has the largest score of the row" in text
    summed = np.outer([1, 2, 3], [-1, 0, 1])
    scores = 1 + summed / (3 * (abs(summed) + 1))
    scores[:, 0] = scores[:, 2]  # the first class has the score of the third
    clear_scores = np.tile([1, 2, 0] + np.array([0, 2, -2]) / [3, 9, 9], (3, 1))
    every = np.vstack([scores, clear_scores])
    y = arrays["y_test"]
    expected = np.mean([roc_auc_score(y == k, every[:, k]) for k in range(3)])
    assert cells_of(text, "mine")[2] == f"{expected:.3f}"


def test_stored_logits_of_several_classes_do_not_rank_rows(results):
    """Older records contain logits beside the probabilities."""
    experiment = results.experiment("three", datasets=["mine"], machines=["rf"])
    y = np.repeat(np.arange(3), 3)
    logits = np.outer(np.linspace(-4, 4, 9), [-1.0, 0.0, 1.0])
    logits[3:6] = [-0.5, 0.4, 0.1]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    votes = np.where(np.array([1, 2, 2]) == y[:, None], 1.0, -1.0)
    arrays = {"y_test": y, "decisions": votes, "predicted": y, "classes": np.arange(3)}
    arrays |= {"scores": logits - logits[:, [1]], "probabilities": p}
    job = experiment.job("mine", "rf")
    experiment.add(job, status="uncertified", per_pair=PAIRS, arrays=arrays)
    expected = np.mean([roc_auc_score(y == k, p[:, k]) for k in range(3)])
    found = cells_of(table(experiment.folder, metrics=["auc"]), "mine")[2]
    assert found.startswith(f"{expected:.3f}")


def test_one_test_row_has_no_correlation_and_predictions_no_ranks(results):
    experiment = results.experiment("one", datasets=["mine"], machines=["svm"])
    arrays = {name: values[:1] for name, values in two_classes(0).items()}
    arrays["decisions"] = np.ones_like(arrays["decisions"])
    experiment.add(experiment.job("mine", "svm"), arrays=arrays, status="uncertified")
    text = table(experiment.folder, metrics=["mcc", "auc"])
    assert "records lack a second test row" in text
    assert "records lack decision values" in text


@pytest.mark.parametrize("value", [1.0, -1.0, 0.0])
def test_constant_decisions_of_a_machine_rank_by_chance(results, value):
    experiment = results.experiment("one", datasets=["mine"], machines=["svm"])
    arrays = two_classes(0)
    arrays["decisions"] = np.full_like(arrays["decisions"], value)
    experiment.add(experiment.job("mine", "svm"), arrays=arrays)
    assert cells_of(table(experiment.folder, metrics=["auc"]), "mine")[2] == "0.500 [1]"


def test_constant_decisions_are_named_below_the_table(results):
    experiment = results.experiment("flat", datasets=["mine"], machines=["svm"], splits=2)
    for repeat in range(2):
        arrays = two_classes(repeat)
        if repeat:
            arrays["decisions"] = np.full_like(arrays["decisions"], 0.25)
        experiment.add(experiment.job("mine", "svm", repeat=repeat, rule="holdout"), arrays=arrays)
    text = table(experiment.folder, metrics=["auc"])
    assert "SVM on mine (rbf): auc: 1 of 2 records have constant decision values" in text
    assert "constant" not in table(experiment.folder, metrics=["mcc"])


def test_log_loss_of_a_class_that_training_lacked_says_so(results):
    experiment = results.experiment("one", datasets=["mine"], machines=["svm"])
    arrays = {**two_classes(0), "probabilities": np.tile([0.5, 0.5], (20, 1)), "classes": [0, 1]}
    arrays = {name: np.array(values)[:20] for name, values in arrays.items()}
    arrays["y_test"][0] = 9
    experiment.add(experiment.job("mine", "svm"), arrays=arrays)
    text = table(experiment.folder, metrics=["log_loss"])
    assert "log_loss: 1 of 1 records lack training rows of every class in the test rows" in text


def test_metrics_of_a_configuration_are_those_of_its_tables():
    content = {
        "name": "mine",
        "datasets": ["wine"],
        "protocol": {"test": {"kfold": 2}},
        "machines": {"svm": {}},
        "metrics": ["accuracy", "auc"],
    }
    plan = plan_of(Config.model_validate(content))
    assert Plan.parse(plan.dump()).metrics == ("accuracy", "auc")


@pytest.fixture
def guaranteed(results):
    """Two splits of an MPM, which states a lower bound of 70 and 80 %, and of an SVM."""
    experiment = results.experiment("bounds", machines=["mpm", "svm"], splits=2)
    for repeat, bound in enumerate((0.7, 0.8)):
        metrics = {"accuracy_pct": 90.0, "errors_count": 10, "errors_expected": 10, "n_test": 100}
        metrics["worst_class_accuracy_pct"] = 75.0 + repeat
        for machine, extra in (("mpm", {"worst_case_accuracy": bound}), ("svm", {})):
            fits = [{"pair": [0, 1], "status": "optimal", "extra": extra}]
            job = experiment.job("mine", machine, repeat=repeat, rule="holdout")
            experiment.add(job, per_pair=fits, metrics=metrics, arrays=two_classes(repeat))
    return experiment


@pytest.mark.parametrize(
    ("metric", "mpm", "svm"),
    [
        ("worst_case_accuracy", "75.0 (5.0)", "–"),
        ("worst_case_accuracy_pct", "75.0 (5.0)", "–"),
        ("worst_class_accuracy", "75.5 (0.5)", "75.5 (0.5)"),
        ("below_worst_case", "50.0 (50.0)", "–"),
        ("errors_count", "**10.0 (0.0)**", "**10.0 (0.0)**"),
    ],
)
def test_results_of_records_are_metrics_of_tables(guaranteed, metric, mpm, svm):
    text = table(guaranteed.folder, metrics=[metric])
    compared = table(guaranteed.folder, metrics=[metric], layout="comparison")
    assert "**Accuracy (%) minus MPM" in compared  # fewer errors were called worse
    assert "Compared by the accuracy, as there is no test of: " in compared
    assert cells_of(text, "mine")[2:4] == [mpm, svm]
    assert text.count("| mine ") == 2  # two blocks, without totals over data sets


def test_a_result_that_no_machine_has_is_named(guaranteed):
    for name in STORED:  # each is known, and shown or named
        try:
            assert f"**{label(name)}" in table(guaranteed.folder, metrics=[name])
        except UserError as error:
            assert str(error).endswith(f"--metric {name}: no machine has this result")
    with pytest.raises(UserError, match="bounds: --metric kept: no machine has this result"):
        table(guaranteed.folder, metrics=["kept"])
    with pytest.raises(UserError, match="occurs twice"):
        table(guaranteed.folder, metrics=["worst_case_accuracy", "worst_case_accuracy_pct"])


def test_captions_in_latex_state_one_quantity(guaranteed):
    text = table(guaranteed.folder, "latex", metrics=["accuracy", "worst_case_accuracy"])
    assert r"\caption{Accuracy (\%)}" in text
    assert r"\caption{Lower bound on the accuracy of the worse class (\%)}" in text


def test_a_layout_of_a_paper_gives_way_to_metrics_or_refuses_them(usps):
    with pytest.raises(UserError, match="layout mmrm_table2 cannot show auc; generic"):
        table(usps.folder, layout="mmrm_table2", metrics=["auc"])
    assert "lack predictions" in table(usps.folder, metrics=["auc"])
    with pytest.raises(UserError, match="did you mean 'auc'"):
        table(usps.folder, metrics=["aux"])
