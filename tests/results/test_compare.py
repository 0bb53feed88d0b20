"""The comparison of two results: what agrees, what differs, and from which size."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mmbench
from benchmarks.compare_faults import (
    FAULTS,
    NAMES,
    ROOT,
    WAYS,
    outcome,
    page,
    reference,
    seen,
    sizes,
    table,
)
from mmbench.commands.outputs import comparison_text
from mmbench.results.cells import METRIC
from mmbench.results.compare import Changes, compare
from mmbench.results.frames import Results


def subjects(changes: Changes) -> list[str]:
    """Return the subjects of the differences, without repetitions."""
    return list(dict.fromkeys(changes.differences.subject))


# -- reference tables ------------------------------------------------------------------------------


#: References with so few splits that all faults take seconds; the others are slow tests.
QUICK = [name for name in NAMES if (ROOT / name / "splits.csv.gz").stat().st_size < 13_000]
BY_SIZE = [pytest.param(n, marks=[] if n in QUICK else pytest.mark.slow) for n in NAMES]


@pytest.mark.parametrize("name", BY_SIZE)
def test_every_reference_agrees_with_itself(name: str) -> None:
    own = reference(name)
    made = compare(own, own)
    assert (made.exit_code, len(made.findings)) == (0, 0)
    assert set(made.compared.way) == {WAYS[0]} and set(made.compared.verdict) == {"equal"}


def changed(results: Results, machine: str = "svm", metric: str = ".*", **columns) -> Results:
    """Return results with other values in some rows of the frame ``cells``."""
    cells = results.cells.copy()
    rows = cells.metric.str.fullmatch(metric) & cells.machine.str.fullmatch(machine)
    rows &= (cells.dataset != "") | cells.metric.str.startswith("excess")
    assert rows.any()
    for name, value in columns.items():
        cells.loc[rows, name] = value(cells.loc[rows, name]) if callable(value) else value
    return replace(results, stored=cells)


@pytest.mark.parametrize(
    ("name", "machine", "metric", "columns", "found"),
    [
        ("usps_rbf", "svm", "errors_count", {"measured": 92.0}, []),  # rounding moves a row
        ("usps_rbf", "svm", "errors_count", {"measured": 108.0}, ["mean"]),
        ("usps_rbf", "svm", ".*", {"status": "failed"}, ["status"]),
        ("usps_rbf", "mmrm", "worst_gap", {"measured": 1e-3}, ["certificate"]),
        ("usps_rbf", "mmrm", "worst_gap", {"measured": 1e-9}, []),
        ("usps_rbf", "rmm", "worst_gap", {"measured": 9e-4}, []),  # the tolerance is 1e-3
        ("usps_rbf", ".*", "worst_.*", {"measured": float("nan")}, ["missing value"]),
        ("solvers", ".*", "gaps_above_tolerance", {"measured": lambda v: 4 * v}, ["mean"]),
        ("usps_rbf", "svm", ".*", {"measured": float("nan")}, ["missing value"]),
        ("usps_rbf", "svm", "seconds_selection", {"measured": 1e6}, []),  # a warning
        ("usps_rbf", "rmm", "errors_count", {"in_band": False}, ["band"]),
        ("solvers", ".*", "ms_training_median", {"measured": lambda v: 3 * v}, []),
        ("solvers", ".*", "excess_.*", {"measured": 5e-15}, []),
        ("solvers", "svm", "excess_max", {"measured": 0.1}, ["certificate"]),
        ("mmrm_fig2", ".*", "regression_.*", {"measured": lambda v: -5 * v}, ["mean"]),
        ("verdict_large", ".*", "auc", {"measured": lambda v: 0.9 * v}, ["mean"]),
        ("rmm_fig2", ".*", "ratio_.*|exponent_.*", {"measured": lambda v: 2 * v}, []),
        ("rmm_fig2", ".*", "errors_expected", {"measured": lambda v: v + 1}, []),
        ("rmm_fig2", ".*", "errors_expected", {"measured": lambda v: v + 30}, ["mean"]),
    ],
)
@pytest.mark.parametrize("way", WAYS[:2])
def test_a_changed_table_is_noticed(name, machine, metric, columns, found, way) -> None:
    before = reference(name)
    made = seen(before, changed(before, machine, metric, **columns), way)
    assert subjects(made) == found and made.exit_code == bool(found)
    assert (columns == {"measured": 1e6}) == (list(made.warnings.subject) == ["seconds"])


def test_means_of_other_splits_agree_within_their_noise() -> None:
    before = reference("mamc_table2")
    se = before.cells[before.cells.metric == METRIC].se.mean()
    for shift, subject in ((2 * se / 10, []), (30.0, ["mean", "sum over cells"])):
        after = changed(before, ".*", METRIC, measured=lambda v, by=shift: v - by)
        made = seen(before, after, WAYS[2])
        assert subjects(made) == subject
        assert (made.compared.way == WAYS[2]).sum() == 156


def test_missing_data_sets_and_experiments_are_differences(tmp_path) -> None:
    before = reference("mmrm_table2")
    kept = before.cells[before.cells.dataset != "usps"]
    made = compare(before, replace(before, stored=kept, splits=before.splits[:0]))
    assert made.exit_code == 1 and set(made.differences.dataset) == {"usps"}
    part = replace(before, stored=kept, splits=before.splits[before.splits.dataset != "usps"])
    made = compare(before, part, part=True)
    assert (made.exit_code, len(made.findings)) == (0, 0)
    made = compare(before, replace(before, stored=before.cells[:0], splits=before.splits[:0]))
    assert made.exit_code == 3 and set(made.cells.verdict) <= {"missing", "not compared"}
    for name, text in (("a", "m"), ("b", "m"), ("other/b", "m")):
        written(tmp_path / name, text)
    made = mmbench.compare(tmp_path, tmp_path / "other")
    assert subjects(made) == ["missing experiment"] and list(made.differences.experiment) == ["a"]


def test_a_data_set_with_other_rows_is_named_and_not_compared() -> None:
    before = reference("mmrm_table2")
    n_test = before.splits.n_test.mask(before.splits.dataset == "isolet", 100)
    facts = {**before.facts, "deviations": {}}
    other = before.splits.split_hash.mask(before.splits.dataset == "isolet", "other")
    splits = before.splits.assign(n_test=n_test, split_hash=other)
    after = changed(before, ".*", "errors_count", measured=lambda v: v)
    made = compare(before, replace(after, splits=splits, facts=facts))
    assert made.exit_code == 0 and set(made.skipped.dataset) == {"isolet"}
    text = comparison_text(made)
    assert "of isolet, rows are missing" in text and "warning: mmrm_table2 isolet: other" in text


# -- faults of a size ------------------------------------------------------------------------------


#: Largest loss in percentage points that is not a difference, if splits are compared one by one;
#: and whether such a loss is at least a warning.
LIMITS = {
    "all": (3.6, False),
    "all_others": (0, True),
    "tenth": (5, False),
    "tenth_others": (5, True),
    "swapped": (0.5, False),
    "gone": (0, True),
    "trivial": (0, True),
    "parameters": (0, True),
    "points_0.5": (0.6, False),
    "points_1": (1.1, False),
    "points_2": (0, True),
}


@pytest.mark.parametrize("name", BY_SIZE)
def test_faults_are_noticed(name: str) -> None:
    for label, (limit, warned) in LIMITS.items():
        made = outcome(reference(name), FAULTS[label], WAYS[0])
        assert (len(made) or label == "gone") and not made.loss[
            made.noticed != "difference"
        ].max() > limit
        assert not warned or (made.noticed != "").all()


@pytest.mark.slow
def test_the_page_states_which_faults_are_noticed() -> None:
    text = (ROOT.parents[1] / "docs/compare.md").read_text(encoding="utf-8")
    assert page(table()) in text and sizes() in text


# -- one cell --------------------------------------------------------------------------------------

SPLITS = pd.DataFrame(
    {
        "experiment": "quickstart",
        "dataset": "iris",
        "kernel": "linear",
        "machine": "svm",
        "repeat": range(1, 21),
        "fold": 1,
        "seed": 0,
        "data_hash": "d",
        "split_hash": [f"s{k}" for k in range(20)],
        "status": "optimal",
        "errors_count": [98.0, 99.0, 100.0, 101.0, 102.0] * 4,
        "n_train": 500,
        "n_test": 1000,
        "parameters": '{"C": 1}',
        "fits": "{}",
        "gap_tolerance": 1e-3,
        "worst_gap": 1e-9,
        "worst_violation": 0.0,
        "certificates": '[{"objective": 2.0}]',
    }
)


def written(folder: Path, machine: str = "svm", splits: pd.DataFrame = SPLITS, **cell) -> Path:
    """Write the table of a cell and its splits, and return the path of the table."""
    folder.mkdir(parents=True)
    splits = splits.assign(accuracy_pct=100 - splits.errors_count / 10, machine=machine)
    splits.to_csv(folder / "splits.csv", index=False)
    row = splits.iloc[0]
    head = {name: row[name] for name in ("experiment", "dataset", "kernel", "machine", "status")}
    rows = [
        {**head, "metric": name, "measured": v.mean(), "se": v.sem(), "n": len(v), "note": ""}
        for name, v in ((name, splits[name]) for name in ("accuracy_pct", "errors_count"))
    ]
    pd.DataFrame([{**row, **cell} for row in rows]).to_csv(folder / "table.csv", index=False)
    return folder / "table.csv"


def put(column: str, *values) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that changes a column in the first splits."""

    def change(splits: pd.DataFrame) -> pd.DataFrame:
        splits = splits.copy()
        given = [
            value(splits[column].iloc[k]) if callable(value) else value
            for k, value in enumerate(values)
        ]
        splits[column] = [*given, *splits[column].iloc[len(values) :]]
        return splits

    return change


