"""Write results/reference/README.md from its template, with numbers computed from the tables.

The sentences are in the template, ``reference_text.md.jinja``. Numbers are read from the frames of
the reference folders. A claim in words stands beside a call
of ``check(...)``, which raises an error if the tables contradict the claim. Numbers from other
measurements are inside ``{% call apart() %}``; the page marks them with †. A cell is near if its
published value is within two standard errors of the measured value.

    python -m results.pages.reference_text            # writes the page
    python -m results.pages.reference_text --check    # exits with 1 if the page differs
"""

from __future__ import annotations

import itertools
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from mmbench.config.files import find_config
from mmbench.config.plan import version_of
from mmbench.config.read import load_config
from mmbench.jobs.store import Key
from mmbench.machines import alias_of
from mmbench.results.cells import ALL_IN_BAND, IN_BAND, OUT_OF_BAND, differences
from mmbench.results.differences import Difference
from mmbench.results.folder import read_reference
from mmbench.results.frames import Results
from mmbench.results.pairwise import difference_of, disagreements, ranks_of, split_gaps
from mmbench.results.statistics import LEVEL, Ranks, mcnemar_p, paired_p, win_tie_loss
from mmbench.tables.blocks import both, statuses_text, total
from mmbench.tables.build import laid_out
from mmbench.tables.layouts import rmm
from mmbench.tables.layouts.papers import EXCESS, SIGNIFICANT
from mmbench.tables.names import printed

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
TEMPLATE = Path(__file__).with_suffix(".md.jinja")
PAGE = REFERENCE / "README.md"
WIDTH = 112

#: Names of data sets that `name_of` cannot derive from the names of the cards.
NAMES = {
    "breast_wisconsin": "Breast",
    "breast_cancer": "Breast cancer",
    "diabetis": "Diabetes",
    "flare_solar": "Solar Flare",
    "solar_flare": "Solar Flare",
    "heart_statlog": "Heart",
    "segment": "Image",
    "usps": "USPS",
    "mnist": "MNIST",
}
#: Names of machines in sentences.
LABELS = {
    "svm": "SVM",
    "rmm": "RMM",
    "rsvm_plus": "R-SVM+",
    "rsvm_mu_plus": "R-SVMμ+",
    "fsvm": "F-SVM",
}
KERNELS = {"linear": "linear", "rbf": "RBF", "poly": "degree"}


def name_of(dataset: str) -> str:
    """Return the name of a data set in a sentence."""
    short = re.sub(r"^(ida|fsvm)_", "", dataset)
    return NAMES.get(short, short.replace("_", " ").capitalize())


class Count(NamedTuple):
    """Number of near cells (`near`) and number of compared cells (`of`)."""

    near: int
    of: int
    #: Number of near cells with the mark ~: all compared published values are within the band.
    untold: int = 0

    @property
    def marks(self) -> str:
        """The counts of the two marks of near cells, such as "14 ✓, 22 ~"."""
        counts = {"✓": self.near - self.untold, "~": self.untold}
        return ", ".join(f"{n} {mark}" for mark, n in counts.items() if n)


