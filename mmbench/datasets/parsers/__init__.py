"""Parsers that convert the files of a data set to arrays."""

from collections.abc import Callable

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
from mmbench.datasets.parsers.images import lfw_pairs, lfw_people
from mmbench.datasets.parsers.text_files import arff, delimited, libsvm, splice

OF_ARRAYS = (fsvm, ida, ida_mat, ida_standardised, idx, packed, train_test_npz)
PARSE_FUNCTIONS = (*OF_ARRAYS, arff, delimited, libsvm, splice, lfw_pairs, lfw_people)
#: Parsers by name. The arguments of a parser are the paths of the files and the options in the card
#: (the YAML file that describes the data set). A parser raises ValueError if a file is invalid.
PARSERS: dict[str, Callable[..., Parsed]] = {parser.__name__: parser for parser in PARSE_FUNCTIONS}
