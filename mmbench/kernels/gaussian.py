"""``exp(-gamma ||x - z||^2)`` from inner products, compiled: one pass, at the cost of the product.

NumPy's `exp` in float64 takes three times as long as the product that it is applied to, and every
step of the exponent (norms, twice the product, the limit at zero) another pass over memory. Here
``exp(v) = 2^q exp(r)`` with an integer q and ``|r| <= ln(2) / 2``, a Taylor polynomial in r, and
``2^q`` by its bits. The result differs from NumPy's by a unit in the last place or two.
"""

from math import factorial
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

#: Entries of a row handled together: they stay in the first cache.
SEGMENT = 1024

_OPTIONS: Any = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nnan", "nsz", "contract", "arcp"},
}


def gaussian(products: NDArray, squares: NDArray, others: NDArray, gamma: float) -> None:
    """Turn inner products into values of the Gaussian kernel, in place.

    Parameters
    ----------
    products : ndarray of shape (n, m)
        ``x'z``, float32 or float64, its rows contiguous.
    squares, others : ndarray of shape (n,) and (m,)
        ``x'x`` and ``z'z`` in the same type.
    gamma : float

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0]])
    >>> K = X @ X.T
    >>> gaussian(K, np.diag(K).copy(), np.diag(K).copy(), 0.5)
    >>> K.round(6)
    array([[1.      , 0.367879],
           [0.367879, 1.      ]])
    """
    dtype = products.dtype
    buffer = np.empty(SEGMENT, dtype)
    bits = buffer.view(np.int32 if dtype == np.float32 else np.int64)
    _finish(products, squares, others, dtype.type(gamma), buffer, bits)


@njit(cache=True, **_OPTIONS)
def _finish(products, squares, others, gamma, buffer, bits):
    for i in range(products.shape[0]):
        for start in range(0, products.shape[1], buffer.shape[0]):
            part = products[i, start : start + buffer.shape[0]]
            size = part.shape[0]
            beside = others[start : start + size]
            _segment(part, squares[i], beside, gamma, buffer[:size], bits[:size])


def _segment(products, square, others, gamma, buffer, bits):
    """Finish some entries of a row: one of two functions, by the type of numbers.

    `_finish` does not enclose them: Numba knows a function by what it encloses, compiled ones by a
    random name, and would compile `_finish` anew in every process, and store it once more.
    """


@overload(_segment, jit_options=_OPTIONS)
def _segment_of(products, square, others, gamma, buffer, bits):
    return _segment_single if products.dtype == types.float32 else _segment_double


def _segment_for(real, integer, terms, mantissa_bits, exponent_bias, ln2_high):
    """Return what `_segment` is for one type of numbers."""
    magic = real(1.5 * 2.0**mantissa_bits)  # adding it rounds to an integer, held in the last bits
    log2e, high, low = real(1 / np.log(2)), real(ln2_high), real(np.log(2) - ln2_high)
    lowest = real(-exponent_bias * np.log(2))  # the bits of 2^q are then those of zero
    shift, bias = integer(mantissa_bits), integer(exponent_bias << mantissa_bits)
    factors = tuple(real(1 / factorial(k)) for k in range(terms, -1, -1))
    zero, two = real(0), real(2)

    def segment(products, square, others, gamma, buffer, bits):
        for k in range(products.shape[0]):
            v = -gamma * max(square + others[k] - two * products[k], zero)
            v = max(v, lowest)
            t = v * log2e + magic
            buffer[k] = t
            q = t - magic
            r = (v - q * high) - q * low
            p = factors[0]
            for factor in factors[1:]:
                p = p * r + factor
            products[k] = p
        for k in range(products.shape[0]):
            bits[k] = (bits[k] << shift) + bias
        for k in range(products.shape[0]):
            products[k] *= buffer[k]

    return segment


_segment_single = _segment_for(np.float32, np.int32, 6, 23, 127, 0.693359375)
_segment_double = _segment_for(np.float64, np.int64, 13, 52, 1023, 0.693147180369123816490)
