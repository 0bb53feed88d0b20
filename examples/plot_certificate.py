"""
A certificate, read line by line
================================

A solver may report "optimal" and be wrong. In mmbench, every fit has numbers that show how close it
is to the optimum. They are computed from the returned solution, not taken from the solver.
"""

# %%
# An SVM on two classes of irises that overlap:

from sklearn.datasets import load_iris

from mmbench import SVM

X, y = load_iris(return_X_y=True)
X, y = X[50:], y[50:]
machine = SVM(C=10, kernel="rbf", gamma=0.5).fit(X, y)
(fit,) = machine.fits_  # one per pair of classes
for name in ("status", "objective", "bound", "gap", "max_violation", "n_support"):
    print(f"{name:>13}: {getattr(fit, name)}")

# %%
# ``objective`` is the value of the problem on the machine's page at the returned hyperplane: half
# the squared norm plus the penalty on slack. It can be computed independently. With a
# kernel, ``w = sum_i u_i phi(x_i)``, so ``||w||^2 = u'Ku``:

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

u = machine.dual_coef_[0]
K = rbf_kernel(machine.support_vectors_, gamma=0.5)
t = np.where(y == machine.classes_[1], 1, -1)
slack = np.maximum(0, 1 - t * machine.decision_function(X))
ours = u @ K @ u / 2 + 10 * slack.sum()
print(f"objective {fit.objective:.10f}, ours {ours:.10f}")

# %%
# ``bound`` is a lower bound of the optimum. For the SVM it is the dual objective at a feasible
# point: ``sum_i t_i u_i - u'Ku / 2``, where every ``t_i u_i`` lies between 0 and C and their signed
# sum is zero.

t_support = t[machine.support_]
print(f"bound {fit.bound:.10f}, ours {t_support @ u - u @ K @ u / 2:.10f}")
print(f"feasible: {(t_support * u).min():.3g} to {(t_support * u).max():.3g}, sum {u.sum():.1e}")

# %%
# The optimum lies between objective and bound. ``gap`` is their distance, relative to the larger
# magnitude. ``max_violation`` is the largest violation of a constraint,
# recomputed from the solution.

print(f"gap {fit.gap:.1e}, largest violation {fit.max_violation:.1e}, status {fit.status}")

# %%
# A status depends on the tolerance of the fit. With a loose tolerance the fit stops early, and the
# gap shows how early. By the default tolerances, the same solution is inaccurate:

from mmbench.machines.base.problem import judged

rough = SVM(C=10, kernel="rbf", gamma=0.5, tol=0.3).fit(X, y).fits_[0]
print(f"tol 0.3: objective {rough.objective:.4f}, gap {rough.gap:.1e}, status {rough.status}")
print("by the default tolerances:", judged(rough, machine.gap_tolerance, 1e-6).status)

# %%
# The tighter the tolerance, the closer objective and bound: the optimum is between the lines.

import matplotlib.pyplot as plt

tolerances = 10.0 ** -np.arange(0, 6)
fits = [SVM(C=10, kernel="rbf", gamma=0.5, tol=tol).fit(X, y).fits_[0] for tol in tolerances]
figure, axes = plt.subplots(figsize=(5, 3.2), layout="constrained")
axes.semilogx(tolerances, [fit.objective for fit in fits], "v-", color="#0072B2", label="objective")
axes.semilogx(tolerances, [fit.bound for fit in fits], "^--", color="#D55E00", label="bound")
axes.invert_xaxis()
axes.set(xlabel="tolerance of the KKT conditions", ylabel="value of the problem")
axes.set_title("Objective and lower bound by tolerance")
axes.legend(frameon=False)

# %%
# With several classes each pair has its own certificate:

X, y = load_iris(return_X_y=True)
for fit in SVM(C=10, gamma=0.5).fit(X, y).fits_:
    low, high = fit.pair
    print(f"{low} and {high}: {fit.status}, gap {fit.gap:.1e}, {fit.n_support} support vectors")
