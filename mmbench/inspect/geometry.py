"""Geometric quantities with which the papers compare separating hyperplanes (docs/geometry.md).

The rows x_i (positive) and y_j (negative) are mapped to the feature space of the kernel, t_i = 1 or
-1 are the labels, and ``f(z) = w'z + b``. Means and covariances have the factor 1/n, which the MMRM
paper omits. The radius R of the enclosing ball and the Rademacher bound U_H are convex problems
over the simplex, solved to a small gap by an interior-point method of O(n^3) per iteration; for R,
only on a working set of rows far from the centre.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.errors import UserError, converted
from mmbench.inspect.hyperplanes import LINEAR, Hyperplane, dense, hyperplanes
from mmbench.kernels.matrix import PRECOMPUTED

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["dispersions", "enclosing_ball", "geometry", "margins", "rademacher_bounds"]
__all__ += ["generalization_bounds", "worst_case"]

#: Relative duality gap, and number of iterations, at which a minimisation over the simplex ends.
GAP, MAX_ITERATIONS = 1e-10, 60

#: Upper bound on the sum of ``||w||^2`` and the largest kernel value; products may overflow.
LARGEST = 1e100

#: Tolerance for a negative ``||w||^2``, relative to ``max |K_ij| (sum |a_i|)^2``.
ROUNDING = 1e-9

#: Number of rows that are added to the working set of the enclosing ball per iteration.
WORKING_ROWS = 300

#: Length of an interior-point step, relative to the longest step with ``p >= 0`` and ``z >= 0``.
STEP = 0.99


def geometry(
    machine: Any,
    X: Any,
    y: ArrayLike,
    *,
    kernel: Any = None,
    D: float = 1.0,
    U: ArrayLike | None = None,
    delta: float = 0.05,
) -> pd.DataFrame:
    """Return the geometric quantities of a classifier's hyperplanes, one row per pair of classes.

    Parameters
    ----------
    machine : estimator or tuple
        A fitted machine of mmbench, a fitted SVC or NuSVC, another fitted classifier with ``coef_``
        and ``intercept_``, or a pair (w, b). For a classifier with one hyperplane per class, the
        hyperplane of a pair is the difference of the hyperplanes of both classes. In a pair (w, b),
        w has the shape (n_features,) or (n_pairs, n_features).
    X : array-like of shape (n_samples, n_features)
        Rows for which the quantities are computed, usually the training rows. If the kernel is
        "precomputed", `X` is the kernel matrix.
    y : array-like of shape (n_samples,)
        Labels.
    kernel : callable or "precomputed", optional
        If `kernel` is given, `machine` is a pair (a, b) of coefficients a and intercept b, with
        ``w = sum_i a_i phi(x_i)`` over the rows of X for the feature map phi. A callable kernel
        takes two sets of rows and returns their kernel matrix.
    D : float, default=1.0
        Parameter D of the RMM paper in the quantities ``d_w_d``, ``U_G`` and ``U_H``.
    U : array-like of shape (n_rows, n_features), optional
        Rows u for the bounds ``U_G`` and ``U_H``. If the kernel is "precomputed", `U` contains row
        numbers. By default, `U` contains the rows of the pair of classes. For its generalization
        bound, the RMM paper requires rows u that are independent of the training rows. The time for
        ``U_H`` grows with the cube of the number of rows of U.
    delta : float, default=0.05
        Probability with which the bounds ``bound_F``, ``bound_G`` and ``bound_H`` may fail.

    Returns
    -------
    DataFrame
        The first columns are the labels of both classes (``negative``, ``positive``), their numbers
        of rows (``n_negative``, ``n_positive``), and the norm of w (``norm``). Further columns are
        the results of `~mmbench.inspect.geometry.margins`, `~mmbench.inspect.geometry.dispersions`,
        `~mmbench.inspect.geometry.worst_case`, `~mmbench.inspect.geometry.enclosing_ball` (``R``,
        ``R_bound``, ``Rbar``), `~mmbench.inspect.geometry.rademacher_bounds` and
        `~mmbench.inspect.geometry.generalization_bounds`. The column
        ``radius_margin`` is ``R^2 ||w||^2``, the radius-margin ratio in (6) of the F-SVM paper. If
        ``|f| = 1`` at the row nearest to the hyperplane, ``radius_margin`` equals
        ``(R / margin)^2``.

    Raises
    ------
    UserError
        If the hyperplanes of `machine` are unknown or do not match the labels, if the data are not
        finite, if a row number in `U` is out of range, or if the kernel is not positive
        semidefinite.

    Notes
    -----
    The scale of (w, b) does not change ``margin``, ``average_margin``, ``margin_variance``,
    ``spread``, ``relative_margin``, ``rho``, ``rho_m4``, ``kappa``, the worst-case accuracies, the
    radii, and the quotients ``d_w_v / d_b_c``, ``d_w_s / d_b_c``, ``d_w_n / d_b_m`` and
    ``d_w_m / d_b_m``. All other returned quantities depend on the scale of (w, b).

    Examples
    --------
    >>> import mmbench
    >>> X, y = [[0.0, 0.0], [0.0, 2.0], [3.0, 0.0], [3.0, 2.0]], [0, 0, 1, 1]
    >>> frame = mmbench.geometry(([2.0, 0.0], -3.0), X, y)
    >>> frame[["margin", "B", "d_b_m", "R"]].round(3).values.tolist()
    [[1.5, 3.0, 6.0, 1.803]]
    """
    import pandas as pd

    data, y = _validated(X, y)
    if not 0 <= D < np.inf:
        raise UserError(f"D must be a number >= 0, got {D}")
    if not 0 < delta < 1:
        raise UserError(f"delta must be a probability between 0 and 1, got {delta}")
    precomputed = PRECOMPUTED in (kernel, getattr(machine, "kernel", None))
    rows = np.arange(len(data)) if precomputed else data
    if U is not None:
        with converted("U", IndexError, TypeError, ValueError):
            U = rows[dense(U).tolist()] if precomputed else np.asarray_chkfinite(dense(U), float)
    lines = []
    for plane in hyperplanes(machine, data, rows, y, kernel):
        low, high = ((y == label) for label in plane.pair)
        if not (low.any() and high.any()):
            raise UserError(f"no rows of class {plane.pair[int(low.any())]!s} in y")
        own, t = rows[low | high], np.where(high, 1.0, -1.0)[low | high]
        others: Any = own if U is None else U
        if not len(others):
            raise UserError("U has no rows")
        for name, part in (("w", plane.support), ("U", others)):
            if len(part) and part.shape[1:] != own.shape[1:]:
                raise UserError(f"{name} has the shape {part.shape}, and X {data.shape}")
        lines.append(_quantities(plane, own, t, D, others, delta))
    return pd.DataFrame(lines)


def _validated(X: Any, y: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return the rows as a dense array of finite numbers, and the labels."""
    from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

    with converted("", TypeError, ValueError):
        data, labels = check_array(dense(X), dtype=float), column_or_1d(y)
        check_consistent_length(data, labels)
    return data, labels


