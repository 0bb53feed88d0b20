"""Ridge systems with a bias, ``[[G + I/C, 1], [1', 0]] [a; b] = [y; 0]``, for G = K or G = K K'.

K is a Gram matrix. `solve_path` factorises it once for all C; `solve_printed` solves a dense system
for each, and is what the first is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mmbench.solvers.shifted import ShiftedSystems, shifted_systems


@dataclass(frozen=True)
class Solutions:
    """Solutions for several C, one a column.

    Attributes
    ----------
    a : ndarray of shape (n_samples, n_costs)
    coef : ndarray of shape (n_samples, n_costs)
        a for G = K, and K a for G = K K': coefficients over the columns of K.
    b : ndarray of shape (n_costs,)
    """

    a: NDArray
    coef: NDArray
    b: NDArray


def solve_path(
    gram: NDArray,
    y: NDArray,
    costs: Sequence[float],
    squared: bool = False,
    factor: NDArray | None = None,
) -> Solutions:
    """Solve for every C from one factorisation.

    Parameters
    ----------
    gram : ndarray of shape (n_samples, n_samples)
        K, symmetric and positive semidefinite.
    y : ndarray of shape (n_samples,)
    costs : sequence of float
        Values of C.
    squared : bool, default=False
        Whether G is ``K K'``.
    factor : ndarray of shape (n_samples, k), 2 <= k < n_samples, optional
        F with ``K = F F'``, by which everything is cheaper where k is small.

    Returns
    -------
    Solutions
    """
    if len(costs) == 1 and not squared and factor is None:
        return _solve_once(gram, y, costs[0])
    return _solve_all(gram, y, costs, squared, factor)


def _solve_all(
    gram: NDArray,
    y: NDArray,
    costs: Sequence[float],
    squared: bool,
    factor: NDArray | None = None,
) -> Solutions:
    """Solve in coordinates in which K is tridiagonal, or nearly so.

    For G = K K' no square is formed: ``1 / (K - i s) = (K + i s) / (K K + s^2)`` with s^2 = 1/C
    has ``K r / (K K + 1/C)`` as its real part and s times ``r / (K K + 1/C)`` as its imaginary.
    """
    systems = shifted_systems(gram, factor)
    right = systems.enter(np.column_stack([y, np.ones(len(y))]))
    a, coef, b, lines = [], [], [], []
    for C in costs:
        if squared:
            solved = systems.solve(-1j / np.sqrt(C), right)
            inverse, image = solved.imag * np.sqrt(C), solved.real
        else:
            inverse = image = systems.solve(1 / C, right)
        b.append(_bias(inverse, right[:, 1]))
        a.append(inverse @ [1, -b[-1]])
        coef.append(image @ [1, -b[-1]])
        lines.append(inverse[:, 1])
    columns = systems.leave(np.column_stack(a + coef if squared else a))
    if not squared:
        return _refined(systems, gram, y, costs, columns, np.array(b), lines)
    return Solutions(columns[:, : len(costs)], columns[:, len(costs) :], np.array(b))


def _refined(
    systems: ShiftedSystems,
    gram: NDArray,
    y: NDArray,
    costs: Sequence[float],
    a: NDArray,
    b: NDArray,
    lines: list[NDArray],
) -> Solutions:
    """Correct solutions for G = K by their residuals, once.

    A reduction of thousands of rows loses a digit or two, and what is computed from small
    differences of a, as by the KLDA, magnifies that. `lines` are ``(G + I/C)^-1 1``.
    """
    residual = systems.enter(y[:, None] - gram @ a - a / costs - b)
    ones = systems.enter(np.ones((len(y), 1)))[:, 0]
    steps = []
    for k, C in enumerate(costs):
        step = systems.solve(1 / C, residual[:, [k]])[:, 0]
        more = float((ones @ step + a[:, k].sum()) / (ones @ lines[k]))
        b[k] += more
        steps.append(step - more * lines[k])
    a = a + systems.leave(np.column_stack(steps))
    return Solutions(a, a, b)


def _solve_once(gram: NDArray, y: NDArray, C: float) -> Solutions:
    """Solve for one C and G = K by Cholesky, a quarter of the price of a reduction."""
    shifted = np.array(gram.T, order="F")  # LAPACK's order: it would copy any other
    shifted[np.diag_indices_from(shifted)] += 1 / C
    try:
        factor = cho_factor(shifted, overwrite_a=True, check_finite=False)
    except LinAlgError:  # 1/C drowns in the rounding of a singular K
        return _solve_all(gram, y, [C], squared=False)
    ones = np.ones(len(y))
    inverse = cho_solve(factor, np.column_stack([y, ones]), check_finite=False)
    b = _bias(inverse, ones)
    a = (inverse @ [1, -b])[:, None]
    return Solutions(a, a, np.array([b]))


def _bias(inverse: NDArray, ones: NDArray) -> float:
    """Return b for which ``1'a = 0``, from the columns (G + I/C)^-1 y and (G + I/C)^-1 1."""
    return float((ones @ inverse[:, 0]) / (ones @ inverse[:, 1]))


def solve_printed(
    gram: NDArray, y: NDArray, costs: Sequence[float], squared: bool = False
) -> Solutions:
    """Solve a dense bordered system for every C; parameters and result as in `solve_path`.

    For G = K K' it is the primal system that the MAMC paper prints,

        (I/C + K K) w + K 1 b = K y,    1'K w + M b = 1'y                        (36), (37)

    with w = K a, and ``a = C (y - K w - b)``.
    """
    ones = np.ones(len(y))
    G, right, border = (gram @ gram, gram @ y, gram @ ones) if squared else (gram, y, ones)
    corner, last = (len(y), y.sum()) if squared else (0.0, 0.0)
    a, coef, b = [], [], []
    for C in costs:
        system = np.block([[G + np.eye(len(y)) / C, border[:, None]], [border, corner]])
        solved = np.linalg.solve(system, np.append(right, last))
        coef.append(solved[:-1])
        b.append(solved[-1])
        a.append(C * (y - gram @ coef[-1] - b[-1]) if squared else coef[-1])
    return Solutions(np.column_stack(a), np.column_stack(coef), np.array(b))
