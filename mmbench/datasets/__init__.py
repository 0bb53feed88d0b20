"""Data sets: cards, the local store, sources, user data, test splits and preprocessing."""

from mmbench.datasets.card import Card, card_names, load_card
from mmbench.datasets.classes import check_classes, keep_classes
from mmbench.datasets.dataset import Dataset
from mmbench.datasets.load import dataset_hash, load_dataset
from mmbench.datasets.preprocess.prepare import prepare
from mmbench.datasets.preprocess.steps import check_steps, make_preprocess
from mmbench.datasets.splits import (
    Split,
    check_rule,
    count_splits,
    make_splits,
    split_at,
    split_rules,
    split_slots,
)
from mmbench.datasets.user import UserData

__all__ = [
    "Card",
    "Dataset",
    "Split",
    "UserData",
    "card_names",
    "check_classes",
    "check_rule",
    "check_steps",
    "count_splits",
    "dataset_hash",
    "keep_classes",
    "load_card",
    "load_dataset",
    "make_preprocess",
    "make_splits",
    "prepare",
    "split_at",
    "split_rules",
    "split_slots",
]
