"""The page of two runs of one experiment: which cells changed, and which changes exceed noise.

Runs on the same splits are compared split by split with a paired t-test; a single run on the same
test rows by McNemar's test of its predictions; runs on other splits, and tables without records, by
the standard errors of both means. All p-values are corrected together by Holm's method.
"""

import difflib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np

from mmbench.jobs.store import Key
from mmbench.tables.blocks import total
from mmbench.tables.model import kernel_text
from mmbench.tables.report.pictures import (
    Picture,
    Point,
    axis,
    line,
    line_name,
    lines_spec,
    traces,
)
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import (
    ACCURACY,
    View,
    config_text,
    metric_name,
    number,
    run_facts,
    signed,
)
from mmbench.tables.rows import Row
from mmbench.tables.statistics import LEVEL, holm, mcnemar_p, paired_p

#: How a cell was compared.
PAIRED, ROWS, MEANS = "split by split", "test row by test row", "by the errors of both means"


@dataclass(frozen=True)
class Change:
    """What became of a cell."""

    key: Key
    #: Of the metric of the experiment.
    before: Row
    after: Row
    #: Accuracy (%) after less before.
    gain: float
    #: Standard error of the gain, where it is known.
    error: float | None = None
    #: How both were compared; empty where they cannot be.
    how: str = ""
    #: Of no difference; corrected for the number of cells once all are known. NaN without a test.
    p: float = math.nan
    #: CPU time of a split after over before.
    ratio: float | None = None

    @property
    def same(self) -> bool:
        """Whether both have the same mean, as far as tables of ten digits can say."""
        return abs(self.gain) < 1e-6

    @property
    def beyond_noise(self) -> bool:
        """Whether the difference is significant; without a test it is not."""
        return self.p < LEVEL

    @property
    def verdict(self) -> str:
        """What happened, in"""
        if self.beyond_noise:
            return "better" if self.gain > 0 else "worse"
        if self.same:
            return "the same"
        return "within noise" if self.how else "not tested"

    @property
    def band(self) -> str:
        """Whether the published value is met since, or no longer."""
        left, entered = (True, False), (False, True)
        met = self.before.in_band, self.after.in_band
        return "left its band" if met == left else "entered its band" if met == entered else ""

    @property
    def status(self) -> str:
        """How the status changed; empty where it did not."""
        if self.before.status == self.after.status:
            return ""
        return f"{self.before.status} → {self.after.status}".replace("_", " ")


def changes(before: View, after: View) -> list[Change]:
    """Return what became of the cells that have results in both runs."""
    found = [
        _change(before, after, key)
        for key in after.keys
        if before.sheet.value(key, ACCURACY) is not None
        and after.sheet.value(key, ACCURACY) is not None
        and before.sheet.row(key, after.metric) is not None
    ]
    corrected = holm([change.p for change in found])
    return [replace(change, p=float(p)) for change, p in zip(found, corrected, strict=True)]


def _change(before: View, after: View, key: Key) -> Change:
    old, new = (view.sheet.row(key, after.metric) for view in (before, after))
    seconds = [total(view.sheet, key) for view in (before, after)]
    gain, error, how, p = _test(before, after, key)
    assert old is not None and new is not None
    ratio = seconds[1] / seconds[0] if seconds[0] and seconds[1] else None
    return Change(key, old, new, gain, error, how, p, ratio)


def _test(before: View, after: View, key: Key) -> tuple[float, float | None, str, float]:
    """Return the gain in accuracy, its standard error, how it was tested, and the p-value."""
    gaps = _gaps(before, after, key)
    if len(gaps) > 1:
        error = stdev(gaps) / math.sqrt(len(gaps))
        return fmean(gaps), error, PAIRED, paired_p(gaps)
    old, new = (view.sheet.row(key, ACCURACY) for view in (before, after))
    assert old is not None and old.measured is not None and new is not None
    gain = (new.measured or 0.0) - old.measured
    if gaps and (counts := _won_and_lost(before, after, key)):
        n_test = before.cells[key].counted[0].metrics["n_test"]
        return gain, 100 * math.sqrt(sum(counts)) / n_test, ROWS, mcnemar_p(*counts)
    if old.se is None or new.se is None:
        return gain, None, "", math.nan
    error = math.hypot(old.se, new.se)
    z = abs(gain) / error if error else math.inf if gain else 0.0
    return gain, error, MEANS, math.erfc(z / math.sqrt(2))


def _gaps(before: View, after: View, key: Key) -> list[float]:
    """Return the accuracy after less before on every split of the same rows; all or none."""
    if key not in before.cells or key not in after.cells:
        return []
    old, new = (
        {record.at: record for record in view.cells[key].counted} for view in (before, after)
    )
    common = sorted(old.keys() & new.keys())
    if any(old[at].split.get("digest") != new[at].split.get("digest") for at in common):
        return []
    return [new[at].metrics[ACCURACY] - old[at].metrics[ACCURACY] for at in common]


def _won_and_lost(before: View, after: View, key: Key) -> tuple[int, int] | None:
    """Return on how many test rows only the later run is right, and only the earlier one."""
    at = before.cells[key].counted[0].at[:2]
    old, new = (view.sheet.hits(key, at) for view in (before, after))
    if old is None or new is None or len(old) != len(new):
        return None
    return int(np.sum(~old & new)), int(np.sum(old & ~new))


