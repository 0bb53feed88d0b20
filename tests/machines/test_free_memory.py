"""What is free, and what a training takes of it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from mmbench.errors import NotEnoughMemory, Status
from mmbench.machines import KLDA, LSSVM, M4, MACHINES, MAMC, MMRM, MRSVM, RMM, SVM, machine_class
from mmbench.machines.base import search_space as free_memory
from mmbench.machines.base.search_space import cache_bytes


@pytest.mark.filterwarnings("error")  # of files that stay open
@pytest.mark.parametrize(
    "limit, usage, cache",
    [
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_a_control_group_limits_what_is_free(tmp_path, monkeypatch, limit, usage, cache):
    (tmp_path / limit).write_text("1000\n")
    (tmp_path / usage).write_text("900\n")
    (tmp_path / "memory.stat").write_text(f"anon 700\n{cache} 200\n")
    monkeypatch.setattr(free_memory, "_own_groups", lambda root: [root])
    assert list(free_memory._free_in_groups(tmp_path)) == [300]
    (tmp_path / limit).write_text("max\n")
    assert list(free_memory._free_in_groups(tmp_path)) == []


def test_something_is_free():
    assert 0 < free_memory.available_bytes() < 2**60


def test_a_cache_is_a_share_of_what_is_free_and_no_more_than_asked(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 8e8)
    assert cache_bytes(None) == 1e8
    assert cache_bytes(200) == 2e8
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e12)
    assert cache_bytes(None) == 1e9


@pytest.mark.parametrize("machine", [SVM(), RMM(), RMM(form="penalty"), RMM(form="relaxed")])
def test_no_cache_size_changes_the_solution(machine):
    X, labels = load_digits(return_X_y=True)
    X, y = X[:400] / 16, labels[:400] % 2
    machine.set_params(C=10, gamma=0.05, tol=1e-7)
    stored, parts = (
        clone(machine).set_params(cache_size=size).fit(X, y).fits_[0] for size in (1000, 0.01)
    )
    assert parts.status is stored.status is Status.OPTIMAL
    assert parts.objective == pytest.approx(stored.objective, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("machine", [SVM(), RMM()])
def test_a_training_by_parts_holds_no_more_than_it_states(machine, kernel):
    rng = np.random.RandomState(0)
    X = rng.normal(size=(2000, 20))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=2000) > 0, 1, -1)
    machine = clone(machine).set_params(
        kernel=kernel, gamma=0.01, degree=2, cache_size=16, tol=1e-3
    )
    clone(machine).fit(X, y)  # compiles and imports
    stated = machine.memory_needs.training_bytes(kernel, X.shape, cache_bytes=16e6)
    assert stated < 8 * 2000**2  # it could not hold the matrix
    tracemalloc.start()
    machine.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= stated


def test_a_whole_interior_point_holds_no_more_than_is_stated():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(500, 8))
    y = np.where(X[:, 0] + 5.0 * rng.normal(size=500) > 0, 1, -1)
    machine = MMRM(gamma=0.05, C=10.0)
    clone(machine).fit(X[:50], y[:50])  # compiles and imports
    tracemalloc.start()
    route = machine.fit(X, y).fits_[0].route
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    stated = machine.memory_needs.training_bytes("rbf", X.shape)
    assert route == "whole" and stated / 3 < peak <= stated


@pytest.mark.parametrize("name", MACHINES)
def test_few_rows_of_many_features_take_no_matrix_of_these(name):
    """Nor is one stated: expression data have 20,000 features and more."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(30, 3000)), np.arange(30) % 2
    machine = machine_class(name)().set_params(kernel="linear")
    clone(machine).fit(X[:, :5], y)  # compiles and imports
    matrix = 8 * X.shape[1] ** 2
    assert machine.memory_needs.training_bytes("linear", X.shape) < matrix
    tracemalloc.start()
    machine.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < matrix


