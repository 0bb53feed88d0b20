"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache, partial
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest
from helpers.serial_executor import no_processes
from hypothesis import Phase, settings

from mmbench.datasets.load import load_dataset
from mmbench.resources import REFERENCE
from mmbench.results import folder as results_folder

# Processes of the tests share compiled modules, as they share what Numba compiles.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

ROOT = Path(__file__).resolve().parents[1]

# Only the stated examples, since what Hypothesis draws differs between its versions. The nightly
# job draws others with HYPOTHESIS_PROFILE=random. No deadline: a busy machine is no fault of the
# code.
settings.register_profile("stated", phases=[Phase.explicit], deadline=None)
settings.register_profile("random", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "stated"))


COMPILE = """
from mmbench.machines import SVM
from mmbench.solvers.svm_dual.smo import compile_steps
compile_steps()
SVM(cache_size=1e-3).fit([[0.0], [1.0], [2.0], [3.0]] * 5, [0, 0, 1, 1] * 5)  # by parts
"""


def pytest_configure(config: pytest.Config) -> None:
    """Prepare the start of several worker processes.

    Compile first, since each worker would, for seconds in a fresh checkout; in a process of its
    own, since compiling takes twice as long where coverage is measured. Give each worker one thread
    for linear algebra: with more threads than cores, small matrices take ten times as long.
    """
    if getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput"):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(name, "1")
        path = os.pathsep.join(filter(None, sys.path))
        subprocess.run([sys.executable, "-c", COMPILE], env={**os.environ, "PYTHONPATH": path})


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Look for no garbage among thousands of tests, which last to the end."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark cases as slow that combine only what other cases of their test have in pairs.

    Of a test with three or more lists of cases, as few remain as contain each pair of values.
    """
    tests = defaultdict(dict)
    for item in items:
        fast = hasattr(item, "callspec") and not item.get_closest_marker("slow")
        if fast and len(values := _values(item)) > 2:
            tests[item.nodeid.partition("[")[0]][item] = set(combinations(values, 2))
    for cases in tests.values():
        missing = set().union(*cases.values())
        while missing:
            missing -= cases.pop(max(cases, key=lambda item: len(cases[item] & missing)))
        for item in cases:
            item.add_marker("slow")


def _values(item: pytest.Item) -> list[tuple[object, ...]]:
    """Return the values that each list of cases, or fixture with parameters, gives a test."""
    given = {name: id(value) for name, value in item.callspec.params.items()}
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    names = [each.replace(",", " ").split() if isinstance(each, str) else each for each in lists]
    together = [(*each, *(given.pop(name) for name in each)) for each in names]
    return [*together, *given.items()]


@pytest.fixture(scope="session")
def mirror() -> Path:
    """The folder of real data files; tests that need it skip visibly where it is not."""
    folder = Path(os.environ.get("MMBENCH_MIRROR", ROOT.parent / "shared" / "data"))
    if not (folder / "SHA256SUMS").exists():
        pytest.skip("the data mirror is not on this machine (set MMBENCH_MIRROR to its folder)")
    return folder


@pytest.fixture(scope="session")
def real_data(mirror, tmp_path_factory):
    """Return a function that loads a data set of the mirror by the name of its card."""
    store = tmp_path_factory.mktemp("store")
    return partial(load_dataset, store=store, mirror=mirror, allow_network=False)


@pytest.fixture(scope="session", autouse=True)
def reference_tables_are_read_once() -> Iterator[None]:
    """Keep the frames of the reference tables: many tests read them, each for up to a second."""
    read = results_folder._read_frame
    kept = cache(read)

    def copied(frame: str, path: Path, needed: tuple[str, ...]) -> pd.DataFrame:
        return (
            kept(frame, path, needed).copy()
            if REFERENCE in path.parents
            else read(frame, path, needed)
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(results_folder, "_read_frame", copied)
        yield


@pytest.fixture
def one_process() -> Iterator[None]:
    """Let commands run their jobs in the process of the tests."""
    with no_processes():
        yield
