"""Max-margin classifiers and the experiments that reproduce their papers."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return a machine by the name of its class, or `results`, imported when it is asked for."""
    if name == "results":
        return import_module("mmbench.results")
    machines = import_module("mmbench.machines")  # `from mmbench import` would ask here again
    if name in machines.__all__:
        return getattr(machines, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return what completion offers: machines too, which are not imported yet."""
    return ["__version__", "results", *import_module("mmbench.machines").__all__]
