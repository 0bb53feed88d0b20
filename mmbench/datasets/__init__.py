"""Data sets: descriptions (cards), downloads, users' tables, splits and preprocessing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbench.datasets.card import Card as Card
    from mmbench.datasets.card import load_card as load_card
    from mmbench.datasets.card_files import card_names as card_names
    from mmbench.datasets.dataset import Dataset as Dataset
    from mmbench.datasets.load import load_dataset as load_dataset

#: Module of each public name. They are imported at their first use.
PUBLIC = {
    "Card": "card",
    "load_card": "card",
    "card_names": "card_files",
    "Dataset": "dataset",
    "load_dataset": "load",
}
__all__ = list(PUBLIC)


def __getattr__(name: str) -> Any:
    """Import the module that defines `name`, and return the object of this name."""
    if name in PUBLIC:
        return getattr(import_module(f"{__name__}.{PUBLIC[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
