"""
The effect of the RMM's parameter B
===================================

The relative margin machine is an SVM whose decisions on the training rows stay within [-B, B].
Here B decreases from a value that has no effect almost to 1.
"""

# %%
# The data
# --------
# Handwritten eights against all other digits, with a polynomial kernel, as in the RMM paper's
# table 1; a third of the rows are training rows.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from mmbench import RMM, SVM

X, y = load_digits(return_X_y=True)
X, y = normalize(X), (y == 8).astype(int)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=1 / 3, stratify=y, random_state=0
)
settings = {"C": 1000, "kernel": "poly", "degree": 2}
svm = SVM(**settings).fit(X_train, y_train)
theta = abs(svm.decision_function(X_train)).max()
print(f"the SVM's largest decision on the training rows: theta = {theta:.2f}")

# %%
# From theta down to 1
# --------------------
# ``B_fraction`` places B between 1 and theta. At 1 the RMM is the SVM.

fractions = (1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)
machines = [RMM(B_fraction=share, **settings).fit(X_train, y_train) for share in fractions]
print("   B  largest |f|  objective  support vectors  test errors")
errors = []
for machine in machines:
    (fit,) = machine.fits_
    largest = abs(machine.decision_function(X_train)).max()
    errors.append(int((machine.predict(X_test) != y_test).sum()))
    print(
        f"{fit.extra['B']:4.2f}  {largest:11.2f}  {fit.objective:9.1f}  {fit.n_support:15}  "
        f"{errors[-1]:11}"
    )

# %%
# The smaller B, the fewer decisions are far from zero. The objective can only grow, because the
# constraint becomes tighter. Rows at the bound become support vectors, in addition to the rows at
# the margin.

figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True, layout="constrained")
for axes, k in zip(panels, (0, 4, 8), strict=True):
    f = machines[k].decision_function(X_train)
    bins = np.linspace(-theta, theta, 41)
    axes.hist([f[y_train == 0], f[y_train == 1]], bins, stacked=True, color=["#D55E00", "#0072B2"])
    bound = machines[k].fits_[0].extra["B"]
    for value in (-bound, bound):
        axes.axvline(value, color="black", ls="--", lw=1)
    axes.set(title=f"B = {bound:.2f}", xlabel="decision on training rows", yscale="log")
panels[0].set_ylabel("rows")
figure.suptitle("Decisions of the RMM for three values of B")

# %%
# Test errors against B. The best B may lie between the ends. In an experiment, ``grid: {B: auto}``
# selects B by cross-validation on the training rows; one point of this grid is the SVM.

figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
axes.plot([machine.fits_[0].extra["B"] for machine in machines], errors, "o-", color="#0072B2")
axes.axvline(theta, color="black", ls=":", lw=1)
axes.annotate("SVM", (theta, max(errors)), xytext=(-28, 0), textcoords="offset points")
axes.set(xlabel="B", ylabel=f"errors on {len(y_test)} test rows", ylim=(0, None))
axes.set_title("Test errors of the RMM by B")
