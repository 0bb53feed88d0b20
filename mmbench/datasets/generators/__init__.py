"""Generators: data sets as functions of a seed. Each is one function listed in the table."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from mmbench.datasets.dataset import Parsed

#: Generator name -> module that holds a function of that name.
GENERATORS = {
    "twonorm": "breiman",
    "ringnorm": "breiman",
    "waveform": "breiman",
    "toy_1": "toy",
    "toy_2": "toy",
    "toy_3": "toy",
    "toy_4": "toy",
}

#: Raised when a generator's draws change; part of the hash that names a drawn data set.
VERSION = 1


def generate(name: str, **options: Any) -> Parsed:
    """Draw a data set; equal arguments give equal data."""
    module = import_module(f"mmbench.datasets.generators.{GENERATORS[name]}")
    function: Callable[..., Parsed] = getattr(module, name)
    return function(**options)


def random_stream(seed: int, draw: int = 0) -> np.random.RandomState:
    """Return the random numbers of one draw.

    `RandomState` is the one numpy stream that is frozen for ever (NEP 19), so that a seed means the
    same data in ten years.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(draw,))
    return np.random.RandomState(np.random.MT19937(sequence))