def _quantities(
    plane: Hyperplane, rows: NDArray, t: NDArray, D: float, U: NDArray, delta: float
) -> dict:
    norm2 = float(plane.coef @ plane.projections(plane.support))
    norm = float(np.sqrt(max(norm2, 0.0)))
    s, same = plane.projections(rows), U is rows
    u = s if same else plane.projections(U)
    gram = plane.kernel(rows, rows)
    largest = float(np.abs(gram).max())
    if norm2 < -ROUNDING * largest * float(np.abs(plane.coef).sum()) ** 2:
        raise UserError(f"||w||^2 = {norm2:g}: the kernel is not positive semidefinite")
    if not (norm2 + largest < LARGEST and (norm2 > 0 or not s.any())):
        raise UserError(f"||w||^2 = {norm2:g}, and a kernel value is {largest:g}: scale w and X")
    cross, among = (gram, gram) if same else (plane.kernel(rows, U), plane.kernel(U, U))
    with np.errstate(divide="ignore", invalid="ignore"):  # For w = 0, margins and ratios are nan.
        # The rows are centred, since radii are inaccurate far from the origin.
        centred = rows - rows.mean(axis=0) if plane.kernel is LINEAR else None
        ball = enclosing_ball(gram if centred is None else centred @ centred.T)
        complexity = rademacher_bounds(gram.diagonal(), cross, among, norm, u, D)
        return {
            **dict(zip(("negative", "positive"), plane.pair, strict=True)),
            "n_negative": int((t < 0).sum()),
            "n_positive": int((t > 0).sum()),
            "norm": norm,
            **margins(s + plane.b, t, norm),
            **dispersions(s, t, norm, D),
            **worst_case(s + plane.b, t),
            **dict(zip(("R", "R_bound", "Rbar"), ball, strict=True)),
            "radius_margin": ball.radius**2 * norm2,
            **complexity,
            **generalization_bounds(s + plane.b, t, complexity, delta),
        }


