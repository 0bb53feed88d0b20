"""The nightly comparison with the reference tables."""

from __future__ import annotations

import runpy
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
compare = runpy.run_path(str(ROOT / "scripts" / "compare_reference.py"))["differences"]
REFERENCE = ROOT / "results" / "reference" / "usps_rbf" / "table.csv"


@pytest.fixture
def reference() -> pd.DataFrame:
    return pd.read_csv(REFERENCE)


def changed(reference: pd.DataFrame, metric: str, machine: str = "svm", **values) -> pd.DataFrame:
    table = reference.copy()
    rows = (table.metric == metric) & (table.machine == machine)
    for name, value in values.items():
        table.loc[rows, name] = value
    return table


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/reference/*/table.csv")), ids=str)
def test_every_reference_table_agrees_with_itself(path: Path) -> None:
    table = pd.read_csv(path)
    assert compare(table, table) == ([], [])


def test_108_errors_for_91_are_a_difference(reference) -> None:
    lines, _ = compare(changed(reference, "errors_count", measured=108), reference)
    assert lines == ["usps_rbf usps rbf svm errors_count: 108, reference 91"]


def test_a_row_that_another_blas_moves_is_none(reference) -> None:
    assert compare(changed(reference, "errors_count", measured=92), reference) == ([], [])


def test_a_status_is_compared(reference) -> None:
    lines, _ = compare(changed(reference, "errors_count", status="failed"), reference)
    assert lines == ["usps_rbf usps rbf svm errors_count: failed, reference optimal"]


def test_a_gap_that_has_grown_is_a_difference(reference) -> None:
    lines, _ = compare(changed(reference, "worst_gap", "mmrm", measured=1e-3), reference)
    assert len(lines) == 1 and "worst_gap: 1.0e-03" in lines[0]
    assert compare(changed(reference, "worst_gap", "mmrm", measured=1e-9), reference) == ([], [])


def test_a_missing_cell_is_a_difference(reference) -> None:
    lines, _ = compare(reference[reference.machine != "svm"], reference)
    assert any(line.startswith("usps_rbf usps rbf svm errors_count: missing") for line in lines)


def test_times_are_a_warning(reference) -> None:
    slow = changed(reference, "seconds_selection", measured=1e6)
    lines, times = compare(slow, reference)
    assert lines == []
    assert times and times[0].startswith("warning: usps_rbf usps rbf svm seconds_selection")


def test_a_table_of_other_data_is_told_and_not_compared(reference, capsys) -> None:
    other = changed(reference, "errors_count", measured=10).assign(note="usps: half of the rows")
    assert compare(other, reference) == ([], [])
    assert "usps: made of other data, not compared; deviations half of the rows" in (
        capsys.readouterr().out
    )