def more(*errors: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function that adds errors in the first splits."""
    return put("errors_count", *(lambda value, k=k: value + k for k in errors))


def per_pair(moved: int) -> str:
    """Return parameters of 20 pairs of classes, of which some are others."""
    return json.dumps([{"C": 10}] * moved + [{"C": 1}] * (20 - moved))


OTHER = '{"C": 10}'
RENAMED = put("split_hash", *["other"] * 20)
RENAMED_IN_PART = put("split_hash", *(f"t{k}" for k in range(10)))


@pytest.mark.parametrize(
    ("changes", "differences", "warnings"),
    [
        ([], [], []),
        ([more(2, -2)], [], []),  # rounding
        ([more(3)], ["splits"], []),
        ([more(*[2] * 20)], ["mean"], []),  # always in one direction
        ([more(3), put("status", "stopped_by_rule")], ["status of splits", "splits"], []),
        ([put("errors_count", 102.0, *[99.0] * 3, 98.0)], ["splits"], []),  # with the same mean
        # near ties of a tenth of the splits
        ([put("parameters", OTHER, OTHER), more(20, -19)], [], ["parameters"]),
        ([put("parameters", OTHER, OTHER), more(70)], ["splits"], ["parameters"]),
        ([put("parameters", OTHER, OTHER), more(50, 50)], ["mean"], ["parameters"]),
        ([put("parameters", *[OTHER] * 3), more(9, -9)], ["splits", "parameters"], []),
        ([put("parameters", *[OTHER] * 20)], [], ["parameters"]),
        ([put("parameters", *[OTHER] * 20), more(1)], ["parameters"], []),
        ([put("parameters", OTHER), put("status", "stopped_by_rule")], [], ["parameters"]),
        # statuses
        ([put("status", *["failed"] * 20)], ["status of splits", "status"], []),
        ([put("status", "stopped_by_rule")], [], ["status of splits"]),
        ([put("status", "stopped_by_rule"), more(1)], ["status of splits"], []),
        ([put("status", "trivial"), more(1)], [], []),  # the same optimum
        ([put("status", *["trivial"] * 20)], [], ["status of splits"]),
        ([put("status", "trivial"), put("certificates", '[{"objective": 3.0}]')], [], ["status"]),
        # certificates
        ([put("worst_gap", 1e-4)], [], []),
        ([put("worst_gap", 1e-2)], ["splits"], []),
        ([put("worst_gap", float("nan"))], ["splits"], []),
        ([put("worst_violation", 1e-7)], [], []),
        ([put("worst_violation", 1e-2)], ["splits"], []),
        # numbers of splits, and other splits
        ([lambda splits: splits[:18]], ["missing splits"], []),
        ([lambda splits: pd.concat([splits, more(3)(splits)])], [], ["more splits"]),  # repeated
        ([RENAMED, more(*[0.5] * 20)], [], []),
        ([RENAMED, more(*[4] * 20)], ["mean"], []),
        ([put("seed", *[1] * 20), more(*[8] * 20)], [], []),  # another selection
        ([put("seed", *[1] * 20), more(*[15] * 20)], ["mean"], []),
        ([RENAMED_IN_PART, put("seed", *[1] * 20), more(*[8] * 20)], ["mean"], []),
        ([put("repeat", *range(21, 41)), more(*[8] * 20)], [], []),  # in another order
    ],
)
def test_splits_of_a_cell(tmp_path, changes, differences, warnings) -> None:
    splits = SPLITS
    for change in changes:
        splits = change(splits)
    paths = written(tmp_path / "a"), written(tmp_path / "b", splits=splits)
    made = mmbench.compare(*paths)
    found = [sorted({*frame.subject}) for frame in (made.differences, made.warnings)]
    assert found[0] == sorted(differences)
    assert [name.removesuffix(" of splits") for name in found[1]] == [
        name.removesuffix(" of splits") for name in sorted(warnings)
    ]
    assert made.exit_code == bool(differences)
    assert len(comparison_text(made).splitlines()) == 1 + len(made.findings)
    if not changes:
        assert set(made.cells.verdict) == {"equal"} and set(made.cells.way) == {WAYS[0]}
        allowed = made.cells.set_index("metric").allowed
        assert allowed["accuracy_pct"] == pytest.approx(allowed["errors_count"] / 10)


def test_predictions_of_rows_show_a_smaller_difference(tmp_path) -> None:
    """160 errors more than about 2000, on other rows; with another seed, not by rounding."""
    after = put("seed", *[1] * 20)(more(*[8] * 20)(SPLITS))
    paths = written(tmp_path / "a"), written(tmp_path / "b", splits=after)
    assert mmbench.compare(*paths).exit_code == 0
    tests, wrong = np.full(1500, 20000 // 1500) + (np.arange(1500) < 500), np.zeros(1500, int)
    wrong[:160] = 1
    for path, lost in zip(paths, (0 * wrong, wrong), strict=True):
        rows = SPLITS[:2].assign(
            machine=["", "svm"], counts=[tests.tolist(), (tests - lost - 1).tolist()]
        )
        rows.to_csv(path.parent / "rows.csv.gz", index=False)
    made = mmbench.compare(*(path.parent for path in paths))
    assert subjects(made) == ["mean over rows"] and made.cells.by_rows.all()


@pytest.mark.parametrize(
    ("moved", "errors", "code"), [(0, 3, 1), (1, 4, 0), (1, 5, 1), (2, 6, 0), (3, 3, 1)]
)
def test_a_near_tie_of_few_pairs_may_move_two_more_errors_each(tmp_path, moved, errors, code):
    old = put("parameters", *[per_pair(0)] * 20)(SPLITS)
    new = more(errors)(put("parameters", per_pair(moved))(old))
    made = mmbench.compare(written(tmp_path / "a", splits=old), written(tmp_path / "b", splits=new))
    assert made.exit_code == code
    if moved:
        row = made.findings[made.findings.subject == "parameters"].iloc[0]
        assert (row["count"], row.total) == (moved, 400)


@pytest.mark.parametrize(("n", "more", "code"), [(1, 2, 0), (1, 2.1, 1), (4, 1, 0), (4, 1.1, 1)])
def test_the_tolerance_of_a_mean_falls_with_the_root_of_the_number_of_splits(
    tmp_path, n, more, code
) -> None:
    paths = [
        written(tmp_path / name, measured=value, n=n, metric="errors_count")
        for name, value in (("a", 9.0), ("b", 9.0 + more))
    ]
    for path in paths:
        (path.parent / "splits.csv").unlink()
    made = mmbench.compare(*paths)
    assert made.exit_code == code and set(made.cells.way) == {WAYS[1]}


@pytest.mark.parametrize(
    ("part", "found"), [(False, ["mean", "missing splits"]), (True, [])], ids=["whole", "part"]
)
def test_a_mean_of_fewer_splits_is_compared_unless_they_are_a_part(tmp_path, part, found) -> None:
    paths = [
        written(tmp_path / f"{n}", splits=SPLITS[:n], metric="auc", measured=value, n=n, se=0.01)
        for n, value in ((20, 0.9), (10, 0.5))
    ]
    assert sorted(subjects(mmbench.compare(*paths, part=part))) == found


def test_a_cell_without_a_result_before_may_have_one() -> None:
    after = replace(reference("usps_rbf"), splits=reference("usps_rbf").splits[:0])
    made = compare(changed(after, status="failed", measured=float("nan")), after)
    assert (made.exit_code, len(made.findings)) == (0, 0)


def test_wrong_input_is_an_error(tmp_path) -> None:
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    for path in ("text.csv", "nothing", "nothing.csv"):
        with pytest.raises(mmbench.errors.UserError, match=path):
            mmbench.compare(tmp_path / path, written(tmp_path / f"for-{path}"))
