"""The geometry of each family, drawn by the machines themselves when the pages are built.

Each picture is drawn for a wide page and for a phone, where panels and legends are stacked.
"""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from docutils import nodes
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from mmbench.machines import (
    KLDA,
    LDA,
    LDM,
    LSSVM,
    M4,
    MAMC,
    MMRM,
    MPM,
    RMM,
    SVM,
    RSVMPlus,
    SigmaSVM,
)

#: Colours of Okabe and Ito, which the colour-blind can distinguish.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#777777"
STYLE = {"font.size": 9, "axes.titlesize": 9, "legend.frameon": False, "legend.fontsize": 8}
DASHES = ("-", "--", "-.", ":")
#: Width and height of a picture on a wide page, and width on a phone, in inches.
WIDTH, HEIGHT, NARROW = 7.2, 3.1, 3.7

Line = tuple[NDArray, float]


def classes(
    means: tuple[tuple[float, float], tuple[float, float]],
    variances: tuple[tuple[float, float], tuple[float, float]],
    angle: float = 0.0,
    n: int = 60,
) -> tuple[NDArray, NDArray]:
    """Return n normally distributed rows per class, rotated by an angle, and labels -1 and 1."""
    random = np.random.RandomState(3)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    parts = [
        mean + random.standard_normal((n, 2)) * np.sqrt(variance) @ turn.T
        for mean, variance in zip(np.array(means), variances, strict=True)
    ]
    return np.vstack(parts), np.repeat([-1, 1], n)


def strips() -> tuple[NDArray, NDArray]:
    """Return two classes with a large spread along the first axis, and labels -1 and 1."""
    random = np.random.RandomState(4)
    along = np.r_[random.uniform(-5, -0.2, 60), random.uniform(0.2, 5, 60)]
    across = np.repeat([-0.9, 0.9], 60) + 0.35 * random.standard_normal(120)
    return np.column_stack([along, across]), np.repeat([-1, 1], 60)


def panels(canvas: Figure, n: int, columns: int, narrow: int = 1) -> list[Axes]:
    """Return n panels in `columns` columns, or in `narrow` columns on a narrow canvas."""
    wide = canvas.get_figwidth() >= WIDTH
    columns = columns if wide else narrow
    rows, least = n // columns, HEIGHT if wide else 2.2
    canvas.set_figheight(max(least, rows * canvas.get_figwidth() / columns * 0.75))
    return list(canvas.subplots(rows, columns, squeeze=False).ravel())


def legend(axes: Axes) -> None:
    """Write the legend below the panel, in one column on a narrow canvas."""
    ncols = 1 if axes.figure.get_figwidth() < WIDTH else 3
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=ncols)


def points(axes: Axes, X: NDArray, y: NDArray) -> None:
    """Draw the rows of two classes."""
    for label, colour, marker in ((-1, ORANGE, "s"), (1, BLUE, "o")):
        rows = X[y == label]
        axes.scatter(*rows.T, s=14, c=colour, marker=marker, alpha=0.55, lw=0)
    axes.set(aspect="equal", xticks=[], yticks=[])
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def line_of(machine: Any) -> Line:
    """Return w and b of a linear two-class machine."""
    return machine.coef_[0], float(machine.intercept_[0])


def level(axes: Axes, line: Line, value: float = 0.0, **style: Any) -> None:
    """Draw the line on which ``w'x + b`` equals `value`."""
    w, b = line
    on = (value - b) * w / (w @ w)
    axes.axline(on, on + np.array([-w[1], w[0]]), **{"lw": 1.4, "color": "black", **style})


def band(axes: Axes, line: Line, values: tuple[float, ...], **style: Any) -> None:
    """Draw the decision boundary, and thin dotted lines at other decision values."""
    level(axes, line, **style)
    for value in values:
        level(axes, line, value, **{**style, "lw": 0.8, "ls": ":", "label": None})


