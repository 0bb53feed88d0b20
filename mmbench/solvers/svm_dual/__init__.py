"""The dual of the support vector machine and of its relatives: one problem class, solved once.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b

with a convex, piecewise linear loss for each training row. In the dual every row has one variable
u_i, whose cost phi_i is the conjugate of the loss, and `PiecewiseQP` holds a Gram matrix and these
costs by their knots and slopes:

    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

What differs between the machines is the loss, and so the table of pieces:

=====================  =====================================  ================================
machine                loss of a row with label y             pieces of u
=====================  =====================================  ================================
SVM                    ``C max(0, 1 - y f)``                  ``0 .. yC`` at slope -y
RMM                    the same, and infinite for |f| > B     two more, endless, at slopes -B, B
relaxed RMM            the same, and c max(0, |f| - t)        two more, of length c, at -t, t
SVM of the M4          that of the SVM, K scaled              ``0 .. yC`` at slope -y
=====================  =====================================  ================================

`solve_smo` solves them all by pairwise steps (`pairwise`) on growing parts of the Gram matrix, with
Newton steps between them (`newton_steps`); `solve_to_gap` tightens its tolerance until the duality
gap is small. Both return a `PiecewiseSolution` with its objective, bound and violation. `settle`
(in `active_set`) solves the SVM's by guessing which multipliers are free, given a near solution.
The references to which these are held are libsvm (`mmbench.solvers.libsvm_`) for the SVM, and an
interior point for the RMM (`mmbench.machines.rmm`).
"""

from mmbench.solvers.svm_dual.active_set import settle
from mmbench.solvers.svm_dual.qp import PiecewiseQP, PiecewiseSolution
from mmbench.solvers.svm_dual.smo import solve_smo, solve_to_gap

__all__ = ["PiecewiseQP", "PiecewiseSolution", "settle", "solve_smo", "solve_to_gap"]
