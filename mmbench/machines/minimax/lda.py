"""Linear discriminant analysis, as a classifier, and with kernels.

    max over w != 0   w'(xm - ym) / sqrt(w'(Sx + Sy)w),      w = (Sx + Sy)^-1 (xm - ym)

with xm and ym the means of the positive and the negative class and Sx and Sy their covariances. The
criterion leaves b open: here it puts the boundary in the middle between the means, or where the
training errors are fewest.

References
----------
K. Fukunaga: Introduction to statistical pattern recognition, 2nd edition. Academic Press, 1990.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mmbench.errors import Status
from mmbench.machines.minimax.base import (
    Answer,
    CovarianceMachine,
    constant,
    covariance_parameters,
)
from mmbench.machines.minimax.coordinates import Pencil
from mmbench.machines.minimax.mpm import direction
from mmbench.machines.parameter import Param, choice
from mmbench.machines.threshold import optimal_bias


class LDA(CovarianceMachine):
    """Linear discriminant analysis, one-vs-one.

    Parameters
    ----------
    ridge : float, default=1e-8
        Relative ridge: ``Sc + ridge tr(Sc)/d I``, with a kernel ``ridge tr(K)/n``. A kernel needs a
        larger one.
    scatter : {"mean", "sum"}, default="mean"
        Covariances with 1/n_c, or sums of squares.
    bias : {"midpoint", "optimized"}, default="midpoint"
        b in the middle between the projected means, or with the fewest training errors.
    kernel : {"linear", "rbf", "poly"}, default="linear"
        ``u'v``, ``exp(-gamma ||u - v||^2)`` or ``(1 + u'v)**degree``.
    gamma : float or "scale", default="scale"
        Width of ``rbf``; "scale" is ``1 / (n_features * X.var())``.
    gamma_scaling : {"none", "per_feature"}, default="none"
        "per_feature" divides gamma by the number of features.
    degree : int, default=3
        Degree of ``poly``.
    solver : {"auto", "reference"}, default="auto"
        A closed form, or the same criterion as a cone program by Clarabel.
    tol : float, default=1e-6
        Relative gap up to which a solution counts as optimal.
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
        One a pair. `objective` is ``sqrt(w'(Sx + Sy)w)`` at ``w'(xm - ym) = 1``, the reciprocal of
        the criterion, and `bound` its dual value. Equal class means: status ``trivial``.
    coef_ : ndarray of shape (n_pairs, n_features)
        w of each pair (``linear``).
    dual_coef_, support_, support_vectors_ : ndarray
        Expansion over the training rows (``rbf``, ``poly``).
    intercept_ : ndarray of shape (n_pairs,)
        b of each pair.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import LDA
    >>> X, y = load_iris(return_X_y=True)
    >>> round(LDA().fit(X[::2], y[::2]).score(X[1::2], y[1::2]), 2)
    0.96
    """

    parameters: ClassVar[dict[str, Param]] = covariance_parameters() | {
        "bias": choice("midpoint", "optimized"),
        "solver": choice("auto", "reference"),
    }

    def __init__(
        self,
        ridge=1e-8,
        scatter="mean",
        bias="midpoint",
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
        self.ridge = ridge
        self.scatter = scatter
        self.bias = bias
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scaling = gamma_scaling
        self.degree = degree
        self.solver = solver
        self.tol = tol
        self.ties = ties
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _answer(self, pencil: Pencil, warm: Any) -> Answer:
        if pencil.equal_means:
            return constant(pencil, Status.TRIVIAL, "the class means are equal")
        total, delta = pencil.var_x + pencil.var_y, pencil.delta
        if self.solver == "auto":
            w = delta / total / (delta @ (delta / total))
            bound, iterations = float(1.0 / np.sqrt(delta @ (delta / total))), 0
        else:
            found = direction(delta, total, np.zeros(len(total)), self.solver)
            w, bound, iterations = found.w, found.bound, found.iterations
        fit = self._fit_of(pencil, float(np.sqrt(total @ (w * w))), bound, w, iterations)
        b = -0.5 * float(w @ (pencil.mean_x + pencil.mean_y))
        if self.bias == "optimized":
            b = optimal_bias(pencil.rows @ w, pencil.y).b
        return Answer(w, b, fit)
