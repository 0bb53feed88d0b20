"""The F-SVM."""

from mmbench.machines.fsvm.fsvm import FSVM

__all__ = ["FSVM"]
