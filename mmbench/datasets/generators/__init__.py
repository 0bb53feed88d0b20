"""Generators: data sets as functions of a seed. Each is one function listed in the table."""

from collections.abc import Callable
from typing import Any

from mmbench.datasets.dataset import Parsed
from mmbench.datasets.generators.breiman import ringnorm, twonorm, waveform
from mmbench.datasets.generators.toy import toy_1, toy_2, toy_3, toy_4

#: Generators by name.
GENERATORS: dict[str, Callable[..., Parsed]] = {
    function.__name__: function
    for function in (twonorm, ringnorm, waveform, toy_1, toy_2, toy_3, toy_4)
}

#: Raised when a generator's draws change; part of the hash that names a drawn data set.
VERSION = 1


def generate(name: str, **options: Any) -> Parsed:
    """Draw a data set; equal arguments give equal data."""
    return GENERATORS[name](**options)
