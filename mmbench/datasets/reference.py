"""Which data, and how they are prepared: what a job says of its data set."""

from dataclasses import dataclass, field
from typing import Any

from mmbench.datasets.card import Card, load_card

Scalar = str | float | int | None
#: Preprocessing as (name, argument): ``(("divide", 255), ("pca", 80))``.
Steps = tuple[tuple[str, Scalar], ...]
#: Marks a field that older records do not have. At its default it is no part of a job's key, so
#: that they still answer for their jobs.
ADDED = {"added": True}


@dataclass(frozen=True)
class DatasetRef:
    """A data set by name, and how its rows are prepared."""

    #: Name of the card, or for a user's file the name shown in tables.
    name: str
    #: A user's file, with an absolute path where a job refers to it. Not part of a job's key: the
    #: content hash is.
    path: str | None = None
    #: Target column of a user's file, by name or number.
    target: str | int | None = None
    #: Steps (name, value), fitted on the training part.
    preprocess: Steps = ()
    #: The classes whose rows there are; empty for all.
    classes: tuple[str, ...] = field(default=(), metadata=ADDED)
    #: How a user's file is read, from `mmbench.datasets.FileOptions.pairs`.
    options: tuple[tuple[str, Any], ...] = field(default=(), metadata=ADDED)
    #: A file of given folds, for the rule ``predefined``. Not part of a job's key: its content is
    #: part of the content hash.
    folds: str | None = field(default=None, metadata=ADDED)

    @property
    def card(self) -> Card | None:
        """The card; None for a user's file.

        Raises
        ------
        UserError
            If there is no such card.
        """
        return load_card(self.name) if self.path is None else None
