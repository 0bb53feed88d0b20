"""Machines that trade the margin off against a radius of the data: R-SVM+, R-SVM_mu+ and MR-SVM."""

from mmbench.machines.radius.mrsvm import MRSVM
from mmbench.machines.radius.rsvm import RSVMMuPlus, RSVMPlus

__all__ = ["MRSVM", "RSVMMuPlus", "RSVMPlus"]
