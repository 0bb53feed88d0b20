"""Interactive pictures of experiments and table cells, drawn by the library plotly.

A machine looks alike in all pictures. ``assets/report.js`` adds what all pictures share.
"""

from collections.abc import Mapping, Sequence
from html import escape
from math import sqrt
from statistics import fmean, stdev
from textwrap import fill
from typing import Any, NamedTuple

from mmbench.jobs.planned import Key
from mmbench.jobs.record import plain
from mmbench.results.cells import METRIC
from mmbench.results.pairwise import split_gaps
from mmbench.tables.blocks import total_with_search
from mmbench.tables.figures.style import colour, looks, mark
from mmbench.tables.report.view import View, data_text, metric_name

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "hexagon")
#: Heights in pixels: height of a picture, minimum height of a row, height of each machine in the
#: row of a data set, and height of each further line of a row's label.
HEIGHT, LINE, STEP, TEXT = 420, 30, 11, 17
#: Maximum number of characters in a line of a row's label.
WIDTH = 18

#: Type of a plotly figure as a dict with the keys "data" and "layout".
Spec = dict[str, Any]


class Point(NamedTuple):
    """A point in a picture, which shows one value of a table cell.

    `error` is half the length of the point's error bar. If `hollow` is true, the marker is not
    filled. `hint` is the last line of the text that appears on hover.
    """

    key: Key
    x: float
    #: Vertical coordinate of the point, or None if the picture has one row per data set.
    y: float | None = None
    error: float | None = None
    hollow: bool = False
    hint: str = ""


def label(text: str) -> str:
    """Return a text for plotly, with the characters of HTML tags escaped.

    Examples
    --------
    >>> label("a < b & c")
    'a &lt; b &amp; c'
    """
    return escape(text, quote=False)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """Return an axis of a plotly figure, with the given title."""
    return {"title": {"text": label(title)}, "automargin": True, "zeroline": False, **more}


def rule(name: str, value: float, dash: str = "solid") -> dict[str, Any]:
    """Return a line across the whole picture of a plotly figure, at a value of the axis `name` ("x"
    or "y").
    """
    other = "y" if name == "x" else "x"
    ends = {f"{name}0": value, f"{name}1": value, f"{other}0": 0, f"{other}1": 1}
    return {"type": "line", f"{other}ref": "paper", **ends, "line": {"width": 1, "dash": dash}}


def scatter(
    view: View,
    points: Sequence[Point],
    x: Mapping[str, Any],
    y: Mapping[str, Any] | None = None,
    named: bool = False,
    root: str = "",
    **layout: Any,
) -> Spec:
    """Return a plotly figure of points, with one trace per machine.

    On hover, a point shows the details of its table cell. A click on the point opens the page of
    the table cell. If `y` is None, the vertical axis has one category per data set, and each point
    has a horizontal error bar. If `y` is None and there are more machines than markers, the
    vertical axis has one category per machine, and points have no error bars.

    If `named` is true, the name of the machine is written beside each hollow point. If `named` is
    true, `y` is given and there are more machines than markers, the name is written beside every
    point. The relative path `root` leads to the folder of the linked pages. The keyword arguments
    `layout` are properties of the plotly layout.
    """
    several, shared = len(view.results.kernels) > 1, share_marks(view)
    traces, labels = [], set[str]()
    for machine, index in looks(view.results.configured).items():
        if not (own := [point for point in points if point.key.machine == machine]):
            continue
        k, text = 0 if shared and y is None else index, label(view.results.label(machine))
        symbol, pages = mark(k, SYMBOLS), [view.pages.get(point.key) for point in own]
        symbols = [f"{symbol}-open" if point.hollow else symbol for point in own]
        trace: dict[str, Any] = {
            "name": text,
            "x": [point.x for point in own],
            "y": [point.y for point in own],
            "hovertext": [_hover(view, point) for point in own],
            "customdata": [f"{root}{page}" if page else "" for page in pages],
            "marker": {"color": colour(k), "symbol": symbols, "size": 10},
        }
        if named:
            trace["text"] = [f" {text} " if point.hollow or (shared and y) else "" for point in own]
        if y is None and shared:
            trace |= {"y": [text] * len(own), "showlegend": False, "error_x": {"array": []}}
        elif y is None:
            trace["error_x"] = {"array": [point.error for point in own]}
            trace |= {"orientation": "h", "offsetgroup": text, "alignmentgroup": "all"}
            texts = (data_text(p.key, several or p.key.size is not None) for p in own)
            trace["y"] = [label(fill(text, WIDTH)).replace("\n", "<br>") for text in texts]
            labels.update(trace["y"])
        traces.append(trace)
    layout |= {"height": HEIGHT, "xaxis": x, "yaxis": y}
    if y is None:
        breaks = max((text.count("<br>") for text in labels), default=0)
        step = LINE if shared else max(LINE + TEXT * breaks, STEP * len(traces))
        rows = len(traces) if shared else max(len(labels), 2)
        category = axis("", autorange="reversed", type="category", ticklabelstandoff=8, dtick=1)
        layout |= {"height": 150 + step * rows, "scattermode": "group", "yaxis": category}
    return plain({"data": traces, "layout": layout})


