"""The list of splits that belongs to a data set: those of its card, or of a file of folds.

Where the source lacks some of them, the list is completed by random splits of the same sizes. Those
are plain random ones, not stratified: class counts of the official ones vary as plain random
splits' do.
"""

import numpy as np

from mmbench.datasets.card import PredefinedSplits
from mmbench.datasets.dataset import Dataset
from mmbench.datasets.splits.base import Cut, Described
from mmbench.datasets.stream import random_stream
from mmbench.errors import UserError


def check(arg: float | None) -> str | None:
    """Return what is wrong with the rule's argument, or None."""
    return None if arg is None else f"predefined takes no number, got {arg!r}"


def slots(arg: float | None, data: Described, repeats: int | None) -> list[tuple[int, int]]:
    """Return (repeat, fold): the first `repeats` of the list, or all of it.

    None while a file of folds is not read.
    """
    if data.folds is not None:
        given = len(data.predefined or ()) if isinstance(data, Dataset) else 0
        if repeats and given and repeats > given:
            raise UserError(f"{data.folds}: gives {given} splits, not protocol.repeats {repeats}")
        return [(repeat, 0) for repeat in range(min(given, repeats or given))]
    plan = _plan(data)
    wanted = plan.count if repeats is None else repeats
    _refuse_beyond(wanted, plan, data.name)
    return [(repeat, 0) for repeat in range(wanted)]


def cut(arg: float | None, data: Dataset, repeat: int, fold: int, seed: int) -> Cut:
    """Return split number `repeat`: an official one, or a random one of the same sizes."""
    official = data.predefined or []
    if repeat < len(official):
        return Cut(*official[repeat], "official")
    plan = _plan(data)
    _refuse_beyond(repeat + 1, plan, data.name)
    order = random_stream(seed, repeat).permutation(len(data.y))
    train, test = plan.train or 0, plan.test or 0
    return Cut(np.sort(order[:train]), np.sort(order[train : train + test]), "drawn")


def _plan(data: Described) -> PredefinedSplits:
    plan = data.card.expect.predefined if data.card else None
    if plan is None:
        hint = "use kfold or holdout, or state a file of folds"
        raise UserError(f"data set {data.name!r} has no predefined splits; {hint}")
    return plan


def _refuse_beyond(wanted: int, plan: PredefinedSplits, name: str) -> None:
    """More than the list holds can only be drawn where the card states the sizes."""
    if wanted > plan.count and not plan.train:
        message = f"data set {name!r} has {plan.count} predefined splits, not {wanted}"
        raise UserError(f"{message}; set protocol.repeats to at most {plan.count}")
