"""R-SVM+, R-SVMμ+ and MR-SVM: machines with a trade-off between margin and radius of the data."""

from mmbench.machines.radius.mrsvm import MRSVM
from mmbench.machines.radius.rsvm import RSVMMuPlus, RSVMPlus

__all__ = ["MRSVM", "RSVMMuPlus", "RSVMPlus"]
