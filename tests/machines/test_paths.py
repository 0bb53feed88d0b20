"""A path over a grid has the models of single trainings."""

from __future__ import annotations

import numpy as np
import pytest

from mmbench.kernels import Kernel
from mmbench.machines import KLDA, RMM, SVM, SigmaSVM
from mmbench.machines.base.problem import judged

#: Machines, and grids whose points are not in an order that a path would choose.
PATHS = {
    "svm": (SVM(tol=1e-8), {"C": (100.0, 0.1, 1.0)}),
    "rmm": (RMM(tol=1e-8), {"B_fraction": (0.1, 1.0, 0.5), "C": (10.0, 1.0)}),
    "penalty": (RMM(form="penalty", tol=1e-8), {"D": (10.0, 0.5), "C": (10.0, 1.0)}),
    "relaxed": (RMM(form="relaxed", tol=1e-8), {"D": (10.0, 0.5), "C": (10.0, 1.0)}),
    "sigma svm": (SigmaSVM(tol=1e-8), {"D": (0.9, 0.0, 0.5), "C": (10.0, 1.0)}),
    "klda": (KLDA(), {"eta": (1e-6, 1e-3, 10.0)}),
}


@pytest.mark.parametrize("name", PATHS)
def test_a_path_gives_the_models_of_single_trainings(name, pair):
    machine, grid = PATHS[name]
    problem = pair(Kernel("rbf", gamma=1.0))
    points = [{}]
    for axis, values in grid.items():
        points = [{**point, axis: value} for point in points for value in values]
    for point, model in zip(points, machine.train_path(problem, points), strict=True):
        alone = machine.with_params(point).train(problem)
        assert model.fit.objective == pytest.approx(alone.fit.objective, rel=1e-6)
        assert judged(model.fit, 1e-6, 1e-6).status is judged(alone.fit, 1e-6, 1e-6).status
        f, g = (problem.gram @ found.coef + found.intercept for found in (model, alone))
        np.testing.assert_allclose(f, g, atol=1e-5)
