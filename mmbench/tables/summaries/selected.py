"""Which parameters were selected, and how often at an end of their grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from mmbench.jobs.record import Record

#: A grid of fewer values is nothing but ends.
MIN_VALUES = 3


@dataclass(frozen=True)
class Selected:
    """One parameter of a cell."""

    name: str
    #: Over splits and, where each has its own choice, pairs of classes; a value of the grid.
    median: float
    #: Number of choices.
    n: int
    #: How many are the smallest and the largest value of the grid.
    n_low: int = 0
    n_high: int = 0

    @property
    def note(self) -> str:
        """Where the choices lie at the grid's ends, in words."""
        ends = (("lower", self.n_low), ("upper", self.n_high))
        return "; ".join(
            f"at the {end} end of its grid in {count} of {self.n} choices"
            for end, count in ends
            if count
        )

    def __str__(self) -> str:
        ends = (("min", self.n_low), ("max", self.n_high))
        texts = [f"{end} {count}/{self.n}" if self.n > 1 else end for end, count in ends if count]
        return f"{self.name} {self.median:.3g}" + (f" ({', '.join(texts)})" if texts else "")


def selected(records: Sequence[Record]) -> list[Selected]:
    """Return the numbers that the records of a cell have selected from their own grids.

    Of a choice for all splits, which another experiment made, they are these parameters.
    """
    grids = {name: values for record in records for name, values in record.job.grid}
    made = (choice for record in records if record.job.shares for choice in _choices(record))
    grids |= {name: () for choice in made for name in choice}
    return [found for name, grid in grids.items() if (found := _selected(name, grid, records))]


def _choices(record: Record) -> list[dict]:
    """Return the choice of a record, or that of each pair of classes."""
    params = record.selection.get("params") or {}
    return params if isinstance(params, list) else [params]


def _selected(name: str, grid: Sequence, records: Sequence[Record]) -> Selected | None:
    choices = (choice for record in records for choice in _choices(record))
    values = [c[name] for c in choices if isinstance(c.get(name), int | float)]
    numbers = [value for value in grid if isinstance(value, int | float)]
    if not values:
        return None
    ends = (min(numbers), max(numbers)) if len(numbers) >= MIN_VALUES else ()
    return Selected(name, median_low(values), len(values), *map(values.count, ends))
