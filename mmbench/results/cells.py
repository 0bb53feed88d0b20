"""The frame ``cells``: one row per place, machine and metric, with means over splits.

Rows with an empty data set summarize all fits of a machine. The comparison band around a measured
value has a half width of two standard errors of the difference from the published value, which
agrees if it is inside.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from statistics import fmean, median, median_low, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.errors import FINISHED, Status, UserError, did_you_mean, worst
from mmbench.jobs.planned import Key, PlannedCell, grouped
from mmbench.results.columns import names, typed
from mmbench.results.published import STANDARD_ERROR
from mmbench.results.splits import SECONDS
from mmbench.results.statistics import counting_sd, difference_se, z_value

if TYPE_CHECKING:
    import pandas as pd

#: `MISSING` is the status of a cell if the record of a planned run is missing. `PUBLISHED_ONLY` is
#: the status of a cell without planned runs, which shows only a published value.
MISSING, PUBLISHED_ONLY = "missing", "published_only"
#: Text of the note on classifiers from other packages, which have no certificates.
NO_CERTIFICATES = "its fits have no certificate"
#: First words of a sentence that states why a published value is not compared with measured values.
NO_TARGET = "the published value is no target"
#: Name of the confusion matrix in the list of metrics. All metrics except the confusion matrix are
#: single numbers.
CONFUSION = "confusion_matrix"
#: Names of the accuracy: `ACCURACY` in configurations, `METRIC` in the frames.
ACCURACY, METRIC = "accuracy", "accuracy_pct"
#: Prefix of metric names. The metric ``selected_C`` is the selected value of the parameter C.
SELECTED = "selected_"
_METRICS = (METRIC, "errors_count", "errors_expected", "n_ties")
#: Columns of the frame ``splits`` that are averaged over splits.
AVERAGED = (*_METRICS, *SECONDS, "n_support")
#: Metrics that are computed from error counts. For these metrics, the binomial distribution gives a
#: standard error even for a single run.
COUNTED = _METRICS[:3]
#: Metrics of the certificates of a cell: constraint violations, duality gaps and their tolerance.
CERTIFIED = ("worst_violation", "worst_gap", "median_gap", "gap_tolerance", "gaps_above_tolerance")
#: Metrics of the certificates of all fits of a machine, in addition to `CERTIFIED`.
TOTALS = ("n_gaps", "at_coefficient_limit")
#: Metrics of machines that state a lower bound on the accuracy of the worse class: the bound, the
#: accuracy of the worse class on test rows, and the share of the splits in which it is below the
#: bound, in per cent.
BOUND, WORST_CLASS = "worst_case_accuracy_pct", "worst_class_accuracy_pct"
BELOW_BOUND = "below_worst_case_pct"
#: Metric of the M4: share of the training rows in its reduced problem, in per cent.
KEPT = "kept_pct"
#: Headings of the metrics that are read from records and not computed from predictions. Without the
#: end ``_pct``, their names are also known.
STORED = {
    METRIC: "Accuracy (%)",
    "errors_count": "Errors on the test part",
    "errors_expected": "Expected errors on the test part, if tied votes were drawn at random",
    "n_ties": "Test rows with tied votes",
    WORST_CLASS: "Accuracy of the worse class on test rows (%)",
    BOUND: "Lower bound on the accuracy of the worse class (%)",
    BELOW_BOUND: "Splits whose worse class is below its lower bound (%)",
    KEPT: "Training rows in the reduced problem (%)",
    "n_support": "Support vectors per pair of classes",
    **{name: f"CPU seconds per split: {name.removeprefix('seconds_')}" for name in SECONDS},
    "worst_gap": "Largest duality gap",
    "median_gap": "Median duality gap",
    "worst_violation": "Largest violation of a constraint",
}
#: Marks of the comparison with published values; see `marked`.
IN_BAND, ALL_IN_BAND, OUT_OF_BAND = "✓", "~", "✗"
#: Half width of the comparison band, in standard errors: 2 plus a margin for rounding errors.
NOISE = 2 + 1e-9
#: If a parameter grid has at least `MIN_VALUES` values, tables state how often the smallest and the
#: largest value were selected.
MIN_VALUES = 3

#: Type of a row of a published table, and type of a row of a frame (see `rows_of`).
Published = Mapping[str, Any]
Row = Any
#: Function that returns the value of a metric on a split, or a text that names the missing input.
Value = Any


def all_fits(machine: str) -> Key:
    """Return the key of the rows that summarize all fits of a machine."""
    return Key("", "", None, machine)


def key_at(row: Row, machine: str | None = None) -> Key:
    """Return the cell of a row of a frame, by default of the machine in the row."""
    name = row.machine if machine is None else machine
    return Key(row.dataset, row.kernel, row.degree, name, row.size)


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a data frame as named tuples, with None for missing values."""
    import pandas as pd

    values: list[Any] = [frame.index]
    for _, column in frame.items():  # operations on the whole frame take ten times as long
        known = column.to_numpy(object)
        values.append(np.where(pd.isna(known), None, known))
    return [*map(_row_type(*frame)._make, zip(*values, strict=True))]


