"""The pairs of one large job on a Dask cluster on the loopback address."""

from __future__ import annotations

import pickle
from threading import Lock

import numpy as np
import pytest
from helpers.dask_threads import cluster_in_threads
from helpers.tasks import hang
from joblib import parallel_config

from mmbench.jobs.limits import NO_LIMITS, Limits
from mmbench.machines import SVM
from mmbench.running import cluster
from mmbench.running.cluster import PairBackend, Spread, run_here, train_items

pytest.importorskip("dask")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def executor():
    with cluster_in_threads(2) as executor:
        yield executor


def four_classes(n=120):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 4
    return rng.normal(size=(n, 2)) + np.column_stack([y % 2, y // 2]), y


class Turn:
    """A turn to train here that is always taken, or never."""

    def __init__(self, free: bool):
        self.free, self.lock = free, Lock()

    def acquire(self, blocking=True):
        return self.free and self.lock.acquire(blocking=blocking)

    def release(self):
        self.lock.release()


def test_pairs_are_trained_there_as_here(executor):
    X, y = four_classes()
    here = SVM(C=3.0).fit(X, y)
    backend = PairBackend(executor.client, NO_LIMITS)
    backend.busy = Turn(free=False)
    with parallel_config(backend=backend):
        there = SVM(C=3.0).fit(X, y)
    assert len(backend.cpu_seconds) == 6
    assert sum(backend.cpu_seconds) > 0
    np.testing.assert_array_equal(here.dual_coef_, there.dual_coef_)
    assert [f.objective for f in here.fits_] == [f.objective for f in there.fits_]


def test_pairs_that_do_not_come_back_are_trained_here(executor):
    X, y = four_classes()
    payload = pickle.dumps((hang, (), Limits(time=20.0), ()))
    busy = [executor.client.submit(run_here, payload, None, "t", pure=False) for _ in range(2)]
    backend = PairBackend(executor.client, NO_LIMITS)
    with parallel_config(backend=backend):
        there = SVM(C=3.0).fit(X, y)
    assert backend.cpu_seconds == []
    np.testing.assert_array_equal(SVM(C=3.0).fit(X, y).dual_coef_, there.dual_coef_)
    executor.client.cancel(busy, force=True)
    cluster.stop_here("t")  # else the workers are busy until the limit


def test_late_results_of_pairs_are_not_lost(executor, monkeypatch):
    """In Dask, a wait with a time limit raises an UnboundLocalError in every second call or so."""
    monkeypatch.setattr(cluster, "LEAST_PATIENCE", 0.002)
    backend = PairBackend(executor.client, NO_LIMITS)
    backend.busy = Turn(free=False)
    assert [backend.train(Calls()) for _ in range(3)] == [[7]] * 3
    assert len(backend.cpu_seconds) == 3


def test_an_error_of_a_pair_is_that_of_the_job(executor):
    backend = PairBackend(executor.client, NO_LIMITS)
    backend.busy = Turn(free=False)
    with pytest.raises(ValueError, match="invalid literal"):
        backend.train(Calls("x"))


class Calls:
    def __init__(self, digits="7"):
        self.items = ((int, (digits,), {}),)


def test_calls_come_back_with_their_cpu_seconds():
    calls = pickle.dumps([(pow, (2, 3), {}), (int, ("7",), {"base": 8})])
    assert pickle.loads(train_items(calls)[0]) == [8, 7]


#: Numbers of training rows of each class; the largest pairs have 499, 10000 and 500 rows.
FEW, ONE_PAIR, MANY = (249, 249, 250), (5000, 5000), (10, 250, 250)


@pytest.mark.parametrize(("counts", "away"), [(FEW, False), (ONE_PAIR, False), (MANY, True)])
def test_only_several_pairs_of_500_rows_are_trained_on_the_cluster(counts, away, executor):
    X, y = four_classes()
    with Spread(executor.scheduler, counts, NO_LIMITS) as spread:
        assert (spread.backend is not None, spread.at_a_time) == (away, 2 if away else 1)
        if away:
            spread.backend.busy = Turn(free=False)
            SVM().fit(X, y)
            assert len(spread.backend.cpu_seconds) == 6
    with Spread(None, counts, NO_LIMITS) as here:
        assert (here.backend, here.at_a_time) == (None, 1)
