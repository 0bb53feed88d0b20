"""Base classes of the machines: parameters, one-vs-one, weights, certificates, search spaces.

The author of a machine imports all names from this package; its modules are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmbench.errors import Status

if TYPE_CHECKING:
    from mmbench.machines.base.estimator import (
        PairwiseClassifier,
        WeightedClassifier,
        class_weight,
        kernel_parameter,
        row_weights,
    )
    from mmbench.machines.base.parameters import (
        Param,
        choice,
        parameter,
        positive,
    )
    from mmbench.machines.base.problem import (
        BinaryModel,
        BinaryProblem,
        Fit,
        judged,
    )
    from mmbench.machines.base.search_space import (
        MemoryNeeds,
        SearchSpace,
    )

#: Exported names, by the module that defines them.
_NAMES = {
    "estimator": "PairwiseClassifier WeightedClassifier class_weight kernel_parameter row_weights",
    "parameters": "Param choice parameter positive",
    "problem": "BinaryModel BinaryProblem Fit judged",
    "search_space": "MemoryNeeds SearchSpace",
}

__all__ = [
    "BinaryModel",
    "BinaryProblem",
    "Fit",
    "MemoryNeeds",
    "PairwiseClassifier",
    "Param",
    "SearchSpace",
    "Status",
    "WeightedClassifier",
    "choice",
    "class_weight",
    "judged",
    "kernel_parameter",
    "parameter",
    "positive",
    "row_weights",
]


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