def svm(canvas: Figure) -> None:
    """A small and a large penalty on slack."""
    X, y = classes(((-1.6, 0), (1.6, 0)), ((0.9, 1.2), (0.9, 1.2)))
    for axes, C in zip(panels(canvas, 2, 2), (0.02, 10.0), strict=True):
        machine = SVM(C=C, kernel="linear").fit(X, y)
        points(axes, X, y)
        band(axes, line_of(machine), (-1, 1))
        decisions = y * machine.decision_function(X)
        axes.scatter(*X[decisions < 1 + 1e-3].T, s=46, fc="none", ec="black", lw=0.7)
        axes.set_title(f"C = {C:g}: {machine.fits_[0].n_support} support vectors")


def rmm(canvas: Figure) -> None:
    """The SVM, and the RMM with bounded decision values."""
    X, y = strips()
    machines = (SVM(C=100, kernel="linear"), RMM(C=100, kernel="linear", B_fraction=0.3))
    for axes, machine in zip(panels(canvas, 2, 2), machines, strict=True):
        machine.fit(X, y)
        name = type(machine).__name__
        points(axes, X, y)
        largest = abs(machine.decision_function(X)).max()
        band(axes, line_of(machine), (-1, 1))
        for value in (-largest, largest):
            level(axes, line_of(machine), value, color=GREY, ls="--", lw=1)
        axes.set_title(f"{name}: decisions from {-largest:.1f} to {largest:.1f}")


def rmm_scaling(canvas: Figure) -> None:
    """Figure 1 of the paper: one direction is scaled, and the SVM turns to this direction."""
    random = np.random.RandomState(1)
    y = np.repeat([-1, 1], 40)
    X = np.column_stack([random.uniform(0.05, 1, 80) * y, 0.3 * y])  # two parallel lines
    axes = panels(canvas, 6, 3, narrow=3)
    for above, below, scale in zip(axes[:3], axes[3:], (1, 3, 10), strict=True):
        Z = X * [scale, 1]
        points(above, X, y)
        above.set(aspect="auto", ylim=(-0.7, 0.7), title=f"scale {scale}")
        machines = (
            (ORANGE, 1, SVM(C=1e3, kernel="linear")),
            (GREEN, 0, RMM(C=1e3, B=1.05, kernel="linear")),
        )
        for colour, height, machine in machines:
            w, b = line_of(machine.fit(Z, y))
            level(above, (w * [scale, 1], b), color=colour)
            f = machine.decision_function(Z)
            for label, marker in ((-1, "s"), (1, "o")):
                own = f[y == label]
                heights = np.full(len(own), height)
                below.scatter(own, heights, s=10, c=colour, marker=marker, alpha=0.5, lw=0)
        below.set(yticks=[0, 1], yticklabels=["RMM", "SVM"], ylim=(-0.6, 1.6))
        below.set_xlabel("decision value")


def sigma_svm(canvas: Figure) -> None:
    """The direction of w for several penalties on the spread."""
    X, y = strips()
    axes = canvas.subplots()
    points(axes, X, y)
    for D, dashes in zip((0.0, 0.9, 0.999), DASHES, strict=False):
        machine = SigmaSVM(C=100, D=D, kernel="linear").fit(X, y)
        spread = machine.decision_function(X).std()
        name = f"D = {D:g}: f has deviation {spread:.2f}"
        level(axes, line_of(machine), ls=dashes, label=name)
    legend(axes)


def ldm(canvas: Figure) -> None:
    """The SVM and the LDM, with the distribution of their margins."""
    X, y = strips()
    machines = (
        SVM(C=100, kernel="linear"),
        LDM(C=100, lambda_1=30, lambda_2=0.1, kernel="linear"),
    )
    axes = panels(canvas, 4, 2, narrow=2)
    bins = np.linspace(-0.5, 3.5, 33)
    for above, below, machine in zip(axes[:2], axes[2:], machines, strict=True):
        margins = y * machine.fit(X, y).decision_function(X)
        relative = margins / margins.mean()
        points(above, X, y)
        band(above, line_of(machine), (-1, 1))
        for label, colour in ((-1, ORANGE), (1, BLUE)):
            below.hist(relative[y == label], bins, color=colour, alpha=0.55)
        below.set(xlabel="margin / mean margin", yticks=[])
        above.set_title(f"{type(machine).__name__}: variance {relative.var():.2f}")