class Table:
    """The cells of the reference table of an experiment.

    The arguments `where` of the methods are machine, data set, kernel and degree, in this order.
    Arguments at the end may be omitted.
    """

    def __init__(self, experiment: str) -> None:
        self.experiment = experiment
        self.results = _read(experiment)
        frame = self.results.cells
        self.cells = frame[frame.dataset != ""].astype({"in_band": "object"})
        compared = self.cells[self.cells.in_band.notna()].metric
        self.compared = compared.iloc[0] if len(compared) else "accuracy_pct"

    def rows(
        self,
        machine: str | None = None,
        dataset: str | None = None,
        kernel: str | None = None,
        degree: int | None = None,
        metric: str | None = None,
    ) -> pd.DataFrame:
        """Return the cells of a metric, by default the metric that is compared with the paper."""
        wanted = {"machine": machine, "dataset": dataset, "kernel": kernel, "degree": degree}
        rows = self.cells[self.cells.metric == (metric or self.compared)]
        for column, value in wanted.items():
            rows = rows if value is None else rows[rows[column] == value]
        return rows

    def cell(self, *where: object, column: str = "measured", metric: str | None = None) -> float:
        """Return the value of a column for the single cell that agrees with `where`."""
        (value,) = self.rows(*where, metric=metric)[column]  # type: ignore[arg-type]
        return float(value)

    def accuracy(self, *where: object) -> float:
        """Return a mean accuracy in per cent."""
        return self.cell(*where, metric="accuracy_pct")

    def errors(self, *where: object) -> float:
        """Return a number of errors: the mean, if there are several runs."""
        return self.cell(*where, metric="errors_count")

    def published(self, *where: object) -> float:
        """Return the value that the paper prints."""
        return self.cell(*where, column="published")

    def seconds(self, stage: str, *where: object) -> float:
        """Return the CPU seconds of a stage."""
        return self.cell(*where, metric=f"seconds_{stage}")

    def near(self, *where: object) -> Count:
        """Count the compared cells by their marks."""
        marks = list(self.rows(*where).mark)  # type: ignore[arg-type]
        near, untold, far = (marks.count(mark) for mark in (IN_BAND, ALL_IN_BAND, OUT_OF_BAND))
        return Count(near + untold, near + untold + far, untold)

    def marks(self) -> str:
        """Return the counts of all marks, such as "9 ✓, 7 ~, 12 ✗"."""
        count = self.near()
        far = f"{count.of - count.near} {OUT_OF_BAND}" if count.of > count.near else ""
        return ", ".join(filter(None, [count.marks, far]))

    def near_by_printed_errors(self) -> int:
        """Count the near cells if the printed ± is the standard error of the published mean."""
        return int(self.rows().in_band_published_se.astype("boolean").sum())

    def order(self) -> str:
        """Return the counts of the function `differences` as text.

        "6 of 8 (5)" means that 6 of 8 published differences above the noise level have the same
        sign in our measurements, and that 5 of these 6 are also above the noise level.
        """
        published, same, beyond = differences(self.cells)
        return f"{same} of {published} ({beyond})" if published else "–"

    def order_sentence(self) -> str:
        """Return the counts of `order` as a sentence."""
        published, same, beyond = differences(self.cells)
        return (
            f"Of the {published} published differences between two machines that exceed noise, "
            f"{same} {'has' if same == 1 else 'have'} the same sign here ({beyond} beyond noise)."
        )

    def far(self, *where: object) -> list[str]:
        """Return the names of the compared cells that are not near."""
        rows = self.rows(*where)  # type: ignore[arg-type]
        rows = rows[rows.mark == OUT_OF_BAND].astype({"degree": object}).fillna({"degree": ""})
        kernels = [f"{KERNELS[row.kernel]} {row.degree}".strip() for row in rows.itertuples()]
        return [f"{name_of(d)} ({k})" for d, k in zip(rows.dataset, kernels, strict=True)]

    def told(self) -> list[str]:
        """Return the names of the data sets with at least one mark ✓."""
        rows = self.rows()
        return list(dict.fromkeys(map(name_of, rows[rows.mark == IN_BAND].dataset)))

    def datasets(self) -> list[str]:
        """Return the data sets, in the order of the table."""
        return list(dict.fromkeys(self.cells.dataset))

    def times(self, machine: str, other: str, stage: str = "training") -> list[float]:
        """Return the ratio of two machines' CPU seconds (`machine` / `other`) per data set."""
        ours, theirs = (self._by_dataset(m, f"seconds_{stage}") for m in (machine, other))
        return list(ours / theirs)

    def slower(self, machine: str, other: str) -> int:
        """Return the number of data sets on which a machine trains longer than another machine."""
        return sum(ratio > 1 for ratio in self.times(machine, other))

    def gains(self, machine: str, other: str, column: str = "measured") -> dict[str, float]:
        """Return the difference in mean accuracy (`machine` minus `other`) per data set."""
        ours, theirs = (self._by_dataset(m, "accuracy_pct", column) for m in (machine, other))
        return (ours - theirs).to_dict()

    def wins(self, machine: str, other: str, column: str = "measured") -> int:
        """Return the number of data sets on which `machine` is more accurate than `other`."""
        return sum(gain > 0 for gain in self.gains(machine, other, column).values())

    def _by_dataset(self, machine: str, metric: str, column: str = "measured") -> pd.Series:
        values = self.rows(machine, metric=metric).set_index("dataset")[column]
        return values.reindex(self.datasets())

    def mcnemar(self, kernel: str, degree: int | None = None) -> list[float]:
        """Return McNemar's p-values of RMM and SVM in the first run, by degree of the kernel."""
        places = [p for p in self.results.places if kernel in ("", p.kernel)]
        places = [place for place in places if degree in (None, place.degree)]
        pairs = [[p._replace(machine=m) for m in ("rmm", "svm")] for p in places]
        found = (disagreements(self.results, *pair) for pair in pairs)
        return [mcnemar_p(*counts) for counts in found if counts]

    def ranks(self, kernel: str) -> Ranks:
        """Return the mean ranks of the machines over the data sets and Friedman's p-value."""
        return _ranks(self.experiment, kernel)

    def tests(self, machine: str, other: str) -> dict[str, Difference]:
        """Return the tested differences of two machines by data set; the experiment must have one
        kernel only.
        """
        pairs = (
            (p.dataset, [p._replace(machine=name) for name in (machine, other)])
            for p in self.results.places
        )
        found = {name: difference_of(self.results, *keys) for name, keys in pairs}
        return {name: own for name, own in found.items() if own and own.tested}

    def test_sentence(self, machine: str, other: str) -> str:
        """State on how many data sets the two machines differ by more than chance."""
        tested, n = self.tests(machine, other), len(self.results.places)
        if not tested:
            return (
                "Whether a difference on a single set is larger than chance cannot be told: the "
                "splits have fewer than twice as many training rows as test rows, and no counts of "
                "right predictions per row are stored."
            )
        beyond = [name for name, own in tested.items() if own.p < LEVEL]
        told = f" of the {len(tested)} sets on which a test is possible" if len(tested) < n else ""
        texts = [f"{name_of(name)} (p = {tested[name].p:.2g})" for name in beyond]
        least = math.floor(100 * min(own.p for own in tested.values())) / 100
        what = f"on {listing(texts)}" if texts else f"on none (p at least {least})"
        return f"The two differ by more than chance {what}{told}."

    # Numbers for single paragraphs of the page.

    def average(self, machine: str, column: str = "measured") -> float:
        """Return the mean of the printed values (two decimals) over the data sets."""
        return float(self.rows(machine)[column].round(2).mean())

    def below_published(self, machine: str) -> float:
        """Return the published average minus the measured average over the data sets."""
        return self.average(machine, "published") - self.average(machine)

    def average_distance(self) -> float:
        """Return the largest absolute value of `below_published` over the machines."""
        return max(abs(self.below_published(m)) for m in dict.fromkeys(self.cells.machine))

    def differing(self, kernel: str) -> list[tuple[str, str]]:
        """Return the pairs (worse, better) of machines whose mean ranks differ significantly."""
        ranks = self.ranks(kernel)
        pairs = itertools.permutations(ranks.means.items(), 2)
        return [(m, o) for (m, a), (o, b) in pairs if a - b > ranks.critical_difference]

    def worse_than_all(self, machine: str, kernel: str, but: str) -> bool:
        """Whether a machine ranks significantly behind all other machines, except for `but`."""
        behind = {other for worse, other in self.differing(kernel) if worse == machine}
        return set(self.ranks(kernel).means) - behind == {machine, but}

    def ratios(self, machine: str) -> tuple[list[float], list[float]]:
        """Return the ratios of a machine's times to the MAMC's: measured and published ones."""
        pairs = [self._ratio(place, machine) for place in self.results.places]
        return tuple([p[k] for p in pairs if p[k] == p[k]] for k in (0, 1))  # type: ignore[return-value]

    def _ratio(self, place: Key, machine: str) -> tuple[float, float]:
        keys = [place._replace(machine=name) for name in (machine, "mamc")]
        ours = [total(self.results, key) or math.nan for key in keys]
        known = {(row["dataset"], row["machine"]): row["value"] for row in _published_seconds()}
        theirs = [known.get((key.dataset, key.machine)) or math.nan for key in keys]
        return ours[0] / ours[1], theirs[0] / theirs[1]

    def order_differs(self, machine: str, other: str) -> list[str]:
        """Return the data sets on which the faster of two machines differs from the paper."""
        names = []
        for place in self.results.places:
            (a, c), (b, d) = (self._ratio(place, name) for name in (machine, other))
            if c == c and d == d and (a < b) != (c < d):
                names.append(printed(self.results, place.dataset))
        return names

    def percentiles(self, machine: str) -> list[float]:
        """Return the percentiles of the published values among our draws of the toy sets."""
        from scipy.stats import percentileofscore

        keys = [place._replace(machine=machine) for place in self.results.places]
        draws = [[round(v, 1) for v in self.results.by_split(key).values()] for key in keys]
        values = [self.results.row(key, "accuracy_pct").published for key in keys]
        return [percentileofscore(d, v, "mean") for d, v in zip(draws, values, strict=True)]

    def below(self, dataset: str, machines: Sequence[str]) -> list[float]:
        """Return published minus measured values of machines on a data set, for all kernels."""
        rows = pd.concat([self.rows(machine, dataset) for machine in machines])
        return list(rows.published - rows.measured)

    def best(self, machine: str, kernel: str) -> int:
        """Return the number of data sets on which a machine has the largest mean, as printed."""
        rows = self.rows(kernel=kernel).assign(printed=lambda r: r.measured.round(1))
        best = rows.groupby("dataset").printed.transform("max")
        return int(((rows.printed == best) & (rows.machine == machine)).sum())

    def total_seconds(self, machine: str) -> float:
        """Return the mean CPU seconds of selection and training per run, summed over all cells."""
        stages = ("seconds_selection", "seconds_training")
        return float(sum(self.rows(machine, metric=stage).measured.sum() for stage in stages))

    def relative_gains(self) -> list[float]:
        """Return the reduction of the SVM's errors by the RMM in per cent, from degree 2 on."""
        rmm, svm = (
            self.rows(m, kernel="poly").set_index("degree").measured for m in ("rmm", "svm")
        )
        return list(100 * (1 - rmm / svm).sort_index())[1:]

    def in_standard_errors(self, machine: str, other: str) -> list[float]:
        """Return the gap of two machines in units of the larger standard error, per data set."""
        return [
            abs(gain) / max(self.cell(m, d, column="se") for m in (machine, other))
            for d, gain in self.gains(machine, other).items()
        ]

    def distances(self, dataset: str | None = None) -> pd.Series:
        """Return measured minus published values, sorted by absolute value, largest first."""
        rows = self.rows(dataset=dataset).dropna(subset="in_band")
        away = (rows.measured - rows.published).set_axis([rows.machine, rows.dataset])
        return away.sort_values(key=abs, ascending=False)

    def farthest(self, n: int) -> str:
        """Return the `n` cells that are farthest from the published values, as text."""
        return listing(
            f"{LABELS[machine]} on {name_of(dataset)} ({abs(away):.1f} points "
            f"{'above' if away > 0 else 'below'})"
            for (machine, dataset), away in self.distances()[:n].items()
        )

    def near_but_not(self, other: Table, datasets: Sequence[str]) -> list[str]:
        """Return the cells of some data sets that are near in this table but not in `other`."""
        names = []
        for dataset in datasets:
            ours, theirs = (t.rows(dataset=dataset).set_index("machine") for t in (self, other))
            both = [m for m in LABELS if ours.in_band[m] and not theirs.in_band[m]]
            if both:
                names.append(f"{listing(LABELS[m] for m in both)} on {name_of(dataset)}")
        return names

    def spread_of(self, machines: Sequence[str]) -> list[float]:
        """Return the range (largest minus smallest) of some machines' means per data set."""
        rows = self.rows()
        means = rows[rows.machine.isin(machines)].groupby("dataset").measured
        return list(means.max() - means.min())


