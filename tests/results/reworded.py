"""Copy the repository with other words, and write what its tables, figures and pages show.

    python reworded.py RUN ANOTHER_RUN OUTPUT [REFERENCE ...]

writes one text per output as JSON; without names of references, all of them and the pages about
them. In a copy by `reworded_copy`, each letter of a sentence, label or heading is another letter,
so that whatever reads a printed text finds another text.
"""

from __future__ import annotations

import ast
import codecs
import json
import re
import shutil
import sys
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

#: What is reworded: the rooms of results and tables, and the pages that are written from them.
PYTHON = ("mmbench/tables/**/*.py", "mmbench/results/*.py", "results/pages/re*.py")
PYTHON += ("results/pages/verdict_text.py", "docs/_ext/measured.py", "docs/_ext/published.py")
TEMPLATES = ("results/pages/*.jinja", "mmbench/tables/report/templates/*.html")
YAML = ("mmbench/tables/layouts/layouts.yaml", "mmbench/tables/figures/figures.yaml")
#: Functions whose text arguments are headings, even of a single word.
HEADINGS = {"words", "numbers", "columns_of", "Grid", "Text", "Note"}
#: Arguments of matplotlib that are names of places, not words.
PLACES = {"loc", "textcoords"}
#: Parts of texts that are code: names in braces, and tags of jinja and HTML.
CODE = re.compile(r"(\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|\{[^{}]*\}|<[^>]*(?:>|$)|&\w+;)", re.DOTALL)
PROSE = re.compile(r"[^\W\d_]{2,}[,:;.]? |[ (][^\W\d_]{2,}")


def rot(text: str) -> str:
    """Return a text with other letters, and with the same code."""
    parts = CODE.split(text)
    parts[::2] = [codecs.encode(part, "rot13") for part in parts[::2]]
    return "".join(parts)


class Reworded(ast.NodeTransformer):
    """Changes the letters of sentences and headings in a module."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and PROSE.search(node.value):
            node.value = rot(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        constants = [p for p in node.values if isinstance(p, ast.Constant)]
        if PROSE.search("0".join(p.value for p in constants)):
            for part in constants:
                part.value = codecs.encode(part.value, "rot13")
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        for part in node.args if getattr(node.func, "id", "") in HEADINGS else ():
            if isinstance(part, ast.Constant) and not PROSE.search(str(part.value)):
                part.value = rot(part.value) if isinstance(part.value, str) else part.value
        places = [k for k in node.keywords if k.arg in PLACES]
        node.keywords = [k for k in node.keywords if k.arg not in PLACES]
        self.generic_visit(node)
        node.keywords += places
        return node


def reworded_copy(root: Path, target: Path) -> None:
    """Copy the package and the pages of a repository, with other words."""
    for folder in ("mmbench", "results/pages", "docs/_ext"):
        shutil.copytree(root / folder, target / folder, ignore=shutil.ignore_patterns("__pyc*"))
    for folder in ("configs", "results/reference"):
        (target / folder).symlink_to(root / folder)
    for path in (p for glob in PYTHON for p in target.glob(glob)):
        tree = Reworded().visit(ast.parse(path.read_text("utf-8")))
        path.write_text(ast.unparse(ast.fix_missing_locations(tree)), "utf-8")
    for path in (p for glob in TEMPLATES for p in target.glob(glob)):
        path.write_text(rot(path.read_text("utf-8")), "utf-8")
    for path in map(target.joinpath, YAML):
        keys = r"(?m)^( +(?:title|about|axis): | {4,}- |      )([^\s\d].*)$"
        text = re.sub(keys, lambda found: found[1] + rot(found[2]), path.read_text("utf-8"))
        path.write_text(text, "utf-8")
    (target / "reworded").touch()


def points_of(canvas: Any) -> str:
    """Return the points and the axes of a figure."""
    found: list[Any] = []
    for axes in canvas.axes:
        found += [line.get_xydata().round(9).tolist() for line in axes.lines]
        found += [c.get_offsets().round(9).tolist() for c in axes.collections]
        found += [[axes.get_xscale(), *axes.get_xlim(), *axes.get_ylim()]]
    return json.dumps(found)


def outputs(run: Path, again: Path, names: list[str], folder: Path) -> dict[str, str]:
    """Return what tables, figures, reports, files and pages show."""
    from matplotlib.figure import Figure

    import mmbench
    from mmbench.errors import UserError
    from mmbench.jobs.planned import Plan
    from mmbench.resources import REFERENCE
    from mmbench.results.folder import FACTS, read_reference, read_results
    from mmbench.tables.build import draw_tables
    from mmbench.tables.figures import FIGURES, draw_figure, find_figure

    if Path("reworded").exists():
        label = Plan.label
        Plan.label = lambda self, machine: rot(label(self, machine))  # type: ignore[method-assign]
    found, drawn, save = dict[str, str](), list[str](), Figure.savefig

    def saved(canvas: Figure, *args: Any, **options: Any) -> None:
        drawn.append(points_of(canvas))
        save(canvas, *args, **options)

    Figure.savefig = saved  # type: ignore[method-assign]
    every = sorted(path.parent.name for path in REFERENCE.glob(f"*/{FACTS}"))
    references = [read_reference(REFERENCE / name) for name in names or every]
    for one in (*references, *read_results([run])):
        for fmt in ("markdown", "latex", "csv"):
            found[f"{one.name} {fmt}"] = draw_tables([one], fmt)
        small = not one.sized and len(one.splits) < 1000
        for layout in ("comparison", "machines") if small else ():
            found[f"{one.name} {layout}"] = draw_tables([one], layout=layout)
        for name in FIGURES if small or one.sized else ():
            figure = find_figure(name)
            known = figure.machine in (None, *one.configured)
            if known and (figure.from_table or (one.has_records and name != "mmrm_fig2")):
                with suppress(UserError):
                    numbers = draw_figure(name, one, folder / f"{name}.svg")
                    found[f"{one.name} {name}"] = numbers + drawn[-1]
    mmbench.report([run, again, REFERENCE / "mmrm_table2"], folder / "report")
    for page in (folder / "report").rglob("*.html"):
        text = re.sub(r"\d{4}-\d\d-\d\d.*", "", page.read_text("utf-8"))
        found[f"report {page.relative_to(folder)}"] = text.replace(str(Path.cwd()), "")
    (folder / "export").mkdir()
    mmbench.export(run, output=folder / "export")
    files = (f for f in (folder / "export").rglob("*") if f.suffix in (".csv", ".json"))
    found |= {f"export {file.name}": file.read_text("utf-8") for file in files}
    return found if names else found | pages()


def pages() -> dict[str, str]:
    """Return the pages about the references."""
    from results.pages import readings_page, reference_text, verdict_text

    sys.path.append("docs/_ext")
    import measured

    found = {p.__name__: p.page() for p in (readings_page, reference_text, verdict_text)}
    found["measured"] = json.dumps(list(measured.lines_of({"svm", "m4", "rmm", "mamc"})))
    (table,) = measured.tables_of(measured.reference("rmm_table1_usps"))
    found["folded"] = measured.to_markdown(table, partial(measured.folded, table))
    return found


if __name__ == "__main__":
    sys.path.insert(0, ".")
    run, again, output, *names = sys.argv[1:]
    with tempfile.TemporaryDirectory() as made:
        texts = outputs(Path(run), Path(again), names, Path(made))
    Path(output).write_text(json.dumps(texts), "utf-8")
