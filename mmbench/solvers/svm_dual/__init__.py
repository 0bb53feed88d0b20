"""The dual problem of the SVM and of related machines, and its solvers.

    min over w, b   1/2 ||w||^2 + sum_i loss_i(f(x_i)),     f(x) = w'phi(x) + b
    min over u      1/2 u'Ku + sum_i phi_i(u_i)   subject to   sum_i u_i = 0

The loss of a row is convex and piecewise linear in f(x_i); the cost phi_i of its dual variable u_i
is the conjugate. `PiecewiseQP` holds K, and the knots and slopes of the costs:

    machine       loss of a row with label y             pieces of phi
    SVM           ``C max(0, 1 - y f)``                  ``0 .. yC`` with slope -y
    RMM           SVM's, infinite if |f| > B             and two unbounded, slopes -B and B
    relaxed RMM   SVM's plus ``c max(0, |f| - t)``       and two of length c, slopes -t and t
    SVM of the M4 SVM's at f + o, for a constant o       ``0 .. yC`` with slope o - y

References for comparison: libsvm for the SVM, and Clarabel in the variables of (8) for the RMM.
"""
