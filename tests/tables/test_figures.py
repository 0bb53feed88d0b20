"""Figures: margin ratios of the MMRM, machines side by side, the choice of results to draw."""

from __future__ import annotations

import io
import re
import shutil
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers.drawn import figure

import mmbench
from mmbench.errors import UserError
from mmbench.resources import REFERENCE
from mmbench.tables.figures import title_of

SIGNATURES = {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}


def test_a_vector_picture_has_the_title_of_the_figure(margin_ratios, tmp_path) -> None:
    output = tmp_path / "figure.svg"
    figure("mmrm_fig2", margin_ratios().folder, output)
    assert f"<title>{title_of('mmrm_fig2')}</title>" in output.read_text("utf-8")


@pytest.mark.parametrize("name", ["critical_difference", "time_and_accuracy", "lfw_roc"])
def test_training_sizes_are_not_drawn_as_data_sets(results, tmp_path, name) -> None:
    experiment = results.experiment("own")
    for machine, size in product(("svm", "rmm", "m4"), (100, 200, 400)):
        job = experiment.job("iris", machine)
        experiment.add(replace(job, split=replace(job.split, max_train=("nested", size))))
    with pytest.raises(UserError, match=f"^own: figure {name} cannot show several training sizes$"):
        figure(name, experiment.folder, tmp_path / "figure.svg")
    assert figure("machines", experiment.folder, tmp_path / "figure.svg").count("400 rows") == 1


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


@pytest.mark.parametrize("kind", [int, str])
def test_the_line_is_in_the_long_table_beside_the_published_line(margin_ratios, kind) -> None:
    pairs = [{**pair, "pair": [*map(kind, pair["pair"])]} for pair in ten_pairs(margin_ratios)]
    experiment = margin_ratios(pairs=pairs)
    frame = pd.read_csv(io.StringIO(mmbench.table([experiment.folder], fmt="csv")))
    line = frame[frame.metric.str.startswith("regression_")].set_index("metric")
    [key] = experiment.store.keys()
    fits, arrays = experiment.store.read(key)["per_pair"], experiment.store.arrays(key)
    ratios, accuracies = [], []
    for fit, decisions in zip(fits, arrays["decisions"].T, strict=True):
        first, second = map(int, fit["pair"])
        rows = np.isin(arrays["y_test"], (first, second))  # of its own two classes alone
        predicted = np.where(decisions[rows] >= 0, second, first)
        ratios.append(fit["extra"]["margin_ratio"])
        accuracies.append(100 * np.mean(predicted == arrays["y_test"][rows]))
    slope, intercept = np.polyfit(ratios, accuracies, 1)
    r = np.corrcoef(ratios, accuracies)[0, 1]
    assert line.measured.iloc[:3].tolist() == pytest.approx([slope, intercept, r])
    assert line.index.tolist() == [
        f"regression_{name}" for name in ("slope", "intercept", "r", "p")
    ]
    assert line.published.dropna().tolist() == [0.20354, 98.182]
    assert set(line.n) == {45}
    band = 2 * line.se[:2]
    assert line.half_width.dropna().tolist() == pytest.approx(band.tolist())
    near = (line.published[:2] - line.measured[:2]).abs() <= band
    assert line.in_band.dropna().tolist() == near.tolist()


def test_a_table_without_a_published_line_has_none(margin_ratios) -> None:
    text = mmbench.table([margin_ratios("own").folder], fmt="csv")
    assert "accuracy_pct" in text
    assert "regression_" not in text


def test_equal_machines_stand_as_in_the_table_the_first_on_top(results, tmp_path) -> None:
    experiment = results.experiment("own")
    for machine, errors in (("svm", 10), ("rmm", 10), ("m4", 5)):
        experiment.add(experiment.job("iris", machine), errors)
    text = figure("machines", experiment.folder, tmp_path / "figure.png")
    assert text == "Iris (RBF kernel): M4 95.0, SVM 90.0, RMM 90.0"


@pytest.mark.parametrize(
    ("machines", "caption"),
    [
        (["svm"], "RBF kernel"),
        (["svm", "sklearn.svm:SVC"], "RBF kernel and other packages"),
        (["sklearn.svm:SVC"], "other packages"),
    ],
)
def test_a_kernel_is_named_for_the_machines_that_use_it(results, tmp_path, machines, caption):
    experiment = results.experiment("own", layout="machines")
    for machine in machines:
        experiment.add(experiment.job("iris", machine, variant=machine[-3:].lower()))
    text = figure("machines", experiment.folder, tmp_path / "figure.png")
    assert text.startswith(f"Iris ({caption}): ")
    text = str(mmbench.table(experiment.folder))
    assert f"**iris: {caption}**" in text
    assert ("\n- Classifiers of other packages: SVC.\n" in text) == ("other" in caption)


