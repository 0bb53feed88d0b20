"""Real two-class problems for the machines' tests."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from mmbench.datasets.load import load_dataset
from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem


def problem_of(data, negative, positive, kernel, rows=120):
    """Return the problem of two classes of a data set.

    Features are divided by their largest absolute value and rows by their length, so that kernel
    values are of order 1; at most `rows` rows are taken.
    """
    chosen = np.flatnonzero((data.y == negative) | (data.y == positive))[:rows]
    X = data.X[chosen] / np.maximum(1, np.abs(data.X[chosen]).max(axis=0))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return BinaryProblem(X, np.where(data.y[chosen] == positive, 1.0, -1.0), kernel)


@pytest.fixture(scope="session")
def real_problem(real_data):
    """Return a function: name of a data set, two classes, kernel -> `BinaryProblem`."""
    return lambda name, *classes_and_kernel, **rows: problem_of(
        real_data(name), *classes_and_kernel, **rows
    )


#: Data sets inside scikit-learn, which need no mirror.
BUILT_IN = {"wine": ("wine", "class_1", "class_2")}
PAIRS = {
    **BUILT_IN,
    "usps 3/5": ("usps", 3, 5),
    "ionosphere": ("ionosphere", "b", "g"),
    "pima": ("pima", 0, 1),
}


@pytest.fixture(params=PAIRS)
def pair(request, tmp_path):
    """A real pair of classes; called with a kernel."""
    name, *classes = PAIRS[request.param]
    if request.param in BUILT_IN:
        load = partial(load_dataset, store=tmp_path, allow_network=False)
    else:
        load = request.getfixturevalue("real_data")
    return lambda kernel: problem_of(load(name), *classes, kernel)


@pytest.fixture
def tiny():
    """Thirty rows in the plane that overlap, with duplicates."""
    rng = np.random.RandomState(0)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 2)) + 0.7 * y[:, None]
    X[20:25] = X[0:5]
    return BinaryProblem(X, y, Kernel("rbf", 0.5))
