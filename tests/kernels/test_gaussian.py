"""What is compiled for kernel values is stored once, not once a process."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

from mmbench.kernels import Kernel
from mmbench.kernels import matrix as gaussian
from mmbench.kernels.matrix import KernelRows


def test_what_is_compiled_is_found_again_by_the_next_process():
    """Numba knows a function by what it encloses, and pickles a compiled one by a random name."""
    X = np.ones((2, 3))
    gaussian.gaussian(X @ X.T, np.full(2, 3.0), np.full(2, 3.0), 1.0)
    compiled = [m for _, m in inspect.getmembers(gaussian) if isinstance(m, Dispatcher)]
    assert compiled
    for function in compiled:
        enclosed = inspect.getclosurevars(function.py_func).nonlocals.values()
        assert not any(isinstance(value, Dispatcher) for value in enclosed)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e12, 1e100])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_equal_rows_have_the_kernel_value_one_at_any_scale(scale, offset):
    X = (np.random.default_rng(0).normal(size=(40, 5)) + offset) * scale
    X[20:] = X[:20]
    X[30:] *= 1 + 1e-15
    exact = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    assert Kernel("rbf")(X, X) == pytest.approx(exact, abs=1e-5)
    rows = KernelRows(Kernel("rbf"), X)
    assert rows.values(KernelRows(Kernel("rbf"), X.copy(), rows.centre)) == pytest.approx(
        exact, abs=1e-5
    )
