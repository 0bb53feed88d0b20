"""Data frames of an experiment's results: the split table (one row per split) and the long table
(means over splits).

In this package, a table cell is a combination of data set, kernel, degree of a polynomial kernel,
machine and training size. A record is the stored result of one table cell on one train/test split.
A fit is the training of a binary classifier on one pair of classes. The certificate of a fit states
the duality gap and the largest constraint violation.

The split table has one row per table cell and split, with settings, metrics, CPU seconds and
certificates. The long table has one row per table cell and metric. Each row of the long table
contains the mean of the metric over splits, and the published value if there is one.

The comparison band is an interval around the measured value. The half width of the comparison band
is two standard errors of the difference between the measured and the published value. A published
value inside the comparison band is said to agree with the measured value.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property
from statistics import fmean, median, median_low, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from mmbench.errors import FINISHED, Status, UserError, did_you_mean, worst
from mmbench.jobs.record import Record, merged
from mmbench.jobs.store import Arrays, Key, PlannedCell, grouped
from mmbench.machines import alias_of
from mmbench.results.published import STANDARD_ERROR
from mmbench.results.statistics import counting_sd, difference_se, fit_line, pair_points, z_value

if TYPE_CHECKING:
    import pandas as pd

#: `MISSING` is the status of a table cell if the record of a planned run is missing.
#: `PUBLISHED_ONLY` is the status of a table cell without planned runs, which shows only a published
#: value.
MISSING = "missing"
PUBLISHED_ONLY = "published_only"
#: Text of the note on classifiers from other packages, which have no certificates.
NO_CERTIFICATES = "its fits have no certificate"
#: First words of a sentence that states why a published value is not compared with measured values.
NO_TARGET = "the published value is no target"

#: Name of the confusion matrix in the list of metrics. All metrics except the confusion matrix are
#: single numbers.
CONFUSION = "confusion_matrix"
#: Names of the accuracy: `ACCURACY` in configurations, `METRIC` in the long table.
ACCURACY, METRIC = "accuracy", "accuracy_pct"
#: Prefix of metric names in the long table. The metric ``selected_C`` is the selected value of the
#: parameter C.
SELECTED = "selected_"
#: Prefix of the metric names for the regression of accuracy on margin ratio. The regression has one
#: point per separable pair of classes.
LINE = "regression_"

#: Stages of a job whose CPU times are measured. Only jobs with calibrated probabilities have the
#: stage "calibration".
STAGES, CALIBRATION = ("selection", "training", "test"), "calibration"
SECONDS = tuple(f"seconds_{stage}" for stage in (*STAGES, CALIBRATION))
#: Columns that identify the code of a machine by a version and a fingerprint (a hash of the
#: sources); see `mmbench.jobs.identity`.
CODE = ("version", "fingerprint")
_METRICS = (METRIC, "errors_count", "errors_expected", "n_ties")
_CERTIFICATES = ("gap_tolerance", "worst_gap", "worst_violation")
#: Columns that identify a record. The split table and the table with one row per test row begin
#: with these columns.
PLACE = ("experiment", "dataset", "kernel", "degree", "size", "machine", "repeat", "fold")
SPLIT_COLUMNS = (
    *(*PLACE, "seed", "data_hash", "split_hash", "status", "reason", *_METRICS),
    *("n_train", "n_test", "parameters", *SECONDS, "n_fits", "fits", "routes", *_CERTIFICATES),
    *(*CODE, "record"),
)
#: Columns of the long table in a CSV file. If there are several training sizes, the column ``size``
#: is inserted after ``degree``.
COLUMNS = (
    *("experiment", "dataset", "kernel", "degree", "machine", "metric"),
    *("measured", "sd", "se", "n", "published", "published_spread"),
    *("half_width", "z", "in_band", "mark", *CODE, "status", "note"),
    *("half_width_published_se", "in_band_published_se"),
)
#: Types of the numeric and boolean columns of the long table.
TYPES = {
    **dict.fromkeys(("measured", "sd", "se", "published", "published_spread", "z"), "float64"),
    **dict.fromkeys(("half_width", "half_width_published_se"), "float64"),
    **dict.fromkeys(("in_band", "in_band_published_se"), "boolean"),
    "n": "Int64",
}
#: Columns of the split table that are averaged over splits for the long table.
AVERAGED = (*_METRICS, *SECONDS, "n_support")
#: Metrics that are computed from error counts. For these metrics, the binomial distribution gives a
#: standard error even for a single run.
COUNTED = _METRICS[:3]
#: Metrics of the certificates of a table cell: constraint violations, duality gaps and their
#: tolerance.
CERTIFIED = ("worst_violation", "worst_gap", "median_gap", "gap_tolerance", "gaps_above_tolerance")

#: Marks of the comparison with published values; see `as_long_table`.
IN_BAND, ALL_IN_BAND, OUT_OF_BAND = "✓", "~", "✗"
#: Half width of the comparison band, in standard errors: 2 plus a margin for rounding errors.
NOISE = 2 + 1e-9
#: If a parameter grid has at least `MIN_VALUES` values, tables state how often the smallest and the
#: largest value were selected.
MIN_VALUES = 3

#: Type that identifies a split: (repeat, fold, seed).
Split = tuple[int, int, int]
#: Type of a row of a published table, and type of a row of the long table (see `rows_of`).
Published = Mapping[str, Any]
Row = Any


# -- one row per split -----------------------------------------------------------------------------


def split_row(experiment: str, key: Key, record: Record) -> dict[str, Any]:
    """Return the row of the split table for the record of a finished or failed job.

    The keys of the row are the columns `SPLIT_COLUMNS`, ``n_support`` and ``source``. The columns
    ``parameters``, ``fits`` and ``routes`` contain JSON. ``parameters`` contains the fixed and the
    selected parameters of the machine. If parameters are selected per pair of classes,
    ``parameters`` is a list with one object per pair. ``fits`` contains the number of trained
    binary classifiers with each status, and ``routes`` the number that each algorithm trained.
    ``repeat`` and ``fold`` are counted from 1.

    ``kernel`` is empty for a classifier of another package. ``version`` and ``fingerprint``
    identify the code of the machine, and are empty for the records of early versions of mmbench.
    ``n_support`` is the mean number of support vectors per pair of classes, and ``source`` is the
    record itself.
    """
    fixed = {**alias_of(record.job.machine).params, **dict(record.job.params)}
    chosen, fits = record.selection.get("params") or {}, record.fits
    repeat, fold, seed = record.at
    return {
        "experiment": experiment,
        **key._asdict(),
        "kernel": key.kernel if record.job.has_kernel else "",
        "repeat": repeat + 1,
        "fold": fold + 1,
        "seed": seed,
        "data_hash": record.job.dataset_hash,
        "split_hash": record.split.get("digest"),
        "status": record.status,
        "reason": record.reason,
        **{name: record.metrics.get(name) for name in _METRICS},
        **{name: record.split.get(name) for name in ("n_train", "n_test")},
        "parameters": json.dumps(merged(chosen, fixed)),
        **{name: record.cpu_seconds.get(name.removeprefix("seconds_")) for name in SECONDS},
        "n_support": fits.get("n_support_mean"),
        "n_fits": fits.get("n"),
        "fits": json.dumps(fits.get("statuses", {})),
        "routes": json.dumps(fits.get("routes", {})),
        **{name: fits.get(name) for name in _CERTIFICATES},
        **{name: record.code.get(name) for name in CODE},
        "record": record.key,
        "source": record,
    }


class Cell:
    """The results of a table cell: its planned splits, its records, and its rows of the split
    table.

    `records` contains the records of finished and failed jobs, one per split. `experiment` is the
    `Experiment` to which the table cell belongs.

    The attribute `splits` contains the rows of the split table, one per record. The attribute
    `counted` contains the rows of the split table over which the means in the long table are
    computed. If `experiment.include_failed` is false, the means exclude splits on which the
    training of a binary classifier failed.

    The attributes `done` and `failed` contain the records of finished jobs and of failed jobs. The
    attribute `fits` is a summary of all trained binary classifiers, as returned by the function
    `certificates`. The attribute `selected` contains one row of the long table per selected
    parameter, as returned by the function `selected`.

    The first true condition in this list determines the attribute `status`:

    - No run is planned: `PUBLISHED_ONLY`.
    - A job failed: the most severe status of the failed jobs.
    - A planned split has no record: `MISSING`.
    - Otherwise: the most severe status of the trained binary classifiers.
    """

    def __init__(self, planned: PlannedCell, records: Sequence[Record], experiment: Any):
        self.planned, self.key, self.records = planned, planned.key, records
        self.include_failed, self.arrays = experiment.include_failed, experiment.arrays
        self.splits = [split_row(experiment.name, self.key, record) for record in records]
        self.done = [record for record in records if record.done]
        self.failed = [record for record in records if not record.done]
        kept = {r.key for r in self.done if self.include_failed or not _has_failed_fit(r)}
        self.counted = [row for row in self.splits if row["record"] in kept]
        self.fits, self.selected = certificates(self.done), selected(self.done)
        self._values: dict[str, list[tuple[Split, float | str]]] = {}
        if planned.published_only:
            self.status = PUBLISHED_ONLY
        elif self.failed:
            self.status = worst(record.status for record in self.failed)
        else:
            # if the number of splits is unknown, `n_splits` is 0, and at least one record is
            # expected
            missing = len(records) < max(planned.n_splits, 1)
            self.status = MISSING if missing else worst(self.fits["statuses"])

    @cached_property
    def note(self) -> str:
        """Note on missing splits and unusual statuses of binary classifiers, or an empty text."""
        if self.planned.published_only:
            return ""
        if not self.records:
            return "not run"
        n_done, n_splits, parts = len(self.done), self.planned.n_splits, []
        if n_done < n_splits:
            causes = Counter(record.reason or record.status for record in self.failed)
            lost = [f"{count} failed ({reason})" for reason, count in causes.items()]
            absent = n_splits - len(self.records)
            lost += [f"{absent} not run"] if absent else []
            several = f"{n_done} of {n_splits} splits done, {', '.join(lost)}"
            parts.append(several if n_splits > 1 else f"failed ({next(iter(causes))})")
        statuses = self.fits["statuses"]
        if set(statuses) == {Status.UNCERTIFIED}:
            return "; ".join([*parts, NO_CERTIFICATES])
        doubtful = [(s, n) for s, n in sorted(statuses.items()) if s not in FINISHED]
        texts = [f"{n} {status.replace('_', ' ')}" for status, n in doubtful]
        if splits := sum(map(_has_failed_fit, self.done)):
            how = "included in the means" if self.include_failed else "not counted"
            texts.append(f"{splits} of {n_done} splits {how}")
        parts += [f"of {statuses.total()} fits {', '.join(texts)}"] if texts else []
        return "; ".join(parts)

    def row(self, metric: str, **values: Any) -> dict[str, Any]:
        """Return a row of the long table for a metric.

        The entries `values` are added to the row.
        """
        row = {"key": self.key, "metric": metric, "status": self.status, "note": self.note}
        return row | {part: self.code(part) for part in CODE} | values

    def code(self, name: str) -> str:
        """Return the distinct values of ``version`` or ``fingerprint`` (as `name` states) in the
        finished records, as text.
        """
        return " ".join(dict.fromkeys(str(done.code.get(name, "")) for done in self.done)).strip()

    def values(self, metric: str) -> list[tuple[Split, float | str]]:
        """Return pairs (split, value of a metric) for the splits over which the mean is computed.

        If the metric cannot be computed, the value is a text that names the missing input, as
        returned by the function `value_of`.
        """
        if metric not in self._values:
            self._values[metric] = found = []
            for row in self.counted:
                record, stored = row["source"], metric in row
                value = row[metric] if stored else value_of(metric, record, self.arrays(record))
                found += [] if value is None else [(record.at, value)]
        return self._values[metric]

    @cached_property
    def constant(self) -> int:
        """Number of records in which, for each pair of classes, all test rows have equal decision
        values.
        """
        stored = (self.arrays(row["source"]) for row in self.counted)
        values = [a["decisions"] for a in stored if "decisions" in a and "scores" not in a]
        return sum(len(f) > 1 and not np.ptp(f, axis=0).any() for f in values)

    @cached_property
    def confusion(self) -> dict[str, list[int]]:
        """Confusion matrix, summed over splits.

        The dict maps each true class to a list of counts, with one count per predicted class.
        """
        totals: Counter[tuple[str, str]] = Counter()
        for row in self.counted:
            arrays = self.arrays(row["source"])
            if "predicted" in arrays:
                both = (arrays[name].astype(str).tolist() for name in ("y_test", "predicted"))
                totals.update(zip(*both, strict=True))
        labels = sorted({label for pair in totals for label in pair}, key=_by_size)
        return {true: [totals[true, taken] for taken in labels] for true in labels}


def _has_failed_fit(record: Record) -> bool:
    return bool(record.fits["statuses"].get(Status.FAILED))


def _by_size(label: str) -> tuple[bool, float, str]:
    """Return a sort key that orders numeric class labels by value, before all other labels."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def value_of(name: str, record: Record, arrays: Arrays) -> float | str:
    """Return the value of a metric for the predictions of one record.

    If the metric cannot be computed, return a text that names the missing input, for example
    "probabilities". The argument `name` is a key of `mmbench.selection.metrics.METRICS`. The
    argument `arrays` contains the stored arrays of the record, such as predictions.
    """
    from mmbench.machines.base.voting import ovr_scores, summed_decisions
    from mmbench.selection.metrics import METRICS

    metric = METRICS[name]
    if "predicted" not in arrays:
        return "predictions"
    truth = arrays["y_test"].astype(str)
    if metric.source == "predictions":
        if len(truth) == 1:
            return "a second test row"
        return metric.compute(truth, arrays["predicted"].astype(str), np.unique(truth))
    if "classes" in arrays:
        classes = arrays["classes"].astype(str)
    elif not record.per_pair:
        return "the classes"
    else:  # classes in sorted order, collected from the pairs of classes
        pairs = [tuple(map(str, fit["pair"])) for fit in record.per_pair]
        classes = np.array(list(dict.fromkeys([pairs[0][0], *(second for _, second in pairs)])))
    scored = metric.source == "scores"
    # Older records contain logits as scores, which do not rank the rows if there are more than two
    # classes. If a classifier from another package only has the decision values 1 and -1, these
    # values are predictions, and are not used as scores.
    logits = len(classes) > 2 and "probabilities" in arrays and not record.job.calibrate
    if scored and "scores" in arrays and not logits:
        given = arrays["scores"]
    elif scored and (record.status != Status.UNCERTIFIED or (abs(arrays["decisions"]) != 1).any()):
        scores = summed_decisions if len(classes) == 2 else ovr_scores
        given = scores(arrays["decisions"].astype(float), len(classes))
    elif "probabilities" in arrays:
        given = arrays["probabilities"]
    else:
        return "decision values" if scored else "probabilities"
    value = metric.compute(truth, given, classes)
    return metric.needs if math.isnan(value) else value


