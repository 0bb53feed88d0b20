"""The first page: one line an experiment."""

from collections.abc import Sequence
from pathlib import Path

from mmbench.jobs.record import timestamp
from mmbench.tables.report.comparison import Comparison
from mmbench.tables.report.site import INDEX, Site
from mmbench.tables.report.summary import Summary, summarize
from mmbench.tables.report.view import View
from mmbench.tables.report.words import gap_text
from mmbench.tables.text import NOTHING


def write_overview(
    site: Site, views: Sequence[View], comparisons: Sequence[Comparison] = ()
) -> Path:
    """Write the first page."""
    lines = [{"view": view, **summary_texts(summarize(view))} for view in views]
    return site.page(
        INDEX, "overview.html", lines=lines, comparisons=comparisons, written=timestamp()
    )


def summary_texts(summary: Summary) -> dict[str, object]:
    """Return a summary in words, beside its numbers."""
    gap = gap_text(summary.gap, summary.gap_tolerance, summary.violation, unknown="not known")
    above = f"{summary.n_above} gaps above" if summary.n_above else ""
    days = dict.fromkeys((summary.started, summary.finished))
    return {
        "summary": summary,
        "certificate": ", ".join(filter(None, [gap, above])) or NOTHING,
        "cpu": duration(summary.cpu_seconds),
        # how many pairs were trained at a time stands on the experiment's own page
        "computers": list(dict.fromkeys(one.partition(";")[0] for one in summary.computers)),
        "when": " to ".join(days) or NOTHING,
    }


def duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> duration(0.4), duration(75.2), duration(4000), duration(200_000)
    ('0.4 s', '75 s', '1.1 h', '56 h')
    """
    for length, unit in ((3600, "h"), (120, "min")):
        if seconds >= length:
            value = seconds / (3600 if unit == "h" else 60)
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
