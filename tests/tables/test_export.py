"""Records as plain tables: by the command, and as a data frame."""

from __future__ import annotations

import io
import json
import os

import numpy as np
import pandas as pd
import pytest

import mmbench.results
from mmbench.commands.outputs import export, table
from mmbench.errors import Status, UserError
from mmbench.jobs.identity import fingerprint
from mmbench.resources import REFERENCE
from mmbench.results.columns import names
from mmbench.results.splits import IDENTIFIED, PREDICTIONS


@pytest.fixture
def pima(results):
    """Two splits of an SVM, one with arrays; a variant of the M4 that failed."""
    experiment = results.experiment("own")
    arrays = {
        "test_index": np.array([7, 3]),
        "y_test": np.array(["a", "b"]),
        "predicted": np.array(["a", "a"]),
        "decisions": np.array([[-1.0], [-0.25]], dtype=np.float32),
    }
    for repeat in (0, 1):
        job = experiment.job("pima", "svm", repeat=repeat, params=(("tol", 1e-4),))
        selection = {"params": {"C": 10.0 * (repeat + 1)}}
        experiment.add(job, 10 + repeat, selection=selection, arrays=arrays if repeat else None)
    experiment.fail(experiment.job("pima", "m4_nu80"), Status.TIME_LIMIT, "too slow")
    return experiment


def test_every_split_is_a_row_failed_ones_too(pima) -> None:
    frame = mmbench.results.load(pima.folder)
    assert list(frame.columns) == names("splits")
    assert list(frame.machine) == ["svm", "svm", "m4_nu80"]
    assert frame.accuracy_pct[:2].tolist() == [90.0, 89.0]
    assert json.loads(frame.parameters[1]) == {"C": 20.0, "tol": 1e-4}
    assert json.loads(frame.parameters[2]) == {"nu": 0.8}
    assert (frame.status[2], frame.reason[2]) == ("time_limit", "too slow")
    assert pd.isna(frame.accuracy_pct[2])
    assert frame.seconds_training[0] == 1.5


def test_predictions_are_a_row_a_test_row(pima) -> None:
    frame = mmbench.results.load(pima.folder, predictions=True)
    assert tuple(frame.columns) == (*IDENTIFIED, *PREDICTIONS, "record")
    assert frame[["row", "label", "predicted", "decision"]].values.tolist() == [
        [7, "a", "a", -1.0],
        [3, "b", "a", -0.25],
    ]
    assert set(frame.repeat) == {2}, "repeats are counted from 1"


def test_a_folder_that_is_given_twice_counts_once(pima) -> None:
    assert export([pima.folder.parent, pima.folder]) == export([pima.folder])
    assert table([pima.folder, pima.folder.parent]) == table([pima.folder])


def test_a_pipe_or_a_link_as_output_is_written_and_kept(pima, tmp_path) -> None:
    """As root, /dev/null and /dev/stdout would be replaced by files otherwise."""
    pipe, link = tmp_path / "pipe", tmp_path / "link.csv"
    os.mkfifo(pipe)
    link.symlink_to(tmp_path / "target.csv")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    export([pima.folder], output=pipe)
    assert os.read(reader, 2**16).decode() == export([pima.folder])
    os.close(reader)
    table([pima.folder], output=link)
    assert link.is_symlink()
    assert (tmp_path / "target.csv").read_text() == table([pima.folder], "csv")


def test_csv_and_parquet_hold_the_same(pima, tmp_path) -> None:
    pytest.importorskip("pyarrow")
    said = export([pima.folder], output=tmp_path / "all.parquet")
    assert said == f"3 rows written to {tmp_path / 'all.parquet'}"
    export([pima.folder], output=tmp_path / "all.csv")
    text = export([pima.folder])
    assert (tmp_path / "all.csv").read_text() == text
    one = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype=str)
    other = pd.read_parquet(tmp_path / "all.parquet")
    assert list(one.columns) == list(other.columns)
    assert one.record.tolist() == other.record.tolist()
    assert other.seconds_calibration.dtype == "Float64", "of no value too"
    assert one.errors_count[0] == str(other.errors_count[0]) == "10"


