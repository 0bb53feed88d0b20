"""The one split that everybody uses. Repeats repeat what is random in the rest of an experiment."""

from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits.base import Cut, Described
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    return None if arg is None else f"official takes no number, got {arg!r}"


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold) of every split."""
    if not (data.card and data.card.expect.official):
        raise UserError(f"data set {data.name!r} has no official split; use kfold or holdout")
    return [(repeat, 0) for repeat in range(repeats or 1)]


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return the official rows, the same for every repeat and seed."""
    if data.split is None:
        raise UserError(f"data set {data.name!r} has no official split; use kfold or holdout")
    return Cut(*data.split, "official")
