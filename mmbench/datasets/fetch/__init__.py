"""Where the files of a data set come from: the local store, a mirror, or its sources."""

from mmbench.datasets.fetch.files import SourceFiles, recipe_hash
from mmbench.datasets.fetch.locate import Places, Search, copy_to_store, find
from mmbench.datasets.fetch.store import Store

__all__ = ["Places", "Search", "SourceFiles", "Store", "copy_to_store", "find", "recipe_hash"]
