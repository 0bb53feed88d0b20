"""Compare a table with the reference table of an earlier full run, cell by cell.

Accuracies and error counts must agree within two standard errors of the reference; times are not
compared. Prints the cells that differ and exits with 1 if there are any.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

#: What names a cell; "size" is there where an experiment has several training sizes.
KEY = ["experiment", "dataset", "kernel", "degree", "size", "machine", "metric"]
METRICS = ["accuracy_pct", "errors_count"]


def differences(table: pd.DataFrame, reference: pd.DataFrame) -> list[str]:
    """Return one line a cell that is missing, failed, or further than two standard errors off."""
    names = [name for name in KEY if name in reference]
    if missing := [name for name in names if name not in table]:
        return [f"the table has no column {missing[0]}, the reference has"]
    cells = table[table.metric.isin(METRICS)].set_index(names)
    wanted = reference[reference.metric.isin(METRICS) & reference.measured.notna()]
    wanted = wanted.set_index(names)
    lines = []
    for key, row in wanted.iterrows():
        name = " ".join(str(part) for part in key if str(part) != "nan")
        if key not in cells.index or pd.isna(cells.loc[key, "measured"]):
            lines.append(f"{name}: missing, reference {row.measured:g}")
            continue
        measured = float(cells.loc[key, "measured"])
        if abs(measured - row.measured) > 2 * max(row.se, 1e-9):
            lines.append(f"{name}: {measured:g}, reference {row.measured:g} +- {row.se:.2g}")
    return lines


def main(table: Path, reference: Path) -> int:
    """Print the differences of two CSV tables; return the exit code."""
    if not reference.exists():
        print(f"{reference}: no reference table yet, nothing compared")
        return 0
    lines = differences(pd.read_csv(table), pd.read_csv(reference))
    print("\n".join(lines) if lines else f"{table}: agrees with {reference}")
    return 1 if lines else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: compare_reference.py TABLE.csv REFERENCE.csv")
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
