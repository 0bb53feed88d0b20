"""
Boundaries of all machines on the toy sets of the M4 paper
==========================================================

The M4 paper draws four pairs of classes in the plane (its section V-A). Their distributions are
known, and so is the best possible boundary, the boundary of the Bayes classifier (dotted).
Parameters are fixed, not tuned: the pictures show what each machine optimises, not which machine is
the most accurate.
"""

# %%
# One draw of each set; the data sets ``toy_1`` to ``toy_4`` of mmbench have a hundred draws each.

import matplotlib.pyplot as plt
import numpy as np

from mmbench.datasets.generators import bayes, generate

SETS = ("toy_1", "toy_2", "toy_3", "toy_4")
#: Colour and dashes of the lines, which also differ in a grey print.
STYLES = (
    ("black", "-"),
    ("#00805a", "--"),
    ("#7a5fb5", "-."),
    ("#a0522d", (0, (6, 1, 1, 1, 1, 1))),
)
draws = {}
for name in SETS:
    parsed = generate(name, draws=1)
    ((train, test),) = parsed.predefined
    draws[name] = parsed.X, parsed.y, train, test


def draw(machines, title):
    """Draw the boundaries of some machines on the four sets, and print test accuracies."""
    figure, panels = plt.subplots(2, 2, figsize=(8, 7.4), layout="constrained")
    print(f"{'test accuracy (%)':18}", *(f"{name:>7}" for name in SETS))
    for axes, name in zip(panels.flat, SETS, strict=True):
        X, y, train, _ = draws[name]
        for label, colour, marker in ((1, "#D55E00", "s"), (2, "#0072B2", "o")):
            rows = X[train][y[train] == label]
            axes.scatter(*rows.T, s=10, c=colour, marker=marker, alpha=0.5, lw=0)
        axes.set(title=name.replace("_", " set "), xticks=[], yticks=[], aspect="equal")
        axes.margins(0.02)
        contour(axes, lambda points, name=name: bayes(name, points), ":", "#777777", "Bayes")
    for (label, machine), (colour, dashes) in zip(machines.items(), STYLES, strict=False):
        scores = []
        for axes, name in zip(panels.flat, SETS, strict=True):
            X, y, train, test = draws[name]
            machine.fit(X[train], y[train])
            contour(axes, machine.decision_function, dashes, colour, label)
            scores.append(100 * machine.score(X[test], y[test]))
        print(f"{label:18}", *(f"{score:7.1f}" for score in scores))
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(f"Boundaries of {title}")


def contour(axes, decide, dashes, colour, label):
    """Draw where a decision function is zero."""
    across = np.linspace(*axes.get_xlim(), 150)
    up = np.linspace(*axes.get_ylim(), 150)
    grid = np.column_stack([part.ravel() for part in np.meshgrid(across, up)])
    values = decide(grid).reshape(150, 150)
    axes.contour(across, up, values, [0.0], colors=colour, linestyles=[dashes], linewidths=1.5)
    axes.plot([], [], color=colour, ls=dashes, lw=1.5, label=label)


# %%
# Margins
# -------
# The SVM finds the widest gap. The RMM also bounds all decisions, the Σ-SVM penalises their spread,
# and the MMRM maximises the gap relative to the distance of the class means.

from mmbench import MMRM, RMM, SVM, SigmaSVM

linear = {"kernel": "linear"}
draw(
    {
        "SVM": SVM(C=1, **linear),
        "RMM": RMM(C=1, B_fraction=0.25, **linear),
        "Σ-SVM": SigmaSVM(C=1, D=0.9, **linear),
        "MMRM": MMRM(C=1, **linear),
    },
    "machines by margins",
)

# %%
# Spread of each class
# --------------------
# These machines describe a class by its mean and covariance; the M4 also uses the rows near the
# boundary.

from mmbench import LDA, M4, MEMPM, MPM

draw(
    {
        "LDA": LDA(**linear),
        "MPM": MPM(**linear),
        "MEMPM": MEMPM(**linear),
        "M4": M4(C=1, **linear),
    },
    "machines by the spread of each class",
)

# %%
# Averages and squares
# --------------------
# These machines have closed forms or linear systems; here with an RBF kernel.

from mmbench import KLDA, LSSVM, MAMC

rbf = {"kernel": "rbf", "gamma": 0.1}
draw(
    {
        "MAMC_b": MAMC(bias="optimized", **rbf),
        "LS-SVM": LSSVM(C=1, **rbf),
        "KLDA": KLDA(eta=0.1, **rbf),
    },
    "machines by averages and squared residuals, RBF kernel",
)

# %%
# Transformations and weights of features
# ---------------------------------------

from mmbench import FSVM, MRSVM, RSVMMuPlus, RSVMPlus

draw(
    {
        "F-SVM": FSVM(C=1, **linear),
        "R-SVM+": RSVMPlus(C=1, lam=0.1, **linear),
        "R-SVMμ+": RSVMMuPlus(C=1, lam=0.1, **linear),
        "MR-SVM": MRSVM(C=1, **linear),
    },
    "machines by margin against radius",
)
