"""Measure the hyperplanes of the experiment `geometry`, and write docs/geometry.md.

    python -m results.pages.geometry measure RESULTS  # writes hyperplanes.csv.gz of the reference
    python -m results.pages.geometry                  # writes the page
    python -m results.pages.geometry --check          # exits with 1 if the page differs

For each record, `measure` trains the machine again with the selected parameters, and stops if the
predictions differ from the recorded predictions. Then `measure` calls `mmbench.geometry` on the
training rows of the split. The page is computed from hyperplanes.csv.gz alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

import mmbench
from mmbench.jobs.prepare import prepare
from mmbench.jobs.train import trained_again
from mmbench.machines import alias_of
from mmbench.results.folder import read_experiment
from mmbench.results.frames import Results
from mmbench.tables.blocks import signed
from results.pages.reference_text import (
    CHECKED,
    REFERENCE,
    check,
    rendered,
    write_or_check,
)

TEMPLATE = Path(__file__).with_suffix(".md.jinja")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "geometry.md"
HYPERPLANES = REFERENCE / "geometry" / "hyperplanes.csv.gz"
CELL, SPLIT = ["kernel", "dataset", "machine"], ["kernel", "dataset", "fold"]
KERNEL_NAMES = {"linear": "linear kernel", "rbf": "RBF kernel"}
#: Significant digits of the stored values.
DIGITS = 6
RADII = "{:.3g} {:.3g} {:.3f} {:.3g} {:.3g} {:.3g}"


class Quantity(NamedTuple):
    """A quantity that does not depend on the scale of (w, b)."""

    name: str
    paper: str
    #: Machine that optimises the quantity (often plus a slack or a norm); empty if there is none.
    machine: str
    #: 1 if larger values are better; -1 if smaller values are better.
    better: int
    #: Column of the stored values.
    value: str
    #: Expression by which the column is divided; if it is not positive, the quantity is infinite.
    unit: str = ""


QUANTITIES = (
    Quantity("smallest margin", "SVM", "svm", 1, "margin"),
    Quantity("average margin", "MAMC (5)", "mamc", 1, "average_margin"),
    Quantity("margin variance", "LDM", "ldm", -1, "margin_variance"),
    Quantity("relative margin, 1/B", "RMM (5)", "rmm", 1, "relative_margin"),
    Quantity("spread / average margin", "RMM (3)", "sigma_svm", -1, "spread", "average_margin"),
    Quantity("d_w_v / d_b_c", "MMRM (2), (3)", "lda", -1, "d_w_v", "d_b_c"),
    Quantity("kappa", "MPM", "mpm", 1, "kappa"),
    Quantity("worst-case accuracy", "MEMPM", "mempm", 1, "worst_case"),
    Quantity("rho of the M4", "M4 (1)", "m4", 1, "rho_m4"),
    Quantity("margin ratio rho", "MMRM (20)", "mmrm", 1, "rho"),
    # average_margin * norm is the mean of t_i f(x_i)
    Quantity("U_G", "RMM, A", "sigma_svm", -1, "U_G", "average_margin * norm"),
    Quantity("U_H", "RMM, A", "rmm", -1, "U_H", "average_margin * norm"),
)


# -- measuring -----------------------------------------------------------------------------------


def measure(folder: Path) -> pd.DataFrame:
    """Return the accuracies and the values of `mmbench.geometry`, one row per record."""
    rows = pd.DataFrame(list(_rows(read_experiment(folder))))
    return rows.sort_values([*SPLIT, "machine"]).reset_index(drop=True)


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    store, mirror = Path(os.environ.get("MMBENCH_DATA", "datasets")), os.environ["MMBENCH_MIRROR"]
    for record in sorted(results.records.values(), key=lambda record: record.job.dataset.name):
        job, data = record.job, prepare(record.job, store, mirror)
        machine = trained_again(record, data)
        predicted = machine.predict(data.X_test)
        stored = results.arrays(record.key)["predicted"]
        if not np.array_equal(predicted, stored):
            raise SystemExit(f"{record.key}: the machine predicts other labels than the record")
        values = mmbench.geometry(machine, data.X_train, data.y_train).iloc[0].to_dict()
        labels = values.pop("negative"), values.pop("positive")
        fitted = machine.predict(data.X_train)
        parts = {"train": (fitted, data.y_train), "test": (predicted, data.y_test)}
        recalls = {
            f"{part}_{side}": float((found[truth == label] == label).mean())
            for part, (found, truth) in parts.items()
            for side, label in zip(("negative", "positive"), labels, strict=True)
        }
        row = {"kernel": job.kernel, "dataset": job.dataset.name, "fold": job.split.fold}
        accuracy = float((predicted == data.y_test).mean())
        yield {**row, "machine": job.column, "accuracy": accuracy, **recalls, **values}


# -- the page ------------------------------------------------------------------------------------


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the quantities times `Quantity.better`, so that larger values are better."""
    scores = frame[[*SPLIT, "machine", "accuracy"]].copy()
    for q in QUANTITIES:
        scores[q.name] = q.better * frame[q.value]
        if q.unit:
            unit = frame.eval(q.unit)
            scores[q.name] = (scores[q.name] / unit).where(unit > 0, q.better * np.inf)
    return scores


