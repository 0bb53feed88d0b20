"""``{sliders}``: every machine on the same data, with one parameter that a reader moves.

All machines are trained when the pages are built. The page holds the lines on which the decision f
is -1, 0 and 1, the certificate and a quantity of each fit; ``_static/sliders.js`` draws them.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from contourpy import contour_generator
from docutils import nodes
from numpy.typing import NDArray
from pictures import classes, strips
from sklearn.exceptions import ConvergenceWarning
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

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

DATA = {
    "classes of different spread": classes(((-2.2, 0), (2.6, 0)), ((2.2, 3.0), (0.25, 0.6)), 0.5),
    "two strips": strips(),
    "overlapping classes": classes(((-1, 0), (1, 0.4)), ((1.2, 0.8), (0.9, 1.2))),
}
#: Points along each axis at which the decision is computed; a plane follows from two.
GRID = {"linear": 2, "rbf": 40}


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
    "MMRM": Shown(MMRM, "C_factor", powers(0, 3), "margin ratio", gap_ratio),
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


def frame(shown: Shown, value: float, kernel: str, X: NDArray, y: NDArray) -> dict[str, Any]:
    """Train a machine, and return its lines and the facts below the picture."""
    own = {"kernel": kernel, "gamma": 0.3, shown.parameter: value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the page shows gap and status
        machine = shown.machine(**own).fit(X, y)
    f, fit = machine.decision_function(X), machine.fits_[0]
    size = GRID[kernel]
    axes = [np.linspace(low, high, size) for low, high in zip(*corners(X), strict=True)]
    decisions = machine.decision_function(np.column_stack([p.ravel() for p in np.meshgrid(*axes)]))
    lines = contour_generator(*axes, decisions.reshape(size, size))
    return {
        "lines": [[line.round(2).tolist() for line in lines.lines(z)] for z in (-1, 0, 1)],
        "facts": {
            "training errors": int((np.where(f > 0, 1, -1) != y).sum()),
            shown.quantity: f"{shown.value(machine, f, y):.3g}",
            "objective": f"{fit.objective:.6g}",
            "relative gap": f"{fit.gap:.0e}" if fit.gap else "0",
            "status": str(fit.status),
        },
    }


def corners(X: NDArray) -> tuple[NDArray, NDArray]:
    """Return the lower and the upper corner of the picture."""
    return X.min(axis=0) - 0.5, X.max(axis=0) + 0.5


@cache
def page() -> str:
    """Return all fits as JSON."""

    def fits(shown: Shown) -> Iterator[dict[str, Any]]:
        for data, kernel in ((data, k) for data in DATA for k in ("linear", "rbf")):
            frames = [frame(shown, value, kernel, *DATA[data]) for value in shown.values]
            yield {"data": data, "kernel": kernel, "frames": frames}

    return json.dumps(
        {
            "data": {
                name: {
                    "X": X.round(2).tolist(),
                    "y": y.tolist(),
                    "box": [c.tolist() for c in corners(X)],
                }
                for name, (X, y) in DATA.items()
            },
            "machines": {
                name: {
                    "parameter": shown.parameter,
                    "values": [f"{value:.3g}" for value in shown.values],
                    "fits": list(fits(shown)),
                }
                for name, shown in MACHINES.items()
            },
        },
        separators=(",", ":"),
    )


class Sliders(SphinxDirective):
    """``{sliders}``: a picture with a list of machines and a slider."""

    def run(self) -> list[nodes.Node]:
        """Return the element that the script fills, and the fits."""
        text = f'<div id="sliders"></div><script type="application/json">{page()}</script>'
        return [nodes.raw("", text, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("sliders", Sliders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