@cache
def _read(experiment: str) -> Results:
    return laid_out(read_reference(REFERENCE / experiment))


@cache
def _published_seconds() -> list[dict[str, Any]]:
    found = laid_out(read_reference(REFERENCE / "mamc_table2"), "mamc_table3").published
    return [dict(row) for row in found if row["metric"] == "seconds"]


@cache
def _ranks(experiment: str, kernel: str) -> Ranks:
    return ranks_of(_read(experiment), (kernel, None))


def listing(values: Iterable[object]) -> str:
    """Return the values as text in the form "a, b and c"."""
    *most, last = [str(value) for value in values]
    return f"{', '.join(most)} and {last}" if most else last


def decimals(digits: int) -> Callable[[float | Iterable[float]], str]:
    """Return a filter that prints one or several numbers with `digits` decimals."""

    def shown(value: float | Iterable[float]) -> str:
        if isinstance(value, Iterable):
            return listing(shown(v) for v in value)
        return f"{float(value):.{digits}f}"

    return shown


def span(values: Iterable[float], digits: int = 0) -> str:
    """Return the range of some values as text, such as "1 to 3"."""
    values = list(values)
    least, most = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def m4_verdict(t: Table) -> str:
    """State on which data sets the M4 is better than SVM and MPM by more than chance."""
    better: dict[str, list[str]] = {"plain": [], "tested": []}
    any_tested = False
    for place in t.results.places:
        keys = [place._replace(machine=name) for name in ("m4", "svm", "mpm")]
        gaps = [split_gaps(t.results, place, "m4", key.machine) for key in keys[1:]]
        found = [difference_of(t.results, keys[0], key) for key in keys[1:]]
        name = (
            f"{'linear' if place.kernel == 'linear' else 'RBF'} {printed(t.results, place.dataset)}"
        )
        if all(sum(own) > 0 and paired_p(own) < LEVEL for own in gaps):
            better["plain"].append(name)
        any_tested |= any(own is not None and own.tested for own in found)
        if all(own and own.d > 0 and own.p < LEVEL for own in found):
            better["tested"].append(name)
    none = ["no set"]
    plain = (
        "By the plain t-test, which treats splits that share rows as independent, it is "
        f"significantly better on {listing(better['plain'] or none)}."
    )
    sets = listing(better["tested"] or none)
    tested = f"The M4 is better than SVM and MPM by more than chance on {sets}."
    return f"{tested} {plain}" if any_tested else plain


