"""Data sets: descriptions (cards), downloads, users' tables, splits and preprocessing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbench.datasets.card import Card as Card
    from mmbench.datasets.card import load_card as load_card
    from mmbench.datasets.card_files import card_names as card_names
    from mmbench.datasets.dataset import Dataset as Dataset
    from mmbench.datasets.dataset import DatasetRef as DatasetRef
    from mmbench.datasets.dataset import check_classes as check_classes
    from mmbench.datasets.dataset import keep_classes as keep_classes
    from mmbench.datasets.dataset import too_few_rows as too_few_rows
    from mmbench.datasets.load import dataset_hash as dataset_hash
    from mmbench.datasets.load import load_dataset as load_dataset
    from mmbench.datasets.partitions import RULES as RULES
    from mmbench.datasets.partitions import Split as Split
    from mmbench.datasets.partitions import parse_rule as parse_rule
    from mmbench.datasets.partitions import split_at as split_at
    from mmbench.datasets.partitions import split_rules as split_rules
    from mmbench.datasets.partitions import split_slots as split_slots
    from mmbench.datasets.partitions import training_subset as training_subset
    from mmbench.datasets.preprocess import check_steps as check_steps
    from mmbench.datasets.preprocess import make_preprocess as make_preprocess
    from mmbench.datasets.preprocess import parse_steps as parse_steps
    from mmbench.datasets.preprocess import use_labels as use_labels

#: Public names that each module of `mmbench.datasets` defines.
EXPORTS = {
    "card": ("Card", "load_card"),
    "card_files": ("card_names",),
    "dataset": ("Dataset", "DatasetRef", "check_classes", "keep_classes", "too_few_rows"),
    "load": ("dataset_hash", "load_dataset"),
    "preprocess": ("check_steps", "make_preprocess", "parse_steps", "use_labels"),
    "partitions": (
        *("RULES", "Split", "parse_rule", "split_at", "split_rules", "split_slots"),
        "training_subset",
    ),
}
__all__ = [name for names in EXPORTS.values() for name in names]


def __getattr__(name: str) -> Any:
    """Import the module that defines `name`, and return the object of this name."""
    for module, names in EXPORTS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