@pytest.mark.parametrize(
    "machine, weights, needed",
    [(LSSVM(), None, 9.6), (LSSVM(), 1.0, 12.8), (KLDA(), 1.0, 9.6), (MRSVM(kernel="rbf"), 1, 80)],
)
def test_what_does_not_fit_is_refused_in_one_line(machine, weights, needed, monkeypatch):
    """Before anything is computed, as an error that both libraries and runs understand."""
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e9)
    X, y = np.zeros((20_000, 2)), np.arange(20_000) % 2
    text = rf"needs about {needed:.1f} GB of memory, 1\.0 GB are free"
    with pytest.raises(NotEnoughMemory, match=text):
        machine.fit(X, y, sample_weight=weights)
    assert issubclass(NotEnoughMemory, ValueError) and issubclass(NotEnoughMemory, MemoryError)


#: Rows and features of a collection of texts, and the size of a row with 38 values.
TEXTS = (100_000, 30_000), 1 + 1.5 * 38


@pytest.mark.parametrize("machine", [SVM(C=0.1), RMM(C=0.1), MAMC(), LSSVM()])
@pytest.mark.parametrize("fits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_texts_need_one_gigabyte(machine, fits, monkeypatch):
    """The estimate was 40 GB, for Gram matrices that no route computes."""
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e9)
    (n, d), stored = TEXTS
    machine = clone(machine).set_params(kernel="linear")
    machine.check_memory(n, d, False, stored)
    if not fits:
        return
    rng = np.random.default_rng(0)
    words = np.minimum(rng.pareto(1.0, n * 38) * 50, d - 1).astype(int)
    X = sparse.csr_array((np.full(n * 38, 38**-0.5), words, np.arange(0, n * 38 + 1, 38)), (n, d))
    scores = X @ rng.normal(size=d)
    tracemalloc.start()
    machine.fit(X, scores + 0.5 * scores.std() * rng.normal(size=n) > 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e9 and machine.fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (MMRM(kernel="linear"), "MMRM on 100000 rows with kernel 'linear' needs about 2"),
        (SVM(kernel="linear", solver="reference"), "and solver 'reference' needs about 640"),
        (LSSVM(kernel="linear", reading="empirical"), "needs about 21.8 GB"),
        (LSSVM(kernel="rbf"), "needs about 240"),
    ],
    ids=str,
)
def test_other_machines_on_texts_say_what_they_need(machine, why, monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e9)
    with pytest.raises(
        NotEnoughMemory, match=f"{why}.* on sparse rows with kernel 'linear', LSSVM"
    ):
        machine.check_memory(*TEXTS[0], False, TEXTS[1])


def test_a_part_that_the_data_make_too_large_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e5)
    monkeypatch.setattr("mmbench.machines.mmrm.interior.LEAST_CHECKED_BYTES", 0)
    X = np.random.RandomState(0).normal(size=(200, 3))
    text = "MMRM, an interior point of 200 rows and 200 coefficients, needs about 0.0 GB of memory"
    with pytest.raises(NotEnoughMemory, match=text):
        MMRM(C=10.0, gamma=0.1).fit(X, np.arange(200) % 2)


def test_what_holds_no_matrix_is_not_refused(monkeypatch):
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 1e9)
    for machine in (SVM(), RMM(), MAMC(), LSSVM(kernel="linear"), SVM(kernel="linear")):
        machine.check_memory(60_000, 80)


@pytest.mark.parametrize(
    ("solver", "place", "machine"),
    [
        ("Clarabel", "clarabel.DefaultSolver", M4(solver="clarabel")),
        ("HiGHS", "highspy.Highs.run", MMRM(kernel="linear")),
        ("libsvm", "libsvm.svmutil.svm_train", SVM(solver="reference")),
        ("libsvm", "sklearn.svm.SVC.fit", SVM(solver="reference", class_weight="balanced")),
    ],
)
def test_a_solver_without_memory_is_named_in_one_line(solver, place, machine, monkeypatch):
    def fails(*args, **kwargs):
        raise MemoryError("std::bad_alloc")

    pytest.importorskip(place.partition(".")[0], reason="needs the extra mmbench[solvers]")
    monkeypatch.setattr(place, fails)
    with pytest.raises(NotEnoughMemory, match=f"^{solver} ran out of memory; use fewer rows"):
        machine.fit([[0.0], [1.0], [0.5], [2.0], [0.7]], [0, 1, 0, 1, 1])
