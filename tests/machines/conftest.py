"""Real two-class problems for the machines' tests."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem


@pytest.fixture(scope="session")
def real_problem(real_data):
    """Return a function: name of a data set, two classes, kernel -> `BinaryProblem`.

    Features are divided by their largest absolute value and rows by their length, so that kernel
    values are of order 1; at most `rows` rows are taken.
    """

    def load(name, negative, positive, kernel, rows=120):
        data = real_data(name)
        chosen = np.flatnonzero((data.y == negative) | (data.y == positive))[:rows]
        X = data.X[chosen] / np.maximum(1, np.abs(data.X[chosen]).max(axis=0))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return BinaryProblem(X, np.where(data.y[chosen] == positive, 1.0, -1.0), kernel)

    return load


PAIRS = {
    "usps 3/5": ("usps", 3, 5),
    "ionosphere": ("ionosphere", "b", "g"),
    "pima": ("pima", 0, 1),
}


@pytest.fixture(params=PAIRS)
def pair(request, real_problem):
    """A real pair of classes; called with a kernel."""
    name, negative, positive = PAIRS[request.param]
    return lambda kernel: real_problem(name, negative, positive, kernel)


@pytest.fixture
def tiny():
    """Thirty rows in the plane that overlap, with duplicates."""
    rng = np.random.RandomState(0)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(30, 2)) + 0.7 * y[:, None]
    X[20:25] = X[0:5]
    return BinaryProblem(X, y, Kernel("rbf", 0.5))
