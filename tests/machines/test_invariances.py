"""What changes no decision, up to its sign: other names of the classes, and maps of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.joint_rows import VARIANTS
from helpers.minimax_family import affine, gaussians

from mmbench.machines import (
    FSVM,
    KLDA,
    LDA,
    LSSVM,
    M4,
    MAMC,
    MEMPM,
    MMRM,
    MPM,
    MRSVM,
    RMM,
    SVM,
    RSVMMuPlus,
    RSVMPlus,
    SigmaSVM,
)

TURN = np.linalg.qr(np.random.RandomState(0).normal(size=(4, 4)))[0]
MAPS = {"moved": lambda X: X + 3.0, "turned": lambda X: X @ TURN, "mapped": affine}
#: Machines, tolerances of the decisions, and the maps of linear rows that change none of them.
CASES = [
    (SVM(tol=1e-8), 1e-5, "moved turned"),
    (RMM(B=1.1, tol=1e-9), 1e-5, "moved turned"),
    *((SigmaSVM(D=D, tol=1e-8), 1e-5, "moved turned") for D in (0.5, 0.99)),
    (KLDA(eta=1e-3, bias="midpoint"), 1e-8, "turned"),
    *((MAMC(bias=bias), 1e-10, "turned") for bias in ("prior", "optimized")),
    (LSSVM(C=5), 1e-8, "moved turned"),
    (LSSVM(C=5, reading="empirical"), 1e-8, ""),
    *((LDA(bias=bias), 1e-8, "mapped") for bias in ("midpoint", "optimized")),
    (MPM(), 1e-8, "mapped"),
    (MEMPM(tol=1e-8), 1e-4, "mapped"),
    *((M4(C_factor=3.0, tol=1e-8, nu=nu), 1e-3, "mapped") for nu in (0.0, 0.7)),
    (M4(C_factor=2.0, normalization="mean", tol=1e-8), 1e-3, "mapped"),
    (M4(C_factor=3.0, variant="lda", tol=1e-8), 1e-3, "mapped"),
    (MMRM(), 1e-5, "mapped"),
    *((FSVM(variant=variant, tol=1e-7), 2e-3, "") for variant in VARIANTS),
    *((machine(C=2.0), 1e-3, "") for machine in (RSVMPlus, RSVMMuPlus, MRSVM)),
]
MAPPED = [(*case[:2], name) for case in CASES for name in case[2].split()]


def decisions(machine, X, y, kernel):
    if "ridge" in machine.get_params():
        machine.set_params(ridge=1e-3 if kernel == "rbf" else 0.0)
    return machine.set_params(kernel=kernel).fit(X, y).decision_function(X)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("machine, tolerance", [case[:2] for case in CASES], ids=repr)
def test_swapped_classes_turn_the_sign(machine, tolerance, kernel):
    X, y = gaussians(d=4, shift=0.8)
    f, g = (decisions(machine, X, labels, kernel) for labels in (y, -y))
    np.testing.assert_allclose(f, -g, atol=tolerance * max(1.0, np.abs(f).max()))


@pytest.mark.parametrize("machine, tolerance, name", MAPPED, ids=repr)
def test_maps_of_the_rows_change_no_decision(machine, tolerance, name):
    X, y = gaussians(d=4, shift=0.8)
    f, g = (decisions(machine, Z, y, "linear") for Z in (X, MAPS[name](X)))
    np.testing.assert_allclose(f, g, atol=tolerance * max(1.0, np.abs(f).max()))
