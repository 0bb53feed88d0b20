"""Write docs/verdict.md from its template: the machines compared in the experiment `verdict`.

Ranks and tests are computed as in the layout ``comparison``, from the frames of the reference
folders. If an outcome of a comparison has a probability of at least `SURE`, the page states the
outcome as a finding. All other comparisons are undecided.

    python -m results.pages.verdict_text  # writes the page
    python -m results.pages.verdict_text --check  # exits with 1 if the page differs
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from mmbench.jobs.planned import Key, grouped
from mmbench.results.cells import METRIC, SELECTED, all_fits, selected
from mmbench.results.folder import CSV, read_reference
from mmbench.results.frames import KernelKey
from mmbench.results.pairwise import dataset_gaps, ranks_of, sign_of, stability_of_ranks
from mmbench.results.statistics import Posterior, Ranks, signed_rank_posterior
from mmbench.tables import blocks as metrics
from mmbench.tables.blocks import signed, statuses_text
from mmbench.tables.build import laid_out
from mmbench.tables.figures import title_of
from mmbench.tables.figures.machines import time_ratios
from mmbench.tables.layouts.comparison import (
    decimals_of,
    rope_of,
    stability_texts,
    worst_cases,
)
from mmbench.tables.names import caption_of
from results.pages.reference_text import KERNELS, REFERENCE, listing, rendered, write_or_check

TEMPLATE = Path(__file__).with_suffix(".md.jinja")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "verdict.md"
#: The machine with which the others are compared.
SVM = "svm"
#: Minimum probability of a finding.
SURE = 0.95
#: A machine is called faster below this ratio of its CPU time to the SVM's, as in the template.
FASTER = 0.9
EXPERIMENTS = ("verdict", "verdict_large")
METRICS = (METRIC, "balanced_accuracy", "auc", "log_loss")


class Against(NamedTuple):
    """Comparison of a machine with the SVM over data sets, for one kernel and one metric."""

    mean: str
    posterior: Posterior
    #: Numbers of differences above, within and below the region of practical equivalence, as text.
    counts: str

    @property
    def bar(self) -> str:
        """Probabilities as HTML text; the style sheet draws a bar from the shares."""
        worse, better = self.posterior.worse, self.posterior.better
        shares = f"--worse: {worse:.2f}; --better: {better:.2f}"
        return f'<span class="bar" style="{shares}">{self.posterior}</span>'

    @property
    def finding(self) -> str:
        """Outcome with a probability of at least `SURE`; empty if there is none."""
        said = self.posterior._asdict().items()
        return next((word for word, p in said if p >= SURE), "")


class Verdict:
    """The comparisons of an experiment.

    Parameters
    ----------
    experiment : str
        A folder of the reference tables, with a column of the SVM.
    """

    def __init__(self, experiment: str):
        self.name, self.results = experiment, laid_out(read_reference(REFERENCE / experiment))
        cells = self.results.cells
        ran = set(cells.metric[cells.measured.notna()])
        self.metrics = [name for name in METRICS if name in ran]
        self.kernels = self.results.kernels
        self.label = self.results.label

    @cached_property
    def lacking(self) -> list[Key]:
        """The cells without a result."""
        return [key for key in self.results.keys if self.results.value(key, METRIC) is None]

    @cached_property
    def without_auc(self) -> list[str]:
        """The cells with predictions but no AUC, as printed."""
        cells = self.results.cells
        lost = cells.key[(cells.metric == "auc") & cells.measured.isna()]
        keys = (key for key in lost if key not in self.lacking)
        return [f"{self.label(k.machine)} on {k.dataset} ({k.kernel})" for k in keys]

    @property
    def pictures(self) -> list[tuple[str, str]]:
        """File names and titles of the pictures beside the table."""
        files = sorted((REFERENCE / self.name).glob("*.svg"))
        return [(file.name, title_of(file.stem).rstrip(".")) for file in files]

    @cached_property
    def bounds(self) -> list[list[str]]:
        """Rows of the table of the bounds on the accuracy of the worse class."""
        rows = worst_cases(self.results).rows
        return [[machine, KERNELS[kernel], *figures] for machine, kernel, *figures in rows]

    def machines(self, kernel: KernelKey) -> list[str]:
        """Return the machines that have results with a kernel, without the SVM."""
        means = self.results.wide(self.results.places_of(kernel)).drop(columns=SVM)
        return list(means.dropna(axis=1, how="all"))

    def kernels_of(self, machine: str) -> list[KernelKey]:
        """Return the kernels with which a machine has results."""
        return [kernel for kernel in self.kernels if machine in self.machines(kernel)]

    def caption(self, kernel: KernelKey) -> str:
        """Return the caption of a kernel, such as "Linear kernel and other packages"."""
        return caption_of(self.results, kernel)

    @staticmethod
    def short(kernel: KernelKey) -> str:
        """Return the name of a kernel in a table cell, such as "linear" or "RBF"."""
        return KERNELS[kernel[0]]

    def ranks(self, kernel: KernelKey, metric: str) -> Ranks | None:
        """Return the mean ranks; None if there are fewer than three machines or two data sets."""
        try:
            return ranks_of(self.results, kernel, metric)
        except ValueError:
            return None

    @cached_property
    def stabilities(self) -> dict[KernelKey, pd.DataFrame]:
        """Frame of `rank_stability` by kernel: how much ranks by accuracy depend on chance."""
        frames = ((k, stability_of_ranks(self.results, k)) for k in self.kernels)
        return {k: frame for k, frame in frames if frame is not None}

    @cached_property
    def comparisons(self) -> dict[tuple[str, KernelKey, str], Against]:
        """Comparisons with the SVM on at least two data sets, by machine, kernel and metric."""
        cells = [(m, k) for m in self.results.columns for k in self.kernels_of(m)]
        asked = [(*cell, metric) for cell in cells for metric in self.metrics]
        gaps = {(m, k, x): dataset_gaps(self.results, k, m, SVM, x) for m, k, x in asked}
        return {at: against(at[-1], own) for at, own in gaps.items() if len(own) > 1}

    def rbf_against_linear(self, metric: str) -> Against | None:
        """Return the comparison between the RBF and the linear kernel of the SVM."""
        rbf = ("rbf", None)
        places = [place._replace(machine=SVM) for place in self.results.places_of(rbf)]
        keys = [(place, place._replace(kernel="linear")) for place in places]
        pairs = [[self.results.value(key, metric) for key in pair] for pair in keys]
        gaps = [sign_of(metric) * (a - b) for a, b in pairs if None not in (a, b)]
        return against(metric, gaps) if len(gaps) > 1 else None

    def with_finding(self, finding: str) -> list[tuple[str, str, str, str]]:
        """Return machine, kernel, median and quartiles of CPU time ratios per accuracy finding."""
        return [
            (self.label(m), self.short(kernel), *self.times(kernel, m)[::2])
            for (m, kernel, metric), own in self.comparisons.items()
            if metric == METRIC and own.finding == finding
        ]

    def times(self, kernel: KernelKey, machine: str) -> tuple[str, str, str]:
        """Return the median, range and quartiles of CPU time relative to the SVM over data sets,
        as texts with two significant digits.
        """
        ratios = time_ratios(self.results, kernel, machine, SVM)
        if not len(ratios):
            return "–", "–", "–"
        quantiles = np.quantile(ratios, (0.5, 0, 1, 0.25, 0.75))
        median, least, most, low, high = (f"{float(f'{q:.2g}'):g}" for q in quantiles)
        return median, f"{least} to {most}", f"{low} to {high}"

    def ends(self, machine: str) -> list[tuple[str, int, int]]:
        """For each parameter, return name, number of choices at a grid end, and number of choices.

        Parameters are left out if some splits choose a word, such as "sqrt".
        """
        at, of, words = Counter[str](), Counter[str](), set[str]()
        for key, splits in self.results.by_cell.items():
            for row in selected(splits) if key.machine == machine else ():
                name = row["metric"].removeprefix(SELECTED)
                of[name] += row["n"]
                at[name] += row["at_ends"]
                if row["n"] < row["choices"]:
                    words.add(name)
        return [(name, at[name], of[name]) for name in of if name not in words]

    def fits(self, machine: str) -> str:
        """Return the statuses of a machine's fits as text; empty if there are none."""
        return statuses_text(self.results, machine)

    def above(self, machine: str) -> str:
        """Return how many of a machine's duality gaps are above the tolerance, as text."""
        names = ("gaps_above_tolerance", "n_gaps")
        above, of = (self.results.value(all_fits(machine), name) for name in names)
        return "–" if above is None or of is None else f"{above:.0f} of {of:.0f}"

    def advice(self, machine: str) -> str:
        """Return advice on when to prefer a machine to the SVM, from findings and CPU times."""
        own = {at: made for at, made in self.comparisons.items() if at[0] == machine}
        by = grouped((made.finding, name_of(at[-1])) for at, made in own.items())
        findings = by.keys()
        if "better" in findings:
            words = (word for word in ("better", "worse") if word in by)
            return ", ".join(f"{word} by {listing(dict.fromkeys(by[word]))}" for word in words)
        if findings == {"worse"}:
            return "not on data sets like these"
        if findings == {"equivalent"}:
            times = [self.times(kernel, machine)[0] for kernel in self.kernels_of(machine)]
            faster = [time != "–" and float(time) < FASTER for time in times]
            words = {0: "not faster", len(faster): "and faster"}
            how = words.get(sum(faster), "faster with one kernel")
            return f"as good as the SVM by all metrics, {how}"
        if findings == {"equivalent", "worse"}:
            return "better by no metric, worse by some"
        return "better by no metric, undecided by some"


def against(metric: str, gaps: Sequence[float]) -> Against:
    """Return the comparison with differences `gaps` on data sets; positive ones are better."""
    rope = rope_of(metric)
    wins, losses = (sum(sign * gap > rope for gap in gaps) for sign in (1, -1))
    counts = f"{wins}/{len(gaps) - wins - losses}/{losses}"
    mean = signed(float(np.mean(gaps)), decimals_of(metric))
    return Against(mean, signed_rank_posterior(gaps, rope), counts)


def name_of(metric: str) -> str:
    """Return the name of a metric in a sentence."""
    label = metrics.label(metric).removesuffix(" (%)")
    return label if label.isupper() else label.lower()


def page(names: Sequence[str] = EXPERIMENTS) -> str:
    """Return the page for the experiments in `names` that have reference tables."""
    found = {n: Verdict(n) for n in names if (REFERENCE / n / CSV).exists()}
    functions = {"metric": name_of, "stability_texts": stability_texts}
    text = rendered(TEMPLATE, found=found, names=names, sure=SURE, **functions)
    return re.sub(r"\n{3,}", "\n\n", text.strip()) + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