@cache
def _row_type(*columns: str) -> Any:
    return namedtuple("Row", ["Index", *columns], rename=True)


def name_in_frame(metric: str) -> str:
    """Return the name of a metric in the frame ``cells``, such as "accuracy_pct" for "accuracy"."""
    return long if (long := f"{metric}_pct") in STORED else metric


def check_metrics(metrics: Sequence[str]) -> None:
    """Raise UserError if a metric is unknown or occurs twice."""
    from mmbench.selection.metrics import METRICS

    known = [*METRICS, *(name.removesuffix("_pct") for name in STORED if name != METRIC), CONFUSION]
    for k, name in enumerate(metrics):
        if name not in known and name not in STORED:
            raise UserError(f"unknown metric {name!r}{did_you_mean(name, known)}")
        if name_in_frame(name) in map(name_in_frame, metrics[:k]):
            raise UserError(f"metric {name!r} occurs twice")


# -- certificates and selected parameters ----------------------------------------------------------


def certificates(splits: Iterable[Row]) -> dict[str, Any]:
    """Summarize the binary classifiers of some splits: numbers by status and by algorithm, duality
    gaps, and constraint violations.

    If a certificate has no dual bound, the duality gap is infinite. The value of ``median_gap`` is
    None if no binary classifier has a certificate. The value of ``gap_tolerance`` is None if no
    record states a tolerance for the duality gap. Values that are None are left out.
    """
    splits = list(splits)
    fits = [fit for split in splits for fit in split.certificates or ()]
    known = [f for f in fits if f.get("status") != Status.UNCERTIFIED and "gap" in f]
    gaps = [math.inf if fit["gap"] is None else fit["gap"] for fit in known]

    def largest(name: str) -> float | None:
        values = (getattr(split, name) for split in splits)
        return max((value for value in values if value is not None), default=None)

    tolerance = largest("gap_tolerance")
    above = None if tolerance is None else sum(gap > tolerance for gap in gaps)
    extras = [fit["extra"] for fit in fits if fit.get("extra")]
    limited = sum(extra.get("at_coefficient_limit", False) for extra in extras)
    found = {
        "worst_violation": largest("worst_violation"),
        "worst_gap": max(gaps) if gaps else largest("worst_gap"),
        "median_gap": median(gaps) if gaps else None,
        "gap_tolerance": tolerance,
        "gaps_above_tolerance": above if gaps else None,
        "n_gaps": len(gaps) if fits else None,
        "at_coefficient_limit": limited if fits else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def kept_share(splits: Iterable[Row]) -> float | None:
    """Return the mean share of the training rows that the M4 keeps in its reduced problem, in per
    cent; None if the machine does not reduce the problem.
    """
    first = ((s, s.certificates[0].get("extra", {})) for s in splits if s.certificates)
    shares = [100 * extra["kept"] / split.n_train for split, extra in first if "kept" in extra]
    return fmean(shares) if shares else None


def worst_case(splits: Iterable[Row]) -> dict[str, list[float]]:
    """Return the values of `BOUND`, `WORST_CLASS` and `BELOW_BOUND` on the splits that have both
    the bound and the accuracy of the worse class.
    """
    pairs = ((getattr(s, BOUND, None), getattr(s, WORST_CLASS, None)) for s in splits)
    known = [(b, worst) for b, worst in pairs if b is not None and worst is not None]
    if not known:
        return {}
    below = [100.0 * (worst < b) for b, worst in known]
    return {BOUND: [b for b, _ in known], WORST_CLASS: [w for _, w in known], BELOW_BOUND: below}


def counts(splits: Iterable[Row], column: str) -> Counter[str]:
    """Return the sum of a column of counts, ``fits`` (by status) or ``routes``, over splits."""
    total: Counter[str] = Counter()
    for split in splits:
        for name, n in (getattr(split, column) or {}).items():  # `update` takes four times as long
            total[name] += n
    return +total


def routes_text(routes: Counter[str]) -> str:
    """Return the number of binary classifiers that each algorithm trained, the largest first.

    Examples
    --------
    >>> routes_text(Counter({"interior point": 1, "SMO": 2}))
    'SMO 2, interior point 1'
    """
    return ", ".join(f"{route} {count}" for route, count in routes.most_common())


def counts_text(counts: Iterable[tuple[str, float]]) -> str:
    """Return the number of binary classifiers or splits with each status as text.

    Examples
    --------
    >>> counts_text([("optimal", 2), ("time_limit", 1)])
    '2 optimal, 1 time limit'
    """
    return ", ".join(f"{n:.0f} {status.replace('_', ' ')}" for status, n in counts if n)


def selected(splits: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows for the numeric parameters that grid search selected, one row per parameter.

    ``measured`` is the lower median of the selected values over all splits. If parameters are
    selected per pair of classes, the median is over all splits and pairs. For an even number of
    values, the lower median is the smaller of the two middle values, and thus a value of the grid.
    ``text`` states the median, and how often the smallest and the largest value of the grid were
    selected; ``at_ends`` is the sum of both numbers, and ``choices`` the number of all selections,
    including words. If all splits use the same parameters, which were selected in another
    experiment, these parameters have rows too.
    """
    choices = [(split, choice) for split in splits for choice in split.chosen or ()]
    grids = {name: grid for split in splits for name, grid in (split.grid or {}).items()}
    taken = (choice for split, choice in choices if (split.selection or {}).get("median"))
    grids |= {name: () for choice in taken for name in choice}
    rows = []
    for name, grid in grids.items():
        every = [choice[name] for _, choice in choices if name in choice]
        values = [value for value in every if isinstance(value, int | float)]
        numbers = [value for value in grid if isinstance(value, int | float)]
        if not values:
            continue
        n, middle, notes, texts = len(every), median_low(values), [], []
        ends = [("lower", "min", min), ("upper", "max", max)] if len(numbers) >= MIN_VALUES else []
        at_ends = sum(values.count(extreme(numbers)) for _, _, extreme in ends)
        for word, end, extreme in ends:
            if count := values.count(extreme(numbers)):
                notes.append(f"at the {word} end of its grid in {count} of {n} choices")
                texts.append(f"{end} {count}/{n}" if n > 1 else end)
        for word, count in Counter(str(v) for v in every if not isinstance(v, int | float)).items():
            notes.append(f"{word} in {count} of {n} choices, which the median leaves out")
            texts.append(f"{word} {count}/{n}")
        text = f"{name} {middle:.3g}" + (f" ({', '.join(texts)})" if texts else "")
        row = {"metric": f"{SELECTED}{name}", "measured": float(middle), "n": len(values)}
        row |= {"note": "; ".join(notes), "text": text, "at_ends": at_ends, "choices": n}
        rows.append(row)
    return rows


# -- one cell --------------------------------------------------------------------------------------


def finished(splits: Iterable[Row]) -> list[Row]:
    """Return the splits with a result."""
    return [split for split in splits if split.accuracy_pct is not None]


def has_failed_fit(split: Row) -> bool:
    """Return whether the training of a binary classifier failed on a split."""
    return bool((split.fits or {}).get(Status.FAILED))


def counted(splits: Iterable[Row], include_failed: bool) -> list[Row]:
    """Return the splits over which means are computed: finished ones, by default without those on
    which a fit failed.
    """
    return [s for s in finished(splits) if include_failed or not has_failed_fit(s)]


def status_of(planned: PlannedCell, splits: Sequence[Row]) -> str:
    """Return the status of a cell.

    The first true condition determines the status: no run is planned (`PUBLISHED_ONLY`); a job
    failed (the most severe status of the failed jobs); a planned split has no record (`MISSING`).
    Otherwise, the status is the most severe status of the fits.
    """
    if planned.published_only:
        return PUBLISHED_ONLY
    if failed := [split.status for split in splits if split.accuracy_pct is None]:
        return worst(failed)
    # if the number of splits is unknown, `n_splits` is 0, and at least one record is expected
    missing = len(splits) < max(planned.n_splits, 1)
    return MISSING if missing else worst(counts(splits, "fits"))


def note_of(planned: PlannedCell, splits: Sequence[Row], include_failed: bool) -> str:
    """Return a note on missing splits and unusual statuses of fits, or an empty text."""
    if planned.published_only:
        return ""
    if not splits:
        return "not run"
    done, parts = finished(splits), []
    n_done, n_splits = len(done), planned.n_splits
    if n_done < n_splits:
        failed = (split for split in splits if split.accuracy_pct is None)
        causes = Counter(split.reason or split.status for split in failed)
        lost = [f"{count} failed ({reason})" for reason, count in causes.items()]
        absent = n_splits - len(splits)
        lost += [f"{absent} not run"] if absent else []
        several = f"{n_done} of {n_splits} splits done, {', '.join(lost)}"
        parts.append(several if n_splits > 1 else f"failed ({next(iter(causes))})")
    statuses = counts(done, "fits")
    if set(statuses) == {Status.UNCERTIFIED}:
        return "; ".join([*parts, NO_CERTIFICATES])
    doubtful = [(s, n) for s, n in sorted(statuses.items()) if s not in FINISHED]
    texts = [counts_text(doubtful)] if doubtful else []
    if some := sum(map(has_failed_fit, done)):
        how = "included in the means" if include_failed else "not counted"
        texts.append(f"{some} of {n_done} splits {how}")
    parts += [f"of {statuses.total()} fits {', '.join(texts)}"] if texts else []
    return "; ".join(parts)


def mean_of(values: Sequence[float], metric: str, n_test: int | None) -> dict[str, Any]:
    """Return the mean of a metric over splits, with standard deviation, standard error and number
    of splits.
    """
    if not values:
        return {}
    n, mean = len(values), fmean(values)
    if n > 1:
        sd = stdev(values)
        return {"measured": mean, "n": n, "sd": sd, "se": sd / math.sqrt(n)}
    se = counting_deviation(metric, mean, n_test) if metric in COUNTED else None
    return {"measured": mean, "n": n, "se": se}


def counting_deviation(metric: str, mean: float, n_test: int | None) -> float:
    """Return the binomial standard deviation of a metric on one test set, for the expected value
    `mean`. If the metric does not count errors, return 0.
    """
    if metric not in COUNTED or n_test is None:
        return 0.0
    if metric == METRIC:
        return 100 / n_test * counting_sd((100 - mean) / (100 / n_test), n_test)
    return counting_sd(mean, n_test)


def compared(
    row: dict[str, Any],
    splits: Sequence[Row],
    published: Published | None,
    compare: bool,
    whole: bool,
) -> dict[str, Any]:
    """Add the published value to a row. If the published value can be compared with the measured
    value, also add the comparison band. `whole` states whether all finished splits are counted.
    """
    if published is None:
        return row
    row |= {"published": published["value"], "published_spread": published["std"]}
    if not published["usable"]:
        return row | {"objection": f"{NO_TARGET}: {published['reason']}"}
    done = finished(splits)
    for part, verb in (("n_train", "trained"), ("n_test", "tested")) if compare else ():
        sizes = {getattr(split, part) for split in done}
        # Some papers state the number of rows of one pair of classes, not of all classes. The
        # published number is therefore compared with both numbers of rows.
        pairs = {getattr(split, f"{part}_pair") for split in done}
        if published[part] not in (None, *pairs) and sizes - {published[part]}:
            ours = " or ".join(str(size) for size in sorted(sizes))
            note = f"{verb} on {ours} rows, the paper on {published[part]}: not comparable"
            return row | {"note": "; ".join(filter(None, [row["note"], note]))}
    lacks = len(done) < len(splits) or not whole
    if not compare or lacks or None in map(row.get, ("measured", "published", "n", "se")):
        return row
    counting = counting_deviation(row["metric"], row["measured"], done[0].n_test)
    official = all(split.test["rule"] == "official" for split in splits)
    if official and row["metric"] not in COUNTED:  # the sampling error of the test rows is unknown
        return row
    se = difference_se(row.get("sd"), row["n"], published["n_splits"], counting, official)
    row = in_band(row, se)
    if published["std_is"] == STANDARD_ERROR:
        se = math.hypot(row["se"], published["std"])
        within = abs(z_value(row["measured"], row["published"], se)) <= NOISE
        row |= {"half_width_published_se": 2 * se, "in_band_published_se": within}
    return row


def in_band(row: dict[str, Any], se: float) -> dict[str, Any]:
    """Add the comparison band for the standard error `se` of the difference to a row."""
    z = z_value(row["measured"], row["published"], se)
    return row | {"half_width": 2 * se, "z": z, "in_band": abs(z) <= NOISE}


# -- the frame -------------------------------------------------------------------------------------


def as_cells(rows: Iterable[tuple[Key, Mapping[str, Any]]]) -> pd.DataFrame:
    """Return pairs (key, entries of the row) as the frame ``cells``; see `marked`."""
    import pandas as pd

    entries = [{**row, **key._asdict()} for key, row in rows]
    return marked(typed("cells", pd.DataFrame(entries, columns=names("cells"))))


def marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame ``cells`` with the columns ``key`` and ``mark``.

    The mark of a row states which published values lie in the comparison band of the row:

    - `OUT_OF_BAND`: the published value of the row lies outside the band.
    - `ALL_IN_BAND`: the band contains the published values of all compared machines on the same
      data set, kernel and metric, so that the comparison does not distinguish the machines.
    - `IN_BAND`: the band contains the published value of the row, but not the published value of
      every other compared machine.

    The mark is empty if the published value of the row is not compared with the measured value.
    """
    # a table that was read from a file may have a value in ``in_band`` although the measured or the
    # published value is missing
    in_band = frame.in_band.where(frame.measured.notna() & frame.published.notna())
    keys = np.fromiter(map(key_at, rows_of(frame[[*Key._fields]])), object, len(frame))
    frame, compared = frame.assign(in_band=in_band, key=keys), in_band.notna()
    rows = rows_of(frame[compared])
    rivals = grouped((_place(row), row.published) for row in rows)

    def mark(row: Row) -> str:
        se, others = (row.half_width or 0.0) / 2, rivals.get(_place(row), ())
        differs = any(abs(z_value(row.measured, other, se)) > NOISE for other in others)
        return OUT_OF_BAND if not row.in_band else IN_BAND if differs else ALL_IN_BAND

    marks = map(mark, rows)
    return frame.assign(mark=[next(marks) if known else "" for known in compared])


@cache
def absent_row() -> Row:
    """Return an empty row of the frame ``cells``, for a cell that is not in the plan."""
    return rows_of(as_cells([(all_fits(""), {"metric": "", "status": PUBLISHED_ONLY})]))[0]


def _place(row: Row) -> tuple[Key, str]:
    return row.key._replace(machine=""), row.metric


def differences(frame: pd.DataFrame) -> tuple[int, ...]:
    """Count the published differences between machines, and how many of them the measured values
    reproduce.

    A difference is taken between the values of two machines on the same data set, kernel and
    metric.

    The noise level is two standard errors of the difference between two measured means. Published
    differences are compared with the noise level of the measured means, since papers seldom state
    the meaning of their uncertainties.

    Returns three counts:

    1. published differences above the noise level;
    2. cases of 1 in which the measured difference has the same sign;
    3. cases of 2 in which the measured difference is also above the noise level.
    """
    counts = np.zeros(3, dtype=int)
    compared = rows_of(frame[frame.in_band.notna()])
    for rows in grouped((_place(row), row) for row in compared).values():
        for first, second in itertools.combinations(rows, 2):
            theirs, ours = first.published - second.published, first.measured - second.measured
            noise = NOISE * math.hypot(first.se or 0.0, second.se or 0.0)
            same_sign = theirs * ours > 0
            if abs(theirs) > noise:
                counts += 1, same_sign, same_sign and abs(ours) > noise
    return tuple(counts.tolist())
