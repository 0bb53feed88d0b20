"""Machines in the plane: their lines, their quantities and their certificates.

Used when the pages are built, and shipped to the page that trains machines in a browser.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from mmbench.errors import UserError
from mmbench.inspect.geometry import margins, worst_case
from mmbench.inspect.hyperplanes import hyperplanes
from mmbench.machines import (
    FSVM,
    KLDA,
    LDA,
    LDM,
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

#: Points along each axis at which the decision is computed; a plane follows from two.
GRID = {"linear": 2, "rbf": 40}
#: Parameters that the sliders of the browser page set; a machine takes the first that it has.
MOVED = {"C": ("C_factor", "C"), "gamma": ("gamma",), "B": ("B",), "nu": ("nu",)}
#: Machines of the sliders that move one machine; the `nu` of the RMM is of a form not shown here.
ONLY = {"B": "RMM", "nu": "M4"}
#: Seconds after which a machine in a browser returns its best point.
TIME_LIMIT = 5.0


class Shown(NamedTuple):
    """A machine, the parameter that is moved with its values, and the machine's own quantity."""

    machine: Callable[..., Any]
    parameter: str
    values: NDArray
    quantity: str
    value: Callable[[Any, NDArray, NDArray], float]


def moments(f: NDArray, y: NDArray) -> tuple[float, float]:
    """Return the distance between the class means of f, and the sum of its class deviations."""
    positive, negative = f[y > 0], f[y < 0]
    return positive.mean() - negative.mean(), positive.std() + negative.std()


def gap_ratio(_: Any, f: NDArray, y: NDArray) -> float:
    """Return the MMRM's ratio: the gap between the classes by the rest of the means' distance."""
    gap = f[y > 0].min() - f[y < 0].max()
    return gap / (moments(f, y)[0] - gap)


def powers(low: float, high: float) -> NDArray:
    """Return nine powers of ten with equal ratios."""
    return np.logspace(low, high, 9)


RELATIVE = ("margin by the range of f", lambda m, f, y: 2 / np.ptp(f))
SQUARES = ("mean squared residual", lambda m, f, y: ((f - y) ** 2).mean())
WORST = ("worst-case accuracy", lambda m, f, y: m.worst_case_accuracy_[0])
MACHINES = {
    "SVM": Shown(SVM, "C", powers(-3, 3), "support vectors", lambda m, f, y: m.fits_[0].n_support),
    "RMM": Shown(
        partial(RMM, C=100), "B", 1 + powers(-1, 1), "largest |f|", lambda m, f, y: abs(f).max()
    ),
    "Σ-SVM": Shown(
        partial(SigmaSVM, C=100),
        "D",
        1 - powers(0, -3),
        "standard deviation of f",
        lambda m, f, y: f.std(),
    ),
    "LDM": Shown(
        partial(LDM, C=100, lambda_2=0.1),
        "lambda_1",
        powers(-2, 3),
        "variance of the margins by their squared mean",
        lambda m, f, y: (y * f).var() / (y * f).mean() ** 2,
    ),
    "MMRM": Shown(
        partial(MMRM, solver="interior"), "C_factor", powers(0, 3), "margin ratio", gap_ratio
    ),
    "LDA": Shown(
        LDA,
        "ridge",
        powers(-6, 1),
        "distance of the means by the sum of deviations",
        lambda m, f, y: np.divide(*moments(f, y)),
    ),
    "MPM": Shown(MPM, "ridge", powers(-6, 1), *WORST),
    "MEMPM": Shown(MEMPM, "ridge", powers(-6, 1), *WORST),
    "M4": Shown(partial(M4, ridge=1e-3), "C_factor", powers(0.5, 2.5), *WORST),
    "MAMC": Shown(
        partial(MAMC, bias="optimized"),
        "Cm",
        powers(-0.5, 0.5),
        "mean margin",
        lambda m, f, y: (y * f).mean(),
    ),
    "LS-SVM": Shown(LSSVM, "C", powers(-3, 3), *SQUARES),
    "KLDA": Shown(KLDA, "eta", powers(-5, 1), *SQUARES),
    "F-SVM": Shown(FSVM, "C", powers(-2, 2), *RELATIVE),
    "R-SVM+": Shown(partial(RSVMPlus, C=10), "lam", powers(-3, 2), *RELATIVE),
    "R-SVMμ+": Shown(partial(RSVMMuPlus, C=10), "lam", powers(-3, 2), *RELATIVE),
    "MR-SVM": Shown(MRSVM, "C", powers(-2, 2), *RELATIVE),
}


def frame(
    shown: Shown, parameters: dict[str, Any], X: NDArray, y: NDArray, box: Any = None
) -> dict[str, Any]:
    """Train a machine, and return its lines and the facts below the picture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page shows gap and status
        machine = shown.machine(**parameters).fit(X, y)
    f, fit = machine.decision_function(X), machine.fits_[0]
    size, box = GRID[machine.kernel], box or corners(X)
    axes = [np.linspace(low, high, size) for low, high in zip(*box, strict=True)]
    (plane,) = hyperplanes(machine, X, X, y, None)
    norm = np.sqrt(max(0.0, plane.coef @ plane.projections(plane.support)))
    decisions = machine.decision_function(np.column_stack([p.ravel() for p in np.meshgrid(*axes)]))
    lines = contour_generator(*axes, decisions.reshape(size, size))
    with np.errstate(divide="ignore", invalid="ignore"):  # of a constant f: "inf" or "nan" is shown
        value = shown.value(machine, f, y)
    return {
        "lines": [[line.round(2).tolist() for line in lines.lines(z)] for z in (-1, 0, 1)],
        "facts": {
            "training errors": int((np.where(f > 0, 1, -1) != y).sum()),
            "margin": f"{margins(f, y, norm)['margin']:.3g}",
            "worst-case accuracy": f"{worst_case(f, y)['worst_case']:.3g}",
            shown.quantity: f"{value:.3g}",
            "objective": f"{fit.objective:.6g}",
            "relative gap": f"{fit.gap:.0e}" if fit.gap else "0",
            "status": str(fit.status),
        },
    }


def corners(X: NDArray) -> tuple[NDArray, NDArray]:
    """Return the lower and the upper corner of the picture."""
    return X.min(axis=0) - 0.5, X.max(axis=0) + 0.5


def answer(request: str) -> str:
    """Train the machine of a request of the browser page; return its frame or its error as JSON."""
    asked = json.loads(request)
    shown = MACHINES[asked["machine"]]
    known = shown.machine().get_params()
    own = {"kernel": asked["kernel"], "time_limit": TIME_LIMIT}
    for name, value in asked["values"].items():
        if ONLY.get(name, asked["machine"]) == asked["machine"]:
            own |= dict.fromkeys([key for key in MOVED[name] if key in known][:1], value)
    X, y = np.array(asked["X"], dtype=float), np.array(asked["y"])
    try:
        return json.dumps(frame(shown, own, X, y, asked["box"]))
    except (UserError, ValueError) as error:
        return json.dumps({"error": str(error)})
