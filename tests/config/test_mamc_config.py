"""The MAMC experiment states the paper's grids, data sets and scaling."""

from __future__ import annotations

from pathlib import Path

from helpers.drawn import load_published

from mmbench.config.plan import settings
from mmbench.config.read import load_config
from mmbench.machines.lssvm import COSTS
from mmbench.machines.mamc import SLOPES

#: The paper's widths; the EMAMC has those up to 200.
GAMMAS = (0.01, 0.1, 0.5, 1, 5, 10, 15, 20, 50, 100, 200, 300, 400, 500, 600, 700)
SHORT = GAMMAS[:11]
ROOT = Path(__file__).resolve().parents[2]


def test_the_experiment_is_the_paper_s():
    config = load_config(ROOT / "configs" / "mamc_table2.yaml")
    grids = {name: settings(config, name, "rbf")[1] for name in config.machines}
    long, short = {"gamma": GAMMAS}, {"gamma": SHORT, "C": COSTS}
    assert grids == {
        "mamc_bs": {**long, "Cm": SLOPES},
        "mamc_bsg": {**long, "Cm": SLOPES},
        "mamc_b": long,
        "mamc": long,
        "emamc": short,
        "svm": short,
    }
    assert {settings(config, m, "rbf")[0]["gamma_scaling"] for m in config.machines} == {
        "per_feature"
    }
    assert config.select.folds == 5
    published = load_published("mamc_table2")
    assert {entry.label for entry in config.datasets} == set(published["dataset"]) - {"average"}