def m4_claimed(t: Table) -> int:
    """Return the number of data sets on which the M4 is better than SVM and MPM in the paper."""
    return sum(place.dataset in SIGNIFICANT.get(place.kernel, ()) for place in t.results.places)


class Verdict(NamedTuple):
    """Whether MAMC_bs wins (1), ties (0) or loses (-1) against a machine, here and in the paper."""

    machine: str
    dataset: str
    signs: tuple[int, int]
    #: Mean of MAMC_bs minus mean of the machine, here and in the paper.
    gains: tuple[float, float]


def verdicts(t: Table) -> list[Verdict]:
    """Return the verdicts of Welch's test, the rule of the MAMC paper for wins and losses."""
    results, found = t.results, []
    sides = both(results, results.places)
    for k, place in enumerate(results.places):
        for machine in results.columns:
            pairs = [
                [[side[name][m][k] for name in ("mean", "sd", "n")] for m in ("mamc_bs", machine)]
                for side in sides
            ]
            counts = [win_tie_loss(first, other) for first, other in pairs]
            signs = tuple(wins - losses for wins, _, losses in counts)
            gains = tuple(first[0] - other[0] for first, other in pairs)
            found.append(Verdict(results.label(machine), name_of(place.dataset), signs, gains))
    return [verdict for verdict in found if verdict.machine != results.label("mamc_bs")]


