"""Compare a table with the reference table of an earlier full run, cell by cell.

Runs are deterministic: accuracies and errors must be equal, but for what the rounding of another
BLAS may do to them; so must the statuses, and no gap or violation may have grown tenfold. Times are
compared as a warning. A data set of which the tables have not the same deviations is said to be so,
and its numbers are not compared. A published value that was within the band of a cell has to stay
there. Prints what differs; exits with 1 if anything but times does.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

#: What names a cell; "size" is there where an experiment has several training sizes.
KEY = ["experiment", "dataset", "kernel", "degree", "size", "machine", "metric"]
#: Another BLAS may move a test row or two over a boundary: tolerances of a single run, which fall
#: with the number of runs.
TOLERANCES = {"accuracy_pct": 0.1, "errors_count": 2.0}
CERTIFICATES = ("worst_gap", "worst_violation")
#: A certificate may vary so much, and below `NOISE` at will.
CERTIFICATE_FACTOR, NOISE = 10.0, 1e-6
#: Times beyond this ratio are worth a look; shorter ones than so many seconds are not.
TIME_FACTOR, SHORTEST = 3.0, 1.0


def differences(table: pd.DataFrame, reference: pd.DataFrame) -> tuple[list[str], list[str]]:
    """Return a line for each cell that differs, and a line for each time that does."""
    names = [name for name in KEY if name in reference]
    if missing := [name for name in names if name not in table]:
        return [f"the table has no column {missing[0]}, the reference has"], []
    table, reference = _unlike_data(table, reference)
    cells = dict(zip(_keys(table, names), table.itertuples(), strict=True))
    lines, times = [], []
    for key, row in zip(_keys(reference, names), reference.itertuples(), strict=True):
        if pd.isna(row.measured):
            continue
        name, found = " ".join(part for part in key if part), cells.get(key)
        if row.metric.startswith("seconds_"):
            times += _time(name, found, row)
        elif row.metric in (*TOLERANCES, *CERTIFICATES):
            lines += _cell(name, found, row)
    return lines, times


def _keys(frame: pd.DataFrame, names: list[str]) -> list[tuple[str, ...]]:
    return [
        tuple("" if pd.isna(part) else str(part).removesuffix(".0") for part in key)
        for key in frame[names].itertuples(index=False)
    ]


def _unlike_data(table: pd.DataFrame, reference: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Leave out data sets of which the two tables have not the same deviations, and say so."""
    ours, theirs = _deviations(table), _deviations(reference)
    for name in sorted(ours.keys() & theirs.keys()):
        if ours[name] != theirs[name]:
            said = [" | ".join(sorted(texts)) or "none" for texts in (ours[name], theirs[name])]
            print(
                f"{name}: made of other data, not compared; deviations {said[0]}, before {said[1]}"
            )
            table = table[table.dataset != name]
            reference = reference[reference.dataset != name]
    return table, reference


def _deviations(table: pd.DataFrame) -> dict[str, set[str]]:
    """Return by data set what its notes say of the data: ``name: text`` at their end."""
    found: dict[str, set[str]] = {}
    for name, note in zip(table.dataset, table.note, strict=True):
        _, mark, text = f"; {note}".partition(f"; {name}: ")
        found.setdefault(name, set()).update([text] if mark else [])
    return found


def _cell(name: str, found: tuple | None, row: tuple) -> list[str]:
    """Return what is wrong with a number; a missing one is said by its accuracy alone."""
    if found is None or pd.isna(found.measured):
        return [f"{name}: missing, reference {row.measured:g}"] if row.metric in TOLERANCES else []
    if row.metric in CERTIFICATES:
        worse = found.measured > max(NOISE, CERTIFICATE_FACTOR * row.measured)
        return [f"{name}: {found.measured:.1e}, reference {row.measured:.1e}"] if worse else []
    lines = []
    allowed = TOLERANCES[row.metric] / (row.n**0.5 if row.n == row.n and row.n else 1.0)
    if abs(found.measured - row.measured) > allowed:
        lines.append(f"{name}: {found.measured:g}, reference {row.measured:g}")
    if found.status != row.status:
        lines.append(f"{name}: {found.status}, reference {row.status}")
    if row.in_band == True and found.in_band == False:  # noqa: E712 - either may be empty
        lines.append(f"{name}: left its band, {found.measured:g} for {row.published:g} published")
    return lines


def _time(name: str, found: tuple | None, row: tuple) -> list[str]:
    if found is None or pd.isna(found.measured) or max(found.measured, row.measured) < SHORTEST:
        return []
    ratio = found.measured / row.measured if row.measured else float("inf")
    if 1 / TIME_FACTOR <= ratio <= TIME_FACTOR:
        return []
    return [f"warning: {name}: {found.measured:.3g} s, reference {row.measured:.3g} s"]


def main(table: Path, reference: Path) -> int:
    """Print the differences of two CSV tables; return the exit code."""
    if not reference.exists():
        print(f"{reference}: no reference table yet, nothing compared")
        return 0
    lines, times = differences(pd.read_csv(table), pd.read_csv(reference))
    print("\n".join([*lines, *times]) if lines or times else f"{table}: agrees with {reference}")
    return 1 if lines else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: compare_reference.py TABLE.csv REFERENCE.csv")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
