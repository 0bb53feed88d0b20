"""The environment of a result: processor, library versions, threads."""

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mmbench

#: Distributions whose version may change a result or its time: libraries and solvers.
LIBRARIES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "joblib",
    "highspy",
    "libsvm-official",
    "clarabel",
    "ecos",
)


def environment(threads: int) -> dict[str, Any]:
    """Return versions, processor and thread settings of a record.

    `threads` is the number of pairs of classes that the job trains at the same time.
    """
    libraries = {
        f"{pool['internal_api']} {pool.get('version') or ''}".strip(): pool["num_threads"]
        for pool in thread_pools().info()
    }
    return {**_fixed(), "threads": {"pairs": threads, "libraries": libraries}}


@cache
def _fixed() -> dict[str, Any]:
    return {
        "mmbench": mmbench.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries by name."""
    fixed = _fixed()
    return {"Python": fixed["python"], **fixed["libraries"]}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@cache
def thread_pools() -> Any:
    """Return the controller of the BLAS and OpenMP libraries in this process, found once."""
    from threadpoolctl import ThreadpoolController

    import mmbench.selection  # noqa: F401  libraries that are loaded later would be missed

    return ThreadpoolController()
