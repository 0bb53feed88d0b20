"""The examples of a property test, stated so that they are the same with every Hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import example


def examples(**columns: Sequence[Any]) -> Callable[[Callable], Callable]:
    """State as many examples as the longest column has values; shorter columns start again."""

    def stated(test: Callable) -> Callable:
        for k in range(max(map(len, columns.values()))):
            test = example(**{name: column[k % len(column)] for name, column in columns.items()})(
                test
            )
        return test

    return stated
