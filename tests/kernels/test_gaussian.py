"""What is compiled for kernel values is stored once, not once a process."""

from __future__ import annotations

import inspect

import numpy as np
from numba.core.dispatcher import Dispatcher

from mmbench.kernels import matrix as gaussian


def test_what_is_compiled_is_found_again_by_the_next_process():
    """Numba knows a function by what it encloses, and pickles a compiled one by a random name."""
    X = np.ones((2, 3))
    gaussian.gaussian(X @ X.T, np.full(2, 3.0), np.full(2, 3.0), 1.0)
    compiled = [m for _, m in inspect.getmembers(gaussian) if isinstance(m, Dispatcher)]
    assert compiled
    for function in compiled:
        enclosed = inspect.getclosurevars(function.py_func).nonlocals.values()
        assert not any(isinstance(value, Dispatcher) for value in enclosed)
