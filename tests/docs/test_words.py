"""Pages, docstrings, comments, messages and templates keep to the words of the field.

Counts patterns of sentences that have to be read twice: clauses in place of a term, conditions that
begin with "where", numbers without a noun, verbs of persons for arrays.
"""

from __future__ import annotations

import ast
import importlib
import io
import itertools
import re
import tokenize
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Pages that a person writes; pages computed from results are left out.
PAGES = sorted(
    [ROOT / name for name in ("README.md", "configs/README.md", "datasets/README.md")]
    + [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "SUPPORT.md", "CHANGELOG.md")]
    + [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not {"_build", "tables", "gallery", "generated"} & set(path.parts)
    ]
)
#: A sentence with such words has to be read twice.
HABITS = re.compile(
    r"\bso many\b|\bso much\b|\bsuch (?:a )?ones?\b|\b(?:that|those) of\b|\bof those\b"
    r"|(?<![A-Za-z] )\b[Ww]hat (?!was reproduced|was run)"
    r"(?:is|was|were|has|had|a|an|the|it|they|comes?|goes|stands)\b"
    r"|\b[Ww]here (?:there|it|they|that|this|none|one|no)\b|\bcomes? in\b|\bjoins\b"
    r"|\b(?:is|are|was|were) told\b|\btells? (?:of|that|what|how)\b|\bat hand\b"
    r"|\b(?:line|row|cell|split|job|pair|column|page|set) "
    r"a (?:job|row|split|set|data set|cell|machine)\b"
    r"|\bone (?:\w+ )?a (?:pair|feature|row)\b|\bwhatever\b|\bkeeps? us\b|\buseful price\b"
    r"|\b(?:what|than|was) was asked\b|\brest (?:test|train)s?\b"
)


def text_of_page(path: Path) -> str:
    """Return a page without code."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"`[^`]*`", "", re.sub(r"```.*?```", "", text, flags=re.S))


def text_of_module(path: Path) -> str:
    """Return the docstrings, comments and strings of a module; strings hold its messages."""
    source = path.read_text(encoding="utf-8")
    strings = [
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return "\n".join(strings + comments)


def text_of_template(path: Path) -> str:
    """Return a template without the tags and styles around its words."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"<(style|script)\b.*?</\1>|\{#.*?#\}", "", text, flags=re.S)
    return re.sub(r"`[^`]*`|\{%.*?%\}|\{\{.*?\}\}", "", text, flags=re.S)


def text_of_yaml(path: Path) -> str:
    """Return a file of YAML without code in backticks."""
    return re.sub(r"`[^`]*`", "", path.read_text(encoding="utf-8"))


def texts(read: Callable[[Path], str], *patterns: str) -> dict[Path, str]:
    """Return the texts of the files of the repository that match some patterns."""
    return {path: read(path) for pattern in patterns for path in sorted(ROOT.glob(pattern))}


#: Pages with a template.
WRITTEN = ("geometry", "readings", "reference_text", "verdict_text")
MODULES = ("mmbench/**/*.py", "examples/*.py", "benchmarks/*.py", "results/pages/*.py")
TEMPLATES = ("mmbench/**/*.html", *(f"results/pages/{page}.md.jinja" for page in WRITTEN))
TEXTS = {
    "pages": lambda: {path: text_of_page(path) for path in PAGES},
    "modules": lambda: texts(text_of_module, *MODULES),
    "settings": lambda: texts(
        text_of_yaml, "configs/*.yaml", "mmbench/**/*.yaml", "results/pages/*.yaml"
    ),
    "templates": lambda: texts(text_of_template, *TEMPLATES),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_no_text_has_the_worst_habits(kind):
    found = [
        f"{path.relative_to(ROOT)}: {' '.join(text[max(0, m.start() - 30) : m.end() + 30].split())}"
        for path, text in TEXTS[kind]().items()
        for m in HABITS.finditer(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_have_one_title_and_no_level_is_skipped(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.M)]
    assert levels[:1] in ([], [1]) and levels.count(1) <= 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pictures_have_an_alternative_text(path):
    text = path.read_text(encoding="utf-8")
    assert all(len(alt.split()) >= 3 for alt in re.findall(r"!\[([^\]]*)\]", text))


def test_thumbnails_of_the_gallery_have_the_text_of_their_picture(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    thumbnails = importlib.import_module("thumbnails")
    (tmp_path / "gallery").mkdir()
    (tmp_path / "gallery" / "plot_a.rst").write_text(
        ".. image-sg:: /gallery/images/sphx_glr_plot_a_001.png\n   :alt: Time by rows\n"
    )
    content = ["  .. image:: /gallery/images/thumb/sphx_glr_plot_a_thumb.png\n    :alt:\n\n"]
    thumbnails.describe(SimpleNamespace(srcdir=tmp_path), "gallery/index", content)
    assert content[0].endswith("_thumb.png\n    :alt: Time by rows\n\n")


def test_vector_pictures_have_a_title():
    pictures = [
        *(ROOT / "results/reference").glob("*/*.svg"),
        *(ROOT / "docs/_static").glob("*.svg"),
    ]
    assert pictures
    assert not [path for path in pictures if "<title>" not in path.read_text(encoding="utf-8")]


def test_the_headings_of_docstrings_stand_on_lines_of_their_own():
    joined = []
    for path in sorted((ROOT / "mmbench").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                lines = (ast.get_docstring(node) or "").splitlines()
                joined += [(path.name, line) for line in lines if re.search(r"\w -{3,} \w", line)]
    assert not joined
