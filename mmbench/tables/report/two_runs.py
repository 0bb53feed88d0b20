"""The page of the report that compares two runs of one experiment, or a run with its reference."""

import difflib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mmbench.jobs.planned import grouped
from mmbench.results.cells import METRIC, key_at, rows_of
from mmbench.results.compare import compare
from mmbench.results.frames import Results
from mmbench.results.statistics import LEVEL, holm
from mmbench.tables.blocks import total
from mmbench.tables.report.pictures import Point, Spec, axis, rule, scatter
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View, run_facts, signed


def changes(before: Results, after: Results) -> pd.DataFrame:
    """Return the differences between two runs, with one row per table cell that has results in both
    runs.

    The columns ``before`` and ``after`` contain the values of the experiment's metric, ``gain`` the
    later minus the earlier accuracy (%), and ``error`` its standard error. ``how`` names the
    standard error, or the reason for a missing one, and ``p`` is the p-value adjusted by Holm's
    method. ``ratio`` is the later CPU time per split divided by the earlier. ``verdict`` is
    "better", "worse", "equal", "not significant" or "not tested". ``band`` is "left" or "entered"
    if the published value has left or entered the comparison band; ``status`` states a change.
    """
    bands: dict[tuple[Any, Any], str] = {(True, False): "left", (False, True): "entered"}
    made = compare(before, after).cells
    found = made[made.difference.notna() & made.metric.isin([METRIC, after.metric])]
    cells = {(key_at(row), row.metric): row for row in rows_of(found)}
    rows = []
    for key in after.keys:
        own, shown = (cells.get((key, metric)) for metric in (METRIC, after.metric))
        if own is None or shown is None:
            continue
        old, new = (results.row(key, after.metric) for results in (before, after))
        seconds = [total(results, key) for results in (before, after)]
        ratio = seconds[1] / seconds[0] if seconds[0] and seconds[1] else math.nan
        status = "" if old.status == new.status else f"{old.status} → {new.status}"
        values = (shown.before, shown.after, own.difference, own.se, own.test, own.p, ratio)
        band = bands.get((old.in_band, new.in_band), "")
        rows.append((key, *values, band, status.replace("_", " ")))
    names = ["key", "before", "after", "gain", "error", "how", "p", "ratio", "band", "status"]
    frame = pd.DataFrame(rows, columns=names).astype({"error": float, "p": float})
    frame["p"] = holm(frame.p)
    frame["same"], frame["beyond_noise"] = frame.gain.abs() < 1e-6, frame.p < LEVEL
    frame["verdict"] = np.select(
        [frame.beyond_noise & (frame.gain > 0), frame.beyond_noise, frame.same, frame.p.isna()],
        ["better", "worse", "equal", "not tested"],
        "not significant",
    )
    return frame


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
    frame = changes(before.results, after.results)
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
