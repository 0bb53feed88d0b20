"""Machines of one experiment as columns of another experiment."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.serial_executor import no_processes

import mmbench
from mmbench.errors import UserError

HOST = {
    "name": "host",
    "datasets": ["iris", "wine"],
    "kernel": "linear",
    "protocol": {"test": {"kfold": 5}, "seed": 0},
    "machines": {"lda": {}},
}
NB = {"machines": {"nb": {"estimator": "sklearn.naive_bayes.GaussianNB", "label": "Bayes"}}}
GUESTS = {
    "same": NB,
    "other splits": NB | {"protocol": {"test": {"kfold": 5}, "seed": 1}},
    "other classes": NB
    | {"datasets": [{"name": "iris", "classes": ["setosa", "versicolor"]}, "wine"]},
    "more data": NB | {"datasets": ["iris", "wine", "breast_cancer"]},
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the folder of the host and of each guest."""
    made = {}
    for name, changes in {"host": {}, **GUESTS}.items():
        config = HOST | changes | {"name": name.replace(" ", "_")}
        with no_processes():
            (done,) = mmbench.run(config, tmp_path_factory.mktemp("results"), jobs=1)
        made[name] = done.folder
    return made


def heads(text: str) -> list[str]:
    """Return the headings of the tables."""
    return [line.split(":")[0] for line in text.splitlines() if line.startswith("## ")]


@pytest.mark.parametrize(
    ("guest", "names", "line"),
    [
        ("same", ["## host"], "From "),
        ("other splits", ["## host", "## other_splits"], ""),
        (
            "other classes",
            ["## host", "## other_classes"],
            "Bayes on iris: 5 of 5 splits are others",
        ),
        ("more data", ["## host", "## more_data"], "From "),
    ],
)
def test_a_machine_is_a_column_where_data_and_splits_agree(folders, guest, names, line):
    text = mmbench.table([folders["host"], folders[guest]])
    assert heads(text) == names
    assert line in text
    first = text.partition("\n## ")[0] if len(names) > 1 else text
    assert ("Bayes" in first) == (guest != "other splits")


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("metrics", [(), ["balanced_accuracy"]])
def test_the_column_has_the_values_and_the_test_of_one_experiment(folders, tmp_path, metrics):
    both = HOST | {"name": "both", "machines": HOST["machines"] | NB["machines"]}
    (done,) = mmbench.run(both, tmp_path, jobs=1)
    pair = [folders["host"], folders["same"]]
    own, joined = (mmbench.table(of, metrics=metrics) for of in (done.folder, pair))
    rows = [
        [
            line
            for line in text.splitlines()
            if line.startswith(("| iris", "| wine", "- Difference"))
            and " + " not in line  # CPU times of two runs
        ]
        for text in (own, joined)
    ]
    assert rows[0] == rows[1] and len(rows[0]) > 2


def test_experiments_inside_one_folder_stay_apart(folders, tmp_path):
    for name in ("host", "same"):
        (tmp_path / name).symlink_to(folders[name])
    assert heads(mmbench.table(tmp_path)) == ["## host", "## same"]


def test_only_some_data_sets_and_machines_are_shown(folders):
    pair = [folders["host"], folders["same"]]
    text = mmbench.table(pair, only=["dataset=wine"])
    assert "| wine" in text and "| iris" not in text
    assert "| Bayes" not in mmbench.table(pair, only=["machine=lda"]).partition("\n- ")[0]
    with pytest.raises(UserError, match="no such dataset in host; did you mean 'wine'"):
        mmbench.table(pair, only=["dataset=wime"])
    with pytest.raises(UserError, match="must be dataset=NAME or machine=NAME"):
        mmbench.table(pair, only=["wine"])


def test_a_part_of_a_reference_states_only_facts_of_the_part():
    whole = mmbench.table("reference/quickstart")
    part = mmbench.table("reference/quickstart", only=["dataset=digits", "machine=svm"])
    assert "| SVM     | 225 optimal | SMO 225 |   1.0e-03 |    1.9e-05 |     6.4e-05 |" in part
    assert "RMM" in whole and "RMM" not in part
    assert "other code than this table: 0 of 5." in part


def test_one_block_is_shown_with_a_caption(folders):
    text = mmbench.table(folders["host"], fmt="latex", block=1, caption="My caption")
    assert text.count("tabular}") == 2 and "My caption" in text
    with pytest.raises(UserError, match=r"--block 99: host: .* has the blocks 1 "):
        mmbench.table(folders["host"], block=99)
