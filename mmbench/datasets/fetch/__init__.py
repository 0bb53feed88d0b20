"""Search for the files of a data set in the local store, in a mirror and in its sources."""

from mmbench.datasets.fetch.locate import (
    Places,
    Search,
    SourceFiles,
    Store,
    copy_to_store,
    find,
    recipe_hash,
)

__all__ = ["Places", "Search", "SourceFiles", "Store", "copy_to_store", "find", "recipe_hash"]
