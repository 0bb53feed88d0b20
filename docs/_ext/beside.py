"""Links of pages to what lies beside docs/.

Links between files that pages show become links between the pages; if the text of a link is a path,
the title of the page replaces it. Names of experiments in the text on what was reproduced become
links to their tables.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

#: File of the repository -> page that shows it.
PAGES = {
    "configs/README.md": "keys",
    "datasets/README.md": "data",
    "results/reference/README.md": "not_reproduced",
    "results/reference/readings.md": "readings",
    "readings.md": "readings",  # beside the text that links to it
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changes",
}
LINK = re.compile(r"\[([^\[\]]*)\]\((?:\.\./)*(docs/)?([\w./-]+\.md)(#[\w-]+)?\)")


REFERENCE = Path(__file__).resolve().parents[2] / "results" / "reference"
NAME = re.compile(r"(?<!\[)`(\w+)`")
#: A number and its mark, which stay on one line.
MARK = re.compile(r"(?<=\d) (?=[✓~✗])")


#: Section of the text on what was reproduced -> page of the paper.
PAPERS = {
    "#mmrm-paper": "/papers/mmrm.md",
    "#mamc-paper": "/papers/mamc.md",
    "#m4-paper": "/papers/m4.md",
    "#rmm-papers": "/papers/rmm.md",
    "#f-svm-paper": "/papers/fsvm.md",
}
PAPER_PAGES = {Path(page).stem for page in PAPERS.values()} | {"own"}


def link_pages(app: Sphinx, path: Path, parent: str, content: list[str]) -> None:
    """Point the links of an included file at pages."""
    content[0] = LINK.sub(_page, content[0])
    for section, page in PAPERS.items():
        content[0] = content[0].replace(f"]({section})", f"]({page})")
    name = Path(parent).name  # some versions of the parser pass the name without its folder
    if name in PAPER_PAGES:  # sections of a paper are sections of its page
        content[0] = content[0].replace("\n### ", "\n## ")
    if name in ("not_reproduced", "readings", "reproduce") or name in PAPER_PAGES:
        content[0] = MARK.sub("\u00a0", NAME.sub(_table, content[0]))


def link_beside(app: Sphinx, page: str, content: list[str]) -> None:
    """Point links to files beside docs/ at pages, and the names of experiments at their tables."""
    content[0] = LINK.sub(_page, content[0])
    if page == "reproduce":
        content[0] = NAME.sub(_table, content[0])


def _page(link: re.Match[str]) -> str:
    text, docs, file, part = link.groups()
    if not docs and file not in PAGES:
        return link[0]
    page = file if docs else f"{PAGES[file]}.md"
    text = "" if text == (docs or "") + file else text  # then Sphinx writes the title of the page
    return f"[{text}](/{page}{part or ''})"


def _table(name: re.Match[str]) -> str:
    run = (REFERENCE / name[1] / "table.md").is_file()
    return f"[{name[0]}](/tables/{name[1]}.md)" if run else name[0]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the events."""
    app.connect("include-read", link_pages)
    app.connect("source-read", link_beside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
