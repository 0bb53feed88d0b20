"""Interactive pictures of an experiment and of a cell, as figures of plotly.

The browser sets the colours of paper, ink and grid, which depend on its dark mode. A machine has
the same colour and mark in all pictures of an experiment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from statistics import fmean, stdev
from typing import Any

from mmbench.jobs.record import plain
from mmbench.jobs.store import Key
from mmbench.tables.blocks import split_gaps, total_with_search, with_search_text
from mmbench.tables.figures.style import colour
from mmbench.tables.records import Cell
from mmbench.tables.report import view as words
from mmbench.tables.report.view import ACCURACY, View, place_text

MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "x", "hexagon")
#: Pixels of a picture, of a line of a list of data sets, and of a machine in it.
HEIGHT, LINE, STEP = 420, 24, 11

Trace = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A picture with its name."""

    #: Of its element in the page.
    name: str
    title: str
    caption: str
    #: ``data`` and ``layout`` for plotly.
    spec: Mapping[str, Any]


def points(
    view: View,
    machine: str,
    keys: Sequence[Key],
    x: Sequence,
    y: Sequence,
    hollow: Sequence[bool] = (),
    **more: Any,
) -> Trace:
    """Return the points of a machine, each with what it says and the page that it opens."""
    k = view.sheet.machines.index(machine)
    mark = MARKS[k % len(MARKS)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(view.sheet.label(machine)),
        "x": list(x),
        "y": list(y),
        "hovertext": [_hover(view, key) for key in keys],
        "hoverinfo": "text",
        "customdata": [view.pages.get(key, "") for key in keys],
        "marker": {
            "color": colour(k),
            "symbol": [f"{mark}-open" if open_ else mark for open_ in hollow] or mark,
            "size": 10,
        },
        **more,
    }


def _hover(view: View, key: Key) -> str:
    facts = [f"{name}: {value}" for name, value in words.details(view, key) if value]
    return "<br>".join([f"<b>{label(view.heading(key))}</b>", *map(label, facts)])


def label(text: str) -> str:
    """Return a text that the drawing script, which knows some tags, shows as it is.

    Examples
    --------
    >>> label("a < b & c")
    'a &lt; b &amp; c'
    """
    return escape(text, quote=False)


def bars(widths: Sequence[float | None]) -> dict[str, Any]:
    """Return bars of some half widths around points."""
    return {"type": "data", "array": list(widths), "thickness": 1, "width": 3}


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis with its title."""
    return {"title": {"text": label(title)}, "automargin": True, "zeroline": False, **more}


def line(at_axis: str, at: float, dash: str = "solid") -> dict[str, Any]:
    """Return a line across the picture at a value of an axis, "x" or "y"."""
    other = "y" if at_axis == "x" else "x"
    ends = {f"{at_axis}0": at, f"{at_axis}1": at, f"{other}0": 0, f"{other}1": 1}
    return {"type": "line", f"{other}ref": "paper", **ends, "line": {"width": 1, "dash": dash}}


def band(low: float, high: float) -> dict[str, Any]:
    """Return a tinted band between two values of the axis of y."""
    ends = {"x0": 0, "x1": 1, "y0": low, "y1": high}
    fill = {"fillcolor": colour(0), "opacity": 0.15, "line": {"width": 0}, "layer": "below"}
    return {"type": "rect", "xref": "paper", **ends, **fill}


def note(at: float, text: str) -> dict[str, Any]:
    """Return words at the right end of a line across the picture."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": at, "yanchor": "bottom"}
    return {**place, "text": label(text), "showarrow": False}


def line_name(view: View, place: Key) -> str:
    """Return the name of a line: data set, and kernel and training size where there are several."""
    if place.size is not None or len(view.sheet.kernels) > 1:
        return label(place_text(place))
    return label(place.dataset)


def spec(traces: Sequence[Trace], height: int = HEIGHT, **layout: Any) -> dict[str, Any]:
    """Return what the drawing script takes, in JSON types."""
    return plain({"data": traces, "layout": {"height": height, **layout}})


def lines_spec(
    traces: Sequence[Trace], n_lines: int, xaxis: Mapping[str, Any], **layout: Any
) -> dict[str, Any]:
    """Return a picture with a line a data set, in it the machines one below another."""
    step = max(LINE, STEP * len(traces))
    for trace in traces:
        trace |= {"orientation": "h", "offsetgroup": trace["name"], "alignmentgroup": "all"}
    return spec(
        traces,
        height=150 + step * max(n_lines, 2),
        scattermode="group",
        xaxis=xaxis,
        yaxis=axis("", autorange="reversed", type="category"),
        **layout,
    )


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
            shapes=[line("x", 1.0)] if relative else [],
        ),
    )


def splits_picture(view: View, cell: Cell) -> Picture | None:
    """Return the accuracy of every split of a cell, beside their mean and the published value."""
    if len(cell.counted) < 2:
        return None
    values = [record.metrics["accuracy_pct"] for record in cell.counted]
    mean, row = fmean(values), view.sheet.row(cell.key, ACCURACY)
    lines, notes = [line("y", mean)], [note(mean, f"mean {mean:.2f}")]
    caption = f"Each point is a split; standard deviation {stdev(values):.2f}. Line: the mean"
    if row is not None and row.published is not None:
        lines.append(line("y", row.published, "dash"))
        notes.append(note(row.published, f"published {row.published:g}"))
        caption += "; dashed: the published value"
        if row.half_width is not None:
            lines.append(band(mean - row.half_width, mean + row.half_width))
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
