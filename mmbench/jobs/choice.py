"""Selected parameters, and their medians over several splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import Any

#: Selected parameters: one dict per pair of classes, or a single dict for all pairs.
Choice = list[dict[str, Any]]


def choice_of(selection: Mapping[str, Any]) -> Choice:
    """Return the selected parameters of a record, which stores a single dict without a list."""
    params = selection.get("params", {})
    return params if isinstance(params, list) else [params or {}]


def merged(old: Choice, new: Choice) -> Choice:
    """Return the parameters of both arguments; values in `new` replace values in `old`."""
    n = max(len(old), len(new))
    olds, news = old * (n // len(old)), new * (n // len(new))
    return [{**before, **after} for before, after in zip(olds, news, strict=True)]


def middle(choices: Sequence[Choice]) -> Choice:
    """Return the median of each selected parameter over several splits.

    If parameters are selected per pair of classes, the median is computed for each pair. If the
    number of values is even, the median is the lower of the two middle values, so the median is
    always one of the selected values. If the values are not numbers, the most frequent value is
    returned, or the first of several equally frequent values.

    Raises
    ------
    ValueError
        If the splits have parameters for different numbers of pairs of classes.
    """
    if len(counts := {len(choice) for choice in choices}) > 1:
        numbers = f"{min(counts)} to {max(counts)} pairs of classes"
        why = "if a split lacks a class, there is no median per pair"
        raise ValueError(f"the splits have parameters for {numbers}; {why}")
    return [
        {name: _median([params[name] for params in pair]) for name in pair[0]}
        for pair in zip(*choices, strict=True)
    ]


def _median(values: Sequence[Any]) -> Any:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return median_low(values)
    return max(values, key=list(values).count)
