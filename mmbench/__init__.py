"""Max-margin classifiers and the experiments that reproduce their papers."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mmbench.commands.audit import audit as audit
    from mmbench.commands.certify import certify as certify
    from mmbench.commands.cite import cite as cite
    from mmbench.commands.easy import easy as easy
    from mmbench.commands.merge import merge as merge
    from mmbench.commands.outputs import compare as compare
    from mmbench.commands.outputs import export as export
    from mmbench.commands.outputs import figure as figure
    from mmbench.commands.outputs import report as report
    from mmbench.commands.outputs import table as table
    from mmbench.commands.refit import refit as refit
    from mmbench.commands.run import run as run
    from mmbench.inspect.geometry import geometry as geometry
    from mmbench.machines import FSVM as FSVM
    from mmbench.machines import KLDA as KLDA
    from mmbench.machines import LDA as LDA
    from mmbench.machines import LDM as LDM
    from mmbench.machines import LSSVM as LSSVM
    from mmbench.machines import M4 as M4
    from mmbench.machines import MAMC as MAMC
    from mmbench.machines import MEMPM as MEMPM
    from mmbench.machines import MMRM as MMRM
    from mmbench.machines import MPM as MPM
    from mmbench.machines import MRSVM as MRSVM
    from mmbench.machines import RMM as RMM
    from mmbench.machines import SVM as SVM
    from mmbench.machines import RSVMMuPlus as RSVMMuPlus
    from mmbench.machines import RSVMPlus as RSVMPlus
    from mmbench.machines import SigmaSVM as SigmaSVM
    from mmbench.results import load as load

    results: ModuleType

#: Classes of ``from mmbench import *``; functions such as `run` would replace the module's own.
__all__ = ["FSVM", "KLDA", "LDA", "LDM", "LSSVM", "M4", "MAMC", "MEMPM", "MMRM", "MPM", "MRSVM"]
__all__ += ["RMM", "SVM", "RSVMMuPlus", "RSVMPlus", "SigmaSVM"]
__version__ = "1.0.0"

#: Module that defines each public function.
FUNCTIONS = {
    "run": "mmbench.commands.run",
    "easy": "mmbench.commands.easy",
    **dict.fromkeys(("table", "figure", "compare", "report", "export"), "mmbench.commands.outputs"),
    "load": "mmbench.results",
    "audit": "mmbench.commands.audit",
    "certify": "mmbench.commands.certify",
    "cite": "mmbench.commands.cite",
    "merge": "mmbench.commands.merge",
    "refit": "mmbench.commands.refit",
    "geometry": "mmbench.inspect.geometry",
}


if not TYPE_CHECKING:  # a type checker that sees `__getattr__` accepts any name

    def __getattr__(name: str) -> Any:
        """Import a function, a machine or the module `results` at its first use."""
        if name == "results":
            return import_module("mmbench.results")
        if name in FUNCTIONS:
            return getattr(import_module(FUNCTIONS[name]), name)
        # not `from mmbench import machines`, which would call `__getattr__` in an endless recursion
        machines = import_module("mmbench.machines")
        if name in machines.__all__:
            return getattr(machines, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names for tab completion, including machines that are not imported yet."""
    return ["__version__", "results", *FUNCTIONS, *import_module("mmbench.machines").__all__]
