"""Generators of artificial data sets from a seed.

Twonorm, ringnorm and waveform (Breiman 1984, 1996) have the same number of rows per class. In the
toy sets of the M4 paper (section V-A and table I), the diagonals of the printed matrices are
variances. The paper shows one sample per set; here, each of many samples is a split.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Parsed, random_stream

DIMENSIONS = 20
WAVES = 21
A = 2 / np.sqrt(DIMENSIONS)
#: Mean and standard deviation of every coordinate, per class. The Bayes error is 2.3 % for twonorm
#: and 1.3 % for ringnorm. The mean of ringnorm is 2/sqrt(20), as in DELVE, the origin of Raetsch's
#: benchmark data; some papers state 1/sqrt(20).
TWO_NORMALS = {"twonorm": ((A, 1), (-A, 1)), "ringnorm": ((0, 2), (A, 1))}


def two_normals(name: str, n_per_class: int = 500, seed: int = 0) -> Parsed:
    """Return samples of two normal classes with uncorrelated coordinates; see `TWO_NORMALS`."""
    random, shape = random_stream(seed), (n_per_class, DIMENSIONS)
    X = [deviation * random.standard_normal(shape) + mean for mean, deviation in TWO_NORMALS[name]]
    return Parsed(np.concatenate(X), np.repeat([1, 2], n_per_class))


def waveform(n_per_class: int = 500, seed: int = 0) -> Parsed:
    """Return samples of three classes: convex combinations of two triangular waves, plus noise.

    The peaks of the two waves are at the coordinates 7 and 15 for class 0, at 7 and 11 for class 1,
    and at 11 and 15 for class 2. The classes are numbered as in the UCI file. The Bayes error is
    14 %.
    """
    random = random_stream(seed)
    wave = {peak: np.maximum(6 - np.abs(np.arange(1, WAVES + 1) - peak), 0) for peak in (7, 11, 15)}
    parts = []
    for i, j in ((7, 15), (7, 11), (11, 15)):
        share = random.random_sample((n_per_class, 1))
        noise = random.standard_normal((n_per_class, WAVES))
        parts.append(share * wave[i] + (1 - share) * wave[j] + noise)
    return Parsed(np.concatenate(parts), np.repeat(np.arange(3), n_per_class))


@dataclass(frozen=True)
class Normal:
    """Normal distribution in the plane, rotated about the origin by `angle` (in radians).

    Before the rotation, the two coordinates are uncorrelated.
    """

    mean: tuple[float, float]
    variances: tuple[float, float]
    angle: float = 0.0

    def sample(self, random: np.random.RandomState, n: int) -> NDArray:
        """Return a random sample of n points, shape (n, 2)."""
        return self._turn(random.standard_normal((n, 2)) * np.sqrt(self.variances) + self.mean, 1)

    def density(self, points: NDArray) -> NDArray:
        """Return the probability density at each point, shape (n,)."""
        squares = (self._turn(points, -1) - self.mean) ** 2 / self.variances
        return np.exp(-0.5 * squares.sum(axis=1)) / (2 * np.pi * np.sqrt(np.prod(self.variances)))

    def _turn(self, points: NDArray, way: int) -> NDArray:
        x, y = points.T
        c, s = np.cos(self.angle), way * np.sin(self.angle)
        return np.column_stack([c * x - s * y, s * x + c * y])


def sample_of(parts: Sequence[Normal], random: np.random.RandomState, n: int) -> NDArray:
    """Return a sample of one normal distribution, or of a mixture of two with equal weights."""
    if len(parts) == 1:
        return parts[0].sample(random, n)
    chosen = random.random_sample((n, 1)) < 0.5
    return np.where(chosen, *(part.sample(random, n) for part in parts))


#: Distributions of the classes X and Y. The M4 paper states neither the centre of the rotation of X
#: in set II nor the mixture weights of set III. A rotation about the origin reproduces the
#: published accuracy of the MPM, one about the mean of X does not. The weights are equal.
CLASSES: dict[str, tuple[Sequence[Normal], Sequence[Normal]]] = {
    "toy_1": ([Normal((3.5, 0), (1, 1.5))], [Normal((-3.5, 0), (3, 4.5))]),
    "toy_2": ([Normal((4, 0), (1, 5), -3 * np.pi / 8)], [Normal((-4, 0), (1, 5))]),
    "toy_3": ([Normal((4, 0), (1, 8))], [Normal((-4, y), (5, 0.4)) for y in (-3, 3)]),
    "toy_4": ([Normal((4, 0), (6, 1))], [Normal((-3, 0), (0.5, 8))]),
}


#: Numbers of training and test rows per class, for each toy set.
SIZES = {"toy_1": (120, 250), "toy_2": (120, 250), "toy_3": (120, 250), "toy_4": (20, 60)}


def toy(name: str, draws: int = 100, seed: int = 0) -> Parsed:
    """Return `draws` independent samples of a toy set; each sample is one predefined split."""
    train, test = SIZES[name]
    parts = []
    for k in range(draws):
        random = random_stream(seed, k)
        parts += [sample_of(own, random, n) for n in (train, test) for own in CLASSES[name]]
    labels = np.tile(np.repeat([1, 2, 1, 2], [train, train, test, test]), draws)
    rows = np.arange(len(labels)).reshape(draws, -1)
    splits = tuple((draw[: 2 * train], draw[2 * train :]) for draw in rows)
    return Parsed(np.concatenate(parts), labels, None, splits)


def bayes(name: str, points: NDArray) -> NDArray:
    """Return the log odds of class Y against class X at each point, shape (n,).

    The sign of the log odds is the decision of the Bayes classifier.

    Examples
    --------
    >>> bayes("toy_1", np.array([[3.5, 0.0], [-3.5, 0.0]])).round(1)
    array([-9.3, 23.4])
    """
    x, y = (np.mean([part.density(points) for part in own], axis=0) for own in CLASSES[name])
    return np.log(y + np.finfo(float).tiny) - np.log(x + np.finfo(float).tiny)


#: Generators by name.
GENERATORS: dict[str, Callable[..., Parsed]] = {
    "waveform": waveform,
    **{name: partial(two_normals, name) for name in TWO_NORMALS},
    **{name: partial(toy, name) for name in CLASSES},
}

#: Version of the generators, part of the content hash of generated data. If a change of the code
#: changes the generated values, VERSION must be increased.
VERSION = 1


def generate(name: str, **options: Any) -> Parsed:
    """Return a generated data set. Equal arguments give equal data.

    Examples
    --------
    >>> data = generate("twonorm", n_per_class=3)
    >>> data.X.shape, data.y.tolist()
    ((6, 20), [1, 1, 1, 2, 2, 2])
    """
    return GENERATORS[name](**options)