def gains(found: Sequence[Verdict], side: int) -> list[float]:
    """Return the absolute differences between means, here (side 0) or in the paper (side 1)."""
    return [abs(verdict.gains[side]) for verdict in found]


def counted(t: Table, machine: str) -> list[str]:
    """Return the counts of wins, ties and losses of MAMC_bs against a machine, here and in the
    paper.
    """
    own = [verdict.signs for verdict in verdicts(t) if verdict.machine == machine]
    return ["/".join(str([s[k] for s in own].count(sign)) for sign in (1, 0, -1)) for k in (0, 1)]


def reading(name: str, machine: str, kernel: str, degree: int | None = None) -> float:
    """Return the measured value of a machine in a reading of a paper's protocol."""
    rows = pd.read_csv(REFERENCE / "readings.csv").query("reading == @name and machine == @machine")
    rows = rows[(rows.kernel == kernel) & (rows.degree.fillna(0) == (degree or 0))]
    (value,) = rows.measured
    return float(value)


def rounds(t: Table, column: str) -> dict[str, float]:
    """Return the excess of a column's objective over the optimum in per cent, by data set."""
    (machine,) = [name for name in t.results.columns if t.results.label(name) == column]
    rows = t.rows(machine, metric=EXCESS)
    return {
        name.removeprefix("ida_"): value
        for name, value in zip(rows.dataset, rows.measured, strict=True)
    }


