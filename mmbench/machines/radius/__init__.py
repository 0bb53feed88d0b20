"""Margins against a radius of the data: R-SVM+, R-SVM_mu+ and MR-SVM."""

from mmbench.machines.radius.mrsvm import MRSVM
from mmbench.machines.radius.rsvm_mu_plus import RSVMMuPlus
from mmbench.machines.radius.rsvm_plus import RSVMPlus

__all__ = ["MRSVM", "RSVMMuPlus", "RSVMPlus"]
