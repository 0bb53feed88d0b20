"""
One program, eight machines
===========================

Section 2 of the MMRM paper derives several machines from one problem: minimise the dispersion
within the classes, relative to the dispersion between the classes::

    min over w   d_w(w) / d_b(w)     (1)

A machine is a choice of both dispersions. This script writes (1) as a single cone program, and
compares its solutions with the machines of mmbench.
"""

# %%
# The classes have the rows x_i and y_j, the means xm and ym, and the covariances Sx and Sy. Between
# the classes, the paper has two dispersions: the distance of the projected means (3), and the gap
# between the projected classes (7)::
#
#     d_b^c(w) = w'(xm - ym),     d_b^m(w) = min_i w'x_i - max_j w'y_j
#
# If w is multiplied by a positive number, the ratio (1) does not change. Therefore d_b(w) may be
# fixed at 2. The gap is at least 2 if and only if some b gives all rows a margin of at least 1. The
# dispersions within the classes are sums of norms ``||R_j w||``, plus a linear function ``l'w``::
#
#     min over w, b   l'w + sum_j ||R_j w||
#     subject to      w'(xm - ym) = 2,   or   y_i (w'z_i + b) >= 1 for all rows z_i
#                     -B <= w'z_i + b <= B     (optional)

import numpy as np
from scipy import sparse

from mmbench.solvers.cones import ConeProgram, solve_socp


def min_max_machine(X, y, between, roots=(), linear=0.0, B=None):
    """Return the w of problem (1), for labels -1 and 1.

    The dispersion between the classes is "means" or "margin". The dispersion within the classes is
    ``linear'w`` plus the sum of ``||root w||`` over `roots`.
    """
    (n, d), m = X.shape, len(roots)
    decisions = np.column_stack([X, np.ones(n), np.zeros((n, m))])  # of the variables (w, b, norms)
    rows, sides, equation = np.zeros((0, d + 1 + m)), np.zeros(0), np.zeros((0, d + 1 + m))
    if between == "means":
        means = X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
        equation = np.append(means, np.zeros(1 + m))[None]
    else:
        rows, sides = y[:, None] * decisions, np.ones(n)
    if B is not None:
        rows = np.vstack([rows, decisions, -decisions])
        sides = np.append(sides, np.full(2 * n, -B))
    cones = np.zeros((m, 1 + d, d + 1 + m))  # norm_j >= ||root_j w||
    for j, root in enumerate(roots):
        cones[j, 0, d + 1 + j], cones[j, 1:, :d] = 1.0, root
    cost = np.concatenate([linear + np.zeros(d), [0.0], np.ones(m)])
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(equation),
        b=np.full(len(equation), 2.0),
        G=sparse.csc_array(-np.vstack([rows, cones.reshape(-1, d + 1 + m)])),
        h=np.append(-sides, np.zeros(m * (1 + d))),
        n_linear=len(sides),
        cones=(1 + d,) * m,
    )
    return solve_socp(program, tol=1e-12).x[:d]


# %%
# Within the classes, the paper has these dispersions:
#
# - LDA (2): ``d_w^v = sqrt(w'Sx w + w'Sy w)``, one norm.
# - MPM and M4 (5): ``d_w^s = sqrt(w'Sx w) + sqrt(w'Sy w)``, two norms.
# - SVM (6): ``d_w^n = ||w|| / sqrt(2)``, a norm that does not depend on the data.
# - MMRM (16): ``d_w^m = d_b^c - d_b^m``. With the gap fixed at 2, this is ``w'(xm - ym) - 2``.
# - RMM (14): ``max_ij (w'x_i - w'y_j) + D/2 w'w``. With this dispersion, (1) is not the RMM: as w
#   tends to zero in a fixed direction, the term with D vanishes from the ratio. Moreover, if the
#   gap is fixed at 2, the first term is the sum of the largest decisions of both classes, but the
#   RMM bounds each of them. The RMM (13) has the dispersion d_w^n and the bound B.
#
# Two more combinations are known machines: d_w^v with the gap is the variant (16)-(18) of the M4,
# and d_w^n with the means is the direction of the MAMC for classes of equal size.


