"""Equations as MathML, which browsers draw without scripts, and which screen readers can read."""

from __future__ import annotations

import html
import re
from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx.application import Sphinx

#: Separators of the parts of an equation; on a narrow page, the parts are stacked.
PART = re.compile(r"\\q?quad\s*(?=\\text\{subject to)|(?<=,)\s*\\q?quad\b|\\qquad\b")
TAG = re.compile(r"\\tag\{([^}]*)\}")


def inline(self: Any, node: Any) -> None:
    """Write an equation within a line."""
    self.body.append(convert(node.astext()))
    raise SkipNode


def display(self: Any, node: Any) -> None:
    """Write a displayed equation, with the equation number of the paper on the right."""
    text = node.astext()
    number = "".join(f"({html.escape(tag)})" for tag in TAG.findall(text))
    # variables are written below min and max, as in LaTeX
    text = re.sub(r"\\(min|max)_", r"\\\1\\limits_", TAG.sub("", text))
    whole = r"\begin" in text  # rows of an array are not split
    parts = [text.strip()] if whole else PART.split(text.strip())
    equation = "".join(convert(part, display="block") for part in parts)
    self.body.append(
        f'<div class="math"><div>{equation}</div><span class="number">{number}</span></div>'
    )
    raise SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
