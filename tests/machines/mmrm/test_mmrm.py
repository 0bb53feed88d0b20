"""The MMRM: the paper's lemmas and theorems, bounds, invariances, and the statuses that warn."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import MinMaxScaler

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import MMRM, SVM
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.mmrm.linear import critical_factor
from mmbench.machines.mmrm.mmrm import margin_facts, ratio_bias, slack_costs
from mmbench.machines.mmrm.program import LinearProgram


def clouds(n_x=30, n_y=30, d=3, shift=0.7, seed=0):
    """Two normal clouds, `shift` away from the origin in each feature."""
    rng = np.random.RandomState(seed)
    y = np.repeat([1.0, -1.0], [n_x, n_y])
    return rng.normal(size=(n_x + n_y, d)) + shift * y[:, None], y


def separable(**options):
    return clouds(shift=3.0, **options)


def projections(machine, X):
    return machine.decision_function(X) - machine.intercept_[0]


def between_and_within(f, y):
    """Return d_b (7) and d_w (16) of projections."""
    x_mean, y_mean = f[y > 0].mean(), f[y < 0].mean()
    nearest_x, nearest_y = f[y > 0].min(), f[y < 0].max()
    return nearest_x - nearest_y, (x_mean - nearest_x) + (nearest_y - y_mean)


def trivial_cost(X, y):
    """Return the largest C at which w = 0 is optimal; it may be infinite.

    Where the segment from the mean of the smaller class to that of the larger enters the reduced
    hull ``{sum p_i x_i : sum p_i = 1, 0 <= p_i <= 1/n_min}`` of the larger, at the fraction s, ends
    the range at ``C = 1/(n_min s)``.
    """
    inner, outer = sorted((X[y < 0], X[y > 0]), key=len)
    n, origin = len(outer), inner.mean(axis=0)
    s = linprog(
        np.append(np.zeros(n), 1.0),
        A_eq=np.vstack(
            [np.column_stack([outer.T, origin - outer.mean(axis=0)]), np.append(np.ones(n), 0.0)]
        ),
        b_eq=np.append(origin, 1.0),
        bounds=[(0, 1 / len(inner))] * n + [(0, 1)],
    ).fun
    return 1 / (len(inner) * s) if s > 1e-9 else np.inf


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return MinMaxScaler().fit_transform(X), y


# -- the program ---------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.05, 1.0, 20.0])
def test_the_linear_machine_solves_program_28_as_printed(C):
    X, y = clouds()
    n, d = X.shape
    delta = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    printed = linprog(
        np.concatenate([delta, [0], np.full(n, C)]),
        A_ub=-np.hstack([y[:, None] * X, y[:, None], np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * (d + 1) + [(0, None)] * n,
    )
    fit = MMRM(C=C, kernel="linear").fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(printed.fun, rel=1e-7)
    assert fit.bound == pytest.approx(printed.fun, rel=1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_kernel_machine_solves_program_30_as_printed(kernel):
    X, y = clouds()
    n, C = len(y), 0.5
    K = Kernel(kernel, gamma=0.3, degree=2)(X, X)
    means = np.where(y > 0, 1 / np.sum(y > 0), -1 / np.sum(y < 0))
    printed = linprog(
        np.concatenate([y * (K @ means), [0], np.full(n, C)]),
        A_ub=-np.hstack([y[:, None] * K * y, y[:, None], np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(0, None)] * n + [(None, None)] + [(0, None)] * n,
    )
    machine = MMRM(C=C, kernel=kernel, gamma=0.3, degree=2).fit(X, y)
    assert machine.fits_[0].objective == pytest.approx(printed.fun, rel=1e-7)
    coefficients = np.zeros(n)
    coefficients[machine.support_] = machine.dual_coef_[0]
    assert np.all(coefficients * y >= 0)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_the_objective_is_that_of_the_returned_decision_function(kernel, cancer):
    X, y = cancer
    machine = MMRM(C=0.2, kernel=kernel, gamma=0.5, degree=2).fit(X, y)
    f = machine.decision_function(X)
    slack = np.maximum(0, 1 - np.where(y > 0, f, -f)).sum()
    objective = f[y > 0].mean() - f[y == 0].mean() + 0.2 * slack
    assert machine.fits_[0].objective == pytest.approx(objective, rel=1e-8)
    assert abs(machine.fits_[0].gap) < 1e-6


def test_without_C_the_penalty_is_the_factor_over_the_smaller_class():
    X, y = clouds(n_x=10, n_y=40)
    machines = [MMRM(C_factor=3.0).fit(X, y), MMRM(C=0.3).fit(X, y)]
    assert machines[0].fits_[0].objective == pytest.approx(machines[1].fits_[0].objective)


def labelled(y):
    return BinaryProblem(y[:, None], y, Kernel("linear"))


def test_balanced_penalties_give_each_class_the_same_total():
    y = np.repeat([1.0, -1.0], [10, 40])
    for C, total in ((None, 3.0), (0.7, 0.7 * 25)):
        cost = slack_costs(labelled(y), C, 3.0, "balanced")
        assert [cost[y > 0].sum(), cost[y < 0].sum()] == pytest.approx([total] * 2)
    even = np.repeat([1.0, -1.0], 20)
    for C in (None, 0.7):
        balanced = slack_costs(labelled(even), C, 3.0, "balanced")
        np.testing.assert_allclose(balanced, slack_costs(labelled(even), C, 3.0))


# -- lemmas and theorems of the paper -------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(3))
def test_the_margin_ratio_is_that_of_theorem_3_on_separable_data(kernel, seed):
    X, y = separable(seed=seed)
    machine = MMRM(C=50.0, kernel=kernel, gamma=0.05).fit(X, y)
    fit = machine.fits_[0]
    between, within = between_and_within(projections(machine, X), y)
    assert fit.extra["separable"]
    assert machine.margin_ratios_[0] == pytest.approx(between / within)
    assert machine.margin_ratios_[0] == pytest.approx(2 / (fit.objective - 2))


@given(
    seed=st.integers(0, 10**6),
    factor=st.floats(1.0, 200),
    kernel=st.sampled_from(["linear", "rbf"]),
)
@settings(max_examples=40, deadline=None)
@examples(seed=range(12), factor=(1.0, 1.1, 3.0, 20.0, 200.0), kernel=("linear", "rbf"))
def test_the_value_is_at_least_2_where_C_is_at_least_the_threshold(seed, factor, kernel):
    X, y = clouds(n_x=14, n_y=20, seed=seed)
    fit = MMRM(C_factor=factor, kernel=kernel, gamma=0.3).fit(X, y).fits_[0]
    assert fit.objective >= 2 - 1e-6
    assert fit.status in (Status.OPTIMAL, Status.INACCURATE, Status.TRIVIAL)


@pytest.mark.parametrize("make", [np.asarray, csr_array])
@pytest.mark.parametrize("solver", ["auto", "reference", "highs_ipm", "clarabel"])
@pytest.mark.parametrize(("n", "d"), [(20, 20), (20, 60), (210, 300)])
def test_with_few_rows_the_w_of_least_norm_is_returned(n, d, solver, make):
    X, y = clouds(n_x=n // 2, n_y=n // 2, d=d, shift=0.2)
    X += np.linspace(-3, 3, d)
    machine = MMRM(kernel="linear", solver=solver).fit(make(X), y)
    # the rows are affinely independent: all margins are 1, and the value is 2
    least = np.linalg.pinv(X - X.mean(axis=0), rcond=1e-10) @ y
    assert machine.fits_[0].status is Status.OPTIMAL
    assert machine.fits_[0].objective == pytest.approx(2, rel=1e-6)
    np.testing.assert_allclose(machine.coef_[0], least, atol=1e-5 * np.abs(least).max())
    np.testing.assert_allclose(machine.decision_function(make(X)), y, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-20, 1e-10, 1e-6, 1e6, 1e9, 1e12, 1e16, 1e20])
def test_with_few_rows_the_scale_of_a_feature_does_not_move_the_value(factor):
    X, y = clouds(n_x=6, n_y=6, d=30)
    X[:, 0] *= factor
    fit = MMRM(kernel="linear").fit(X, y).fits_[0]
    assert fit.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(2, rel=1e-6)


def test_programs_23_and_24_have_the_same_direction():
    X, y = separable(seed=4)
    w = MMRM(C=50.0, kernel="linear").fit(X, y).coef_[0]
    mean_x, mean_y = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)
    rows = [(mean_x - x_i) + (y_j - mean_y) for x_i in X[y > 0] for y_j in X[y < 0]]
    other = linprog(mean_y - mean_x, A_ub=rows, b_ub=np.ones(len(rows)), bounds=(None, None)).x
    assert w @ other / np.linalg.norm(w) / np.linalg.norm(other) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("seed", [2, 4])
def test_programs_18_and_28_have_the_same_ratio_and_direction(seed):
    """(18) by bisection: at a given rho a linear program, with ``w'(mean x - mean y) = 1``."""
    X, y = separable(seed=seed)
    mean_x, mean_y = X[y > 0].mean(axis=0), X[y < 0].mean(axis=0)
    centred = np.where(y[:, None] > 0, mean_x - X, X - mean_y)

    def largest_slack(rho):
        """Return w and the largest t with ``y_i (w'z_i + b) >= rho w'(...) + t`` in all rows."""
        rows = np.column_stack([rho * centred - y[:, None] * X, -y, np.ones(len(y))])
        found = linprog(
            -np.eye(rows.shape[1])[-1],
            A_ub=rows,
            b_ub=np.zeros(len(y)),
            A_eq=[[*(mean_x - mean_y), 0, 0]],
            b_eq=[1],
            bounds=(None, None),
        )
        return found.x[:-2], -found.fun

    low, high = 0.0, 1e3
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if largest_slack(middle)[1] >= 0 else (low, middle)
    machine = MMRM(C=50.0, kernel="linear").fit(X, y)  # (28)
    assert machine.margin_ratios_[0] == pytest.approx(low, rel=1e-6)
    w, other = machine.coef_[0], largest_slack(low)[0]
    assert w @ other / np.linalg.norm(w) / np.linalg.norm(other) == pytest.approx(1, abs=1e-8)


