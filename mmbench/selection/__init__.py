"""Model selection: cross-validation in which grid points share Gram matrices and warm starts."""

from mmbench.selection.search import Selection, select

__all__ = ["Selection", "select"]
