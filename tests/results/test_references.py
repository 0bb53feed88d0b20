"""The printed tables of the reference folders are what today's code prints from their frames."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest

from mmbench.resources import REFERENCE
from mmbench.results.columns import FRAMES, columns, names
from mmbench.results.folder import CSV, FACTS, PAIRS, ROWS, SPLITS, read_reference
from mmbench.tables.build import draw_tables
from mmbench.tables.protocol import grid_rows

FOLDERS = sorted(path.parent for path in REFERENCE.glob(f"*/{CSV}"))
LARGE = ("ldm_table", "mamc_table2", "solvers", "verdict", "verdict_large")
BY_SIZE = [pytest.param(f, marks=pytest.mark.slow if f.name in LARGE else ()) for f in FOLDERS]
FILES = {"cells": CSV, "splits": SPLITS, "pairs": PAIRS, "rows": ROWS}


@pytest.mark.parametrize("folder", BY_SIZE, ids=lambda folder: folder.name)
def test_printed_tables_follow_from_the_frames(folder: Path) -> None:
    results = read_reference(folder)
    for fmt, file in (("markdown", "table.md"), ("latex", "table.tex")):
        assert draw_tables([results], fmt) == (folder / file).read_text("utf-8")


def test_the_grids_of_a_machine_stand_together() -> None:
    names = [name for name, *_ in grid_rows(read_reference(REFERENCE / "mmrm_table1"))]
    assert [name for name, _ in groupby(names)] == ["SVM", "RMM", "MMRM", "M4", "MPM"]


@pytest.mark.parametrize("frame", FRAMES)
def test_stored_frames_have_the_declared_columns(frame: str) -> None:
    later = {"worst_class_accuracy_pct", "worst_case_accuracy_pct"}
    optional = {"cells": {"size"}, "splits": later, "pairs": {"metric"}}.get(frame, set())
    for path in REFERENCE.glob(f"*/{FILES[frame]}"):
        found = list(pd.read_csv(path, nrows=0))
        assert [name for name in names(frame) if name in found or name not in optional] == found


def test_every_column_has_a_meaning() -> None:
    for frame in FRAMES:
        assert all(kind and about for kind, _, about in columns(frame).values())


def test_facts_of_a_reference_are_those_of_its_configuration() -> None:
    for folder in FOLDERS:
        facts = json.loads((folder / FACTS).read_text("utf-8"))
        assert facts["plan"]["name"] == folder.name
        assert facts["records"] >= facts["with_code"] >= facts["by_other_code"]


@pytest.mark.slow
def test_pairs_hold_the_differences_of_all_metrics_of_a_table() -> None:
    results = read_reference(REFERENCE / "verdict")
    pairs, cells = results.stored_pairs, results.cells.set_index(["key", "metric"]).measured
    assert {*pairs.metric} == {"accuracy_pct", "balanced_accuracy", "auc", "log_loss"}
    for (first, second, metric), row in results.pair_rows.items():
        if row.n == 5:
            gap = cells[first, metric] - cells[second, metric]
            assert row.difference == pytest.approx(gap, abs=1e-9)
