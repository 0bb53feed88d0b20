"""``{sliders}``: every machine on the same data, with one parameter that a reader moves.

All machines are trained when the pages are built. The page holds the lines on which the decision f
is -1, 0 and 1, the certificate and a quantity of each fit; ``_static/sliders.js`` draws them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from docutils import nodes
from pictures import classes, strips
from plane import MACHINES, Shown, corners, frame
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

DATA = {
    "classes of different spread": classes(((-2.2, 0), (2.6, 0)), ((2.2, 3.0), (0.25, 0.6)), 0.5),
    "two strips": strips(),
    "overlapping classes": classes(((-1, 0), (1, 0.4)), ((1.2, 0.8), (0.9, 1.2))),
}


def drawn() -> dict[str, Any]:
    """Return the data sets and the corners of their pictures."""
    return {
        name: {
            "X": X.round(2).tolist(),
            "y": y.tolist(),
            "box": [c.tolist() for c in corners(X)],
        }
        for name, (X, y) in DATA.items()
    }


@cache
def page() -> str:
    """Return all fits as JSON."""

    def fits(shown: Shown) -> Iterator[dict[str, Any]]:
        for data, kernel in ((data, k) for data in DATA for k in ("linear", "rbf")):
            own = {"kernel": kernel, "gamma": 0.3}
            frames = [
                frame(shown, own | {shown.parameter: value}, *DATA[data]) for value in shown.values
            ]
            yield {"data": data, "kernel": kernel, "frames": frames}

    return json.dumps(
        {
            "data": drawn(),
            "machines": {
                name: {
                    "parameter": shown.parameter,
                    "values": [f"{value:.3g}" for value in shown.values],
                    "fits": list(fits(shown)),
                }
                for name, shown in MACHINES.items()
            },
        },
        separators=(",", ":"),
    )


class Sliders(SphinxDirective):
    """``{sliders}``: a picture with a list of machines and a slider."""

    def run(self) -> list[nodes.Node]:
        """Return the element that the script fills, and the fits."""
        text = f'<div id="sliders"></div><script type="application/json">{page()}</script>'
        return [nodes.raw("", text, format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("sliders", Sliders)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
