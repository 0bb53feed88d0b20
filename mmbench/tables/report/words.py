"""What is said of a cell in words: by its details, its page, and the list of all cells."""

from mmbench.jobs.store import Key
from mmbench.tables.blocks.seconds import by_name
from mmbench.tables.report.view import ACCURACY, ERRORS, View
from mmbench.tables.rows import SELECTED, Row
from mmbench.tables.text import seconds_text

NAMES = {
    ACCURACY: "accuracy (%)",
    ERRORS: "errors",
    "errors_expected": "errors expected with ties drawn at random",
    "n_ties": "tied votes",
    "n_support": "support vectors a pair",
}

#: Names and values, as a list of definitions.
Facts = list[tuple[str, str]]


def metric_name(metric: str) -> str:
    """Return what a metric is called.

    Examples
    --------
    >>> metric_name("accuracy_pct"), metric_name("seconds_test")
    ('accuracy (%)', 'seconds test')
    """
    return NAMES.get(metric, metric.replace("_", " "))


def details(view: View, key: Key) -> Facts:
    """Return what a tap on a cell tells."""
    rows = [row for metric in (ACCURACY, ERRORS) if (row := view.sheet.row(key, metric))]
    shown = [row for row in rows if row.metric == view.metric or row.published is not None]
    facts = [fact for row in shown for fact in result(row)]
    return [
        *facts,
        ("parameters", parameters(view, key)),
        ("certificate", certificate(view, key)),
        ("CPU seconds a split", seconds(view, key)),
        ("remark", rows[0].note if rows else ""),
    ]


def result(row: Row) -> Facts:
    """Return what was measured, what is published, and how far they lie apart."""
    name = metric_name(row.metric)
    facts = [(name, measured(row)), (f"published {name}", published(row))]
    return [*facts, ("difference", difference(row)), ("not compared", row.objection)]


def measured(row: Row) -> str:
    """Return a mean with its spread and the number of splits."""
    if row.measured is None:
        return row.status.replace("_", " ")
    spread = "" if row.sd is None else f" ± {number(row.sd, row.metric)} (standard deviation)"
    error = [] if row.se is None else [f"standard error {number(row.se, row.metric)}"]
    return ", ".join([number(row.measured, row.metric) + spread, *error, f"n = {row.n}"])


def published(row: Row) -> str:
    """Return what a paper prints."""
    if row.published is None:
        return ""
    return f"{row.published:g}" + (
        "" if row.published_spread is None else f" ({row.published_spread:g})"
    )


def difference(row: Row) -> str:
    """Return the difference of both, in its standard errors."""
    if row.in_band is None or row.measured is None or row.published is None:
        return ""
    apart = "" if row.z is None else f", {abs(row.z):.2g} standard errors"
    verdict = "in the band" if row.in_band else "out of the band"
    return f"{signed(row.measured - row.published, row.metric)}{apart}: {verdict}"


def parameters(view: View, key: Key) -> str:
    """Return the medians of the parameters that were selected."""
    chosen = view.sheet.facts.selected.get(key)
    if chosen:
        return ", ".join(map(str, chosen))
    rows = (row for row in view.sheet.rows if row.key == key and row.metric.startswith(SELECTED))
    return ", ".join(f"{r.metric.removeprefix(SELECTED)} {r.measured:.3g}" for r in rows)


def certificate(view: View, key: Key) -> str:
    """Return the largest gap and violation of a cell's fits."""
    gap, asked, violation = (
        view.sheet.value(key, metric)
        for metric in ("worst_gap", "gap_tolerance", "worst_violation")
    )
    return gap_text(gap, asked, violation)


def gap_text(
    gap: float | None, asked: float | None, violation: float | None, unknown: str = ""
) -> str:
    """Return a certificate in words; `unknown` stands where it is not known what was asked.

    Examples
    --------
    >>> gap_text(2e-6, 1e-3, 1e-12)
    'gap 2.0e-06 (asked 1.0e-03), violation 1.0e-12'
    """
    wanted = unknown if asked is None else f"{asked:.1e}"
    parts = ["" if gap is None else f"gap {gap:.1e}" + (f" (asked {wanted})" if wanted else "")]
    parts.append("" if violation is None else f"violation {violation:.1e}")
    return ", ".join(filter(None, parts))


def seconds(view: View, key: Key) -> str:
    """Return the CPU seconds of every stage."""
    values = by_name(view.sheet, key)
    if set(values.values()) == {None}:
        return ""
    used = view.sheet.plan.uses.get(key.machine)
    other = f"; selection taken over from {view.sheet.label(used)}" if used else ""
    return ", ".join(f"{name} {seconds_text(value)}" for name, value in values.items()) + other


def number(value: float, metric: str) -> str:
    """Return a value with the decimals of its metric.

    Examples
    --------
    >>> number(95.4567, "accuracy_pct"), number(91.0, "errors_count"), number(91.2, "errors_count")
    ('95.46', '91', '91.2')
    """
    if metric == ACCURACY:
        return f"{value:.2f}"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.1f}"


def signed(value: float, metric: str) -> str:
    """Return a difference with its sign, a minus that is as wide as the plus.

    Examples
    --------
    >>> signed(-0.5, "accuracy_pct"), signed(2.0, "errors_count"), signed(1e-9, "accuracy_pct")
    ('−0.50', '+2', '0.00')
    """
    text = number(abs(value), metric)
    sign = "" if float(text) == 0 else "+" if value > 0 else "−"
    return sign + text