def rounds_taken(t: Table) -> list[float]:
    """Return the least and the most rounds of the fits on each data set, by the paper's rule."""
    return [*t.rows(metric="rounds_min").measured, *t.rows(metric="rounds_max").measured]


def later_rounds(t: Table) -> list[float]:
    """Return the decrease of the objective in rounds 6 to 15, in percentage points of the optimum.

    There is one value per data set, without Breast cancer.
    """
    five, fifteen = rounds(t, "F-SVM, 5 rounds"), rounds(t, "F-SVM, 15 rounds")
    return [five[name] - fifteen[name] for name in five if name != "breast_cancer"]


def accuracy_spread(t: Table) -> list[float]:
    """Return the range of the accuracies after different numbers of rounds, per data set.

    A range is the largest minus the smallest accuracy, rounded up to one decimal.
    """
    means = t.results.wide(t.results.places).round(2)
    spreads = means.max(axis=1) - means.min(axis=1)
    return [math.ceil(10 * spread - 1e-9) / 10 for spread in spreads]


class Times:
    """The CPU times of the RMM paper's figure 2.

    The RMM has the bounds B₁, B₂ and B₃, each with a start at the SVM's solution and at zero.
    """

    BOUNDS = ("rmm_b1", "rmm_b2", "rmm_b3")

    def __init__(self, t: Table) -> None:
        self.results = t.results
        (self.base,) = {key._replace(machine="", size=None) for key in t.results.keys}
        self.after, self.whole = (self._frame(name) for name in (rmm.AFTER, rmm.WHOLE))
        self.sizes = [int(size) for size in self.after.index]

    def _frame(self, metric: str) -> pd.DataFrame:
        return rmm.seconds(self.results, self.base, metric)

    def exponents(self, metric: str, machine: str | None = None) -> list[float]:
        """Return the exponents of a machine's times, by default of the RMM at each bound."""
        names = [machine] if machine else self.BOUNDS
        keys = (self.base._replace(machine=name) for name in names)
        return [self.results.value(key, rmm.EXPONENT + metric) or math.nan for key in keys]

    def ratios(self, metric: str) -> list[float]:
        """Return the ratios of the RMM's times to the SVM's on all rows, at each bound."""
        return list(self._frame(metric).iloc[-1][list(self.BOUNDS)])

    def exponent_gap(self) -> float:
        """Return the largest difference between the exponents of whole trainings of RMM and SVM."""
        (svm,) = self.exponents(rmm.WHOLE, "svm")
        return max(abs(k - svm) for k in self.exponents(rmm.WHOLE))

    def saved_by_warm_start(self) -> str:
        """Return the time that a warm start from the SVM saves over all sizes, in per cent."""
        sums = self.after.sum()
        return listing(f"{100 * (1 - sums[b] / sums[f'{b}_cold']):.0f} %" for b in self.BOUNDS)

    def errors(self, size: int) -> list[float]:
        """Return the errors of the SVM and of the RMM at each bound with some training rows."""
        keys = (self.base._replace(machine=m, size=size) for m in ("svm", *self.BOUNDS))
        return [self.results.value(key, "errors_count") or 0.0 for key in keys]


def leak_worth(leak: Table, honest: Table, but: Sequence[str] = ()) -> list[float]:
    """Return the increase of each accuracy (in points) by a parameter selection on test rows."""
    both = leak.rows().merge(honest.rows(), on=["dataset", "machine"])
    both = both[~both.dataset.isin(but)]
    return list(both.measured_x - both.measured_y)


