"""Write results/reference/README.md from its template, with numbers of the reference results.

The sentences are in the template, ``reference_text.md.jinja``. Numbers are rows and columns of the
frames in the reference folders. A claim in words stands beside a call of ``check(...)``, which
raises an error if the results contradict the claim. Numbers from other measurements are inside
``{% call apart() %}``; the page marks them with †. A cell is near if its published value is within
two standard errors of the measured value.

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
from functools import cache, partialmethod
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import pandas as pd

from mmbench.config.plan import version_of
from mmbench.jobs.planned import grouped
from mmbench.machines import alias_of
from mmbench.results.cells import (
    ALL_IN_BAND,
    IN_BAND,
    METRIC,
    OUT_OF_BAND,
    differences,
)
from mmbench.results.folder import CSV, read_reference
from mmbench.results.pairwise import difference_of, disagreements, ranks_of, split_gaps
from mmbench.results.statistics import (
    LEVEL,
    Ranks,
    best_and_worst,
    mcnemar_p,
    paired_p,
    win_tie_loss,
)
from mmbench.tables.blocks import both, statuses_text, total
from mmbench.tables.build import laid_out
from mmbench.tables.layouts.papers import SIGNIFICANT, mamc_ratios, mamc_seconds, percentile
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
    short = dataset.removeprefix("ida_").removeprefix("fsvm_")
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


#: Columns that `Table.rows` compares with its arguments.
WHERE = ("machine", "dataset", "kernel", "degree", "size")


class Table:
    """The results of a reference folder.

    The arguments `where` of the methods are machine, data set, kernel, degree and training size, in
    this order. Arguments at the end may be omitted.
    """

    def __init__(self, experiment: str) -> None:
        self.results = laid_out(read_reference(REFERENCE / experiment))
        self.cells = self.results.cells[self.results.cells.dataset != ""]

    def rows(self, *where: object, metric: str = "", **more: object) -> pd.DataFrame:
        """Return the cells of a metric, by default the metric that is compared with the paper."""
        wanted = dict(zip(WHERE, where, strict=False)) | more
        rows = self.cells[self.cells.metric == (metric or self.results.metric)]
        for column, value in wanted.items():
            rows = rows if value is None else rows[rows[column] == value]
        return rows

    def cell(
        self, *where: object, column: str = "measured", metric: str = "", **more: object
    ) -> float:
        """Return the value of a column for the single cell that agrees with `where`."""
        (value,) = self.rows(*where, metric=metric, **more)[column]
        return float(value)

    #: Measured accuracy, measured number of errors, and published value of the only selected row.
    accuracy = partialmethod(cell, metric=METRIC)
    errors = partialmethod(cell, metric="errors_count")
    published = partialmethod(cell, column="published")

    def seconds(self, stage: str, *where: object) -> float:
        """Return the CPU seconds of a stage."""
        return self.cell(*where, metric=f"seconds_{stage}")

    def near(self, *where: object, metric: str = "") -> Count:
        """Count the compared cells by their marks."""
        marks = list(self.rows(*where, metric=metric).mark)
        near, untold, far = (marks.count(mark) for mark in (IN_BAND, ALL_IN_BAND, OUT_OF_BAND))
        return Count(near + untold, near + untold + far, untold)

    def marks(self) -> str:
        """Return the counts of all marks, such as "9 ✓, 7 ~, 12 ✗"."""
        count = self.near()
        far = f"{count.of - count.near} {OUT_OF_BAND}" if count.of > count.near else ""
        return ", ".join(filter(None, [count.marks, far]))

    def m(self, dataset: str) -> int:
        """Return the number of splits behind the published means of a data set, for the bands."""
        (m,) = {row["n_splits"] for row in self.results.published if row["dataset"] == dataset}
        return int(m)

    def order(self) -> tuple[int, ...]:
        """Return three numbers: published differences between two machines above the noise
        level, differences with the same sign here, and differences above the noise level here, too.
        """
        return differences(self.cells)

    def far(self, *where: object) -> list[str]:
        """Return the names of the compared cells that are not near."""
        rows = self.rows(*where)
        rows = rows[rows.mark == OUT_OF_BAND]
        degrees = rows.degree.astype(object).fillna("")
        kernels = [f"{KERNELS[k]} {d}".strip() for k, d in zip(rows.kernel, degrees, strict=True)]
        return [f"{name_of(d)} ({k})" for d, k in zip(rows.dataset, kernels, strict=True)]

    def told(self) -> list[str]:
        """Return the names of the data sets with at least one mark ✓."""
        rows = self.rows()
        return list(dict.fromkeys(map(name_of, rows[rows.mark == IN_BAND].dataset)))

    def wide(self, metric: str = METRIC, column: str = "measured") -> pd.DataFrame:
        """Return a column of the cells, with one row per data set and one column per machine."""
        places = self.results.places
        return self.results.wide(places, metric, column).set_axis([p.dataset for p in places])

    def times(self, machine: str, other: str, stage: str = "training") -> list[float]:
        """Return the ratio of two machines' CPU seconds (`machine` / `other`) per data set."""
        seconds = self.wide(f"seconds_{stage}")
        return list(seconds[machine] / seconds[other])

    def slower(self, machine: str, other: str) -> int:
        """Return the number of data sets on which a machine trains longer than another machine."""
        return sum(ratio > 1 for ratio in self.times(machine, other))

    def gains(self, machine: str, other: str, column: str = "measured") -> dict[str, float]:
        """Return the difference in mean accuracy (`machine` minus `other`) per data set."""
        means = self.wide(METRIC, column)
        return (means[machine] - means[other]).to_dict()

    def wins(self, machine: str, other: str, column: str = "measured") -> int:
        """Return the number of data sets on which `machine` is more accurate than `other`."""
        return sum(gain > 0 for gain in self.gains(machine, other, column).values())

    def mcnemar(self, kernel: str | None = None, degree: int | None = None) -> list[float]:
        """Return p-values of McNemar's test of RMM and SVM in the first run, one per kernel."""
        counts = [
            disagreements(self.results, *(p._replace(machine=m) for m in ("rmm", "svm")))
            for p in self.results.places
            if kernel in (None, p.kernel) and degree in (None, p.degree)
        ]
        return [mcnemar_p(*found) for found in counts if found]

    def ranks(self, kernel: str) -> Ranks:
        """Return the mean ranks of the machines over the data sets and Friedman's p-value."""
        return ranks_of(self.results, (kernel, None))

    def p(self, machine: str, other: str) -> dict[str, float]:
        """Return the p-value of two machines' difference for each data set with a test."""
        found = {
            p.dataset: difference_of(
                self.results, *(p._replace(machine=m) for m in (machine, other))
            )
            for p in self.results.places
        }
        return {name: own.p for name, own in found.items() if own and own.tested}

    def better(self, machine: str, other: str) -> list[str]:
        """Return the data sets on which `machine` is better than `other`, at level 0.05 each."""
        gains = self.gains(machine, other)
        p = self.p(machine, other)
        return [name_of(name) for name in p if p[name] < 0.05 and gains[name] > 0]

    # Numbers for single paragraphs of the page.

    def average(self, machine: str, column: str = "measured") -> float:
        """Return the mean of the printed values (two decimals) over the data sets."""
        return float(self.wide(METRIC, column)[machine].round(2).mean())

    def below_published(self, machine: str) -> float:
        """Return the published average minus the measured average over the data sets."""
        return self.average(machine, "published") - self.average(machine)

    def average_distance(self) -> float:
        """Return the largest absolute value of `below_published` over the machines."""
        return max(abs(self.below_published(m)) for m in self.results.columns)

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
        """Return a machine's times relative to the MAMC's: measured and published ratios."""
        ours, theirs = (list(side[machine].dropna()) for side in self._ratios())
        return ours, theirs

    def _ratios(self) -> list[pd.DataFrame]:
        return mamc_ratios(mamc_seconds(laid_out(self.results, "mamc_table3")))

    def order_differs(self, machine: str, other: str) -> list[str]:
        """Return the data sets on which the faster of two machines differs from the paper."""
        gaps = pd.DataFrame([side[machine] - side[other] for side in self._ratios()]).T.dropna()
        found = self.results.places
        return [printed(self.results, found[k].dataset) for k in gaps.index[gaps.prod(axis=1) < 0]]

    def percentiles(self, machine: str) -> list[float]:
        """Return the percentiles of the published values among our draws of the toy sets."""
        found = (
            percentile(self.results, key) for key in self.results.keys if key.machine == machine
        )
        return [value for value in found if value is not None]

    def below(self, dataset: str, machines: Sequence[str]) -> list[float]:
        """Return published minus measured values of machines on a data set, for all kernels."""
        rows = self.rows(dataset=dataset)
        rows = rows[rows.machine.isin(machines)]
        return list(rows.published - rows.measured)

    def best(self, machine: str, kernel: str) -> int:
        """Return the number of data sets on which a machine has the largest mean, as printed."""
        means = self.results.wide(self.results.places_of((kernel, None)))
        return best_and_worst(means, decimals=1)[machine][0]

    def fits(self, machine: str) -> str:
        """Return the numbers of a machine's fits by status."""
        return statuses_text(self.results, machine)

    def total_seconds(self, machine: str) -> float:
        """Return the mean CPU seconds of selection and training per run, summed over all cells."""
        keys = (key for key in self.results.keys if key.machine == machine)
        return sum(total(self.results, key, ("selection", "training")) or 0.0 for key in keys)

    def relative_gains(self) -> list[float]:
        """Return the reduction of the SVM's errors by the RMM in per cent, from degree 2 on."""
        rmm, svm = (
            self.rows(m, kernel="poly").set_index("degree").measured for m in ("rmm", "svm")
        )
        return list(100 * (1 - rmm / svm).sort_index())[1:]

    def in_standard_errors(self, machine: str, other: str) -> list[float]:
        """Return the gap of two machines in units of the larger standard error, per data set."""
        errors = self.wide(METRIC, "se")[[machine, other]].max(axis=1)
        return [abs(gain) / errors[d] for d, gain in self.gains(machine, other).items()]

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
        means = self.wide()[list(machines)]
        return list(means.max(axis=1) - means.min(axis=1))

    def sizes(self) -> list[int]:
        """Return the training sizes of the table, the smallest first."""
        return sorted({key.size for key in self.results.keys if key.size is not None})

    def of_bounds(self, metric: str, size: int | None = None, kind: str = "") -> list[float]:
        """Return a metric of the RMMs with the bounds B₁, B₂ and B₃."""
        return [self.cell(f"rmm_b{k}{kind}", metric=metric, size=size) for k in (1, 2, 3)]

    def saved_by_warm_start(self) -> str:
        """Return the time that a warm start from the SVM saves over all sizes, in per cent."""
        seconds = self.cells[self.cells.metric == "seconds_after_gram"]
        sums = seconds.groupby("machine").measured.sum()
        shares = (1 - sums[f"rmm_b{k}"] / sums[f"rmm_b{k}_cold"] for k in (1, 2, 3))
        return listing(f"{100 * share:.0f} %" for share in shares)


