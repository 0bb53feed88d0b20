"""The transcription of the papers' numbers, and what must follow from them."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from helpers.drawn import load_published
from helpers.planned import config_names

import mmbench
import mmbench.results
from mmbench.errors import UserError
from mmbench.results.published import (
    published_machines,
    published_tables,
    table_of_experiment,
)
from mmbench.tables.layouts import LAYOUTS, find_layout

TRANSCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "papers" / "tables"

PACKAGED = Path(mmbench.results.__file__).parent / "published"

COMPARED = ["paper", "table", "printed_dataset", "kernel", "degree", "printed_method", "metric"]
COMPARED += ["value", "std", "n_train", "n_test", "n_splits"]


def verbatim(paths: list[Path]) -> set[tuple[str, ...]]:
    """Rows of CSV files as they are written, by the paper's own names."""
    frames = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths]
    theirs = {"dataset": "printed_dataset", "method": "printed_method"}
    frame = pd.concat(f.rename(columns=theirs) if "method" in f else f for f in frames)
    return set(frame[COMPARED].itertuples(index=False, name=None))


def test_every_transcribed_number_is_in_the_package() -> None:
    if not TRANSCRIPTS.exists():
        pytest.skip("the transcripts of the papers are not on this machine")
    # Tables of other publications are transcribed for checks of the transcription alone.
    related = {"mempm_jmlr_2004", "do_kalousis_icml_2013"}
    transcribed = verbatim(sorted(TRANSCRIPTS.rglob("*.csv")))
    transcribed = {row for row in transcribed if row[0] not in related}
    packaged = verbatim(sorted(PACKAGED.glob("*.csv")))
    assert len(transcribed) > 750
    assert not transcribed - packaged


def test_every_published_table_is_read_by_an_experiment_a_layout_or_a_figure() -> None:
    read = {table_of_experiment(name) for name in config_names()}
    read |= {find_layout(name).published for name in LAYOUTS}
    code = "".join(path.read_text() for path in Path(mmbench.__file__).parent.rglob("*.py"))
    unread = {name for name in published_tables() if f'"{name}"' not in code} - read
    assert not unread


@pytest.fixture(scope="module")
def packaged() -> pd.DataFrame:
    return pd.concat(map(load_published, published_tables()), ignore_index=True)


def test_names_are_mapped_one_to_one_within_a_table() -> None:
    for table in published_tables():
        frame = load_published(table)
        for ours, printed in (("dataset", "printed_dataset"), ("machine", "printed_method")):
            assert (frame.groupby(ours)[printed].nunique() == 1).all(), table
            assert (frame.groupby(printed)[ours].nunique() == 1).all(), table


def test_no_cell_of_a_table_occurs_twice() -> None:
    for table in published_tables():
        cell = ["table", "dataset", "kernel", "degree", "machine", "metric"]
        assert not load_published(table).duplicated(cell).any(), table


def test_a_number_is_unusable_exactly_when_a_reason_says_why(packaged) -> None:
    assert (packaged["usable"] == (packaged["reason"] == "")).all()
    assert packaged.loc[packaged["value"].isna(), "usable"].eq(False).all()


def test_doubtful_numbers_are_no_targets() -> None:
    for table in ("mmrm_table1", "m4_table2"):
        frame = load_published(table)
        doubtful = frame[~frame["usable"]]
        assert set(doubtful["machine"]) == {"m4", "mpm"}
        assert set(zip(doubtful["dataset"], doubtful["kernel"], strict=True)) == {("sonar", "rbf")}
    rmm = load_published("rmm_table1")
    assert set(rmm.loc[~rmm["usable"], "machine"]) == {"klda"}
    kernel = load_published("fsvm_table4")
    assert set(kernel.loc[~kernel["usable"], "machine"]) == {"rsvm_plus", "rsvm_mu_plus"}


def test_an_unknown_table_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'mmrm_table2'"):
        load_published("mmrm_tabel2")


def test_machines_of_all_tables_are_known_by_our_names() -> None:
    assert {"svm", "rmm", "mmrm", "m4", "mpm", "rsvm_mu_plus"} <= set(published_machines())


@pytest.mark.parametrize(
    ("experiment", "table"),
    [
        ("mmrm_table1", "mmrm_table1"),
        ("rmm_table1_usps", "rmm_table1"),
        ("rmm_table1-smoke", "rmm_table1"),
        ("rmm_table10", None),
    ],
)
def test_an_experiment_belongs_to_the_table_that_begins_its_name(experiment, table) -> None:
    assert table_of_experiment(experiment) == table


def accuracies(table: str, kernel: str) -> pd.DataFrame:
    """Published accuracies, data sets by machines."""
    frame = load_published(table)
    frame = frame[(frame["kernel"] == kernel) & (frame["metric"] == "accuracy_pct")]
    return frame.pivot(index="dataset", columns="machine", values="value")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_mmrm_is_highest_on_two_of_three_data_sets(kernel: str) -> None:
    assert (accuracies("mmrm_table1", kernel).idxmax(axis=1) == "mmrm").sum() == 2


def test_mmrm_has_fewest_errors_on_all_large_data_sets() -> None:
    frame = load_published("mmrm_table2")
    errors = frame[frame["metric"] == "errors_count"]
    assert (
        errors.pivot(index="dataset", columns="machine", values="value").idxmin(axis=1) == "mmrm"
    ).all()


@pytest.mark.parametrize(("kernel", "wins"), [("linear", 5), ("rbf", 4)])
def test_m4_wins_as_often_as_its_text_says(kernel: str, wins: int) -> None:
    table = accuracies("m4_table2", kernel)
    assert (table["m4"] > table[["svm", "mpm"]].max(axis=1)).sum() == wins


def test_mamc_averages_follow_from_the_thirteen_means() -> None:
    table = accuracies("mamc_table2", "rbf")
    average = table.loc["average"]
    means = table.drop(index="average")
    assert len(means) == 13
    assert (means.mean() - average).abs().max() < 0.0051


def test_fsvm_beats_its_rivals_as_often_as_its_text_says() -> None:
    table = accuracies("fsvm_table2", "linear")
    rivals = ("svm", "rmm", "rsvm_plus", "rsvm_mu_plus")
    assert [(table["fsvm"] > table[name]).sum() for name in rivals] == [9, 7, 7, 8]


def test_data_sets_of_the_five_papers_have_a_card() -> None:
    from mmbench.datasets import card_names

    tables = [load_published(name) for name in published_tables()]
    names = {dataset for table in tables for dataset in table["dataset"]}
    variants = {"mnist_1000", "mnist_two_thirds"}
    assert names - {"average", "summary"} - variants <= set(card_names())


def test_the_papers_sizes_of_large_data_sets_are_those_of_the_cards() -> None:
    from mmbench.datasets import load_card

    table = load_published("mmrm_table2")
    sizes = table[table["metric"].isin(["n_features", "n_classes"])]
    assert len(sizes) == 8
    for row in sizes.itertuples():
        expect = load_card(row.dataset).expect
        ours = {"n_features": expect.shape[1], "n_classes": expect.n_classes}
        assert ours[row.metric] == row.value