def largest_decision(X, y, roots):
    """Return the largest absolute decision at a gap of 2, with b in the middle of the gap."""
    f = X @ min_max_machine(X, y, "margin", roots)
    return np.abs(f - 0.5 * (f[y > 0].min() + f[y < 0].max())).max()


def machines_of(X, y):
    """Return for each machine the arguments of `min_max_machine`, and the machine of mmbench."""
    Sx, Sy = (np.cov(X[y == label].T, bias=True) for label in (1, -1))
    x, s, total = (np.linalg.cholesky(S).T for S in (Sx, Sy, Sx + Sy))
    norm, means = np.eye(X.shape[1]), X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)
    exact = {"kernel": "linear", "tol": 1e-10}
    # the bound of the RMM is the mean of the largest decisions of SVM and M4, so that it can be met
    largest = [largest_decision(X, y, roots) for roots in ([norm], [x, s])]
    B = 0.5 * (largest[0] + min(largest))
    return {
        "LDA": (("means", [total]), LDA(ridge=0, **exact)),
        "MPM": (("means", [x, s]), MPM(ridge=0, **exact)),
        "MAMC": (("means", [norm]), MAMC(kernel="linear", bias="optimized")),
        "SVM": (("margin", [norm]), SVM(C=1e4, **exact)),
        "M4": (("margin", [x, s]), M4(margin="hard", ridge=0, **exact)),
        "M4, variant": (("margin", [total]), M4(margin="hard", variant="lda", ridge=0, **exact)),
        "RMM": (("margin", [norm], 0.0, B), RMM(C=1e4, B=B, **exact)),
        "MMRM": (("margin", [], means), MMRM(C=1e4, **exact)),
    }


# %%
# Two classes that can be separated, of different spreads, as in the paper:

from mmbench import LDA, M4, MAMC, MMRM, MPM, RMM, SVM

random = np.random.default_rng(0)
turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
X = random.normal(size=(80, 2)) * np.repeat([[1.0, 0.3], [0.5, 0.5]], 40, axis=0) @ turn.T
y = np.repeat([-1, 1], 40)
X[y > 0] += [2.0, -1.6]

# %%
# The directions of w agree:


def direction(w):
    """Return w divided by its length."""
    return w / np.linalg.norm(w)


def differences_of(X, y):
    """Return the largest difference between the unit vectors w of both programs, by machine."""
    return {
        name: np.abs(
            direction(min_max_machine(X, y, *choice)) - direction(machine.fit(X, y).coef_[0])
        ).max()
        for name, (choice, machine) in machines_of(X, y).items()
    }


for name, difference in differences_of(X, y).items():
    print(f"{name:>12}: {difference:.0e}")

# %%
# The decision boundaries of the machines, each with the intercept of the machine:

import matplotlib.pyplot as plt

figure, panels = plt.subplots(2, 4, figsize=(10, 5), layout="constrained")
for axes, (name, (_, machine)) in zip(panels.ravel(), machines_of(X, y).items(), strict=True):
    machine.fit(X, y)
    w, b = machine.coef_[0], machine.intercept_[0]
    for label, colour, marker in ((-1, "#D55E00", "s"), (1, "#0072B2", "o")):
        axes.scatter(*X[y == label].T, s=8, c=colour, marker=marker, alpha=0.6, lw=0)
    axes.axline(-b * w / (w @ w), slope=-w[0] / w[1], color="black", lw=1.2)
    (left, low), (right, high) = X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
    axes.set(title=name, aspect="equal", xlim=(left, right), ylim=(low, high), xticks=[], yticks=[])

# %%
# For classes that overlap, slacks with a penalty C are added to the margins: the MMRM (28) and the
# soft M4 are this program with ``C sum_i xi_i``. The SVM and the RMM have the squared norm instead
# of the norm. This changes the scale of C, but not the set of solutions.