def test_the_bias_of_theorem_1_makes_both_ratios_equal():
    X, y = separable(seed=1)
    machine = MMRM(C=50.0, kernel="linear", bias="ratio").fit(X, y)
    f = machine.decision_function(X)
    ratio_x = f[y > 0].min() / (f[y > 0].mean() - f[y > 0].min())
    ratio_y = -f[y < 0].max() / (f[y < 0].max() - f[y < 0].mean())
    assert ratio_x == pytest.approx(ratio_y)
    assert ratio_x == pytest.approx(machine.margin_ratios_[0])


@pytest.mark.parametrize(("gamma", "positive"), [(50.0, 1), (5.0, 30)])
def test_the_bias_of_theorem_1_is_in_the_middle_if_all_rows_have_margin_1(gamma, positive):
    """Both dispersions are 0 up to rounding errors, whose ratio says nothing."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(np.arange(60) < positive, 1, -1)
    machine = MMRM(kernel="rbf", gamma=gamma, C=10, bias="ratio").fit(X, y)
    np.testing.assert_allclose(machine.decision_function(X), y, atol=1e-3)


def test_the_bias_of_theorem_1_is_not_used_where_classes_overlap():
    X, y = clouds()
    machines = [MMRM(kernel="linear", bias=bias).fit(X, y) for bias in ("lp", "ratio")]
    assert not machines[0].fits_[0].extra["separable"]
    assert machines[0].intercept_ == machines[1].intercept_


def test_all_rows_on_the_margins_make_the_ratio_infinite():
    y = np.array([1.0, 1.0, -1.0])
    assert margin_facts(y, np.ones(3)) == {"margin_ratio": np.inf, "separable": True}
    assert ratio_bias(y, np.ones(3), 0.0) == pytest.approx(0)


def test_a_very_narrow_kernel_ends_at_value_2():
    X, y = clouds()
    machine = MMRM(C=1.0, gamma=1000.0).fit(X, y)
    assert machine.fits_[0].objective == pytest.approx(2, abs=1e-4)
    assert machine.score(X, y) == 1


def test_projections_that_overlap_have_a_negative_ratio():
    X, y = clouds()
    assert MMRM(kernel="linear").fit(X, y).margin_ratios_[0] < 0


# -- how the value depends on C -------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_value_is_concave_and_non_decreasing_in_C(kernel):
    X, y = clouds()
    grid = np.linspace(1 / 30, 2, 15)
    values = [MMRM(C=C, kernel=kernel, gamma=0.3).fit(X, y).fits_[0].objective for C in grid]
    assert np.all(np.diff(values) >= -1e-7)
    assert np.all(np.diff(values, 2) <= 1e-6)


@given(seed=st.integers(0, 10**6), C=st.floats(0.06, 3))
@settings(max_examples=25, deadline=None)
@examples(seed=range(10), C=(0.06, 0.3, 3.0))
def test_violators_of_each_class_pay_no_more_than_the_common_sum_of_multipliers(seed, C):
    X, y = clouds(n_x=20, n_y=25, seed=seed)
    machine = MMRM(C=C, kernel="linear")
    model = machine.train(BinaryProblem(X, y, Kernel("linear")))
    assert model.fit.status is Status.OPTIMAL
    total = model.state.lam.sum() / 2
    for own in (y > 0, y < 0):
        assert C * np.sum(model.state.margins[own] < 1 - 1e-7) <= total + 1e-7
        assert C * np.sum(model.state.margins[own] < 1 + 1e-7) >= total - 1e-7


# -- boundedness and triviality -------------------------------------------------------------


def test_the_linear_program_is_bounded_from_C_star_on_and_not_below():
    X, y = clouds(n_x=30, n_y=20, d=2)
    factor = critical_factor(LinearProgram(X, y, np.full(50, 1 / 20)))
    assert 0 < factor < 0.99  # in few dimensions the paper's condition is not necessary
    below = MMRM(kernel="linear", C=0.999 * factor / 20).fit(X, y).fits_[0]
    above = MMRM(kernel="linear", C=1.001 * factor / 20).fit(X, y).fits_[0]
    assert below.status is Status.UNBOUNDED
    assert below.extra["bounded_from_factor"] == pytest.approx(1 / 0.999, rel=1e-4)
    assert above.status is Status.OPTIMAL


def test_C_star_is_the_papers_threshold_for_affinely_independent_points():
    X, y = clouds(n_x=5, n_y=4, d=20)
    assert critical_factor(LinearProgram(X, y, np.full(9, 1 / 4))) == pytest.approx(1)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_unbounded_program_predicts_the_majority(kernel):
    X, y = clouds(n_x=20, n_y=50)
    machine = MMRM(kernel=kernel, C=1e-5, gamma=0.05).fit(X, y)
    assert machine.fits_[0].status is Status.UNBOUNDED
    assert np.all(machine.predict(X) == -1)
    assert np.isnan(machine.margin_ratios_[0])
    assert machine.fits_[0].n_support == 0


def test_w_is_zero_up_to_the_exact_end_of_the_trivial_range():
    X, y = clouds(n_x=60, n_y=12, shift=0.6)
    end = trivial_cost(X, y)
    assert end > 1.2 / 12  # beyond the threshold itself
    inside = MMRM(kernel="linear", C=0.999 * end).fit(X, y)
    beyond = MMRM(kernel="linear", C=1.001 * end).fit(X, y)
    assert inside.fits_[0].status is Status.TRIVIAL
    assert inside.fits_[0].objective == pytest.approx(2 * 12 * 0.999 * end)
    assert inside.fits_[0].gap == pytest.approx(0, abs=1e-7)
    assert np.all(inside.predict(X) == 1)
    assert not inside.coef_.any()
    assert beyond.fits_[0].status is Status.OPTIMAL


def test_a_small_class_amid_a_large_one_is_given_up_for_every_C_unless_balanced():
    rng = np.random.RandomState(0)
    X = np.concatenate([rng.normal(size=(43, 2)), 0.2 * rng.normal(size=(7, 2)) + 0.3])
    y = np.repeat([1.0, -1.0], [43, 7])
    assert trivial_cost(X, y) == np.inf
    for C in (1 / 7, 1.0, 1000.0):
        assert MMRM(kernel="linear", C=C).fit(X, y).fits_[0].status is Status.TRIVIAL
    balanced = MMRM(kernel="linear", C_factor=1.1, class_weight="balanced").fit(X, y)
    assert balanced.fits_[0].status is Status.OPTIMAL
    assert len(np.unique(balanced.predict(X))) == 2


@pytest.mark.parametrize(("factor", "status"), [(0.99, Status.UNBOUNDED), (1.01, Status.OPTIMAL)])
def test_the_balanced_program_is_bounded_from_a_factor_of_1_on_for_unequal_classes(factor, status):
    """For affinely independent points, only the multipliers 1/n_x and 1/n_y are feasible."""
    X, y = clouds(n_x=4, n_y=12, d=20)
    machine = MMRM(kernel="linear", C_factor=factor, class_weight="balanced").fit(X, y)
    assert machine.fits_[0].status is status


def test_equal_classes_are_trivial_at_the_threshold_only():
    X, y = clouds()
    assert trivial_cost(X, y) == pytest.approx(1 / 30)
    assert MMRM(kernel="linear", C=1.01 / 30).fit(X, y).fits_[0].status is Status.OPTIMAL


def test_constant_data_are_trivial_not_a_crash():
    for kernel in MMRM.kernels:
        fit = MMRM(kernel=kernel).fit(np.ones((10, 2)), [0, 1] * 5).fits_[0]
        assert fit.status is Status.TRIVIAL


# -- invariances -----------------------------------------------------------------------------


def test_the_order_of_rows_and_threads_do_not_matter():
    X, y = load_wine(return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    order = np.random.RandomState(0).permutation(len(y))
    one = MMRM(gamma=1.0).fit(X, y)
    other = MMRM(gamma=1.0, n_jobs=2).fit(X[order], y[order])
    np.testing.assert_allclose(
        one.pairwise_decision_function(X), other.pairwise_decision_function(X), atol=1e-5
    )


# -- solvers, paths, weights ------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "interior"])
def test_every_solver_ends_at_the_reference(solver, cancer):
    reference = MMRM(C=1.0, gamma=0.5, solver="reference").fit(*cancer).fits_[0]
    fit = MMRM(C=1.0, gamma=0.5, solver=solver).fit(*cancer).fits_[0]
    assert fit.status is reference.status is Status.OPTIMAL
    assert fit.objective == pytest.approx(reference.objective, rel=1e-6)


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("rbf", 1.0)])
def test_a_path_over_C_ends_where_single_trainings_do(kernel, cancer):
    X, y = cancer
    problem = BinaryProblem(X[:300], np.where(y[:300] > 0, 1.0, -1.0), kernel)
    points = [{"C_factor": f} for f in (1000.0, 1.1, 10.0, 100.0, 2.0)]
    machine = MMRM(kernel=kernel.name)
    models = machine.train_path(problem, points)
    for point, model in zip(points, models, strict=True):
        alone = MMRM(kernel=kernel.name, **point).train(problem)
        assert model.fit.status == alone.fit.status
        assert model.fit.objective == pytest.approx(alone.fit.objective, rel=2e-6)


def test_a_separable_pair_is_solved_once_for_the_upper_part_of_the_grid():
    X, y = separable()
    problem = BinaryProblem(X, y, Kernel("rbf", 0.05))
    models = MMRM().train_path(problem, [{"C": C} for C in (1.0, 10.0, 100.0, 1000.0)])
    assert [model.fit.route for model in models[1:]] == ["reused"] * 3
    assert all(model.fit.status is Status.OPTIMAL for model in models)


def test_a_solution_without_slack_is_reused_for_larger_penalties_of_the_same_rows_only():
    X, y = separable()
    problem = BinaryProblem(X, y, Kernel("rbf", 0.05))
    first = MMRM(C=10.0).train(problem)
    reused = MMRM(C=1000.0).train(problem, first).fit
    reference = MMRM(C=1000.0, solver="reference").train(problem).fit
    assert (reused.route, reused.status) == ("reused", Status.OPTIMAL)
    assert reused.objective == pytest.approx(reference.objective, rel=1e-8)
    assert MMRM(C_factor=1.01).train(problem, first).fit.route != "reused"
    other = BinaryProblem(X[1:-1], y[1:-1], Kernel("rbf", 0.05))
    assert MMRM(C=1000.0).train(other, first).fit.route != "reused"


def test_a_neighbour_of_another_problem_does_no_harm():
    X, y = separable()
    foreign = MMRM(C=10.0).train(BinaryProblem(X, y, Kernel("rbf", 2.0)))
    problem = BinaryProblem(X, y, Kernel("rbf", 0.05))
    assert MMRM(C=10.0).train(problem, foreign).fit.objective == pytest.approx(
        MMRM(C=10.0).train(problem).fit.objective
    )


def test_class_weights_by_label_multiply_penalties():
    X, y = clouds(n_x=15, n_y=25)
    names = np.where(y > 0, "yes", "no")
    weighted = MMRM(C=0.2, class_weight={"yes": 3.0}).fit(X, names)
    f = weighted.decision_function(X)
    slack = np.maximum(0, 1 - y * f)
    value = f[y > 0].mean() - f[y < 0].mean() + 0.2 * (3 * slack[y > 0].sum() + slack[y < 0].sum())
    assert weighted.fits_[0].objective == pytest.approx(value, rel=1e-8)


def test_class_weights_by_label_are_refused_where_labels_are_not_known():
    X, y = clouds()
    problem = BinaryProblem(X, y, Kernel("rbf", 0.05))
    with pytest.raises(ValueError, match="no class weights by label"):
        MMRM(class_weight={1.0: 2.0}).train(problem)


def test_the_ratios_of_all_pairs_are_an_attribute():
    X, y = load_iris(return_X_y=True)
    machine = MMRM(C=10.0, gamma=0.1).fit(X, y)
    assert machine.margin_ratios_.shape == (3,)
    assert machine.margin_ratios_[0] > machine.margin_ratios_[2]


# -- real data ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_usps_errors_are_those_of_the_published_evidence(real_data):
    # measured with another solver: MMRM makes 92 errors at C = 10, gamma = 2^-7, the SVM 94
    data = real_data("usps")
    train, test = data.split
    errors = {}
    for machine in (MMRM(C=10.0, gamma=2.0**-7), SVM(C=10.0, gamma=2.0**-7)):
        machine.fit(data.X[train], data.y[train])
        errors[type(machine)] = int(np.sum(machine.predict(data.X[test]) != data.y[test]))
        if isinstance(machine, MMRM):
            assert all(fit.status is Status.OPTIMAL for fit in machine.fits_)
            assert all(fit.extra["separable"] for fit in machine.fits_)
    assert errors[SVM] == 94
    assert errors[MMRM] == 92
