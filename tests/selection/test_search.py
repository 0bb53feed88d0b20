"""The shared-Gram search against the plain one: fit every grid point and fold from scratch."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from helpers.cases import cases
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler, normalize

from mmbench.kernels import Kernel
from mmbench.machines import MACHINES, machine_class, make_machine
from mmbench.machines.base.voting import class_pairs, pair_rows
from mmbench.selection import SelectRef, select, views
from mmbench.selection.folds import inner_splits
from mmbench.selection.grid import best_point, grid_points, group_by_kernel

THREE_FOLDS = SelectRef(folds=3)

GRIDS = {
    "svm": {"C": [0.3, 3.0, 30.0]},
    "rmm": {"C": [0.3, 30.0], "B_fraction": [1.0, 0.5, 0.1]},
    "mmrm": {"C": [0.3, 30.0]},
    "sigma_svm": {"C": [0.3, 30.0], "D": [0.0, 0.5, 0.99]},
    "ldm": {"C": [0.3, 30.0], "lambda_1": [0.0, 0.5], "lambda_2": [0.0, 0.5]},
    "klda": {"eta": [1e-4, 1e-2, 1.0]},
    "mamc_b": {"Cm": [0.3, 1.0, 2.0]},
    "emamc": {"C": [0.3, 30.0, 2000.0]},
    "lssvm": {"C": [0.3, 30.0, 2000.0]},
}


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    return X[:250] / 16, y[:250]


def naive_scores(machine, X, y, grid, splits):
    """Accuracies of every grid point and split, each estimator fitted from raw features."""
    return np.array(
        [
            [
                clone(machine).set_params(**point).fit(X[train], y[train]).score(X[held], y[held])
                for train, held in splits
            ]
            for point in grid_points(grid)
        ]
    )


def scores_of(selection):
    return np.array([row["score"] for row in selection.scores])


@pytest.mark.parametrize("name", sorted(GRIDS))
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_global_search_equals_refitting_every_point(name, kernel, wine):
    X, y = wine
    machine = make_machine(name, kernel=kernel, gamma=0.05, degree=2, tol=1e-6)
    grid = dict(GRIDS[name])
    if kernel == "rbf":
        grid["gamma"] = [0.02, 0.2]
    found = select(machine, X, y, grid, THREE_FOLDS, seed=1)
    plain = naive_scores(machine, X, y, grid, inner_splits(y, 3, None, 1, 1))
    np.testing.assert_allclose(scores_of(found), plain.mean(axis=1), atol=1e-3)
    best = [
        p for p, s in zip(grid_points(grid), plain.mean(1), strict=True) if s == plain.mean(1).max()
    ]
    assert found.params[0] in best


def test_a_tuned_rmm_is_no_worse_than_the_tuned_svm(wine):
    """Its grid contains the SVM: B_fraction 1."""
    X, y = wine[0][:, :3], wine[1]
    costs, (axis, fractions) = [0.3, 3.0, 30.0], machine_class("rmm").search_space.auto_grids["B"]
    svm, rmm = (
        select(make_machine(name, gamma=0.3, tol=1e-6), X, y, {"C": costs, **more})
        for name, more in (("svm", {}), ("rmm", {axis: fractions}))
    )
    whole = [row["score"] for row in rmm.scores if row[axis] == 1.0]
    assert whole == pytest.approx(scores_of(svm).tolist(), abs=1e-12)
    assert rmm.best_score >= svm.best_score - 1e-12


def test_pair_scope_equals_a_search_of_each_pair_alone(digits):
    X, y = digits
    machine = machine_class("svm")(tol=1e-6)
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 1.0]}
    found = select(
        machine, X, y, grid, SelectRef(folds=None, split=0.2, repeats=3, scope="pair"), seed=4
    )
    best = []
    for chosen, pair in zip(found.params, class_pairs(5), strict=True):
        rows, signs = pair_rows(y, *pair)
        alone = select(
            machine, X[rows], signs, grid, SelectRef(folds=None, split=0.2, repeats=3), seed=4
        )
        assert [chosen] == alone.params
        best.append(alone.best_score)
    assert found.best_score == pytest.approx(np.mean(best))


def test_scores_of_a_point_have_the_mean_and_the_deviation_over_the_splits(wine):
    machine, grid = machine_class("svm")(), {"C": [0.01, 10.0]}
    found = select(machine, *wine, grid, THREE_FOLDS)
    plain = naive_scores(machine, *wine, grid, inner_splits(wine[1], 3, None, 1, 0))
    np.testing.assert_allclose(scores_of(found), plain.mean(axis=1))
    np.testing.assert_allclose([row["sd"] for row in found.scores], plain.std(axis=1))


def test_a_decision_of_zero_is_a_vote_for_the_class_that_predict_returns():
    X, y = np.array([[-1.0], [1.0], [0.0]]), np.array([0, 1, 1])
    machine = make_machine("svm", kernel="linear").fit(X[:2], y[:2])
    assert machine.decision_function(X)[2] == 0
    found = select(machine, X, y, {"C": [1.0, 10.0]}, SelectRef(folds=None), n_train=2)
    assert found.best_score == machine.score(X[2:], y[2:]) == 1
    X, y = np.array([[-1.0], [1.0], [100.0], [0.0], [60.0], [-2.0]]), np.array([0, 1, 2, 1, 2, 0])
    how = SelectRef(folds=None, metric="auc")  # which counts votes of three classes
    assert select(machine, X, y, {"C": [1.0]}, how, n_train=3).best_score == 1


@pytest.mark.parametrize("scope", ["global", "pair"])
def test_threads_do_not_change_the_result(scope, digits):
    X, y = digits
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 1.0]}
    one, two = (
        select(machine_class("svm")(), X, y, grid, SelectRef(folds=3, scope=scope), n_jobs=n)
        for n in (1, 2)
    )
    assert one == two


def test_pairs_with_their_own_matrix_give_the_scores_of_the_shared_one(digits, monkeypatch):
    X, y = digits
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 1.0]}
    shared = select(machine_class("svm")(), X, y, grid, THREE_FOLDS)
    monkeypatch.setattr(views, "SHARED_BYTES", 0)
    assert select(machine_class("svm")(), X, y, grid, THREE_FOLDS) == shared


@pytest.fixture
def stored(monkeypatch):
    """Sizes and data types of the base matrices that a search computes."""
    made, base = [], Kernel.base
    monkeypatch.setattr(Kernel, "base", lambda *args: made.append(base(*args)) or made[-1])
    return made


@pytest.mark.parametrize(
    ("name", "scope"), [("svm", "pair"), ("lssvm", "pair"), ("svm", "global"), ("fsvm", "global")]
)
def test_matrices_that_are_too_large_are_not_stored_and_the_scores_are_equal(
    digits, monkeypatch, stored, name, scope
):
    X, y = (part[:120] for part in digits)
    grid = {"C": [0.1, 10.0], "gamma": [0.05, 1.0]}
    machine = make_machine(name, kernel="rbf")
    expected = select(machine, X, y, grid, SelectRef(folds=3, scope=scope))
    largest = max(map(len, stored))
    stored.clear()
    for limit in ("PAIR_BYTES", "SHARED_BYTES"):
        monkeypatch.setattr(views, limit, 0)
    assert select(machine, X, y, grid, SelectRef(folds=3, scope=scope)) == expected
    assert all(len(matrix) < largest for matrix in stored)  # trainings store smaller matrices


@pytest.mark.parametrize("name", ["svm", "fsvm"])
def test_all_planned_trainings_are_counted(wine, monkeypatch, name):
    stages = []
    monkeypatch.setattr("mmbench.selection.folds.begin_stage", stages.append)
    select(make_machine(name), *wine, {"C": [1.0, 10.0]}, SelectRef(folds=2))
    assert stages[-1] == "selection, 12 of 12 trainings of pairs done"


@pytest.mark.parametrize("scope", ["global", "pair"])
def test_a_search_holds_one_kernel_matrix_beside_the_base_matrix(scope):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1200, 80)), np.repeat([0, 1], 600)
    X[:600, 0] += 6
    machine = make_machine("svm", cache_size=1)
    peaks = []
    for n_kernels in (1, 2, 4):  # the first search imports and compiles code
        tracemalloc.start()
        select(
            machine,
            X,
            y,
            {"gamma": [0.01, 0.02, 0.03, 0.04][:n_kernels]},
            SelectRef(folds=2, scope=scope),
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < peaks[1] + 0.5 * 4 * 1200**2


def test_inherited_pair_parameters_stay_with_their_pair(digits):
    X, y = digits
    inherited = [{"C": 1.0 + k} for k in range(10)]
    found = select(
        machine_class("svm")(),
        X,
        y,
        {"gamma": [0.05, 1.0]},
        SelectRef(folds=3),
        pair_params=inherited,
    )
    assert [p["C"] for p in found.params] == [p["C"] for p in inherited]
    assert len({p["gamma"] for p in found.params}) == 1


def test_a_class_smaller_than_the_folds_is_refused(wine):
    X, y = wine
    keep = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:2]])
    with pytest.raises(ValueError, match="2 rows, fewer than 3 folds"):
        select(machine_class("svm")(), X[keep], y[keep], {"C": [1.0]}, THREE_FOLDS)


def test_an_empty_axis_is_refused(wine):
    with pytest.raises(ValueError, match=r"empty: .*'C'"):
        select(machine_class("svm")(), *wine, {"C": []})


@given(
    st.lists(st.tuples(st.sampled_from([1, 10]), st.sampled_from([0.1, 0.2])), min_size=1),
    st.integers(0, 3),
)
@examples(
    pairs=([(1, 0.1)], [(10, 0.2), (1, 0.1), (10, 0.1)], [(1, 0.2), (1, 0.1), (1, 0.2)]),
    seed=range(4),
)
def test_ties_are_decided_by_preference_alone(pairs, seed):
    points = [{"C": c, "gamma": g} for c, g in pairs]
    order = np.random.RandomState(seed).permutation(len(points))
    rule = {"C": "large", "gamma": "small"}
    first = points[best_point(points, np.ones(len(points)), rule)]
    shuffled = [points[k] for k in order]
    assert shuffled[best_point(shuffled, np.ones(len(points)), rule)] == first
    assert first["C"] == max(p["C"] for p in points)


def test_a_better_score_goes_before_a_preference():
    points = [{"C": 1}, {"C": 10}]
    assert best_point(points, np.array([0.996, 1.0]), {"C": "small"}) == 1


def test_the_preference_of_the_user_goes_before_that_of_the_machine():
    X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    chosen = [
        select(
            machine_class("svm")(), X, y, {"C": [1.0, 10.0, 100.0]}, SelectRef(prefer=prefer)
        ).params[0]["C"]
        for prefer in ((), (("C", "large"),))
    ]
    assert chosen == [1.0, 100.0]


def test_what_the_user_prefers_is_compared_first(monkeypatch):
    """Among two points, each of which the machine prefers for one parameter."""
    grid, tied = {"C": [1.0, 10.0], "gamma": [0.1, 1.0]}, np.array([1.0, 0.0, 0.0, 1.0])
    monkeypatch.setattr(
        "mmbench.selection.search.best_point",
        lambda points, _, rule: best_point(points, tied, rule),
    )
    X, y = np.repeat([[0.0], [1.0]], 20, axis=0), np.repeat([0, 1], 20)
    chosen = [
        select(machine_class("svm")(), X, y, grid, SelectRef(prefer=prefer)).params[0]
        for prefer in ((), (("gamma", "large"),))
    ]
    assert chosen == [{"C": 1.0, "gamma": 0.1}, {"C": 10.0, "gamma": 1.0}]


AXES = cases(__file__, "axes.yaml")


@pytest.mark.parametrize("name", [n for n, path in MACHINES.items() if path.startswith("mmbench.")])
def test_of_equal_points_the_most_regularised_is_chosen(name):
    points = grid_points(AXES[name])
    rule = machine_class(name).search_space.prefer
    chosen = points[best_point(points, np.ones(len(points)), rule)]
    assert chosen == {axis: values[1] for axis, values in AXES[name].items()}


@pytest.mark.parametrize(
    ("name", "chosen", "other"),
    [
        ("svm", {"C": 1.0, "gamma": 2.0}, {"C": 10.0, "gamma": 0.1}),
        (
            "m4",
            {"C_factor": 1.2, "gamma": 2.0, "ridge": 1e-6},
            {"C_factor": 3.0, "gamma": 0.1, "ridge": 0.1},
        ),
        ("mpm", {"gamma": 0.1, "ridge": 1e-6}, {"gamma": 2.0, "ridge": 0.1}),
    ],
)
def test_C_goes_before_gamma_and_gamma_before_the_ridge(name, chosen, other):
    rule = machine_class(name).search_space.prefer
    assert best_point([other, chosen], np.ones(2), rule) == 1


@given(st.lists(st.fixed_dictionaries({"C": st.floats(1, 9), "gamma": st.sampled_from([1, 2])})))
@examples(
    points=(
        [],
        [{"C": 1.0, "gamma": 2}],
        [{"C": c, "gamma": g} for c in (1.0, 9.0, 1.0) for g in (2, 1)],
    )
)
def test_groups_partition_the_points(points):
    members = [k for _, group in group_by_kernel(points) for k in group]
    assert sorted(members) == list(range(len(points)))


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("scope", ["global", "pair"])
def test_rows_after_the_training_rows_validate(kernel, scope, digits):
    """Also a class that no training row has: always an error of the vote, no pair's business."""
    X, y = digits
    order = np.append(np.flatnonzero(y < 4), np.flatnonzero(y == 4))
    X, y, n = X[order], y[order], 120
    grid = {"C": [0.01, 1.0]}
    machine = machine_class("svm")(kernel=kernel, degree=2)
    found = select(machine, X, y, grid, SelectRef(folds=None, scope=scope), n_train=n)
    if scope == "global":
        expected = naive_scores(machine, X, y, grid, [(np.arange(n), np.arange(n, len(y)))])
    else:
        gamma = 1 / (X.shape[1] * X[:n].var())  # of all training rows, as the final fit has it
        parts = []
        for i, j in class_pairs(4):
            rows = np.flatnonzero((y == i) | (y == j))
            cut = [(np.flatnonzero(rows < n), np.flatnonzero(rows >= n))]
            alone = clone(machine).set_params(gamma=gamma)
            parts.append(naive_scores(alone, X[rows], y[rows], grid, cut))
        expected = np.mean(parts, axis=0)
    np.testing.assert_allclose(scores_of(found), expected[:, 0])


