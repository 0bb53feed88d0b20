"""Selected parameters: passed on from job to job, and put together."""

from collections.abc import Sequence
from statistics import median_low
from typing import Any

#: One choice for all pairs of classes, or one a pair.
Choice = dict[str, Any] | list[dict[str, Any]]


def merged(old: Choice, new: Choice) -> Choice:
    """Return both choices in one; a machine passes on what it inherited."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **new}
    n_pairs = len(old if isinstance(old, list) else new)
    olds = old if isinstance(old, list) else [old] * n_pairs
    news = new if isinstance(new, list) else [new] * n_pairs
    return [{**before, **after} for before, after in zip(olds, news, strict=True)]


def middle(choices: Sequence[Choice]) -> Choice:
    """Return one choice for several splits: each parameter's median, and pair by pair.

    Of an even number it is the lower of the two in the middle, so that it is a value that was
    chosen. Of values that are no numbers it is the most frequent, of these the first.

    Raises
    ------
    ValueError
        If the choices are of different numbers of pairs.
    """
    whole = [choice for choice in choices if isinstance(choice, dict)]
    if whole:
        return _middle(whole)
    of_pairs = [choice for choice in choices if isinstance(choice, list)]
    if len(counts := {len(pairs) for pairs in of_pairs}) > 1:
        raise ValueError(
            f"the splits have choices for {min(counts)} to {max(counts)} pairs of classes: where "
            "one lacks a class there is no median for each pair"
        )
    return [_middle(pair) for pair in zip(*of_pairs, strict=True)]


def _middle(choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {name: _median([choice[name] for choice in choices]) for name in choices[0]}


def _median(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return median_low(values)
    return max(values, key=list(values).count)
