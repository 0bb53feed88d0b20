"""Margins against a radius of the data: R-SVM+, R-SVM_mu+ and MR-SVM."""

from mmbench.machines.radius.machines import MRSVM, RSVMMuPlus, RSVMPlus

__all__ = ["MRSVM", "RSVMMuPlus", "RSVMPlus"]
