"""Compare the table of a run with the reference table of an earlier full run.

Two table cells are compared in one of four ways:

- Split by split, if both sides have ``splits.csv`` (``mmbench export``) and the splits have equal
  hashes: test errors, status and certificates of each split.
- By values, if the cells have the same splits (equal hashes or, without hashes, equal deviations of
  the data). Runs are deterministic: accuracies, errors and statuses must be equal up to rounding by
  another BLAS. Gaps may grow up to the gap tolerance or by a factor, violations by a factor. No
  measured value may leave the band of its published value.
- By means, if the rows differ: the difference is at most `NOISE_SE` standard errors.
- Not at all, if one side lacks rows of the data set ("only 1560 of ...") that the other side has.

A difference in times is only a warning. The output states how many cells were compared in each way,
and which cells differ. The exit code is 0 if all compared cells agree, 1 if a cell differs or is
missing, and 3 if no cell could be compared.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

#: Columns that identify a cell, besides the metric; "size" exists if there are several sizes.
PLACE = ["experiment", "dataset", "kernel", "degree", "size", "machine"]
#: Columns that identify the same split in two runs.
SPLIT = ["data_hash", "split_hash", "seed", "repeat", "fold"]
#: Tolerances for one run, since another BLAS may change the predicted class of one or two test
#: rows. If the splits are known, the tolerance of the accuracy is at least the share of two test
#: rows. The tolerance of a mean over n runs is smaller by the factor sqrt(n).
ERRORS = 2.0
TOLERANCES = {"accuracy_pct": 0.1, "errors_count": ERRORS}
#: Maximum factor of the tolerance of the number of errors in a split, if a stopping rule ends a fit
#: before the optimum: the end of the fit then depends more on rounding than the optimum.
STOPPED_FACTOR = 2
#: Another BLAS may decide near ties of grid points otherwise. If at most MOVED_SHARE of the splits
#: of a machine have other parameters, the numbers of errors in these splits may differ by NOISE_SE
#: standard errors of the difference of two counts. If parameters are selected per pair of classes,
#: and at most MOVED_SHARE of the pairs in a split have other parameters, the tolerance of the
#: number of errors is added once more for each of these pairs.
MOVED_SHARE = 0.1
#: Maximum difference between means over different splits, in standard errors. About one in ten full
#: runs has a cell with a larger difference.
NOISE_SE = 4.0
#: Maximum relative change of another metric, such as the AUC, by another BLAS.
OTHER_SHARE = 0.05
#: Metrics that are not compared, or only cause a warning. Each name begins with one of these texts.
PASSED_OVER = ("seconds_", "selected_", "n_", "median_gap", "gap_tolerance")
#: Maximum change, by another BLAS, of the number of gaps above the tolerance.
MORE_GAPS = 2
CERTIFICATES = ("worst_gap", "worst_violation")
#: Maximum factor by which a certificate may grow, and maximum certificate that is always allowed.
#: For gaps, the gap tolerance replaces a smaller NOISE, since rounding changes the last iteration.
CERTIFICATE_FACTOR, NOISE = 10.0, 1e-6
#: A ratio of times above TIME_FACTOR causes a warning if the longer time is at least SHORTEST s.
TIME_FACTOR, SHORTEST = 3.0, 1.0
#: Statuses of fits with a result; the status of a cell may change with its splits.
SOLVED = {"optimal", "stopped_by_rule", "trivial"}
#: Statuses of proven optima. If w = 0 is as good as another solution up to rounding errors, the
#: processor decides between the two statuses; errors and gaps are compared in any case.
PROVEN = {"optimal", "trivial"}
BY_SPLIT, BY_VALUE, BY_MEAN = "split by split", "by values", "by means"
MISSING = "rows are missing"
AGREES, DIFFERS, NOT_COMPARED = 0, 1, 3

Key = tuple[str, ...]


class Comparison:
    """The comparison of the cells of a run with the cells of a reference, and its outcome."""

    def __init__(
        self,
        table: pd.DataFrame,
        reference: pd.DataFrame,
        splits: pd.DataFrame | None = None,
        reference_splits: pd.DataFrame | None = None,
    ) -> None:
        self.differences: list[str] = []
        self.warnings: list[str] = []
        self.left_band: list[str] = []
        #: Number of accuracies and errors per way of comparison.
        self.compared: Counter[str] = Counter()
        #: Number of accuracies and errors that are not compared, by data set and reason.
        self.skipped: Counter[tuple[str, str]] = Counter()
        names = [name for name in PLACE if name in reference]
        if missing := [name for name in names if name not in table]:
            self.differences.append(f"the table has no column {missing[0]}, the reference has")
            return
        self._ways(table, reference)
        if splits is not None and reference_splits is not None:
            self._splits(_by_place(splits, names), _by_place(reference_splits, names))
        cells = _by_place(table, [*names, "metric"])
        references = _by_place(reference, [*names, "metric"])
        for key, [row] in references.items():
            if pd.notna(row.measured):
                [asked] = references.get((*key[:-1], "gap_tolerance"), [None])
                tolerance = asked.measured if asked and row.metric == "worst_gap" else NOISE
                name, found = " ".join(filter(None, key)), cells.get(key, [None])[0]
                self._cell(key[:-1], name, found, row, tolerance)

    def _ways(self, table: pd.DataFrame, reference: pd.DataFrame) -> None:
        """Choose the way of comparison of each data set, given the deviations of the data."""
        self._of_data: dict[str, str] = {}
        self._of_cell: dict[Key, str] = {}
        #: Mean of the errors per split that are allowed because of near ties of a selection.
        self._of_ties: dict[Key, float] = {}
        #: Mean difference of the errors per split, due to the splits with other parameters.
        self._of_moved: dict[Key, float] = {}
        #: Share of the splits whose status differs, but is a proven optimum on both sides.
        self._of_zeros: dict[Key, float] = {}
        #: Mean number of test rows per split.
        self._n_test: dict[Key, float] = {}
        ours, theirs = _deviations(table), _deviations(reference)
        for name in theirs:
            said = [" | ".join(sorted(texts)) for texts in (ours.get(name, set()), theirs[name])]
            if name not in ours or said[0] == said[1]:
                self._of_data[name] = BY_VALUE
                continue
            partial = any(re.search(r"\bonly \d+ of\b", text) for text in said)
            self._of_data[name] = MISSING if partial else BY_MEAN
            self.warnings.append(
                f"{name}: other data: {said[0] or 'no deviation'}; "
                f"reference: {said[1] or 'no deviation'}"
            )

    def _splits(self, ours: dict[Key, list], theirs: dict[Key, list]) -> None:
        """Compare the splits that both sides have, unless rows of the data set are missing."""
        common: dict[Key, list[tuple]] = {}
        for place in ours.keys() & theirs.keys():
            if self._of_data.get(ours[place][0].dataset) == MISSING:
                continue
            found = {_texts(row, SPLIT): row for row in ours[place]}
            both = [(found.get(_texts(row, SPLIT)), row) for row in theirs[place]]
            common[place] = [(mine, row) for mine, row in both if mine is not None]
            same = len(common[place]) == len(ours[place]) == len(theirs[place])
            self._of_cell[place] = BY_SPLIT if same else BY_MEAN
            self._n_test[place] = sum(row.n_test for row in theirs[place]) / len(theirs[place])
        near_ties = self._near_ties(common)
        for place, pairs in common.items():
            moved = sum(_moved_pairs(mine, row)[0] for mine, row in pairs)
            self._of_ties[place] = ERRORS * moved / max(1, len(pairs))
            zeros = sum(mine.status != row.status for mine, row in pairs)
            self._of_zeros[place] = zeros / max(1, len(pairs))
            near = [place[-1] in near_ties and _moved(*pair) for pair in pairs]
            if any(near):
                counts = [abs(mine.errors_count - row.errors_count) for mine, row in pairs]
                self._of_moved[place] = sum(itertools.compress(counts, near)) / len(pairs)
            texts = [_split_differs(*p, near_tie=tie) for p, tie in zip(pairs, near, strict=True)]
            worse = list(filter(None, texts))
            if worse:
                name = " ".join(filter(None, place))
                self.differences.append(
                    f"{name}: {len(worse)} of {len(pairs)} equal splits differ, first {worse[0]}"
                )

    def _near_ties(self, common: dict[Key, list[tuple]]) -> set[str]:
        """Return the machines with other parameters in at most MOVED_SHARE of their splits."""
        found: dict[str, list[bool]] = {}
        for place, pairs in common.items():
            found.setdefault(place[-1], []).extend(_moved(*pair) for pair in pairs)
        near = {name for name, moved in found.items() if sum(moved) <= MOVED_SHARE * len(moved)}
        self.warnings += [
            f"{name}: {sum(moved)} of {len(moved)} splits have other parameters (near ties)"
            for name, moved in found.items()
            if name in near and any(moved)
        ]
        return near

    def _cell(
        self, place: Key, name: str, found: tuple | None, row: tuple, tolerance: float
    ) -> None:
        way = self._of_cell.get(place, self._of_data[row.dataset])
        counted, lost = row.metric in TOLERANCES, found is None or pd.isna(found.measured)
        if lost:
            if not row.metric.startswith(PASSED_OVER):
                self.differences.append(f"{name}: missing, reference {row.measured:g}")
            return
        if row.metric.startswith("seconds_"):
            longest, shortest = sorted((found.measured, row.measured), reverse=True)
            if longest >= SHORTEST and longest > TIME_FACTOR * shortest:
                text = f"{name}: {found.measured:.3g} s, reference {row.measured:.3g} s"
                self.warnings.append(text)
        elif row.metric in CERTIFICATES and _grew(found.measured, row.measured, tolerance):
            text = f"{name}: {found.measured:.1e}, reference {row.measured:.1e}"
            self.differences.append(text)
        if row.metric.startswith(PASSED_OVER) or row.metric in CERTIFICATES:
            return
        if way not in (BY_SPLIT, BY_VALUE, BY_MEAN):
            if counted:
                self.skipped[row.dataset, way] += 1
            return
        if counted:
            self.compared[way] += 1
        if counted or row.metric == "errors_expected":  # differs from errors_count only by ties
            allowed = TOLERANCES[row.metric if counted else "errors_count"]
            if row.metric == "accuracy_pct" and place in self._n_test:
                allowed = max(allowed, 100 * ERRORS / self._n_test[place])
            allowed /= row.n**0.5 if pd.notna(row.n) and row.n else 1.0
            allowed += self._of_ties.get(place, 0.0) * (row.metric != "accuracy_pct")
            moved = self._of_moved.get(place, 0.0)
            share = row.metric == "accuracy_pct" and place in self._n_test
            allowed += 100 * moved / self._n_test[place] if share else moved
        elif row.metric == "gaps_above_tolerance":
            allowed = MORE_GAPS + max(0.0, row.measured - found.measured)  # fewer are allowed
        else:
            # the decisions of w = 0 are constant
            allowed = (OTHER_SHARE + self._of_zeros.get(place, 0.0)) * abs(row.measured)
        text = f"{name}: {found.measured:g}, reference {row.measured:g}"
        if way == BY_MEAN:
            if not counted and pd.isna(row.se):  # the effect of other splits is unknown
                return
            se = (found.se**2 + row.se**2) ** 0.5
            allowed = max(allowed, NOISE_SE * (0.0 if pd.isna(se) else se))
            text += f", standard error of the difference {se:.2g}"
        if not abs(found.measured - row.measured) <= allowed:
            self.differences.append(text)
        if not counted:
            return
        known = way != BY_MEAN and place not in self._of_moved
        if _other_status(found, row) and (known or found.status not in SOLVED):
            self.differences.append(f"{name}: {found.status}, reference {row.status}")
        if row.in_band == True and found.in_band == False:  # noqa: E712 - either may be empty
            left = f"{name}: left its band, {found.measured:g} for {row.published:g} published"
            self.left_band.append(left)
            if way != BY_MEAN:
                self.differences.append(left)

    @property
    def code(self) -> int:
        """The exit code."""
        if not self.compared:
            return NOT_COMPARED
        return DIFFERS if self.differences else AGREES

    def __str__(self) -> str:
        ways = [f"{self.compared[w]} {w}" for w in (BY_SPLIT, BY_VALUE, BY_MEAN)]
        verdict = {AGREES: "agrees", DIFFERS: "differs", NOT_COMPARED: "nothing compared"}
        skipped = [f"not compared: {n} of {name}, {why}" for (name, why), n in self.skipped.items()]
        return "\n".join(
            [
                f"{verdict[self.code]}: {self.compared.total()} accuracies and error counts "
                f"compared ({', '.join(ways)}), {self.skipped.total()} not compared, "
                f"{len(self.left_band)} left their bands",
                *skipped,
                *self.differences,
                *(line for line in self.left_band if line not in self.differences),
                *(f"warning: {line}" for line in self.warnings),
            ]
        )


def _by_place(frame: pd.DataFrame, names: list[str]) -> dict[Key, list]:
    """Return the rows of a table, grouped by the values of the columns `names`."""
    found: dict[Key, list] = {}
    for row in frame.itertuples():
        found.setdefault(_texts(row, names), []).append(row)
    return found


def _texts(row: tuple, names: list[str]) -> Key:
    """Return columns of a row as texts; whole numbers are written without a fraction."""
    values = (getattr(row, name) for name in names)
    return tuple("" if pd.isna(value) else str(value).removesuffix(".0") for value in values)


def _deviations(table: pd.DataFrame) -> dict[str, set[str]]:
    """Return the deviations of each data set, which follow ``name:`` at the end of its notes."""
    found: dict[str, set[str]] = {}
    for name, note in zip(table.dataset, table.note, strict=True):
        _, mark, text = f"; {note}".partition(f"; {name}: ")
        found.setdefault(name, set()).update([text] if mark else [])
    return found


def _split_differs(found: tuple, row: tuple, near_tie: bool = False) -> str:
    """Return the differences of a split from the reference as text; empty without differences."""
    moved, n_pairs = _moved_pairs(found, row)
    allowed = (moved + (STOPPED_FACTOR if row.status == "stopped_by_rule" else 1)) * ERRORS
    if near_tie:
        allowed = max(allowed, NOISE_SE * (found.errors_count + row.errors_count) ** 0.5)
    gap_grew = not near_tie and _grew(found.worst_gap, row.worst_gap, row.gap_tolerance)
    texts = [
        f"{name} {_value(found, name)}, reference {_value(row, name)}"
        for name, differs in (
            ("status", not near_tie and _other_status(found, row)),
            ("errors_count", not _near(found.errors_count, row.errors_count, allowed)),
            ("worst_gap", gap_grew),
            ("worst_violation", _grew(found.worst_violation, row.worst_violation, NOISE)),
        )
        if differs
    ]
    if texts and moved:
        texts.append(f"parameters of {moved} of {n_pairs} pairs of classes differ")
    elif texts and found.parameters != row.parameters:  # usually, the scores are nearly equal
        texts.append(f"parameters {found.parameters}, reference {row.parameters}")
    return f"repeat {row.repeat} fold {row.fold}: {'; '.join(texts)}" if texts else ""


def _other_status(found: tuple, row: tuple) -> bool:
    return found.status != row.status and not {found.status, row.status} <= PROVEN


def _value(row: tuple, name: str) -> str:
    value = getattr(row, name)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _moved(found: tuple, row: tuple) -> bool:
    """Return whether parameters that are selected for all pairs of classes differ."""
    texts = [getattr(side, "parameters", "") for side in (found, row)]
    solved = found.status in SOLVED and row.status in SOLVED
    return solved and texts[0] != texts[1] and all(str(text).startswith("{") for text in texts)


def _moved_pairs(found: tuple, row: tuple) -> tuple[int, int]:
    """Return the number of pairs of classes with other parameters, and the number of all pairs.

    The first number is 0 if parameters are not selected per pair of classes, or if it exceeds
    MOVED_SHARE of all pairs.
    """
    texts = [getattr(side, "parameters", "") for side in (found, row)]
    ours, theirs = (json.loads(text) if isinstance(text, str) and text else {} for text in texts)
    if not (isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)):
        return 0, 1
    moved = sum(a != b for a, b in zip(ours, theirs, strict=True))
    return (moved if moved <= MOVED_SHARE * len(ours) else 0), len(ours)


def _near(found: float, reference: float, allowed: float) -> bool:
    """Return whether the errors of a split agree; a failed split has no number of errors."""
    if pd.isna(reference):
        return True
    return pd.notna(found) and abs(found - reference) <= allowed


def _grew(found: float, reference: float, tolerance: float) -> bool:
    """Return whether a certificate is above the allowed value; false without a reference (NaN)."""
    allowed = max(NOISE, 0.0 if pd.isna(tolerance) else tolerance, CERTIFICATE_FACTOR * reference)
    return pd.notna(reference) and not found <= allowed


def _splits_of(folder: Path) -> pd.DataFrame | None:
    """Return the split table in a folder; None if there is no split table with hashes."""
    for name in ("splits.csv", "splits.csv.gz"):
        if (folder / name).is_file():
            splits = pd.read_csv(folder / name)
            return splits if set(SPLIT) <= set(splits) else None
    return None


def main(table: Path, reference: Path) -> int:
    """Print the comparison of two CSV tables; return the exit code."""
    for path in (table, reference):
        if not path.exists():
            print(f"nothing compared: {path} does not exist")
            return NOT_COMPARED
    made = Comparison(
        pd.read_csv(table),
        pd.read_csv(reference),
        _splits_of(table.parent),
        _splits_of(reference.parent),
    )
    print(made)
    return made.code


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: compare_reference.py TABLE.csv REFERENCE.csv")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
