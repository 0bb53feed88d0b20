"""Max-margin classifiers and the experiments that reproduce their papers."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbench.machines import (
        FSVM,
        KLDA,
        LDA,
        LSSVM,
        M4,
        MAMC,
        MEMPM,
        MMRM,
        MPM,
        MRSVM,
        RMM,
        SVM,
        RSVMMuPlus,
        RSVMPlus,
        SigmaSVM,
    )

    results: ModuleType

__version__ = "0.1.0"

__all__ = [
    "FSVM",
    "KLDA",
    "LDA",
    "LSSVM",
    "M4",
    "MAMC",
    "MEMPM",
    "MMRM",
    "MPM",
    "MRSVM",
    "RMM",
    "SVM",
    "RSVMMuPlus",
    "RSVMPlus",
    "SigmaSVM",
]

#: Module that defines each function of the package, by the name of the function.
FUNCTIONS = {
    "run": "mmbench.commands.run",
    "easy": "mmbench.commands.easy",
    "table": "mmbench.commands.outputs",
    "figure": "mmbench.commands.outputs",
    "report": "mmbench.commands.outputs",
    "export": "mmbench.commands.outputs",
    "load": "mmbench.results",
    "certify": "mmbench.commands.certify",
    "geometry": "mmbench.kernels.geometry",
}


def __getattr__(name: str) -> Any:
    """Import a function, a machine or the module `results` at its first use."""
    if name == "results":
        return import_module("mmbench.results")
    if name in FUNCTIONS:
        return getattr(import_module(FUNCTIONS[name]), name)
    machines = import_module("mmbench.machines")  # `from mmbench import` would recurse
    if name in machines.__all__:
        return getattr(machines, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names for completion, including machines that are not imported yet."""
    return ["__version__", "results", *FUNCTIONS, *import_module("mmbench.machines").__all__]
