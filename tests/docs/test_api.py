"""Every object of the API reference exists, also where Sphinx is not installed to say so."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "api.rst").read_text(encoding="utf-8")


def names():
    """Yield the names in the lists of the page, each below the current module."""
    module = ""
    for line in PAGE.splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   ([A-Za-z][\w.]*)$", line):
            yield f"{module}.{found[1]}"


def test_the_objects_of_the_api_reference_exist():
    assert all(resolve_name(name) is not None for name in names())
