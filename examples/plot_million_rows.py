"""
A million rows with a linear machine
====================================

A linear machine has one weight per feature for any number n of rows. Therefore these machines form
no n x n matrix: LDA and MPM need the mean and the covariance of each class, the LS-SVM solves a
system with one equation per feature, and the SVM is solved in the space of the features.
"""

# %%
# The data: two normal classes with different covariances in 20 dimensions, "ringnorm" of Breiman
# with the means moved apart in five of them.

import time

import matplotlib.pyplot as plt
import numpy as np

from mmbench import LDA, LSSVM, MPM, SVM

random = np.random.default_rng(0)


def draw(n):
    """Return n rows of two classes."""
    y = random.integers(0, 2, n)
    X = random.standard_normal((n, 20)) * np.where(y == 0, 2.0, 1.0)[:, None]
    X[:, :5] += np.where(y == 0, -0.8, 0.8)[:, None]
    return X, y


# %%
# Each machine is trained on 10000, 100000 and 1000000 rows, with its default parameters. The time
# is the CPU time of this process, with the data in memory. Every fit has a certificate: the gap
# between objective and bound.

X_test, y_test = draw(100_000)
sizes = (10_000, 100_000, 1_000_000)
machines = {"LDA": LDA, "MPM": MPM, "LS-SVM": LSSVM, "SVM": SVM}
seconds = {name: [] for name in machines}
for kind in machines.values():
    kind(kernel="linear").fit(X_test[:2000], y_test[:2000])  # compiles
print("   rows  machine  seconds  accuracy (%)       gap  status")
for n in sizes:
    X, y = draw(n)
    for name, kind in machines.items():
        start = time.process_time()
        machine = kind(kernel="linear").fit(X, y)
        seconds[name].append(time.process_time() - start)
        (fit,) = machine.fits_
        figures = f"{seconds[name][-1]:7.2f}  {100 * machine.score(X_test, y_test):12.2f}"
        print(f"{n:7}  {name:7}  {figures}  {abs(fit.gap):8.1e}  {fit.status}")

# %%
# In the style of mmbench's own figures:

from mmbench.tables.figures.style import STYLE, colour, looks, mark

plt.style.use(STYLE)
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
indices = looks(["lda", "mpm", "lssvm", "svm"]).values()
for k, (name, times) in zip(indices, seconds.items(), strict=True):
    axes.loglog(sizes, times, color=colour(k), marker=mark(k), label=name)
axes.set(xlabel="training rows", ylabel="CPU seconds", title="Time of four linear machines by rows")
axes.legend()

# %%
# The M4 has a constraint and a slack for every row, and takes 1 to 3 times as long as the SVM for
# 10000 to 40000 rows (see the benchmarks). With other kernels SVM and RMM train on growing parts of
# the kernel matrix, and the MAMC computes its class sums in blocks; most other machines store the
# whole matrix.
