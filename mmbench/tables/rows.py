"""The long tidy table: one row per table cell and metric, with the published value and its band.

The band is the measured value ± two standard errors of its difference from the published value.
"""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median, median_low
from typing import Any

from mmbench.errors import SEVERITY, Status
from mmbench.jobs.record import Record
from mmbench.jobs.store import Key
from mmbench.tables.records import Cell, grouped
from mmbench.tables.statistics import counting_sd, difference_se, z_value


@dataclass(frozen=True)
class Fits:
    """Summary of the certificates of all fits in some records."""

    #: Number of fits by status.
    statuses: Counter[str] = field(default_factory=Counter)
    #: Relative duality gaps of all certified fits; infinite if the dual bound is unknown.
    gaps: tuple[float, ...] = ()
    #: Largest relative gap and largest constraint violation.
    worst_gap: float | None = None
    worst_violation: float | None = None
    #: Tolerance of the relative gap; None if there is no tolerance or it is unknown.
    gap_tolerance: float | None = None
    #: Number of fits with coefficients at the machine's coefficient limit.
    n_limited: int = 0
    #: Number of fits by route (the algorithm that was used); empty for records without routes.
    routes: Counter[str] = field(default_factory=Counter)

    @property
    def median_gap(self) -> float | None:
        """Median of the relative gaps."""
        return median(self.gaps) if self.gaps else None

    @property
    def n_above(self) -> int | None:
        """Number of gaps above the tolerance."""
        if self.gap_tolerance is None or not self.gaps:
            return None
        return sum(gap > self.gap_tolerance for gap in self.gaps)

    def ended(self) -> str:
        """Return the number of fits by status as text, the most severe status first.

        Examples
        --------
        >>> Fits(Counter(optimal=7, trivial=1, one_class=2)).ended()
        '1 trivial, 2 one class, 7 optimal'
        >>> Fits(Counter(optimal=7), n_limited=3).ended()
        '7 optimal (3 at the coefficient limit)'
        """
        order = sorted(self.statuses, key=lambda status: -SEVERITY.index(Status(status)))
        ended = ", ".join(f"{self.statuses[s]} {s.replace('_', ' ')}" for s in order)
        return f"{ended} ({self.n_limited} at the coefficient limit)" if self.n_limited else ended

    def routes_text(self) -> str:
        """Return the number of fits by route as text, the most frequent route first.

        Examples
        --------
        >>> Fits(routes=Counter({"interior point": 25, "SMO": 210})).routes_text()
        'SMO 210, interior point 25'
        """
        return ", ".join(f"{route} {count}" for route, count in self.routes.most_common())


