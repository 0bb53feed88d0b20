"""The directive ``{commands}``, which writes one section per command of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from typer.main import get_command

from mmbench.cli.app import app


def commands(group: Any, path: str = "mmbench") -> Iterator[tuple[str, Any]]:
    """Yield each command of a group and of its subgroups, with the words that call the command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def lines_of(words: str, command: Any) -> Iterator[str]:
    """Yield the Markdown lines of a command: help text, usage, arguments and options."""
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and not p.hidden]
    forms = [_metavar(argument) for argument in arguments]
    needed = [argument.required for argument in arguments]
    called = [words, *(m if need else f"[{m}]" for m, need in zip(forms, needed, strict=True))]
    yield from (f"## `{words}`", "", _marked(command.help.strip()), "")
    yield from ("```text", " ".join(called) + (" [OPTIONS]" if options else ""), "```", "")
    if not options and not arguments:
        return
    yield from ("| Argument or option | Meaning |", "| --- | --- |")
    for form, argument in zip(forms, arguments, strict=True):
        yield _row([form], "", argument)
    for option in options:
        value = "" if getattr(option, "is_flag", False) else f" {option.metavar or ''}".rstrip()
        yield _row(option.opts, value, option)
    yield ""


def _row(names: list[str], value: str, param: Any) -> str:
    """Return a table row: names with the form of the value, and meaning with the default."""
    first = ", ".join(f"`{name}{value}`".replace("|", "\\|") for name in names)
    meaning, default = param.help or "", param.default
    if default not in (None, False, ()) and not callable(default) and "[default" not in meaning:
        shown = " ".join(map(str, default)) if isinstance(default, list | tuple) else default
        meaning += f" [default: {shown}]"
    return f"| {first} | {_marked(meaning.replace('|', '/'))} |"


def _marked(text: str) -> str:
    """Mark options as code; otherwise two hyphens would become a dash."""
    return re.sub(r"(?<!\w)(--[\w-]+)", r"`\1`", text)


def _metavar(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return f"{name}..." if argument.nargs != 1 and not name.endswith("...") else name


class Commands(SphinxDirective):
    """The sections of all commands."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        node = nodes.section()
        node.document = self.state.document
        lines = [
            line
            for words, command in commands(get_command(app))
            for line in lines_of(words, command)
        ]
        self.state.nested_parse(StringList(lines, source="commands"), 0, node, match_titles=True)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
