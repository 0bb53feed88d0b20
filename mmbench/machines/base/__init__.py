"""Base classes of the machines: parameters, one-vs-one training, certificates, search spaces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmbench.errors import Status
from mmbench.memory import TrainingSize

if TYPE_CHECKING:
    from mmbench.machines.base.estimator import PairwiseClassifier as PairwiseClassifier
    from mmbench.machines.base.estimator import WeightedClassifier as WeightedClassifier
    from mmbench.machines.base.estimator import row_weights as row_weights
    from mmbench.machines.base.parameters import Param as Param
    from mmbench.machines.base.parameters import choice as choice
    from mmbench.machines.base.parameters import class_weight as class_weight
    from mmbench.machines.base.parameters import kernel_parameter as kernel_parameter
    from mmbench.machines.base.parameters import parameter as parameter
    from mmbench.machines.base.parameters import positive as positive
    from mmbench.machines.base.problem import BinaryModel as BinaryModel
    from mmbench.machines.base.problem import BinaryProblem as BinaryProblem
    from mmbench.machines.base.problem import Fit as Fit
    from mmbench.machines.base.problem import judged as judged
    from mmbench.machines.base.search_space import SearchSpace as SearchSpace

#: Names exported by each module of this package.
_NAMES = {
    "estimator": "PairwiseClassifier WeightedClassifier row_weights",
    "parameters": "Param choice class_weight kernel_parameter parameter positive",
    "problem": "BinaryModel BinaryProblem Fit judged",
    "search_space": "SearchSpace",
}

__all__ = ["Status", "TrainingSize"]
__all__ += [name for names in _NAMES.values() for name in names.split()]


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
