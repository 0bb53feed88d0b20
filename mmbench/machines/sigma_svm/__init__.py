"""The Sigma-SVM."""

from mmbench.machines.sigma_svm.sigma_svm import SigmaSVM

__all__ = ["SigmaSVM"]
