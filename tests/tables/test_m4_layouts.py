"""The M4 paper's tables from invented records."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.drawn import cells_of, table
from scipy.stats import t, ttest_1samp

from mmbench.results.statistics import paired_p

MACHINES = ("m4", "svm", "mpm")


def made(results, name, datasets, kernel, errors, n_test, n_train, repeats=4):
    """One experiment with some splits; `errors` by machine, one more in every other split."""
    experiment = results.experiment(
        name, datasets=list(datasets), kernel=kernel, machines=list(errors), layout=name
    )
    split = {"digest": "d", "origin": "drawn", "n_train": n_train, "n_test": n_test}
    for dataset in datasets:
        for machine, count in errors.items():
            for repeat in range(repeats):
                job = experiment.job(
                    dataset, machine, repeat=repeat, rule="predefined", kernel=kernel
                )
                wobble = repeat % 2 if machine == "m4" else 0
                experiment.add(job, count + wobble, n_test, split=split)
    return experiment


def test_the_published_draw_is_placed_among_ours(results):
    toy = made(results, "m4_table1", ["toy_1"], "linear", {"m4": 5, "svm": 5, "mpm": 6}, 500, 240)
    text = table(toy.folder, bold=False)
    assert cells_of(text, "toy_I")[1:] == [
        "measured",
        "98.9 ± 0.1 ~",
        "99.0 ± 0.0 [1]",
        "98.8 ± 0.0 ~",
    ]
    lines = text.splitlines()
    below = lines[next(k for k, line in enumerate(lines) if line.startswith("| toy_I")) :]
    assert "98.8 to 99.0" in below[1]
    assert [cell.strip() for cell in below[2].strip("|").split("|")][2:] == ["98.8", "96.8", "98.8"]
    assert [cell.strip() for cell in below[3].strip("|").split("|")][2:] == ["25", "0", "50"]


def test_the_mark_of_a_draw_allows_for_its_own_deviation(results):
    # 5 or 6 errors of 500: sd 0.1, standard error of 40 draws 0.016. The published 98.8 is one sd
    # below the mean, and six standard errors.
    toy = made(results, "m4_table1", ["toy_1"], "linear", {"m4": 5}, 500, 240, repeats=40)
    text = table(toy.folder)
    assert "98.9 ± 0.1 ~" in text
    assert "within 2 standard errors of the difference" in text
    assert "n and m are the numbers of draws here and in the paper" in text


def test_the_means_of_a_table_are_tested_with_and_without_the_correction(results):
    errors = {"m4": 1, "svm": 2, "mpm": 2}
    heart = made(results, "m4_table2", ["heart", "vote"], "linear", errors, 30, 270, repeats=6)
    text = table(heart.folder)
    assert cells_of(text, "Heart-disease")[:2] == ["Heart-disease", "measured"]
    gaps = [100 / 30 * d for d in (1, 0) * 3]
    row = cells_of(text, "Heart-disease", nth=1)
    score = np.mean(gaps) / (np.std(gaps, ddof=1) * np.sqrt(1 / 6 + 30 / 270))
    plain, corrected = ttest_1samp(gaps, 0).pvalue, 2 * t.sf(score, 5)
    assert row[1:4] == ["+1.67", f"{plain:.3f}", f"{corrected:.3f}"]
    assert row[-1] == "yes"
    assert cells_of(text, "Best")[2:] == ["2", "0", "0"]


def test_swapped_means_of_the_papers_are_no_target(results):
    sonar = made(results, "m4_table2", ["sonar"], "rbf", {"m4": 3, "svm": 3, "mpm": 3}, 21, 187)
    text = table(sonar.folder)
    assert "M4 and MPM are exchanged" in text
    marks = cells_of(text, "Sonar")[2:]
    assert "✓" in marks[1] or "~" in marks[1] or "✗" in marks[1]
    assert not {"✓", "~", "✗"} & set(marks[0] + marks[2])


def test_the_plain_test_is_that_of_scipy():
    gaps = [0.5, 1.0, -0.2, 0.8, 0.4]
    assert paired_p(gaps) == pytest.approx(ttest_1samp(gaps, 0.0).pvalue)