def test_several_folders_and_whole_results_are_one_table(pima, usps) -> None:
    both = mmbench.results.load(pima.folder, usps.folder)
    assert set(both.experiment) == {"own", "usps_rbf"}
    assert len(mmbench.results.load(usps.folder.parent)) == len(both) == 6


def test_a_reference_table_with_splits_is_read_as_its_records(pima, tmp_path) -> None:
    reference = tmp_path / "reference" / "own"
    reference.mkdir(parents=True)
    table(pima.folder, output=reference / "table.csv")
    export([pima.folder], output=reference / "splits.csv.gz")
    once = (reference / "splits.csv.gz").read_bytes()
    export([pima.folder], output=reference / "splits.csv.gz")
    assert (reference / "splits.csv.gz").read_bytes() == once, "no time of writing in it"
    records, reread = (mmbench.results.load(f) for f in (pima.folder, reference))
    pd.testing.assert_frame_equal(records, reread)
    assert export([reference]) == export([pima.folder])
    with pytest.raises(UserError, match="no records to export"):
        mmbench.results.load(reference, predictions=True)


def test_no_spreadsheet_runs_a_cell_and_no_terminal_obeys_one(results) -> None:
    experiment = results.experiment("own")
    arrays = {
        "test_index": np.arange(5),
        "y_test": np.array(["=1+1", "+x", "-1", "@a", "\tb"]),
        "predicted": np.array(["-1e3", "-x", "a=b", "\x1b[2Jc", "\u202ed"]),
        "decisions": np.full((5, 1), -1.0, dtype=np.float32),
    }
    experiment.add(experiment.job("pima", "svm"), 1, arrays=arrays)
    experiment.fail(experiment.job("pima", "m4"), reason="=cmd|' /C calc'!A0\x9b")
    rows = pd.read_csv(io.StringIO(export([experiment.folder], predictions=True)), dtype=str)
    assert rows.label.tolist() == ["'=1+1", "'+x", "-1", "'@a", "'\tb"]
    assert rows.predicted.tolist() == ["-1e3", "'-x", "a=b", r"\x1b[2Jc", r"\u202ed"]
    assert rows.decision.tolist() == ["-1"] * 5
    splits = pd.read_csv(io.StringIO(export([experiment.folder])))
    assert splits.reason[1] == r"'=cmd|' /C calc'!A0\x9b"
    frame = mmbench.results.load(experiment.folder, predictions=True)
    assert frame.label[0] == "=1+1", "a data frame has the labels as they are"


def test_classifiers_of_other_packages_have_no_kernel(results, tmp_path) -> None:
    experiment = results.experiment("own", layout="machines")
    ours = {"machine": "my_machine:Mine", "variant": "mine", "defaults": (("ties", "lowest"),)}
    theirs = {"machine": "sklearn.svm:SVC", "variant": "svc", "defaults": (("C", 1.0),)}
    for kernel in ("rbf", "linear"):
        experiment.add(experiment.job("pima", **ours, kernel=kernel))
    experiment.add(experiment.job("pima", **theirs))
    expected = [("mine", "rbf"), ("mine", "linear"), ("svc", "")]
    frame = mmbench.results.load(experiment.folder)
    assert list(frame[["machine", "kernel"]].itertuples(index=False, name=None)) == expected
    text = table(experiment.folder)
    assert "Classifiers of other packages, in the rows of rbf: SVC." in text
    reference = tmp_path / "reference" / "own"
    reference.mkdir(parents=True)
    for folder in (experiment.folder, reference):  # a reference table is written as it was read
        table(folder, output=reference / "table.csv")
        cells = pd.read_csv(reference / "table.csv", keep_default_na=False)
        cells = cells[cells.dataset != ""]
        assert {*zip(cells.machine, cells.kernel, strict=True)} == {*expected}
    rbf, linear = str(table(reference, layout="machines")).split("Linear kernel**")
    assert "**pima: RBF kernel and other packages**" in rbf
    assert ("| SVC " in rbf, "| SVC " in linear) == (True, False)


