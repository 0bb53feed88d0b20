"""Compare the table of a run with the reference table of an earlier full run.

How two cells are compared depends on the rows behind them:

- Split by split, if both sides have ``splits.csv`` (``mmbench export``) and the splits have equal
  hashes: test errors, status and certificates of each split.
- By values, if the cells have the same splits (by hash; without hashes, if the data have the same
  deviations): runs are deterministic, so accuracies, errors and statuses are equal up to rounding
  by another BLAS, gaps up to the gap tolerance or a factor, violations up to a factor, and no
  published value leaves its band.
- By means, if the rows differ: up to `NOISE_SE` standard errors of the difference.
- Not at all, if one side lacks rows of the data set ("only 1560 of ...") that the other has.

Times are compared as a warning. Prints what was compared and how, and what differs. Exit codes:
0 if all compared cells agree, 1 if any differs or is missing, 3 if no cell could be compared.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

#: Columns that name a cell, besides the metric; "size" is there if an experiment has several.
PLACE = ["experiment", "dataset", "kernel", "degree", "size", "machine"]
#: Columns by which a split of one run is found in another.
SPLIT = ["data_hash", "split_hash", "seed", "repeat", "fold"]
#: Another BLAS may move a test row or two over a boundary: tolerances of a single run, which fall
#: with the number of runs.
TOLERANCES = {"accuracy_pct": 0.1, "errors_count": 2.0}
#: Standard errors of a difference between means that new splits explain: of all reference cells
#: together, about one in ten full runs has a cell beyond.
NOISE_SE = 4.0
#: Share of its value by which another BLAS may change another metric, such as the AUC.
OTHER_SHARE = 0.05
#: Metrics that are not compared, or only as a warning: times, choices among near ties, and counts.
PASSED_OVER = ("seconds_", "selected_", "n_", "median_gap", "gap_tolerance")
#: Number of fits by which another BLAS may change how many gaps exceed their tolerance.
MORE_GAPS = 2
CERTIFICATES = ("worst_gap", "worst_violation")
#: Factor by which a certificate may grow, and the size below which any is noise; of a gap, the gap
#: tolerance is used if it is larger, because rounding changes the iteration at which it is reached.
CERTIFICATE_FACTOR, NOISE = 10.0, 1e-6
#: Ratio of times worth a warning, and the seconds below which none is.
TIME_FACTOR, SHORTEST = 3.0, 1.0
#: Statuses of fits that have a result; which of them a cell has depends on its splits.
SOLVED = {"optimal", "stopped_by_rule", "trivial"}
BY_SPLIT, BY_VALUE, BY_MEAN = "split by split", "by values", "by means"
MISSING = "rows are missing"
AGREES, DIFFERS, NOT_COMPARED = 0, 1, 3

Key = tuple[str, ...]


class Comparison:
    """The cells of a run against those of a reference, and what came of it."""

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
        #: Number of accuracies and errors by way of comparison.
        self.compared: Counter[str] = Counter()
        #: Number of accuracies and errors, and the reason, by data set.
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
        """Choose by the data's deviations how each data set is compared."""
        self._of_data: dict[str, str] = {}
        self._of_cell: dict[Key, str] = {}
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
        for place in ours.keys() & theirs.keys():
            if self._of_data.get(ours[place][0].dataset) == MISSING:
                continue
            found = {_texts(row, SPLIT): row for row in ours[place]}
            both = [(found.get(_texts(row, SPLIT)), row) for row in theirs[place]]
            pairs = [(mine, row) for mine, row in both if mine is not None]
            same = len(pairs) == len(ours[place]) == len(theirs[place])
            self._of_cell[place] = BY_SPLIT if same else BY_MEAN
            worse = [text for mine, row in pairs if (text := _split_differs(mine, row))]
            if worse:
                name = " ".join(filter(None, place))
                self.differences.append(
                    f"{name}: {len(worse)} of {len(pairs)} equal splits differ, first {worse[0]}"
                )

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
            allowed /= row.n**0.5 if pd.notna(row.n) and row.n else 1.0
        elif row.metric == "gaps_above_tolerance":
            allowed = MORE_GAPS + max(0.0, row.measured - found.measured)  # fewer are welcome
        else:
            allowed = OTHER_SHARE * abs(row.measured)
        text = f"{name}: {found.measured:g}, reference {row.measured:g}"
        if way == BY_MEAN:
            if not counted and pd.isna(row.se):  # other splits change it by an unknown amount
                return
            se = (found.se**2 + row.se**2) ** 0.5
            allowed = max(allowed, NOISE_SE * (0.0 if pd.isna(se) else se))
            text += f", standard error of the difference {se:.2g}"
        if not abs(found.measured - row.measured) <= allowed:
            self.differences.append(text)
        if not counted:
            return
        if found.status != row.status and (way != BY_MEAN or found.status not in SOLVED):
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
    """Return the rows of a table by the columns that name a cell."""
    found: dict[Key, list] = {}
    for row in frame.itertuples():
        found.setdefault(_texts(row, names), []).append(row)
    return found


def _texts(row: tuple, names: list[str]) -> Key:
    """Return columns of a row as text, whole numbers without a fraction."""
    values = (getattr(row, name) for name in names)
    return tuple("" if pd.isna(value) else str(value).removesuffix(".0") for value in values)


def _deviations(table: pd.DataFrame) -> dict[str, set[str]]:
    """Return by data set what its notes say of the data: ``name: text`` at their end."""
    found: dict[str, set[str]] = {}
    for name, note in zip(table.dataset, table.note, strict=True):
        _, mark, text = f"; {note}".partition(f"; {name}: ")
        found.setdefault(name, set()).update([text] if mark else [])
    return found


def _split_differs(found: tuple, row: tuple) -> str:
    """Return how a split differs from the same split of the reference, or an empty text."""
    texts = [
        f"{name} {_value(found, name)}, reference {_value(row, name)}"
        for name, differs in (
            ("status", found.status != row.status),
            ("errors_count", not _near(found.errors_count, row.errors_count)),
            ("worst_gap", _grew(found.worst_gap, row.worst_gap, row.gap_tolerance)),
            ("worst_violation", _grew(found.worst_violation, row.worst_violation, NOISE)),
        )
        if differs
    ]
    if texts and found.parameters != row.parameters:  # a choice between near ties, as a rule
        texts.append(f"parameters {found.parameters}, reference {row.parameters}")
    return f"repeat {row.repeat} fold {row.fold}: {'; '.join(texts)}" if texts else ""


def _value(row: tuple, name: str) -> str:
    value = getattr(row, name)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _near(found: float, reference: float) -> bool:
    """Whether the errors of a split agree; a failed split has none."""
    if pd.isna(reference):
        return True
    return pd.notna(found) and abs(found - reference) <= TOLERANCES["errors_count"]


def _grew(found: float, reference: float, tolerance: float) -> bool:
    """Whether a certificate grew beyond its tolerance; a fit may have none (NaN)."""
    allowed = max(NOISE, 0.0 if pd.isna(tolerance) else tolerance, CERTIFICATE_FACTOR * reference)
    return pd.notna(reference) and not found <= allowed


def _splits_of(folder: Path) -> pd.DataFrame | None:
    """Return the splits beside a table, if they are there with their hashes."""
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
