"""R-SVM+: an SVM with a penalty on the radius of the data as its own weights scale them.

    min over w, b, xi, r   1/2 ||w||^2 + lambda r + C sum_i xi_i
    subject to             y_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0,
                           1/2 sum_k w_k^2 (x_ik - x_jk)^2 <= r   for all pairs i, j             (9)

The penalty on w_k^2 so grows with how far feature k lies apart in the pairs that are furthest. With
lambda = 0 it is the SVM. Few of the n (n - 1)/2 pairs hold with equality; given their multipliers
theta it is an SVM with the quadratic form ``sum_k (1 + sum theta_ij (x_ik - x_jk)^2) w_k^2``.

With weights s_i of the rows the penalty on xi_i is ``C s_i`` in (9). With a kernel, whose features
stand for training rows, ``w_k^2 / s_k`` is in place of w_k^2 as well: a row of weight 2 is a row
twice, among the features too.

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from mmbench.machines.radius.base import PairwiseRadiusMachine


class RSVMPlus(PairwiseRadiusMachine):
    """R-SVM+, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is (9) at the returned w and b with the
        r that all pairs of rows satisfy, `bound` a dual value, `max_violation` that of the dual.
        `extra` has "r", "pairs" (listed) and "rounds".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import RSVMPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RSVMPlus(C=10, lam=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    simplex = False
