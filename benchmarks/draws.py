"""Means over splits for five seeds of the inner folds, or of the partitions, as a CSV table.

    python benchmarks/draws.py --out benchmarks/results/draws.csv --mirror FOLDER

Three tables keep their data, preprocessing, splits and inner folds, and have three fast machines,
whose grids are in `MACHINES`. The first ten splits of mamc_table2 are given, so that another seed
draws other inner folds only. The splits of the other tables are drawn: another seed draws other
partitions, and other inner folds with them. The CSV table has one row per table, data set, machine
and seed. docs/bands.md shows how far the means are apart.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

import mmbench
from mmbench.resources import CONFIGS

FIELDS = ("table", "drawn", "dataset", "machine", "seed", "n", "mean", "se")
SEEDS = range(5)
#: Result of a draw, repeats of the protocol, and data sets of each table.
TABLES = {
    "mamc_table2": ("inner folds", 10, ["ida_breast_cancer", "ida_diabetis", "ida_heart"]),
    "mmrm_table1": ("partitions", 50, ["ionosphere", "pima", "sonar"]),
    "m4_table2": ("partitions", 5, ["ionosphere", "pima", "sonar"]),
}
MACHINES = {
    "svm": {"grid": {"C": {"log2": [-3, 9, 2]}}},
    "lssvm": {"grid": {"C": {"log2": [-3, 9, 2]}}},
    "lda": {"grid": {"ridge": {"log10": [-5, -1]}}},
}


def config(table: str, seed: int) -> dict:
    """Return the configuration of a table with the three machines and one seed."""
    content = yaml.safe_load((CONFIGS / f"{table}.yaml").read_text(encoding="utf-8"))
    _, repeats, datasets = TABLES[table]
    kept = {key: content[key] for key in ("preprocess", "select") if key in content}
    protocol = content["protocol"] | {"repeats": repeats, "seed": seed}
    return {
        **kept,
        "name": f"draws_{table}_{seed}",
        "datasets": datasets,
        "kernel": "linear",
        "protocol": protocol,
        "machines": MACHINES,
    }


def rows(table: str, seed: int, mirror: str):
    """Yield the rows of a table and a seed."""
    with TemporaryDirectory() as folder:
        results = Path(folder)
        mmbench.run(config(table, seed), results=results, mirror=mirror, jobs=1)
        splits = mmbench.load(results)
        for (dataset, machine), own in splits.groupby(["dataset", "machine"], sort=False):
            mean, se = own.accuracy_pct.mean(), own.accuracy_pct.sem()
            yield table, TABLES[table][0], dataset, machine, seed, len(own), mean, se


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--mirror", required=True, help="folder or URL with the data files")
    options = parser.parse_args()
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for table in TABLES:
            for seed in SEEDS:
                for row in rows(table, seed, options.mirror):
                    writer.writerow([f"{v:.8g}" if isinstance(v, float) else v for v in row])


if __name__ == "__main__":
    main()
