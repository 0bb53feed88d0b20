"""A task that reads a data file, in a module that workers import quickly."""

from __future__ import annotations

import time

from mmbench.running.parcel import MissingData


def read_slowly(job, context):
    """Return the content of a file that must be sent to the worker."""
    path = context.data / "user/mine.csv"
    if not path.is_file():
        raise MissingData("mine.csv")
    time.sleep(2)
    return path.read_bytes()
