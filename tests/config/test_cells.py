"""The plan that a run stores beside its records: the cells of its tables, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmbench.config.model import Config
from mmbench.config.plan import plan, plan_of
from mmbench.jobs.planned import Key, Plan

NO_STORE = Path("no-such-store")  # data inside scikit-learn need none


def config(**keys) -> Config:
    defaults = {"name": "own", "datasets": ["iris"], "protocol": {"test": {"kfold": 3}}}
    return Config.model_validate({**defaults, "machines": {"svm": {}}, **keys})


def keys_of(plan: Plan) -> list[tuple]:
    return [tuple(cell.key[1:4]) for cell in plan.cells]


def test_every_job_is_in_its_cell_and_every_cell_has_its_jobs() -> None:
    own = config(
        datasets=["iris", "wine"],
        kernel=["poly", "linear"],
        degree=[1, 2],
        protocol={"test": {"kfold": 3}, "repeats": 2, "max_train": [30, 60]},
        machines={"svm": {}, "rmm": {"use": "svm", "kernel": "poly"}},
        published_only=["mpm"],
    )
    jobs = plan(own, NO_STORE)
    found = plan_of(own, jobs)
    assert found.jobs == {job.key for job in jobs}
    for cell in found.cells:
        assert cell.n_splits == 6
        assert len(cell.jobs) == (0 if cell.published_only else 6)
    assert [cell.key for cell in plan_of(own).cells] == [cell.key for cell in found.cells]


def test_cells_are_ordered_by_data_set_kernel_machine_degree_and_size() -> None:
    own = config(
        kernel=["linear", "poly"],
        degree=[1, 2],
        protocol={"test": {"holdout": 0.3}, "max_train": [30, 60]},
        machines={"svm": {}, "rmm": {}},
    )
    poly = [("iris", "poly", d, m, n) for m in ("svm", "rmm") for d in (1, 2) for n in (30, 60)]
    linear = [("iris", "linear", None, m, n) for m in ("svm", "rmm") for n in (30, 60)]
    assert [cell.key for cell in plan_of(own).cells] == [Key(*key) for key in linear + poly]


@pytest.mark.parametrize(
    ("test", "ratio"), [({"holdout": 0.2}, 1 / 4), ({"kfold": 5}, 1 / 4), ({"time_series": 5}, 0)]
)
def test_the_ratio_of_test_rows_counts_the_rows_that_max_train_leaves_out(test, ratio) -> None:
    found = plan_of(config(protocol={"test": test, "max_train": 20}))
    assert found.test_to_train == pytest.approx(ratio)
    assert plan_of(config(protocol={"test": test})).test_to_train == 0


def test_a_degree_is_the_machines_own_the_one_it_takes_over_or_none_if_selected() -> None:
    machines = {
        "svm": {},
        "rmm": {"params": {"degree": 5}},
        "mmrm": {"use": "rmm"},
        "m4": {"grid": {"degree": [2, 4]}},
    }
    found = keys_of(plan_of(config(kernel="poly", machines=machines)))
    degrees = {machine: degree for _, degree, machine in found}
    assert degrees == {"svm": 3, "rmm": 5, "mmrm": 5, "m4": None}


def test_a_degree_that_another_column_selects_is_taken_over_and_not_fixed() -> None:
    machines = {
        "svm": {"grid": {"degree": [2, 4]}},
        "rmm": {"use": "svm", "grid": {"B": "auto"}},
        "mmrm": {"use": "rmm"},
    }
    own = config(kernel="poly", machines=machines)
    assert keys_of(plan_of(own)) == [("poly", None, machine) for machine in machines]
    assert not [job.column for job in plan(own, NO_STORE) if "degree" in dict(job.params)]


def test_a_kernel_of_one_machine_alone_is_its_own() -> None:
    machines = {"svm": {}, "rmm": {"kernel": "poly"}}
    found = keys_of(plan_of(config(machines=machines, degree=[2, 3])))
    assert found == [("rbf", None, "svm"), ("poly", 2, "rmm"), ("poly", 3, "rmm")]


@pytest.mark.parametrize(
    ("entry", "published_as"),
    [
        ({}, {}),
        ({"classes": [3, 8]}, {"digits": ""}),
        ({"classes": [3, 8], "published_as": "usps"}, {"digits": "usps"}),
    ],
)
def test_some_classes_have_no_published_name_unless_one_is_given(entry, published_as) -> None:
    own = config(datasets=[{"name": "digits", **entry}])
    assert plan_of(own).published_as == published_as


def test_a_data_set_has_its_own_number_of_published_splits() -> None:
    own = config(datasets=["iris", {"name": "digits", "published_splits": 20}])
    assert plan_of(own).published_splits == {"digits": 20}
    own = own.model_copy(update={"published_splits": 100})
    assert plan_of(own).published_splits == {"iris": 100, "digits": 20}


def test_a_plan_comes_back_as_it_was_stored() -> None:
    own = config(protocol={"test": {"kfold": 3}})
    found = plan_of(own, plan(own, NO_STORE))
    assert Plan.parse(found.dump()) == found
