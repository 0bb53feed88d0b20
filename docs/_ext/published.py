"""Pictures and tables that compare measured with published values, on the pages of the papers."""

from __future__ import annotations

import itertools
from pathlib import Path

from docutils import nodes
from measured import NAMES, fold, parsed, reference
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.tables.build import arrange
from mmbench.tables.figures import draw_figure
from mmbench.tables.figures.published_values import compared
from mmbench.tables.figures.style import COLUMN, PAGE
from mmbench.tables.render import markdown_grid

#: Experiments of the page that compares the machines.
VERDICTS = ("verdict", "verdict_large")


class Published(SphinxDirective):
    """``{published} NAME ...``: a picture and a folded table per experiment."""

    required_arguments = 1
    optional_arguments = 9

    def run(self) -> list[nodes.Node]:
        """Return the pictures with their captions, and the tables."""
        lines: list[str] = []
        for name in self.arguments:
            results = reference(name)
            flags = [row.in_band for row in compared(results)]
            if not flags:
                raise self.error(f"{name}: no cell is compared with a published one")
            table = arrange(results)
            picture = f"![Measured minus published values, {name}](/pictures/published_{name}.svg)"
            count = f"{sum(flags)} of {len(flags)} measured values are near the published ones"
            caption = f"*[{name}](/tables/{name}.md): {table.title}. {count}.*"
            block = fold("The table", markdown_grid(table.grids[0]))
            lines += [picture, "", caption, "", *block.splitlines(), ""]
        return parsed(self, lines)


def draw_all(app: Sphinx) -> None:
    """Write pictures of reference tables into ``docs/pictures``, with a version for phones: one of
    each table with published values, and two of each verdict.
    """
    folder = Path(app.srcdir) / "pictures"
    folder.mkdir(exist_ok=True)
    shown = [("published", name) for name in NAMES if compared(reference(name))]
    shown += itertools.product(("time_and_accuracy", "critical_difference"), VERDICTS)
    widths = {"": PAGE, "_narrow": COLUMN}
    for (kind, name), (suffix, width) in itertools.product(shown, widths.items()):
        file = folder / f"{kind}_{name}{suffix}.svg"
        draw_figure(kind, reference(name), file, width=width)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive and the pictures."""
    app.add_directive("published", Published)
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
