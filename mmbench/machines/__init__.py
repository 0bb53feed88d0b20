"""The classifiers ("machines") as scikit-learn estimators, with one file or folder per classifier.

A machine's module is imported at its first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mmbench.errors import UserError, did_you_mean
from mmbench.plugins import imported, with_plugins

if TYPE_CHECKING:
    from mmbench.machines.base.estimator import PairwiseClassifier
    from mmbench.machines.fsvm.fsvm import FSVM as FSVM
    from mmbench.machines.klda import KLDA as KLDA
    from mmbench.machines.ldm import LDM as LDM
    from mmbench.machines.lssvm import LSSVM as LSSVM
    from mmbench.machines.mamc import MAMC as MAMC
    from mmbench.machines.minimax.lda import LDA as LDA
    from mmbench.machines.minimax.m4 import M4 as M4
    from mmbench.machines.minimax.mempm import MEMPM as MEMPM
    from mmbench.machines.minimax.mpm import MPM as MPM
    from mmbench.machines.mmrm.mmrm import MMRM as MMRM
    from mmbench.machines.radius.mrsvm import MRSVM as MRSVM
    from mmbench.machines.radius.rsvm import RSVMMuPlus as RSVMMuPlus
    from mmbench.machines.radius.rsvm import RSVMPlus as RSVMPlus
    from mmbench.machines.rmm import RMM as RMM
    from mmbench.machines.sigma_svm import SigmaSVM as SigmaSVM
    from mmbench.machines.svm import SVM as SVM

#: Class by name in YAML files.
MACHINES = {
    "svm": "mmbench.machines.svm:SVM",
    "rmm": "mmbench.machines.rmm:RMM",
    "sigma_svm": "mmbench.machines.sigma_svm:SigmaSVM",
    "klda": "mmbench.machines.klda:KLDA",
    "mmrm": "mmbench.machines.mmrm.mmrm:MMRM",
    "mamc": "mmbench.machines.mamc:MAMC",
    "ldm": "mmbench.machines.ldm:LDM",
    "lssvm": "mmbench.machines.lssvm:LSSVM",
    "lda": "mmbench.machines.minimax.lda:LDA",
    "mpm": "mmbench.machines.minimax.mpm:MPM",
    "mempm": "mmbench.machines.minimax.mempm:MEMPM",
    "m4": "mmbench.machines.minimax.m4:M4",
    "fsvm": "mmbench.machines.fsvm.fsvm:FSVM",
    "rsvm_plus": "mmbench.machines.radius.rsvm:RSVMPlus",
    "rsvm_mu_plus": "mmbench.machines.radius.rsvm:RSVMMuPlus",
    "mrsvm": "mmbench.machines.radius.mrsvm:MRSVM",
}
# machines that other installed packages define are added to `MACHINES`
MACHINES = with_plugins("machines", MACHINES)

#: Names of machines in tables. The default name in tables is the machine's name in capital letters.
LABELS = {
    "sigma_svm": "Σ-SVM",
    "lssvm": "LS-SVM",
    "fsvm": "F-SVM",
    "rsvm_plus": "R-SVM+",
    "rsvm_mu_plus": "R-SVMμ+",
    "mrsvm": "MR-SVM",
}


@dataclass(frozen=True)
class Alias:
    """A name for a machine with fixed parameter values.

    Parameters
    ----------
    machine : str
        Name of a machine, or path ``module:Class`` of a class.
    params : mapping
        Fixed parameter values; the configuration of an experiment cannot override them.
    label : str
        Name in tables.
    stages : tuple of tuples of str
        Groups of hyper-parameters, in the order of their selection; see `mmbench.selection.select`.
    version : int
        Version number of the alias, added to the machine's `version` in the keys of stored results.
    """

    machine: str
    params: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    stages: tuple[tuple[str, ...], ...] = ()
    version: int = 0


_OPTIMIZED = {"bias": "optimized"}
# in figure 2 of the RMM paper, training starts from the SVM's solution (warm) or from zero (cold)
_WARM, _COLD = {"timing": "warm"}, {"timing": "cold"}

ALIASES = {
    "rmm_b1": Alias("rmm", {"B_fraction": 1 / 2, **_WARM}, "RMM B₁", version=1),
    "rmm_b1_cold": Alias("rmm", {"B_fraction": 1 / 2, **_COLD}, "RMM B₁, cold", version=1),
    "rmm_b2": Alias("rmm", {"B_fraction": 1 / 4, **_WARM}, "RMM B₂", version=1),
    "rmm_b2_cold": Alias("rmm", {"B_fraction": 1 / 4, **_COLD}, "RMM B₂, cold", version=1),
    "rmm_b3": Alias("rmm", {"B_fraction": 1 / 10, **_WARM}, "RMM B₃", version=1),
    "rmm_b3_cold": Alias("rmm", {"B_fraction": 1 / 10, **_COLD}, "RMM B₃, cold", version=1),
    "rmm_c_equals_d": Alias("rmm", {"form": "relaxed"}, "RMM (C=D)"),
    "mamc_b": Alias("mamc", _OPTIMIZED, "MAMC_b"),
    # MAMC_bs selects gamma with Cm = 1, then Cm; MAMC_bsg selects gamma and Cm jointly
    "mamc_bs": Alias("mamc", _OPTIMIZED, "MAMC_bs", stages=(("gamma",), ("Cm",))),
    "mamc_bsg": Alias("mamc", _OPTIMIZED, "MAMC_bsg"),
    "emamc": Alias("lssvm", {"reading": "empirical"}, "EMAMC"),
    "m4_nu70": Alias("m4", {"nu": 0.7}, "M4, ν = 0.7"),
    "m4_nu80": Alias("m4", {"nu": 0.8}, "M4, ν = 0.8"),
    "m4_nu90": Alias("m4", {"nu": 0.9}, "M4, ν = 0.9"),
    "m4_nu95": Alias("m4", {"nu": 0.95}, "M4, ν = 0.95"),
    "m4_nu100": Alias("m4", {"nu": 1.0}, "M4, ν = 1"),
    "fsvm_semi": Alias("fsvm", {"variant": "semi"}, "F-SVM, 0 rounds"),
    "fsvm_pg": Alias("fsvm", {"variant": "pg"}, "F-SVM pg"),
    "fsvm_eps": Alias("fsvm", {"variant": "eps", "rounds": 300, "decrease": 1e-7}, "F-SVM eps"),
    "fsvm_opt": Alias("fsvm", {"variant": "opt"}, "F-SVM, optimum"),
    "fsvm_1": Alias("fsvm", {"rounds": 1, "decrease": 0.0}, "F-SVM, 1 round"),
    "fsvm_2": Alias("fsvm", {"rounds": 2, "decrease": 0.0}, "F-SVM, 2 rounds"),
    "fsvm_5": Alias("fsvm", {"rounds": 5, "decrease": 0.0}, "F-SVM, 5 rounds"),
    "fsvm_15": Alias("fsvm", {"rounds": 15, "decrease": 0.0}, "F-SVM, 15 rounds"),
}

__all__ = ["Alias", "alias_of", "machine_class", "make_machine"]
__all__ += [path.rpartition(":")[2] for path in MACHINES.values()]


def alias_of(name: str) -> Alias:
    """Return the alias with this name.

    For the name of a machine, an alias without fixed parameters is created.

    Examples
    --------
    >>> alias_of("m4_nu80").machine, alias_of("m4_nu80").params
    ('m4', {'nu': 0.8})
    >>> alias_of("m4").label
    'M4'
    """
    return ALIASES.get(name) or Alias(name, label=LABELS.get(name, name.upper()))


def machine_class(name: str) -> type[PairwiseClassifier]:
    """Return the class for the name of a machine or an alias, or for a path ``module:Class``.

    A classifier of another package, for example of scikit-learn, is wrapped by an adapter class.

    Raises
    ------
    UserError
        If no machine or alias has this name. The message suggests a similar name, or lists all
        names if no name is similar.
    """
    machine = alias_of(name).machine
    if machine in MACHINES:
        module, _, attribute = MACHINES[machine].partition(":")
        return getattr(import_module(module), attribute)
    if ":" not in machine:
        raise UserError(f"unknown machine {name!r}{did_you_mean(name, (*MACHINES, *ALIASES))}")
    from mmbench.machines.base.estimator import PairwiseClassifier  # takes seconds to import
    from mmbench.machines.base.foreign import foreign_class

    found = imported(machine)
    ours = isinstance(found, type) and issubclass(found, PairwiseClassifier)
    return found if ours else foreign_class(machine)  # type: ignore[return-value]


def make_machine(name: str, **params: Any) -> PairwiseClassifier:
    """Return an unfitted estimator, given the name of a machine or an alias.

    Parameters
    ----------
    name : str
        Name of a machine or an alias, or a path ``module:Class``.
    **params
        Parameters of the estimator. Fixed parameter values of an alias replace values in `params`.

    Examples
    --------
    >>> make_machine("emamc", C=10.0).reading
    'empirical'
    """
    return machine_class(name)(**{**params, **alias_of(name).params})


def __getattr__(attribute: str) -> type[PairwiseClassifier]:
    for name, path in MACHINES.items():
        if path.endswith(f":{attribute}"):
            return machine_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
