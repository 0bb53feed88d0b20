"""The dual of the SVM and of related machines, as one problem class with one set of solvers.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b

with a convex, piecewise linear loss for each training row. The dual has one variable u_i per row.
The cost phi_i of u_i is the conjugate of the loss. `PiecewiseQP` contains the Gram matrix K and the
knots and slopes of the costs:

    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

The machines differ in the loss, and therefore in the pieces of phi_i:

=====================  =====================================  ================================
machine                loss of a row with label y             pieces of phi
=====================  =====================================  ================================
SVM                    ``C max(0, 1 - y f)``                  ``0 .. yC`` with slope -y
RMM                    SVM's loss, infinite if |f| > B        SVM's piece, and two unbounded
                                                              pieces with slopes -B, B
relaxed RMM            SVM's loss plus c max(0, |f| - t)      SVM's piece, and two pieces of
                                                              length c with slopes -t, t
SVM of the M4          SVM's loss, with K scaled              ``0 .. yC`` with slope -y
=====================  =====================================  ================================

`solve_smo` solves each problem by pairwise steps and Newton steps, on the stored Gram matrix or on
working sets of rows. `solve_to_gap` tightens the tolerance of `solve_smo`
until the duality gap is small. Problems with rows in place of a Gram matrix are solved by
`mmbench.solvers.features`. The reference solvers are libsvm (`mmbench.solvers.libsvm_`) for the SVM
and Clarabel on the printed dual (`mmbench.machines.rmm`) for the RMM.
"""
