"""Model selection: cross-validation in which grid points share Gram matrices and warm starts."""

from mmbench.machines.base.search_space import SelectRef
from mmbench.selection.search import Selection, select

__all__ = ["SelectRef", "Selection", "select"]
