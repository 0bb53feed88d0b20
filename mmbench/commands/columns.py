"""Rows of text in aligned columns."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[object]], n_words: int | None = None) -> list[str]:
    """Return rows as lines of aligned columns.

    Parameters
    ----------
    rows : sequence of sequence
    n_words : int, optional
        So many columns hold words, on the left of their column; the others numbers, on the right.

    Examples
    --------
    >>> aligned([("svm", 5), ("mmrm", 12)], n_words=1)
    ['svm    5', 'mmrm  12']
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sides = ["<" if n_words is None or k < n_words else ">" for k in range(len(widths))]
    return [
        "  ".join(f"{c:{s}{w}}" for c, s, w in zip(row, sides, widths, strict=True)).rstrip()
        for row in cells
    ]
