"""Counts of wrong predictions per row of a few reference tables, for tests of differences.

    python tests/results/row_counts.py --mirror FOLDER

trains the machines of `SMALL` again with the parameters that the reference tables state, and writes
``row_counts.npz``; the slow tests do the same for `LARGE`.
"""

from __future__ import annotations

import argparse
import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mmbench.config.plan import plan
from mmbench.config.read import load_config
from mmbench.jobs.evaluate import evaluate
from mmbench.jobs.job import Job
from mmbench.jobs.prepare import prepare
from mmbench.jobs.train import fit_selected, job_seeds, make_machine

ROOT = Path(__file__).resolve().parents[2]
FILE = Path(__file__).with_suffix(".npz")
#: Machines by experiment and data set.
SMALL = {
    ("mamc_table2", "ida_heart"): ("svm", "mamc", "mamc_b"),
    ("mamc_table2", "ida_titanic"): ("mamc_b", "mamc", "svm"),
    ("mamc_table2", "ida_image"): ("svm", "mamc_bs"),
    ("fsvm_table2", "ida_german"): ("svm", "fsvm_opt"),
}
LARGE = {
    ("mamc_table2", "ida_banana"): ("svm", "mamc", "mamc_b"),
    ("fsvm_table2", "ida_waveform"): ("svm", "fsvm_opt", "fsvm_semi"),
}


@cache
def splits(experiment: str) -> pd.DataFrame:
    """Return the stored splits of a reference table."""
    return pd.read_csv(ROOT / "results/reference" / experiment / "splits.csv.gz")


def cell(experiment: str, dataset: str, machine: str) -> pd.DataFrame:
    """Return the stored splits of a machine on a data set, in order."""
    table = splits(experiment)
    own = table[(table.dataset == dataset) & (table.machine == machine)]
    return own.sort_values("repeat").reset_index(drop=True)


def wrong_rows(stored: pd.DataFrame, jobs: list[Job], places: dict) -> list[tuple]:
    """Train a machine on all stored splits; return the test rows of each split, and which of them
    are predicted wrongly.
    """
    found, by_repeat = [], {job.split.repeat + 1: job for job in jobs}
    for row in stored.itertuples():
        job = by_repeat[row.repeat]
        data, seeds = prepare(job, **places), job_seeds(job)
        model = make_machine(job, 1, seeds["machine"])
        with warnings.catch_warnings(action="ignore"):  # machines that stop by their own rule
            fit_selected(model, job, json.loads(row.parameters), data.X_train, data.y_train)
        metrics, arrays = evaluate(model, data, job.ties, seeds["ties"])
        # the stored parameters are rounded: a row near the boundary may change
        assert abs(metrics["errors_count"] - row.errors_count) <= 1
        found.append((arrays["test_index"], arrays["predicted"] != arrays["y_test"]))
    return found


def counted(experiment: str, dataset: str, machines: tuple[str, ...], places: dict) -> dict:
    """Return the number of tests per row, the number of wrong predictions per row and machine, and
    the matrix of q between the machines.
    """
    jobs = plan(load_config(ROOT / "configs" / f"{experiment}.yaml"), **places)
    wrong = {}
    for name in machines:
        own = [job for job in jobs if (job.dataset.name, job.column) == (dataset, name)]
        wrong[name] = wrong_rows(cell(experiment, dataset, name), own, places)
    tests = np.concatenate([index for index, _ in wrong[machines[0]]])
    out: dict[str, NDArray] = {f"{dataset} tests": np.bincount(tests).astype(np.uint8)}
    for name, own in wrong.items():
        index, errors = map(np.concatenate, zip(*own, strict=True))
        counts = np.bincount(index, errors, minlength=len(out[f"{dataset} tests"]))
        out[f"{dataset} {name}"] = counts.astype(np.uint8)
    errors = [np.concatenate([own for _, own in wrong[name]]) for name in machines]
    sizes = np.array([len(index) for index, _ in wrong[machines[0]]])
    weights = np.repeat(100 / (len(sizes) * sizes), sizes)
    out[f"{dataset} q"] = np.array([[weights @ (x != y) for y in errors] for x in errors])
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    places = {"store": ROOT / "datasets", "mirror": parser.parse_args().mirror}
    found: dict[str, NDArray] = {}
    for where, machines in SMALL.items():
        found |= counted(*where, machines, places)
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