def correlations(scores: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation, over the machines, of each quantity with test accuracy.

    The table has one row per kernel and data set, with means over the splits. If a machine has
    w = 0 on a split, the machine is left out of the correlations on this split.
    """

    names = [q.name for q in QUANTITIES]
    # `corrwith` leaves out missing values before it ranks both series
    parts = {k: p[names].corrwith(p.accuracy, method="spearman") for k, p in scores.groupby(SPLIT)}
    by_split = pd.DataFrame(parts).T.rename_axis(SPLIT)
    return by_split.groupby(["kernel", "dataset"]).mean()


def mean_ranks(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean rank of each machine over the data sets, by each quantity and by accuracy.

    Values are averaged over the splits before they are ranked; rank 1 is the best.
    """
    names = [q.name for q in QUANTITIES] + ["accuracy"]
    means = scores.groupby(CELL)[names].mean()
    ranks = means.groupby(["kernel", "dataset"]).rank(ascending=False)
    return ranks.groupby(["kernel", "machine"]).mean()


def label(machine: str) -> str:
    """Return the name of a machine in tables."""
    return alias_of(machine).label


def markdown(head: Sequence[str], lines: Iterable[Iterable[str]]) -> str:
    """Return a markdown table: text in the first column, numbers in all other columns."""
    sides = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, sides, *lines))


def quantities(kernel: str, ranks: pd.DataFrame, found: pd.DataFrame, others: pd.DataFrame) -> str:
    """Return the table of the quantities, with mean ranks and correlations with accuracy.

    Each row names the machine with the best mean rank, and the machine that optimises the quantity.
    `found` contains the correlations over all machines. `others` contains the correlations over all
    machines except the MAMC.
    """
    lines = []
    for q in QUANTITIES:
        own, values = ranks.loc[kernel][q.name].dropna(), found.loc[kernel][q.name]
        best = own.idxmin()
        both = (f"{label(m)} {own[m]:.1f}" if m in own else "–" for m in (best, q.machine))
        accuracy = f"{ranks.loc[(kernel, best), 'accuracy']:.1f}"
        positive = f"{int((values > 0).sum())} of {len(values)}"
        alone = with_error(others.loc[kernel][q.name])
        lines.append([q.name, q.paper, *both, accuracy, with_error(values), positive, alone])
    head = ["quantity", "paper", "best machine", "machine of the quantity"]
    more = ["correlation", "sets with positive correlation", "correlation without the MAMC"]
    return markdown([*head, "accuracy rank of the best machine", *more], lines)


def with_error(values: pd.Series) -> str:
    """Return a mean over the data sets with its standard error."""
    return f"{signed(values.mean())} ± {values.std() / np.sqrt(len(values)):.2f}"


def conclusions(ranks: pd.DataFrame, found: pd.DataFrame, others: pd.DataFrame) -> dict[str, Any]:
    """Return the quantities whose machine is the best by them, and the correlations that differ
    from zero, with and without the MAMC.
    """
    kernels = ("linear", "rbf")
    first = [
        f"{label(q.machine)} by {q.name} ({KERNEL_NAMES[kernel]})"
        for kernel in kernels
        for q in QUANTITIES
        if q.machine in ranks.loc[kernel].index and ranks.loc[kernel][q.name].idxmin() == q.machine
    ]
    compared = sum(q.machine in ranks.loc[k].index for k in kernels for q in QUANTITIES)
    every = [(kernel, q.name) for kernel in kernels for q in QUANTITIES]
    apart, left = (
        [
            f"{name} ({KERNEL_NAMES[kernel]}, {signed(part.loc[kernel][name].mean())})"
            for kernel, name in every
            if ttest_1samp(part.loc[kernel][name], 0.0).pvalue < 0.05
        ]
        for part in (found, others)
    )
    check(left and len(left) < len(apart) / 2, "much is due to the MAMC")
    largest = max(abs(others.loc[kernel][name].mean()) for kernel, name in every)
    check(largest < 0.3, "no quantity tells which machine is the most accurate")
    counts = {"compared": compared, "every": len(every), "apart": len(apart)}
    return {"first": first, "left": left, "largest": largest, **counts}