def test_the_mean_of_the_splits_is_marked(results, tmp_path) -> None:
    experiment = results.experiment("own", splits=3)
    for repeat, errors in enumerate((10, 20, 45)):
        experiment.add(experiment.job("iris", "svm", repeat=repeat, rule="holdout"), errors)
    figure("machines", experiment.folder, tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text("utf-8")
    *splits, mean = map(float, re.findall('<use [^>]* x="([^"]*)"[^>]*style="fill: ', drawn))
    assert len(splits) == 3 and mean == pytest.approx(np.mean(splits))


def test_separable_pairs_of_one_margin_ratio_give_no_line(margin_ratios, tmp_path) -> None:
    pairs = [{**pair, "extra": {"margin_ratio": 2.0}} for pair in ten_pairs(margin_ratios)]
    text = figure("mmrm_fig2", margin_ratios("other", pairs).folder, tmp_path / "figure.png")
    assert "measured:  no line" in text


def test_a_pair_without_a_margin_ratio_is_not_drawn(margin_ratios, tmp_path) -> None:
    first, *others = ten_pairs(margin_ratios)
    pairs = [{**first, "extra": {"margin_ratio": None}}, *others]
    text = figure("mmrm_fig2", margin_ratios("other", pairs).folder, tmp_path / "figure.png")
    assert "1 without a finite margin ratio" in text
    assert "44 separable pairs" in text


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
    with pytest.raises(UserError, match="one, two; give one folder"):
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
    mmbench.figure("mmrm_fig2", [experiment.folder], say=said.append)
    assert (experiment.folder / "mmrm_fig2.png").read_bytes().startswith(SIGNATURES[".png"])
    assert said == [f"written to {experiment.folder / 'mmrm_fig2.png'}"]


RANKS = ("critical_difference", "time_and_accuracy")
#: Committed pictures that need no records, only their tables.
DRAWN = [
    *(
        (f"{name}/{figure}.svg", figure)
        for name in ("verdict", "verdict_large")
        for figure in RANKS
    ),
    ("mamc_table2/critical_difference.svg", "critical_difference"),
    ("fsvm_components/figure.svg", "fsvm_components"),
    ("rmm_bounds/figure.svg", "rmm_bounds"),
]


@pytest.mark.parametrize(("path", "name"), DRAWN)
def test_committed_pictures_show_the_numbers_of_their_tables(path, name, tmp_path) -> None:
    committed, drawn = REFERENCE / path, tmp_path / "drawn.svg"
    figure(name, committed.parent, drawn)
    # matplotlib writes each text as a comment before its outlines
    words = [re.findall("<!-- (.*?) -->", p.read_text("utf-8")) for p in (committed, drawn)]
    assert words[0] == words[1] and len(words[0]) > 15


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_link_in_the_place_of_a_picture_is_replaced(margin_ratios, tmp_path, suffix) -> None:
    victim, picture = tmp_path / "victim", tmp_path / f"picture{suffix}"
    victim.write_text("precious")
    picture.symlink_to(victim)
    figure("mmrm_fig2", margin_ratios().folder, picture)
    assert victim.read_text() == "precious" and not picture.is_symlink()
    assert picture.read_bytes().startswith(SIGNATURES[suffix])


@pytest.mark.parametrize(
    ("name", "of", "said"),
    [
        ("m4_fig7", "m4_fig7", "M4, ν = 0.95: 81.96 (1.08) % correct"),
        ("rmm_bounds", "rmm_bounds", "ida_heart, RMM: 16.37 (0.78) %, selected B_fraction 0.75"),
        ("fsvm_components", "fsvm_components", "ida_heart, F-SVM, d = 20: 82.80 (1.28) % correct"),
        ("time_and_accuracy", "fsvm_table2", "R-SVM+ -0.12 ± 0.21 in 5.8 times the time"),
        ("critical_difference", "mamc_table2", "Nemenyi: critical difference 2.09"),
        ("machines", "usps_rbf", "RMM 95.6, SVM 95.5, MMRM 95.4"),
    ],
)
def test_a_reference_table_is_drawn_into_this_folder(
    name, of, said, tmp_path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in mmbench.figure(name, [REFERENCE / of], say=print)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(SIGNATURES[".png"])
    assert capsys.readouterr().out == f"written to {name}.png\n"


def test_a_figure_of_records_says_so_of_a_reference_table() -> None:
    with pytest.raises(UserError, match="not only a table; run: mmbench run mmrm_fig2"):
        mmbench.figure("mmrm_fig2", [REFERENCE / "mmrm_fig2"])


def test_a_figure_of_splits_says_so_of_a_table_without_them(tmp_path) -> None:
    folder = tmp_path / "usps_rbf"
    folder.mkdir()
    shutil.copy(REFERENCE / "usps_rbf" / "table.csv", folder)
    with pytest.raises(UserError, match=r"no records or splits\.csv\.gz"):
        mmbench.figure("machines", [folder], output=tmp_path / "figure.svg")


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("mmrm_fig3", "figure.png", "did you mean 'mmrm_fig2'"),
        ("mmrm_fig2", "figure.gif", "must end in"),
        ("mmrm_fig2", "no/figure.png", "cannot write"),
    ],
)
def test_wrong_input_is_refused(margin_ratios, tmp_path, name, file, message) -> None:
    with pytest.raises(UserError, match=message):
        figure(name, margin_ratios().folder, tmp_path / file)
