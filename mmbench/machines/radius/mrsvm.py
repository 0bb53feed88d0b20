"""MR-SVM: an SVM with feature weights, and with squared slacks relative to the squared radius.

    min over w, b, xi, mu   1/2 sum_k w_k^2 / mu_k + C sum_i xi_i^2 / sum_k mu_k R_k^2
    subject to              y_i (w'x_i + b) >= 1 - xi_i,  sum_k mu_k = 1,  mu >= 0               (3)

(Do, Kalousis, Hilario; ECML PKDD 2009, there called R-SVM; number (3) as quoted in ICML 2013.) R_k
is half the range of feature k. For multipliers a >= 0 with ``sum_i y_i a_i = 0``, let
``v = sum_i y_i a_i x_i`` and ``m = max_k (v_k^2 + R_k^2 ||a||^2 / (2 C))``. The best multiple of a
gives the lower bound ``(sum a)^2 / (2 m)``. With row weights s_i, ``sum_i a_i^2 / (C s_i)``
replaces ``||a||^2 / C``. With a kernel, there is one feature per training row.

The cone program is solved at most four times, scaled by the best objective so far. `Fit.route` is
the solver (Clarabel or ECOS), "majority" if nothing is better than w = 0, or "equal rows". Times:
``results/reference/solvers/table.csv``.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.allowance import no_time_for, time_is_up
from mmbench.errors import Status
from mmbench.machines.base.parameters import choice, parameter, positive
from mmbench.machines.base.problem import BinaryModel
from mmbench.machines.base.threshold import balanced
from mmbench.machines.radius.listed import product_cones, without_zeros
from mmbench.machines.radius.pairs import quotient
from mmbench.machines.radius.rsvm import RadiusMachine, ScaledFeatures
from mmbench.machines.svm import tolerance
from mmbench.memory import TrainingSize
from mmbench.solvers.clarabel_ import OPERATIONS_PER_PRODUCT
from mmbench.solvers.cones import ConeProgram, solve_socp
from mmbench.solvers.result import relative_gap

#: Maximum number of cone programs per training.
MAX_PROGRAMS = 4


class MRSVM(RadiusMachine):
    """MR-SVM: SVM with feature weights and a penalty relative to the radius, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is the value of (3) at the returned w,
        b and mu with the smallest feasible slacks. `bound` is a lower bound on the optimal value.
        `extra` has the entry "radius" with the value ``sum_k mu_k R_k^2``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import MRSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MRSVM(C=10).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.99
    """

    version: ClassVar[int] = 2

    C: float = parameter(
        1.0, positive(), "Penalty on the squared slack, relative to the weighted radius."
    )
    solver: str = parameter(
        "auto", choice("auto", "reference", "ecos"), 'Clarabel ("auto", "reference") or ECOS.'
    )
    tol: float = parameter(1e-6, positive(), "Maximum relative duality gap of an optimal solution.")

    def bytes_needed(self, size: TrainingSize) -> float:
        if self._in_features(size):  # measured with Clarabel
            return size.rows(30) + size.covariances(3)
        return self._gram_bytes(size, 25)

    def _solve(self, features: ScaledFeatures, y: NDArray, s: NDArray, warm: Any) -> BinaryModel:
        # if the features are divided by `unit`, C does not change, and the objective value of (3)
        # is multiplied by `unit`^2
        rows, square, tol = features.rows, features.unit**2, tolerance(self.tol, len(y))
        C, squares = self.C * s, (0.5 * np.ptp(rows, axis=0)) ** 2  # `squares` is R_k^2.
        # The best solution with w = 0 has the weighted mean of the labels as b, and mu_k = 1 for
        # the feature k with the largest radius
        radius, b = float(squares.max()), float(np.average(y, weights=C))
        value, bound, iterations = float(C.sum()) * (1.0 - b * b) / radius, 0.0, 0
        package = "ecos" if self.solver == "ecos" else "clarabel"
        w, u, route = np.zeros(rows.shape[1]), np.zeros(len(y)), "majority"
        n, d = rows.shape
        closed = False
        for _ in range(MAX_PROGRAMS):
            if no_time_for(OPERATIONS_PER_PRODUCT * 0.5 * n * d * min(n, d)):
                break
            unit = value
            program = cone_program(rows, y, C, squares, unit)
            found = solve_socp(program, package, float(np.clip(0.01 * tol, 1e-10, 1e-5)))
            iterations += found.iterations
            if np.isfinite(found.x).all() and np.isfinite(found.z).all():
                a = balanced(found.z[: len(y)], y, np.inf)
                a = a / max(float(a.sum()), 1e-300)
                v, slackness = rows.T @ (y * a), float(np.sum(a * a / (2.0 * C)))
                largest = float((v**2 + squares * slackness).max())
                bound = max(bound, float(a.sum()) / (2.0 * max(largest, 1e-300)))
                w_k, mu = without_zeros(found.x[:d], found.x[-1 - d : -1])
                w_k, b_k = np.sqrt(unit) * w_k, float(found.x[d])
                slack, radius_k = np.maximum(0.0, 1.0 - y * (rows @ w_k + b_k)), float(mu @ squares)
                reached = 0.5 * quotient(w_k, mu) + float(C @ slack**2) / max(radius_k, 1e-300)
                if reached < value:
                    value, w, b, u, radius, route = reached, w_k, b_k, y * a, radius_k, package
            closed = relative_gap(value, bound) <= tol
            if closed or value > 0.5 * unit or time_is_up():
                break
        return features.model(
            *(w, b, u),
            status=Status.OPTIMAL if closed else Status.INACCURATE,
            objective=value / square,
            bound=bound / square,
            max_violation=abs(float(u.sum())),
            iterations=iterations,
            route=route,
            extra={"radius": radius * square},
        )


def cone_program(
    rows: NDArray, y: NDArray, C: NDArray, squares: NDArray, unit: float
) -> ConeProgram:
    """Return (3) as a cone program; the objective is divided by `unit`, w by ``sqrt(unit)``.

    Since tolerances are absolute, `unit` should be near the optimal value. The variables are w, b,
    xi (slacks times ``sqrt(C / (unit max R^2))``), e with ``e_k >= w_k^2 / mu_k``, mu, and zeta, an
    upper bound on the second term of (3) divided by `unit`.
    """
    (n, d), radius, signs = rows.shape, squares.max(), -y[:, None]
    of_e, of_mu, of_w = product_cones(d)
    slack = -sparse.diags_array(np.sqrt(unit / C * radius))
    # ((zeta + sum mu R^2)/2, (zeta - sum mu R^2)/2, xi) is in a second-order cone; all R^2 are
    # divided by their maximum
    ends, halves = np.array([[-0.5], [-0.5]]), np.array([[-0.5], [0.5]]) * squares / radius
    blocks: list[list[Any]] = [
        [signs * (np.sqrt(unit) * rows), signs, slack, None, None, None],
        [of_w, None, None, of_e, of_mu, None],
        [None, None, None, None, halves, ends],
        [None, None, -sparse.eye_array(n), None, None, None],
    ]
    cost, of_sum = np.zeros(3 * d + n + 2), np.zeros((1, 3 * d + n + 2))
    cost[d + 1 + n : 2 * d + 1 + n], cost[-1], of_sum[0, -1 - d : -1] = 0.5, 1.0, 1.0
    return ConeProgram(
        c=cost,
        A=sparse.csc_array(of_sum),
        b=np.ones(1),
        G=sparse.csc_array(sparse.block_array(blocks)),
        h=np.concatenate([-np.ones(n), np.zeros(3 * d + n + 2)]),
        n_linear=n,
        cones=(3,) * d + (n + 2,),
    )
