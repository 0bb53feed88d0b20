"""Links from pages to files outside docs/.

A link to a file becomes a link to the page that shows the file. If the text of the link is a path,
the title of the page replaces the path. On pages about reproduced results, the name of an
experiment becomes a link to its table.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

#: Page that shows a file, by the path of the file in the repository.
PAGES = {
    "configs/README.md": "keys",
    "datasets/README.md": "data",
    "results/reference/README.md": "not_reproduced",
    "results/reference/readings.md": "readings",
    "readings.md": "readings",  # in the folder of the text with the link
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changes",
}
LINK = re.compile(r"\[([^\[\]]*)\]\((?:\.\./)*(docs/)?([\w./-]+\.md)(#[\w-]+)?\)")


REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
NAME = re.compile(r"(?<!\[)`(\w+)`")
#: Space between a number and its mark or its per cent sign; a line break is not allowed there.
MARK = re.compile(r"(?<=\d) (?=[✓~✗])")
PERCENT = re.compile(r"(?<=\d) (?=%[\s.,;:)|])")


#: Page of a paper, by the section about the paper in the text about reproduced results.
PAPERS = {
    "#mmrm-paper": "/papers/mmrm.md",
    "#mamc-paper": "/papers/mamc.md",
    "#m4-paper": "/papers/m4.md",
    "#rmm-papers": "/papers/rmm.md",
    "#f-svm-paper": "/papers/fsvm.md",
}
PAPER_PAGES = {Path(page).stem for page in PAPERS.values()} | {"own"}


def link_pages(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Replace links in an included file by links to pages."""
    content[0] = PERCENT.sub("\u00a0", LINK.sub(_page, content[0]))
    for section, page in PAPERS.items():
        content[0] = content[0].replace(f"]({section})", f"]({page})")
    name = Path(parent).name  # some versions of the parser pass the name without its folder
    if name in PAPER_PAGES:  # on the page of a paper, sections are one level higher
        content[0] = content[0].replace("\n### ", "\n## ")
    if name in ("not_reproduced", "readings", "reproduce") or name in PAPER_PAGES:
        content[0] = MARK.sub("\u00a0", NAME.sub(_table, content[0]))


def link_beside(app: Sphinx, page: str, content: list[str]) -> None:
    """Replace links to files by links to pages, and names of experiments by links to tables."""
    content[0] = LINK.sub(_page, content[0])
    if not page.startswith("gallery/"):  # in code, the sign has another meaning
        content[0] = PERCENT.sub("\u00a0", content[0])
    if page == "reproduce":
        content[0] = NAME.sub(_table, content[0])


def _page(link: re.Match[str]) -> str:
    text, docs, file, part = link.groups()
    if not docs and file not in PAGES:
        return link[0]
    page = file if docs else f"{PAGES[file]}.md"
    text = "" if text == (docs or "") + file else text  # Sphinx fills an empty text with the title
    return f"[{text}](/{page}{part or ''})"


def _table(name: re.Match[str]) -> str:
    run = (REFERENCE / name[1] / "table.md").is_file()
    return f"[{name[0]}](/tables/{name[1]}.md)" if run else name[0]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the functions to events of Sphinx."""
    app.connect("include-read", link_pages)
    app.connect("source-read", link_beside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
