"""What is free, and what a training takes of it."""

from __future__ import annotations

import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

from mmbench.errors import Status
from mmbench.machines import RMM, SVM, free_memory
from mmbench.machines.free_memory import cache_bytes


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
    X, y = X[:700] / 16, labels[:700] % 2
    machine.set_params(C=10, gamma=0.05, tol=1e-7)
    stored, parts = (
        clone(machine).set_params(cache_size=size).fit(X, y).fits_[0] for size in (1000, 0.01)
    )
    assert parts.status is stored.status is Status.OPTIMAL
    assert parts.objective == pytest.approx(stored.objective, rel=1e-6)
