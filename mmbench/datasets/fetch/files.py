"""A source of a card and its verified files: read, compared with the card, named by a hash."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmbench.datasets.card import Card, Expected, Source
from mmbench.datasets.dataset import Parsed
from mmbench.datasets.fetch.sources import SourceError, obtain
from mmbench.datasets.fetch.verify import disagreement
from mmbench.datasets.generators import VERSION
from mmbench.datasets.parsers import parse
from mmbench.datasets.parsers.npz import packed_hash
from mmbench.errors import UserError


@dataclass(frozen=True)
class SourceFiles:
    """A source of a card and where its verified files lie."""

    card: Card
    source: Source
    #: The files in the order that the parser wants; none for data in memory.
    paths: tuple[Path, ...] = ()
    #: Whether the file holds parsed arrays.
    packed: bool = False

    @property
    def expected(self) -> Expected:
        """What the arrays must look like."""
        return self.card.expected(self.source)

    def read(self, every_value: bool = False) -> Parsed:
        """Return the arrays, compared with the card.

        Parameters
        ----------
        every_value : bool, default=False
            Compare the content hash too where the files' own hashes were compared already.

        Raises
        ------
        UserError
            If they differ or cannot be read.
        """
        where = ", ".join(map(str, self.paths)) or self.source.label
        try:
            data = self._parse()
        except (ValueError, SourceError) as error:
            raise UserError(f"{where}: {error}; move the file away and fetch again") from error
        content = every_value or self.source.kind != "files"
        if problem := disagreement(data, self.expected, content):
            raise UserError(f"data set {self.card.name!r}: {where}: {problem}")
        return data

    def content_hash(self) -> str:
        """Return the hash that names these data; they are read only if no other way is left."""
        if self.source.kind == "generator":
            return recipe_hash(self.card, self.source)
        if self.expected.content:
            return self.expected.content
        return packed_hash(self.paths[0]) if self.packed else self._parse().content_hash()

    def _parse(self) -> Parsed:
        if self.source.in_memory:
            return obtain(self.card, self.source, Path(), progress=False)
        if self.packed:
            return parse("packed", self.paths, {})
        parser = self.card.parser_of(self.source)
        return parse(parser.name, self.paths, parser.options)


def recipe_hash(card: Card, source: Source) -> str:
    """Name data by how they are made: generators, and what was not fetched yet."""
    recipe: list[Any] = [card.name, source.label, sorted(source.options.items()), VERSION]
    return hashlib.sha256(repr(recipe).encode()).hexdigest()
