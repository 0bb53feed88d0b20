"""The four toy sets of the M4 paper (Huang et al. 2008), section V-A and table I.

Two classes of normal variables in the plane; matrix entries are variances. The paper shows one draw
of each. A card holds many draws, one below the other, and each draw is a predefined split: its
training rows and its test rows. Draw k depends on the seed and k alone.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.stream import random_stream


class Distribution(Protocol):
    """A distribution in the plane."""

    def sample(self, random: np.random.RandomState, n: int) -> NDArray:
        """Return n points, shape (n, 2)."""

    def density(self, points: NDArray) -> NDArray:
        """Return the density at points, shape (n,)."""


@dataclass(frozen=True)
class Normal:
    """A normal variable with uncorrelated coordinates, rotated about the origin by an angle."""

    mean: tuple[float, float]
    variances: tuple[float, float]
    angle: float = 0.0

    def sample(self, random: np.random.RandomState, n: int) -> NDArray:
        """Return n points, shape (n, 2)."""
        deviations = np.sqrt(np.array(self.variances, dtype=float))
        return self._turn(random.standard_normal((n, 2)) * deviations + np.array(self.mean), 1)

    def density(self, points: NDArray) -> NDArray:
        """Return the density at points, shape (n,)."""
        variances = np.array(self.variances, dtype=float)
        squares = (self._turn(points, -1) - self.mean) ** 2 / variances
        return np.exp(-0.5 * squares.sum(axis=1)) / (2 * np.pi * np.sqrt(variances.prod()))

    def _turn(self, points: NDArray, way: int) -> NDArray:
        if not self.angle:
            return points
        x, y = points.T
        c, s = np.cos(self.angle), way * np.sin(self.angle)
        return np.column_stack([c * x - s * y, s * x + c * y])


@dataclass(frozen=True)
class Mixture:
    """One of two variables, with equal chances."""

    first: Normal
    second: Normal

    def sample(self, random: np.random.RandomState, n: int) -> NDArray:
        """Return n points, shape (n, 2)."""
        chosen = random.random_sample((n, 1)) < 0.5
        return np.where(chosen, self.first.sample(random, n), self.second.sample(random, n))

    def density(self, points: NDArray) -> NDArray:
        """Return the density at points, shape (n,)."""
        return 0.5 * (self.first.density(points) + self.second.density(points))


#: X and Y of each set. The paper does not name the centre of the rotation in set II: about the
#: origin the MPM's mean accuracy agrees with the published one, about the class mean it does not.
#: Nor does it state the weights of the mixture in set III.
CLASSES: dict[str, tuple[Distribution, Distribution]] = {
    "toy_1": (Normal((3.5, 0), (1, 1.5)), Normal((-3.5, 0), (3, 4.5))),
    "toy_2": (Normal((4, 0), (1, 5), -3 * np.pi / 8), Normal((-4, 0), (1, 5))),
    "toy_3": (
        Normal((4, 0), (1, 8)),
        Mixture(Normal((-4, -3), (5, 0.4)), Normal((-4, 3), (5, 0.4))),
    ),
    "toy_4": (Normal((4, 0), (6, 1)), Normal((-3, 0), (0.5, 8))),
}


def toy_1(draws: int = 100, seed: int = 0) -> Parsed:
    """Set I: X ~ N((3.5, 0), diag(1, 1.5)), Y ~ N((-3.5, 0), diag(3, 4.5)); 120 train, 250 test."""
    return _stack(CLASSES["toy_1"], 120, 250, draws, seed)


def toy_2(draws: int = 100, seed: int = 0) -> Parsed:
    """Set II: N((4, 0), diag(1, 5)) turned by -3pi/8 about the origin; N((-4, 0), diag(1, 5))."""
    return _stack(CLASSES["toy_2"], 120, 250, draws, seed)


def toy_3(draws: int = 100, seed: int = 0) -> Parsed:
    """Set III: N((4, 0), diag(1, 8)), and a mixture of N((-4, -3), S) and N((-4, 3), S).

    S = diag(5, 0.4), and the weights of the mixture are equal.
    """
    return _stack(CLASSES["toy_3"], 120, 250, draws, seed)


def toy_4(draws: int = 100, seed: int = 0) -> Parsed:
    """Set IV: X ~ N((4, 0), diag(6, 1)), Y ~ N((-3, 0), diag(0.5, 8)); 20 train, 60 test."""
    return _stack(CLASSES["toy_4"], 20, 60, draws, seed)


def bayes(name: str, points: NDArray) -> NDArray:
    """Return the log of the odds of Y against X at points: the best classifier is its sign.

    Parameters
    ----------
    name : str
        Of the set.
    points : ndarray of shape (n, 2)

    Examples
    --------
    >>> bayes("toy_1", np.array([[3.5, 0.0], [-3.5, 0.0]])).round(1)
    array([-9.3, 23.4])
    """
    tiny = np.finfo(float).tiny
    x, y = (np.log(one.density(points) + tiny) for one in CLASSES[name])
    return y - x


def _stack(
    classes: tuple[Distribution, Distribution], train: int, test: int, draws: int, seed: int
) -> Parsed:
    """Draw `draws` data sets of `train` + `test` rows a class; training rows come first."""
    parts = []
    for k in range(draws):
        random = random_stream(seed, k)
        parts += [one.sample(random, n) for n in (train, test) for one in classes]
    labels = np.tile(np.repeat([1, 2, 1, 2], [train, train, test, test]), draws)
    size = 2 * (train + test)
    rows = np.arange(draws * size).reshape(draws, size)
    splits = tuple((draw[: 2 * train], draw[2 * train :]) for draw in rows)
    return Parsed(np.concatenate(parts), labels, None, splits)
