"""Splits by groups, by time, one row at a time, and of a file of folds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import TimeSeriesSplit

from mmbench.datasets.dataset import DatasetRef
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.partitions import split_at, split_slots
from mmbench.errors import UserError
from mmbench.jobs.job import Job, SplitRef

NO_STORE = Path("no-such-store")


@pytest.fixture
def clinic(tmp_path):
    """Forty visits of ten patients, not in the order of time."""
    rng = np.random.default_rng(0)
    lines = ["patient,age,day,label"]
    for k, day in enumerate(rng.permutation(40)):
        lines.append(f"p{k // 4},{rng.normal():.3f},{day},{'ill' if k % 2 else 'well'}")
    (tmp_path / "clinic.csv").write_text("\n".join(lines) + "\n")
    options = (("drop", ()), ("groups", "patient"), ("time", "day"))
    return DatasetRef("clinic", str(tmp_path / "clinic.csv"), "label", options=options)


def load(ref):
    return load_dataset(ref, store=NO_STORE)


def parts(data, rule, repeats=None):
    return [
        split_at(rule, data, repeat=repeat, fold=fold)
        for repeat, fold in split_slots(rule, data, repeats)
    ]


def test_columns_that_cut_are_no_features(clinic):
    data = load(clinic)
    assert data.X.shape == (40, 1)
    assert len(np.unique(data.groups)) == 10
    assert sorted(data.time) == list(range(40))


@pytest.mark.parametrize("rule", [{"kfold": 4}, {"holdout": 0.3}, "leave_one_out"])
def test_no_split_separates_rows_of_a_group(clinic, rule):
    data = load(clinic)
    for split in parts(data, rule):
        assert not set(data.groups[split.train]) & set(data.groups[split.test])
        assert len(split.train) + len(split.test) == 40


@pytest.mark.parametrize("rule", [{"kfold": 4}, {"holdout": 0.3}], ids=str)
def test_repeats_and_seeds_divide_groups_in_different_ways(clinic, rule):
    data = load(clinic)
    assert len({split_at(rule, data, repeat=repeat).digest for repeat in range(4)}) > 1
    assert len({split_at(rule, data, seed=seed).digest for seed in range(4)}) > 1


def test_leaving_one_out_tests_every_row_or_group_once(clinic):
    data = load(clinic)
    tested = np.concatenate([split.test for split in parts(data, "leave_one_out")])
    assert sorted(tested) == list(range(40))
    assert len(parts(data, "leave_one_out")) == 10
    assert len(parts(replace(data, groups=None), "leave_one_out")) == 40
    with pytest.raises(UserError, match="a single partition"):
        split_slots("leave_one_out", data, 2)


def test_parts_in_time_are_those_of_scikit_learn(clinic):
    data = replace(load(clinic), groups=None)
    order = np.argsort(data.time)
    expected = TimeSeriesSplit(4).split(order)
    for split, (train, test) in zip(parts(data, {"time_series": 4}), expected, strict=True):
        assert np.array_equal(split.train, order[train])
        assert np.array_equal(split.test, order[test])
        assert data.time[split.train].max() < data.time[split.test].min()


def test_too_few_groups_or_rows_are_one_line(clinic):
    data = load(clinic)
    with pytest.raises(UserError, match=r"10 groups, fewer than 11 folds; --set protocol.*=10"):
        parts(data, {"kfold": 11})
    with pytest.raises(UserError, match=r"1 groups, fewer than 2 folds$"):
        parts(replace(data, groups=np.zeros(len(data.y))), {"kfold": 2})
    with pytest.raises(UserError, match="folds=61 greater than the number of samples=40"):
        parts(data, {"time_series": 60})


def test_rows_of_one_time_are_never_on_both_sides(clinic):
    data = replace(load(clinic), groups=None)
    tied = replace(data, time=data.time // 5)
    order = np.argsort(tied.time, kind="stable")
    expected = TimeSeriesSplit(4).split(order)
    for split, (train, test) in zip(parts(tied, {"time_series": 4}), expected, strict=True):
        assert np.array_equal(split.test, order[test])
        earlier = tied.time[order[train]] < tied.time[order[test]].min()
        assert np.array_equal(split.train, order[train][earlier])
        assert 0 < len(split.train) < len(train)
    with pytest.raises(UserError, match="time_series 4 of 40 rows leaves no training row"):
        parts(replace(data, time=np.zeros(40)), {"time_series": 4})


def test_a_group_on_both_sides_of_a_given_split_is_refused(clinic, folds):
    data = load(replace(clinic, folds=folds([str(k // 4 % 3) for k in range(40)])))
    assert len(parts(data, "predefined")) == 3
    data = load(replace(clinic, folds=folds([str(k % 3) for k in range(40)])))
    with pytest.raises(UserError, match="remove groups or change folds"):
        parts(data, "predefined")
    with pytest.raises(UserError, match="a group has training and test rows"):
        parts(data, {"time_series": 4})


@pytest.fixture
def folds(tmp_path):
    def write(lines):
        (tmp_path / "folds.csv").write_text("\n".join(lines) + "\n")
        return str(tmp_path / "folds.csv")

    return write


def test_given_folds_test_what_they_say(clinic, folds):
    lines = ["first,second", *(f"{k % 3},{'' if k % 4 else 'late'}" for k in range(40))]
    data = replace(load(replace(clinic, folds=folds(lines))), groups=None)
    found = parts(data, "predefined")
    assert len(found) == 4
    for k in range(3):
        assert np.array_equal(found[k].test, np.arange(40)[k::3])
    assert np.array_equal(found[3].test, np.arange(40)[::4])
    assert {split.origin for split in found} == {"official"}
    with pytest.raises(UserError, match="has 4 splits"):
        split_slots("predefined", data, 5)


TESTS = [str(k % 5) for k in range(40)]


def days_tested(ref) -> list[list[float]]:
    """Return the days of the test rows of each fold, which name the rows."""
    data = load(ref)
    return [data.time[test].tolist() for _, test in data.predefined]


@pytest.mark.parametrize("head", [[], ["fold"]], ids=["no header", "header"])
@pytest.mark.parametrize("tail", [[], [""], ["", ""]], ids=["", "blank line", "two blank lines"])
def test_blank_lines_at_the_end_move_no_row(clinic, folds, head, tail):
    plain = days_tested(replace(clinic, folds=folds(TESTS)))
    assert days_tested(replace(clinic, folds=folds([*head, *TESTS, *tail]))) == plain
    pairs = [f"{fold},{k % 2}" for k, fold in enumerate(TESTS)]
    head = ["fold,half"] if head else []
    both = days_tested(replace(clinic, folds=folds([*head, *pairs, *tail])))
    assert both == plain + days_tested(replace(clinic, folds=folds([pair[-1] for pair in pairs])))


def test_an_empty_last_cell_below_a_header_is_a_training_row(clinic, folds):
    found = load(replace(clinic, folds=folds(["fold", *TESTS[:-1], ""]))).predefined
    assert not any(39 in test for _, test in found)
    assert found[0][1].tolist() == list(range(0, 40, 5))


@pytest.mark.parametrize("first", ["0", "7", ""])
def test_a_first_line_that_names_no_column_is_refused(clinic, folds, first):
    with pytest.raises(UserError, match=r"has 41 lines.*names in the first line cannot be numbers"):
        load(replace(clinic, folds=folds([first, *TESTS])))


@pytest.mark.parametrize("dropped", [[7], [0, 7, 39]], ids=str)
@pytest.mark.parametrize("head", [[], ["fold"]], ids=["no header", "header"])
def test_folds_of_all_rows_fit_a_table_whose_unlabelled_rows_are_left_out(
    clinic, folds, dropped, head
):
    plain = days_tested(replace(clinic, folds=folds(TESTS)))
    gone = load(clinic).time[dropped]
    ref = without_labels(clinic, dropped)
    expected = [[day for day in days if day not in gone] for days in plain]
    assert days_tested(replace(ref, folds=folds([*head, *TESTS]))) == expected
    kept = [fold for k, fold in enumerate(TESTS) if k not in dropped]
    assert days_tested(replace(ref, folds=folds(kept))) == expected


def without_labels(ref, rows: list[int]):
    """Return the reference of a table whose labels of some rows are removed and dropped."""
    path = Path(str(ref.path))
    lines = path.read_text().splitlines()
    for k in rows:
        lines[k + 1] = lines[k + 1].rpartition(",")[0] + ","
    path.write_text("\n".join(lines) + "\n")
    return replace(ref, options=(*ref.options, ("unlabelled", "drop")))


@pytest.mark.parametrize(("dropped", "tail"), [([3, 7], 1), ([3, 7, 9], 2)])
def test_blank_lines_after_the_kept_rows_move_no_row(clinic, folds, dropped, tail):
    ref = without_labels(clinic, dropped)
    kept = [fold for k, fold in enumerate(TESTS) if k not in dropped]
    plain = days_tested(replace(ref, folds=folds(kept)))
    assert days_tested(replace(ref, folds=folds([*kept, *[""] * tail]))) == plain


@pytest.mark.parametrize(
    ("lines", "dropped"),
    [
        ([*TESTS[:38], "", ""], [3, 7]),  # two rows of the table without a fold, or no rows
        ([*TESTS[:39], ""], [3]),
        ([f"p{k}" for k in range(40)], [3]),  # a row of the table, or a column name
    ],
)
def test_folds_that_fit_the_rows_in_two_ways_are_refused(clinic, folds, lines, dropped):
    with pytest.raises(UserError, match=r"has 40 lines.*cannot be numbers or folds; remove blank"):
        load(replace(without_labels(clinic, dropped), folds=folds(lines)))


def test_a_first_row_alone_in_its_fold_is_no_column_name(clinic, folds):
    found = days_tested(replace(clinic, folds=folds([f"p{k}" for k in range(40)])))
    assert [len(days) for days in found] == [1] * 40


@pytest.mark.parametrize("separator", [";", "\t"])
def test_columns_of_folds_may_be_separated_by_semicolons_or_tabs(clinic, folds, separator):
    lines = ["first,second", *(f"{fold},{k % 2}" for k, fold in enumerate(TESTS))]
    plain = days_tested(replace(clinic, folds=folds(lines)))
    assert len(plain) == 7
    other = [line.replace(",", separator) for line in lines]
    assert days_tested(replace(clinic, folds=folds(other))) == plain


WRONG = {
    "too few": (["1", "2"], "has 2 lines"),
    "ragged": (["1,2", "1"], "line 2 has 1 cells, not 2"),
    "wide row": ([*["1"] * 30, "1,2", *["1"] * 9], "line 31 has 2 cells, not 1"),
    "nothing": ([""] * 40, "there are no test rows"),
    "fraction": (["1"] * 39 + ["0.25"], "row 40 of the data: '0.25' is not a fold"),
    "words": (["Train"] * 30 + ["Test"] * 10, "column 1 has the words train and test"),
    "row names": ([f"p{k},{k % 2}" for k in range(40)], "column 1 has another fold in each row"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_of_folds_is_one_line(clinic, folds, name):
    lines, words = WRONG[name]
    with pytest.raises(UserError, match=words):
        load(replace(clinic, folds=folds(lines)))


def test_folds_are_part_of_a_job_s_identity_and_their_place_is_not(clinic, folds, tmp_path):
    one = replace(clinic, folds=folds(["1", "2"] * 20))
    hashes = [dataset_hash(ref, store=NO_STORE) for ref in (clinic, one)]
    (tmp_path / "copy.csv").write_bytes((tmp_path / "folds.csv").read_bytes())
    other = replace(one, folds=str(tmp_path / "copy.csv"))
    assert dataset_hash(other, store=NO_STORE) == hashes[1] != hashes[0]
    assert load(other).content_hash == hashes[1]
    jobs = [Job("e", ref, hashes[1], SplitRef("predefined"), "svm", "rbf") for ref in (one, other)]
    assert jobs[0].key == jobs[1].key


@pytest.mark.parametrize("day", ["5.1.2020", "", "soon"])
def test_a_time_that_is_none_is_named_with_its_row(clinic, day):
    path = Path(str(clinic.path))
    text = path.read_text().splitlines()
    cells = text[3].split(",")
    path.write_text("\n".join([*text[:3], ",".join([*cells[:2], day, cells[3]]), *text[4:]]))
    with pytest.raises(UserError, match="data row 3, column 'day'"):
        load(clinic)


def test_times_have_the_marks_and_units_of_other_numbers(tmp_path):
    rows = "".join(
        f"{t};{k};{'ab'[k % 2]}\n" for k, t in enumerate(["998", "999", "1.000 s", "1.001,5 s"])
    )
    (tmp_path / "my.csv").write_text(f"t;x;kind\n{rows}")
    marks = (("decimal", ","), ("thousands", "."), ("time", "t"), ("units", ("s",)))
    data = load(DatasetRef("my", str(tmp_path / "my.csv"), "kind", options=marks))
    assert data.time.tolist() == [998, 999, 1000, 1001.5]


def test_times_are_numbers_or_dates(clinic):
    path = Path(str(clinic.path))
    lines = [line.split(",") for line in path.read_text().splitlines()]
    for k, line in enumerate(lines[1:]):
        line[2] = f"2024-{12 - k // 4:02d}-{k % 4 + 1:02d}"
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    days = load(clinic).time
    assert np.array_equal(np.argsort(days, kind="stable")[:4], [36, 37, 38, 39])
    for k, line in enumerate(lines[1:]):
        line[2] = str(k / 8)
    path.write_text("\n".join(map(",".join, lines)) + "\n")
    assert np.array_equal(load(clinic).time, np.arange(40) / 8)