def routes_of(fits: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Return the number of fits by route; certificates without a route are not counted."""
    return Counter(str(fit["route"]) for fit in fits if fit.get("route"))


def fits_of(records: Iterable[Record]) -> Fits:
    """Return the summary of the certificates of all finished records."""
    records = [record for record in records if record.done]
    asked = (p for r in records for p in r.per_pair if p.get("status") != Status.UNCERTIFIED)
    stored = (pair["gap"] for pair in asked if "gap" in pair)
    gaps = tuple(math.inf if gap is None else gap for gap in stored)
    return Fits(
        sum((Counter(record.fits["statuses"]) for record in records), Counter()),
        gaps,
        max(gaps) if gaps else _largest(records, "worst_gap"),
        _largest(records, "worst_violation"),
        _largest(records, "gap_tolerance"),
        sum(
            pair.get("extra", {}).get("at_coefficient_limit", False)
            for record in records
            for pair in record.per_pair
        ),
        routes_of(pair for record in records for pair in record.per_pair),
    )


def _largest(records: Iterable[Record], name: str) -> float | None:
    values = (record.fits.get(name) for record in records)
    return max((value for value in values if value is not None), default=None)


#: Minimum number of grid values for counting selections at the two ends of the grid.
MIN_VALUES = 3


@dataclass(frozen=True)
class Selected:
    """The selected values of one parameter in one table cell."""

    name: str
    #: Lower median of the selected values over splits (and over pairs of classes if parameters are
    #: selected per pair), which is a value of the grid.
    median: float
    #: Number of selections.
    n: int
    #: Number of selections of the smallest value, and of the largest value of the grid.
    n_low: int = 0
    n_high: int = 0

    @property
    def note(self) -> str:
        """Numbers of selections at the ends of the grid, in words."""
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
    """Return the numeric parameters that were selected by grid search in the records of a cell.

    If all splits share parameters from another experiment, these parameters are returned too.
    """
    grids = {name: values for record in records for name, values in record.job.grid}
    made = (choice for record in records if record.job.shares for choice in _choices(record))
    grids |= {name: () for choice in made for name in choice}
    return [found for name, grid in grids.items() if (found := _selected(name, grid, records))]


def _choices(record: Record) -> list[dict]:
    """Return the selected parameters of a record: one dict, or one dict per pair of classes."""
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


#: Marks of the comparison with published values, see `with_marks`.
IN_BAND, ALL_IN_BAND, OUT_OF_BAND = "✓", "~", "✗"
#: Half width of the band in standard errors of the difference, plus a margin for rounding errors.
NOISE = 2 + 1e-9

#: Prefix of the remark that a published value is not compared.
NO_TARGET = "the published value is no target"

#: Metrics that are averaged over splits, each with a function that returns its value for a record.
AVERAGED: dict[str, Callable[[Record], float | None]] = {
    "accuracy_pct": lambda r: r.metrics["accuracy_pct"],
    "errors_count": lambda r: r.metrics["errors_count"],
    "errors_expected": lambda r: r.metrics.get("errors_expected"),
    "n_ties": lambda r: r.metrics.get("n_ties"),
    "seconds_selection": lambda r: r.cpu_seconds["selection"],
    "seconds_training": lambda r: r.cpu_seconds["training"],
    "seconds_test": lambda r: r.cpu_seconds["test"],
    "seconds_calibration": lambda r: r.cpu_seconds.get("calibration"),
    "n_support": lambda r: r.fits.get("n_support_mean"),
}

#: Metrics without a row if there is no measured value.
ASKED = {"seconds_calibration"}

#: Metrics of all fits of a table cell, each with the name of the attribute of `Fits`.
CERTIFICATES = {
    **{name: name for name in ("worst_violation", "worst_gap", "median_gap", "gap_tolerance")},
    "gaps_above_tolerance": "n_above",
}

#: Prefix of the metric of a selected parameter, as in ``selected_C``.
SELECTED = "selected_"

#: Metrics based on error counts, for which a single run has a binomial standard error.
COUNTED = {"accuracy_pct", "errors_count", "errors_expected"}

#: A row of a published table.
Published = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
    """A row of the long table: one metric of one table cell."""

    key: Key
    metric: str
    #: Most severe status of the table cell, and a remark on missing splits and fits with a warning.
    status: str
    note: str = ""
    #: Reason for which the published value is not compared; empty if there is none.
    objection: str = ""
    #: Mean, standard deviation and standard error over splits; None without results.
    measured: float | None = None
    sd: float | None = None
    se: float | None = None
    #: Number of splits.
    n: int | None = None
    #: Published value, and the uncertainty printed beside it.
    published: float | None = None
    published_spread: float | None = None
    #: Half width of the band around the measured value: two standard errors of the difference
    #: between measured and published value. None if the values are not compared.
    half_width: float | None = None
    #: Published minus measured value, in standard errors of this difference.
    z: float | None = None
    #: Whether the published value lies in the band; None if the values are not compared.
    in_band: bool | None = None
    #: Mark of the comparison, see `with_marks`; empty if the values are not compared.
    mark: str = ""


def build_rows(
    cells: Iterable[Cell], published: Iterable[Published], compare: bool = True
) -> list[Row]:
    """Return the long table of an experiment.

    `published` are the rows of a published table; with ``compare=False`` published values are shown
    without a comparison. If a table cell has no results, its measured value is None.
    """
    known = {
        (Key(p["dataset"], p["kernel"], p["degree"], p["machine"]), p["metric"]): p
        for p in published
    }
    return with_marks(row for cell in cells for row in _rows(cell, known, compare))


def with_marks(rows: Iterable[Row]) -> list[Row]:
    """Return the rows with marks of the comparison with published values.

    `IN_BAND`: the published value lies in the band, and the published value of another machine (for
    the same data set, kernel and metric) lies outside. `ALL_IN_BAND`: the published values of all
    machines lie in the band, so that the comparison does not distinguish the machines.
    `OUT_OF_BAND`: the published value lies outside the band.
    """
    rows = list(rows)
    targets = _by_place(row for row in rows if row.published is not None and not row.objection)

    def mark(row: Row) -> str:
        if row.in_band is None or row.measured is None:
            return ""
        if not row.in_band:
            return OUT_OF_BAND
        se = (row.half_width or 0.0) / 2
        rivals = (other.published for other in targets[_place(row)] if other.published is not None)
        differs = any(abs(z_value(row.measured, value, se)) > NOISE for value in rivals)
        return IN_BAND if differs else ALL_IN_BAND

    return [replace(row, mark=mark(row)) for row in rows]


def _place(row: Row) -> tuple[Key, str]:
    return row.key._replace(machine=""), row.metric


def _by_place(rows: Iterable[Row]) -> dict[tuple[Key, str], list[Row]]:
    """Return the rows of all machines by data set, kernel, training size and metric."""
    return grouped((_place(row), row) for row in rows)


def differences(rows: Iterable[Row]) -> tuple[int, int, int]:
    """Count the published differences between two machines, and the reproduced differences.

    The noise level is two standard errors of the difference of the two measured means. It is used
    for published differences too, because papers seldom state the meaning of their uncertainties.

    Returns three numbers: published differences above the noise level; the number of these with the
    same sign in the measurements; the number of these with a measured difference above the noise
    level too.
    """
    counts = [0, 0, 0]
    for compared in _by_place(row for row in rows if row.in_band is not None).values():
        for first, second in itertools.combinations(compared, 2):
            theirs = (first.published or 0.0) - (second.published or 0.0)
            ours = (first.measured or 0.0) - (second.measured or 0.0)
            noise = NOISE * math.hypot(first.se or 0.0, second.se or 0.0)
            if abs(theirs) > noise:
                counts[0] += 1
                counts[1] += theirs * ours > 0
                counts[2] += theirs * ours > 0 and abs(ours) > noise
    return counts[0], counts[1], counts[2]


def _rows(cell: Cell, known: Mapping[tuple[Key, str], Published], compare: bool) -> list[Row]:
    """Return the rows of a table cell; without results, rows of accuracy and error count only."""
    metrics = list(AVERAGED) if cell.done else ["accuracy_pct", "errors_count"]
    found = {metric: known.get((cell.key, metric)) for metric in metrics}
    if cell.planned.published_only:
        metrics = [metric for metric in metrics if found[metric]]
    rows = [_row(cell, metric, found[metric], compare) for metric in metrics]
    rows = [row for row in rows if row.metric not in ASKED or row.measured is not None]
    if not cell.done:
        return rows
    fits, n = fits_of(cell.done), len(cell.done)
    for metric, attribute in CERTIFICATES.items():
        if (value := getattr(fits, attribute)) is not None:
            rows.append(Row(cell.key, metric, cell.status, cell.note, measured=float(value), n=n))
    for own in selected(cell.done):
        name = f"{SELECTED}{own.name}"
        rows.append(Row(cell.key, name, cell.status, own.note, measured=own.median, n=own.n))
    return rows


def _row(cell: Cell, metric: str, published: Published | None, compare: bool) -> Row:
    row = Row(cell.key, metric, cell.status, cell.note, **_measured(cell, metric))
    if published is None:
        return row
    row = replace(row, published=published["value"], published_spread=published["std"])
    if not published["usable"]:
        return replace(row, objection=f"{NO_TARGET}: {published['reason']}")
    if not compare:
        return row
    if other_sizes := _other_sizes(cell, published):
        return replace(row, note="; ".join(filter(None, [row.note, other_sizes])))
    whole = not cell.failed and len(cell.counted) == len(cell.done)
    return _compared(cell, row, published["n_splits"]) if whole else row


def _measured(cell: Cell, metric: str) -> dict[str, Any]:
    """Return mean, standard deviation, standard error and number of the averaged splits."""
    values = [float(v) for v in map(AVERAGED[metric], cell.counted) if v is not None]
    if not values:
        return {}
    out: dict[str, Any] = {"measured": statistics.fmean(values), "n": len(values)}
    if len(values) > 1:
        out["sd"] = statistics.stdev(values)
        out["se"] = out["sd"] / math.sqrt(len(values))
    elif metric in COUNTED:
        out["se"] = _counting_deviation(cell, metric, out["measured"])
    return out


def _counting_deviation(cell: Cell, metric: str, mean: float) -> float:
    """Return the binomial standard deviation of one run at the mean error, in the metric's unit."""
    n = cell.done[0].metrics["n_test"]
    if metric == "accuracy_pct":
        return 100 / n * counting_sd((100 - mean) / (100 / n), n)
    return counting_sd(mean, n) if metric in COUNTED else 0.0


def _other_sizes(cell: Cell, published: Published) -> str:
    """Return a remark if the splits have other numbers of rows than the paper's; else empty."""
    for part, verb in (("n_train", "trained"), ("n_test", "tested")):
        sizes = {record.split[part] for record in cell.done}
        # Some papers state the number of rows for one pair of classes.
        pairs = {record.split.get(f"{part}_pair") for record in cell.done}
        if published[part] not in (None, *pairs) and sizes - {published[part]}:
            ours = " or ".join(str(size) for size in sorted(sizes))
            return f"{verb} on {ours} rows, the paper on {published[part]}: not comparable"
    return ""


def _compared(cell: Cell, row: Row, n_published: int | None) -> Row:
    """Return a row with its comparison; unchanged if a value or its standard error is unknown."""
    if row.measured is None or row.published is None or row.n is None or row.se is None:
        return row
    counting = _counting_deviation(cell, row.metric, row.measured)
    se = difference_se(row.sd, row.n, n_published, counting, cell.same_test_rows)
    z = z_value(row.measured, row.published, se)
    return replace(row, half_width=2 * se, z=z, in_band=abs(z) <= NOISE)
