"""Machines based on the class means and covariances (LDA, MPM, MEMPM, M4)."""

from mmbench.machines.minimax.lda import LDA
from mmbench.machines.minimax.m4 import M4
from mmbench.machines.minimax.mempm import MEMPM
from mmbench.machines.minimax.mpm import MPM

__all__ = ["LDA", "M4", "MEMPM", "MPM"]
