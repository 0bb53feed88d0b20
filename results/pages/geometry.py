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
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import ttest_1samp

import mmbench
from mmbench.jobs.choice import choice_of
from mmbench.jobs.clock import Clock
from mmbench.jobs.prepare import prepare
from mmbench.jobs.train import train
from mmbench.machines import alias_of
from mmbench.results.folder import read_experiment
from mmbench.results.frames import Results
from mmbench.tables.blocks import signed
from results.pages.reference_text import (
    CHECKED,
    REFERENCE,
    check,
    listing,
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


class Quantity(NamedTuple):
    """A quantity that does not depend on the scale of (w, b)."""

    name: str
    paper: str
    #: Machine that optimises the quantity (often plus a slack or a norm); empty if there is none.
    machine: str
    #: 1 if larger values are better; -1 if smaller values are better.
    better: int
    values: Callable[[pd.DataFrame], pd.Series]


QUANTITIES = (
    Quantity("smallest margin", "SVM", "svm", 1, lambda f: f.margin),
    Quantity("average margin", "MAMC (5)", "mamc", 1, lambda f: f.average_margin),
    Quantity("margin variance", "LDM", "ldm", -1, lambda f: f.margin_variance),
    Quantity("relative margin, 1/B", "RMM (5)", "rmm", 1, lambda f: f.relative_margin),
    Quantity(
        "spread / average margin",
        "RMM (3)",
        "sigma_svm",
        -1,
        lambda f: _positive(f.spread, f.average_margin),
    ),
    Quantity("d_w_v / d_b_c", "MMRM (2), (3)", "lda", -1, lambda f: _positive(f.d_w_v, f.d_b_c)),
    Quantity("kappa", "MPM", "mpm", 1, lambda f: f.kappa),
    Quantity("worst-case accuracy", "MEMPM", "mempm", 1, lambda f: f.worst_case),
    Quantity("rho of the M4", "M4 (1)", "m4", 1, lambda f: f.rho_m4),
    Quantity("margin ratio rho", "MMRM (20)", "mmrm", 1, lambda f: f.rho),
    Quantity("U_G", "RMM, A", "sigma_svm", -1, lambda f: _positive(f.U_G, _mean_tf(f))),
    Quantity("U_H", "RMM, A", "rmm", -1, lambda f: _positive(f.U_H, _mean_tf(f))),
)


def _mean_tf(frame: pd.DataFrame) -> pd.Series:
    """Return the mean of ``t_i f(x_i)``, by which the Rademacher bounds are divided."""
    return frame.average_margin * frame.norm


def _positive(numerator: pd.Series, denominator: pd.Series) -> pd.Series:
    """Return numerator / denominator, or infinity if the denominator is not positive."""
    return (numerator / denominator).where(denominator > 0, np.inf)


# -- measuring -----------------------------------------------------------------------------------


def measure(folder: Path) -> pd.DataFrame:
    """Return the accuracies and the values of `mmbench.geometry`, one row per record."""
    rows = pd.DataFrame(list(_rows(read_experiment(folder))))
    return rows.sort_values([*SPLIT, "machine"]).reset_index(drop=True)


def _rows(results: Results) -> Iterator[dict[str, Any]]:
    store, mirror = Path(os.environ.get("MMBENCH_DATA", "datasets")), os.environ["MMBENCH_MIRROR"]
    for record in sorted(results.records.values(), key=lambda record: record.job.dataset.name):
        job, data = record.job, prepare(record.job, store, mirror)
        chosen, clock = [choice_of(record.selection)], Clock("warm_up", "selection", "training")
        machine, _ = train(replace(job, grid=()), data, chosen, 1, record.seeds, clock)
        predicted = machine.predict(data.X_test)
        stored = results.arrays(record.key)["predicted"]
        if not np.array_equal(predicted, stored):
            raise SystemExit(f"{record.key}: the machine predicts other labels than the record")
        values = mmbench.geometry(machine, data.X_train, data.y_train).iloc[0].to_dict()
        labels = values.pop("negative"), values.pop("positive")
        fitted = machine.predict(data.X_train)
        recalls = {
            f"{part}_{side}": float((found[truth == label] == label).mean())
            for part, found, truth in (
                ("train", fitted, data.y_train),
                ("test", predicted, data.y_test),
            )
            for side, label in zip(("negative", "positive"), labels, strict=True)
        }
        yield {
            "kernel": job.kernel,
            "dataset": job.dataset.name,
            "fold": job.split.fold,
            "machine": job.column,
            "accuracy": float((predicted == data.y_test).mean()),
            **recalls,
            **values,
        }


# -- the page ------------------------------------------------------------------------------------


def scored(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the quantities times `Quantity.better`, so that larger values are better."""
    columns = {q.name: q.better * q.values(frame) for q in QUANTITIES}
    return pd.concat([frame[[*SPLIT, "machine", "accuracy"]], pd.DataFrame(columns)], axis=1)


def correlations(scores: pd.DataFrame) -> pd.DataFrame:
    """Return Spearman's correlation, over the machines, of each quantity with test accuracy.

    The table has one row per kernel and data set, with means over the splits. If a machine has
    w = 0 on a split, the machine is left out of the correlations on this split.
    """

    def of_split(part: pd.DataFrame) -> pd.Series:
        # `Series.corr` leaves out missing values before it ranks both series
        return part[[q.name for q in QUANTITIES]].corrwith(part.accuracy, method="spearman")

    parts = {key: of_split(part) for key, part in scores.groupby(SPLIT)}
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


def markdown(head: list[str], lines: list[list[str]]) -> str:
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
        theirs = f"{label(q.machine)} {own[q.machine]:.1f}" if q.machine in own else "–"
        lines.append(
            [
                q.name,
                q.paper,
                f"{label(best)} {own[best]:.1f}",
                theirs,
                f"{ranks.loc[(kernel, best), 'accuracy']:.1f}",
                with_error(values),
                f"{int((values > 0).sum())} of {len(values)}",
                with_error(others.loc[kernel][q.name]),
            ]
        )
    head = ["quantity", "paper", "best machine", "machine of the quantity"]
    more = ["correlation", "sets with positive correlation", "correlation without the MAMC"]
    return markdown([*head, "accuracy rank of the best machine", *more], lines)


def with_error(values: pd.Series) -> str:
    """Return a mean over the data sets with its standard error."""
    return f"{signed(values.mean())} ± {values.std() / np.sqrt(len(values)):.2f}"


def differs(values: pd.Series) -> bool:
    """Return whether a mean over data sets differs from zero (Student's t-test, level 0.05)."""
    return bool(ttest_1samp(values, 0.0).pvalue < 0.05)


def conclusions(ranks: pd.DataFrame, found: pd.DataFrame, others: pd.DataFrame) -> str:
    """Return paragraphs on the machines that optimise a quantity and on the correlations."""
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
            if differs(part.loc[kernel][name])
        ]
        for part in (found, others)
    )
    check(left and len(left) < len(apart) / 2, "much is due to the MAMC")
    largest = max(abs(others.loc[kernel][name].mean()) for kernel, name in every)
    check(largest < 0.3, "no quantity tells which machine is the most accurate")
    best = f"In {len(first)} of {compared} cases the machine of a quantity is the best by it"
    return (
        f"{best}{': ' + listing(first) if first else ''}. Except for the MAMC, no machine "
        "optimises its quantity alone: a slack, a norm or a ridge is added, whose weight is "
        "selected by accuracy.\n\n"
        f"Of the {len(every)} correlations {len(apart)} differ from zero at level 0.05 "
        "(Student's t over the data sets). If the quantities were independent and had no relation "
        f"to accuracy, {0.05 * len(every):.1f} would be expected to differ. Many of these "
        "correlations are due to the MAMC: with the RBF kernel and its own bias it predicts the "
        "larger class, and it has the largest average margin. Without the MAMC "
        f"{len(left)} of {len(every)} differ from zero: "
        f"{listing(left)}. Without the MAMC, the absolute value of every correlation is at most "
        f"{largest:.2f}: no quantity determines which machine is the most accurate."
    )


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
    lines = []
    own = found[found.kernel == kernel]
    for machine, part in own.groupby("machine", sort=False):
        holds = [(part[side] >= part.bound).mean() for side in ("train", "test")]
        means = [100 * part[side].mean() for side in ("bound", "train", "test")]
        lines.append(
            [label(machine), *(f"{mean:.1f}" for mean in means), *(f"{100 * h:.0f}" for h in holds)]
        )
    head = ["machine", "bound (%)", "training accuracy (%)", "test accuracy (%)"]
    return markdown([*head, "bound holds, training (%)", "bound holds, test (%)"], lines)


def radii(frame: pd.DataFrame) -> str:
    """Return the table of the radii R and Rbar of the training rows and the products R²‖w‖².

    All values, including the ratios Rbar / R, are means over the splits.
    """
    lines = []
    own = frame[frame.machine == "svm"]
    for (kernel, dataset), part in own.groupby(["kernel", "dataset"], sort=False):
        ratio = (part.Rbar / part.R).mean()
        fits = frame[(frame.kernel == kernel) & (frame.dataset == dataset)]
        products = [fits[fits.machine == m].radius_margin.mean() for m in ("svm", "rmm", "fsvm")]
        lines.append(
            [
                f"{dataset}, {kernel}",
                f"{part.R.mean():.3g}",
                f"{part.Rbar.mean():.3g}",
                f"{ratio:.3f}",
                *(f"{product:.3g}" for product in products),
            ]
        )
    head = ["data set, kernel", "R", "Rbar", "Rbar / R"]
    return markdown([*head, *(f"R²‖w‖², {name}" for name in ("SVM", "RMM", "F-SVM"))], lines)


def fsvm_larger(frame: pd.DataFrame) -> int:
    """Count the pairs (data set, kernel) with a larger mean R²‖w‖² for the F-SVM than the SVM."""
    products = frame.groupby(CELL).radius_margin.mean().unstack("machine")
    return int((products.fsvm > products.svm).sum())


def page() -> str:
    """Return the text of the page ``docs/geometry.md``."""
    frame = pd.read_csv(HYPERPLANES)
    scores = scored(frame)
    ranks, found, classes = mean_ranks(scores), correlations(scores), bounds(frame)
    others = correlations(scores[scores.machine != "mamc"])
    test = {k: (own.test >= own.bound) for k, own in classes.groupby("kernel")}
    text = rendered(
        TEMPLATE,
        ranks=ranks,
        conclusions=conclusions(ranks, found, others),
        quantities={k: quantities(k, ranks, found, others) for k in ("linear", "rbf")},
        worst={k: worst_cases(classes, k) for k in ("linear", "rbf")},
        holds={k: 100 * held.mean() for k, held in test.items()},
        on_training=100 * (classes.train >= classes.bound - 1e-9).mean(),
        radii=radii(frame),
        exact=(frame.R_bound == frame.R).all(),
        fsvm_larger=fsvm_larger(frame),
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