def check_metrics(names: Sequence[str]) -> None:
    """Raise UserError if a metric is unknown or occurs twice."""
    from mmbench.selection.metrics import METRICS

    known = [*METRICS, CONFUSION]
    for k, name in enumerate(names):
        if name not in known:
            raise UserError(f"unknown metric {name!r}{did_you_mean(name, known)}")
        if name in names[:k]:
            raise UserError(f"metric {name!r} occurs twice")


# -- certificates and selected parameters ----------------------------------------------------------


def certificates(records: Iterable[Record]) -> dict[str, Any]:
    """Summarize all binary classifiers in `records`: numbers of classifiers by status and by
    training algorithm, duality gaps, and constraint violations.

    If a certificate has no dual bound, the duality gap is infinite. The value of ``median_gap`` is
    None if no binary classifier has a certificate. The value of ``gap_tolerance`` is None if no
    record states a tolerance for the duality gap.
    """
    records = list(records)
    pairs = [pair for record in records for pair in record.per_pair]
    stored = [p["gap"] for p in pairs if p.get("status") != Status.UNCERTIFIED and "gap" in p]
    gaps = [math.inf if gap is None else gap for gap in stored]

    def largest(name: str) -> float | None:
        values = (record.fits.get(name) for record in records)
        return max((value for value in values if value is not None), default=None)

    tolerance = largest("gap_tolerance")
    above = None if tolerance is None else sum(gap > tolerance for gap in gaps)
    return {
        "statuses": sum((Counter(record.fits["statuses"]) for record in records), Counter()),
        "routes": routes_text(pairs),
        "n_gaps": len(gaps),
        "n_limited": sum(p.get("extra", {}).get("at_coefficient_limit", False) for p in pairs),
        "worst_violation": largest("worst_violation"),
        "worst_gap": max(gaps) if gaps else largest("worst_gap"),
        "median_gap": median(gaps) if gaps else None,
        "gap_tolerance": tolerance,
        "gaps_above_tolerance": above if gaps else None,
    }


