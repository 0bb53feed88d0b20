"""The pictures of an experiment and of a cell: what is shown of which cells."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev

from mmbench.jobs.store import Key
from mmbench.tables.blocks.seconds import total_with_search, with_search_text
from mmbench.tables.blocks.tests import split_gaps
from mmbench.tables.cells import Cell
from mmbench.tables.figures.style import colour
from mmbench.tables.report import plotted, words
from mmbench.tables.report.plotted import Picture, axis, bars, line_name, lines_spec, points, spec
from mmbench.tables.report.view import ACCURACY, View


def pictures_of(view: View) -> list[Picture]:
    """Return the pictures of an experiment, as far as it has what they show."""
    made = (against_published(view), machine_differences(view), time_and_accuracy(view))
    return [picture for picture in made if picture is not None]


def against_published(view: View) -> Picture | None:
    """Return measured less published values, the band as a bar; those out of it are named."""
    compared = {row.key: row for row in view.rows if row.in_band is not None}
    if not compared:
        return None
    traces = []
    for machine in view.sheet.machines:
        keys = [key for key in compared if key.machine == machine]
        rows = [compared[key] for key in keys]
        trace = points(
            view,
            machine,
            keys,
            [(row.measured or 0) - (row.published or 0) for row in rows],
            [line_name(view, key) for key in keys],
            hollow=[not row.in_band for row in rows],
            mode="markers+text",
            text=["" if row.in_band else f" {view.sheet.label(machine)} " for row in rows],
            textposition="middle right",
            cliponaxis=False,
            error_x=bars([row.half_width for row in rows]),
        )
        traces += [trace] if keys else []
    name = words.metric_name(view.metric)
    known = any(row.half_width is not None for row in compared.values())
    return Picture(
        "against-published",
        "Measured against published",
        f"A point a cell: {name} measured less published. "
        + ("Bar: the band of two standard errors, met where it reaches zero. " if known else "")
        + "Hollow and named: out of the band.",
        lines_spec(
            traces,
            len({line_name(view, key) for key in compared}),
            axis(f"{name} measured less published", zeroline=True),
        ),
    )


def machine_differences(view: View) -> Picture | None:
    """Return accuracies less those of the first machine, a line a data set."""
    first, others = _reference(view)
    places = [p for p in view.sheet.places if _accuracy(view, p, first) is not None]
    if not others or not places:
        return None
    traces = []
    for machine in others:
        at = [p for p in places if _accuracy(view, p, machine) is not None]
        gaps = [split_gaps(view.sheet, place, machine, first) for place in at]
        traces.append(
            points(
                view,
                machine,
                [place._replace(machine=machine) for place in at],
                [_gain(view, place, machine, first) for place in at],
                [line_name(view, place) for place in at],
                error_x=bars([2 * stdev(g) / sqrt(len(g)) if len(g) > 1 else None for g in gaps]),
            )
        )
    label = view.sheet.label(first)
    paired = any(bar is not None for trace in traces for bar in trace["error_x"]["array"])
    return Picture(
        "machine-differences",
        f"Accuracy minus that of {label}",
        f"A line a data set: accuracy (%) minus that of {label}."
        + (" Bars: two standard errors of the mean over splits that both have." if paired else ""),
        lines_spec(traces, len(places), axis(f"accuracy (%) minus that of {label}", zeroline=True)),
    )


def time_and_accuracy(view: View) -> Picture | None:
    """Return accuracy against CPU time; relative to the first machine over several data sets."""
    first, others = _reference(view)
    places = [p for p in view.sheet.places if _known(view, p, first)]
    if not others or not places:
        return None
    relative, label = len(places) > 1, view.sheet.label(first)
    traces = []
    for machine in others if relative else [first, *others]:
        at = [place for place in places if _known(view, place, machine)]
        costs = [
            _seconds(view, p, machine) / (_seconds(view, p, first) if relative else 1) for p in at
        ]
        gains = [
            _gain(view, p, machine, first) if relative else _accuracy(view, p, machine) for p in at
        ]
        keys = [place._replace(machine=machine) for place in at]
        traces.append(points(view, machine, keys, costs, gains))
    cost, gain = ("CPU seconds a split", "accuracy (%)")
    if relative:
        cost = f"CPU time as a multiple of that of {label}"
        gain = f"accuracy (%) minus that of {label}"
    return Picture(
        "time-and-accuracy",
        "Time against accuracy",
        "CPU seconds of selection, training and test of a split, on a logarithmic axis."
        + with_search_text(view.sheet, [first, *others])
        + (f" Each point is a data set; {label} stands where the lines cross." if relative else ""),
        spec(
            traces,
            xaxis=axis(cost, type="log"),
            yaxis=axis(gain, zeroline=relative),
            shapes=[plotted.line("x", 1.0)] if relative else [],
        ),
    )


def splits_picture(view: View, cell: Cell) -> Picture | None:
    """Return the accuracy of every split of a cell, beside their mean and the published value."""
    if len(cell.counted) < 2:
        return None
    values = [record.metrics["accuracy_pct"] for record in cell.counted]
    mean, row = fmean(values), view.sheet.row(cell.key, ACCURACY)
    lines, notes = [plotted.line("y", mean)], [plotted.note(mean, f"mean {mean:.2f}")]
    caption = f"Each point is a split; standard deviation {stdev(values):.2f}. Line: the mean"
    if row is not None and row.published is not None:
        lines.append(plotted.line("y", row.published, "dash"))
        notes.append(plotted.note(row.published, f"published {row.published:g}"))
        caption += "; dashed: the published value"
        if row.half_width is not None:
            lines.append(plotted.band(mean - row.half_width, mean + row.half_width))
            caption += "; tinted: the band of two standard errors"
    trace = {
        "type": "scatter",
        "mode": "markers",
        "x": list(range(1, len(values) + 1)),
        "y": values,
        "hovertext": _split_names(cell),
        "hoverinfo": "text",
        "marker": {"color": colour(0), "size": 8},
        "showlegend": False,
    }
    return Picture(
        "splits-picture",
        "Accuracy of every split",
        f"{caption}.",
        spec(
            [trace],
            height=300,
            xaxis=axis("split"),
            yaxis=axis("accuracy (%)"),
            shapes=lines,
            annotations=notes,
        ),
    )


def _split_names(cell: Cell) -> list[str]:
    return [
        f"repeat {record.at[0]}, fold {record.at[1]}: {record.metrics['accuracy_pct']:.2f} %"
        for record in cell.counted
    ]


def _reference(view: View) -> tuple[str, Sequence[str]]:
    """Return the machine that others are held against, the first one configured, and the others."""
    ran = {row.key.machine for row in view.rows if row.measured is not None}
    machines = [machine for machine in view.sheet.configured if machine in ran]
    return (machines[0], machines[1:]) if machines else ("", [])


def _accuracy(view: View, place: Key, machine: str) -> float | None:
    return view.sheet.value(place._replace(machine=machine), ACCURACY)


def _gain(view: View, place: Key, machine: str, first: str) -> float:
    """Return the accuracy of a machine minus that of the first, both known."""
    return (_accuracy(view, place, machine) or 0.0) - (_accuracy(view, place, first) or 0.0)


def _seconds(view: View, place: Key, machine: str) -> float:
    """Return the CPU seconds of a split, what is taken over included; 0 where not known."""
    return total_with_search(view.sheet, place._replace(machine=machine)) or 0.0


def _known(view: View, place: Key, machine: str) -> bool:
    return _accuracy(view, place, machine) is not None and _seconds(view, place, machine) > 0
