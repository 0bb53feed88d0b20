"""Search for the files of a data set in the local store, in a mirror and in its sources."""

from mmbench.datasets.fetch.locate import Places as Places
from mmbench.datasets.fetch.locate import Search as Search
from mmbench.datasets.fetch.locate import SourceFiles as SourceFiles
from mmbench.datasets.fetch.locate import copy_to_store as copy_to_store
from mmbench.datasets.fetch.locate import find as find
from mmbench.datasets.fetch.locate import recipe_hash as recipe_hash
from mmbench.datasets.fetch.sources import NoAnswer as NoAnswer
from mmbench.datasets.fetch.sources import NotAvailable as NotAvailable
