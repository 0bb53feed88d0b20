"""Splice junctions: 60 nucleotides around a point, each coded by four numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.text import read_lines

#: Letter -> (A, C, G, T). The ambiguous letters of the file share one unit among their bases.
CODES = {
    "A": (1.0, 0.0, 0.0, 0.0),
    "C": (0.0, 1.0, 0.0, 0.0),
    "G": (0.0, 0.0, 1.0, 0.0),
    "T": (0.0, 0.0, 0.0, 1.0),
    "D": (1 / 3, 0.0, 1 / 3, 1 / 3),
    "N": (0.25, 0.25, 0.25, 0.25),
    "R": (0.5, 0.0, 0.5, 0.0),
    "S": (0.0, 0.5, 0.5, 0.0),
}
POSITIONS = 60


def splice(paths: Sequence[Path]) -> Parsed:
    """Parse ``class,name,sequence``; column 4 * position + base."""
    rows = [[cell.strip() for cell in line.split(",")] for line in read_lines(paths[0])]
    bad = next((i for i, row in enumerate(rows) if len(row) != 3 or not _is_sequence(row[2])), None)
    if bad is not None:
        raise ValueError(f"{paths[0].name}: line {bad + 1} is not class, name, sequence")
    X = np.array([[CODES[letter] for letter in row[2]] for row in rows])
    return Parsed(X.reshape(len(rows), -1), np.array([row[0] for row in rows]))


def _is_sequence(text: str) -> bool:
    return len(text) == POSITIONS and set(text) <= set(CODES)