#: Function that returns the results of a reference folder, which is read once.
table = cache(Table)


def listing(values: Iterable[object]) -> str:
    """Return the values as text in the form "a, b and c"."""
    *most, last = [str(value) for value in values]
    return f"{', '.join(most)} and {last}" if most else last


def decimals(digits: int) -> Callable[[float | Iterable[float]], str]:
    """Return a filter that prints one or several numbers with `digits` decimals."""

    def printed(value: float | Iterable[float]) -> str:
        if isinstance(value, Iterable):
            return listing(printed(v) for v in value)
        return f"{float(value):.{digits}f}"

    return printed


def span(values: Iterable[float], digits: int = 0) -> str:
    """Return the range of some values as text, such as "1 to 3"."""
    values = list(values)
    least, most = (f"{value:.{digits}f}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"


def m4_better(t: Table) -> list[str]:
    """Return the data sets on which the M4 is significantly better than SVM and MPM: by the test of
    these tables, and by the plain t-test.
    """
    found: dict[str, list[str]] = {"tested": [], "plain": []}
    for place in (p for kernel in t.results.kernels for p in t.results.places_of(kernel)):
        m4, *others = (place._replace(machine=m) for m in ("m4", "svm", "mpm"))
        every = [difference_of(t.results, m4, other) for other in others]
        gaps = [split_gaps(t.results, place, "m4", other.machine) for other in others]
        name = f"{KERNELS[place.kernel]} {printed(t.results, place.dataset)}"
        found["tested"] += [name] * all(d and d.d > 0 and d.p < LEVEL for d in every)
        found["plain"] += [name] * all(sum(g) > 0 and paired_p(g) < LEVEL for g in gaps)
    return [listing(names or ["no set"]) for names in found.values()]


def m4_claimed(t: Table) -> int:
    """Return the number of data sets on which the M4 is better than SVM and MPM in the paper."""
    return sum(place.dataset in SIGNIFICANT[place.kernel] for place in t.results.places)


def verdicts(t: Table) -> pd.DataFrame:
    """Return the verdicts of Welch's test on MAMC_bs, the rule of the MAMC paper, with one row per
    data set and other machine: signs of the verdict, and differences between means, here and in
    the paper.
    """
    results, rows = t.results, []
    sides = dict(zip(("here", "paper"), both(results, results.places), strict=True))
    others = [machine for machine in results.columns if machine != "mamc_bs"]
    for (k, place), machine in itertools.product(enumerate(results.places), others):
        row: dict[str, Any] = {"machine": machine, "dataset": name_of(place.dataset)}
        for where, side in sides.items():
            parts = [[side[n][m][k] for n in ("mean", "sd", "n")] for m in ("mamc_bs", machine)]
            wins, _, losses = win_tie_loss(*parts)
            row |= {f"sign_{where}": wins - losses, f"gain_{where}": parts[0][0] - parts[1][0]}
        rows.append(row)
    return pd.DataFrame(rows)


def counted(signs: pd.Series) -> str:
    """Return counts of wins, ties and losses as text."""
    return "/".join(str((signs == sign).sum()) for sign in (1, 0, -1))


def reading(
    name: str, machine: str, kernel: str, degree: int | None = None, dataset: str | None = None
) -> float:
    """Return the measured value of a machine in a reading of a paper's protocol."""
    rows = pd.read_csv(REFERENCE / "readings.csv")
    rows = rows[(rows.reading == name) & (rows.machine == machine) & (rows.kernel == kernel)]
    rows = rows[rows.degree.fillna(0) == (degree or 0)]
    if dataset:
        rows = rows[rows.dataset == dataset]
    (value,) = rows.measured
    return float(value)


def grid_points(t: Table, machine: str, kernel: str) -> int:
    """Return the number of points of a machine's grid."""
    key = next(k for k in t.results.keys if (k.machine, k.kernel) == (machine, kernel))
    return math.prod(map(len, t.results.by_cell[key][0].grid.values()))


def later_rounds(t: Table) -> list[float]:
    """Return the decrease of the objective in rounds 6 to 15, in percentage points of the optimum.

    There is one value per data set, without Breast cancer.
    """
    excess = t.wide("excess_pct").drop("ida_breast_cancer")
    return list(excess.fsvm_5 - excess.fsvm_15)


def accuracy_spread(t: Table) -> float:
    """Return the largest range of a data set's accuracies after different numbers of rounds,
    rounded up to one decimal.
    """
    return math.ceil(10 * max(t.spread_of(t.results.columns)) - 1e-9) / 10


def exponent_gap(t: Table) -> float:
    """Return the largest difference between the time exponents of the RMM and the SVM."""
    metric = "exponent_of_seconds_whole"
    return max(abs(k - t.cell("svm", metric=metric)) for k in t.of_bounds(metric))


def errors_at(t: Table, size: int) -> list[float]:
    """Return the errors of the SVM and of the RMM for each bound B after `size` training rows."""
    return [t.cell("svm", size=size, metric="errors_count"), *t.of_bounds("errors_count", size)]


def leak_worth(leak: Table, honest: Table, but: Sequence[str] = ()) -> list[float]:
    """Return the increase of each accuracy (in points) by a parameter selection on test rows."""
    worth = leak.wide() - honest.wide()
    return list(worth.drop(list(but)).stack())


#: Columns of the frame ``splits`` that identify the code of a machine.
CODES = ["estimator", "machine", "kernel", "version", "fingerprint"]


def versions() -> str:
    """Return a markdown table with the versions of the machines in each reference table.

    The last column lists the machines whose current version differs.
    """
    lines, unstated, n_older = [], [], 0
    for name in sorted(path.parent.name for path in REFERENCE.glob(f"*/{CSV}")):
        results, texts, older = table(name).results, [], []
        codes = results.splits.dropna(subset="version").drop_duplicates(CODES)
        if codes.empty:
            unstated.append(f"`{name}`")
            continue
        kernels: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for row in codes.itertuples():
            kernel = "" if row.machine in results.foreign else row.kernel
            label = alias_of(alias_of(row.estimator).machine).label
            if ":" in row.estimator:  # a class of another package, such as "sklearn.svm:SVC"
                label = row.estimator.rpartition(":")[2]
            older += [label] * int(row.version != version_of(row.estimator, kernel))
            word = {"rbf": "RBF", "poly": "polynomial"}.get(kernel, kernel)
            kernels.setdefault((label, row.fingerprint), []).append((row.version, word))
        for (label, fingerprint), found in kernels.items():
            # if the versions differ between kernels, the kernels are named: SVM 9 linear, 6 RBF
            of = grouped(dict.fromkeys(found))
            parts = (f"{v} {listing(words)}" if len(of) > 1 else f"{v}" for v, words in of.items())
            code = f" ({fingerprint})" if fingerprint else ""
            texts.append(f"{label} {', '.join(parts)}{code}")
        n_older += bool(older)
        told = "; ".join(texts), ", ".join(dict.fromkeys(older)) or "–"
        lines.append(f"| `{name}` | {' | '.join(told)} |")
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
PARAGRAPHS = (m4_better, m4_claimed, verdicts, counted, reading, grid_points, later_rounds)
PARAGRAPHS += (accuracy_spread, exponent_gap, errors_at, leak_worth, versions)


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
    """Return the page that is rendered from the reference results and the template."""
    functions = {f.__name__: f for f in (check, apart, abs, min, max, *PARAGRAPHS)}
    text = rendered(TEMPLATE, table=table, **functions)
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