def margins(f: NDArray, t: NDArray, norm: float) -> dict[str, float]:
    """Return the margins of the rows and the spread of their decision values.

    The margin of row i is its signed distance ``t_i f_i / ||w||`` from the hyperplane, (2) of the
    MAMC paper.

    - ``margin``: the smallest margin, negative if a row is misclassified.
    - ``average_margin``: the mean margin, which the MAMC maximises in (5).
    - ``margin_variance``: twice the variance of the margins. The LDM paper defines
      ``margin_variance`` as the mean squared difference between the margins of two rows.
    - ``spread``: the standard deviation of ``f / ||w||`` over the rows of both classes. In (3) of
      the RMM paper, ``spread`` is ``||S^(1/2) w|| / ||w||`` with the covariance matrix S of the
      rows.
    - ``B``: the largest ``|f_i|``, which is the smallest B for which (w, b) is feasible in (5) of
      the RMM paper.
    - ``relative_margin``: the smallest ``t_i f_i``, divided by B. For separable data whose nearest
      row has ``|f| = 1``, the ``relative_margin`` is 1/B.
    """
    distances, B = t * f / (norm or np.nan), float(np.abs(f).max())
    return {
        "margin": float(distances.min()),
        "average_margin": float(distances.mean()),
        "margin_variance": 2.0 * float(distances.var()),
        "spread": float((t * distances).std()),
        "B": B,
        "relative_margin": float((t * f).min() / np.float64(B)),
    }


def dispersions(s: NDArray, t: NDArray, norm: float, D: float) -> dict[str, float]:
    """Return the dispersions and ratios of the MMRM paper for projections ``s_i = w'z_i``.

    Equation numbers without the name of a paper are from the MMRM paper.

    Dispersions within classes, for the standard deviations sx and sy of ``w'x_i`` and ``w'y_j``:

    - ``d_w_v = sqrt(sx^2 + sy^2)`` of the LDA, (2);
    - ``d_w_s = sx + sy`` of MPM and M4, (5);
    - ``d_w_n = sqrt(w'w / 2)`` of the SVM, (6);
    - ``d_w_d = max_ij (w'x_i - w'y_j) + D/2 w'w`` of the RMM, (14);
    - ``d_w_m`` of the MMRM, (16) and (17): the distance ``d_b_c`` of the class means minus the gap
      ``d_b_m`` between the classes.

    Dispersions between the classes:

    - ``d_b_c = w'(mean x - mean y)``, (3);
    - ``d_b_m = min_i w'x_i - max_j w'y_j``, (7).

    Ratios of these dispersions:

    - ``rho = d_b_m / d_w_m``, the margin ratio (20);
    - ``rho_m4 = d_b_m / d_w_s``, the largest rho in (1) of the M4 paper for this w;
    - ``kappa = d_b_c / d_w_s``, the largest kappa of the MPM for this w;
    - ``alpha = kappa^2 / (1 + kappa^2)``, the worst-case accuracy of both classes, (12) of the M4
      paper.
    """
    x, y = s[t > 0], s[t < 0]
    centres, between = x.mean() - y.mean(), x.min() - y.max()
    within, sum_of_spreads = centres - between, x.std() + y.std()
    kappa = max(0.0, float(centres / sum_of_spreads))
    return {
        "d_w_v": float(np.hypot(x.std(), y.std())),
        "d_w_s": float(sum_of_spreads),
        "d_w_n": norm / np.sqrt(2.0),
        "d_w_d": float(x.max() - y.min()) + 0.5 * D * norm**2,
        "d_w_m": float(within),
        "d_b_c": float(centres),
        "d_b_m": float(between),
        "rho": float(between / within),
        "rho_m4": float(between / sum_of_spreads),
        "kappa": kappa,
        "alpha": 1.0 - 1.0 / (1.0 + kappa**2),
    }


