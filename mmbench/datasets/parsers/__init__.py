"""Parsers that convert files to arrays; `PARSERS` lists all parser functions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.parsers.arrays import (
    fsvm,
    ida,
    ida_mat,
    ida_standardised,
    idx,
    packed,
    train_test_npz,
)
from mmbench.datasets.parsers.frames import arff
from mmbench.datasets.parsers.images import lfw_pairs, lfw_people
from mmbench.datasets.parsers.text import delimited, libsvm, splice

OF_ARRAYS = (fsvm, ida, ida_mat, ida_standardised, idx, packed, train_test_npz)
OF_IMAGES = (lfw_pairs, lfw_people)
OF_TEXT = (arff, delimited, libsvm, splice)
#: Parsers by name.
PARSERS: dict[str, Callable[..., Parsed]] = {
    function.__name__: function for function in (*OF_ARRAYS, *OF_IMAGES, *OF_TEXT)
}


def parse(name: str, paths: Sequence[Path], options: dict[str, Any]) -> Parsed:
    """Parse files with the parser of this name; raise ValueError if the files are not valid."""
    return PARSERS[name](list(paths), **options)
