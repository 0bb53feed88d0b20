"""Data sets: cards, the local store, sources, user data, test splits and preprocessing.

pandas, scikit-learn, scikit-image, pyarrow and requests are imported inside functions: each import
can take seconds, and commands such as ``mmbench list`` need none of these packages.
"""

from mmbench.datasets.card import Card, card_names, load_card
from mmbench.datasets.dataset import Dataset, DatasetRef, check_classes, keep_classes, too_few_rows
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.preprocess import check_steps, make_preprocess, parse_steps
from mmbench.datasets.splits import (
    RULES,
    Split,
    SplitRule,
    parse_rule,
    split_at,
    split_rules,
    split_slots,
)
from mmbench.datasets.user import FileOptions, UserTable

__all__ = [
    "RULES",
    "Card",
    "Dataset",
    "DatasetRef",
    "FileOptions",
    "Split",
    "SplitRule",
    "UserTable",
    "card_names",
    "check_classes",
    "check_steps",
    "dataset_hash",
    "keep_classes",
    "load_card",
    "load_dataset",
    "make_preprocess",
    "parse_rule",
    "parse_steps",
    "split_at",
    "split_rules",
    "split_slots",
    "too_few_rows",
]
