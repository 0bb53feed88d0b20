"""What layouts produce and renderers draw: headers, rows of text, notes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from mmbench.jobs.plan import Key

#: Marks of a comparison, explained in the legend of every table that has one.
IN_BAND = "✓"
OUT_OF_BAND = "✗"
NOTHING = "–"


@dataclass(frozen=True)
class Column:
    """A column: its head, its side, and the group that spans it where a format can show one."""

    name: str
    align: str = "right"
    group: str = ""


@dataclass(frozen=True)
class Grid:
    """Columns and rows of text."""

    columns: tuple[Column, ...]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """A table ready to be drawn.

    Attributes
    ----------
    title : str
    grids : list of Grid
        Drawn one below the other.
    notes : list of str
        The legend and other remarks on the whole table.
    footnotes : list of str
        The text of footnote k+1, which cells cite as ``[k+1]``.
    """

    title: str
    grids: list[Grid]
    notes: list[str] = field(default_factory=list)
    footnotes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Facts:
    """What a reader of a table must know beside its cells.

    Attributes
    ----------
    experiment : str
    published : DataFrame or None
        The published table compared with.
    deviations : mapping of str to tuple of str
        By data set: where the data differ from what the paper used, or look suspicious.
    sizes : mapping of str to mapping
        By data set: ``n_train``, ``n_test``, ``n_classes``, ``n_features`` as far as known.
    by_split : mapping of Key to mapping
        Accuracy in per cent of every finished split, by its (repeat, fold).
    per_pair : mapping of Key to mapping
        The certificates of the pairs of classes of every finished split, by its (repeat, fold).
    hits : callable
        Takes a Key and a (repeat, fold) and returns which test rows that run has right, shape
        (n_test,), or None where there is no such run.
    remarks : tuple of str
        On the whole run: hardware, unreadable records, mixed settings.
    """

    experiment: str
    published: pd.DataFrame | None = None
    deviations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    by_split: Mapping[Key, Mapping[tuple[int, int], float]] = field(default_factory=dict)
    per_pair: Mapping[Key, Mapping[tuple[int, int], list]] = field(default_factory=dict)
    hits: Callable[[Key, tuple[int, int]], NDArray | None] = lambda key, split: None
    remarks: tuple[str, ...] = ()
