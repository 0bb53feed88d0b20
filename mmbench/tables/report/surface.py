"""The scores of a selection over its grid, mean over splits, and where the choices lie."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from mmbench.jobs.record import Record

#: Values of an axis that are still shown.
LONGEST = 60


@dataclass(frozen=True)
class Point:
    """A point of the grid: its mean score (%), how often it was chosen, its place in 0..1."""

    score: float | None
    chosen: int
    heat: float


@dataclass(frozen=True)
class Surface:
    """Mean scores over one or two parameters."""

    #: Names of the parameters; `down` is empty where there is one alone.
    across: str
    down: str
    #: Their values.
    columns: list[str]
    rows: list[str]
    #: One list a row.
    points: list[list[Point]]
    #: Parameters over which the best score is shown.
    others: list[str]
    #: Splits.
    n: int
    #: Splits, or pairs of classes where each has its own choice.
    n_choices: int


def surface(records: Sequence[Record]) -> Surface | None:
    """Return the scores of a cell's selections; None where nothing was selected."""
    records = [record for record in records if record.selection.get("scores")]
    values = _axes(records)
    axes = sorted(values, key=lambda name: -len(values[name]))[:2]
    if not axes or max(len(values[name]) for name in axes) > LONGEST:
        return None
    axes.sort(key=list(values).index)  # C down, gamma across, as in the grid
    across, down = axes[-1], axes[0] if len(axes) == 2 else ""
    scores, choices = _scores(records, axes), _choices(records, axes)
    known = [score for score in scores.values() if score is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)

    def point(at: tuple) -> Point:
        score = scores.get(at)
        heat = 0.0 if score is None else (score - low) / (high - low) if high > low else 1.0
        return Point(score, choices[at], round(heat, 3))

    lines = [(v,) for v in values[down]] if down else [()]
    return Surface(
        across,
        down,
        [_text(v) for v in values[across]],
        [_text(line[0]) if line else "" for line in lines],
        [[point((*line, value)) for value in values[across]] for line in lines],
        [name for name in values if name not in axes],
        len(records),
        choices.total(),
    )


def _axes(records: Iterable[Record]) -> dict[str, list[Any]]:
    """Return the values of every parameter of which the grid has several, sorted."""
    found: dict[str, set] = {}
    for record in records:
        for name, values in record.job.grid:
            found.setdefault(name, set()).update(map(_hashable, values))
    return {
        name: sorted(values, key=lambda value: (isinstance(value, str), value))
        for name, values in found.items()
        if len(values) > 1
    }


def _scores(records: Iterable[Record], axes: Sequence[str]) -> dict[tuple, float | None]:
    """Return the mean over splits, in per cent, of the best score at each point."""
    found: dict[tuple, list[float]] = {}
    for record in records:
        best: dict[tuple, float] = {}
        for line in record.selection["scores"]:
            at, score = _at(line, axes), line.get("score")
            if score is not None and None not in at:
                best[at] = max(score, best.get(at, score))
        for at, score in best.items():
            found.setdefault(at, []).append(100 * score)
    return {at: fmean(scores) for at, scores in found.items()}


def _choices(records: Iterable[Record], axes: Sequence[str]) -> Counter[tuple]:
    chosen = (record.selection.get("params") or {} for record in records)
    flat = (one for many in chosen for one in (many if isinstance(many, list) else [many]))
    return Counter(at for one in flat if None not in (at := _at(one, axes)))


def _at(line: Mapping[str, Any], axes: Sequence[str]) -> tuple:
    return tuple(_hashable(line.get(name)) for name in axes)


def _hashable(value: Any) -> Any:
    """Return a value that compares with others of its axis: a number, or its text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None if value is None else str(value)


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