def mmrm(canvas: Figure) -> None:
    """The gap between the classes relative to the distance of their means."""
    X, y = strips()
    machines = (SVM(C=100, kernel="linear"), MMRM(C=100, kernel="linear"))
    for axes, machine in zip(panels(canvas, 2, 2), machines, strict=True):
        machine.fit(X, y)
        points(axes, X, y)
        w, b = line_of(machine)
        f = X @ w + b
        gap = f[y == 1].min() - f[y == -1].max()
        means = [f[y == label].mean() for label in (-1, 1)]
        for label, mean, colour in zip((-1, 1), means, (ORANGE, BLUE), strict=True):
            level(axes, (w, b), mean, color=colour, ls="--", lw=1.1)
            edge = f[y == label].max() if label < 0 else f[y == label].min()
            level(axes, (w, b), edge, ls=":", lw=0.9)
        level(axes, (w, b), (f[y == 1].min() + f[y == -1].max()) / 2)
        ratio = gap / (means[1] - means[0] - gap)
        axes.set_title(f"{type(machine).__name__}: margin ratio {ratio:.2f}")


def minimax(canvas: Figure) -> None:
    """The first example of the M4 paper: classes with different spread."""
    X, y = classes(((-2.2, 0), (2.6, 0)), ((2.2, 3.0), (0.25, 0.6)), 0.5, n=80)
    axes = canvas.subplots()
    points(axes, X, y)
    for label, colour in ((-1, ORANGE), (1, BLUE)):
        ellipse(axes, X[y == label], colour)
    machines = {
        "SVM": SVM(C=1, kernel="linear"),
        "MPM": MPM(kernel="linear"),
        "M4": M4(C=1, kernel="linear"),
        "LDA": LDA(kernel="linear"),
    }
    for (name, machine), dashes in zip(machines.items(), (":", "--", "-", "-."), strict=True):
        level(axes, line_of(machine.fit(X, y)), ls=dashes, label=name)
    legend(axes)


@cache
def guarantees() -> pd.DataFrame:
    """Return bounds of the MPM and the accuracies of the worse class, on repeated training sets.

    A class has two values of the first feature, blurred by a tenth of the spread: the distribution
    with the smallest accuracy for its mean and covariance. The true kappa of the MPM is 1.5.
    """
    random, share = np.random.RandomState(0), 1 / (1 + 1.5**2)

    def drawn(n: int) -> tuple[NDArray, NDArray]:
        y = np.repeat([-1, 1], n)
        values = np.where(random.uniform(size=2 * n) < share, 0.0, 1.5 + 1 / 1.5)
        first = y * (values + 0.1 * random.standard_normal(2 * n))
        return np.column_stack([first, random.standard_normal(2 * n)]), y

    (X, y), found = drawn(2000), []
    for n, radius, _ in itertools.product((10, 20, 50, 100, 200), ("0", "√(d/n)"), range(50)):
        machine = MPM(kernel="linear", robust_mean=0.0 if radius == "0" else (2 / n) ** 0.5)
        right = machine.fit(*drawn(n)).predict(X) == y
        worse = min(right[y == label].mean() for label in (-1, 1))
        found.append((n, radius, worse, machine.worst_case_accuracy_[0]))
    return pd.DataFrame(found, columns=["n", "radius", "worse", "bound"])


def guarantee(canvas: Figure) -> None:
    """The guaranteed accuracy of the MPM by the number of training rows, and how often it holds."""
    left, right = panels(canvas, 2, 2)
    for (radius, part), dashes in zip(guarantees().groupby("radius"), DASHES, strict=False):
        means = part.groupby("n")[["worse", "bound"]].mean()
        failed = (part.worse < part.bound).groupby(part.n).mean()
        label = f"robust_mean = {radius}"
        left.semilogx(means.bound, "o", ls=dashes, ms=3, color=BLUE, label=f"bound, {label}")
        right.semilogx(100 * failed, "o", ls=dashes, ms=3, color=BLUE, label=label)
    means = guarantees().groupby("n").worse.mean()
    left.semilogx(means, "s", ls="-", ms=3, color=ORANGE, label="accuracy of the worse class")
    left.set(xlabel="training rows per class", ylim=(0, 1), title="Accuracy, mean over 50 draws")
    right.set(xlabel="training rows per class", ylim=(0, 60), title="Bound not met, % of draws")
    for axes in (left, right):
        axes.set_xticks([10, 20, 50, 100, 200], ["10", "20", "50", "100", "200"])
        axes.minorticks_off()
        axes.legend(loc="lower right" if axes is left else "upper right")


