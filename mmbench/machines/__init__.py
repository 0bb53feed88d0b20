"""The classifiers, one file each, as scikit-learn estimators.

A machine registers itself by one line in `MACHINES`: the name used in YAML files and tables, and
where its class lives. Classes are imported when first asked for, so listing names costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mmbench.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from mmbench.machines.base import PairwiseClassifier

MACHINES = {
    "svm": "mmbench.machines.svm:SVM",
    "rmm": "mmbench.machines.rmm.rmm:RMM",
    "rmm_b1": "mmbench.machines.rmm.timed:RMMb1",
    "rmm_b1_cold": "mmbench.machines.rmm.timed:RMMb1Cold",
    "rmm_b2": "mmbench.machines.rmm.timed:RMMb2",
    "rmm_b2_cold": "mmbench.machines.rmm.timed:RMMb2Cold",
    "rmm_b3": "mmbench.machines.rmm.timed:RMMb3",
    "rmm_b3_cold": "mmbench.machines.rmm.timed:RMMb3Cold",
    "rmm_c_equals_d": "mmbench.machines.rmm.rmm:RMMCEqualsD",
    "sigma_svm": "mmbench.machines.sigma_svm.sigma_svm:SigmaSVM",
    "klda": "mmbench.machines.klda:KLDA",
    "mmrm": "mmbench.machines.mmrm.mmrm:MMRM",
    "mamc": "mmbench.machines.mamc:MAMC",
    "mamc_b": "mmbench.machines.mamc:MAMCb",
    "mamc_bs": "mmbench.machines.mamc:MAMCbs",
    "mamc_bsg": "mmbench.machines.mamc:MAMCbsg",
    "emamc": "mmbench.machines.lssvm:EMAMC",
    "lssvm": "mmbench.machines.lssvm:LSSVM",
    "lda": "mmbench.machines.minimax.lda:LDA",
    "mpm": "mmbench.machines.minimax.mpm:MPM",
    "mempm": "mmbench.machines.minimax.mempm:MEMPM",
    "m4": "mmbench.machines.minimax.m4:M4",
    "m4_nu70": "mmbench.machines.minimax.m4:M4nu70",
    "m4_nu80": "mmbench.machines.minimax.m4:M4nu80",
    "m4_nu90": "mmbench.machines.minimax.m4:M4nu90",
    "m4_nu95": "mmbench.machines.minimax.m4:M4nu95",
    "m4_nu100": "mmbench.machines.minimax.m4:M4nu100",
    "fsvm": "mmbench.machines.fsvm.fsvm:FSVM",
    "fsvm_semi": "mmbench.machines.fsvm.fsvm:FSVMsemi",
    "fsvm_pg": "mmbench.machines.fsvm.fsvm:FSVMpg",
    "fsvm_eps": "mmbench.machines.fsvm.fsvm:FSVMeps",
    "fsvm_opt": "mmbench.machines.fsvm.fsvm:FSVMopt",
    "fsvm_1": "mmbench.machines.fsvm.fsvm:FSVM1",
    "fsvm_2": "mmbench.machines.fsvm.fsvm:FSVM2",
    "fsvm_5": "mmbench.machines.fsvm.fsvm:FSVM5",
    "fsvm_15": "mmbench.machines.fsvm.fsvm:FSVM15",
    "rsvm_plus": "mmbench.machines.radius.rsvm_plus:RSVMPlus",
    "rsvm_mu_plus": "mmbench.machines.radius.rsvm_mu_plus:RSVMMuPlus",
    "mrsvm": "mmbench.machines.radius.mrsvm:MRSVM",
}

__all__ = [
    "FSVM",
    "KLDA",
    "LDA",
    "LSSVM",
    "M4",
    "MACHINES",
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
    "machine_class",
]


def machine_class(name: str) -> type[PairwiseClassifier]:
    """Return the estimator class of a machine by its name in YAML files.

    Raises
    ------
    UserError
        If no machine has that name; the message holds the nearest one.
    """
    if name not in MACHINES:
        raise UserError(f"unknown machine {name!r}{did_you_mean(name, MACHINES)}")
    module, _, attribute = MACHINES[name].partition(":")
    return getattr(import_module(module), attribute)


def __getattr__(attribute: str) -> type[PairwiseClassifier]:
    for name, path in MACHINES.items():
        if path.endswith(f":{attribute}"):
            return machine_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