def time_ratios(found: Iterable[Change]) -> dict[str, tuple[float, int]]:
    """Return the geometric mean of the ratios of times, and their number, by machine."""
    logs: dict[str, list[float]] = {}
    for change in found:
        if change.ratio is not None:
            logs.setdefault(change.key.machine, []).append(math.log(change.ratio))
    return {machine: (math.exp(fmean(one)), len(one)) for machine, one in logs.items()}


def runs_to_compare(views: Sequence[View]) -> list[tuple[View, View]]:
    """Return the pairs of runs of one experiment, each held against the first of them.

    Two runs alone are also compared under different names, where they share cells.
    """
    groups: dict[tuple[str, bool], list[View]] = {}
    for view in views:
        plan = view.sheet.plan
        groups.setdefault((plan.name, plan.smoke), []).append(view)
    found = [(group[0], later) for group in groups.values() for later in group[1:]]
    if len(views) == 2 and len(groups) == 2 and len({smoke for _, smoke in groups}) == 1:
        first, second = views
        found += [(first, second)] if set(first.keys) & set(second.keys) else []
    return found


@dataclass(frozen=True)
class TwoRuns:
    """Two runs and what became of their cells."""

    before: View
    after: View
    #: Of the cells with results in both.
    changes: list[Change]
    #: Its page, below the folder of the report.
    page: str

    def count(self, **wanted: object) -> int:
        """Return how many changes have some attributes."""
        return sum(
            all(getattr(change, name) == value for name, value in wanted.items())
            for change in self.changes
        )

    @property
    def alone(self) -> dict[str, list[str]]:
        """The cells with a result in one run alone, by which."""
        both = {change.key for change in self.changes}
        runs = {"A": self.before, "B": self.after}
        return {
            name: [
                view.heading(row.key)
                for row in view.rows
                if row.measured is not None and row.key not in both
            ]
            for name, view in runs.items()
        }


def write_comparison(site: Site, before: View, after: View) -> TwoRuns:
    """Write the page of two runs."""
    page = f"comparisons/{before.folder}-and-{after.folder}.html"
    found = TwoRuns(before, after, changes(before, after), page)
    ratios = time_ratios(found.changes)
    metric, lines = after.metric, []
    for change in found.changes:
        old, new = change.before.measured or 0.0, change.after.measured or 0.0
        lines.append({
            "change": change,
            "kernel": kernel_text(change.key.kernel, change.key.degree),
            "machine": after.sheet.label(change.key.machine),
            "before": number(old, metric),
            "after": number(new, metric),
            "apart": new - old,
            "apart_text": signed(new - old, metric),
        })  # fmt: skip
    site.page(
        page,
        "comparison.html",
        runs={"A": before, "B": after},
        found=found,
        lines=lines,
        ratios=[(after.sheet.label(m), ratio, n) for m, (ratio, n) in ratios.items()],
        pictures=_pictures(after, found.changes),
        metric=metric_name(metric),
        facts=_differing_facts(before, after),
        config=_config_diff(before, after),
    )
    return found


def _pictures(view: View, found: Sequence[Change]) -> list[Picture]:
    """Return changes of accuracy and ratios of times; points open the cells of the later run."""
    n_lines = len({change.key._replace(machine="") for change in found})
    gains, times = [], []
    for change in found:
        p = "" if change.p != change.p else f" (corrected p {change.p:.2g})"
        hint = f"B less A: {signed(change.gain, ACCURACY)} %{p}"
        name, hollow = line_name(view, change.key), change.beyond_noise
        error = change.error and 2 * change.error
        gains.append(Point(change.key, change.gain, name, error, hollow, hint))
        if change.ratio is not None:
            times.append(Point(change.key, change.ratio, name, None, hollow, hint))
    root = f"../{view.folder}/"
    made = [
        Picture(
            "gains",
            "Change of accuracy",
            "Accuracy (%) of B minus that of A. Bars: two standard errors. Hollow: beyond noise.",
            lines_spec(
                traces(view, gains, root=root),
                n_lines,
                axis("accuracy (%), B less A", zeroline=True),
            ),
        ),
        Picture(
            "times",
            "Times as ratios",
            "CPU time of a split in B over that in A, on a logarithmic axis; the line is at 1.",
            lines_spec(
                traces(view, times, root=root),
                n_lines,
                axis("CPU time, B over A", type="log"),
                shapes=[line("x", 1.0)],
            ),
        ),
    ]
    return [picture for picture in made if picture.spec["data"]]


def _differing_facts(before: View, after: View) -> list[tuple[str, str, str]]:
    """Return the facts of the runs in which they differ."""
    old, new = (dict(run_facts(view)) for view in (before, after))
    names = dict.fromkeys([*old, *new])
    return [(n, old.get(n, ""), new.get(n, "")) for n in names if old.get(n) != new.get(n)]


def _config_diff(before: View, after: View) -> str:
    """Return the lines in which the configurations differ, with those around them."""
    old, new = (config_text(view).splitlines() for view in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "A", "B", lineterm="", n=2))
