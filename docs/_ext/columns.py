"""The directive ``{columns} FRAME``, which writes the declared columns of a frame of results."""

from __future__ import annotations

from docutils import nodes
from measured import parsed_table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from mmbench.results.columns import columns


class Columns(SphinxDirective):
    """``{columns} FRAME``: name, type, unit and meaning of each column."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        rows = [(f"`{name}`", *entry) for name, entry in columns(self.arguments[0]).items()]
        return parsed_table(self, ("column", "type", "unit", "meaning"), rows)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("columns", Columns)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