def ellipse(axes: Axes, rows: NDArray, colour: str) -> None:
    """Draw the ellipses at Mahalanobis distances 1 and 2 from the mean of the rows."""
    values, vectors = np.linalg.eigh(np.cov(rows.T, bias=True))
    angles = np.linspace(0, 2 * np.pi, 100)
    circle = np.vstack([np.cos(angles), np.sin(angles)])
    for radius in (1, 2):
        curve = rows.mean(axis=0)[:, None] + radius * vectors * np.sqrt(values) @ circle
        axes.plot(*curve, color=colour, lw=1)


def mamc(canvas: Figure) -> None:
    """One direction, the difference of class sums, and two thresholds."""
    X, y = classes(((-1.2, 0), (1.6, 0.4)), ((0.8, 0.8), (0.8, 0.8)))
    keep = np.r_[0:60, 60:80]
    X, y = X[keep], y[keep]
    axes = canvas.subplots()
    points(axes, X, y)
    for bias, dashes in (("prior", "--"), ("optimized", "-")):
        machine = MAMC(kernel="rbf", gamma=0.2, bias=bias).fit(X, y)
        errors = int((machine.predict(X) != y).sum())
        name = f"b {'of (13)' if bias == 'prior' else 'optimized'}: {errors} errors"
        contour(axes, machine, dashes, name)
    legend(axes)


