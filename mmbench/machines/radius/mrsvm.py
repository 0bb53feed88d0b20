"""MR-SVM: weights of the features, learned with the hyperplane against a sum of their radii.

    min over w, b, xi, mu   1/2 sum_k w_k^2 / mu_k + C sum_i xi_i^2 / sum_k mu_k R_k^2
    subject to              y_i (w'x_i + b) >= 1 - xi_i,  sum_k mu_k = 1,  mu >= 0               (3)

R_k is the radius of feature k, half its range. The slack is squared, and cheap where the weighted
radius is large. The equation number is that of the 2013 paper, which quotes this machine.

Let ``v = sum_i y_i a_i x_i`` for any ``a >= 0`` with ``sum_i y_i a_i = 0``. Minimised over w, b, xi
and mu, the Lagrangian is ``sum a - m/2``, ``m = max_k (v_k^2 + R_k^2 ||a||^2 / (2 C))``; the best
multiple of a gives the bound ``(sum a)^2 / (2 m)``.

References
----------
H. Do, A. Kalousis, M. Hilario: Feature weighting using margin and radius based error bound
optimization in SVMs. ECML PKDD 2009 (there called R-SVM).
H. Do, A. Kalousis: Convex formulations of radius-margin based support vector machines. ICML 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mmbench.errors import Status
from mmbench.machines.hinge import balanced
from mmbench.machines.parameter import choice, parameter, positive
from mmbench.machines.problem import BinaryModel
from mmbench.machines.radius.base import Features, RadiusMachine
from mmbench.machines.radius.cone import Columns, without_zeros
from mmbench.machines.radius.problem import quotient
from mmbench.solvers.cone_program import ConeProgram, solve_socp


class MRSVM(RadiusMachine):
    """MR-SVM, one-vs-one.

    Attributes
    ----------
    fits_ : list of Fit
        The certificate of each pair of classes. `objective` is (3) at the returned w, b and mu with
        the smallest slacks, `bound` a dual value; `extra` has "radius", ``sum_k mu_k R_k^2``.
    dual_coef_ : ndarray of shape (n_pairs, n_support)
        w of each pair, over the training rows that make its features (``rbf``, ``poly``).
    support_, support_vectors_ : ndarray
        Rows whose feature has a non-zero w in some pair (``rbf``, ``poly``).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mmbench.machines import MRSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> machine = MRSVM(C=10).fit(X[::2], y[::2])
    >>> round(machine.score(X[1::2], y[1::2]), 2)
    0.99
    """

    C: float = parameter(
        1.0, positive(), "Penalty on the squared slack, relative to the weighted radius."
    )
    solver: str = parameter(
        "auto", choice("auto", "reference"), "Both are one cone program (Clarabel)."
    )
    tol: float = parameter(1e-6, positive(), "Relative duality gap.")

    def _solve(self, features: Features, y: NDArray, warm: Any) -> BinaryModel:
        rows, square = features.rows, features.unit**2
        squares = (0.5 * np.ptp(rows, axis=0)) ** 2
        program, columns = cone_program(rows, y, self.C, squares)
        found = solve_socp(program, tol=float(np.clip(0.01 * self.tol, 1e-10, 1e-5)))
        w, mu = without_zeros(found.x[columns.at["w"]], found.x[columns.at["mu"]])
        b = float(found.x[columns.at["b"]][0])
        slack = np.maximum(0.0, 1.0 - y * (rows @ w + b))
        radius = float(mu @ squares)
        a = balanced(found.z[: len(y)], y, np.inf)
        largest = float(((rows.T @ (y * a)) ** 2 + squares * (a @ a) / (2.0 * self.C)).max())
        # w and R are in units of the rows: C stays, the value does not
        value = 0.5 * quotient(w, mu) + self.C * float(slack @ slack) / radius
        bound = float(a.sum()) ** 2 / (2.0 * max(largest, 1e-300))
        return features.model(
            *(w, b, y * a),
            status=Status.OPTIMAL if value - bound <= self.tol * value else Status.INACCURATE,
            objective=value / square,
            bound=bound / square,
            max_violation=abs(float((y * a).sum())) / square,
            iterations=found.iterations,
            extra={"radius": radius * square},
        )


def cone_program(
    rows: NDArray, y: NDArray, C: float, squares: NDArray
) -> tuple[ConeProgram, Columns]:
    """Return (3) as a cone program; zeta stands for ``sum xi^2 / sum mu R^2``."""
    n, d = rows.shape
    columns = Columns(w=d, b=1, xi=n, e=d, mu=d, zeta=1)
    cost = np.zeros(columns.n)
    cost[columns.at["e"]], cost[columns.at["zeta"]] = 0.5, C
    products, sides = columns.products(d, "mu")
    # ((zeta + sum mu R^2)/2, (zeta - sum mu R^2)/2, xi), its first entry no smaller than the others
    ends, halves = np.array([[-0.5], [-0.5]]), np.array([[-0.5], [0.5]]) * squares
    both = columns.rows(2, {"zeta": ends, "mu": halves})
    slack = columns.rows(n, {"xi": -sparse.eye_array(n)})
    program = ConeProgram(
        c=cost,
        A=sparse.csc_array(columns.rows(1, {"mu": np.ones((1, d))})),
        b=np.ones(1),
        G=sparse.csc_array(sparse.vstack([columns.margins(rows, y), products, both, slack])),
        h=np.concatenate([-np.ones(n), sides, np.zeros(n + 2)]),
        n_linear=n,
        cones=(3,) * d + (n + 2,),
    )
    return program, columns
