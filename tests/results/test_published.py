"""The transcription of the papers' numbers, and what must follow from them."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
import yaml
from helpers.drawn import load_published
from helpers.planned import config_names

import mmbench
import mmbench.results
from mmbench.config.plan import plan_of
from mmbench.config.read import config_of, load_config, to_yaml
from mmbench.errors import UserError
from mmbench.jobs.planned import Plan
from mmbench.jobs.seal import BadRecord
from mmbench.results.published import published_machines, published_tables, table_of_experiment
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
    from mmbench.datasets.card_files import card_names

    tables = [load_published(name) for name in published_tables()]
    names = {dataset for table in tables for dataset in table["dataset"]}
    variants = {"mnist_1000", "mnist_two_thirds"}
    assert names - {"average", "summary"} - variants <= set(card_names())


def test_the_papers_sizes_of_large_data_sets_are_those_of_the_cards() -> None:
    from mmbench.datasets.card import load_card

    table = load_published("mmrm_table2")
    sizes = table[table["metric"].isin(["n_features", "n_classes"])]
    assert len(sizes) == 8
    for row in sizes.itertuples():
        expect = load_card(row.dataset).expect
        ours = {"n_features": expect.shape[1], "n_classes": expect.n_classes}
        assert ours[row.metric] == row.value


# -- a table of one's own --------------------------------------------------------------------------

PAPERS = sorted((Path(__file__).resolve().parents[2] / "examples" / "papers").iterdir())
OWN = """\
dataset,machine,metric,value,std,std_is,n_splits,printed_dataset,reason
Wine,svm,,97.1,0.4,se,10,Wine (UCI),
Wine,rmm,error_pct,40,,,10,Wine (UCI),
Wine,knn,,93.0,,,10,Wine (UCI),
Wine,svm,balanced_error_pct,2.9,,,10,Wine (UCI),
iris,svm,,97,,,10,,typed from memory
vote,svm,,94,,,10,,
average,svm,,95.2,,,,,
summary,svm,wins_against_rmm,2,,,,,
"""
SMALL = {
    "name": "own",
    "datasets": [{"name": "wine", "published_as": "Wine"}, "iris"],
    "preprocess": "standard",
    "kernel": "linear",
    "protocol": {"test": {"kfold": 3}, "repeats": 2},
    "metrics": ["accuracy", "balanced_accuracy"],
    "published": "own.csv",
    "published_only": ["knn"],
    "machines": ["svm", "rmm"],
}


@pytest.mark.usefixtures("one_process")
def test_a_table_of_ones_own_is_compared_cell_by_cell_without_its_file(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(OWN)
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(SMALL))
    (run,) = mmbench.run(tmp_path / "own.yaml", tmp_path)
    (tmp_path / "own.csv").unlink()
    (elsewhere := tmp_path / "elsewhere").mkdir()
    mmbench.export(run.folder, output=elsewhere)
    text = str(mmbench.table(run.folder))
    assert str(mmbench.table(elsewhere)).splitlines()[1:] == text.splitlines()[1:]
    frame = pd.read_csv(StringIO(str(mmbench.table(run.folder, fmt="csv"))))
    cells = frame.set_index(["dataset", "machine", "metric"])
    assert cells.published["wine", "svm", "accuracy_pct"] == 97.1
    assert cells.published["wine", "rmm", "accuracy_pct"] == 60
    assert cells.mark["wine", "rmm", "accuracy_pct"] == "✗"
    assert cells.published["wine", "svm", "balanced_accuracy"] == pytest.approx(0.971)
    assert cells.in_band["wine", "svm", "balanced_accuracy"]
    assert cells.half_width_published_se["wine", "svm", "accuracy_pct"] > 0
    assert "typed from memory" in cells.objection["iris", "svm", "accuracy_pct"]
    assert "Published, but not in this table: vote." in text
    assert "– / 93" in text and "/ 0.971" in text
    assert "/ 97.1" in str(mmbench.table(run.folder, fmt="latex"))
    assert run.exit_code == mmbench.run(run.folder, tmp_path)[0].exit_code == 0


@pytest.mark.parametrize("folder", PAPERS, ids=lambda path: path.name)
def test_the_papers_of_the_examples_are_read_and_compared(folder: Path) -> None:
    config = load_config(folder / "config.yaml")
    assert config_of(yaml.safe_load(to_yaml(config)), folder) == config
    stated = {row["dataset"] for row in plan_of(config).published if row.get("kernel")}
    assert set(config.published_names.values()) <= stated
    compared = re.findall("Compared cells: ([0-9]+)", (folder / "table.md").read_text("utf-8"))
    assert int(compared[0]) >= 12


@pytest.mark.parametrize("row", [{"value": "high"}, {"value": 1, "degree": "two"}, {"value": None}])
def test_a_forged_published_row_is_named(row) -> None:
    with pytest.raises(BadRecord, match="published"):
        Plan.of({"name": "x", "published": [{"dataset": "a", "metric": "accuracy_pct", **row}]})


def test_the_page_of_the_sixth_paper_begins_with_files_that_are_read(tmp_path: Path) -> None:
    page = (PAPERS[0].parents[2] / "docs" / "sixth_paper.md").read_text(encoding="utf-8")
    lines = re.findall("^    (.+)$", page.partition("```")[0], re.M)
    (tmp_path / "published.csv").write_text("\n".join(lines))
    config = config_of(
        yaml.safe_load(re.findall(r"```yaml\n(.*?)```", page, re.S)[0]), tmp_path / "x"
    )
    assert len(config.published) == 6 == len(plan_of(config).cells)


def test_a_file_that_is_no_published_table_is_named_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(OWN.replace("97.1", "97,1"))
    with pytest.raises(UserError, match=r"published: own\.csv: row 1 has more fields"):
        config_of(SMALL, tmp_path / "own.yaml")