def test_the_matrix_of_a_validation_set_is_never_stored(digits, stored):
    machine = machine_class("svm")()
    select(machine, *digits, {"C": [1.0]}, SelectRef(folds=None, scope="pair"), n_train=100)
    assert sum(map(len, stored)) == 4 * 100  # each training row is in the matrices of four pairs


def test_validation_rows_do_not_change_the_kernel_of_a_joint_machine(wine):
    X, y = wine
    order = np.random.RandomState(0).permutation(len(y))
    X, y, n, grid = X[order] * np.linspace(1, 3, len(y))[:, None], y[order], 60, {"C": [0.1, 10.0]}
    machine = make_machine("fsvm", kernel="rbf", gamma="scale")
    found = select(machine, X, y, grid, SelectRef(folds=None), n_train=n)
    expected = naive_scores(machine, X, y, grid, [(np.arange(n), np.arange(n, len(y)))])
    np.testing.assert_allclose(scores_of(found), expected[:, 0])


# -- the type of stored values ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "scaling", "outlier", "dtype"),
    [
        ("svm", "trace", 1.0, np.float32),
        ("klda", "trace", 1.0, np.float64),  # its ridge is below the rounding of float32
        ("svm", "none", 1.0, np.float64),
        ("svm", "trace", 20.0, np.float64),
    ],
)
@pytest.mark.parametrize("degree", [1, 3, 7])
def test_a_normalised_polynomial_is_stored_in_float32_where_its_values_are_even(
    name, scaling, outlier, dtype, degree, stored
):
    X, y = load_iris(return_X_y=True)
    X = normalize(X)
    X[0] *= outlier
    machine = make_machine(name, kernel="poly", degree=degree, kernel_scaling=scaling)
    select(machine, X, y, {"tol": [1e-3]}, SelectRef(folds=2))
    assert {matrix.dtype for matrix in stored} == {np.dtype(dtype)}


WRONG_GRIDS = {
    "name": ({"c": [1]}, "Invalid parameter 'c'"),
    "value": ({"C": [-1, 1]}, "SVM: C must be a number > 0, got -1"),
    "number": ({"C": 1}, r"every axis of a grid needs values; empty: \['C'\]"),
    "text": ({"C": "12"}, r"every axis of a grid needs values; empty: \['C'\]"),
}


@pytest.mark.parametrize("name", WRONG_GRIDS)
def test_wrong_grids_are_refused_before_any_training(name):
    X, y = load_iris(return_X_y=True)
    grid, message = WRONG_GRIDS[name]
    with pytest.raises(ValueError, match=message):
        select(make_machine("svm"), X, y, grid)


def test_rows_labels_and_groups_of_different_lengths_are_refused():
    X, y = load_iris(return_X_y=True)
    for labels, groups in ((y[:-1], None), (y, [1, 2])):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            select(make_machine("svm"), X, labels, {"C": [1]}, groups=groups)
    with pytest.raises(ValueError, match="got 1 class"):
        select(make_machine("svm"), X, 0 * y, {"C": [1]})
    assert select(make_machine("svm"), X, list(y), {"C": [1]}).params == [{"C": 1}]
