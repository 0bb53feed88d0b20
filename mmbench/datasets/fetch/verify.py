"""Comparison of parsed data with what a card expects."""

from mmbench.datasets.card import Expected
from mmbench.datasets.dataset import Parsed


def disagreement(data: Parsed, expected: Expected, content: bool = True) -> str | None:
    """Return the first difference between data and card as a phrase, or None.

    Parameters
    ----------
    data : Parsed
    expected : Expected
    content : bool
        Compare the content hash too, where the card has one. Needless for files whose own hash was
        checked, and slow for a hundred million pixels.
    """
    for check in (_shape, _classes, _splits, _known_rows):
        problem = check(data, expected)
        if problem:
            return problem
    if content and expected.content:
        found = data.content_hash()
        if found != expected.content:
            return f"same shape and class counts, but other values, row order or splits ({found})"
    return None


def _shape(data: Parsed, expected: Expected) -> str | None:
    if data.X.shape != expected.shape:
        (n, d), (m, e) = data.X.shape, expected.shape
        return f"{n} rows x {d} columns, the card says {m} x {e}"
    if len(data.y) != len(data.X):
        return f"{len(data.X)} rows but {len(data.y)} labels"
    return None


def _classes(data: Parsed, expected: Expected) -> str | None:
    counts = data.class_counts()
    if len(counts) != expected.n_classes:
        return f"{len(counts)} classes, the card says {expected.n_classes}"
    for label, count in expected.classes.items():
        if counts.get(label) != count:
            found = counts.get(label, 0)
            return f"{found} rows of class {label!r}, the card says {count}"
    return None


def _splits(data: Parsed, expected: Expected) -> str | None:
    sizes = None if data.official is None else tuple(map(len, data.official))
    wanted = expected.official and (expected.official.train, expected.official.test)
    if sizes != wanted:
        return f"official split {sizes}, the card says {wanted}"
    number = expected.predefined.n_official if expected.predefined else 0
    if len(data.predefined) != number:
        return f"{len(data.predefined)} predefined splits, the card says {number}"
    return None


def _known_rows(data: Parsed, expected: Expected) -> str | None:
    known = expected.known_rows
    if known is None:
        return None
    rows = slice(known.first, known.last)
    if Parsed(data.X[rows], data.y[rows]).content_hash() != known.content:
        return f"rows {known.first + 1} to {known.last} hold other values than the card states"
    return None
