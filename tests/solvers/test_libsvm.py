"""The libsvm adapter: libsvm's own kernels must give what the given kernel matrix gives."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from mmbench.kernels import Kernel
from mmbench.machines.svm import svm_dual
from mmbench.solvers.libsvm_ import WITHOUT_LINE, solve_libsvm
from mmbench.solvers.svm_dual.smo import solve_smo

#: libsvm's options for our kernels.
NATIVE = {
    Kernel("linear"): "-t 0",
    Kernel("poly", degree=2): "-t 1 -g 1 -r 1 -d 2",
    Kernel("rbf", gamma=0.4): "-t 2 -g 0.4",
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(80, 3))
    return X, np.where(X[:, 0] + rng.normal(size=80) > 0, 1.0, -1.0)


@pytest.mark.parametrize("kernel", NATIVE, ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("flip", [1, -1])
def test_agrees_with_libsvm_s_own_kernels(kernel, flip, data):
    pytest.importorskip("libsvm", reason="needs the extra mmbench[solvers]")
    from libsvm.svmutil import svm_predict, svm_train

    X, y = data[0], flip * data[1]
    model = svm_train(y, X, f"-s 0 {NATIVE[kernel]} -c 2 -e 1e-6 -q")
    values = np.array(svm_predict(y, X, model, "-q")[2])[:, 0] * model.get_labels()[0]
    found = solve_libsvm(svm_dual(kernel(X, X), y, 2.0), y, 2.0, tol=1e-6)
    np.testing.assert_allclose(found.decision + found.bias, values, atol=1e-4)


@pytest.mark.parametrize("kernel", NATIVE, ids=lambda kernel: kernel.name)
def test_agrees_with_our_own_solver(kernel, data):
    X, y = data
    dual = svm_dual(kernel(X, X), y, 2.0)
    ours, theirs = solve_smo(dual, tol=1e-8), solve_libsvm(dual, y, 2.0, tol=1e-8)
    assert theirs.value == pytest.approx(ours.value, rel=1e-6)
    assert theirs.bias == pytest.approx(ours.bias, abs=1e-4)
    assert dual.violation(theirs.u) < 1e-12


def test_zeros_of_the_kernel_matrix_are_values():
    """libsvm finds a given kernel value by its position: a dropped zero would shift the row."""
    X = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 3.0]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    dual = svm_dual(X @ X.T, y, 5.0)
    expected = solve_smo(dual, tol=1e-9)
    found = solve_libsvm(dual, y, 5.0, tol=1e-9)
    np.testing.assert_allclose(found.u, expected.u, atol=1e-6)


def test_one_thread_is_enough_for_a_given_kernel(data, monkeypatch):
    pytest.importorskip("libsvm", reason="needs the extra mmbench[solvers]")
    from libsvm import svmutil
    from threadpoolctl import threadpool_info, threadpool_limits

    X, y = data
    real, seen = svmutil.svm_train, []

    def train(*arguments):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "openmp"]
        seen.extend(pool["num_threads"] for pool in pools)
        return real(*arguments)

    monkeypatch.setattr(svmutil, "svm_train", train)
    with threadpool_limits(2, user_api="openmp"):
        solve_libsvm(svm_dual(X @ X.T, y, 2.0), y, 2.0)
    assert set(seen) == {1}


@pytest.mark.parametrize("kernel", NATIVE, ids=lambda kernel: kernel.name)
def test_the_copy_of_scikit_learn_serves_without_the_package(kernel, data, monkeypatch):
    X, y = data
    dual = svm_dual(kernel(X, X), y, 2.0)
    expected = solve_smo(dual, tol=1e-8)
    monkeypatch.setattr("mmbench.solvers.libsvm_.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "libsvm", None)
    assert solve_libsvm(dual, y, 2.0, tol=1e-8).value == pytest.approx(expected.value, rel=1e-6)


@pytest.mark.parametrize("solver", ["libsvm", "sklearn"])
def test_a_tolerance_that_needs_no_step_gives_no_support_vector(solver, data):
    if solver == "libsvm":
        pytest.importorskip("libsvm", reason="needs the extra mmbench[solvers]")
    X, y = data
    found = solve_libsvm(svm_dual(X @ X.T, y, 2.0), y, 2.0, tol=100.0, solver=solver)
    assert not found.u.any() and np.isfinite(found.bound)


def test_the_package_writes_no_line_of_its_own(data, capfd):
    pytest.importorskip("libsvm", reason="needs the extra mmbench[solvers]")
    X, y = (values[:20] for values in data)
    with WITHOUT_LINE:
        os.write(2, b"another line\n")
        solve_libsvm(svm_dual(X @ X.T, y, 2.0), y, 2.0, tol=1e-30, solver="libsvm")
    assert capfd.readouterr().err == "another line\n"