def worst_case(f: NDArray, t: NDArray) -> dict[str, float]:
    """Return the worst-case accuracy of a decision function for each class, and their mean.

    For each class, let k be the mean of ``t_i f_i`` divided by its standard deviation, or 0 if the
    mean is negative. ``alpha_positive`` and ``alpha_negative`` are ``k^2 / (1 + k^2)``. By an
    inequality of Marshall and Olkin (theorem 1 of the MEMPM paper), ``alpha_positive`` and
    ``alpha_negative`` are lower bounds on the probability that a row of the class is classified
    correctly. The lower bounds are valid for all distributions with the mean and covariance of the
    class. Since the means and covariances are estimated, the lower bounds are estimates, too.
    ``worst_case`` is the mean of both bounds weighted by class size, ``theta alpha + (1 - theta)
    beta`` in the MEMPM paper.
    """
    bounds = {}
    for name, sign in (("alpha_positive", 1.0), ("alpha_negative", -1.0)):
        own = sign * f[t == sign]
        centre = max(0.0, float(own.mean()))
        bounds[name] = centre**2 / (centre**2 + float(own.var())) if centre else 0.0
    theta = float((t > 0).mean())
    mixed = theta * bounds["alpha_positive"] + (1.0 - theta) * bounds["alpha_negative"]
    return {**bounds, "worst_case": mixed}


class Ball(NamedTuple):
    """Radii of enclosing balls."""

    #: Upper bound on the radius of the minimum enclosing ball.
    radius: float
    #: Lower bound on the radius of the minimum enclosing ball.
    bound: float
    #: Largest distance of a row from the mean of all rows.
    from_mean: float


def enclosing_ball(gram: NDArray) -> Ball:
    """Return bounds on the radius of the minimum enclosing ball, and the radius about the mean.

    The radius R is defined in (7) of the F-SVM paper. The radius Rbar about the mean is the largest
    distance of a row from the mean of all rows. By theorem 1 of the F-SVM paper, ``R <= Rbar <= 2
    R``.

    By duality, ``R^2`` is the maximum of ``p'd - p'Kp`` over p in the simplex, where d is the
    diagonal of the kernel matrix K. Each point p in the simplex gives a lower bound on the radius
    R. An upper bound on R is the largest distance of a row from the centre ``sum_i p_i phi(x_i)``
    in feature space. Rows are added to a working set until both bounds agree.

    Examples
    --------
    >>> X = np.array([[0.0], [0.0], [3.0]])
    >>> [round(radius, 6) for radius in enclosing_ball(X @ X.T)]
    [1.5, 1.5, 2.0]
    """
    means = gram.mean(axis=0)
    K = gram - means - means[:, None] + means.mean()  # kernel matrix of the centred rows
    d = K.diagonal()
    largest = float(d.max())
    if not largest > 0:
        return Ball(0.0, 0.0, 0.0)
    rows = np.argsort(-d, kind="stable")[:WORKING_ROWS]
    while True:
        part, own = K[np.ix_(rows, rows)], d[rows]

        def dual(p: NDArray, part: NDArray = part, own: NDArray = own) -> tuple:
            inner = part @ p
            return float(p @ (inner - own)), 2.0 * inner - own, 2.0 * part

        p = minimum_on_simplex(dual, len(rows))
        inner = K[:, rows] @ p
        square = float(p @ inner[rows])
        bound, distances = float(p @ own) - square, d - 2.0 * inner + square
        outside = np.setdiff1d(np.flatnonzero(distances > bound * (1.0 + GAP)), rows)
        if not len(outside):
            return Ball(*np.sqrt([distances.max(), max(bound, 0.0), largest]).tolist())
        farthest = outside[np.argsort(-distances[outside], kind="stable")[:WORKING_ROWS]]
        rows = np.concatenate([rows, farthest])


