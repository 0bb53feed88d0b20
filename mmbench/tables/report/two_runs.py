"""The page of the report that compares two runs of one experiment, with a significance test for
each table cell.

If both runs have the same splits, the test is a paired t-test of the accuracies on these splits.
For a single common split, the test is McNemar's test of the predictions on the test rows.
If the splits differ, or if there are no records, the test compares the means by their standard
errors. Holm's method adjusts the p-values of all table cells for multiple tests.
"""

import difflib
import math
from collections.abc import Sequence
from statistics import stdev
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.store import Key, grouped
from mmbench.results.cells import METRIC
from mmbench.results.statistics import LEVEL, holm, mcnemar_p, paired_p, wins_and_losses, z_value
from mmbench.tables.blocks import total
from mmbench.tables.report.pictures import Point, Spec, axis, rule, scatter
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View, run_facts, signed

#: Names of the three tests: paired t-test, McNemar's test, and test based on standard errors.
PAIRED, ROWS, MEANS = "paired t-test", "McNemar's test", "standard errors of both means"
LEFT, ENTERED = "left its band", "entered its band"


def changes(before: View, after: View) -> pd.DataFrame:
    """Return the differences between two runs, with one row per table cell that has results in both
    runs.

    The column ``key`` contains the key of the table cell. The columns ``before`` and ``after``
    contain the measured values of the experiment's metric in the two runs. ``gain`` is the accuracy
    (%) in the run `after` minus the accuracy in the run `before`, and ``error`` is the standard
    error of ``gain``. ``how`` is the name of the test, and ``p`` is the p-value adjusted by Holm's
    method. Without a test, ``how`` is empty and ``p`` is NaN. ``ratio`` is the CPU time per split
    of the run `after` divided by the CPU time per split of the run `before`.

    ``same`` is true if the absolute value of ``gain`` is below 1e-6. ``beyond_noise`` is true if
    the accuracies differ significantly at the level `LEVEL`. ``verdict`` is "better", "worse",
    "equal", "not significant" or "not tested". If the published value is in the comparison band of
    only one of the two runs, ``band`` is "left its band" or "entered its band". Otherwise, ``band``
    is empty. If the status of the table cell has changed, ``status`` contains the old and the new
    status. Otherwise, ``status`` is empty.
    """
    bands: dict[tuple[Any, Any], str] = {(True, False): LEFT, (False, True): ENTERED}
    rows = []
    for key in after.keys:
        old, new = (view.results.row(key, after.metric) for view in (before, after))
        accuracies = [view.results.value(key, METRIC) for view in (before, after)]
        if not (old.metric and new.metric) or None in accuracies:
            continue
        seconds = [total(view.results, key) for view in (before, after)]
        ratio = seconds[1] / seconds[0] if seconds[0] and seconds[1] else math.nan
        band = bands.get((old.in_band, new.in_band), "")
        status = "" if old.status == new.status else f"{old.status} → {new.status}"
        values = old.measured or 0.0, new.measured or 0.0, *_test(before, after, key), ratio, band
        rows.append((key, *values, status.replace("_", " ")))
    names = ["key", "before", "after", "gain", "error", "how", "p", "ratio", "band", "status"]
    frame = pd.DataFrame(rows, columns=names)
    frame["p"] = holm(frame.p)
    frame["same"], frame["beyond_noise"] = frame.gain.abs() < 1e-6, frame.p < LEVEL
    frame["verdict"] = np.select(
        [frame.beyond_noise & (frame.gain > 0), frame.beyond_noise, frame.same],
        ["better", "worse", "equal"],
        np.where(frame.how == "", "not tested", "not significant"),
    )
    return frame


