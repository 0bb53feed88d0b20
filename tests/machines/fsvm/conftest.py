"""Fixtures of the F-SVM's tests: real pairs of classes, and three classes."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.joint_rows import rows_of
from sklearn.datasets import load_wine

from mmbench.kernels import Kernel
from mmbench.machines.base.problem import BinaryProblem
from mmbench.machines.kernel_pca import spectrum


@pytest.fixture(params=[("ionosphere", "b", "g"), ("pima", 0, 1)], ids=["ionosphere", "pima"])
def two(request, real_problem):
    """A real pair of classes, and its rows in uncorrelated coordinates."""
    problem = real_problem(*request.param, Kernel("linear"), rows=250)
    return problem, rows_of(spectrum(problem), (problem.y > 0).astype(int))


@pytest.fixture(scope="module")
def wine():
    X, y = load_wine(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def wine_rows(wine):
    """Two of the three classes."""
    X, y = wine
    X, y = X[y > 0], y[y > 0]
    return rows_of(spectrum(BinaryProblem(X, np.ones(len(X)), Kernel("linear"))), y - 1)
