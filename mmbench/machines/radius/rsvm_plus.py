"""R-SVM+: an SVM that also pays for the radius of the data as its own weights scale them.

    min over w, b, xi, r   1/2 ||w||^2 + lambda r + C sum_i xi_i
    subject to             y_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0,
                           1/2 sum_k w_k^2 (x_ik - x_jk)^2 <= r   for all pairs i, j             (9)

The price of w_k^2 so grows with how far feature k lies apart in the pairs that are furthest. With
lambda = 0 it is the SVM. Few of the n (n - 1)/2 pairs hold with equality; given their multipliers
theta it is an SVM with the quadratic form ``sum_k (1 + sum theta_ij (x_ik - x_jk)^2) w_k^2``.

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
from mmbench.machines.radius.newton import solve_newton
from mmbench.machines.radius.problem import RadiusPoint, RadiusProblem

#: The interior point works on features: with so many rows to one it is the faster route.
MANY_ROWS = 4


class RSVMPlus(PairwiseRadiusMachine):
    """R-SVM+, one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Price of one unit of slack.
    lam : float, default=1.0
        The paper's lambda, the price of the radius; 0 is the SVM.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``. Other than "linear" it makes
        the features: feature k of x is ``k(x_k, x)``, one a training row.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "interior", "newton", "clarabel", "reference"}, default="auto"
        "interior": an interior point for few pairs, to which the most violated are added. "newton":
        SVMs and Newton steps in theta, the same. "auto" takes "interior" for many rows, "newton"
        for many features. "clarabel" adds pairs between cone programs of a general solver,
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
        The certificate of each pair of classes. `objective` is (9) at the returned w and b with the
        r that all pairs of rows satisfy, `bound` a dual value. `max_violation` is that of the dual,
        or by how much a pair without a multiplier exceeds those with one. `extra` has "r",
        "pairs" (listed) and "rounds"; `iterations` counts SVMs, or those of the cone solver.
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
    >>> from mmbench.machines import RSVMPlus
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = RSVMPlus(C=10, lam=0.1).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.97
    >>> [str(fit.status) for fit in machine.fits_]
    ['optimal', 'optimal', 'optimal']
    """

    simplex = False
    parameters: ClassVar[dict[str, Param]] = PairwiseRadiusMachine.parameters | {
        "solver": choice("auto", "interior", "newton", "clarabel", "reference")
    }

    def _minimise(self, problem: RadiusProblem, start: RadiusPoint | None) -> RadiusPoint:
        if self.solver == "reference":
            return solve_all_pairs(problem, self.tol)
        if self.solver == "clarabel":
            return solve_generating(problem, self.tol, start, solve=solve_listed)
        n, k = problem.rows.shape
        if self.solver == "newton" or (self.solver == "auto" and n < MANY_ROWS * k):
            return solve_newton(problem, self.tol, start)
        return solve_generating(problem, self.tol, start)