def versions() -> str:
    """Return a markdown table with the versions of the machines in each reference table.

    The last column lists the machines whose current version differs.
    """
    lines, unstated, n_older = [], [], 0
    for path in sorted(REFERENCE.glob("*/table.csv")):
        name, cells = path.parent.name, pd.read_csv(path, dtype=str)
        if "version" not in cells:
            unstated.append(f"`{name}`")
            continue
        config, texts, older = load_config(find_config(name)), [], []
        codes = cells[["machine", "kernel", "version", "fingerprint"]].dropna(subset="version")
        kernels: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
        for column, kernel, version, fingerprint in codes.fillna("").drop_duplicates().values:
            machine = config.machine_of(column)
            label = alias_of(alias_of(machine).machine).label
            if ":" in machine:  # a class of another package, such as "sklearn.svm:SVC"
                label = machine.rpartition(":")[2]
            older += [label] * (version != str(version_of(machine, kernel)))
            word = {"rbf": "RBF", "poly": "polynomial"}.get(kernel, kernel)
            kernels.setdefault((label, fingerprint), {}).setdefault(version, {})[word] = None
        for (label, fingerprint), of in kernels.items():
            # if the versions differ between kernels, the kernels are named: SVM 9 linear, 6 RBF
            parts = of if len(of) == 1 else (f"{v} {listing(words)}" for v, words in of.items())
            texts.append(f"{label} {', '.join(parts)} ({fingerprint})".removesuffix(" ()"))
        n_older += bool(older)
        found = "; ".join(texts), ", ".join(dict.fromkeys(older)) or "–"
        lines.append(f"| `{name}` | {' | '.join(found)} |")
    said = f"by today's versions: {len(lines) - n_older}; by older versions: {n_older}"
    missing = f"; without versions: {len(unstated)} ({listing(unstated)})" if unstated else ""
    head = ["| Table | Versions (fingerprints) | Older than today |", "| --- | --- | --- |"]
    return "\n".join([f"Number of tables {said}{missing}.\n", *head, *lines])


def check(holds: object, said: str) -> str:
    """Return `CHECKED` if a claim holds, or raise an error with the sentence `said`."""
    if not holds:
        raise ValueError(f"The tables do not say so: {said}")
    return CHECKED


#: Mark of a checked claim; the mark is removed from the page.
CHECKED = "\0"

#: Functions that the template can call, each for a single paragraph.
PARAGRAPHS = (
    m4_verdict,
    m4_claimed,
    verdicts,
    gains,
    counted,
    reading,
    rounds,
    rounds_taken,
    later_rounds,
    accuracy_spread,
    Times,
    statuses_text,
    leak_worth,
    versions,
)


def apart(caller: Callable[[], str]) -> str:
    """Append † to a sentence whose numbers come from other measurements than the tables."""
    return f"{caller().strip()}†"


def rendered(template: Path, **names: object) -> str:
    """Return the text of a template that is rendered with some variables."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {f"f{digits}": decimals(digits) for digits in range(4)}
    environment.filters |= {"listing": listing, "span": span, "name": name_of}
    return environment.from_string(template.read_text("utf-8")).render(**names)


def page() -> str:
    """Return the page that is rendered from the tables and the template."""
    functions = {f.__name__: f for f in (check, apart, abs, min, max, *PARAGRAPHS)}
    text = rendered(TEMPLATE, table=cache(Table), **functions)
    text = re.sub(r"\n[ \0]*\0[ \0]*(?=\n)", "", text).replace(CHECKED, "")
    blocks = re.split(r"\n(?=- |#)|\n\s*\n", text.strip())
    lines = [_wrapped(block) for block in blocks if block.strip()]
    text = "\n\n".join(lines) + "\n"
    return text.replace("|\n\n|", "|\n|")


def _wrapped(block: str) -> str:
    """Return a heading, a paragraph or an item with lines of at most `WIDTH` characters.

    Tables stay as they are.
    """
    if block.lstrip().startswith("|"):
        return block.strip()
    # use a no-break space, since a documentation line that begins with "%" is a comment
    block = " ".join(block.split()).replace(" %", "\u00a0%")
    indent = "  " if block.startswith("- ") else ""
    return textwrap.fill(
        block, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def write_or_check(path: Path, text: str, arguments: list[str]) -> int:
    """Write a page or, with ``--check``, return 1 if the written page differs from the text."""
    if arguments == ["--check"]:
        return int(text != path.read_text("utf-8"))
    path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page(), sys.argv[1:]))
