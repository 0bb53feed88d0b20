"""The dual problem of the SVM and of related machines, and its solvers.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b

The loss of each training row is a convex, piecewise linear function of the decision f(x_i). The
dual problem has one dual variable u_i per training row. The cost phi_i of u_i is the conjugate of
the loss. The class `PiecewiseQP` stores the Gram matrix K and the knots and slopes of the costs.
The dual problem is

    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

The machines differ in the loss, and therefore in the linear pieces of the cost phi_i:

=====================  =====================================  ================================
machine                loss of a row with label y             pieces of phi
=====================  =====================================  ================================
SVM                    ``C max(0, 1 - y f)``                  ``0 .. yC`` with slope -y
RMM                    SVM's loss, infinite if |f| > B        SVM's piece, and two unbounded
                                                              pieces with slopes -B, B
relaxed RMM            SVM's loss plus c max(0, |f| - t)      SVM's piece, and two pieces of
                                                              length c with slopes -t, t
SVM of the M4          SVM's loss of f + o for a constant o   ``0 .. yC`` with slope o - y
=====================  =====================================  ================================

C is the penalty on the slack, and B is the RMM's bound on absolute decisions. In the relaxed RMM, c
is the penalty on absolute decisions above the threshold t.

`solve_smo` changes pairs of variables (SMO), and takes Newton steps. Both kinds of steps change the
variables of all rows, or of a working set of rows. `solve_to_gap` decreases the tolerance of
`solve_smo` until the duality gap is small. Problems with a linear kernel and few features are
solved without a Gram matrix by `mmbench.solvers.features`. The reference solver, with which
solutions of the SVM are compared, is libsvm (`mmbench.solvers.libsvm_`). The reference solver of
the RMM is Clarabel, which solves the dual in the variables of the RMM paper
(`mmbench.machines.rmm`).
"""
