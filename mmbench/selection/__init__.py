"""Model selection: cross-validation in which grid points share Gram matrices and warm starts."""

from typing import TYPE_CHECKING, Any

from mmbench.machines.base.search_space import SelectRef

if TYPE_CHECKING:
    from mmbench.selection.search import Selection, select

__all__ = ["SelectRef", "Selection", "select"]


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> Any:
        """Import the search at its first use, since tables only need the metrics."""
        if name in ("Selection", "select"):
            from mmbench.selection import search

            return getattr(search, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
