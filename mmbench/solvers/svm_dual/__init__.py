"""The dual of the support vector machine and of its relatives: one problem class, solved once.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b

with a convex, piecewise linear loss for each training row. The dual has one variable u_i per row.
Its cost phi_i is the conjugate of the loss; `PiecewiseQP` holds the Gram matrix K and the knots and
slopes of these costs:

    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

The machines differ in the loss, and so in the pieces:

=====================  =====================================  ================================
machine                loss of a row with label y             pieces of u
=====================  =====================================  ================================
SVM                    ``C max(0, 1 - y f)``                  ``0 .. yC`` at slope -y
RMM                    the same, and infinite for |f| > B     two more, endless, at slopes -B, B
relaxed RMM            the same, and c max(0, |f| - t)        two more, of length c, at -t, t
SVM of the M4          that of the SVM, K scaled              ``0 .. yC`` at slope -y
=====================  =====================================  ================================

`solve_smo` solves all of them by pairwise steps, with Newton steps between them (`steps`), on the
stored Gram matrix or on working sets of it (`smo`); `solve_to_gap` tightens its tolerance until the
duality gap is small. Problems with rows in place of a Gram matrix are solved by
`mmbench.solvers.features`. The references are libsvm (`mmbench.solvers.libsvm_`) for the SVM and
Clarabel on the printed dual (`mmbench.machines.rmm`) for the RMM.
"""
