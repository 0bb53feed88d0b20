"""The sentences on audited classifiers follow from the file of the benchmark."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs/certify.md").read_text(encoding="utf-8").split())
TABLE = pd.read_csv(ROOT / "benchmarks/results/audit_svms.csv")
LINEAR, RBF = (TABLE[TABLE.kernel == kernel] for kernel in ("linear", "rbf"))
HINGE = ["liblinear file", "LinearSVC", "SGDClassifier"]


def short(value: float) -> str:
    return f"{value:.0e}".replace("e-0", "e−").replace("e-", "e−")


def test_the_file_has_six_data_sets_five_penalties_and_every_solver():
    assert (TABLE.data.nunique(), TABLE.C.nunique()) == (6, 5)
    complete = TABLE[TABLE.solver != "NuSVC"].groupby(["kernel", "solver"]).size()
    assert (complete == 30).all() and len(complete) == 15
    for n, d in set(zip(TABLE.n, TABLE.d, strict=True)):
        assert f"({n:,} × {d}" in PAGE


def linear(solver: str, C: float, data: str) -> float:
    own = LINEAR[(LINEAR.solver == solver) & (C == LINEAR.C) & (LINEAR.data == data)]
    return float(own.gap.iloc[0])


SMOOTH = LINEAR[LINEAR.loss != "hinge"]
AT_100 = LINEAR[(LINEAR.C == 100) & LINEAR.solver.isin(HINGE)].groupby("solver").gap.median()
FACTS = {
    "least median at C = 100": f"(hinge loss) and SGDClassifier is {AT_100.min():.2f} or more",
    "skglm": f"with C = 0.1 its gap is {linear('skglm LinearSVC', 0.1, 'german'):.1g}",
    "gap of the NuSVC": f"the gap of the NuSVC reaches {RBF.gap[RBF.solver == 'NuSVC'].max():.1g}",
    "smooth losses": f"are at most {short(SMOOTH.gap.max())}",
    "mmbench": "mmbench's largest gap is "
    + " and ".join(
        f"{short(own.gap[own.solver == 'mmbench SVM'].max())} with the {name} kernel"
        for name, own in (("linear", LINEAR), ("RBF", RBF))
    ),
}


@pytest.mark.parametrize("name", FACTS)
def test_a_sentence_of_the_page_follows_from_the_file(name):
    assert FACTS[name] in PAGE


def test_warnings_and_labels_are_stated():
    warned = LINEAR[(LINEAR.C == 100) & LINEAR.solver.isin(HINGE) & (LINEAR.warned == 1)]
    assert set(warned.solver) == {"LinearSVC"}
    assert not LINEAR.warned[LINEAR.solver == "skglm LinearSVC"].any()
    assert RBF.labels_changed.sum() == 1
