"""What memory is free, and what a training and a job take of it."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from helpers.cases import cases
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits

from mmbench import memory
from mmbench.errors import NotEnoughMemory, Status
from mmbench.kernels import Kernel
from mmbench.machines import (
    KLDA,
    LSSVM,
    M4,
    MACHINES,
    MAMC,
    MMRM,
    MRSVM,
    RMM,
    SVM,
    machine_class,
    make_machine,
)
from mmbench.machines.base import BinaryProblem, TrainingSize
from mmbench.memory import cache_bytes


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
    monkeypatch.setattr(memory, "_own_groups", lambda root: [root])
    assert list(memory._free_in_groups(tmp_path)) == [300]
    (tmp_path / limit).write_text("max\n")
    assert list(memory._free_in_groups(tmp_path)) == []


def test_a_cache_is_a_share_of_what_is_free_and_no_more_than_asked(monkeypatch):
    assert 0 < memory.available_bytes() < 2**60
    for free, size, stored in ((8e8, None, 1e8), (8e8, 200, 2e8), (1e12, None, 1e9)):
        monkeypatch.setattr(memory, "available_bytes", lambda free=free: free)
        assert cache_bytes(size) == stored


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


def peak_of(call):
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


CASES = cases(__file__, "memory.yaml")


@pytest.mark.parametrize("case", CASES["traced"], ids=str)
def test_a_training_needs_at_most_the_stated_memory_and_a_third(case):
    name, kernel, shape, params, *weighted = case
    random = np.random.RandomState(0)
    X = random.normal(size=shape)
    y = np.where(X[:, 0] + random.normal(size=len(X)) > 0, 1.0, -1.0)
    weights = random.uniform(0.5, 2.0, size=len(X)) if weighted else None
    given = {"kernel": kernel, "gamma": 0.2, "degree": 2, "tol": 1e-3, **params}
    machine, values = make_machine(name, **given), Kernel(kernel, gamma=0.2, degree=2)
    few = slice(60)
    small = None if weights is None else weights[few]
    machine.train(BinaryProblem(X[few], y[few], values, weights=small))  # compiles and imports
    peak = peak_of(lambda: machine.train(BinaryProblem(X, y, values, weights=weights)))
    stated = machine.bytes_needed(TrainingSize(*shape, weighted=bool(weighted)))
    assert peak <= stated < 3 * peak + 1e6


PROGRAM = """
import os
import re
import sys
from pathlib import Path
import numpy as np
from mmbench.kernels import Kernel
from mmbench.machines import make_machine
from mmbench.machines.base import BinaryProblem
def train(case, *sizes):
    name, kernel, shape, params = case
    X = np.random.RandomState(0).normal(size=shape)
    y = np.where(X[:, 0] + np.random.RandomState(1).normal(size=len(X)) > 0, 1.0, -1.0)
    machine = make_machine(name, kernel=kernel, gamma=0.2, tol=1e-3, **params)
    for n in sizes:
        machine.train(BinaryProblem(X[:n], y[:n], Kernel(kernel, gamma=0.2)))
        yield re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
cases = eval(sys.argv[1])
for case in cases:
    [*train(case, 60)]  # imports
for case in cases:
    if os.fork():
        os.wait()
    else:  # a process per case, which has its own peak
        print(*train(case, 60, None), flush=True)
        os._exit(0)  # to end the interpreter takes longer than most trainings
"""


@pytest.fixture(scope="module")
def native_peaks():
    """The peaks of the cases in bytes, beyond those of a training with few rows."""
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, repr(CASES["native"])]
    values = [*map(int, subprocess.check_output(command, text=True).split())]
    return [1024 * (after - before) for before, after in zip(*[iter(values)] * 2, strict=True)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("k", "case"), list(enumerate(CASES["native"])), ids=str)
def test_a_native_solver_needs_at_most_the_stated_memory_and_a_third(k, case, native_peaks):
    (name, kernel, shape, params), peak = case, native_peaks[k]
    stated = make_machine(name, kernel=kernel, **params).bytes_needed(TrainingSize(*shape))
    assert peak <= stated < 3 * peak


@pytest.mark.parametrize("name", MACHINES)
def test_few_rows_of_many_features_take_no_matrix_of_these(name):
    """Nor is one stated: expression data have 20,000 features and more."""
    rng = np.random.RandomState(0)
    X, y = rng.normal(size=(30, 3000)), np.arange(30) % 2
    machine = machine_class(name)().set_params(kernel="linear")
    clone(machine).fit(X[:, :5], y)  # compiles and imports
    matrix = 8 * X.shape[1] ** 2
    assert machine.bytes_needed(TrainingSize(*X.shape)) < matrix
    assert peak_of(lambda: machine.fit(X, y)) < matrix


@pytest.mark.parametrize(
    "machine, weights, needed",
    [(LSSVM(), None, 6.4), (LSSVM(), 1.0, 9.6), (KLDA(), 1.0, 9.6), (MRSVM(kernel="rbf"), 1, 80)],
)
def test_what_does_not_fit_is_refused_in_one_line(machine, weights, needed, monkeypatch):
    """Before anything is computed, as an error that both libraries and runs understand."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e9)
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
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e9)
    (n, d), stored = TEXTS
    machine = clone(machine).set_params(kernel="linear")
    machine.check_memory(TrainingSize(n, d, stored))
    if not fits:
        return
    rng = np.random.default_rng(0)
    words = np.minimum(rng.pareto(1.0, n * 38) * 50, d - 1).astype(int)
    X = sparse.csr_array((np.full(n * 38, 38**-0.5), words, np.arange(0, n * 38 + 1, 38)), (n, d))
    scores = X @ rng.normal(size=d)
    y = scores + 0.5 * scores.std() * rng.normal(size=n) > 0
    assert peak_of(lambda: machine.fit(X, y)) < 1e9 and machine.fits_[0].status is Status.OPTIMAL


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (MMRM(kernel="linear"), "MMRM on 100000 rows with kernel 'linear' needs about 2"),
        (SVM(kernel="linear", solver="reference"), "and solver 'reference' needs about 960"),
        (LSSVM(kernel="linear", reading="empirical"), "needs about 21.7 GB"),
        (LSSVM(kernel="rbf"), "needs about 160"),
    ],
    ids=str,
)
def test_other_machines_on_texts_say_what_they_need(machine, why, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e9)
    with pytest.raises(
        NotEnoughMemory, match=f"{why}.* on sparse rows with kernel 'linear', LSSVM"
    ):
        machine.check_memory(TrainingSize(*TEXTS[0], TEXTS[1]))


def test_a_part_that_the_data_make_too_large_is_refused_in_one_line(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e5)
    monkeypatch.setattr(memory, "LEAST_CHECKED_BYTES", 0)
    monkeypatch.setattr(MMRM, "bytes_needed", lambda self, size: 0)
    X = np.random.RandomState(0).normal(size=(200, 3))
    text = "MMRM, an interior point of 200 rows and 200 coefficients, needs about 0.0 GB of memory"
    with pytest.raises(NotEnoughMemory, match=text):
        MMRM(C=10.0, gamma=0.1).fit(X, np.arange(200) % 2)


def test_what_holds_no_matrix_is_not_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e9)
    for machine in (SVM(), RMM(), MAMC(), LSSVM(kernel="linear"), SVM(kernel="linear")):
        machine.check_memory(TrainingSize(60_000, 80))


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
