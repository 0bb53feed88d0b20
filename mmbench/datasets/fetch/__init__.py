"""Where the files of a data set come from: the local store, a mirror, or its sources."""

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
