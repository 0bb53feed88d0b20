"""The page of two runs of one experiment."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from mmbench.tables.report import plotted, words
from mmbench.tables.report.changes import Change, changes, time_ratios
from mmbench.tables.report.plotted import Picture, axis, bars, line_name, lines_spec, points
from mmbench.tables.report.provenance import config_text, run_facts
from mmbench.tables.report.site import Site
from mmbench.tables.report.view import View
from mmbench.tables.text import kernel_text


@dataclass(frozen=True)
class Comparison:
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


def write_comparison(site: Site, before: View, after: View) -> Comparison:
    """Write the page of two runs."""
    page = f"comparisons/{before.folder}-and-{after.folder}.html"
    found = Comparison(before, after, changes(before, after), page)
    ratios = time_ratios(found.changes)
    site.page(
        page,
        "comparison.html",
        runs={"A": before, "B": after},
        found=found,
        lines=[_line(after, change) for change in found.changes],
        ratios=[(after.sheet.label(m), ratio, n) for m, (ratio, n) in ratios.items()],
        pictures=_pictures(after, found.changes),
        metric=words.metric_name(after.metric),
        facts=_differing_facts(before, after),
        config=_config_diff(before, after),
    )
    return found


def _line(view: View, change: Change) -> dict[str, object]:
    metric = change.after.metric
    old, new = change.before.measured or 0.0, change.after.measured or 0.0
    return {
        "change": change,
        "kernel": kernel_text(change.key.kernel, change.key.degree),
        "machine": view.sheet.label(change.key.machine),
        "before": words.number(old, metric),
        "after": words.number(new, metric),
        "apart": new - old,
        "apart_text": words.signed(new - old, metric),
    }


def _pictures(view: View, found: Sequence[Change]) -> list[Picture]:
    n_lines = len({change.key._replace(machine="") for change in found})
    gains = [
        _points(view, mine, [c.gain for c in mine], [c.error and 2 * c.error for c in mine])
        for mine in _by_machine(view, found)
    ]
    times = [
        _points(view, mine, [c.ratio for c in mine], [None] * len(mine))
        for mine in _by_machine(view, [c for c in found if c.ratio is not None])
    ]
    made = [
        Picture(
            "gains",
            "Change of accuracy",
            "Accuracy (%) of B minus that of A. Bars: two standard errors. Hollow: beyond noise.",
            lines_spec(gains, n_lines, axis("accuracy (%), B less A", zeroline=True)),
        ),
        Picture(
            "times",
            "Times as ratios",
            "CPU time of a split in B over that in A, on a logarithmic axis; the line is at 1.",
            lines_spec(
                times,
                n_lines,
                axis("CPU time, B over A", type="log"),
                shapes=[plotted.line("x", 1.0)],
            ),
        ),
    ]
    return [picture for picture in made if picture.spec["data"]]


def _by_machine(view: View, found: Sequence[Change]) -> list[list[Change]]:
    groups = ([c for c in found if c.key.machine == name] for name in view.sheet.machines)
    return [group for group in groups if group]


def _points(
    view: View, mine: Sequence[Change], x: Sequence, errors: Sequence[float | None]
) -> plotted.Trace:
    """Return the points of a machine's cells; they open the cells of the later run."""
    keys = [change.key for change in mine]
    trace = points(
        view,
        keys[0].machine,
        keys,
        x,
        [line_name(view, key) for key in keys],
        hollow=[change.beyond_noise for change in mine],
        error_x=bars(errors),
    )
    pages = [f"../{view.folder}/{page}" if page else "" for page in trace["customdata"]]
    hovers = [
        f"{text}<br>{_told(change)}" for text, change in zip(trace["hovertext"], mine, strict=True)
    ]
    return trace | {"customdata": pages, "hovertext": hovers}


def _told(change: Change) -> str:
    p = "" if change.p != change.p else f" (corrected p {change.p:.2g})"
    return plotted.label(f"B less A: {words.signed(change.gain, words.ACCURACY)} %{p}")


def _differing_facts(before: View, after: View) -> list[tuple[str, str, str]]:
    """Return the facts of the runs in which they differ."""
    old, new = (dict(run_facts(view)) for view in (before, after))
    names = dict.fromkeys([*old, *new])
    return [(n, old.get(n, ""), new.get(n, "")) for n in names if old.get(n) != new.get(n)]


def _config_diff(before: View, after: View) -> str:
    """Return the lines in which the configurations differ, with those around them."""
    old, new = (config_text(view).splitlines() for view in (before, after))
    return "\n".join(difflib.unified_diff(old, new, "A", "B", lineterm="", n=2))
