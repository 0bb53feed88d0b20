"""Generators: data sets as functions of a seed. Each is one function listed in `GENERATORS`.

- Twonorm, ringnorm and waveform (Breiman 1984, 1996), with equally many rows of each class.
- The four toy sets of the M4 paper (Huang et al. 2008), section V-A and table I: two classes of
  normal variables in the plane; matrix entries are variances. The paper shows one draw of each. A
  card holds many draws, one below the other, and each draw is a predefined split: its training rows
  and its test rows. Draw k depends on the seed and k alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, random_stream

DIMENSIONS = 20
WAVES = 21


def twonorm(n_per_class: int = 500, seed: int = 0) -> Parsed:
    """Two normal classes with unit covariance and means (a, ..., a), (-a, ..., -a), a = 2/sqrt(20).

    The Bayes error is 2.3 %.

    Examples
    --------
    >>> data = twonorm(n_per_class=3)
    >>> data.X.shape, data.y.tolist()
    ((6, 20), [1, 1, 1, 2, 2, 2])
    """
    random = random_stream(seed)
    a = 2 / np.sqrt(DIMENSIONS)
    first = random.standard_normal((n_per_class, DIMENSIONS)) + a
    second = random.standard_normal((n_per_class, DIMENSIONS)) - a
    return _two_classes(first, second)


def ringnorm(n_per_class: int = 500, seed: int = 0) -> Parsed:
    """Normal classes: mean 0 and covariance 4 I; mean (a, ..., a) and covariance I, a = 2/sqrt(20).

    Some papers print a = 1/sqrt(20); the set of the DELVE archive, from which the benchmark sets of
    Raetsch come, has 2/sqrt(20). The Bayes error is 1.3 %.
    """
    random = random_stream(seed)
    a = 2 / np.sqrt(DIMENSIONS)
    first = 2 * random.standard_normal((n_per_class, DIMENSIONS))
    second = random.standard_normal((n_per_class, DIMENSIONS)) + a
    return _two_classes(first, second)


def waveform(n_per_class: int = 500, seed: int = 0) -> Parsed:
    """Three classes: random convex combinations of two of three triangular waves, plus noise.

    Classes are numbered as in the UCI file, by the peaks of their waves: 0 mixes those at 7 and 15,
    1 those at 7 and 11, 2 those at 11 and 15. The Bayes error is 14 %.
    """
    random = random_stream(seed)
    points = np.arange(1, WAVES + 1)
    wave = {peak: np.maximum(6 - np.abs(points - peak), 0) for peak in (7, 11, 15)}
    parts = []
    for i, j in ((7, 15), (7, 11), (11, 15)):
        share = random.random_sample((n_per_class, 1))
        noise = random.standard_normal((n_per_class, WAVES))
        parts.append(share * wave[i] + (1 - share) * wave[j] + noise)
    return Parsed(np.concatenate(parts), np.repeat(np.arange(3), n_per_class))


def _two_classes(first: np.ndarray, second: np.ndarray) -> Parsed:
    return Parsed(np.concatenate([first, second]), np.repeat([1, 2], [len(first), len(second)]))


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


#: X and Y of each set. The paper does not name the centre of the rotation in set II: with the
#: origin the MPM's mean accuracy agrees with the published one, with the class mean it does not.
#: The weights of the mixture in set III are not stated either.
CLASSES: dict[str, tuple[Normal | Mixture, Normal | Mixture]] = {
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

    Examples
    --------
    >>> bayes("toy_1", np.array([[3.5, 0.0], [-3.5, 0.0]])).round(1)
    array([-9.3, 23.4])
    """
    tiny = np.finfo(float).tiny
    x, y = (np.log(one.density(points) + tiny) for one in CLASSES[name])
    return y - x


def _stack(
    classes: tuple[Normal | Mixture, Normal | Mixture], train: int, test: int, draws: int, seed: int
) -> Parsed:
    """Draw `draws` data sets of `train` + `test` rows per class; training rows come first."""
    parts = []
    for k in range(draws):
        random = random_stream(seed, k)
        parts += [one.sample(random, n) for n in (train, test) for one in classes]
    labels = np.tile(np.repeat([1, 2, 1, 2], [train, train, test, test]), draws)
    size = 2 * (train + test)
    rows = np.arange(draws * size).reshape(draws, size)
    splits = tuple((draw[: 2 * train], draw[2 * train :]) for draw in rows)
    return Parsed(np.concatenate(parts), labels, None, splits)


#: Generators by name.
GENERATORS: dict[str, Callable[..., Parsed]] = {
    function.__name__: function
    for function in (twonorm, ringnorm, waveform, toy_1, toy_2, toy_3, toy_4)
}

#: Raised if a generator's draws change; part of the hash that names a drawn data set.
VERSION = 1


def generate(name: str, **options: Any) -> Parsed:
    """Draw a data set; equal arguments give equal data."""
    return GENERATORS[name](**options)
