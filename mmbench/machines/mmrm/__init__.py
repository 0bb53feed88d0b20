"""The max-margin ratio machine."""

from mmbench.machines.mmrm.mmrm import MMRM

__all__ = ["MMRM"]