def bounds(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the worst-case, training and test accuracy of each class.

    The table has one row per machine, split and class.
    """
    sides = ("negative", "positive")
    parts = [
        frame[[*SPLIT, "machine"]].assign(
            bound=frame[f"alpha_{side}"], train=frame[f"train_{side}"], test=frame[f"test_{side}"]
        )
        for side in sides
    ]
    return pd.concat(parts)


def worst_cases(found: pd.DataFrame, kernel: str) -> str:
    """Return the table of the worst-case accuracies, one row per machine."""
    own = found[found.kernel == kernel]
    holds = {f"{side}_holds": own[side] >= own.bound for side in ("train", "test")}
    columns = ["bound", "train", "test", *holds]
    means = 100 * own.assign(**holds).groupby("machine", sort=False)[columns].mean()
    line = "{:.1f} {:.1f} {:.1f} {:.0f} {:.0f}"
    head = ["machine", "bound (%)", "training accuracy (%)", "test accuracy (%)"]
    more = ["bound holds, training (%)", "bound holds, test (%)"]
    rows = ([label(str(m)), *line.format(*values).split()] for m, values in means.T.items())
    return markdown([*head, *more], rows)


def radii(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the radii R and Rbar of the training rows, their ratio and the products R²‖w‖², as
    means over the splits, with one row per kernel and data set.
    """
    columns = ["R", "Rbar", "ratio", "radius_margin"]
    cells = frame.assign(ratio=frame.Rbar / frame.R).groupby(CELL, sort=False)[columns].mean()
    products = cells.radius_margin.unstack("machine")[["svm", "rmm", "fsvm"]]
    return cells.xs("svm", level="machine")[columns[:3]].join(products)


def page() -> str:
    """Return the text of the page ``docs/geometry.md``."""
    frame = pd.read_csv(HYPERPLANES)
    scores = scored(frame)
    ranks, found, classes = mean_ranks(scores), correlations(scores), bounds(frame)
    others = correlations(scores[scores.machine != "mamc"])
    test = {k: (own.test >= own.bound) for k, own in classes.groupby("kernel")}
    means = radii(frame)
    lines = ([f"{d}, {k}", *RADII.format(*values).split()] for (k, d), values in means.T.items())
    products = (f"R²‖w‖², {name}" for name in ("SVM", "RMM", "F-SVM"))
    text = rendered(
        TEMPLATE,
        ranks=ranks,
        said=conclusions(ranks, found, others),
        quantities={k: quantities(k, ranks, found, others) for k in ("linear", "rbf")},
        worst={k: worst_cases(classes, k) for k in ("linear", "rbf")},
        holds={k: 100 * held.mean() for k, held in test.items()},
        on_training=100 * (classes.train >= classes.bound - 1e-9).mean(),
        radii=markdown(["data set, kernel", "R", "Rbar", "Rbar / R", *products], lines),
        exact=(frame.R_bound == frame.R).all(),
        fsvm_larger=(means.fsvm > means.svm).sum(),
        check=check,
        trivial=int((frame.norm == 0).sum()),
        n=len(frame),
    )
    mamc = frame[(frame.machine == "mamc") & (frame.kernel == "rbf")]
    check((mamc.test_negative + mamc.test_positive == 1).all(), "it predicts the larger class")
    return text.replace(CHECKED, "")


def main(arguments: list[str]) -> int:
    """Measure if asked, then write or check the page."""
    if arguments[:1] == ["measure"]:
        frame = measure(Path(arguments[1]))
        HYPERPLANES.parent.mkdir(exist_ok=True)
        packed = {"method": "gzip", "mtime": 0}
        frame.to_csv(HYPERPLANES, index=False, float_format=f"%.{DIGITS}g", compression=packed)
        arguments = []
    return write_or_check(PAGE, page(), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