def contour(axes: Axes, machine: Any, dashes: str, name: str, colour: str = "black") -> None:
    """Draw the decision boundary of a machine with a kernel."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    across, up = np.meshgrid(np.linspace(left, right, 160), np.linspace(low, high, 160))
    decisions = machine.decision_function(np.column_stack([across.ravel(), up.ravel()]))
    if np.ptp(np.sign(decisions)):
        shown = decisions.reshape(across.shape)
        axes.contour(across, up, shown, [0.0], colors=colour, linestyles=dashes)
        axes.plot([], [], color=colour, ls=dashes, label=name)
    else:
        axes.plot([], [], " ", label=f"{name}, no boundary here")


def least_squares(canvas: Figure) -> None:
    """Distant rows influence machines with squared residuals, but not the SVM."""
    X, y = classes(((-1.4, 0), (1.4, 0)), ((0.4, 0.8), (0.4, 0.8)))
    random = np.random.RandomState(5)
    X = np.vstack([X, [5.2, 2.6] + 0.4 * random.standard_normal((12, 2))])
    y = np.r_[y, np.ones(12, dtype=int)]
    axes = canvas.subplots()
    points(axes, X, y)
    machines = {
        "SVM": SVM(C=1, kernel="linear"),
        "LS-SVM": LSSVM(C=1, kernel="linear"),
        "KLDA": KLDA(eta=1.0, kernel="linear"),
    }
    for (name, machine), dashes in zip(machines.items(), DASHES, strict=False):
        level(axes, line_of(machine.fit(X, y)), ls=dashes, label=name)
    legend(axes)


def fsvm(canvas: Figure) -> None:
    """The data: original, semi-whitened and whitened."""
    X, y = classes(((-1.0, -1.0), (1.0, 1.0)), ((6.0, 0.3), (6.0, 0.3)), 0.9)
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    centred = (X - X.mean(axis=0)) @ vectors[:, ::-1]
    titles = ("data", "semi-whitened", "whitened")
    for axes, power, title in zip(panels(canvas, 3, 3), (0, -0.25, -0.5), titles, strict=True):
        Z = centred * values[::-1] ** power
        Z /= Z.std(axis=0)[0]
        points(axes, Z, y)
        level(axes, line_of(SVM(C=1, kernel="linear").fit(Z, y)))
        axes.set(title=title, xlim=(-3, 3), ylim=(-3, 3))


def radius(canvas: Figure) -> None:
    """The weight of a feature with a large range for several penalties on the radius."""
    X, y = strips()
    axes = canvas.subplots()
    points(axes, X, y)
    for lam, dashes in zip((0.0, 0.1, 1.0), DASHES, strict=False):
        machine = RSVMPlus(C=10, lam=lam, kernel="linear").fit(X, y)
        w = line_of(machine)[0]
        level(axes, line_of(machine), ls=dashes, label=f"λ = {lam:g}: w = ({w[0]:.2f}, {w[1]:.2f})")
    legend(axes)


def six(canvas: Figure) -> None:
    """Decision regions of six machines with the same kernel, for classes of different spread."""
    X, y = classes(((-1.6, 0), (1.2, 0.2)), ((0.5, 1.3), (1.1, 0.6)), 0.3, n=60)
    machines = {
        "SVM\nlarge margin": SVM(C=10, gamma=0.3),
        "RMM\nbounded decisions": RMM(C=10, gamma=0.3, B_fraction=0.1),
        "MMRM\ngap by distance of means": MMRM(C=10, gamma=0.3),
        "M4\nmargin by spread of a class": M4(C=10, gamma=0.3, ridge=1e-2),
        "MAMC\nlarge average margin": MAMC(gamma=0.3),
        "LS-SVM\nsmall squared residuals": LSSVM(C=10, gamma=0.3),
    }
    for axes, (name, machine) in zip(panels(canvas, 6, 3, narrow=3), machines.items(), strict=True):
        points(axes, X, y)
        contour(axes, machine.fit(X, y), "-", name)
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        grid = np.meshgrid(np.linspace(left, right, 160), np.linspace(low, high, 160))
        values = machine.decision_function(np.column_stack([part.ravel() for part in grid]))
        regions = values.reshape(grid[0].shape) > 0
        axes.contourf(*grid, regions, levels=[-0.5, 0.5, 1.5], colors=[ORANGE, BLUE], alpha=0.12)
        wide = canvas.get_figwidth() >= WIDTH
        axes.set_title(name if wide else name.partition("\n")[0], fontsize=10)


#: Functions that draw the pictures, which have the names of the functions.
PICTURES = (six, svm, rmm, rmm_scaling, sigma_svm, ldm, mmrm, minimax, guarantee, mamc)
PICTURES += (least_squares, fsvm, radius)


def draw_all(app: Sphinx) -> None:
    """Write the pictures into ``docs/pictures``."""
    folder = Path(app.srcdir) / "pictures"
    folder.mkdir(exist_ok=True)
    with rc_context(STYLE):
        for draw, width in itertools.product(PICTURES, (WIDTH, NARROW)):
            canvas = Figure(figsize=(width, HEIGHT), layout="constrained")
            draw(canvas)
            suffix = "" if width == WIDTH else "_narrow"
            file = folder / f"{draw.__name__}{suffix}.svg"
            metadata = {"Date": None, "Title": draw.__doc__}
            canvas.savefig(file, bbox_inches="tight", metadata=metadata)


class NarrowPictures(SphinxTransform):
    """Show narrow pictures instead of wide pictures on phones."""

    default_priority = 100

    def apply(self, **_: Any) -> None:
        """Add the narrow pictures before images are collected."""
        for image in list(self.document.findall(nodes.image)):
            path = Path(image["uri"])
            if path.parent.name == "pictures":
                narrow = image.deepcopy()
                narrow["uri"] = str(path.with_stem(f"{path.stem}_narrow"))
                image["classes"].append("wide")
                narrow["classes"].append("narrow")
                image.parent.insert(image.parent.index(image) + 1, narrow)


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw the pictures before the pages are read."""
    app.connect("builder-inited", draw_all)
    app.add_transform(NarrowPictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
