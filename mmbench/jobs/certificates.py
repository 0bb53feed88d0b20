"""The certificates of a machine's binary problems, one by one and in summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbench.machines.problem import Fit


def per_pair(fits: Sequence[Fit]) -> list[dict[str, Any]]:
    """Return every certificate as a mapping."""
    return [{**asdict(fit), "gap": fit.gap} for fit in fits]


def summary(fits: Sequence[Fit]) -> dict[str, Any]:
    """Return how many problems ended how, and the worst of their certificates."""
    return {
        "n": len(fits),
        "statuses": dict(Counter(fit.status for fit in fits)),
        "worst_violation": max(fit.max_violation for fit in fits),
        "worst_gap": max(fit.gap for fit in fits),
        "n_support_mean": sum(fit.n_support for fit in fits) / len(fits),
        "iterations": sum(fit.iterations for fit in fits),
    }