def _test(before: View, after: View, key: Key) -> tuple[float, float, str, float]:
    """Compare the accuracies of a table cell in two runs by a significance test.

    Returns the difference in accuracy, its standard error, the name of the test, and the p-value.
    """
    old, new = (view.results.row(key, METRIC) for view in (before, after))
    gain, gaps = new.measured - old.measured, _gaps(before, after, key)
    if len(gaps) > 1:
        return gain, stdev(gaps) / math.sqrt(len(gaps)), PAIRED, paired_p(gaps)
    if gaps:
        ((repeat, fold, _), *_) = before.results.by_split(key)
        first, second = (view.results.hits(key, (repeat, fold)) for view in (before, after))
        if first is not None and second is not None and len(first) == len(second):
            n_test, counts = len(first), wins_and_losses(second, first)
            return gain, 100 * math.sqrt(sum(counts)) / n_test, ROWS, mcnemar_p(*counts)
    if old.se is None or new.se is None:
        return gain, math.nan, "", math.nan
    error = math.hypot(old.se, new.se)
    return gain, error, MEANS, math.erfc(abs(z_value(0.0, gain, error)) / math.sqrt(2))


def _gaps(before: View, after: View, key: Key) -> list[float]:
    """Return the differences in accuracy between two runs, one per split, rounded to nine decimals.

    If the runs have different splits, or splits with different rows, the list is empty.
    """
    old, new = (
        {
            (r.repeat, r.fold, r.seed, r.split_hash): r.accuracy_pct
            for r in view.results.counted(key)
        }
        for view in (before, after)
    )
    return [round(new[at] - old[at], 9) for at in old] if old.keys() == new.keys() else []


def runs_to_compare(views: Sequence[View]) -> list[tuple[View, View]]:
    """Return the pairs of runs to be compared.

    The first run of an experiment is compared with each later run. If there are only two runs, and
    these belong to different experiments with common table cells, the two runs are compared. Smoke
    versions (quick test runs) are not compared with full experiments.
    """
    groups = grouped(((view.results.plan.name, view.results.plan.smoke), view) for view in views)
    pairs = [(group[0], later) for group in groups.values() for later in group[1:]]
    if len(views) == 2 and len(groups) == 2 and len({smoke for _, smoke in groups}) == 1:
        first, second = views
        pairs += [(first, second)] if set(first.keys) & set(second.keys) else []
    return pairs


def write_comparison(site: Site, before: View, after: View) -> dict[str, Any]:
    """Write the page that compares two runs.

    Returns the path of the page, the two runs, and their differences.
    """
    page = f"comparisons/{before.folder}-and-{after.folder}.html"
    frame = changes(before, after)
    lines: list[Any] = list(frame.itertuples())
    logs = np.log(frame.ratio.dropna()).groupby(frame.key.map(lambda key: key.machine), sort=False)
    old, new = (dict(run_facts(view.results)) for view in (before, after))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    config = difflib.unified_diff(
        before.config.splitlines(), after.config.splitlines(), "A", "B", lineterm="", n=2
    )
    site.page(
        page,
        "comparison.html",
        runs={"A": before, "B": after},
        lines=lines,
        ratios=[(after.results.label(m), math.exp(mean)) for m, mean in logs.mean().items()],
        pictures=_pictures(after, lines),
        metric=after.metric,
        facts=[(name, old.get(name, ""), new.get(name, "")) for name in names],
        config="\n".join(config),
    )
    return {"page": page, "before": before, "after": after, "changes": lines}


def _pictures(view: View, lines: Sequence[Any]) -> dict[str, Spec]:
    """Return pictures of accuracy differences and CPU time ratios.

    Each point links to the page of its table cell in the later run.
    """
    gains, times = [], []
    for change in lines:
        p = "" if math.isnan(change.p) else f" (corrected p {change.p:.2g})"
        hint = f"B minus A: {signed(change.gain, METRIC)} %{p}"
        error, hollow = 2 * change.error, change.beyond_noise
        gains.append(Point(change.key, change.gain, error=error, hollow=hollow, hint=hint))
        if not math.isnan(change.ratio):
            times.append(Point(change.key, change.ratio, hollow=hollow, hint=hint))
    root, gain = f"../{view.folder}/", axis("accuracy (%), B minus A", zeroline=True)
    ratio, shapes = axis("CPU time, B relative to A", type="log"), [rule("x", 1.0)]
    drawn = {
        "gains": scatter(view, gains, gain, root=root),
        "times": scatter(view, times, ratio, root=root, shapes=shapes),
    }
    return {name: spec for name, spec in drawn.items() if spec["data"]}
