"""Figures: margin ratios of the MMRM, machines side by side, the choice of results to draw."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import figure

from mmbench.commands import outputs as tables
from mmbench.errors import UserError
from mmbench.resources import REFERENCE
from mmbench.tables.statistics import fit_line, pair_points

SIGNATURES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_the_suffix_says_the_format(margin_ratios, tmp_path, suffix: str) -> None:
    output = tmp_path / f"figure{suffix}"
    figure("mmrm_fig2", margin_ratios().folder, output)
    assert output.read_bytes().startswith(SIGNATURES[suffix])


def test_the_numbers_are_told_beside_the_published_line(margin_ratios, tmp_path) -> None:
    text = figure("mmrm_fig2", margin_ratios().folder, tmp_path / "figure.svg")
    assert "accuracy = 0.20354 ρ + 98.182" in text
    assert re.search(
        r"measured: +accuracy = .* ρ \+ .*\(r = .*p of the slope = .*45 separable", text
    )


def test_the_line_is_in_the_long_table_beside_the_published_line(margin_ratios) -> None:
    experiment = margin_ratios()
    frame = pd.read_csv(io.StringIO(tables.table([experiment.folder], fmt="csv")))
    line = frame[frame.metric.str.startswith("regression_")].set_index("metric")
    [key] = experiment.store.keys()
    pairs = pair_points(experiment.store.read(key)["per_pair"], experiment.store.arrays(key))
    slope, intercept = np.polyfit(pairs.ratio, pairs.accuracy, 1)
    r = np.corrcoef(pairs.ratio, pairs.accuracy)[0, 1]
    assert line.measured.iloc[:3].tolist() == pytest.approx([slope, intercept, r])
    assert line.index.tolist() == [
        f"regression_{name}" for name in ("slope", "intercept", "r", "p")
    ]
    assert line.published.dropna().tolist() == [0.20354, 98.182]
    assert set(line.n) == {45}
    assert line.in_band.isna().all()


def test_a_table_without_a_published_line_has_none(margin_ratios) -> None:
    text = tables.table([margin_ratios("own").folder], fmt="csv")
    assert "accuracy_pct" in text
    assert "regression_" not in text


def test_equal_machines_stand_as_in_the_table_the_first_on_top(results, tmp_path) -> None:
    experiment = results.experiment("own")
    for machine, errors in (("svm", 10), ("rmm", 10), ("m4", 5)):
        experiment.add(experiment.job("iris", machine), errors)
    text = figure("machines", experiment.folder, tmp_path / "figure.png")
    assert text == "iris (RBF kernel): M4 95.0, SVM 90.0, RMM 90.0"


def test_the_accuracy_of_a_pair_counts_its_own_two_classes_alone() -> None:
    fits = [
        {"pair": ["a", "b"], "extra": {"margin_ratio": 2.0}},
        {"pair": ["a", "c"], "extra": {"margin_ratio": None}},
        {"pair": ["b", "c"], "extra": {"margin_ratio": 3.0, "separable": False}},
    ]
    truth = np.array(["a", "a", "b", "b", "c"])
    decisions = np.array([[-1, 1, 1], [1, 1, 1], [1, 1, -1], [1, 1, -1], [9, 1, 1]], dtype=float)
    points = pair_points(fits, {"y_test": truth, "decisions": decisions})
    assert points.values.tolist() == [["a/b", 2.0, 75.0, True], ["b/c", 3.0, 100.0, False]]


def test_labels_compare_as_numbers_and_as_text() -> None:
    fits = [{"pair": [0, 1], "extra": {"margin_ratio": 1.0}}]
    arrays = {"y_test": np.array([0, 1]), "decisions": np.array([[-1.0], [1.0]])}
    assert pair_points(fits, arrays).accuracy.tolist() == [100]


def test_points_on_a_line_give_that_line() -> None:
    line = fit_line(pairs((1.0, 2.0, 4.0), [98.182 + 0.20354 * x for x in (1.0, 2.0, 4.0)]))
    assert line.slope == pytest.approx(0.20354)
    assert line.intercept == pytest.approx(98.182)
    assert line.rvalue == pytest.approx(1)


def test_equal_margin_ratios_give_no_line() -> None:
    assert fit_line(pairs((1.0, 1.0, 1.0), (98.0, 99.0, 100.0))) is None


def pairs(ratios, accuracies) -> pd.DataFrame:
    return pd.DataFrame({"ratio": ratios, "accuracy": accuracies, "separable": True})


def test_pairs_with_slack_are_drawn_but_not_fitted(margin_ratios, tmp_path) -> None:
    pairs = [
        {**pair, "extra": {**pair["extra"], "separable": k % 2 == 0}}
        for k, pair in enumerate(ten_pairs(margin_ratios))
    ]
    text = figure("mmrm_fig2", margin_ratios("other", pairs).folder, tmp_path / "figure.png")
    assert "22 with slack" in text
    assert "23 separable pairs" in text


def ten_pairs(margin_ratios):
    store = margin_ratios("source").store
    return store.read(store.keys()[0])["per_pair"]


def test_of_several_experiments_the_one_of_the_figures_name_is_drawn(
    margin_ratios, results, tmp_path
) -> None:
    margin_ratios("another")
    margin_ratios("mmrm_fig2")
    assert "45 pairs of usps" in figure("mmrm_fig2", results.folder, tmp_path / "figure.png")


def test_of_several_others_one_must_be_named(margin_ratios, results, tmp_path) -> None:
    margin_ratios("one")
    margin_ratios("two")
    with pytest.raises(UserError, match="one, two; name one folder"):
        figure("mmrm_fig2", results.folder, tmp_path / "figure.png")


def test_records_of_other_machines_do_not_do(results, tmp_path) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("usps", "svm"))
    with pytest.raises(UserError, match="no finished record of mmrm"):
        figure("mmrm_fig2", experiment.folder, tmp_path / "figure.png")


def test_records_without_margin_ratios_do_not_do(margin_ratios, tmp_path) -> None:
    pairs = [{**pair, "extra": {}} for pair in ten_pairs(margin_ratios)]
    with pytest.raises(UserError, match="no pair of classes has a margin ratio"):
        figure("mmrm_fig2", margin_ratios("bare", pairs).folder, tmp_path / "figure.png")


def test_a_picture_is_put_beside_the_records(margin_ratios) -> None:
    experiment, said = margin_ratios(), []
    tables.figure("mmrm_fig2", [experiment.folder], say=said.append)
    assert (experiment.folder / "mmrm_fig2.png").read_bytes().startswith(SIGNATURES[".png"])
    assert said == [f"written to {experiment.folder / 'mmrm_fig2.png'}"]


@pytest.mark.parametrize(
    ("name", "of", "said"),
    [
        ("m4_fig7", "m4_fig7", "M4, ν = 0.95: 81.96 (1.08) % correct"),
        ("fsvm_components", "fsvm_components", "ida_heart, F-SVM, d = 20: 82.80 (1.28) % correct"),
        ("time_and_accuracy", "fsvm_table2", "R-SVM+ -0.14 ± 0.21 in 5.9 times the time"),
        ("critical_difference", "mamc_table2", "Nemenyi: critical difference 2.09"),
    ],
)
def test_a_reference_table_is_drawn_into_this_folder(
    name, of, said, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in tables.figure(name, [REFERENCE / of], say=print)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(SIGNATURES[".png"])
    assert capsys.readouterr().out == f"written to {name}.png\n"


def test_a_figure_of_records_says_so_of_a_reference_table() -> None:
    with pytest.raises(UserError, match="tables alone: mmbench run mmrm_fig2"):
        tables.figure("mmrm_fig2", [REFERENCE])


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("mmrm_fig3", "figure.png", "did you mean 'mmrm_fig2'"),
        ("mmrm_fig2", "figure.gif", "ends in"),
        ("mmrm_fig2", "no/figure.png", "cannot write"),
    ],
)
def test_wrong_input_is_refused(margin_ratios, tmp_path, name, file, message) -> None:
    with pytest.raises(UserError, match=message):
        figure(name, margin_ratios().folder, tmp_path / file)
