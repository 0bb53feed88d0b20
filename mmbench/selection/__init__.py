"""Model selection: cross-validation that shares Gram matrices and warm starts over a grid."""

from mmbench.selection.search import Selection, select

__all__ = ["Selection", "select"]
