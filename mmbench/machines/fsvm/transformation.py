"""The transformation M for fixed hyperplanes W, one column a pair, in units in which rho = 1.

min over M > 0   1/2 tr(M^{-1} (WW' + eps I)) + tr(MS),     S = diag(s)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

#: The paper's code: first step size, its factor from step to step, floor of the eigenvalues of M.
FIRST_STEP, STEP_FACTOR, FLOOR = 0.1, 0.9, 1e-5
#: The gradient steps of one M-step end after so many, or when F falls by less than this share.
MAX_STEPS, MIN_DECREASE = 50, 1e-3
#: A step halved below this does not lower F any more.
SHORTEST_STEP = 1e-9


def gradient_steps(M: NDArray, W: NDArray, s: NDArray, max_steps: int = MAX_STEPS) -> NDArray:
    """Lower ``1/2 tr(M^{-1}WW') + tr(MS)`` by projected gradient steps, equations (20) to (22).

    The step is halved until the value does not grow: the plain steps of the paper diverge.
    """
    M, W = np.asfortranarray(M), np.asfortranarray(W)
    # All steps together take at most so much of S from M: then none can lead below the floor.
    far = _is_above_floor(M - np.diag(FIRST_STEP / (1 - STEP_FACTOR) * s))
    step, (value, image) = FIRST_STEP, _value_and_image(M, W, s)
    for _ in range(max_steps):
        while step > SHORTEST_STEP:
            moved = blas.dsyrk(0.5 * step, image, beta=1.0, c=M, lower=1)
            np.einsum("ii->i", moved)[:] -= step * s
            moved = moved if far else above_floor(moved)
            lower, turned = _value_and_image(moved, W, s)
            if lower <= value:
                break
            step *= 0.5
        else:
            break
        M, image, fallen, value = moved, turned, value - lower, lower
        if fallen <= MIN_DECREASE * value:
            break
        step *= STEP_FACTOR
    return np.tril(M) + np.tril(M, -1).T


def _value_and_image(M: NDArray, W: NDArray, s: NDArray) -> tuple[float, NDArray]:
    """Return ``1/2 tr(M^{-1} WW') + tr(MS)`` and ``M^{-1}W``; of M the lower triangle is read."""
    # LAPACK itself: the checks of scipy's functions take longer than small systems.
    factor, failed = lapack.dpotrf(M, lower=1, clean=0)
    if failed:
        return np.inf, W
    image, _ = lapack.dpotrs(factor, W, lower=1)
    return 0.5 * float(np.sum(W * image)) + float(np.diagonal(M) @ s), image


def above_floor(M: NDArray) -> NDArray:
    """Return the nearest matrix with no eigenvalue below `FLOOR`; M's lower triangle is read."""
    if _is_above_floor(M):
        return M
    values, vectors = np.linalg.eigh(M)
    return (vectors * np.maximum(values, FLOOR)) @ vectors.T


def _is_above_floor(M: NDArray) -> bool:
    shifted = np.array(M, order="F")
    np.einsum("ii->i", shifted)[:] -= FLOOR
    return lapack.dpotrf(shifted, lower=1, clean=0, overwrite_a=1)[1] == 0


def closed_form_root(W: NDArray, s: NDArray, eps: float) -> NDArray:
    """Return a root of the M with the smallest ``1/2 tr(M^{-1} (WW' + eps I)) + tr(MS)``.

    Notes
    -----
    ``M = 2^{-1/2} S^{-1/2} (S^{1/2} (WW' + eps I) S^{1/2})^{1/2} S^{-1/2}``.
    """
    root = np.sqrt(s)
    inner = (root[:, None] * W) @ (root[:, None] * W).T
    inner[np.diag_indices_from(inner)] += eps * s
    values, vectors = np.linalg.eigh(inner)
    return vectors * (np.maximum(values, 0.0) / 2.0) ** 0.25 / root[:, None]


def infimum_root(W: NDArray, s: NDArray) -> NDArray:
    """Return a root of ``M = W (W'S W)^{-1/2} W' / sqrt(2)``, where the infimum without eps is.

    M lies on the edge of the cone: the root has one column a pair.
    """
    root = np.sqrt(s)[:, None]
    left, sizes, _ = np.linalg.svd(root * W, full_matrices=False)
    return left * np.sqrt(sizes / np.sqrt(2.0)) / root
