"""R-SVM_mu+: weights of the features, learned with the hyperplane for a small radius.

    min over w, b, xi, mu, r   1/2 sum_k w_k^2 / mu_k + lambda r + C sum_i xi_i
    subject to                 y_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0,  sum_k mu_k = 1,  mu >= 0,
                               1/2 sum_k mu_k (x_ik - x_jk)^2 <= r   for all pairs i, j          (7)

and ``f(x) = w'x + b``: w contains the weights already. With lambda = 0 the best mu is
``|w_k| / ||w||_1``, which leaves ``1/2 ||w||_1^2``: few features have a weight.

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from __future__ import annotations

from typing import ClassVar

from mmbench.machines.parameter import Param, choice
from mmbench.machines.radius.base import PairwiseRadiusMachine
from mmbench.machines.radius.cone import solve_listed
from mmbench.machines.radius.generation import solve_all_pairs, solve_generating
from mmbench.machines.radius.interior import solve_interior
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem


class RSVMMuPlus(PairwiseRadiusMachine):
    """R-SVM_mu+, one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Price of one unit of slack.
    lam : float, default=1.0
        The paper's lambda, the price of the radius.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``. Other than "linear" it makes
        the features: feature k of x is ``k(x_k, x)``, one a training row.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "interior", "clarabel", "reference"}, default="auto"
        "auto" is "interior": an interior point for few pairs and few features, to which the most
        violated are added. "clarabel" does the same with cone programs of a general solver,
        "reference" lists all pairs in one.
    tol : float, default=1e-6
        Relative gap, and violation of the pairs relative to ``max(1, r)``.
    ties : {"lowest", "random"}, default="lowest"
        Which of several classes with most votes is predicted.
    random_state : int, optional
        Seed of ``ties="random"``.
    n_jobs : int, optional
        Threads over pairs of classes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is (7) at the returned w, b and mu with
        the r that all pairs of rows satisfy, `bound` a dual value. `max_violation` is that of the
        dual, or by how much a pair that was not listed exceeds those that were. `extra` has "r",
        "pairs" (listed) and "rounds".
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        w of each pair, over the training rows that make its features (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows whose feature has a non-zero w in some pair (``rbf``, ``poly``).
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

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

    simplex = True
    parameters: ClassVar[dict[str, Param]] = PairwiseRadiusMachine.parameters | {
        "solver": choice("auto", "interior", "clarabel", "reference")
    }

    def _minimise(self, problem: RadiusProblem, start: RadiusPoint | None) -> RadiusPoint:
        if self.solver == "reference":
            return solve_all_pairs(problem, self.tol)
        solve = solve_listed if self.solver == "clarabel" else solve_interior
        return solve_generating(problem, self.tol, start, solve=solve)
