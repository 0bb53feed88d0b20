"""Parsers: files in, arrays out. Each is one function; adding one adds a line to the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from mmbench.datasets.dataset import Parsed

#: Parser name -> module that holds a function of that name.
PARSERS = {
    "arff": "arff",
    "delimited": "delimited",
    "fsvm": "fsvm",
    "ida": "ida",
    "ida_mat": "ida",
    "ida_standardised": "ida",
    "idx": "idx",
    "lfw_pairs": "lfw",
    "lfw_people": "lfw",
    "libsvm": "libsvm",
    "splice": "splice",
    "train_test_npz": "npz",
}


def parse(name: str, paths: Sequence[Path], options: dict[str, Any]) -> Parsed:
    """Parse files with the named parser.

    Raises
    ------
    ValueError
        If the files do not have the parser's format; the message is one line.
    """
    module = import_module(f"mmbench.datasets.parsers.{PARSERS[name]}")
    function: Callable[..., Parsed] = getattr(module, name)
    return function(list(paths), **options)
