"""The environment of a job: processor, library versions and numbers of threads."""

import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import mmbench

#: Packages that contain solvers.
SOLVER_PACKAGES = ("highspy", "libsvm-official", "clarabel", "ecos")
#: Packages whose versions may change results or CPU times.
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "joblib", *SOLVER_PACKAGES)


@cache  # reading the thread pools takes milliseconds
def environment(threads: int) -> dict[str, Any]:
    """Return the library versions, the processor and the numbers of threads for a record.

    The argument `threads` is the number of pairs of classes that a job trains at the same time.
    """
    pools = {
        f"{pool['internal_api']} {pool.get('version') or ''}".strip(): pool["num_threads"]
        for pool in thread_pools().info()
    }
    return {
        "mmbench": mmbench.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "libraries": library_versions(),
        "threads": {"pairs": threads, "libraries": pools},
    }


@cache
def library_versions() -> dict[str, str]:
    """Return the versions of the installed packages in `LIBRARIES`, by package name."""
    found = {}
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _cpu_model() -> str:
    with suppress(OSError, StopIteration):  # only Linux has this file
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line[:10] == "model name")
    return platform.processor() or platform.machine()


@cache
def thread_pools() -> Any:
    """Return the controller of the thread pools of BLAS and OpenMP libraries in this process.

    The controller finds only libraries that are loaded already. This function imports
    `mmbench.selection.search` first, since this import loads BLAS and OpenMP libraries.
    """
    from threadpoolctl import ThreadpoolController

    import mmbench.selection.search  # noqa: F401

    return ThreadpoolController()
