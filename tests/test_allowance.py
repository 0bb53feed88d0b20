"""What a computation may still take reaches its threads and other processes."""

from __future__ import annotations

import pickle
import re

from joblib import Parallel
from sklearn.datasets import load_iris

from mmbench.allowance import (
    Allowance,
    allowed,
    delayed,
    memory_limit,
    time_is_up,
    time_left,
    within,
)
from mmbench.machines import MMRM, SVM
from mmbench.selection import SelectRef, select


def test_without_an_allowance_nothing_ends():
    assert not time_is_up()
    assert time_left() == memory_limit() == float("inf")


def test_an_inner_allowance_is_no_larger_than_the_one_around_it():
    with within(allowed(100.0, memory=1e9)), within(allowed(1000.0, memory=2e9)) as inner:
        assert 99 < time_left() <= 100
        assert memory_limit() == 1e9
        assert not time_is_up() and not inner.exceeded
    assert time_left() == float("inf")


def test_it_is_known_who_was_told_to_end():
    with within(allowed(0.0)) as asked:
        assert time_is_up() and asked.exceeded
    with within(allowed(0.0)) as silent:
        pass
    assert not silent.exceeded


def test_a_long_training_tells_its_state_every_few_seconds(caplog, monkeypatch):
    monkeypatch.setattr("mmbench.allowance.MESSAGE_SECONDS", 0.0)
    X, y = load_iris(return_X_y=True)
    with caplog.at_level("INFO", "mmbench"):
        MMRM(solver="interior").fit(X[50:], y[50:])
    told = re.compile(r"MMRM on classes 1/2: training, iterations 3, gap 0\.\d+, violation \d+")
    assert any(map(told.match, caplog.messages))
    caplog.clear()
    with caplog.at_level("INFO", "mmbench"), within(Allowance(name="svm")):
        select(SVM(), X[50:], y[50:], {"C": [1.0, 10.0]}, SelectRef(folds=5))
    assert re.fullmatch("svm: selection, .* of 10 trainings of pairs done.*", caplog.messages[-1])


def test_threads_have_the_allowance_of_their_caller():
    calls = [delayed(time_left)() for _ in range(3)]
    with within(allowed(100.0)):
        inside = [delayed(time_left)() for _ in range(3)]
    assert Parallel(2, prefer="threads")(calls) == [float("inf")] * 3
    assert all(99 < left <= 100 for left in Parallel(2, prefer="threads")(inside))


def test_what_is_sent_to_another_computer_is_the_time_that_is_left():
    sent = pickle.loads(pickle.dumps(allowed(100.0, memory=1e9)))
    assert 99 < sent.seconds <= 100 and sent.memory == 1e9
    assert pickle.loads(pickle.dumps(Allowance())).seconds == float("inf")