def rademacher_bounds(
    squares: NDArray, cross: NDArray, among: NDArray, norm: float, u: NDArray, D: float
) -> dict[str, float]:
    r"""Return the bounds on the Rademacher complexities in appendix A of the RMM paper.

    The RMM paper defines three classes of functions: F (SVM), G (Sigma-SVM) and H (RMM). Each class
    of functions has a parameter E. For a given w, E is the smallest number for which the class
    contains ``f(x) = w'x``. E is ``w'w / 2`` for F, ``(w'w + D mean (w'u_i)^2) / 2`` for G, and
    ``(w'w + D max (w'u_i)^2) / 2`` for H.

    The multipliers lambda in the bound for H are ``s q`` with q in the simplex; the optimal scalar
    s has a closed form. For n rows x_i and n_u rows u_j, the bounds are

    .. math::

        U = \frac2n \sqrt{2 E T(q)}, \qquad
        T(q) = \sum_i x_i^\top \Big(I + D \sum_j q_j u_j u_j^\top\Big)^{-1} x_i .

    The bound for the class G has ``q_j = 1/n_u``, and the bound for the class H has the optimal q.
    In the bound for the class F, T(q) is replaced by the sum of the ``x_i'x_i``.

    Parameters
    ----------
    squares : ndarray of shape (n,)
        Kernel values ``k(x_i, x_i)``.
    cross, among : ndarray of shape (n, n_u) and (n_u, n_u)
        Kernel values ``k(x_i, u_j)`` and ``k(u_i, u_j)``.
    norm : float
        Norm of w.
    u : ndarray of shape (n_u,)
        Projections ``w'u_i``.
    D : float
        Weight of the squared projections ``(w'u_i)^2`` in the parameter E.
    """
    n, m = cross.shape

    def remainder(q: NDArray) -> tuple[float, NDArray, NDArray]:
        inverse = np.linalg.inv(np.eye(m) + D * q[:, None] * among)
        # x'A^-1 u and u'A^-1 u for all rows x and u, with A = I + D sum_j q_j u_j u_j'
        projected, own = cross @ inverse, among @ inverse
        value = float(squares.sum() - D * np.einsum("ij,ij,j", projected, cross, q))
        products = projected.T @ projected
        return value, -D * products.diagonal(), 2.0 * D**2 * own * products

    def bound(twice_E: float, T: float) -> float:
        return 2.0 / n * float(np.sqrt(twice_E * T))

    uniform, best = np.full(m, 1.0 / m), minimum_on_simplex(remainder, m)
    return {
        "U_F": bound(norm**2, float(squares.sum())),
        "U_G": bound(norm**2 + D * float(np.mean(u**2)), remainder(uniform)[0]),
        "U_H": bound(norm**2 + D * float(np.max(u**2)), remainder(best)[0]),
    }


