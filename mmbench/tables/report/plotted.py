"""What pictures that answer a pointer are made of, as the drawing script (plotly) takes it.

Colours of paper, ink and grid are set in the browser, which knows whether it is dark. A machine has
its colour and its mark in all pictures of an experiment, so that either is enough.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mmbench.jobs.record import plain
from mmbench.jobs.store import Key
from mmbench.tables.figures.style import colour
from mmbench.tables.report import words
from mmbench.tables.report.names import place_text
from mmbench.tables.report.view import View

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
