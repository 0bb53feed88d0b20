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

R-SVM_mu+: weights of the features, learned with the hyperplane for a small radius.

    min over w, b, xi, mu, r   1/2 sum_k w_k^2 / mu_k + lambda r + C sum_i xi_i
    subject to                 y_i (w'x_i + b) >= 1 - xi_i,  xi_i >= 0,  sum_k mu_k = 1,  mu >= 0,
                               1/2 sum_k mu_k (x_ik - x_jk)^2 <= r   for all pairs i, j          (7)

and ``f(x) = w'x + b``: w contains the weights already. With lambda = 0 the best mu is
``|w_k| / ||w||_1``, which leaves ``1/2 ||w||_1^2``: few features have a weight. With weights s_i of
the rows the penalty on xi_i is ``C s_i`` in (7).

References
----------
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.

MR-SVM: weights of the features, learned with the hyperplane against a sum of their radii.

    min over w, b, xi, mu   1/2 sum_k w_k^2 / mu_k + C sum_i xi_i^2 / sum_k mu_k R_k^2
    subject to              y_i (w'x_i + b) >= 1 - xi_i,  sum_k mu_k = 1,  mu >= 0               (3)

R_k is the radius of feature k, half its range. The slack is squared, and cheap where the weighted
radius is large. The equation number is that of the 2013 paper, which quotes this machine.

Let ``v = sum_i y_i a_i x_i`` for any ``a >= 0`` with ``sum_i y_i a_i = 0``. Minimised over w, b, xi
and mu, the Lagrangian is ``sum a - m/2``, ``m = max_k (v_k^2 + R_k^2 ||a||^2 / (2 C))``; the best
multiple of a gives the bound ``(sum a)^2 / (2 m)``.

With weights s_i of the rows the penalty on xi_i^2 is ``C s_i`` in (3), and ``||a||^2 / C`` is
``sum_i a_i^2 / (C s_i)``. Two equal features share w_k and mu_k, so that with a kernel, whose
features stand for training rows, a row of weight 2 is a row twice as well.

References
----------
H. Do, A. Kalousis, M. Hilario: Feature weighting using margin and radius based error bound
optimization in SVMs. ECML PKDD 2009 (there called R-SVM).
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.allowance import time_is_up
from mmbench.errors import Status
from mmbench.machines.base.parameters import choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.search_space import MemoryNeeds
from mmbench.machines.base.threshold import balanced
from mmbench.machines.radius.base import Features, PairwiseRadiusMachine, RadiusMachine
from mmbench.machines.radius.problem import quotient
from mmbench.machines.radius.programs import Columns, without_zeros
from mmbench.machines.svm import tolerance
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.result import Result


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


#: Cone programs, each in units of the value of the one before.
MAX_PROGRAMS = 4


class MRSVM(RadiusMachine):
    """MR-SVM, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is (3) at the returned w, b and mu with
        the smallest slacks, `bound` a dual value; `extra` has "radius", ``sum_k mu_k R_k^2``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import MRSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MRSVM(C=10).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.99
    """

    #: What Clarabel takes for a dense matrix of features, measured.
    memory_needs: ClassVar[MemoryNeeds] = MemoryNeeds(gram_copies=25, linear_row_copies=28)

    C: float = parameter(
        1.0, positive(), "Penalty on the squared slack, relative to the weighted radius."
    )
    solver: str = parameter(
        "auto", choice("auto", "reference"), "Both are one cone program (Clarabel)."
    )
    tol: float = parameter(1e-6, positive(), "Relative duality gap.")

    def _solve(self, features: Features, y: NDArray, s: NDArray | None, warm: Any) -> BinaryModel:
        # w and R are in units of the rows: C stays, the value does not
        rows, square, tol = features.rows, features.unit**2, tolerance(self.tol, len(y))
        C = np.full(len(y), self.C) if s is None else self.C * s
        best = majority(rows, y, C)
        for _ in range(MAX_PROGRAMS):
            unit = best.value
            found = solve_in_units(rows, y, C, unit, 0.01 * tol)
            bound, iterations = max(best.bound, found.bound), best.iterations + found.iterations
            best = replace(
                found if found.value < best.value else best, bound=bound, iterations=iterations
            )
            if best.closed(tol) or best.value > 0.5 * unit or time_is_up():
                break
        return features.model(
            *(best.w, best.b, best.u),
            status=Status.OPTIMAL if best.closed(tol) else Status.INACCURATE,
            objective=best.value / square,
            bound=best.bound / square,
            max_violation=best.violation,
            iterations=best.iterations,
            extra={"radius": best.radius * square},
        )


@dataclass(frozen=True, kw_only=True)
class FeatureRadiusSolution(Result):
    """A point of (3) with the smallest slacks, and a bound; the violation is relative to sum a."""

    #: Shape (k,).
    w: NDArray
    b: float
    #: ``sum_k mu_k R_k^2``.
    radius: float
    #: Signed multipliers of the rows, of sum 1 in absolute value. Shape (n,).
    u: NDArray


def majority(rows: NDArray, y: NDArray, C: NDArray) -> FeatureRadiusSolution:
    """Return the best point with w = 0: b is the mean of y, mu all on the largest radius."""
    radius, b = float(squared_radii(rows).max()), float(np.average(y, weights=C))
    value = float(C.sum()) * (1.0 - b * b) / radius
    ones = np.zeros(len(y))
    return FeatureRadiusSolution(
        w=np.zeros(rows.shape[1]),
        b=b,
        radius=radius,
        u=ones,
        value=value,
        bound=0.0,
        violation=0.0,
        iterations=0,
        status=Status.INACCURATE,
    )


def squared_radii(rows: NDArray) -> NDArray:
    """Return R_k^2."""
    return (0.5 * np.ptp(rows, axis=0)) ** 2


def solve_in_units(
    rows: NDArray, y: NDArray, C: NDArray, unit: float, tol: float
) -> FeatureRadiusSolution:
    """Minimise (3) by a cone program whose value is in units of a given one.

    Its accuracy is absolute: the unit should be about the optimum, which a larger C may lie far
    above.
    """
    squares = squared_radii(rows)
    program, columns, length = cone_program(rows, y, C, unit)
    found = solve_socp(program, tol=float(np.clip(tol, 1e-10, 1e-5)))
    if not (np.isfinite(found.x).all() and np.isfinite(found.z).all()):
        return replace(majority(rows, y, C), iterations=found.iterations)
    w, mu = without_zeros(found.x[columns.at["w"]], found.x[columns.at["mu"]])
    w, b, radius = length * w, float(found.x[columns.at["b"]][0]), float(mu @ squares)
    slack = np.maximum(0.0, 1.0 - y * (rows @ w + b))
    a = balanced(found.z[: len(y)], y, np.inf)
    a = a / max(float(a.sum()), 1e-300)
    largest = float(((rows.T @ (y * a)) ** 2 + squares * float(np.sum(a * a / (2.0 * C)))).max())
    return FeatureRadiusSolution(
        w=w,
        b=b,
        radius=radius,
        u=y * a,
        value=0.5 * quotient(w, mu) + float(C @ slack**2) / max(radius, 1e-300),
        bound=float(a.sum()) / (2.0 * max(largest, 1e-300)),
        violation=abs(float((y * a).sum())),
        iterations=found.iterations,
        status=found.status,
    )


def cone_program(
    rows: NDArray, y: NDArray, C: NDArray, unit: float
) -> tuple[ConeProgram, Columns, float]:
    """Return (3) as a cone program, in units of its value, and the unit of w.

    In these units zeta stands for ``C sum xi^2 / sum mu R^2``, xi for ``sqrt(C / max R^2) xi``.
    """
    (n, d), length = rows.shape, float(np.sqrt(unit))
    squares = squared_radii(rows)
    radius = squares.max()
    columns = Columns(w=d, b=1, xi=n, e=d, mu=d, zeta=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["zeta"]] = 0.5, 1.0
    products, sides = columns.products(d, "mu")
    # ((zeta + sum mu R^2)/2, (zeta - sum mu R^2)/2, xi), its first entry no smaller than the others
    ends, halves = np.array([[-0.5], [-0.5]]), np.array([[-0.5], [0.5]]) * squares / radius
    both = columns.rows(2, {"zeta": ends, "mu": halves})
    slack = columns.rows(n, {"xi": -sparse.eye_array(n)})
    margins = columns.margins(length * rows, y, slack_unit=np.sqrt(unit / C * radius))
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(columns.rows(1, {"mu": np.ones((1, d))})),
        b=np.ones(1),
        G=sparse.csc_array(sparse.vstack([margins, products, both, slack])),
        h=np.concatenate([-np.ones(n), sides, np.zeros(n + 2)]),
        n_linear=n,
        cones=(3,) * d + (n + 2,),
    )
    return program, columns, length
