"""A Dask cluster whose workers are threads of this process, and need not import anything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mmbench.running import cluster
from mmbench.running.cluster import DaskExecutor


@contextmanager
def cluster_in_threads(slots: int) -> Iterator[DaskExecutor]:
    """Start a cluster; tasks still run in processes beside the workers."""
    from distributed import LocalCluster

    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "_local_cluster", lambda n, _: LocalCluster(n_workers=n, **options))
        executor = DaskExecutor("local", slots, (), print)
    yield executor
    executor.close()
    cluster.stop_here("closed")
