"""Few rows, of which many are equal, also with other labels: every optimum is certified."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mmbench.errors import Status
from mmbench.kernels import Kernel
from mmbench.machines import KLDA, RMM, SVM, SigmaSVM
from mmbench.machines.base.problem import BinaryProblem, judged

LINEAR = Kernel("linear")
KERNELS = (LINEAR, Kernel("poly", degree=3), Kernel("rbf", gamma=1.0))
#: Machines with C, and their settings with largest KKT violation and relative gap.
SETTINGS = {
    "svm": ([{}], 1e-9, 1e-5),
    "rmm": ([{"B": B} for B in (0.0, 1e-5, 0.4, 1.0, 1.1, 2.0, 3.0)], 1e-9, 1e-5),
    "rmm penalty": ([{"form": "penalty", "D": D} for D in (1e-2, 0.3, 5.0, 1e2)], 1e-8, 1e-5),
    "rmm relaxed": (
        [{"form": "relaxed", "nu": nu, "D": D} for nu in (0.5, 1.5, 4.0) for D in (1e-2, 5.0)],
        *(1e-8, 1e-5),
    ),
    "sigma svm": ([{"D": D} for D in (0.0, 0.2, 0.9, 0.999, 1.0)], 1e-6, 1e-4),
    "klda": ([{"eta": eta} for eta in (1e-3, 1e-1, 1.0, 10.0)], 1e-6, 1e-6),
}
CLASSES = {"svm": SVM, "rmm": RMM, "sigma": SigmaSVM}


@pytest.mark.parametrize("name", SETTINGS)
@given(
    n=st.integers(2, 12),
    C=st.floats(1e-2, 1e3),
    setting=st.integers(0, 20),
    seed=st.integers(0, 99),
    kernel=st.sampled_from(KERNELS),
)
@example(8, 3.0, 0, 6, LINEAR)  # more free rows than features: no system of theirs settles
@example(6, 1e-3, 0, 6, LINEAR)
@settings(max_examples=60, deadline=None)
@examples(
    n=range(2, 13), C=(1e-2, 0.7, 53.0, 1e3), setting=range(7), seed=range(24), kernel=KERNELS
)
def test_small_problems_with_repeated_rows_are_certified(name, n, C, setting, seed, kernel):
    X = np.random.RandomState(seed).randint(3, size=(n, 2)).astype(float)
    problem = BinaryProblem(X, np.where(np.arange(n) % 2 == 0, 1.0, -1.0), kernel)
    ways, violation, gap = SETTINGS[name]
    given = ways[setting % len(ways)]
    if name == "klda":
        machine = KLDA(**given)
    else:
        machine = CLASSES[name.split()[0]](C=C, tol=max(violation, 1e-9), **given)
    fit = judged(machine.train(problem).fit, 1e-6, violation)
    assert fit.status is Status.OPTIMAL or (name, fit.status) == ("klda", Status.TRIVIAL)
    assert fit.max_violation <= violation
    assert -1e-9 <= fit.gap < gap
