"""R-SVM_mu+: weights of the features, learned with the hyperplane for a small radius.

    min over w, b, xi, mu, r   1/2 sum_k w_k^2 / mu_k + lambda r + C sum_i xi_i
    subject to                 y_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0,  sum_k mu_k = 1,  mu >= 0,
                               1/2 sum_k mu_k (x_ik - x_jk)^2 <= r   for all pairs i, j          (7)

and ``f(x) = w'x + b``: w contains the weights already. With lambda = 0 the best mu is
``|w_k| / ||w||_1``, which leaves ``1/2 ||w||_1^2``: few features have a weight. With weights s_i of
the rows the penalty on xi_i is ``C s_i`` in (7).

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from typing import ClassVar

from mmbench.machines.radius.base import PairwiseRadiusMachine


class RSVMMuPlus(PairwiseRadiusMachine):
    """R-SVM_mu+, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is (7) at the returned w, b and mu with
        the r that all pairs of rows satisfy, `bound` a dual value, `max_violation` that of the
        dual. `extra` has "r", "pairs" (listed) and "rounds".

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import RSVMMuPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RSVMMuPlus(C=10, lam=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    version: ClassVar[int] = 2
    simplex = True
