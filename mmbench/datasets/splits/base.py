"""What the rules share: the interface of a rule, and stratified subsets."""

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.reference import DatasetRef
from mmbench.errors import UserError

IntArray = NDArray[np.intp]
#: A data set of which only name and card need be known.
Described = DatasetRef | Dataset


class Cut(NamedTuple):
    """Rows of one split; ``origin`` is "official" or "drawn"."""

    train: IntArray
    test: IntArray
    origin: str


class Rule(Protocol):
    """A split rule is a module with these functions."""

    def check(self, arg: float | None) -> str | None:
        """Return what is wrong with the rule's argument, or None."""

    def slots(
        self, arg: float | None, data: Described, repeats: int | None
    ) -> list[tuple[int, int]]:
        """Return (repeat, fold) of every split."""

    def cut(self, arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
        """Return the rows of one split."""


def whole_number(rule: str, arg: float | None) -> str | None:
    """Return why the argument of a rule is no number of parts, or None."""
    whole = isinstance(arg, int) or (isinstance(arg, float) and arg.is_integer())
    if isinstance(arg, bool) or not whole or (arg or 0) < 2:
        return f"{rule} must be a whole number of at least 2, got {arg!r}"
    return None


def one_partition(rule: str, repeats: int | None) -> None:
    """Refuse repeats of a rule that has one way to cut.

    Raises
    ------
    UserError
    """
    if repeats not in (None, 1):
        raise UserError(f"{rule} has one partition; leave out repeats {repeats}")


def codes_and_counts(y: NDArray) -> tuple[IntArray, IntArray]:
    """Return class numbers and the number of rows of each class."""
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    return codes.ravel(), counts


def allocate(counts: IntArray, total: int) -> IntArray:
    """Share out `total` rows over classes in proportion, by the largest remainders.

    Examples
    --------
    >>> allocate(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    exact = counts * (total / counts.sum())
    share = np.floor(exact).astype(np.intp)
    order = np.argsort(-(exact - share), kind="stable")
    share[order[: total - share.sum()]] += 1
    return share


def allocate_nested(counts: IntArray, total: int) -> IntArray:
    """Share out at most `total` rows in proportion, never fewer to a class when `total` grows.

    Row r of a class of n rows comes at ``(r + 1/2) / n`` of an order of all rows. By the largest
    remainders (`allocate`) one of three or more classes may lose a row where `total` grows.

    Examples
    --------
    >>> allocate_nested(np.array([5, 3, 2]), 4).tolist()
    [2, 1, 1]
    """
    codes = np.repeat(np.arange(len(counts)), counts)
    place = np.concatenate([(np.arange(n) + 0.5) / n for n in counts.tolist()])
    first = np.argsort(place, kind="stable")[:total]
    return np.bincount(codes[first], minlength=len(counts))


def pick_stratified(codes: IntArray, share: IntArray, random: np.random.RandomState) -> IntArray:
    """Return sorted positions of ``share[k]`` random rows of each class k."""
    picked = [
        random.permutation(np.flatnonzero(codes == k))[:n] for k, n in enumerate(share.tolist())
    ]
    return np.sort(np.concatenate(picked))