def routes_text(fits: Iterable[Mapping[str, Any]]) -> str:
    """Return a text with the number of binary classifiers that each algorithm trained, the largest
    number first.

    The key ``route`` of a certificate names the algorithm. Certificates without this key are not
    counted.

    Examples
    --------
    >>> routes_text([{"route": "SMO"}, {"route": "interior point"}, {"route": "SMO"}, {}])
    'SMO 2, interior point 1'
    """
    counts = Counter(str(fit["route"]) for fit in fits if fit.get("route"))
    return ", ".join(f"{route} {count}" for route, count in counts.most_common())


def selected(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return rows of the long table for the numeric parameters that grid search selected, one row
    per parameter.

    ``measured`` is the lower median of the selected values over all splits. If parameters are
    selected per pair of classes, the median is over all splits and pairs. For an even number of
    values, the lower median is the smaller of the two middle values, and thus a value of the grid.
    ``text`` states the median, and how often the smallest and the largest value of the grid were
    selected. If all splits use the same parameters, which were selected in another experiment,
    these parameters have rows too.
    """
    choices = [(record, choice) for record in records for choice in choices_of(record)]
    grids = {name: values for record in records for name, values in record.job.grid}
    grids |= {name: () for record, choice in choices if record.job.shares for name in choice}
    rows = []
    for name, grid in grids.items():
        every = [choice[name] for _, choice in choices if name in choice]
        values = [value for value in every if isinstance(value, int | float)]
        numbers = [value for value in grid if isinstance(value, int | float)]
        if not values:
            continue
        n, middle, notes, texts = len(every), median_low(values), [], []
        ends = [("lower", "min", min), ("upper", "max", max)] if len(numbers) >= MIN_VALUES else []
        for word, end, extreme in ends:
            if count := values.count(extreme(numbers)):
                notes.append(f"at the {word} end of its grid in {count} of {n} choices")
                texts.append(f"{end} {count}/{n}" if n > 1 else end)
        for word, count in Counter(str(v) for v in every if not isinstance(v, int | float)).items():
            notes.append(f"{word} in {count} of {n} choices, which the median leaves out")
            texts.append(f"{word} {count}/{n}")
        text = f"{name} {middle:.3g}" + (f" ({', '.join(texts)})" if texts else "")
        row = {"metric": f"{SELECTED}{name}", "measured": float(middle), "n": len(values)}
        rows.append({**row, "note": "; ".join(notes), "text": text})
    return rows


def choices_of(record: Record) -> list[dict]:
    """Return the parameters that were selected for a record, as a list of dicts.

    If parameters are selected per pair of classes, the list has one dict per pair. If the same
    parameters are selected for all pairs, the list has a single dict.
    """
    params = record.selection.get("params") or {}
    return params if isinstance(params, list) else [params]


# -- one row per table cell and metric -------------------------------------------------------------


def long_table(
    cells: Iterable[Cell],
    published: Iterable[Published] = (),
    compare: bool = True,
    metrics: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the long table of an experiment, with one row per metric and table cell.

    A table cell is a combination of data set, kernel, degree, machine and training size.

    The columns of the long table are ``key``, the columns of `COLUMNS` from ``metric`` on, and
    ``objection``. ``key`` is the `Key` of a table cell. If a published value is not usable for a
    comparison, ``objection`` states the reason. ``sd`` is the standard deviation over `n` splits,
    and ``se`` is the standard error of the mean. For the regression line of accuracy on margin
    ratio, `n` is the number of separable pairs of classes.

    ``half_width`` is two standard errors of the difference between the measured and the published
    value, and thus half the width of the comparison band. ``z`` is the published value minus the
    measured value, divided by the standard error of the difference. The columns
    ``half_width_published_se`` and ``in_band_published_se`` contain the half width of a second
    interval around the measured value, and whether this interval contains the published value. For
    the second interval, the number that the paper prints after ± is taken as the standard error of
    the published mean. If the number after ± is probably not a standard error, both columns of the
    second interval are empty.

    The argument `published` contains the rows of a published table. If `compare` is false, the long
    table contains published values, but no comparison with measured values. The argument `metrics`
    names additional metrics to be computed from stored predictions.
    """
    known = {
        (Key(p["dataset"], p["kernel"], p["degree"], p["machine"]), p["metric"]): p
        for p in published
    }
    rows = [row for cell in cells for row in _rows(cell, known, compare)]
    rows += [row for cell in cells if cell.done for row in _line_rows(cell, known)]
    rows += [row for cell in cells if cell.done for row in _metric_rows(cell, metrics)]
    return as_long_table(rows)


def as_long_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return rows as a long table, and add a column of comparison marks.

    The mark of a row states which published values lie in the comparison band of the row:

    - `OUT_OF_BAND`: the published value of the row lies outside the band.
    - `ALL_IN_BAND`: the band contains the published values of all compared machines on the same
      data set, kernel and metric, so that the comparison does not distinguish the machines.
    - `IN_BAND`: the band contains the published value of the row, but not the published value of
      every other compared machine.

    The mark is empty if the published value of the row is not compared with the measured value.
    """
    import pandas as pd

    columns = ["key", *COLUMNS[COLUMNS.index("metric") :], "objection"]
    texts = dict.fromkeys([name for name in columns[1:] if name not in TYPES], "")
    frame = pd.DataFrame([texts | row for row in rows], columns=columns).astype(TYPES)
    # a table that was read from a file may have a value in ``in_band`` although the measured or the
    # published value is missing
    frame["in_band"] = frame.in_band.where(frame.measured.notna() & frame.published.notna())
    rivals = grouped((_place(row), row.published) for row in rows_of(frame[frame.in_band.notna()]))

    def mark(row: Row) -> str:
        se, others = (row.half_width or 0.0) / 2, rivals.get(_place(row), ())
        differs = any(abs(z_value(row.measured, other, se)) > NOISE for other in others)
        return OUT_OF_BAND if not row.in_band else IN_BAND if differs else ALL_IN_BAND

    return frame.assign(mark=["" if r.in_band is None else mark(r) for r in rows_of(frame)])


def rows_of(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a data frame as named tuples, with None for missing values."""
    return list(frame.astype(object).where(frame.notna(), None).itertuples(name="Row"))


@cache
def absent_row() -> Row:
    """Return an empty row of the long table, for a table cell that is not in the plan."""
    return rows_of(as_long_table([{"key": None, "metric": "", "status": PUBLISHED_ONLY}]))[0]


def _rows(cell: Cell, known: Mapping[tuple[Key, str], Published], compare: bool) -> list[dict]:
    """Return the rows of the long table for one table cell.

    A table cell without finished jobs has only rows for the accuracy and the error count.
    """
    rows = []
    for metric in AVERAGED if cell.done else AVERAGED[:2]:
        published, row = known.get((cell.key, metric)), cell.row(metric, **_mean(cell, metric))
        unknown = cell.planned.published_only and published is None
        if not unknown and (metric != SECONDS[-1] or "measured" in row):
            rows.append(_compared(cell, row, published, compare))
    fits = {name: cell.fits[name] for name in CERTIFIED if cell.fits[name] is not None}
    rows += [cell.row(name, measured=value, n=len(cell.done)) for name, value in fits.items()]
    return rows + [cell.row(**parameter) for parameter in cell.selected]


def _metric_rows(cell: Cell, metrics: Sequence[str]) -> list[dict]:
    """Return the rows of the long table for metrics that are computed from stored predictions.

    If some records lack the input from which a metric is computed, the note of the metric's row
    names this input.
    """
    from mmbench.selection.metrics import METRICS

    rows = []
    for name in metrics:
        if name == CONFUSION:
            rows += [
                cell.row(f"{name}[{true},{taken}]", measured=count, n=len(cell.counted))
                for true, counts in cell.confusion.items()
                for taken, count in zip(cell.confusion, counts, strict=True)
            ]
        elif name != METRIC:
            lacking = Counter(array for _, array in cell.values(name) if isinstance(array, str))
            n = len(cell.counted)
            notes = [f"{name}: {k} of {n} records lack {array}" for array, k in lacking.items()]
            if METRICS[name].source == "scores" and (k := cell.constant):
                notes.append(f"{name}: {k} of {n} records have constant decision values")
            # a row with a note on missing inputs omits the note `NO_CERTIFICATES`, which is already
            # in the row of the accuracy
            own = [] if notes and cell.note == NO_CERTIFICATES else [cell.note]
            note = "; ".join(filter(None, own + notes))
            rows.append(cell.row(name, **_mean(cell, name), note=note))
    return rows


def _line_rows(cell: Cell, known: Mapping[tuple[Key, str], Published]) -> list[dict]:
    """Return the rows of the long table for the least-squares line of accuracy on margin ratio.

    If the regression line of the table cell is not published, the list is empty.
    """
    record = min(cell.done, key=lambda record: record.at)
    arrays = cell.arrays(record) if (cell.key, f"{LINE}slope") in known else {}
    if "decisions" not in arrays:
        return []
    points = pair_points(record.per_pair, arrays)
    if (line := fit_line(points)) is None:
        return []
    errors = (line.stderr, line.intercept_stderr, None, None)
    values = zip(("slope", "intercept", "r", "p"), line, errors, strict=False)
    n = int(points.separable.sum())  # the line has one point per separable pair of classes
    rows = (cell.row(f"{LINE}{name}", measured=v, se=error, n=n) for name, v, error in values)
    # There is no comparison band, for two reasons: the paper states no standard errors, and the
    # published and the measured line are dependent, since both are fitted to the same pairs of
    # classes.
    return [_compared(cell, row, known.get((cell.key, row["metric"])), False) for row in rows]


def _mean(cell: Cell, metric: str) -> dict[str, Any]:
    """Return the mean of a metric over splits, with standard deviation, standard error and number
    of splits.
    """
    values = [float(value) for _, value in cell.values(metric) if not isinstance(value, str)]
    if not values:
        return {}
    n, mean = len(values), fmean(values)
    if n > 1:
        sd = stdev(values)
        return {"measured": mean, "n": n, "sd": sd, "se": sd / math.sqrt(n)}
    se = _counting_deviation(cell, metric, mean) if metric in COUNTED else None
    return {"measured": mean, "n": n, "se": se}


def _counting_deviation(cell: Cell, metric: str, mean: float) -> float:
    """Return the binomial standard deviation of a metric on one test set, for the expected value
    `mean`. If the metric does not count errors, return 0.
    """
    n = cell.done[0].metrics["n_test"]
    if metric == METRIC:
        return 100 / n * counting_sd((100 - mean) / (100 / n), n)
    return counting_sd(mean, n) if metric in COUNTED else 0.0


def _compared(
    cell: Cell, row: dict[str, Any], published: Published | None, compare: bool
) -> dict[str, Any]:
    """Add the published value to a row of the long table. If this value can be compared with the
    measured value, also add the comparison band.
    """
    if published is None:
        return row
    row |= {"published": published["value"], "published_spread": published["std"]}
    if not published["usable"]:
        return row | {"objection": f"{NO_TARGET}: {published['reason']}"}
    for part, verb in (("n_train", "trained"), ("n_test", "tested")) if compare else ():
        sizes = {record.split[part] for record in cell.done}
        # Some papers state the number of rows of one pair of classes, not of all classes. The
        # published number is therefore compared with both numbers of rows in the records.
        pairs = {record.split.get(f"{part}_pair") for record in cell.done}
        if published[part] not in (None, *pairs) and sizes - {published[part]}:
            ours = " or ".join(str(size) for size in sorted(sizes))
            note = f"{verb} on {ours} rows, the paper on {published[part]}: not comparable"
            return row | {"note": "; ".join(filter(None, [row["note"], note]))}
    lacks = cell.failed or len(cell.counted) < len(cell.done)
    if not compare or lacks or None in map(row.get, ("measured", "published", "n", "se")):
        return row
    counting = _counting_deviation(cell, row["metric"], row["measured"])
    official = all(record.job.split.rule == "official" for record in cell.records)
    se = difference_se(row.get("sd"), row["n"], published["n_splits"], counting, official)
    z = z_value(row["measured"], row["published"], se)
    row |= {"half_width": 2 * se, "z": z, "in_band": abs(z) <= NOISE}
    if published["std_is"] == STANDARD_ERROR:
        se = math.hypot(row["se"], published["std"])
        within = abs(z_value(row["measured"], row["published"], se)) <= NOISE
        row |= {"half_width_published_se": 2 * se, "in_band_published_se": within}
    return row


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
