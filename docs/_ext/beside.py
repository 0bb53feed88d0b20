"""Pages that show files from beside docs/: links between these files become links between pages."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

#: File of the repository -> page that shows it.
PAGES = {
    "configs/README.md": "keys",
    "datasets/README.md": "data",
    "results/reference/README.md": "not_reproduced",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changes",
}
LINK = re.compile(r"\]\((?:\.\./)*(docs/)?([\w./-]+\.md)(#[\w-]+)?\)")


def link_pages(app: Sphinx, path: object, parent: str, content: list[str]) -> None:
    """Point the links of an included file at pages."""
    content[0] = LINK.sub(_page, content[0])


def _page(link: re.Match[str]) -> str:
    docs, file, part = link.groups()
    if docs:
        return f"](/{file}{part or ''})"
    return f"](/{PAGES[file]}.md{part or ''})" if file in PAGES else link[0]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the event."""
    app.connect("include-read", link_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
