"""What scikit-learn asks of every machine; a machine listed in `MACHINES` is tested here."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mmbench.errors import FINISHED, UserError
from mmbench.machines import MACHINES, machine_class

#: Checks that machines do not pass, and why.
COSTS = "weights of classes count errors on training rows, and new rows are unlike them here"
ONE_ROW = "the boundary is within 1e-6 of the only row of a class; rounding decides how near"
MANY_OPTIMA = (
    "the linear program of so few rows has many optima; the interior point ends at the centre of "
    "the optimal face, which repeated rows move: decisions differ by 1e-8 to 1e-4, depending on "
    "rows and processor, where 1e-7 is asked"
)
UNMET = {
    "KLDA": {"check_class_weight_classifiers": COSTS},
    "MMRM": {
        "check_sample_weight_equivalence_on_dense_data": MANY_OPTIMA,
        "check_sample_weight_equivalence_on_sparse_data": MANY_OPTIMA,
    },
    "MEMPM": {"check_sample_weight_equivalence_on_dense_data": ONE_ROW},
}


@parametrize_with_checks(
    [machine_class(name)() for name in MACHINES],
    expected_failed_checks=lambda machine: UNMET.get(type(machine).__name__, {}),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(params=MACHINES)
def machine(request):
    return machine_class(request.param)()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=False)
    return X[::3], np.array(["setosa", "versicolor", "virginica"])[y[::3]]


def test_every_parameter_is_declared(machine):
    assert set(machine.get_params()) == set(machine.parameters)
    given = [*machine.get_params().items()]
    given += [(k, v) for k, values in machine.search_space.auto_grids.values() for v in values]
    assert all(machine.parameters[k].problem(v) is None for k, v in given)


def test_fits_are_certified(machine, iris):
    fits = machine.fit(*iris).fits_
    pairs = [tuple(fit.pair) for fit in fits]
    assert pairs == [("setosa", "versicolor"), ("setosa", "virginica"), ("versicolor", "virginica")]
    for fit in fits:
        assert fit.status in FINISHED
        assert fit.max_violation < 1e-5
        assert fit.seconds >= 0


def test_survives_pickle_clone_and_refit_with_another_kernel(machine, iris):
    X, y = iris
    machine.fit(X, y)
    expected = machine.decision_function(X)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(machine)).decision_function(X), expected
    )
    others = [kernel for kernel in machine.kernels if kernel != machine.kernel]
    for kernel in (*others[:1], machine.kernel):  # features and expansions leave nothing behind
        machine.set_params(kernel=kernel).fit(X, y)
        alone = clone(machine).fit(X, y)
        np.testing.assert_array_equal(machine.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(machine.decision_function(X), expected)


def test_works_in_pipelines_and_searches(machine, iris):
    pipe = make_pipeline(StandardScaler(), machine)
    name = type(machine).__name__.lower()
    grid = {f"{name}__kernel": list(machine.kernels[:2])}
    assert GridSearchCV(pipe, grid, cv=2).fit(*iris).best_score_ > 0.6


@pytest.mark.parametrize("kernel_scaling", ["none", "trace"])  # "trace": a kernel for each pair
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_single_rows_have_the_decisions_of_many(kernel, kernel_scaling, iris):
    X, y = iris
    machine = machine_class("svm")(kernel=kernel, gamma=0.5, kernel_scaling=kernel_scaling)
    machine.fit(X[::2], y[::2])
    many = machine.pairwise_decision_function(X)
    for n in (1, 2, 40):
        few = np.vstack([machine.pairwise_decision_function(X[i : i + n]) for i in range(0, 40, n)])
        np.testing.assert_allclose(few, many[: len(few)], rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_equal_rows_of_both_classes_have_an_answer(machine):
    for kernel in machine.kernels:
        machine.set_params(kernel=kernel).fit(np.ones((5, 2)), [0, 1, 1, 0, 1])
        assert np.isfinite(machine.decision_function(np.eye(2))).all()


@pytest.mark.filterwarnings("error")
def test_kernel_values_that_overflow_are_refused(machine, iris):
    X, y = iris
    for kernel in machine.kernels:
        with pytest.raises(ValueError, match="scale the data"):
            machine.set_params(kernel=kernel).fit(X * 1e160, y)


def test_tiny_values_do_not_make_an_endless_gamma(iris):
    X, y = iris
    machine = machine_class("svm")(kernel="rbf").fit(X * 1e-160, y)
    assert np.isfinite(machine.decision_function(X * 1e-160)).all()


def test_a_solution_that_is_not_finite_is_an_error(iris):
    class Lost(machine_class("svm")):
        def train(self, problem, warm=None):
            model = super().train(problem, warm)
            return replace(model, intercept=np.nan)

    with pytest.raises(ValueError, match="setosa/versicolor is not finite; scale the data"):
        Lost().fit(*iris)


def test_random_ties_take_a_generator_as_in_scikit_learn(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.repeat([0, 1, 2], 20)
    machine = machine_class("svm")(ties="random", random_state=np.random.RandomState(1))
    machine.fit(X, y)
    expected = clone(machine).set_params(random_state=1).fit(X, y).predict(X)
    np.testing.assert_array_equal(machine.predict(X), expected)
    machine.set_params(random_state=1)
    monkeypatch.setattr("mmbench.machines.base.estimator.DECISION_BYTES", 100)  # blocks of 4 rows
    np.testing.assert_array_equal(machine.predict(X), expected)
    machine.set_params(break_ties=np.True_).fit(X, y)
    for wrong in ("1", 2**32, np.random.default_rng(1)):
        words = r"^SVM: random_state must be a whole number >= 0 and <= 4294967295 or a RandomState"
        with pytest.raises(ValueError, match=words):
            machine.set_params(random_state=wrong).fit(X, y)


def test_completion_offers_machines_and_results_before_they_are_imported():
    code = "import mmbench; print(*dir(mmbench), *dir(mmbench.machines)); mmbench.results.load"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split().count("SigmaSVM") == 2
    assert {"results", "RSVMPlus"} <= set(done.stdout.split())


def test_an_unknown_machine_is_named_with_the_nearest():
    with pytest.raises(UserError, match="did you mean 'svm'"):
        machine_class("swm")
