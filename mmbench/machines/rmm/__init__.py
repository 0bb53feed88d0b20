"""The relative margin machine."""

from mmbench.machines.rmm.rmm import RMM

__all__ = ["RMM"]
