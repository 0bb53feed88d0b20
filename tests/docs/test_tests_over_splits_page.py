"""The sentences on tests over splits follow from the file of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
TABLE = pd.read_csv(ROOT / "benchmarks/results/tests_over_splits.csv")
MEANS = TABLE.groupby("protocol", sort=False).mean(numeric_only=True)


def test_the_rule_has_its_nominal_level_over_partitions():
    for name, own in TABLE[~TABLE.protocol.str.startswith("official")].groupby("protocol"):
        noise = np.sqrt((5 * 95 / own.pools).sum()) / len(own)
        assert own.rule.mean() < 5 + 2 * noise, name


def test_other_tests_fail_where_the_page_says_so():
    few_training_rows = MEANS.loc[["20 × 400/4900", "100 × 400/4900"]]
    assert few_training_rows.nb.max() < 1
    assert (few_training_rows["nb 2"] < 0.4 * few_training_rows["rule 2"]).all()
    repeated = MEANS.index.str.contains("^(?:20|50|100) ×|× (?:5|10) of")
    assert MEANS.t[repeated].min() > 20


def test_the_worst_cell_is_stated():
    cells = TABLE[(TABLE.pools >= 20) & ~TABLE.protocol.str.startswith("official")]
    worst = cells.loc[cells.rule.idxmax()]
    assert (worst.generator, worst.learner) == ("rare", "nearest mean")
    page = (ROOT / "docs/tests_over_splits.md").read_text(encoding="utf-8")
    assert f"nearest means differ significantly in up to {worst.rule:.0f} %" in page