def test_what_cannot_be_exported_is_one_line(pima, tmp_path) -> None:
    reference = tmp_path / "reference" / "own"
    reference.mkdir(parents=True)
    (reference / "table.csv").write_text("dataset,kernel,machine,metric,status,note,n,in_band\n")
    with pytest.raises(UserError, match="no records to export"):
        export([reference])
    with pytest.raises(UserError, match="did you mean 'csv'"):
        export([pima.folder], fmt="cvs")
    with pytest.raises(UserError, match="needs --output FILE"):
        export([pima.folder], fmt="parquet")
    with pytest.raises(
        UserError, match=r"all\.xlsx: the name must end in \.csv, \.csv\.gz, \.parquet; or"
    ):
        export([pima.folder], output=tmp_path / "all.xlsx")
    with pytest.raises(UserError, match="cannot be written"):
        export([pima.folder], output=tmp_path / "no" / "all.csv")


def test_a_metric_that_is_no_number_is_a_failed_split(results) -> None:
    experiment = results.experiment("own")
    experiment.add(experiment.job("pima", "svm"), 10)
    metrics = {"accuracy_pct": None, "errors_count": None, "n_test": 100}
    experiment.add(experiment.job("pima", "svm", repeat=1), metrics=metrics)
    frame = mmbench.results.load(experiment.folder)
    assert frame.status.tolist() == ["optimal", "failed"]
    assert frame.reason[1] == "a metric is not a number"


WITH_SPLITS = sorted(path.parent.name for path in REFERENCE.glob("*/splits.csv.gz"))


@pytest.mark.parametrize("name", WITH_SPLITS)
def test_means_of_the_splits_of_a_reference_are_in_its_table(name) -> None:
    cells, splits = (
        pd.read_csv(REFERENCE / name / file, low_memory=False)
        for file in ("table.csv", "splits.csv.gz")
    )
    assert splits.experiment.eq(name).all() and splits.split_hash.notna().all()
    splits = splits[splits.status != "failed"]  # the table's means leave them out
    place = ["dataset", "kernel", "degree", "machine", *(["size"] if "size" in cells else [])]
    # columns of other packages' classifiers have no kernel
    absent = {"degree": -1, "size": -1, "kernel": ""}
    cells, splits = (table.fillna(absent) for table in (cells, splits))
    for metric in ("accuracy_pct", "errors_count"):
        rows = cells[(cells.metric == metric) & cells.measured.notna()].set_index(place)
        means = splits.groupby(place)[metric].agg(["mean", "count"]).loc[rows.index]
        assert means["count"].tolist() == rows.n.tolist()
        differences = means["mean"].to_numpy(float) - rows.measured.to_numpy()
        assert abs(differences).max() <= 1e-6


def test_the_splits_of_all_references_are_small() -> None:
    assert set(WITH_SPLITS) == {path.parent.name for path in REFERENCE.glob("*/table.csv")}
    assert sum(path.stat().st_size for path in REFERENCE.glob("*/splits.csv.gz")) < 4e6


def test_an_export_counts_records_of_other_code(results, tmp_path) -> None:
    experiment = results.experiment("mine", datasets=["iris"], machines=["svm"], splits=2)
    for repeat, made in enumerate([fingerprint("svm"), "old"]):
        code = {"version": 4, "commit": None, "fingerprint": made}
        experiment.add(experiment.job("iris", "svm", repeat=repeat), code=code)
    said: list[str] = []
    export(experiment.folder, output=tmp_path / "one.csv", say=said.append)
    assert said == [f"{experiment.folder}: 1 of 2 records are by other code"]
