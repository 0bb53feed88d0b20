"""MR-SVM: weights of the features, learned with the hyperplane against a sum of their radii.

    min over w, b, xi, mu   1/2 sum_k w_k^2 / mu_k + C sum_i xi_i^2 / sum_k mu_k R_k^2
    subject to              y_i (w'x_i + b) >= 1 - xi_i,  sum_k mu_k = 1,  mu >= 0               (3)

R_k is the radius of feature k, half its range. The slack is squared, and cheap where the weighted
radius is large. The equation number is that of the 2013 paper, which quotes this machine.

References
----------
H. Do, A. Kalousis, M. Hilario: Feature weighting using margin and radius based error bound
optimization in SVMs. ECML PKDD 2009 (there called R-SVM).
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from mmbench.errors import Status
from mmbench.machines.problem import Fit
from mmbench.machines.radius.base import Answer, Features, RadiusMachine
from mmbench.machines.radius.feature_radius import solve_feature_radius


class MRSVM(RadiusMachine):
    """MR-SVM, one-vs-one.

    Parameters
    ----------
    C : float, default=1.0
        Price of the squared slack, relative to the weighted radius.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``. Other than "linear" it makes
        the features: feature k of x is ``k(x_k, x)``, one a training row.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "reference"}, default="auto"
        Both are one cone program (Clarabel).
    tol : float, default=1e-6
        Relative gap.
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
        The certificate of each pair of classes. `objective` is (3) at the returned w, b and mu with
        the smallest slacks, `bound` a dual value; `extra` has "radius", ``sum_k mu_k R_k^2``.
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
    >>> from mmbench.machines import MRSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MRSVM(C=10).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.99
    """

    def __init__(
        self,
        C=1.0,
        kernel="linear",
        gamma="scale",
        gamma_scaling="none",
        degree=3,
        solver="auto",
        tol=1e-6,
        ties="lowest",
        random_state=None,
        n_jobs=None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _solve(self, features: Features, y: NDArray, warm: Any) -> Answer:
        found = solve_feature_radius(features.rows, y, self.C, self.tol)
        square = features.unit**2  # w and R are in units of the rows: C stays, the value does not
        closed = found.value - found.bound <= self.tol * abs(found.value)
        fit = Fit(
            Status.OPTIMAL if closed else Status.INACCURATE,
            objective=found.value / square,
            bound=found.bound / square,
            max_violation=abs(float(found.u.sum())) / square,
            iterations=found.iterations,
            seconds=0.0,
            n_support=0,
            extra={"radius": found.radius * square},
        )
        return Answer(found.w, found.b, found.u, fit)