def share_marks(view: View) -> bool:
    """Return whether there are more machines than markers, so that some machines have the same
    marker.
    """
    return len(view.results.configured) > len(SYMBOLS)


def _hover(view: View, point: Point) -> str:
    facts = [f"{name}: {value}" for name, value in view.details(point.key) if value]
    lines = map(label, filter(None, [*facts, point.hint]))
    return "<br>".join([f"<b>{label(view.heading(point.key))}</b>", *lines])


def pictures_of(view: View) -> dict[str, Spec]:
    """Return the pictures of an experiment as a dict with HTML identifiers as keys.

    Pictures without points are left out.
    """
    made = {"against-published": against_published(view)}
    if len(view.ran) > 1:
        gains = differences(view)
        made["machine-differences"] = machine_differences(view, gains)
        made["time-and-accuracy"] = time_and_accuracy(view, gains)
    return {name: spec for name, spec in made.items() if spec["data"]}


def against_published(view: View) -> Spec:
    """Return a picture of measured minus published values.

    The error bars show the comparison bands (see `mmbench.results.cells`).
    """
    points = [
        Point(r.key, r.measured - r.published, error=r.half_width, hollow=not r.in_band)
        for r in view.rows
        if r.in_band is not None
    ]
    title = f"{metric_name(view.metric)} measured minus published"
    return scatter(view, points, axis(title, zeroline=True), named=True)


def differences(view: View) -> dict[Key, float]:
    """For each table cell of a machine other than the first, return the mean difference in accuracy
    from the first machine, over the splits on which both machines have results.
    """
    results, (first, *others) = view.results, view.ran
    means = {machine: results.common(results.places, [first, machine]) for machine in others}
    return {
        place._replace(machine=machine): gain
        for machine, pair in means.items()
        for place, gain in zip(results.places, pair[machine] - pair[first], strict=True)
        if gain == gain
    }


def machine_differences(view: View, gains: Mapping[Key, float]) -> Spec:
    """Return a picture of every other machine's accuracy minus the first machine's accuracy, on
    each data set.
    """
    points = []
    for key, gain in gains.items():
        gaps = split_gaps(view.results, key, key.machine, view.ran[0])
        error = 2 * stdev(gaps) / sqrt(len(gaps)) if len(gaps) > 1 else None
        points.append(Point(key, gain, error=error))
    title = f"accuracy (%) minus {view.results.label(view.ran[0])}"
    return scatter(view, points, axis(title, zeroline=True))


def time_and_accuracy(view: View, gains: Mapping[Key, float]) -> Spec:
    """Return a picture of accuracy against CPU time.

    If there are several data sets, the picture shows accuracies and CPU times relative to the first
    machine. With several data sets and more machines than markers, the picture has one row of CPU
    times per machine, and no accuracies. If there is one data set and more machines than markers,
    each point is labelled with its machine.
    """
    results, shared = view.results, share_marks(view)
    firsts = (place._replace(machine=view.ran[0]) for place in results.places)
    units = {first: time for first in firsts if (time := total_with_search(results, first))}
    relative, name = len(units) > 1, results.label(view.ran[0])
    values = gains if relative else {key: results.value(key, METRIC) for key in results.keys}
    points = [
        Point(key, time / (unit if relative else 1.0), value)
        for first, unit in units.items()
        for key in (first._replace(machine=machine) for machine in view.ran[relative:])
        if (time := total_with_search(results, key)) and (value := values.get(key)) is not None
    ]
    cost, gain = "CPU seconds per split", "accuracy (%)"
    if relative:
        cost, gain = f"CPU time relative to {name}", f"{gain} minus {name}"
    x_axis, named = axis(cost, type="log"), shared and not relative
    y_axis = None if shared and relative else axis(gain, zeroline=relative)
    return scatter(view, points, x_axis, y_axis, named, shapes=[rule("x", 1.0)] if relative else [])


def splits_picture(view: View, key: Key) -> Spec | None:
    """Return a picture of the accuracy on each split, with the mean, the published value and the
    comparison band.
    """
    splits = view.results.counted(key)
    if len(splits) < 2:
        return None
    values = [split.accuracy_pct for split in splits]
    mean, row = fmean(values), view.results.row(key, METRIC)
    shapes, notes = [rule("y", mean)], {f"mean {mean:.2f}": mean}
    if row.published is not None:
        shapes.append(rule("y", row.published, "dash"))
        notes[f"published {row.published:g}"] = row.published
        if row.half_width is not None:
            ends = {"y0": mean - row.half_width, "y1": mean + row.half_width}
            shapes.append({"type": "rect", "fillcolor": colour(0), **ends})
    layout = {
        "height": 300,
        "xaxis": axis("split", dtick=max(1, round(len(values) / 10))),
        "yaxis": axis("accuracy (%)"),
        "shapes": shapes,
        "annotations": [{"text": label(text), "y": y} for text, y in notes.items()],
    }
    trace = {
        "x": list(range(1, len(values) + 1)),
        "y": values,
        "hovertext": [f"repeat {r.repeat}, fold {r.fold}: {r.accuracy_pct:.2f} %" for r in splits],
        "marker": {"color": colour(0), "size": 8},
    }
    return plain({"data": [trace], "layout": layout})
