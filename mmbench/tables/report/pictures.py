"""Interactive pictures of an experiment and of a cell, as figures of plotly.

The browser sets the colours of paper, ink and grid, which depend on its dark mode. A machine has
the same colour and mark in all pictures of an experiment.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt
from statistics import fmean, stdev
from typing import Any, NamedTuple

from mmbench.jobs.record import plain
from mmbench.jobs.store import Key
from mmbench.tables.blocks import split_gaps, total_with_search, with_search_text
from mmbench.tables.figures.style import colour
from mmbench.tables.records import Cell
from mmbench.tables.report.view import ACCURACY, View, details, metric_name, place_text

MARKS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "x", "hexagon")
#: Pixels: height of a picture, of a line of a list of data sets, and of a machine in the line.
HEIGHT, LINE, STEP = 420, 24, 11


class Picture(NamedTuple):
    """A figure of plotly (data and layout), with the name of its element in the page."""

    name: str
    title: str
    caption: str
    spec: Mapping[str, Any]


class Point(NamedTuple):
    """The point of a cell; `error` is half its bar, `hint` the last line of its hover text."""

    key: Key
    x: float
    y: float | str
    error: float | None = None
    hollow: bool = False
    hint: str = ""


def label(text: str) -> str:
    """Return a text with the tags that plotly knows escaped.

    Examples
    --------
    >>> label("a < b & c")
    'a &lt; b &amp; c'
    """
    return escape(text, quote=False)


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
    """Return a text at the right end of a line across the picture."""
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": at, "yanchor": "bottom"}
    return {**place, "text": label(text), "showarrow": False}


def line_name(view: View, place: Key) -> str:
    """Return the name of a line: data set; kernel and size if there are several."""
    if place.size is not None or len(view.sheet.kernels) > 1:
        return label(place_text(place))
    return label(place.dataset)


def traces(
    view: View,
    points: Sequence[Point],
    machines: Sequence[str] = (),
    named: bool = False,
    bars: bool = True,
    root: str = "",
) -> list[dict[str, Any]]:
    """Return one trace per machine; its points show their details and open their pages.

    With `named` hollow points bear the name of the machine. `root` leads to the pages.
    """
    made = []
    for machine in machines or view.sheet.machines:
        mine = [point for point in points if point.key.machine == machine]
        if not mine:
            continue
        k, name = view.sheet.machines.index(machine), view.sheet.label(machine)
        mark, pages = MARKS[k % len(MARKS)], [view.pages.get(point.key) for point in mine]
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "markers+text" if named else "markers",
            "name": label(name),
            "x": [point.x for point in mine],
            "y": [point.y for point in mine],
            "hovertext": [_hover(view, point) for point in mine],
            "hoverinfo": "text",
            "customdata": [f"{root}{page}" if page else "" for page in pages],
            "marker": {"color": colour(k), "symbol": mark, "size": 10},
        }
        if any(point.hollow for point in mine) or named:
            symbols = [f"{mark}-open" if point.hollow else mark for point in mine]
            trace["marker"]["symbol"] = symbols
        if named:
            trace["text"] = [f" {name} " if point.hollow else "" for point in mine]
            trace |= {"textposition": "middle right", "cliponaxis": False}
        if bars:
            widths = [point.error for point in mine]
            trace["error_x"] = {"type": "data", "array": widths, "thickness": 1, "width": 3}
        made.append(trace)
    return made


def _hover(view: View, point: Point) -> str:
    facts = [f"{name}: {value}" for name, value in details(view, point.key) if value]
    lines = [f"<b>{label(view.heading(point.key))}</b>", *map(label, facts)]
    return "<br>".join([*lines, *[label(point.hint)][: len(point.hint)]])


def spec(made: Sequence[Mapping], height: int = HEIGHT, **layout: Any) -> dict[str, Any]:
    """Return a figure in JSON types."""
    return plain({"data": made, "layout": {"height": height, **layout}})


def lines_spec(
    made: Sequence[dict[str, Any]], n_lines: int, xaxis: Mapping[str, Any], **layout: Any
) -> dict[str, Any]:
    """Return a figure with one line per data set, in which the machines lie below one another."""
    for trace in made:
        trace |= {"orientation": "h", "offsetgroup": trace["name"], "alignmentgroup": "all"}
    return spec(
        made,
        height=150 + max(LINE, STEP * len(made)) * max(n_lines, 2),
        scattermode="group",
        xaxis=xaxis,
        yaxis=axis("", autorange="reversed", type="category"),
        **layout,
    )


def pictures_of(view: View) -> list[Picture]:
    """Return the pictures of an experiment for which it has results."""
    made = (against_published(view), machine_differences(view), time_and_accuracy(view))
    return [picture for picture in made if picture is not None]


def against_published(view: View) -> Picture | None:
    """Return measured minus published values, with the band as a bar."""
    rows = [row for row in view.rows if row.in_band is not None]
    if not rows:
        return None
    points = [
        Point(
            row.key,
            (row.measured or 0) - (row.published or 0),
            line_name(view, row.key),
            row.half_width,
            not row.in_band,
        )
        for row in rows
    ]
    name = metric_name(view.metric)
    known = any(row.half_width is not None for row in rows)
    return Picture(
        "against-published",
        "Measured against published",
        f"A point a cell: {name} measured less published. "
        + ("Bar: the band of two standard errors, met where it reaches zero. " if known else "")
        + "Hollow and named: out of the band.",
        lines_spec(
            traces(view, points, named=True),
            len({point.y for point in points}),
            axis(f"{name} measured less published", zeroline=True),
        ),
    )


def machine_differences(view: View) -> Picture | None:
    """Return accuracies minus those of the first machine, one line per data set."""
    first, others, accuracies = _accuracies(view)
    places = [place for place in view.sheet.places if (place, first) in accuracies]
    if not others or not places:
        return None
    points = []
    for place in places:
        for machine in others:
            if (place, machine) in accuracies:
                gaps = split_gaps(view.sheet, place, machine, first)
                error = 2 * stdev(gaps) / sqrt(len(gaps)) if len(gaps) > 1 else None
                gain = accuracies[place, machine] - accuracies[place, first]
                key = place._replace(machine=machine)
                points.append(Point(key, gain, line_name(view, place), error))
    name = view.sheet.label(first)
    paired = any(point.error is not None for point in points)
    return Picture(
        "machine-differences",
        f"Accuracy minus that of {name}",
        f"A line a data set: accuracy (%) minus that of {name}."
        + (" Bars: two standard errors of the mean over splits that both have." if paired else ""),
        lines_spec(
            traces(view, points, others),
            len(places),
            axis(f"accuracy (%) minus that of {name}", zeroline=True),
        ),
    )


def time_and_accuracy(view: View) -> Picture | None:
    """Return accuracy against CPU time; relative to the first machine over several data sets."""
    first, others, accuracies = _accuracies(view)
    sheet = view.sheet
    times = {(p, m): total_with_search(sheet, p._replace(machine=m)) for p, m in accuracies}
    places = [place for place in sheet.places if times.get((place, first))]
    if not others or not places:
        return None
    relative, name = len(places) > 1, sheet.label(first)
    points = []
    for place in places:
        for machine in others if relative else [first, *others]:
            if time := times.get((place, machine)):
                unit, zero = times[place, first], accuracies[place, first]
                cost, gain = (time / (unit or 1), -zero) if relative else (time, 0.0)
                key = place._replace(machine=machine)
                points.append(Point(key, cost, gain + accuracies[place, machine]))
    cost_name, gain_name = "CPU seconds a split", "accuracy (%)"
    if relative:
        cost_name = f"CPU time as a multiple of that of {name}"
        gain_name = f"accuracy (%) minus that of {name}"
    return Picture(
        "time-and-accuracy",
        "Time against accuracy",
        "CPU seconds of selection, training and test of a split, on a logarithmic axis."
        + with_search_text(sheet, [first, *others])
        + (f" Each point is a data set; {name} stands where the lines cross." if relative else ""),
        spec(
            traces(view, points, [first, *others], bars=False),
            xaxis=axis(cost_name, type="log"),
            yaxis=axis(gain_name, zeroline=relative),
            shapes=[line("x", 1.0)] if relative else [],
        ),
    )


def _accuracies(view: View) -> tuple[str, list[str], dict[tuple[Key, str], float]]:
    """Return the first machine configured that has results, the others, and all accuracies (%)."""
    ran = {row.key.machine for row in view.rows if row.measured is not None}
    first, *others = [machine for machine in view.sheet.configured if machine in ran] or [""]
    values = {
        (row.key._replace(machine=""), row.key.machine): row.measured
        for row in view.sheet.rows
        if row.metric == ACCURACY and row.measured is not None
    }
    return first, others, values


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
        "hovertext": [
            f"repeat {record.at[0]}, fold {record.at[1]}: {value:.2f} %"
            for record, value in zip(cell.counted, values, strict=True)
        ],
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
