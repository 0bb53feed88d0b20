"""The comparison of two results of the same experiment: an earlier and a later one.

docs/compare.md states what is compared, and the largest differences that agree. The standard error
s_j of the difference of the errors e1 and e2 in split j is

    s_j = ERRORS / 4 (1 + m_j)    with the same parameters, or m_j other parameters of pairs,
    s_j = sqrt(e1 + e2)           with other parameters, or another seed,

the second only if at most a tenth of the choices *of the cell* have other parameters. Limits are
4 s_j, and 4 sqrt(sum s_j^2) for the sums over a cell and over a machine. Each difference is a row
of the frame ``findings``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from mmbench.errors import Status
from mmbench.jobs.planned import Key, grouped
from mmbench.jobs.record import plain
from mmbench.results.cells import COUNTED, METRIC, MISSING, SELECTED, Row, all_fits, rows_of
from mmbench.results.columns import names, typed
from mmbench.results.frames import Results
from mmbench.results.pairwise import paired
from mmbench.results.statistics import z_value

__all__ = ["Changes"]

if TYPE_CHECKING:
    import pandas as pd

#: Columns that identify the same split in two results, with the same and with another seed.
SAME_RUN = ("data_hash", "split_hash", "repeat", "fold", "seed")
SAME_ROWS = SAME_RUN[:2]
#: Maximum difference in standard errors.
NOISE_SE = 4.0
#: Maximum difference of the errors in a split due to rounding: another BLAS may change the
#: predicted class of one or two test rows. The value is `NOISE_SE` standard errors.
ERRORS = 2.0
#: Maximum difference of a metric in a single run due to rounding, if the splits are unknown.
TOLERANCES = {"accuracy_pct": 0.1, "errors_count": ERRORS, "errors_expected": ERRORS}
#: Factor of `ERRORS` if a stopping rule ends a fit before the optimum: the end of the fit depends
#: more on rounding than the optimum.
STOPPED_FACTOR = 2.0
#: Maximum share of other parameters in a cell, or among the pairs of classes of a split, that
#: rounding may choose because the scores of two grid points are nearly equal.
NEAR_TIES = 0.1
#: Maximum relative change of another metric, such as the AUC, by another BLAS.
OTHER_SHARE = 0.05
#: Beginnings of the names of metrics that are not compared: times, numbers that are computed from
#: times, and others. Times may cause a warning.
TIMES = ("seconds_", "ms_", "exponent_of_seconds_", "ratio_")
PASSED_OVER = (*TIMES, SELECTED, "n_", "median_gap", "gap_tolerance")
#: Maximum change, by another BLAS, of the number of gaps above the tolerance.
MORE_GAPS = 2
CERTIFICATES = ("worst_gap", "worst_violation", "excess_median", "excess_max")
#: Maximum factor by which a certificate may grow, and maximum certificate that is always allowed.
#: For gaps, the gap tolerance replaces a smaller `NOISE`: rounding changes the last iteration.
CERTIFICATE_FACTOR, NOISE = 10.0, 1e-6
#: A ratio of times above `TIME_FACTOR` causes a warning if the longer time is at least `SHORTEST`
#: seconds.
TIME_FACTOR, SHORTEST = 3.0, 1.0
#: Statuses of fits with a result; another status is always a difference.
SOLVED = {Status.OPTIMAL, Status.STOPPED_BY_RULE, Status.TRIVIAL}
#: Statuses of proven optima. If w = 0 is as good as another solution up to rounding errors, the
#: processor decides between the two statuses.
PROVEN = {Status.OPTIMAL, Status.TRIVIAL}


#: How a cell is compared, or why it is not.
Way = Literal["split by split", "by values", "by means", "rows are missing"]
#: Subject of a difference or a warning.
Subject = Literal[
    "data", "missing experiment", "missing cell", "missing value", "missing splits", "more splits",
    "parameters", "splits", "status of splits", "status", "mean", "mean over rows",
    "sum over cells", "sum over cells by rows", "certificate", "band", "seconds",
]  # fmt: skip

AGREES, DIFFERS, NOTHING = 0, 1, 3


@dataclass(frozen=True, eq=False)
class Changes:
    """The comparison of two results.

    Attributes
    ----------
    cells : DataFrame
        One row per place, machine and metric of the earlier result: the values before and after,
        the difference with its standard error, z and p-value, the way of comparison, the allowed
        difference, and the verdict ("equal", "agrees", "differs", "missing" or "not compared").
    findings : DataFrame
        One row per difference or warning (column ``kind``).
    """

    cells: pd.DataFrame
    findings: pd.DataFrame

    @property
    def compared(self) -> pd.DataFrame:
        """Accuracies and error counts that are compared: rows of the frame `cells`."""
        counted = self.cells.metric.isin(COUNTED[:2])
        return self.cells[counted & ~self.cells.verdict.isin(["missing", "not compared"])]

    @property
    def skipped(self) -> pd.DataFrame:
        """Accuracies and error counts that are not compared, since rows of the data are missing."""
        counted = self.cells.metric.isin(COUNTED[:2])
        return self.cells[counted & (self.cells.verdict == "not compared")]

    @property
    def differences(self) -> pd.DataFrame:
        """Rows of the frame `findings` that are differences."""
        return self.findings[self.findings.kind == "difference"]

    @property
    def warnings(self) -> pd.DataFrame:
        """Rows of the frame `findings` that are warnings."""
        return self.findings[self.findings.kind == "warning"]

    @property
    def exit_code(self) -> int:
        """0 if the results agree, 1 if they differ, 3 if nothing was compared."""
        return NOTHING if not len(self.compared) else DIFFERS if len(self.differences) else AGREES


def compare(before: Results, after: Results, part: bool = False) -> Changes:
    """Compare two results of one experiment, cell by cell.

    If `part` is true, only the cells and splits of `after` are compared.
    """
    made = _Comparison(before, after, part)
    return _changes(made.cells, made.findings)


def absent(before: Results) -> Changes:
    """Return the comparison of an experiment that the later results lack."""
    found = {"kind": "difference", "subject": "missing experiment", "experiment": before.name}
    return _changes([], [found])


def joined(parts: Sequence[Changes]) -> Changes:
    """Return the comparisons of several experiments as one."""
    import pandas as pd

    frames = ([part.cells for part in parts], [part.findings for part in parts])
    return Changes(*(pd.concat(own, ignore_index=True) for own in frames))


def _changes(cells: list[dict[str, Any]], findings: list[dict[str, Any]]) -> Changes:
    import pandas as pd

    rows = {"changes": cells, "findings": findings}
    frames = (typed(n, pd.DataFrame(own, columns=names(n))) for n, own in rows.items())
    return Changes(*frames)


class _Comparison:
    """The rows of both frames, while they are made."""

    def __init__(self, before: Results, after: Results, part: bool) -> None:
        self.before, self.after, self.part = before, after, part
        self.cells: list[dict[str, Any]] = []
        self.findings: list[dict[str, Any]] = []
        self.sizes = [_by_dataset(side, ("n_train", "n_test")) for side in (before, after)]
        self.hashes = [_by_dataset(side, ("data_hash",)) for side in (before, after)]
        rows = grouped((row.key, row) for row in rows_of(before.cells))
        datasets = dict.fromkeys(key.dataset for key in rows)
        self.way_of_data = {name: self._way_of_data(name) for name in datasets}
        self.known, machines = set(after.cells.key), after.by_column
        for key, own in rows.items():
            if part and not (key in after.by_cell if key.dataset else key.machine in machines):
                continue
            if key not in self.known and any(row.measured is not None for row in own):
                self.find("missing cell", key)
            self._cell(key, own)
        self._machines()

    def find(self, subject: Subject, key: Key, warning: bool = False, /, **entries: Any) -> None:
        """Add a difference or a warning; `entries` are columns of the frame ``findings``."""
        kind = "warning" if warning else "difference"
        head = {"kind": kind, "subject": subject, "experiment": self.before.name}
        self.findings.append({**head, **key._asdict(), **entries})

    def _way_of_data(self, name: str) -> Way:
        """Return the way of comparison of a data set without common splits."""
        texts = ["; ".join(s.facts["deviations"].get(name, ())) for s in (self.before, self.after)]
        sizes, hashes = ([side.get(name, set()) for side in of] for of in (self.sizes, self.hashes))
        other = all(hashes) and not set.intersection(*hashes)
        known = any(key.dataset == name for key in self.after.keys)
        if not known or not name or (texts[0] == texts[1] and not other):
            return "by values"
        place = Key(name, "", None, "")
        self.find("data", place, True, before_text=texts[0], after_text=texts[1])
        missing = texts[0] != texts[1] and all(sizes) and not set.intersection(*sizes)
        return "rows are missing" if missing else "by means"

    def _cell(self, key: Key, rows: Sequence[Row]) -> None:
        """Compare all metrics of a cell."""
        ours, theirs = (side.by_cell.get(key, []) for side in (self.before, self.after))
        way, pairs, same_run = self.way_of_data[key.dataset], *_paired(ours, theirs)
        splits = None
        if way != "rows are missing" and pairs:
            whole = len(pairs) in (len(ours), len(theirs))
            way = "split by split" if whole else "by means"
            splits = _Splits(pairs, same_run)
            if same_run:
                self._splits(key, splits)
                self._parameters(key, splits)
        elif way == "by values" and ours and theirs:
            way = "by means"
        tolerances = [row.measured for row in rows if row.metric == "gap_tolerance"]
        for row in rows:
            if row.measured is not None:
                floor = tolerances[0] if tolerances and row.metric == "worst_gap" else NOISE
                self._metric(key, row, way, splits, floor)
        first = next((r for r in rows if r.metric == METRIC), rows[0])
        last = self.after.row(key, first.metric)
        if key.dataset and first.measured is not None and last.metric:
            self._whole_cell(key, first, last, way)

    def _whole_cell(self, key: Key, old: Row, new: Row, way: Way) -> None:
        """Compare the number of splits and the status of a cell."""
        if way == "rows are missing":
            return
        n_before, n_after = old.n, new.n
        if way == "split by split":
            n_before, n_after = (len(side.by_cell[key]) for side in (self.before, self.after))
        if n_before and n_after and n_before != n_after and not self.part:
            more = n_after > n_before
            subject: Subject = "more splits" if more else "missing splits"
            self.find(subject, key, more, before=n_before, after=n_after)
        solved = new.status in SOLVED
        if new.status not in (old.status, MISSING) and (way == "by values" or not solved):
            warning = solved and old.measured == new.measured
            texts = {"before_text": old.status, "after_text": new.status}
            self.find("status", key, warning, **texts)

    def _splits(self, key: Key, splits: _Splits) -> None:
        """Compare the errors, statuses and certificates of runs on the same splits."""
        faults = grouped(
            (subject, (old, new))
            for (old, new), se, near in zip(splits.pairs, splits.se, splits.near, strict=True)
            for subject in _faults(old, new, NOISE_SE * se, near)
        )
        if len(splits.other_zeros) > NEAR_TIES * len(splits.pairs):
            # rounding decides between equally good solutions of few splits
            faults.setdefault(("status", True), splits.other_zeros)
        for (name, warning), found in faults.items():
            subject: Subject = "status of splits" if name == "status" else "splits"
            counts = {"count": len(found), "total": len(splits.pairs), "metric": name}
            self.find(subject, key, warning, **counts, **_first(found, name))

    def _parameters(self, key: Key, splits: _Splits) -> None:
        """Compare the parameters of runs on the same splits."""
        moved = [pair for pair, others in zip(splits.pairs, splits.others, strict=True) if others]
        if moved:
            equal = all(old.errors_count == new.errors_count for old, new in moved)
            few = splits.moved <= max(1, NEAR_TIES * splits.choices)
            counts = {"count": splits.moved, "total": splits.choices}
            texts = _first(moved, "parameters")
            self.find("parameters", key, few or equal, **counts, **texts)

    def _metric(self, key: Key, old: Row, way: Way, splits: _Splits | None, floor: float) -> None:
        """Compare one metric of a cell; `floor` is the certificate that is always allowed."""
        name, new = old.metric, self.after.row(key, old.metric)
        values = {"before": old.measured, "after": new.measured}
        row = {"experiment": self.before.name, **key._asdict(), "metric": name, **values}
        row |= {"way": way, "verdict": "not compared", "n": old.n}
        self.cells.append(row)
        if new.measured is None:
            if not name.startswith(PASSED_OVER):
                row["verdict"] = "missing"
                if key in self.known:  # else the whole cell is missing
                    self.find("missing value", key, metric=name, **values)
            return
        row["difference"] = new.measured - old.measured
        shortest, longest = sorted(values.values())
        if name.startswith("seconds_") and longest >= max(SHORTEST, TIME_FACTOR * shortest):
            self.find("seconds", key, True, metric=name, **values)
        # a part is compared by metrics for which both sides have the same splits
        whole = not self.part or old.n == new.n or name in COUNTED[:2]
        if name in CERTIFICATES:
            grew = _grew(new.measured, old.measured, floor)
            row["verdict"] = "differs" if grew else "agrees"
            if grew:
                self.find("certificate", key, metric=name, **values)
        elif whole and way != "rows are missing" and not name.startswith(PASSED_OVER):
            self._value(key, row, old, new, splits)

    def _value(
        self, key: Key, row: dict[str, Any], old: Row, new: Row, splits: _Splits | None
    ) -> None:
        """Compare a metric that measures the predictions, and complete the row of the frame."""
        name, way = old.metric, row["way"]
        if name not in COUNTED and way == "by means" and old.se is None:
            return  # the effect of other splits is unknown
        if splits is not None and splits.done and way == "split by split" and name in COUNTED[:2]:
            row["n"] = len(splits.done)
            if old.n != new.n:  # the means of the frame ``cells`` are over different splits
                row |= splits.means(name)
            if name == METRIC:
                row |= self._chance(key, splits)
        elif way == "by means" and None not in (old.se, new.se):
            se = math.hypot(old.se, new.se)
            z = z_value(0.0, row["difference"], se)
            p = math.erfc(abs(z) / math.sqrt(2))
            row |= {"se": se, "z": z, "p": p, "test": "standard errors of both means"}
        row["allowed"] = self._allowed(old, new, way, splits, row.get("se"))
        differs = not abs(row["difference"]) <= row["allowed"]
        by_rows = row.get("by_rows", False) and abs(row["z"]) > NOISE_SE
        if differs or by_rows:
            parts = {part: row.get(part) for part in ("metric", "before", "after", "allowed", "se")}
            self.find("mean" if differs else "mean over rows", key, **parts)
        agrees = "agrees" if round(row["difference"], 6) else "equal"
        row["verdict"] = "differs" if differs or by_rows else agrees
        left = old.in_band and new.in_band is False and (old.n == new.n or not self.part)
        if name in COUNTED[:2] and left:
            row["left_band"] = True
            ends = {"before": old.measured, "after": new.measured}
            self.find("band", key, way == "by means", metric=name, **ends)

    def _chance(self, key: Key, splits: _Splits) -> dict[str, Any]:
        """Return the test of the difference in accuracy of a cell."""
        rows = [(new, old) for old, new in splits.done]
        gaps = [new.accuracy_pct - old.accuracy_pct for new, old in rows]
        own = paired((self.after, key), (self.before, key), rows, gaps)
        z = z_value(0.0, own.d, own.se) if own.tested else None
        by_rows = own.tested and not math.isnan(own.V_rows)
        return {"se": own.se, "z": z, "p": own.p, "test": str(own.how), "by_rows": by_rows}

    def _allowed(
        self, old: Row, new: Row, way: Way, splits: _Splits | None, se: float | None
    ) -> float:
        """Return the maximum difference of a metric in a cell."""
        name, n = old.metric, old.n or 1
        if name == "gaps_above_tolerance":
            return MORE_GAPS + max(0.0, old.measured - new.measured)  # fewer are allowed
        if name in COUNTED:
            allowed = TOLERANCES[name] / math.sqrt(n)
            if splits is not None and way == "split by split":
                allowed = max(allowed, splits.allowed(name))
        else:
            # the decisions of w = 0 are constant
            zeros = len(splits.other_zeros) / len(splits.pairs) if splits is not None else 0.0
            allowed = (OTHER_SHARE + zeros) * abs(old.measured)
        return max(allowed, NOISE_SE * se) if way == "by means" and se is not None else allowed

    def _machines(self) -> None:
        """Compare the sums over the cells of each machine.

        The cells of one data set, such as two kernels, may have the same errors; therefore, their
        standard errors are added. Data sets are independent.
        """
        counted = (r for r in self.cells if r["metric"] in COUNTED[:2] and "allowed" in r)
        machines = grouped(((row["machine"], row["metric"]), row) for row in counted)
        for (machine, name), rows in machines.items():
            by_rows = [r | {"allowed": NOISE_SE * r["se"]} for r in rows if r.get("by_rows")]
            subjects: dict[Subject, Any] = {"sum over cells": rows}
            for subject, own in (subjects | {"sum over cells by rows": by_rows}).items():
                parts = grouped((row["dataset"], row["allowed"]) for row in own).values()
                total, allowed = sum(row["difference"] for row in own), math.hypot(*map(sum, parts))
                if len(own) > 1 and abs(total) > allowed:
                    entries = {"after": total, "allowed": allowed, "count": len(own)}
                    self.find(subject, all_fits(machine), metric=name, **entries)


class _Splits:
    """The splits of a cell that both results have, as pairs of rows of the frame ``splits``."""

    def __init__(self, pairs: Sequence[tuple[Row, Row]], same_run: bool) -> None:
        self.pairs, self.same_run = pairs, same_run
        #: Number of other parameters per split, and number of all selected parameters: one per
        #: split, or one per pair of classes.
        self.others, totals = zip(*(_other_choices(*pair) for pair in pairs), strict=True)
        self.moved, self.choices = sum(self.others), sum(totals)
        few = self.moved <= NEAR_TIES * self.choices
        #: Whether rounding may have chosen the other parameters of a split.
        self.near = list[bool]()
        #: Standard error of the difference of the errors in each split.
        self.se = list[float]()
        for (old, new), k, n in zip(pairs, self.others, totals, strict=True):
            near = few and n == 1 and k > 0 and {old.status, new.status} <= SOLVED
            self.near.append(near or not same_run)
            factor = STOPPED_FACTOR if old.status == Status.STOPPED_BY_RULE else 1.0
            factor += k if n > 1 and k <= NEAR_TIES * n else 0
            errors = (old.errors_count or 0) + (new.errors_count or 0) if self.near[-1] else 0
            self.se.append(max(ERRORS / NOISE_SE * factor, math.sqrt(errors)))
        self.done = [pair for pair in pairs if None not in [row.accuracy_pct for row in pair]]

    @property
    def other_zeros(self) -> list[tuple[Row, Row]]:
        """Splits whose status differs, but is a proven optimum in both results."""
        return [(o, n) for o, n in self.pairs if {o.status, n.status} == PROVEN]

    def means(self, name: str) -> dict[str, float]:
        """Return the means of a metric over the splits with results, and their difference."""
        sides = zip(*self.done, strict=True)
        old, new = (fmean(getattr(row, name) for row in rows) for rows in sides)
        return {"before": old, "after": new, "difference": new - old}

    def allowed(self, name: str) -> float:
        """Return the maximum mean difference of the accuracy or of the errors over the splits."""
        units = [100 / (old.n_test or 1) if name == METRIC else 1.0 for old, _ in self.pairs]
        sums = math.hypot(*(se * unit for se, unit in zip(self.se, units, strict=True)))
        return NOISE_SE * sums / len(self.pairs)


def _by_dataset(results: Results, columns: Sequence[str]) -> dict[str, set[tuple]]:
    """Return the values of some columns of the splits that occur in each data set."""
    splits = results.splits[["dataset", *columns]].dropna().drop_duplicates()
    rows = splits.itertuples(index=False, name=None)
    return {name: set(own) for name, own in grouped((row[0], row[1:]) for row in rows).items()}


def _paired(ours: Sequence[Row], theirs: Sequence[Row]) -> tuple[list[tuple[Row, Row]], bool]:
    """Return the splits that both results have, and whether they also have the same seeds."""
    for columns in (SAME_RUN, SAME_ROWS):
        old, new = (
            {tuple(getattr(row, n) for n in columns): row for row in rows if row.split_hash}
            for rows in (ours, theirs)
        )
        if len(old) == len(ours) and len(new) == len(theirs):
            common = [(row, new[at]) for at, row in old.items() if at in new]
            if common:
                return common, columns is SAME_RUN
    return [], True


def _first(pairs: Sequence[tuple[Row, Row]], name: str) -> dict[str, Any]:
    """Return a column of the first of some splits, as columns of the frame ``findings``."""
    kind = "_text" if name in ("status", "parameters") else ""
    values = (getattr(row, name) for row in pairs[0])
    before, after = map(_text, values) if name == "parameters" else values
    at = {"repeat": pairs[0][0].repeat, "fold": pairs[0][0].fold}
    return {**at, f"before{kind}": before, f"after{kind}": after}


def _text(parameters: Any) -> str:
    return json.dumps(plain(parameters), sort_keys=True) if parameters else ""


def _other_choices(old: Row, new: Row) -> tuple[int, int]:
    """Return the numbers of other parameters and of all parameters that are selected in a split.

    Parameters are selected once, or once per pair of classes.
    """
    ours, theirs = (row.parameters or {} for row in (old, new))
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return sum(_text(a) != _text(b) for a, b in zip(ours, theirs, strict=True)), len(ours)
    return int(_text(ours) != _text(theirs)), 1


def _faults(old: Row, new: Row, allowed: float, near: bool) -> Iterable[tuple[str, bool]]:
    """Yield the columns in which a split differs, and whether this is only a warning."""
    solved = {old.status, new.status} <= SOLVED
    if old.status != new.status and not (near and solved) and not _same_optimum(old, new):
        yield "status", solved and old.errors_count == new.errors_count
    counts = old.errors_count, new.errors_count
    if counts[0] is not None and (counts[1] is None or abs(counts[1] - counts[0]) > allowed):
        yield "errors_count", False
    if not near and _grew(new.worst_gap, old.worst_gap, old.gap_tolerance or NOISE):
        yield "worst_gap", False
    if _grew(new.worst_violation, old.worst_violation, NOISE):
        yield "worst_violation", False


def _same_optimum(old: Row, new: Row) -> bool:
    """Return whether both results prove the same optimum of each binary problem."""
    fits = [[fit.get("objective") for fit in row.certificates or ()] for row in (old, new)]
    if not {old.status, new.status} <= PROVEN or not fits[0] or len(fits[0]) != len(fits[1]):
        return False
    share = max(NOISE, old.gap_tolerance or 0.0)
    return all(
        a is not None and b is not None and math.isclose(a, b, rel_tol=share, abs_tol=NOISE)
        for a, b in zip(*fits, strict=True)
    )


def _grew(found: float | None, reference: float | None, floor: float) -> bool:
    """Return whether a certificate is lost or above the allowed value; false without reference."""
    if reference is None:
        return False
    return found is None or not found <= max(NOISE, floor, CERTIFICATE_FACTOR * reference)