def generalization_bounds(
    f: NDArray, t: NDArray, complexity: dict[str, float], delta: float
) -> dict[str, float]:
    r"""Return the bounds on the error probability in theorem 1 of appendix A of the RMM paper.

    With the slacks ``xi_i = max(0, 1 - t_i f_i)`` of n rows, the bounds are

    .. math::

        \frac1n \sum_i \xi_i + 2 U + 3 \sqrt{\frac{\ln(2/\delta)}{2n}} .

    ``mean_slack`` is the first term. ``bound_F``, ``bound_G`` and ``bound_H`` have the bounds
    ``U_F``, ``U_G`` and ``U_H`` of `rademacher_bounds` as U. The constant gamma of the theorem is
    1, since the slacks have the margin 1. Each bound is at least the fraction of misclassified
    training rows; a bound above 1 states nothing.

    The theorem is valid for a class of functions that is fixed before the rows are drawn, without
    the intercept b, and for rows u that are independent of the training rows. Here E is the
    smallest number for the given w, and f contains b. The returned numbers therefore compare
    machines, but do not guarantee an error probability.

    Parameters
    ----------
    f, t : ndarray of shape (n,)
        Decision values, and labels 1 and -1.
    complexity : dict
        Result of `rademacher_bounds`.
    delta : float
        Probability with which the inequality of the theorem may fail.
    """
    slack = float(np.maximum(0.0, 1.0 - t * f).mean())
    chance = 3.0 * float(np.sqrt(np.log(2.0 / delta) / (2.0 * len(f))))
    bounds = {f"bound_{name[-1]}": slack + 2.0 * U + chance for name, U in complexity.items()}
    return {"mean_slack": slack, **bounds}


def minimum_on_simplex(
    function: Callable[[NDArray], tuple[float, NDArray, NDArray]], n: int
) -> NDArray:
    """Return the minimiser of a convex function over ``p >= 0, sum p = 1``.

    `function` takes p and returns the value, the gradient g and the Hessian at p. The minimiser is
    computed by a primal-dual interior-point method with Mehrotra's corrector. The value at p
    exceeds the minimum by at most the duality gap ``p'g - min g``.
    """
    p, best, least = np.full(n, 1.0 / n), np.full(n, 1.0 / n), np.inf
    z, level = np.zeros(n), 0.0  # multipliers of the constraints p >= 0 and sum p = 1
    for iteration in range(MAX_ITERATIONS):
        value, slope, hessian = function(p)
        gap = float(p @ slope - slope.min())
        if gap < least:
            best, least = p, gap
        if gap <= GAP * abs(value) or not np.isfinite(gap):
            break
        if iteration == 0:
            level = float(slope.min()) - gap
            z = slope - level
        try:
            factor = cho_factor(hessian + np.diag(z / p))
        except LinAlgError:
            break
        equations = factor, cho_solve(factor, np.ones(n)), slope - level - z
        mean = float(p @ z) / n
        dp, _, dz, length = _newton_step(*equations, p, z, np.zeros(n))
        after = float((p + length * dp) @ (z + length * dz)) / n
        target = mean * (after / mean) ** 3 - dp * dz
        dp, d_level, dz, length = _newton_step(*equations, p, z, target)
        length *= STEP
        p, level, z = p + length * dp, level + length * d_level, z + length * dz
    return best / best.sum()


def _newton_step(
    factor: Any, ones: NDArray, residual: NDArray, p: NDArray, z: NDArray, target: NDArray
) -> tuple[NDArray, float, NDArray, float]:
    """Return the Newton step towards ``p_i z_i = target_i``, and the maximum step length.

    The Newton step changes the point `p`, the multiplier `level` of the constraint ``sum p = 1``,
    and the multipliers `z` of the constraints ``p >= 0``.
    """
    free = cho_solve(factor, target / p - z - residual)
    d_level = -float(free.sum() / ones.sum())
    dp = free + d_level * ones
    dz = target / p - z - z / p * dp
    return dp, d_level, dz, 1.0 / max(1.0, float((-dp / p).max()), float((-dz / z).max()))
